"""What is known of each kernel class, in one table: its name, its parameters, its values and its derivatives.

A new kernel is one more entry of ``KINDS``; files, words, derivatives and changes of units follow from it. Values are
as exact as float64 allows. GPyTorch is built for speed on large problems: it expands |x − x′|² and divides by the
lengthscale before it subtracts, and is wrong by far more than round-off. Here differences come first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from gpytorch.kernels import (
    ConstantKernel,
    CosineKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    RBFKernel,
    RQKernel,
    SpectralMixtureKernel,
)

from ..errors import InputError
from ..tree_checks import choice, number, positive, whole
from .fused import MATERN, RBF, of_gaps
from .stretch import MaternStretch, RBFStretch, RQStretch
from .trends import MAX_DEGREE, TrendKernel

#: Inputs this many lengthscales away from a common origin still have round-off of a few units when scaled first.
NEAR_LENGTHSCALES = 32.0

#: So many rows are worked on at a time, so that what is made of them on the way stays next to the processor.
ROWS_IN_CACHE = 256

#: Up to this many columns it is quicker to add up squares one column after the other.
FEW_COLUMNS = 3

#: The smoothness of Matérn kernels that GPyTorch has, and the largest power of a polynomial one in a file.
SMOOTHNESS = (0.5, 1.5, 2.5)
MAX_POWER = 100

#: x · this − (x · this − x) has the first 26 bits of x.
_HALF_OF_THE_BITS = 2.0**27 + 1.0

EXACT_DISTANCES = "donot_use_mm_for_euclid_dist"

#: The columns that a derivative is taken in (several where active_dims repeats one), or None for no derivative.
Side = tuple[int, ...] | None


@dataclass(frozen=True)
class Pairs:
    """Rows of A with rows of B: all with all, or (``matched``) each row of A with itself."""

    A: torch.Tensor
    B: torch.Tensor
    matched: bool

    def left(self, column: int) -> torch.Tensor:
        return self.A[:, column] if self.matched else self.A[:, column : column + 1]

    def right(self, column: int) -> torch.Tensor:
        return self.B[:, column]

    def gap(self, column: int) -> torch.Tensor:
        return self.left(column) - self.right(column)

    def constant(self, value: float) -> torch.Tensor:
        return self.A.new_full((len(self.A),) if self.matched else (len(self.A), len(self.B)), value)

    def squares(self, scale: torch.Tensor) -> torch.Tensor:
        """s = |(a − b)/ℓ|²."""
        return self.constant(0.0) if self.matched else scaled_squares(self.A, self.B, scale)

    def at_once(self, scale: torch.Tensor, of_squares: str) -> torch.Tensor | None:
        """A function of s (fused.py), where a GPU can make it in one pass."""
        if self.matched or not self.A.is_cuda or not self.A.shape[1]:
            return None
        scaled_A, scaled_B, _, far = _scaled(self.A, self.B, scale.reshape(-1))
        return None if far else of_gaps(scaled_A, scaled_B, range(self.A.shape[1]), of_squares)

    def dot(self) -> torch.Tensor:
        """a·b."""
        return (self.A * self.B).sum(dim=-1) if self.matched else self.A @ self.B.T

    def one_a_column(self, values: torch.Tensor) -> torch.Tensor:
        return values.reshape(-1).expand(self.A.shape[1])


#: What the numbers of a parameter may be listed over, and how GPyTorch is told how many there are.
COLUMN, COMPONENT = "column", "component"
COUNTS = {COLUMN: "ard_num_dims", COMPONENT: "num_mixtures"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel class, under GPyTorch's name.

    It is a number, or numbers listed over its ``axes``; where that is the column alone, one number may stand for all.
    ``unit``: where a column is stretched by a, the same kernel has this parameter times a to the power ``unit``: 1 for
    lengths, −1 for frequencies, 0 for what has no unit. ``place``: it is a place on the column, and moves with it.
    ``check`` is that of a number from a file.
    """

    name: str
    axes: tuple[str, ...] = ()
    unit: int = 0
    check: Callable[[object, str], float] = positive
    place: bool = False

    @property
    def may_be_shared(self) -> bool:
        """Whether one number may stand for all columns."""
        return self.axes == (COLUMN,)


