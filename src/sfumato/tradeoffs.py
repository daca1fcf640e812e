"""Privacy against accuracy: what readers lose elsewhere at each level of protection, and by which way."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import GuaranteeWarning, InputError
from .inputs import Array, Inputs, as_outputs
from .mechanism import Mechanism, protect
from .plan import FEW
from .prior import Prior
from .progress import Progress
from .progress import progress as show_progress
from .regions import Region
from .search import AskedCover
from .tolerance import FractionTolerance
from .tradeoff_arguments import ALPHAS, WAYS, Level, asked_levels, asked_ways, called, checked_problem
from .tradeoff_cloaking import DELTA, cloaked
from .tradeoff_readers import (
    Places,
    everything,
    measured_error,
    places_to_look,
    plain_design,
    variances,
    without_rows,
)
from .tradeoff_result import Line, Tradeoff

if TYPE_CHECKING:
    from .design import Design

#: How ``protect`` is asked for each way that makes a promise.
PROMISES: dict[str, dict[str, Any]] = {
    "joint": {},
    "pointwise": {"guarantee": "pointwise"},
    "diagonal": {"structure": "diagonal"},
}


def tradeoff(
    prior: Prior,
    X: Any,
    region: Region,
    alphas: Sequence[float] = ALPHAS,
    *,
    floors: Sequence[float] | None = None,
    y: Any = None,
    ways: Sequence[str] = WAYS,
    X_test: Any = None,
    cover: AskedCover = "auto",
    progress: bool = True,
) -> Tradeoff:
    """What readers lose outside ``region`` at each of ``alphas`` (or ``floors``, in the units of y), by several ways.

    Errors are expected ones: the root of the mean posterior variance under the prior, at ``X_test`` or at a spread of
    inputs that follows the data. No values are needed. With ``y`` held-out errors are measured too: those are for the
    owner only. Each level is one call of ``protect`` for each of the first three ways.

    =========== =======================================================================================
    way         what is published
    =========== =======================================================================================
    "joint"     correlated noise, averages protected too: ``protect(…)``
    "pointwise" correlated noise, each value by itself: ``guarantee="pointwise"``
    "diagonal"  every row blurred by itself: ``structure="diagonal"``
    "dropout"   the rows outside as they are, those inside not at all. It promises nothing: ``learnt`` and
                ``least_std`` say what readers reach inside, at no level but its own
    "cloaking"  predictions with differentially private noise, of the size with which readers stay above the
                same floor at the inputs that are looked at; ``epsilon`` says which ε that is
    =========== =======================================================================================

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> kernel = gpytorch.kernels.RBFKernel()
    >>> kernel.lengthscale = 0.1
    >>> prior = sf.Prior(kernel, noise=0.05)
    >>> found = sf.tradeoff(prior, np.linspace(0, 3, 31), sf.Box(1, 2), [0.1, 0.5], ways=["joint"])
    >>> print(found.sentence(0.5))
    At ±0.7071 inside 1 ≤ x ≤ 2 (α = 0.5), readers lose 4 % of accuracy elsewhere: their error there is 0.29 instead
    of 0.21.
    """
    inputs, bound = checked_problem(prior, X, region)
    levels = asked_levels(alphas, floors)
    asked = asked_ways(ways)
    values = None if y is None else as_outputs(y, inputs)
    name = getattr(y, "name", None)
    study = _Study(prior, inputs, bound, places_to_look(inputs, bound, X_test), values, cover)
    with warnings.catch_warnings(record=True) as caught, show_progress(progress) as step:
        warnings.simplefilter("always")
        rows = study.lines(levels, asked, step)
        whole = study.line("everything", study.bare, levels[0])
    for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, GuaranteeWarning)):
        warnings.warn(text, GuaranteeWarning, stacklevel=2)
    return Tradeoff(
        rows=tuple(rows),
        everything=whole,
        prior_rmse=study.prior_rmse,
        region=bound.in_words(inputs.names),
        by_floor=floors is not None,
        sensitivity=study.sensitivity,
        skipped=tuple(dict.fromkeys(study.skipped)),
        output=name if isinstance(name, str) else "f",
    )


class _Study:
    """The comparison while it is made: readers of each design, at the same places."""

    def __init__(
        self, prior: Prior, inputs: Inputs, region: Region, places: Places, y: Array | None, cover: AskedCover
    ) -> None:
        self.prior, self.inputs, self.region, self.places, self.y, self.cover = prior, inputs, region, places, y, cover
        self.private = region.contains(inputs.values)
        self.prior_variance = prior.variance(places.all)
        self.bare: Design = plain_design(prior, inputs, region, FractionTolerance(0.5))
        self.skipped: list[tuple[str, str]] = []
        # the most that one value can change: from one end of the data to the other, or four prior deviations
        wide = 4.0 * float(np.sqrt(np.max(self.prior_variance)))
        self.sensitivity = (wide if y is None else float(np.ptp(y))) or wide
        self._explained: float | None = None

    @property
    def prior_rmse(self) -> float:
        return _root_mean(self.places.split(self.prior_variance)[0])

    def lines(self, levels: Sequence[Level], ways: Sequence[str], step: Progress) -> list[Line]:
        promised = [way for way in ways if way in PROMISES]
        total, done, spent = len(promised) * len(levels), 0, 0.0
        made: list[tuple[str, Level, Mechanism, float]] = []
        for way in promised:
            for level in levels:
                step.stage(f"{way}, {called(level)}")
                step.update(done / max(total, 1))
                mechanism, seconds = self._protect(way, level)
                done, spent = done + 1, spent + seconds
                if mechanism is None:
                    break
                if done == 1:
                    step.announce(f"{total} designs, about {spent:.0f} s each", total * spent)
                made.append((way, level, mechanism, seconds))
        if not made and promised == list(ways):
            raise InputError(self.skipped[0][1])
        if made:
            # readers of large data are computed as those of the design are
            self.bare = everything(made[0][2].design)
        step.stage("comparing what readers know")
        rows = [self._promised_line(*one) for one in made]
        for way in ways:
            if way == "dropout":
                rows.append(self._dropout_line(levels[0]))
            elif way == "cloaking":
                rows.extend(self._cloaking_lines(levels))
        return sorted(rows, key=lambda line: list(ways).index(line.way))

    def _protect(self, way: str, level: Level) -> tuple[Mechanism | None, float]:
        start = time.perf_counter()
        if way == "diagonal" and len(self.inputs) > FEW:
            self.skipped.append((way, f"it cannot be compressed, so it is compared up to {FEW:,} rows only"))
            return None, 0.0
        try:
            made = protect(
                self.prior,
                self.inputs,
                self.region,
                tolerance=level,
                cover=self.cover,
                progress=False,
                **PROMISES[way],
            )
        except InputError as error:
            if way == "joint":
                raise
            self.skipped.append((way, str(error)))
            return None, 0.0
        return made, time.perf_counter() - start

    def line(self, way: str, design: Design, level: Level, **more: Any) -> Line:
        """What readers of ``design`` know; the level is left out where nothing is promised."""
        outside, inside = self.places.split(variances(design, self.places.all))
        return self._line_of(way, outside, inside, level, measured=self._measured(design), **more)

    def _line_of(self, way: str, outside: Array, inside: Array, level: Level, **more: Any) -> Line:
        bare = way in ("everything", "dropout")
        before = self.places.split(self.prior_variance)
        explained = 1.0 - float(np.mean(outside)) / float(np.mean(before[0])) if len(outside) else float("nan")
        if self._explained is None:
            whole = self.places.split(variances(self.bare, self.places.all))[0]
            self._explained = 1.0 - float(np.mean(whole)) / float(np.mean(before[0])) if len(outside) else float("nan")
        loss = max(0.0, 1.0 - explained / self._explained) if self._explained > 0 else float("nan")
        floors = level.floor(self.prior, self.places.inside)
        given: dict[str, Any] = {"holds": None, "noise": 0.0, "spill": float("nan")}
        return Line(
            way=way,
            alpha=level.alpha if isinstance(level, FractionTolerance) and not bare else float("nan"),
            floor=float("nan") if bare else float(np.min(floors)),
            learnt=float(np.max(1.0 - inside / before[1])),
            least_std=float(np.sqrt(np.min(inside))),
            rmse_inside=_root_mean(inside),
            rmse_outside=_root_mean(outside),
            loss=0.0 if way == "everything" and np.isfinite(loss) else loss,
            **(given | more),
        )

    def _promised_line(self, way: str, level: Level, made: Mechanism, seconds: float) -> Line:
        proof = made.certificate
        noise = float(np.sqrt(made.noise.trace / len(self.inputs)))
        return self.line(way, made.design, level, holds=proof.holds, noise=noise, spill=proof.spill, seconds=seconds)

    def _dropout_line(self, level: Level) -> Line:
        return self.line("dropout", without_rows(self.bare, ~self.private), level)

    def _cloaking_lines(self, levels: Sequence[Level]) -> list[Line]:
        if not self.private.any():
            self.skipped.append(("cloaking", "no row lies in the region, so there is nothing that it would protect"))
            return []
        if len(self.inputs) > FEW:
            self.skipped.append(("cloaking", f"it is compared up to {FEW:,} rows only"))
            return []
        start = time.perf_counter()
        points, count = self.places.all, len(self.places.outside)
        readers = cloaked(self.prior, self.inputs, self.private, points, self.sensitivity)
        inside = np.arange(len(points)) >= count
        lines, missed = [], []
        for level in levels:
            size = readers.least_noise(level.floor(self.prior, self.places.inside), inside)
            if size is None:
                missed.append(level)
                continue
            left = self.places.split(readers.variance(size))
            noise = size * readers.shape
            more: dict[str, Any] = {
                "noise": float(np.sqrt(np.mean(noise))),
                "spill": float(np.sum(noise[:count]) / np.sum(noise)) if size else 0.0,
                "epsilon": readers.epsilon(size),
                "seconds": time.perf_counter() - start,
            }
            lines.append(self._line_of("cloaking", *left, level, **more))
        if missed:
            # its noise covers what the private rows change, and nothing of what the others tell about the region
            why = f"no ε keeps {called(*missed)} (δ = {DELTA:g}): what it leaves of the predictions tells more"
            self.skipped.append(("cloaking", why))
        return lines

    def _measured(self, design: Design) -> float:
        if self.y is None:
            return float("nan")
        if len(design.inputs) == len(self.inputs):
            return measured_error(design, self.y, np.flatnonzero(~self.private))
        return measured_error(design, self.y[~self.private], np.arange(len(design.inputs)))


def _root_mean(variance: Array) -> float:
    return float(np.sqrt(np.mean(variance))) if len(variance) else float("nan")
