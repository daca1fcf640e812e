"""The mean of several related outputs, for rows of an input and the number of an output (the last column)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.means import ConstantMean, LinearMean, Mean, ZeroMean

from .errors import InputError
from .functionals import Average, Derivative, Functional, Integral

#: What the mean of one output is a sum of: functionals of means.
Parts = Sequence[tuple[Functional, Mean]]


class OutputsMean(Mean):
    """For every output the sum of ``L(mean)`` over its (functional, mean) pairs; 0 where there are none.

    >>> from sfumato.functionals import Average, Derivative, Value
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