@dataclass(frozen=True)
class Kind:
    """What is known of one kernel class.

    ``settings`` are fixed when a kernel is made (with the check of a value from a file). ``constrained``: its
    parameters have GPyTorch's constraints.
    """

    name: str
    title: str
    kernel: type[Kernel]
    value: Callable[[Any, Pairs], torch.Tensor]
    derivative: Callable[[Any, Pairs, Side, Side], torch.Tensor]
    parameters: tuple[Parameter, ...] = ()
    settings: Mapping[str, Callable[[object, str], float]] = field(default_factory=dict)
    stationary: bool = True
    constrained: bool = True

    @property
    def entries(self) -> tuple[str, ...]:
        """What a file says of such a kernel."""
        return (*(parameter.name for parameter in self.parameters), *self.settings)

    @property
    def of_fixed_columns(self) -> bool:
        """Whether such a kernel is made for one number of columns."""
        return any(COLUMN in parameter.axes and not parameter.may_be_shared for parameter in self.parameters)


@torch.no_grad()
def scaled_squares(
    A: torch.Tensor,
    B: torch.Tensor,
    lengthscale: torch.Tensor,
    of_squares: Callable[[torch.Tensor], torch.Tensor] = lambda squares: squares,
) -> torch.Tensor:
    """|(a − b)/ℓ|² for all pairs, or a function of it, which may overwrite it."""
    lengthscale = lengthscale.reshape(-1)
    scaled_A, scaled_B, near, far = _scaled(A, B, lengthscale)
    # a GPU takes all rows at once, and threads that work together would meet too often
    step = len(A) if A.is_cuda or torch.get_num_threads() > 1 else ROWS_IN_CACHE
    values, gaps = A.new_empty(len(A), len(B)), A.new_empty(min(len(A), step), len(B))
    places = scaled_B.T.contiguous()
    for start in range(0, len(A), step):
        some, squares = scaled_A[start : start + step], values[start : start + step]
        gap = gaps[: len(some)]
        if A.is_cuda and near:
            squares.copy_(of_gaps(some, scaled_B, near))
        elif 0 < len(near) <= FEW_COLUMNS:
            torch.sub(some[:, near[0] : near[0] + 1], places[near[0]], out=squares).square_()
            for column in near[1:]:
                torch.sub(some[:, column : column + 1], places[column], out=gap)
                squares.addcmul_(gap, gap)
        else:
            torch.square(torch.cdist(some[:, near], scaled_B[:, near], compute_mode=EXACT_DISTANCES), out=squares)
        for column in far:
            torch.sub(A[start : start + step, column : column + 1], B[:, column], out=gap)
            squares.addcmul_(gap.div_(lengthscale[column % lengthscale.numel()]), gap)
        made = of_squares(squares)
        if made is not squares:
            squares.copy_(made)
    return values


def _scaled(
    A: torch.Tensor, B: torch.Tensor, lengthscale: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, list[int], list[int]]:
    """A and B in lengthscales from a common origin, the columns in which that keeps their digits, and the others."""
    origin = A[:1]
    scaled_A, scaled_B = (A - origin) / lengthscale, (B - origin) / lengthscale
    near = (torch.maximum(scaled_A.abs().amax(dim=0), scaled_B.abs().amax(dim=0)) <= NEAR_LENGTHSCALES).tolist()
    columns = range(A.shape[1])
    return scaled_A, scaled_B, [i for i in columns if near[i]], [i for i in columns if not near[i]]


def by_gpytorch(kernel: Kernel, pairs: Pairs) -> torch.Tensor:
    """The values of any kernel class, as GPyTorch computes them."""
    values = kernel.forward(pairs.A, pairs.B, diag=True) if pairs.matched else kernel.forward(pairs.A, pairs.B)
    dense: torch.Tensor = values if isinstance(values, torch.Tensor) else values.to_dense()
    return dense


def _near_origin(kernel: Kernel, pairs: Pairs) -> torch.Tensor:
    """The same of a kernel of differences: the rows may move, and lose fewer digits next to 0."""
    return by_gpytorch(kernel, Pairs(pairs.A - pairs.A[:1], pairs.B - pairs.A[:1], pairs.matched))


def _shared(left: Side, right: Side) -> list[int]:
    return [column for column in left or () if column in (right or ())]


# ---------------------------------------------------------------- radial kernels: k = φ(s) with s = |(a − b)/ℓ|²/2


def _radial(
    of_squares: Callable[[Any, torch.Tensor], torch.Tensor], on_gpu: Callable[[Any], str] | None = None
) -> Callable[[Any, Pairs], torch.Tensor]:
    """``on_gpu`` has the same function of the squares as it is written for a GPU."""

    def value(kernel: Any, pairs: Pairs) -> torch.Tensor:
        if pairs.matched:
            return pairs.constant(1.0)
        made = None if on_gpu is None else pairs.at_once(kernel.lengthscale, on_gpu(kernel))
        if made is not None:
            return made
        return scaled_squares(pairs.A, pairs.B, kernel.lengthscale, lambda squares: of_squares(kernel, squares))

    return value


