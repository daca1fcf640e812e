"""Whether ``∫ k̂²/ĥ`` is finite, and in words why not.

What is learnt through a radial kernel K can stay within H at every input of ℝᵈ iff ``∫ k̂²/ĥ < ∞`` (MATH.md 4): the
spectrum of H must not fall off too fast against that of K at high frequencies, and K itself must fall off fast enough
with the distance, which only a rational quadratic kernel may fail to do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ..errors import InputError
from .densities import Mixture, RadialKernel
from .kernel_terms import fraction


def require_finite(
    kernel: RadialKernel, below: Mixture, dimension: int, column: str, lengthscale: float, others: Sequence[float]
) -> None:
    """Raise unless ``∫ k̂²/ĥ < ∞`` for H the mixture ``below``.

    ``column`` names where; ``lengthscale`` and ``others`` are those of K and of the parts of H there, in its units.
    """
    parts = [part for _, part in below]
    remedy = "give a rougher tolerance kernel there, or alpha=… (H proportional to the prior's kernel)"
    rough = [part.number for part in parts if part.kind == "matern"]
    if kernel.kind == "matern" and not rough:
        raise InputError(
            f"tolerance: H is {_kinds(parts)} in column {column} and the prior's kernel is Matérn "
            f"{fraction(kernel.number)}: the spectrum of H falls off faster than every power, that of the prior does "
            f"not, so no noise keeps the promise at every input; {remedy}."
        )
    if kernel.kind == "matern" and min(rough) >= 2.0 * kernel.number:
        raise InputError(
            f"tolerance: in column {column} H has smoothness {fraction(min(rough))}, which must be below twice that of "
            f"the prior's kernel, 2·{fraction(kernel.number)} = {fraction(2.0 * kernel.number)}; {remedy}."
        )
    if kernel.kind == "rational_quadratic" and not rough:
        _require_rate(kernel, parts, column, lengthscale, others, remedy)
    if kernel.kind == "rbf" and all(part.kind == "rbf" for part in parts):
        shortest = min(range(len(parts)), key=lambda i: parts[i].lengthscale)
        # exactly, as the closed form does
        if Fraction(others[shortest]) ** 2 >= 2 * Fraction(lengthscale) ** 2:
            raise InputError(
                f"tolerance: the lengthscale {others[shortest]:.6g} of H in column {column} is not below √2 times that "
                f"of the prior's kernel, {lengthscale:.6g}·√2 = {lengthscale * math.sqrt(2.0):.6g}; give a tolerance "
                "kernel with a shorter lengthscale there, or alpha=… (H proportional to the prior's kernel)."
            )
    _require_tails(kernel, parts, dimension, column)


def _require_rate(
    kernel: RadialKernel,
    parts: Sequence[RadialKernel],
    column: str,
    lengthscale: float,
    others: Sequence[float],
    remedy: str,
) -> None:
    slowest = [(part.rate, i) for i, part in enumerate(parts) if part.kind == "rational_quadratic"]
    if not slowest:
        raise InputError(
            f"tolerance: H is {_kinds(parts)} in column {column} and the prior's kernel is rational quadratic: the "
            "spectrum of H falls off like a Gaussian, that of the prior only exponentially, so no noise keeps the "
            f"promise at every input; {remedy}."
        )
    rate, i = min(slowest)
    if rate >= 2.0 * kernel.rate:
        raise InputError(
            f"tolerance: in column {column} H is rational quadratic with √(2·alpha)·lengthscale = "
            f"√(2·{parts[i].number:.4g})·{others[i]:.6g} = {math.sqrt(2.0 * parts[i].number) * others[i]:.6g}, which "
            f"must be below twice that of the prior's kernel, 2·√(2·{kernel.number:.4g})·{lengthscale:.6g} = "
            f"{2.0 * math.sqrt(2.0 * kernel.number) * lengthscale:.6g}; {remedy}."
        )


def _require_tails(kernel: RadialKernel, parts: Sequence[RadialKernel], dimension: int, column: str) -> None:
    """Near ρ = 0 a rational quadratic spectrum is like ρ^{min(0, 2α − d)}, all others are finite and positive."""

    def power(part: RadialKernel) -> float:
        return min(0.0, 2.0 * part.number - dimension) if part.kind == "rational_quadratic" else 0.0

    left = 2.0 * power(kernel) - min(power(part) for part in parts) + dimension
    if left <= 0.0:
        least = (dimension + min(power(part) for part in parts)) / 4.0
        raise InputError(
            f"tolerance: the prior's kernel is rational quadratic with alpha = {kernel.number:.4g} in column {column}, "
            f"so it falls off too slowly with the distance: alpha must be above {least:.4g} for this H in "
            f"{dimension} dimension(s); give a prior with a larger alpha, a rational quadratic H with a smaller "
            "alpha, or alpha=… (H proportional to the prior's kernel)."
        )


def _kinds(parts: Sequence[RadialKernel]) -> str:
    names = {"rbf": "RBF", "rational_quadratic": "rational quadratic", "matern": "Matérn"}
    return " plus ".join(dict.fromkeys(names[part.kind] for part in parts))
