"""Families of priors: readers whose hyper-parameters lie in ranges, and finitely many processes below all of them.

What readers do not know, ``Cov(f|W) = K − K M⁻¹ K``, grows with the prior K and the noise V (in the order of positive
semidefinite matrices), and is a concave function of both. So a process *below* the priors of a range, K̃ ⪯ K, makes a
promise to all of them: whoever believes K knows no more than whoever believes K̃.

**One factor for all lengthscales.** For RBF, Matérn and rational quadratic kernels in d columns, p = d/2, and
lengthscales that are shortened by a factor √τ ≤ 1, spectral densities show
``k_τ ⪰ τ^p [k + (1 − τ) p s]``, s the stretch of k (stretch.py), because ``e^x ≥ 1 + x`` and ``(1 + x)^q ≥ 1 + qx``.
Both sides are equal at τ = 1. The right side is a curve ``a(τ) k + b(τ) s``, and ``(1 − a)/b``, proportional to
``(τ^{−p} − 1)/(1 − τ)``, falls in τ: every point of the curve lies above the chord between its ends. What readers do
not know is concave and grows, so it is at least the smaller of the two values at the ends: a promise to k and to the
process at the other end of a *cell* [√τ ℓ, ℓ] holds in the whole cell. The next cell begins at its other end, where
that process lies below the true kernel: each cell costs one process, and the longest lengthscales one more. The
variance of the process is ``κ = τ^p (1 + (1 − τ) p)``, less than 1 by ``d(d + 2)/2 (log √τ)²`` only. (The plain bound k_τ ⪰ τ^p k loses
``d log √τ``, and needs 4 to 17 times as many cells.)

A product of such kernels, fixed factors included, lies above the product of the bounds, and so above its terms of first
order (Leibniz' rule); a sum above the sum. P is then the largest p of all terms, which only lowers the bound.

**Variance and noise.** A floor in units is kept by all if it is kept where both are least. A share α of what is not
known is largest where the variance is largest; what must be left, ``(1 − α)(K + V)``, is linear in both, so corners of
the ranges stand for all (promise/families.py).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel, PeriodicKernel, ScaleKernel

from ..data import ONE_OUTPUT, Outputs
from ..errors import InputError
from .kernel_kinds import KINDS
from .kernel_terms import MOST_TERMS
from .prior import Prior
from .stretch import STRETCHES
from .trees import Tree, build_kernel, describe_kernel, fold

#: A family has at most so many cells, and a factor lies between one over this and this.
MOST_CELLS, LARGEST_FACTOR = 96, 1e6

#: Lengthscales are tried at so many places where nothing can be proved between them.
MEMBERS_TRIED = 9

#: Kinds of kernels whose lengthscales may be stretched, with the kind of the stretch.
_RANGED = {kind.name: f"{kind.name}_stretch" for kind in KINDS.values() if kind.kernel in STRETCHES}


@dataclass(frozen=True, eq=False)
class FamilyMember(Prior):
    """A process that stands for readers of a family: one of them, or one below some of them.

    The variance of f for these readers is ``stands_for`` times its own.
    """

    stands_for: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True, eq=False)
class PriorFamily:
    """All priors whose hyper-parameters are those of ``prior`` times factors in these ranges.

    ``lengthscale`` is one factor for all lengthscales, ``variance`` one for the kernel, ``noise`` one for V. ``cells``
    is in how many parts the range of lengthscales is cut where something is proved about all of it.
    """

    prior: Prior
    lengthscale: tuple[float, float] = (1.0, 1.0)
    variance: tuple[float, float] = (1.0, 1.0)
    noise: tuple[float, float] = (1.0, 1.0)
    cells: int = MEMBERS_TRIED

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Prior):
            raise InputError(f"prior is {self.prior!r}; give a sf.Prior for one output.")
        for name in ("lengthscale", "variance", "noise"):
            object.__setattr__(self, name, _as_range(name, getattr(self, name)))
        if self.lengthscale != (1.0, 1.0) and not _has_lengthscales(self.prior.kernel):
            raise InputError("lengthscale is a range, but the kernel has no lengthscale that could be stretched.")

    @property
    def is_proved(self) -> bool:
        """Whether what is shown of the processes below is shown of every member."""
        return self.lengthscale[0] == self.lengthscale[1] or _monomials_of(self.prior.kernel) is not None

    @property
    def fit_report(self) -> Any:
        return self.prior.fit_report

    def member(self, lengthscale: float = 1.0, variance: float = 1.0, noise: float = 1.0) -> Prior:
        """The prior with these factors.

        >>> import gpytorch, sfumato as sf
        >>> prior = sf.Prior(gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()), noise=0.1)
        >>> family = prior.family(lengthscale=(0.5, 2.0), noise=(0.5, 1.0))
        >>> print(family.member(lengthscale=2.0, noise=0.5).noise)
        0.05
        """
        for name, value in {"lengthscale": lengthscale, "variance": variance, "noise": noise}.items():
            low, high = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"{name} is {value!r}, not in this family; give a factor from {low:g} to {high:g}.")
        kernel = _scaled(_stretched(self.prior.kernel, lengthscale), variance)
        return Prior(kernel, self.prior.mean, _times(self.prior.noise, noise))

    def cells_for(self, columns: int, shrinks: float) -> int:
        """How many cells it takes that no process below has a variance less than ``shrinks`` times that of a member."""
        low, high = self.lengthscale
        if low == high or not self.is_proved:
            return MEMBERS_TRIED
        order = _order(_monomials_of(self.prior.kernel, columns) or [], columns)
        cells = 1
        while _kept(order, (low / high) ** (2.0 / cells)) < shrinks:
            cells = max(cells + 1, math.ceil(1.1 * cells))
        return cells

    def members(self, columns: int, corners: Sequence[tuple[float, float]]) -> tuple[FamilyMember, ...]:
        """Processes for inputs of so many ``columns`` that stand for all members with these variances and noises.

        ``corners`` are factors for the variance and the noise.
        """
        found = []
        for variance, noise in corners:
            errors = _times(self.prior.noise, noise)
            for kernel, stands_for in self._kernels(columns):
                found.append(FamilyMember(_scaled(kernel, variance), self.prior.mean, errors, stands_for=stands_for))
        return tuple(found)

    def _kernels(self, columns: int) -> list[tuple[Kernel, float]]:
        """The longest lengthscales first."""
        low, high = self.lengthscale
        if low == high:
            return [(_stretched(self.prior.kernel, high), 1.0)]
        monomials = _monomials_of(self.prior.kernel, columns)
        if monomials is None:
            return [(_stretched(self.prior.kernel, f), 1.0) for f in np.geomspace(high, low, self.cells)]
        ends = np.geomspace(high, low, self.cells + 1)
        shrunk, order = float((low / high) ** (2.0 / self.cells)), _order(monomials, columns)
        below = [
            (build_kernel(_below(monomials, float(end), shrunk, order), columns), 1.0 / _kept(order, shrunk))
            for end in ends[:-1]
        ]
        return [(_stretched(self.prior.kernel, high), 1.0), *below]

    def __str__(self) -> str:
        return self.in_words(())

    def in_words(self, names: Sequence[str], outputs: Outputs = ONE_OUTPUT) -> str:
        """This family for people, over columns with these ``names``."""
        ranges = {"all lengthscales": self.lengthscale, "the variance": self.variance, "the noise": self.noise}
        said = [f"{what} × {low:g} to {high:g}" for what, (low, high) in ranges.items() if (low, high) != (1.0, 1.0)]
        return f"{self.prior.in_words(names, outputs)}, and every prior with {', '.join(said) or 'the same values'}"


def _as_range(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in given)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not 1.0 / LARGEST_FACTOR <= low <= high <= LARGEST_FACTOR:
        raise InputError(
            f"{name} is {given!r}; give the least and the largest factor around the prior's own value, such as "
            "(0.5, 2.0)."
        )
    return low, high


def _times(noise: Any, factor: float) -> Any:
    return noise if factor == 1.0 else noise * factor


def _scaled(kernel: Kernel, factor: float) -> Kernel:
    if factor == 1.0:
        return kernel
    scaled = ScaleKernel(copy.deepcopy(kernel)).double()
    scaled.outputscale = torch.tensor(factor, dtype=torch.float64)
    return scaled


def _can_be_stretched(part: Any) -> bool:
    # the lengthscale of a periodic kernel is no length
    return bool(getattr(part, "has_lengthscale", False)) and not isinstance(part, PeriodicKernel)


def _has_lengthscales(kernel: Kernel) -> bool:
    return any(_can_be_stretched(part) for part in kernel.modules())


def _stretched(kernel: Kernel, factor: float) -> Kernel:
    """``kernel`` with all lengthscales times ``factor``; periods are left as they are."""
    if factor == 1.0:
        return kernel
    found = copy.deepcopy(kernel)
    for part in found.modules():
        if _can_be_stretched(part):
            part.lengthscale = part.lengthscale.detach() * factor
    return found


# ---------------------------------------------------------------- a kernel as a sum of products

#: A weight, and the trees of the factors, each with the columns that it looks at.
_Monomial = tuple[float, list[Tree]]


def _monomials_of(kernel: Kernel, columns: int = 1) -> list[_Monomial] | None:
    """None where the kernel is not known to be such a sum."""
    try:
        return fold(describe_kernel(kernel), range(columns), _leaf, _weighed, _joined)
    except InputError:
        return None


def _leaf(tree: Tree, columns: list[int]) -> list[_Monomial]:
    return [(1.0, [{**tree, "active_dims": columns}])]


def _weighed(weight: float, monomials: list[_Monomial]) -> list[_Monomial]:
    return [(weight * own, factors) for own, factors in monomials]


def _joined(kind: str, parts: list[list[_Monomial]]) -> list[_Monomial]:
    if kind == "sum":
        return [monomial for part in parts for monomial in part]
    product: list[_Monomial] = [(1.0, [])]
    for part in parts:
        if len(product) * len(part) > MOST_TERMS:
            raise InputError("kernel is a product of sums with too many terms when multiplied out.")
        product = [(a * b, [*left, *right]) for a, left in product for b, right in part]
    return product


def _power(factors: Sequence[Tree]) -> float:
    """p of a product: half the number of columns of each factor whose lengthscales are stretched."""
    return sum(len(factor["active_dims"]) / 2.0 for factor in factors if factor["kind"] in _RANGED)


def _order(monomials: Sequence[_Monomial], columns: int) -> float:
    """P, the largest p."""
    return max((_power(factors) for _, factors in monomials), default=columns / 2.0)


def _kept(order: float, shrunk: float) -> float:
    """κ, the variance of the process below a kernel of variance 1."""
    return float(shrunk**order * (1.0 + (1.0 - shrunk) * order))


def _below(monomials: Sequence[_Monomial], factor: float, shrunk: float, order: float) -> Tree:
    """The process below all kernels with lengthscales from √shrunk · factor, at the far end of the cell."""
    parts = []
    for weight, factors in monomials:
        long = [_lengthened(one, factor) for one in factors]
        power = _power(factors)
        kept = shrunk**order * (1.0 + (1.0 - shrunk) * (order - power)) if power else 1.0
        parts.append(_product(weight * kept, long))
        for place, one in enumerate(long):
            if one["kind"] in _RANGED:
                stretch = [*long[:place], {**one, "kind": _RANGED[one["kind"]]}, *long[place + 1 :]]
                own = len(one["active_dims"]) / 2.0
                parts.append(_product(weight * shrunk**order * (1.0 - shrunk) * own, stretch))
    return {"kind": "sum", "kernels": parts}


def _lengthened(tree: Tree, factor: float) -> Tree:
    if tree["kind"] not in _RANGED:
        return tree
    return {**tree, "lengthscale": (np.asarray(tree["lengthscale"]) * factor).tolist()}


def _product(weight: float, factors: list[Tree]) -> Tree:
    return {"kind": "scale", "variance": weight, "kernel": {"kind": "product", "kernels": factors}}
