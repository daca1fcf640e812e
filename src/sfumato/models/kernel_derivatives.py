"""First derivatives of kernels, exactly, by plain arithmetic as in ``dense_kernel``: differences come first.

With ``f ~ GP(0, k)``, the covariance of ``∂f(a)/∂a_i`` with ``∂f(b)/∂b_j`` is ``∂_{a_i} ∂_{b_j} k(a, b)``.
A column that a kernel does not look at gives 0, whatever the kernel is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    ConstantKernel,
    CosineKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)

from ..errors import InputError
from .dense_kernel import active_columns, kernel_diagonal, kernel_matrix, scaled_squares

_RADIAL = (RBFKernel, MaternKernel, RQKernel, CosineKernel)
_LEAVES = (*_RADIAL, PeriodicKernel, LinearKernel, PolynomialKernel, ConstantKernel)


@dataclass(frozen=True)
class _Pairs:
    """Rows of A with rows of B: all with all, or (``matched``) each with the one beside it."""

    A: torch.Tensor
    B: torch.Tensor
    matched: bool

    def left(self, column: int) -> torch.Tensor:
        return self.A[:, column] if self.matched else self.A[:, column : column + 1]

    def right(self, column: int) -> torch.Tensor:
        return self.B[:, column]

    def gap(self, column: int) -> torch.Tensor:
        return self.left(column) - self.right(column)

    def seen_by(self, kernel: Kernel, picked: bool) -> _Pairs:
        """The same pairs in the columns that ``kernel`` looks at."""
        return _Pairs(active_columns(kernel, self.A, picked), active_columns(kernel, self.B, picked), self.matched)

    def constant(self, value: float) -> torch.Tensor:
        return self.A.new_full((len(self.A),) if self.matched else (len(self.A), len(self.B)), value)

    def values(self, kernel: Kernel) -> torch.Tensor:
        return kernel_diagonal(kernel, self.A) if self.matched else kernel_matrix(kernel, self.A, self.B)

    def squares(self, scale: torch.Tensor) -> torch.Tensor:
        """|(a − b)/ℓ|², which is 0 for rows beside each other: they are the same."""
        return self.constant(0.0) if self.matched else scaled_squares(self.A, self.B, scale)

    def dot(self) -> torch.Tensor:
        """a·b."""
        return (self.A * self.B).sum(dim=-1) if self.matched else self.A @ self.B.T


#: The columns that a derivative is taken in (several where active_dims repeats one), or None for no derivative.
_Side = tuple[int, ...] | None


def kernel_jet(kernel: Kernel, A: torch.Tensor, B: torch.Tensor, left: int | None, right: int | None) -> torch.Tensor:
    """The matrix of ``∂_{a_left} ∂_{b_right} k(a, b)``; None means no derivative on that side."""
    return _checked_jet(kernel, _Pairs(A, B, matched=False), left, right)


def kernel_jet_diagonal(kernel: Kernel, A: torch.Tensor, left: int | None, right: int | None) -> torch.Tensor:
    """The same at b = a, for every row of ``A``."""
    return _checked_jet(kernel, _Pairs(A, A, matched=True), left, right)


def require_derivative(kernel: Kernel, column: int) -> None:
    """Raise unless ``kernel`` has a derivative in ``column`` that is known here."""
    _require(kernel, (column,), picked=False)


def _require(kernel: Kernel, columns: tuple[int, ...], picked: bool) -> None:
    columns = _followed(kernel, columns, picked) or ()
    kind = type(kernel)
    if not columns:
        return
    if kind is ScaleKernel:
        _require(kernel.base_kernel, columns, picked=True)
    elif kind in (AdditiveKernel, ProductKernel):
        for part in kernel.kernels:
            _require(part, columns, picked=False)
    elif kind is MaternKernel and kernel.nu == 0.5:
        raise InputError(
            "kernel has a MaternKernel with nu=0.5, whose functions have no derivative; "
            "use nu=1.5, nu=2.5 or an RBFKernel."
        )
    elif kind not in _LEAVES:
        known = ", ".join(leaf.__name__ for leaf in _LEAVES)
        raise InputError(
            f"kernel has a part of class {kind.__name__}, whose derivative is not known here; "
            f"use {known}, and sums, products and scales of them."
        )


def _checked_jet(kernel: Kernel, pairs: _Pairs, left: int | None, right: int | None) -> torch.Tensor:
    for column in (left, right):
        if column is None:
            continue
        if not 0 <= column < pairs.A.shape[1]:
            raise InputError(
                f"column is {column}, but the inputs have {pairs.A.shape[1]} feature(s); give one of their numbers."
            )
        require_derivative(kernel, column)
    return _jet(kernel, pairs, None if left is None else (left,), None if right is None else (right,), picked=False)


def _followed(kernel: Kernel, columns: _Side, picked: bool) -> _Side:
    """Where ``columns`` are among those that the kernel looks at."""
    if columns is None or picked or kernel.active_dims is None:
        return columns
    return tuple(place for place, column in enumerate(kernel.active_dims.tolist()) if column in columns)


def _jet(kernel: Kernel, pairs: _Pairs, left: _Side, right: _Side, picked: bool) -> torch.Tensor:
    if left is None and right is None:
        return pairs.values(kernel)
    left, right = _followed(kernel, left, picked), _followed(kernel, right, picked)
    if left == () or right == ():
        return pairs.constant(0.0)
    pairs = pairs.seen_by(kernel, picked)
    kind = type(kernel)
    if kind is ScaleKernel:
        # a ScaleKernel takes over the columns of the kernel that it scales
        scaled: torch.Tensor = _jet(kernel.base_kernel, pairs, left, right, picked=True) * kernel.outputscale
        return scaled
    if kind is AdditiveKernel:
        total = pairs.constant(0.0)
        for part in kernel.kernels:
            total = total + _jet(part, pairs, left, right, picked=False)
        return total
    if kind is ProductKernel:
        return _product(kernel, pairs, left, right)
    if kind is PeriodicKernel:
        return _periodic(kernel, pairs, left, right)
    if kind is LinearKernel:
        return _linear(kernel, pairs, left, right)
    if kind is PolynomialKernel:
        return _polynomial(kernel, pairs, left, right)
    if kind is ConstantKernel:
        return pairs.constant(0.0)
    return _radial(kernel, pairs, left, right)


def _product(kernel: Kernel, pairs: _Pairs, left: _Side, right: _Side) -> torch.Tensor:
    """Leibniz' rule, one factor after the other."""
    nothing = pairs.constant(0.0)
    value, by_left, by_right, both = pairs.constant(1.0), nothing, nothing, nothing
    for part in kernel.kernels:
        k = _jet(part, pairs, None, None, picked=False)
        k_left = nothing if left is None else _jet(part, pairs, left, None, picked=False)
        k_right = nothing if right is None else _jet(part, pairs, None, right, picked=False)
        if left is not None and right is not None:
            k_both = _jet(part, pairs, left, right, picked=False)
            both = both * k + by_left * k_right + by_right * k_left + value * k_both
        value, by_left, by_right = value * k, by_left * k + value * k_left, by_right * k + value * k_right
    if left is None:
        return by_right
    return by_left if right is None else both


