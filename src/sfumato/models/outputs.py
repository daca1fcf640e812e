"""Several related outputs as one process, over rows of an input and the number of an output, ``[x_0, …, x_{d−1}, o]``.

For every term q there are a base kernel k_q over x, entries (an output o and a functional L) and a mixing matrix W_q:

    Cov((x, o), (x′, o′)) = Σ_q Σ_{entries i of o, j of o′} (W_q W_qᵀ)[i, j] · (L_i ⊗ L_j) k_q (x, x′).

Whatever the terms are, this is a covariance: the outputs are sums of functionals of independent functions.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from ..arrays import Array, Mask
from ..errors import InputError
from .functionals import Average, Functional, Side, Value
from .kernel_values import kernel_jet, kernel_jet_diagonal

#: An average of values is taken over blocks of at most this many kernel values.
CHUNK = 1 << 25


@dataclass(frozen=True, eq=False)
class Term:
    """Functionals of functions that share one kernel: entries are (number of the output, functional)."""

    kernel: Kernel
    entries: tuple[tuple[int, Functional], ...]
    mixing: Array


class OutputsKernel(Kernel):
    """The covariance of several outputs, for rows of an input and the number of an output (the last column).

    An output number that no entry has, or that is not whole, belongs to nothing: its covariances are 0.

    >>> import torch, gpytorch
    >>> from sfumato.models import Derivative, Value
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
        for term in terms:
            _check(term)
        self.base_kernels = torch.nn.ModuleList([copy.deepcopy(term.kernel).double() for term in terms])
        self.entries = tuple(tuple((output, part.plain()) for output, part in term.entries) for term in terms)
        self.mixings = tuple(np.array(term.mixing, dtype=np.float64) for term in terms)
        sizes = {functional.points.shape[1] for _, functional in self._averages()}
        if len(sizes) > 1:
            raise InputError(
                f"terms have averages of points with {' and '.join(map(str, sorted(sizes)))} columns; "
                "give all points the columns of the inputs."
            )

    @property
    def terms(self) -> tuple[Term, ...]:
        """What the kernel is made of."""
        parts = zip(self.base_kernels, self.entries, self.mixings, strict=True)
        return tuple(Term(kernel, entries, mixing.copy()) for kernel, entries, mixing in parts)

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
            rows, columns = np.nonzero(self._products(q).numpy())
            pairs[outputs[rows], outputs[columns]] = True
        return pairs

    @property
    def follows(self) -> Mask:
        """Which pairs of outputs are functionals of one function, and not the same one: r and dr/dt, r and its mean."""
        pairs = np.zeros((self.count, self.count), dtype=np.bool_)
        for q, entries in enumerate(self.entries):
            products = self._products(q).numpy()
            for i, j in zip(*np.nonzero(products), strict=True):
                (output, first), (other, second) = entries[i], entries[j]
                pairs[output, other] |= not (isinstance(first, Value) and isinstance(second, Value))
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
                (output, first), (other, second) = self.entries[q][i], self.entries[q][j]
                left, right = rows[output], columns[other]
                if len(left) and len(right):
                    block = _covariance(kernel, first.at(x1[left, :-1]), second.at(x2[right, :-1]))
                    total[left[:, None], right] += products[i, j] * block
        return total

    def _diagonal(self, x: torch.Tensor) -> torch.Tensor:
        total = x.new_zeros(len(x))
        places = self._places(x)
        for q, kernel in enumerate(self.base_kernels):
            products = self._products(q)
            for i, j in torch.nonzero(products).tolist():
                (output, first), (other, second) = self.entries[q][i], self.entries[q][j]
                if output == other and len(places[output]):
                    inputs = x[places[output], :-1]
                    block = _variance(kernel, first.at(inputs), second.at(inputs))
                    total[places[output]] += products[i, j] * block
        return total

    def _places(self, x: torch.Tensor) -> list[torch.Tensor]:
        """For every output, which rows are its."""
        return [torch.nonzero(x[:, -1] == output).flatten() for output in range(self.count)]

    def _products(self, q: int) -> torch.Tensor:
        mixing = torch.from_numpy(self.mixings[q])
        return mixing @ mixing.T

    def _all_entries(self) -> list[tuple[int, Functional]]:
        return [entry for entries in self.entries for entry in entries]

    def _averages(self) -> list[tuple[int, Average]]:
        return [(output, part) for output, part in self._all_entries() if isinstance(part, Average)]


def _covariance(kernel: Kernel, left: Side, right: Side) -> torch.Tensor:
    """All covariances of two functionals; an average has one row, or one column, for all its rows."""
    if right.weights is not None:
        column = _averaged(kernel, left, right.rows, right.weights)
        return (column if left.weights is None else (left.weights @ column)[None])[:, None]
    if left.weights is not None:
        return _averaged(kernel, right, left.rows, left.weights)[None]
    return kernel_jet(kernel, left.rows, right.rows, left.column, right.column)


def _averaged(kernel: Kernel, side: Side, points: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weighted sums over the points for all rows of the other side, block by block."""
    size = max(1, CHUNK // len(points))
    return torch.cat([kernel_jet(kernel, rows, points, side.column, None) @ weights for rows in side.rows.split(size)])


def _variance(kernel: Kernel, left: Side, right: Side) -> torch.Tensor:
    """The covariances of two functionals at the same rows."""
    if left.weights is not None or right.weights is not None:
        return _covariance(kernel, left, right).flatten()
    return kernel_jet_diagonal(kernel, left.rows, left.column, right.column)


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
        functional.require_kernel(term.kernel)


#: What the mean of one output is a sum of: functionals of means.
Parts = Sequence[tuple[Functional, Mean]]


class OutputsMean(Mean):
    """For every output the sum of ``L(mean)`` over its (functional, mean) pairs; 0 where there are none.

    >>> from gpytorch.means import LinearMean
    >>> from sfumato.models import Average, Derivative, Value
    >>> line = LinearMean(1).double()
    >>> line.weights.data.fill_(2.0), line.bias.data.fill_(1.0)
    (tensor([[2.]], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    >>> mean = OutputsMean([[(Value(), line)], [(Derivative(0), line)], [(Average([0.0, 1.0]), line)]])
    >>> mean(torch.tensor([[3.0, 0.0], [3.0, 1.0], [3.0, 2.0]], dtype=torch.float64)).tolist()
    [7.0, 2.0, 2.0]
    """

    def __init__(self, outputs: Sequence[Parts]) -> None:
        super().__init__()
        for functional, mean in (pair for parts in outputs for pair in parts):
            functional.require_mean(mean)
        self.functionals = tuple(tuple(functional.plain() for functional, _ in parts) for parts in outputs)
        self.base_means = torch.nn.ModuleList(
            [torch.nn.ModuleList([copy.deepcopy(mean).double() for _, mean in parts]) for parts in outputs]
        )

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
                for functional, mean in parts:
                    total[rows] += functional.of_mean(mean, x[rows, :-1])
        return total
