"""The mean of several related outputs, for rows of an input and the number of an output (the last column)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, LinearMean, Mean, ZeroMean

from ..arrays import Array, Mask
from ..errors import InputError
from .functionals import Average, Derivative, Functional, Integral
from .kernel_values import kernel_jet, kernel_jet_diagonal, require_derivative

# One kernel for several related outputs: rows are an input and the number of an output, ``[x_0, …, x_{d−1}, o]``.
#
# For every term q there are a base kernel k_q over x, entries (an output o and a functional L) and a mixing matrix W_q:
#
#     Cov((x, o), (x′, o′)) = Σ_q Σ_{entries i of o, j of o′} (W_q W_qᵀ)[i, j] · (L_i ⊗ L_j) k_q (x, x′).
#
# Whatever the terms are, this is a covariance: the outputs are sums of functionals of independent functions.

#: An average of values is taken over blocks of at most this many kernel values.
CHUNK = 1 << 25


@dataclass(frozen=True, eq=False)
class Term:
    """Functionals of functions that share one kernel: entries are (number of the output, functional)."""

    kernel: Kernel
    entries: tuple[tuple[int, Functional], ...]
    mixing: Array


@dataclass(frozen=True)
class _Side:
    """One functional at some rows: kernel values are taken there, in this derivative, and averaged if weighted."""

    rows: torch.Tensor
    column: int | None
    weights: torch.Tensor | None


class OutputsKernel(Kernel):
    """The covariance of several outputs, for rows of an input and the number of an output (the last column).

    An output number that no entry has, or that is not whole, belongs to nothing: its covariances are 0.

    >>> import torch, gpytorch
    >>> from sfumato.models.functionals import Derivative, Value
    >>> base = gpytorch.kernels.RBFKernel().double()
    >>> base.lengthscale = 1.0
    >>> kernel = OutputsKernel([Term(base, ((0, Value()), (1, Derivative(0))), np.ones((2, 1)))])
    >>> rows = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    >>> kernel.forward(rows, rows).detach().numpy().round(4)
    array([[ 1.    , -0.6065],
           [-0.6065,  1.    ]])
    """

    #: The last column is ours; the base kernels see the others (see ``kernel_values.require_features``).
    columns_of_its_own = 1

    def __init__(self, terms: Sequence[Term]) -> None:
        super().__init__()
        if not terms:
            raise InputError("terms is empty; give at least one.")
        self.base_kernels = torch.nn.ModuleList([copy.deepcopy(term.kernel).double() for term in terms])
        entries = [tuple((output, _plain(functional)) for output, functional in term.entries) for term in terms]
        self.entries: tuple[tuple[tuple[int, Functional], ...], ...] = tuple(entries)
        for q, term in enumerate(terms):
            _check(term)
            self.register_buffer(f"mixing_{q}", _buffer(term.mixing))
            for i, (_, functional) in enumerate(self.entries[q]):
                if isinstance(functional, Average):
                    self.register_buffer(f"points_{q}_{i}", _buffer(functional.points))
                    self.register_buffer(f"weights_{q}_{i}", _buffer(functional.weights))
        sizes = {functional.points.shape[1] for _, functional in self._averages()}
        if len(sizes) > 1:
            raise InputError(
                f"terms have averages of points with {' and '.join(map(str, sorted(sizes)))} columns; "
                "give all points the columns of the inputs."
            )

    @property
    def terms(self) -> tuple[Term, ...]:
        """What the kernel is made of."""
        parts = zip(self.base_kernels, self.entries, strict=True)
        return tuple(
            Term(kernel, entries, self._mixing(q).cpu().numpy().copy()) for q, (kernel, entries) in enumerate(parts)
        )

    @property
    def count(self) -> int:
        """The number of outputs."""
        return 1 + max(output for entries in self.entries for output, _ in entries)

    @property
    def related(self) -> Mask:
        """Which pairs of outputs can covary: they share a term, and are mixed there."""
        pairs = np.zeros((self.count, self.count), dtype=np.bool_)
        for q, entries in enumerate(self.entries):
            outputs = np.array([output for output, _ in entries])
            rows, columns = np.nonzero(self._products(q).cpu().numpy())
            pairs[outputs[rows], outputs[columns]] = True
        return pairs

    def takes_input(self, output: int) -> bool:
        """Whether this output depends on x; if not, it has a ``place``."""
        return any(functional.takes_input for number, functional in self._all_entries() if number == output)

    def place(self, output: int) -> Array:
        """The x by which an output without an input of its own goes."""
        averages = [average for number, average in self._averages() if number == output]
        if self.takes_input(output) or not averages:
            raise InputError(f"output {output} has no place; only an average or an integral has.")
        points = np.concatenate([average.points for average in averages])
        return Average(points, np.concatenate([average.weights for average in averages])).place

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **_: Any) -> torch.Tensor:
        for _number, average in self._averages():
            if average.points.shape[1] != x1.shape[-1] - 1:
                raise InputError(
                    f"the rows have {x1.shape[-1]} columns, but the kernel averages over points with "
                    f"{average.points.shape[1]}; give rows of an input and the number of an output."
                )
        return self._diagonal(x1) if diag else self._matrix(x1, x2)

    def _matrix(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        total = x1.new_zeros(len(x1), len(x2))
        rows, columns = self._places(x1), self._places(x2)
        for q, kernel in enumerate(self.base_kernels):
            products = self._products(q)
            for i, j in torch.nonzero(products).tolist():
                left, right = rows[self.entries[q][i][0]], columns[self.entries[q][j][0]]
                if len(left) and len(right):
                    block = _covariance(kernel, self._side(q, i, x1[left, :-1]), self._side(q, j, x2[right, :-1]))
                    total[left[:, None], right] += products[i, j] * block
        return total

    def _diagonal(self, x: torch.Tensor) -> torch.Tensor:
        total = x.new_zeros(len(x))
        places = self._places(x)
        for q, kernel in enumerate(self.base_kernels):
            products = self._products(q)
            for i, j in torch.nonzero(products).tolist():
                output, other = self.entries[q][i][0], self.entries[q][j][0]
                if output == other and len(places[output]):
                    inputs = x[places[output], :-1]
                    block = _variance(kernel, self._side(q, i, inputs), self._side(q, j, inputs))
                    total[places[output]] += products[i, j] * block
        return total

    def _side(self, q: int, i: int, inputs: torch.Tensor) -> _Side:
        functional = self.entries[q][i][1]
        if isinstance(functional, Average):
            return _Side(getattr(self, f"points_{q}_{i}"), None, getattr(self, f"weights_{q}_{i}"))
        return _Side(inputs, functional.column if isinstance(functional, Derivative) else None, None)  # type: ignore[arg-type]

    def _places(self, x: torch.Tensor) -> list[torch.Tensor]:
        """For every output, which rows are its."""
        return [torch.nonzero(x[:, -1] == output).flatten() for output in range(self.count)]

    def _mixing(self, q: int) -> torch.Tensor:
        mixing: torch.Tensor = getattr(self, f"mixing_{q}")
        return mixing

    def _products(self, q: int) -> torch.Tensor:
        mixing = self._mixing(q)
        return mixing @ mixing.T

    def _all_entries(self) -> list[tuple[int, Functional]]:
        return [entry for entries in self.entries for entry in entries]

    def _averages(self) -> list[tuple[int, Average]]:
        return [(output, part) for output, part in self._all_entries() if isinstance(part, Average)]


def _covariance(kernel: Kernel, left: _Side, right: _Side) -> torch.Tensor:
    """All covariances of two functionals; an average has one row, or one column, for all its rows."""
    if right.weights is not None:
        column = _averaged(kernel, left, right.rows, right.weights)
        return (column if left.weights is None else (left.weights @ column)[None])[:, None]
    if left.weights is not None:
        return _averaged(kernel, right, left.rows, left.weights)[None]
    return kernel_jet(kernel, left.rows, right.rows, left.column, right.column)


def _averaged(kernel: Kernel, side: _Side, points: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weighted sums over the points for all rows of the other side, block by block."""
    size = max(1, CHUNK // len(points))
    return torch.cat([kernel_jet(kernel, rows, points, side.column, None) @ weights for rows in side.rows.split(size)])


def _variance(kernel: Kernel, left: _Side, right: _Side) -> torch.Tensor:
    """The covariances of two functionals at the same rows."""
    if left.weights is not None or right.weights is not None:
        return _covariance(kernel, left, right).flatten()
    return kernel_jet_diagonal(kernel, left.rows, left.column, right.column)


def _plain(functional: Functional) -> Functional:
    return functional.average if isinstance(functional, Integral) else functional


def _buffer(values: Array) -> torch.Tensor:
    return torch.tensor(np.asarray(values, dtype=np.float64), dtype=torch.float64, device="cpu")


def _check(term: Term) -> None:
    if any(isinstance(part, OutputsKernel) for part in term.kernel.modules()):
        raise InputError("kernel of a term is itself a kernel of several outputs; give a kernel over the inputs.")
    if not term.entries:
        raise InputError("entries of a term are empty; give at least one.")
    shape = np.shape(term.mixing)
    if len(shape) != 2 or shape[0] != len(term.entries) or shape[1] < 1 or not np.all(np.isfinite(term.mixing)):
        raise InputError(
            f"mixing has shape {shape} for {len(term.entries)} entries; give one row of finite numbers for each entry."
        )
    with np.errstate(all="ignore"):
        if not np.all(np.isfinite(np.asarray(term.mixing) @ np.asarray(term.mixing).T)):
            raise InputError("mixing has numbers whose squares are not finite; use a smaller unit for the outputs.")
    for output, functional in term.entries:
        if isinstance(output, bool) or not isinstance(output, int) or output < 0:
            raise InputError(f"output is {output!r}; give a whole number, 0 or more.")
        if isinstance(functional, Derivative):
            if not isinstance(functional.column, int):
                raise InputError(f"column is {functional.column!r}; give the number of a column: use on(names) first.")
            require_derivative(term.kernel, functional.column)


#: What the mean of one output is a sum of: functionals of means.
Parts = Sequence[tuple[Functional, Mean]]


class OutputsMean(Mean):
    """For every output the sum of ``L(mean)`` over its (functional, mean) pairs; 0 where there are none.

    >>> from sfumato.models.functionals import Average, Derivative, Value
    >>> line = LinearMean(1).double()
    >>> line.weights.data.fill_(2.0), line.bias.data.fill_(1.0)
    (tensor([[2.]], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    >>> mean = OutputsMean([[(Value(), line)], [(Derivative(0), line)], [(Average([0.0, 1.0]), line)]])
    >>> mean(torch.tensor([[3.0, 0.0], [3.0, 1.0], [3.0, 2.0]], dtype=torch.float64)).tolist()
    [7.0, 2.0, 2.0]
    """

    def __init__(self, outputs: Sequence[Parts]) -> None:
        super().__init__()
        functionals = []
        self.base_means = torch.nn.ModuleList()
        for o, parts in enumerate(outputs):
            plain = [(part.average if isinstance(part, Integral) else part, mean) for part, mean in parts]
            functionals.append(tuple(part for part, _ in plain))
            self.base_means.append(torch.nn.ModuleList([copy.deepcopy(mean).double() for _, mean in plain]))
            for i, (part, mean) in enumerate(plain):
                if isinstance(part, Average):
                    self.register_buffer(f"points_{o}_{i}", torch.tensor(part.points, device="cpu"))
                    self.register_buffer(f"weights_{o}_{i}", torch.tensor(part.weights, device="cpu"))
                elif isinstance(part, Derivative):
                    _require_slope(mean, part)
        self.functionals: tuple[tuple[Functional, ...], ...] = tuple(functionals)

    @property
    def outputs(self) -> tuple[tuple[tuple[Functional, Mean], ...], ...]:
        """What the mean is made of: for every output its functionals and their means."""
        means: Any = self.base_means
        return tuple(tuple(zip(parts, own, strict=True)) for parts, own in zip(self.functionals, means, strict=True))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.new_zeros(x.shape[:-1])
        for o, parts in enumerate(self.outputs):
            rows = torch.nonzero(x[:, -1] == o).flatten()
            if len(rows):
                for i, (functional, mean) in enumerate(parts):
                    total[rows] += self._applied(functional, mean, f"{o}_{i}", x[rows, :-1])
        return total

    def _applied(self, functional: Functional, mean: Mean, place: str, x: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor
        if isinstance(functional, Average):
            value = mean(getattr(self, f"points_{place}")) @ getattr(self, f"weights_{place}")
        elif isinstance(functional, Derivative):
            value = mean.weights.reshape(-1)[functional.column] if type(mean) is LinearMean else x.new_zeros(())
        else:
            value = mean(x)
        return value


def _require_slope(mean: Mean, derivative: Derivative) -> None:
    """Raise unless the derivative of ``mean`` is known here."""
    if type(mean) not in (ZeroMean, ConstantMean, LinearMean):
        raise InputError(
            f"mean is of class {type(mean).__name__}, whose derivative is not known here; "
            "use a zero, constant or linear mean."
        )
    if not isinstance(derivative.column, int):
        raise InputError(f"column is {derivative.column!r}; give the number of a column: use on(names) first.")
    if type(mean) is LinearMean and derivative.column >= mean.weights.numel():
        raise InputError(
            f"column is {derivative.column}, but the linear mean has {mean.weights.numel()} weight(s); "
            "give a mean with one weight for each column."
        )