def _radial_derivative(
    slopes: Callable[[Any, torch.Tensor], tuple[torch.Tensor, torch.Tensor]], scale: str = "lengthscale"
) -> Callable[[Any, Pairs, Side, Side], torch.Tensor]:
    """By the chain rule; ``slopes`` are φ′ and φ″ at s, 0 where φ″ is infinite and is multiplied by 0."""

    def derivative(kernel: Any, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
        scales = pairs.one_a_column(getattr(kernel, scale))
        first, second = slopes(kernel, pairs.squares(scales))
        if left is None or right is None:
            return first * _tilt(pairs, scales, left) if right is None else -first * _tilt(pairs, scales, right)
        bend = pairs.constant(0.0)
        for column in _shared(left, right):
            bend = bend + 1.0 / scales[column] / scales[column]
        return -second * _tilt(pairs, scales, left) * _tilt(pairs, scales, right) - first * bend

    return derivative


def _tilt(pairs: Pairs, scales: torch.Tensor, columns: Side) -> torch.Tensor:
    """∂s/∂a in these columns; ∂s/∂b is the opposite."""
    total = pairs.constant(0.0)
    for column in columns or ():
        total = total + pairs.gap(column) / scales[column] / scales[column]
    return total


def _rbf(kernel: Any, squares: torch.Tensor) -> torch.Tensor:
    return squares.mul_(-0.5).exp_()


def _rbf_slopes(kernel: Any, squares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    decay = torch.exp(-squares / 2.0)
    return -decay, decay


def _rational_quadratic(kernel: Any, squares: torch.Tensor) -> torch.Tensor:
    # the power of a number next to 1 would lose as many digits as alpha has
    return torch.exp(-kernel.alpha * torch.log1p(squares / (2.0 * kernel.alpha)))


def _rational_quadratic_slopes(kernel: Any, squares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    growth = torch.log1p(squares / (2.0 * kernel.alpha))
    slope = torch.exp(-(kernel.alpha + 1.0) * growth)
    return -slope, (kernel.alpha + 1.0) / kernel.alpha * slope * torch.exp(-growth)


def _matern(kernel: Any, squares: torch.Tensor) -> torch.Tensor:
    scaled = squares.mul_(2.0 * kernel.nu).sqrt_()
    if kernel.nu == 0.5:
        return scaled.neg_().exp_()
    growth = scaled + 1.0 if kernel.nu == 1.5 else (scaled * (1.0 / 3.0)).add_(1.0).mul_(scaled).add_(1.0)
    return scaled.neg_().exp_().mul_(growth)


def _matern_slopes(kernel: Any, squares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    distance = squares.sqrt()
    scaled = distance * math.sqrt(2.0 * kernel.nu)
    decay = torch.exp(-scaled)
    if kernel.nu == 1.5:
        bend = 3.0 * math.sqrt(3.0) * decay / _nonzero(distance)
        return -3.0 * decay, torch.where(distance > 0.0, bend, torch.zeros_like(bend))
    return -5.0 / 3.0 * (1.0 + scaled) * decay, 25.0 / 3.0 * decay


def _cosine_slopes(kernel: Any, squares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    distance = squares.sqrt()
    apart = _nonzero(distance)
    bend = math.pi**2 * (torch.sinc(distance) - torch.cos(math.pi * distance)) / apart / apart
    return -(math.pi**2) * torch.sinc(distance), torch.where(distance > 0.0, bend, torch.zeros_like(bend))


def _nonzero(distance: torch.Tensor) -> torch.Tensor:
    return torch.where(distance > 0.0, distance, torch.ones_like(distance))


# ---------------------------------------------------------------- the others


def _periodic_derivative(kernel: Any, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
    """Of k = exp E with E = −2 Σ sin²(π(a − b)/p)/ℓ."""
    scales, periods = pairs.one_a_column(kernel.lengthscale), pairs.one_a_column(kernel.period_length)

    def angle(column: int) -> torch.Tensor:
        # what is left of a gap after whole periods is exact, a large multiple of π is not
        return torch.fmod(pairs.gap(column), periods[column]) * (math.pi / periods[column])

    def tilt(columns: Side) -> torch.Tensor:
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


def _linear_derivative(kernel: Any, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
    """Of k = Σ v_i a_i b_i."""
    variances = pairs.one_a_column(kernel.variance)
    total = pairs.constant(0.0)
    if left is None or right is None:
        for column in left or right or ():
            total = total + variances[column] * (pairs.right(column) if right is None else pairs.left(column))
        return total
    for column in _shared(left, right):
        total = total + variances[column]
    return total


def _trend_derivative(kernel: Any, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
    """Of k = Σ_j Σ_p (u_j u′_j)^p with u = (x − c)/w."""
    centres, widths = pairs.one_a_column(kernel.centre), pairs.one_a_column(kernel.width)

    def side(values: torch.Tensor, column: int, columns: Side, power: int) -> torch.Tensor:
        u = (values - centres[column]) / widths[column]
        return u**power if columns is None else power * u ** (power - 1) / widths[column]

    total = pairs.constant(0.0)
    for column in _shared(left, right) if left and right else left or right or ():
        for power in range(1, kernel.power + 1):
            one = side(pairs.left(column), column, left, power)
            total = total + one * side(pairs.right(column), column, right, power)
    return total


def _polynomial_derivative(kernel: Any, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
    """Of k = (c + a·b)^p."""
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


def _spectral_mixture(kernel: Any, pairs: Pairs) -> torch.Tensor:
    """Π_j Σ_q w_q exp(−2π² v_qj² τ_j²) cos(2π μ_qj τ_j) with τ = a − b: sums come first, as in GPyTorch."""
    values = pairs.constant(1.0)
    for column in range(pairs.A.shape[1]):
        values = values * _mixture(kernel, pairs, column, order=0)[0]
    return values


def _spectral_mixture_derivative(kernel: Any, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
    """By Leibniz' rule, one column after the other."""
    value = pairs.constant(1.0)
    by_left = by_right = both = pairs.constant(0.0)
    for column in range(pairs.A.shape[1]):
        level, slope, bend = _mixture(kernel, pairs, column, order=2)
        on_left, on_right = float(column in (left or ())), float(column in (right or ()))
        k_left, k_right, k_both = slope * on_left, slope * -on_right, bend * (-on_left * on_right)
        both = both * level + by_left * k_right + by_right * k_left + value * k_both
        by_left, by_right = by_left * level + value * k_left, by_right * level + value * k_right
        value = value * level
    if left is None or right is None:
        return by_left if right is None else by_right
    return both


def _mixture(kernel: Any, pairs: Pairs, column: int, order: int) -> list[torch.Tensor]:
    """Σ_q w_q exp(−2π² v_q² τ²) cos(2π μ_q τ) in one column, and its derivatives in τ up to ``order`` (0 or 2)."""
    gap = pairs.gap(column)
    turns_of = _turns(pairs, column)
    found = [pairs.constant(0.0) for _ in range(order + 1)]
    frequencies, widths = kernel.mixture_means[:, 0, column].tolist(), kernel.mixture_scales[:, 0, column].tolist()
    for weight, frequency, width in zip(kernel.mixture_weights.tolist(), frequencies, widths, strict=True):
        turn, rate = 2.0 * math.pi * frequency, 2.0 * math.pi * width
        angle = turns_of(frequency).mul_(2.0 * math.pi)
        envelope = (gap * rate).square_().div_(-2.0).exp_().mul_(weight)
        wave = torch.cos(angle)
        found[0].addcmul_(envelope, wave)
        if order:
            tilt, other = gap * (rate * rate), torch.sin(angle)
            found[1].addcmul_(envelope, tilt * wave + turn * other, value=-1.0)
            bend = (tilt * tilt - (rate * rate + turn * turn)) * wave + 2.0 * turn * tilt * other
            found[2].addcmul_(envelope, bend)
    return found


def _turns(pairs: Pairs, column: int) -> Callable[[float], torch.Tensor]:
    """What is left of (a − b) · frequency after whole turns, also after many of them.

    Differences and products are taken exactly, as sums of two floats: round-off alone would turn a distant wave.
    """
    gap, left = pairs.gap(column), pairs.left(column)
    back = gap - left
    lost = (left - (gap - back)) - (pairs.right(column) + back)
    shifted = gap * _HALF_OF_THE_BITS
    gap_high = shifted - (shifted - gap)
    gap_low = gap - gap_high

    def turns(frequency: float) -> torch.Tensor:
        high = frequency * _HALF_OF_THE_BITS - (frequency * _HALF_OF_THE_BITS - frequency)
        low = frequency - high
        product = gap * frequency
        rest = (gap_high * high).sub_(product).add_(gap_high, alpha=low).add_(gap_low, alpha=high)
        rest.add_(gap_low, alpha=low).add_(lost, alpha=frequency)
        return product.sub_(torch.round(product)).add_(rest)

    return turns


def _stretch(kernel: Any, pairs: Pairs) -> torch.Tensor:
    if pairs.matched:
        return pairs.constant(1.0)
    values: torch.Tensor = kernel.stretched(pairs.squares(kernel.lengthscale), pairs.A.shape[1])
    return values


def _no_derivative(kernel: Any, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
    raise InputError(f"kernel has a part of class {type(kernel).__name__}, whose derivative is not known here.")


def _no_slope(kernel: Any, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
    return pairs.constant(0.0)


_LENGTHSCALE = Parameter("lengthscale", (COLUMN,), unit=1)

#: The kernels without parts, by their names in files.
KINDS = {
    kind.name: kind
    for kind in (
        Kind("rbf", "RBF", RBFKernel, _radial(_rbf, lambda _: RBF), _radial_derivative(_rbf_slopes), (_LENGTHSCALE,)),
        Kind(
            "matern",
            "Matérn",
            MaternKernel,
            _radial(_matern, lambda kernel: MATERN[kernel.nu]),
            _radial_derivative(_matern_slopes),
            (_LENGTHSCALE,),
            settings={"nu": lambda value, what: choice(value, what, SMOOTHNESS)},
        ),
        Kind(
            "rational_quadratic",
            "rational quadratic",
            RQKernel,
            _radial(_rational_quadratic),
            _radial_derivative(_rational_quadratic_slopes),
            (_LENGTHSCALE, Parameter("alpha")),
        ),
        Kind(
            "periodic",
            "periodic",
            PeriodicKernel,
            _near_origin,
            _periodic_derivative,
            (Parameter("lengthscale", (COLUMN,)), Parameter("period_length", (COLUMN,), unit=1)),
        ),
        Kind(
            "spectral_mixture",
            "spectral mixture",
            SpectralMixtureKernel,
            _spectral_mixture,
            _spectral_mixture_derivative,
            (
                Parameter("mixture_weights", (COMPONENT,)),
                # a component at frequency 0 is an RBF kernel
                Parameter("mixture_means", (COMPONENT, COLUMN), unit=-1, check=partial(number, least=0.0)),
                Parameter("mixture_scales", (COMPONENT, COLUMN), unit=-1),
            ),
        ),
        Kind(
            "linear",
            "linear",
            LinearKernel,
            by_gpytorch,
            _linear_derivative,
            (Parameter("variance", (COLUMN,), unit=-2),),
            stationary=False,
        ),
        Kind(
            "polynomial",
            "polynomial",
            PolynomialKernel,
            by_gpytorch,
            _polynomial_derivative,
            (Parameter("offset"),),
            settings={"power": lambda value, what: whole(value, what, 1, MAX_POWER)},
            stationary=False,
        ),
        Kind(
            "trend",
            "trend",
            TrendKernel,
            by_gpytorch,
            _trend_derivative,
            (Parameter("centre", (COLUMN,), unit=1, check=number, place=True), Parameter("width", (COLUMN,), unit=1)),
            settings={"power": lambda value, what: whole(value, what, 1, MAX_DEGREE)},
            stationary=False,
            constrained=False,
        ),
        Kind(
            "cosine",
            "cosine",
            CosineKernel,
            _near_origin,
            _radial_derivative(_cosine_slopes, scale="period_length"),
            (Parameter("period_length", unit=1),),
        ),
        Kind("rbf_stretch", "RBF stretch", RBFStretch, _stretch, _no_derivative, (_LENGTHSCALE,)),
        Kind(
            "matern_stretch",
            "Matérn stretch",
            MaternStretch,
            _stretch,
            _no_derivative,
            (_LENGTHSCALE,),
            settings={"nu": lambda value, what: choice(value, what, SMOOTHNESS)},
        ),
        Kind(
            "rational_quadratic_stretch",
            "rational quadratic stretch",
            RQStretch,
            _stretch,
            _no_derivative,
            (_LENGTHSCALE, Parameter("alpha")),
        ),
        Kind("constant", "constant", ConstantKernel, by_gpytorch, _no_slope, (Parameter("constant"),)),
    )
}
_BY_CLASS = {kind.kernel: kind for kind in KINDS.values()}


def kind_of_kernel(kernel: Kernel) -> Kind | None:
    """What is known of the exact class of ``kernel``: a subclass may compute something else under the same name."""
    return _BY_CLASS.get(type(kernel))
