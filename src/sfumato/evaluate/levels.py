"""One promise at any level, quickly: what readers know inside, and what they lose outside, before anything is made.

Designs at different levels share what does not depend on the level (design/levels.py). What is seen here is looked at,
not proved, and nothing of it is published: ``Levels.protect`` makes what is.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

import numpy as np

from ..arrays import Array
from ..data import Inputs, as_inputs
from ..design import Mechanism, check_choice, protect
from ..errors import FindingWarning, InputError
from ..models import Prior
from ..progress import AskedProgress
from ..progress import progress as show_progress
from ..promise import Design, Objective, Protects
from ..regions import Region
from .comparison import Comparison, Level, Line, asked_levels, called, checked_problem
from .suggestions import WAYS
from .tradeoff_readers import places_to_serve
from .tradeoffs import ALPHAS, Tradeoff, compared


@dataclass(frozen=True, eq=False)
class Effect:
    """What one promise at one level means for readers. Standard deviations and errors are in the units of y.

    ==================== ===================================================================================
    ``alpha``, ``floor`` the level: α (NaN where a floor was asked for), and the least floor in the region (of
                         records where only these are promised)
    ``holds``            whether the promise holds wherever it was looked at
    ``evidence``         "proved", or "searched" where only thousands of inputs were looked at; "" where it does not
                         hold
    ``least_std``        the least standard deviation of f that a reader reaches inside; ``record_std`` of a record
    ``rmse_inside``      a reader's expected error inside, ``rmse_outside`` outside
    ``unprotected_rmse`` the expected error outside without protection, ``prior_rmse`` without any data
    ``loss``             of the variance that readers could explain outside from all data, the share that they lose
    ``noise``            root mean square change of a row (noise, and what stands in for suppressed combinations), and
                         ``spill`` the share of it that falls outside the region
    ==================== ===================================================================================
    """

    alpha: float
    floor: float
    holds: bool
    evidence: str
    least_std: float
    record_std: float
    rmse_inside: float
    rmse_outside: float
    unprotected_rmse: float
    prior_rmse: float
    loss: float
    noise: float
    spill: float
    _inputs: Inputs = field(repr=False)
    _variance_at: Callable[[Array], Array] = field(repr=False)

    def std_at(self, X_new: Any) -> Array:
        """The standard deviation of f that a reader keeps at ``X_new``."""
        return _std(self._inputs, X_new, self._variance_at)


class Levels:
    """One promise about ``region`` at any level, which can be looked at in a fraction of the time of ``sf.protect``.

    ``protects``, ``insiders`` and ``objective`` are those of ``sf.protect``; ``serve`` are inputs outside whose
    accuracy counts, or a region of them (left out: a spread that follows the data). What all levels share is worked
    out once, at first use. Promises to insiders share nothing, and take as long as ``sf.protect`` each.

    Guarantee: where the evidence of an effect is "proved", the noise is that of ``sf.protect`` at this level. Where it
    is "searched", the promise holds at thousands of inputs of the region, and ``protect`` has the last word.

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> kernel = gpytorch.kernels.RBFKernel()
    >>> kernel.lengthscale = 0.1
    >>> levels = sf.Levels(sf.Prior(kernel, noise=0.05), np.linspace(0, 3, 31), sf.Box(1, 2))
    >>> effect = levels.at(alpha=0.5)
    >>> effect.holds, round(effect.floor, 4), round(effect.loss, 2)
    (True, 0.7071, 0.04)
    >>> levels.protect(alpha=0.5).certificate.holds
    True
    """

    def __init__(
        self,
        prior: Prior,
        X: Any,
        region: Region,
        *,
        protects: Protects = "both",
        insiders: Any = None,
        objective: Objective = "noise",
        serve: Any = None,
    ) -> None:
        check_choice("protects", protects, get_args(Protects))
        check_choice("objective", objective, get_args(Objective))
        inputs, bound = checked_problem(prior, X, region)
        self._asked: dict[str, Any] = {"protects": protects, "insiders": insiders, "objective": objective}
        if objective == "predictions":
            self._asked["serve"] = serve
        self._given = prior, X, region
        places = places_to_serve(inputs, bound, serve)
        self._comparison = Comparison(prior, inputs, bound, places, insiders=insiders, serve=serve)
        # where no record has anything of its own, f and records are one
        self._way = WAYS[protects] if not self._comparison.is_pointless(WAYS[protects]) else "joint"

    def at(self, alpha: float | None = None, *, floor: float | None = None, progress: AskedProgress = False) -> Effect:
        """The effect of the promise at this level: give ``alpha``, or ``floor`` in the units of y."""
        level = _level(alpha, floor)
        with warnings.catch_warnings(), show_progress(progress) as step:
            # findings of a design that is not published
            warnings.simplefilter("ignore", FindingWarning)
            step.stage(f"looking at {called(level)}")
            design, line = self._comparison.looked_at(self._way, level, step, objective=self._asked["objective"])
            return self._effect(design, line)

    def curve(
        self,
        alphas: Sequence[float] | None = None,
        *,
        floors: Sequence[float] | None = None,
        output: str | None = None,
        progress: AskedProgress = False,
    ) -> Tradeoff:
        """What each of some levels costs: the trade-off of this one promise; ``output`` names what y is."""
        if alphas is not None and floors is not None:
            raise InputError("alphas and floors are both given; give one of them.")
        levels = asked_levels(ALPHAS if alphas is None else alphas, floors)
        comparison = self._comparison
        comparison.left_out.clear()
        with warnings.catch_warnings(), show_progress(progress) as step:
            warnings.simplefilter("ignore", FindingWarning)
            rows = comparison.lines(levels, [self._way], step, self._asked["objective"])
            return compared(comparison, rows, floors is not None, (), output)

    def protect(self, alpha: float | None = None, **more: Any) -> Mechanism:
        """The mechanism at a level: ``sf.protect`` with these prior, inputs, region and promise, and ``more``."""
        prior, X, region = self._given
        return protect(prior, X, region, alpha, **{**self._asked, **more})

    def effect_of(self, mechanism: Mechanism) -> Effect:
        """The same numbers for a mechanism of these inputs: what was made instead of what was looked at."""
        design, certificate, comparison = mechanism.design, mechanism.certificate, self._comparison
        if len(design.inputs) != len(comparison.inputs):
            raise InputError(
                f"mechanism is for {len(design.inputs)} rows, and these levels for {len(comparison.inputs)}; give one "
                "that was made for the same inputs."
            )
        level = Level(design.tolerance, "", getattr(design.tolerance, "alpha", math.nan))
        evidence = certificate.evidence if certificate.holds else ""
        line = comparison.line_of(design, self._way, level, certificate.holds, evidence)
        return self._effect(design, line)

    @property
    def most_floor(self) -> float:
        """What every floor must be below: the least standard deviation inside without any data.

        It is that of f at the inputs that are looked at, or of a record where only records are promised.
        """
        found = self._comparison
        if self._asked["protects"] != "records" or not found.private.any():
            return float(np.sqrt(np.min(found.prior_inside)))
        own = found.prior.noise_variance(len(found.inputs))[found.private]
        return float(np.sqrt(np.min(found.prior.variance(found.inputs.values[found.private]) + own)))

    def unprotected_std_at(self, X_new: Any) -> Array:
        """The standard deviation of f that readers of all data without noise keep at ``X_new``."""
        return _std(self._comparison.inputs, X_new, self._comparison.unprotected_variance_at)

    def floor_at(self, X_new: Any, *, alpha: float | None = None, floor: float | None = None) -> Array:
        """The floor of f at ``X_new``: NaN outside the region, and everywhere where f is not promised."""
        level, comparison = _level(alpha, floor), self._comparison
        points = as_inputs(X_new, "X_new", like=comparison.inputs).values
        inside = comparison.region.contains(points) & (self._asked["protects"] != "records")
        found = np.full(len(points), np.nan)
        if np.any(inside):
            found[inside] = level.floor(comparison.prior, points[inside])
        return found

    def _effect(self, design: Design, line: Line) -> Effect:
        return Effect(
            line.alpha,
            line.floor,
            line.holds is True,
            line.evidence,
            line.least_std,
            line.record_std,
            line.rmse_inside,
            line.rmse_outside,
            self._comparison.unprotected.rmse_outside,
            self._comparison.prior_rmse,
            line.loss,
            line.noise,
            line.spill,
            self._comparison.inputs,
            partial(self._comparison.variance_at, design),
        )


def _level(alpha: float | None, floor: float | None) -> Level:
    if (alpha is None) == (floor is None):
        raise InputError(f"alpha is {alpha!r} and floor is {floor!r}; give one of them.")
    (level,) = asked_levels(None if alpha is None else [alpha], None if floor is None else [floor])
    return level


def _std(inputs: Inputs, X_new: Any, variance_at: Callable[[Array], Array]) -> Array:
    return np.asarray(np.sqrt(variance_at(as_inputs(X_new, "X_new", like=inputs).values)))
