"""Advice: the prior to use instead of one that rivals beat, ready to copy.

A handful of kernels and means, with the periods that the rows show, are fitted to the rows outside the region. The one
that predicts look-alikes best, and that no rival beats, is advised.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..errors import FitWarning, InputError
from ..models import Prior, fit_prior
from ..progress import Progress
from ..text import shown_lines
from .claims import Claims, HiddenRows
from .predictors import periods

#: The means of priors that are tried, and by how much each must raise the log density above the one before.
MEANS, DEARER = ("constant", "linear", "cubic"), 2.0


#: The lengthscale of a periodic kernel whose draws are waves and hardly constants.
ROUGH = 0.5


class Judgement(Protocol):
    """What is said of a prior beside the rivals."""

    @property
    def claims(self) -> Claims: ...

    @property
    def floor(self) -> float: ...

    @property
    def passes(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Advice:
    """A prior to use instead: how to fit it, the floor that it leaves, and whether it ``passes`` the same rehearsal.

    ``least`` is its least standard deviation: only floors below it can be promised.
    """

    kernel: str
    mean: str
    prior: Prior
    floor: float
    passes: bool
    least: float = math.inf

    @property
    def lower(self) -> float | None:
        """A floor to ask for instead, with two digits, where the one that was asked for cannot be promised."""
        return None if self.floor < self.least else float(f"{math.sqrt(0.7) * self.least:.2g}")

    @property
    def promises(self) -> str:
        """What can be promised with it."""
        if self.lower is None:
            return f"It promises ± {self.floor:.3g} at the same level."
        return (
            f"Under it f is known to ± {self.least:.3g} before anything is published, so ± {self.floor:.3g} cannot be "
            f"promised; ± {self.lower:g} can."
        )

    @property
    def call(self) -> str:
        """The call that fits it."""
        return f'prior = sf.fit_prior(X, y, kernel="{self.kernel}", mean="{self.mean}", exclude=region)'

    @property
    def options(self) -> str:
        """The same for the command line."""
        return f'--kernel "{self.kernel}" --mean {self.mean}'

    def as_dict(self) -> dict[str, Any]:
        """In plain Python types."""
        return {
            "kernel": self.kernel,
            "mean": self.mean,
            "call": self.call,
            "options": self.options,
            "floor": self.floor,
            "passes": self.passes,
            "lower_floor": self.lower,
        }

    def __str__(self) -> str:
        head = "Use instead, which passes:" if self.passes else "Nearer to the data, though it does not pass either:"
        start, rest = self.call.split("X, y, ")
        lines = [head, f"  {start}", f"      X, y, {rest[:-1]}", "  )", f"or {self.options}"]
        return shown_lines([*lines, *textwrap.wrap(self.promises, 80)])


def advice(rows: HiddenRows, noise: Any, judged: Callable[[Prior], Judgement], step: Progress) -> Advice | None:
    """The candidate with the highest density at hidden rows among those that pass; else the best of all."""
    found: list[tuple[bool, float, Advice]] = []
    kernels = _kernels(rows.X, rows.y)

    def attempt(kernel: str, mean: str) -> None:
        step.stage(f"trying {kernel}, mean {mean}")
        step.update(len(found) / (len(kernels) + len(MEANS) - 1))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)
                prior = fit_prior(rows.X, rows.y, kernel=kernel, mean=mean, noise=noise)
        except InputError:
            return
        said = judged(prior)
        worth = float(said.claims.densities.sum()) - DEARER * MEANS.index(mean)
        least = math.sqrt(float(prior.variance(rows.X).min()))
        found.append((said.passes, worth, Advice(kernel, mean, prior, said.floor, said.passes, least)))

    # the kernel first, with a mean that suits most data; then the mean
    for kernel in kernels:
        attempt(kernel, MEANS[1])
    if not found:
        return None
    best = max(found, key=lambda one: one[:2])[2].kernel
    for mean in (MEANS[0], MEANS[2]):
        attempt(best, mean)
    return max(found, key=lambda one: one[:2])[2]


def _kernels(X: Array, y: Array) -> list[str]:
    """Kernels worth a try: those with a season where the rows show a period.

    A smooth periodic kernel is nearly constant, with a variance that nothing bounds; so one is tried that is not.
    """
    season = next(iter(periods(X, y, 1)), None)
    if season is None:
        return ["rbf", "matern52", "rq"]
    column = f"column={season.column}" if X.shape[1] > 1 else ""
    period, fading = f"period={_simple(season.length, X[:, season.column])}", f"rbf({column})" if column else "rbf"
    given = [", ".join(filter(None, [period, shape, column])) for shape in ("", f"lengthscale={ROUGH:g}")]
    return [f"{base} + periodic({one}) * {fading}" for base, one in product(("rbf", "matern32"), given)]


def _simple(length: float, x: Array) -> str:
    """A period with no more digits than the rows can tell."""
    close = 0.05 * length**2 / float(np.ptp(x))
    for digits in range(1, 6):
        text = f"{length:.{digits}g}"
        if abs(float(text) - length) <= close:
            return text
    return f"{length:.6g}"
