"""Processes below all priors of a range of lengthscales: finitely many stand for all of them.

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
variance of the process is ``κ = τ^p (1 + (1 − τ) p)``, less than 1 by ``d(d + 2)/2 (log √τ)²`` only. (The plain bound
k_τ ⪰ τ^p k loses ``d log √τ``, and needs 4 to 17 times as many cells.)

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
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel, PeriodicKernel

from ..errors import InputError
from .kernel_kinds import KINDS
from .kernel_terms import MOST_TERMS
from .stretch import STRETCHES
from .trees import Tree, build_kernel, describe_kernel, fold

#: Lengthscales are tried at so many places where nothing can be proved between them.
MEMBERS_TRIED = 9

#: Kinds of kernels whose lengthscales may be stretched, with the kind of the stretch.
_RANGED = {kind.name: f"{kind.name}_stretch" for kind in KINDS.values() if kind.kernel in STRETCHES}

#: Kinds whose lengthscales are stretched too, but of which nothing is proved: stretches themselves.
_UNPROVED = {
    kind.name
    for kind in KINDS.values()
    if kind.kernel.has_lengthscale and kind.kernel not in STRETCHES and not issubclass(kind.kernel, PeriodicKernel)
}


def can_be_covered(kernel: Kernel) -> bool:
    """Whether there are processes below all kernels with lengthscales in a range."""
    return _monomials_of(kernel) is not None


def cells_for(kernel: Kernel, lengthscale: tuple[float, float], columns: int, shrinks: float) -> int:
    """How many cells it takes that no process below has a variance less than ``shrinks`` times that of a member."""
    (low, high), monomials = lengthscale, _monomials_of(kernel, columns)
    if low == high or monomials is None:
        return MEMBERS_TRIED
    order, cells = _order(monomials, columns), 1
    while _kept(order, (low / high) ** (2.0 / cells)) < shrinks:
        cells = max(cells + 1, math.ceil(1.1 * cells))
    return cells


def kernels_below(
    kernel: Kernel, lengthscale: tuple[float, float], columns: int, cells: int
) -> list[tuple[Kernel, float]]:
    """Kernels that stand for all with lengthscales in the range, the longest first.

    With each comes the variance of those that it stands for, as a multiple of its own.
    """
    low, high = lengthscale
    if low == high:
        return [(stretched(kernel, high), 1.0)]
    monomials = _monomials_of(kernel, columns)
    if monomials is None:
        return [(stretched(kernel, factor), 1.0) for factor in np.geomspace(high, low, cells).tolist()]
    shrunk, order = float((low / high) ** (2.0 / cells)), _order(monomials, columns)
    ends = np.geomspace(high, low, cells + 1)[:-1].tolist()
    below = [build_kernel(_below(monomials, end, shrunk, order), columns) for end in ends]
    return [(stretched(kernel, high), 1.0), *((one, 1.0 / _kept(order, shrunk)) for one in below)]


def parts_below(kernel: Kernel, columns: int) -> int:
    """Of how many parts a kernel that stands for others is made."""
    monomials = _monomials_of(kernel, columns)
    if monomials is None:
        return sum(isinstance(part, Kernel) for part in kernel.modules())
    return sum((1 + sum(one["kind"] in _RANGED for one in own)) * (2 + len(own)) for _, own in monomials)


def _can_be_stretched(part: Any) -> bool:
    # the lengthscale of a periodic kernel is no length
    return bool(getattr(part, "has_lengthscale", False)) and not isinstance(part, PeriodicKernel)


def has_lengthscales(kernel: Kernel) -> bool:
    """Whether there is a lengthscale that could be stretched."""
    return any(_can_be_stretched(part) for part in kernel.modules())


def stretched(kernel: Kernel, factor: float) -> Kernel:
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
    if tree["kind"] in _UNPROVED:
        raise InputError(f"kernel has a {KINDS[tree['kind']].title} part, below which no process is known.")
    return [(1.0, [{**tree, "active_dims": columns}])]


def _weighed(weight: float, monomials: list[_Monomial]) -> list[_Monomial]:
    return [(weight * own, factors) for own, factors in monomials]


def _joined(kind: str, parts: list[list[_Monomial]]) -> list[_Monomial]:
    if kind == "sum":
        if sum(map(len, parts)) > MOST_TERMS:
            raise InputError("kernel has too many terms when multiplied out.")
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