def _spread(values: torch.Tensor, pairs: _Pairs) -> torch.Tensor:
    """One number a column."""
    return values.reshape(-1).expand(pairs.A.shape[1])


def _shared(left: _Side, right: _Side) -> list[int]:
    return [column for column in left or () if column in (right or ())]


def _radial(kernel: Kernel, pairs: _Pairs, left: _Side, right: _Side) -> torch.Tensor:
    """k = φ(s) with s = |(a − b)/ℓ|²/2, by the chain rule."""
    scales = _spread(kernel.period_length if type(kernel) is CosineKernel else kernel.lengthscale, pairs)
    first, second = _slopes(kernel, pairs.squares(scales))
    if left is None or right is None:
        return first * _tilt(pairs, scales, left) if right is None else -first * _tilt(pairs, scales, right)
    bend = pairs.constant(0.0)
    for column in _shared(left, right):
        bend = bend + 1.0 / scales[column] / scales[column]
    return -second * _tilt(pairs, scales, left) * _tilt(pairs, scales, right) - first * bend


def _tilt(pairs: _Pairs, scales: torch.Tensor, columns: _Side) -> torch.Tensor:
    """∂s/∂a in these columns; ∂s/∂b is the opposite."""
    total = pairs.constant(0.0)
    for column in columns or ():
        total = total + pairs.gap(column) / scales[column] / scales[column]
    return total


def _slopes(kernel: Kernel, squares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """φ′(s) and φ″(s) at s = squares/2. Where φ″ is infinite at 0 it is multiplied by 0, and 0 stands for it."""
    kind = type(kernel)
    if kind is RBFKernel:
        decay = torch.exp(-squares / 2.0)
        return -decay, decay
    if kind is RQKernel:
        # the power of a number next to 1 would lose as many digits as alpha has
        growth = torch.log1p(squares / (2.0 * kernel.alpha))
        slope = torch.exp(-(kernel.alpha + 1.0) * growth)
        return -slope, (kernel.alpha + 1.0) / kernel.alpha * slope * torch.exp(-growth)
    distance = squares.sqrt()
    apart = torch.where(distance > 0.0, distance, torch.ones_like(distance))
    if kind is CosineKernel:
        bend = math.pi**2 * (torch.sinc(distance) - torch.cos(math.pi * distance)) / apart / apart
        return -(math.pi**2) * torch.sinc(distance), torch.where(distance > 0.0, bend, torch.zeros_like(bend))
    scaled = distance * math.sqrt(2.0 * kernel.nu)
    decay = torch.exp(-scaled)
    if kernel.nu == 1.5:
        return -3.0 * decay, torch.where(distance > 0.0, 3.0 * math.sqrt(3.0) * decay / apart, torch.zeros_like(decay))
    return -5.0 / 3.0 * (1.0 + scaled) * decay, 25.0 / 3.0 * decay


def _periodic(kernel: Kernel, pairs: _Pairs, left: _Side, right: _Side) -> torch.Tensor:
    """k = exp E with E = −2 Σ sin²(π(a − b)/p)/ℓ."""
    scales, periods = _spread(kernel.lengthscale, pairs), _spread(kernel.period_length, pairs)

    def angle(column: int) -> torch.Tensor:
        # what is left of a gap after whole periods is exact, a large multiple of π is not
        return torch.fmod(pairs.gap(column), periods[column]) * (math.pi / periods[column])

    def tilt(columns: _Side) -> torch.Tensor:
        total = pairs.constant(0.0)
        for column in columns or ():
            total = total - torch.sin(2.0 * angle(column)) * (2.0 * math.pi / periods[column] / scales[column])
        return total

    exponent = pairs.constant(0.0)
    for column in range(pairs.A.shape[1]):
        exponent = exponent - 2.0 * torch.sin(angle(column)).square() / scales[column]
    values = torch.exp(exponent)
    if left is None or right is None:
        return values * tilt(left) if right is None else -values * tilt(right)
    bend = -tilt(left) * tilt(right)
    for column in _shared(left, right):
        rate = 2.0 * math.pi / periods[column]
        bend = bend + torch.cos(2.0 * angle(column)) * (rate * rate / scales[column])
    return values * bend


def _linear(kernel: Kernel, pairs: _Pairs, left: _Side, right: _Side) -> torch.Tensor:
    """k = Σ v_i a_i b_i."""
    variances = _spread(kernel.variance, pairs)
    total = pairs.constant(0.0)
    if left is None or right is None:
        for column in left or right or ():
            total = total + variances[column] * (pairs.right(column) if right is None else pairs.left(column))
        return total
    for column in _shared(left, right):
        total = total + variances[column]
    return total


def _polynomial(kernel: Kernel, pairs: _Pairs, left: _Side, right: _Side) -> torch.Tensor:
    """k = (c + a·b)^p."""
    power = float(kernel.power)
    base: torch.Tensor = pairs.dot() + kernel.offset
    slope = power * base.pow(power - 1.0)
    from_left = sum((pairs.right(column) for column in left or ()), pairs.constant(0.0))
    from_right = sum((pairs.left(column) for column in right or ()), pairs.constant(0.0))
    if left is None or right is None:
        return slope * (from_left if right is None else from_right)
    bend = slope * float(len(_shared(left, right)))
    if power == 1.0:
        return bend
    return bend + power * (power - 1.0) * base.pow(power - 2.0) * from_left * from_right
