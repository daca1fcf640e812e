"""What readers know under several promises at several levels: the lines of a trade-off, and what a suggestion tries.

Joint promises under one prior share their factorisations (design/levels.py), and no line costs a proof. Nothing here
is published: what is chosen is made by ``protect``, which proves it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array
from ..data import Inputs, StoredInputs, as_inputs
from ..design import FEW_ROWS, AskedCover, SharedWork, Told, asked_problem, check_prior, protect
from ..errors import InputError
from ..models import JointPrior, Prior
from ..progress import Progress
from ..promise import Design, FloorTolerance, FractionTolerance, Objective, Tolerance
from ..proof import changes_of, record_floors
from ..regions import Region
from .tradeoff_readers import (
    DELTA,
    Places,
    cloaked,
    everything,
    measured_error,
    plain_design,
    record_variances,
    variance_of,
    variances,
    without_rows,
)

#: So many readers stay ready: those of a design, of the one before, and of all data.
READERS_KEPT = 3

#: How ``protect`` is asked for each way that makes a promise.
PROMISES: dict[str, dict[str, Any]] = {
    "joint": {},
    "predictions": {"objective": "predictions"},
    "function": {"protects": "function"},
    "records": {"protects": "records"},
    "pointwise": {"guarantee": "pointwise"},
    "diagonal": {"structure": "diagonal"},
}


@dataclass(frozen=True)
class Line:
    """One way at one level. Numbers that do not apply are NaN.

    ================ =======================================================================================
    ``way``          how the data are published; ``alpha`` or ``floor`` is the level that was asked for
    ``floor``        the least standard deviation that readers must keep in the region, in the owner's units: of f, or
                     of records where only these are promised
    ``holds``        whether the certificate holds; None where nothing is promised
    ``evidence``     what it rests on, "proved" or "searched"; "" where it does not hold, or nothing is promised
    ``learnt``       the largest share of the prior variance that a reader learns at any input inside
    ``least_std``    the least standard deviation of f that a reader reaches inside, ``record_std`` that of a record
    ``rmse_inside``  a reader's expected error inside, ``rmse_outside`` outside
    ``loss``         what readers lose outside: of the variance that they could explain from all data, the share
    ``noise``        root mean square change of a row: noise, and what stands in for suppressed combinations of rows (of
                     cloaking: of a prediction)
    ``spill``        the share of it that falls outside the region
    ``measured``     with y: the held-out error outside (for the owner only)
    ``epsilon``      of cloaking: the ε of this much noise, for a change of one value by ``sensitivity``, δ = 0.01
    ================ =======================================================================================
    """

    way: str
    alpha: float
    floor: float
    holds: bool | None
    learnt: float
    least_std: float
    rmse_inside: float
    rmse_outside: float
    loss: float
    noise: float
    spill: float
    measured: float = math.nan
    epsilon: float = math.nan
    seconds: float = 0.0
    evidence: str = ""
    record_std: float = math.nan


@dataclass(frozen=True, eq=False)
class Level:
    """A level that was asked for, as α or as a floor; ``words`` is the number, ``alpha`` of a floor is NaN."""

    tolerance: Tolerance
    words: str
    alpha: float = math.nan

    def floor(self, prior: Prior, points: Array) -> Array:
        """The least standard deviation that readers must keep at ``points``."""
        return self.tolerance.floor(prior, points)


def checked_problem(prior: Any, X: Any, region: Any) -> tuple[Inputs, Region]:
    """The inputs, and the region bound to them."""
    if isinstance(prior, JointPrior):
        raise InputError(
            f"prior is a JointPrior of {', '.join(prior.outputs)}, whose errors have units of their own, so that there "
            "is no one error to compare; give the sf.Prior of one output, or call sf.protect at each level and read "
            "the certificates."
        )
    if not isinstance(prior, Prior):
        raise InputError(f"prior is {prior!r}; give a sf.Prior, for example from sf.fit_prior(X, y).")
    if isinstance(X, StoredInputs):
        raise InputError("X is read part after part; give a sample of its rows in memory to compare levels on.")
    if not isinstance(region, Region):
        raise InputError(
            f"region is {region!r}; give a region such as sf.Box(1, 2), or sf.parse_region('1 <= t <= 2', columns)."
        )
    inputs = as_inputs(X, encoding=prior.encoding)
    check_prior(prior, inputs)
    return inputs, region.bind(inputs)


def asked_levels(alphas: Any, floors: Any) -> list[Level]:
    """Each level that was asked for, checked."""
    word, given = ("alphas", alphas) if floors is None else ("floors", floors)
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = [given]
    listed = list(given) if hasattr(given, "__iter__") and not isinstance(given, str) else []
    if not listed:
        raise InputError(f"{word} is {given!r}; give one or more numbers, such as {word}=[0.1, 0.3].")
    if any(callable(one) for one in listed):
        raise InputError(f"{word} has a function in it; give numbers{', in the units of y' if floors else ''}.")
    if floors is None:
        return [Level(FractionTolerance(alpha), f"{alpha:g}", alpha) for alpha in listed]
    return [Level(FloorTolerance(floor), f"{floor:g}") for floor in listed]


def called(*levels: Level) -> str:
    """Levels in words."""
    return f"{'floor' if math.isnan(levels[0].alpha) else 'α'} = {', '.join(level.words for level in levels)}"


class Comparison:
    """The comparison while it is made: readers of each design, at the same places.

    ``left_out`` says of which way, and at which level (None: at all), there is no line, and why. Promises to
    ``insiders`` share nothing: each is made by ``protect``. ``serve`` are the inputs whose predictions are to be the
    best, where that is the objective (None: the rows outside).
    """

    def __init__(
        self,
        prior: Prior,
        inputs: Inputs,
        region: Region,
        places: Places,
        y: Array | None = None,
        cover: AskedCover = "auto",
        insiders: Any = None,
        serve: Any = None,
    ) -> None:
        self.prior, self.inputs, self.region, self.places, self.y, self.cover = prior, inputs, region, places, y, cover
        self.insiders, self.serve = insiders, serve
        self.private = region.contains(inputs.values)
        prior_variance = prior.variance(places.all)
        outside, self.prior_inside = places.split(prior_variance)
        self.prior_rmse = _root_mean(outside)
        self.left_out: list[tuple[str, Level | None, str]] = []
        # the most that one value can change: from one end of the data to the other, or four prior deviations
        wide = 4.0 * float(np.sqrt(np.max(prior_variance)))
        self.sensitivity = (wide if y is None else float(np.ptp(y))) or wide
        self._first: Design | None = None
        self._readers: dict[int, tuple[Design, Callable[[Array], Array]]] = {}

    @property
    def _bare(self) -> Design:
        """All data without noise; readers of large data are computed as those of the first design are."""
        return plain_design(self.prior, self.inputs, self.region) if self._first is None else self._everything

    @cached_property
    def _everything(self) -> Design:
        assert self._first is not None
        return everything(self._first)

    @cached_property
    def unprotected(self) -> Line:
        """What readers of all data without noise know."""
        return replace(self._line("everything", self._bare), loss=0.0 if len(self.places.outside) else math.nan)

    @cached_property
    def shared(self) -> SharedWork | None:
        """What designs of joint promises share; None where there are so many rows that designs are compressed."""
        if len(self.inputs) > FEW_ROWS:
            return None
        any_level = asked_problem(self.prior, self.inputs, self.region, 0.5, protects="function")
        return SharedWork(any_level, self.cover)

    def lines(
        self, levels: Sequence[Level], ways: Sequence[str], step: Progress, objective: Objective = "noise"
    ) -> list[Line]:
        """Those of each way and level that there are, in this order."""
        jobs = [(way, level) for way in ways if way in PROMISES for level in levels]
        rows: list[Line] = []
        for done, (way, level) in enumerate(jobs):
            if (way, None) in [(left, at) for left, at, _ in self.left_out]:
                continue
            step.stage(f"{way}, {called(level)}")
            step.update(done / len(jobs))
            start = time.perf_counter()
            line = self.line(way, level, step, objective=objective)
            if line is not None:
                rows.append(line)
                if done == 1:  # the first one has the work that all share
                    each = time.perf_counter() - start
                    step.announce(f"{len(jobs)} designs, about {each:.1f} s each", len(jobs) * each)
        for way in ways:
            missed = [(at, why) for left, at, why in self.left_out if left == way and at is not None]
            if way in PROMISES and len(missed) == len(levels):
                if way == "joint" or (not rows and set(ways) <= set(PROMISES)):
                    raise InputError(missed[0][1])
                self.left_out = [one for one in self.left_out if one[0] != way]
                self._leave_out(way, None, missed[0][1])
        if not rows and self.left_out and set(ways) <= set(PROMISES):
            raise InputError(self.left_out[-1][2])
        step.stage("comparing what readers know")
        if "dropout" in ways:
            rows.append(self._with_loss(self._line("dropout", without_rows(self._bare, ~self.private))))
        if "cloaking" in ways:
            rows.extend(map(self._with_loss, self._cloaking_lines(levels)))
        return sorted(rows, key=lambda line: list(ways).index(line.way))

    def line(
        self, way: str, level: Level, step: Progress, *, proved: bool = False, objective: Objective = "noise"
    ) -> Line | None:
        """One way at one level; None where it cannot be promised, which ``left_out`` then says."""
        start = time.perf_counter()
        if self.is_pointless(way):
            return None
        try:
            line = self.looked_at(way, level, step, proved, objective)[1]
        except InputError as error:
            self._leave_out(way, level, str(error))
            return None
        return replace(line, seconds=time.perf_counter() - start)

    def looked_at(
        self, way: str, level: Level, step: Progress, proved: bool = False, objective: Objective = "noise"
    ) -> tuple[Design, Line]:
        """A design and its line; ``InputError`` where there is none. ``proved``: the one that ``protect`` makes."""
        design, holds, evidence = self._designed(way, level, step, proved, objective)
        return design, self.line_of(design, way, level, holds, evidence)

    def line_of(self, design: Design, way: str, level: Level, holds: bool, evidence: str) -> Line:
        """What readers of ``design`` know, and what it cost."""
        if self._first is None:
            self._first = design
        noise = design.noise
        told = None if noise.compressed else self._told(design)
        changed = changes_of(design) if told is None else told.changes(noise)
        inside = design.region.contains(design.representatives.values) if noise.compressed else self.private
        # the noise of a function is summed up over all rows, what stands in for others at the representatives
        summed = noise.compressed and not noise.suppressed_count
        mean = noise.trace / len(self.inputs) if summed else float(np.mean(changed))
        line = self._line(
            way,
            design,
            level,
            holds=holds,
            evidence=evidence,
            noise=float(np.sqrt(mean)),
            spill=float(np.sum(changed[~inside]) / np.sum(changed)) if np.any(changed != 0.0) else 0.0,
        )
        if not design.protects_function:
            line = replace(line, floor=float(np.min(record_floors(design))))
        return self._with_loss(line)

    def variance_at(self, design: Design, points: Array) -> Array:
        """What readers of ``design`` do not know of f at ``points``."""
        told = self._told(design)
        return self._reader(design)(points) if told is None else told.left_at(points)

    def _told(self, design: Design) -> Told | None:
        """What readers of ``design`` know, from what all designs share; None where they share nothing."""
        if self.shared is None or len(design.inputs) != len(self.inputs):
            return None
        return self.shared.told(design.noise)

    def _reader(self, design: Design) -> Callable[[Array], Array]:
        """What readers of ``design`` do not know of f anywhere; the last few are kept: each is a pass over the rows."""
        known = self._readers.get(id(design))
        if known is None or known[0] is not design:
            known = self._readers[id(design)] = design, variance_of(design)
            while len(self._readers) > READERS_KEPT:
                self._readers.pop(next(iter(self._readers)))
        return known[1]

    def unprotected_variance_at(self, points: Array) -> Array:
        """What readers of all data without noise do not know of f at ``points``."""
        return self.variance_at(self._bare, points)

    def is_pointless(self, way: str) -> bool:
        """Whether a way is left out at all levels, which is then said."""
        if way == "diagonal" and len(self.inputs) > FEW_ROWS:
            self._leave_out(way, None, f"it cannot be compressed, so it is compared up to {FEW_ROWS:,} rows only")
            return True
        if way == "function" and not np.any(self.prior.noise_variance(len(self.inputs))[self.private] > 0):
            self._leave_out(way, None, "no record inside has anything of its own (noise is 0), so this is joint")
            return True
        return False

    def _leave_out(self, way: str, level: Level | None, why: str) -> None:
        self.left_out.append((way, level, why))

    def _designed(
        self, way: str, level: Level, step: Progress, proved: bool, objective: Objective
    ) -> tuple[Design, bool, str]:
        """A design, whether its promise holds, and what that rests on."""
        how: dict[str, Any] = {"tolerance": level.tolerance, "objective": objective, **PROMISES[way]}
        if how["objective"] == "predictions":
            how["serve"] = self.serve
        shares = set(how) <= {"tolerance", "protects", "objective", "serve"} and self.insiders is None
        if shares and not proved and self.shared is not None:
            attempt = self.shared.looked_at(asked_problem(self.prior, self.inputs, self.region, **how), step.stage)
            held = attempt.seen.holds
            return attempt.design, held, ("searched" if attempt.seen.is_searched else "proved") if held else ""
        if self.insiders is not None:
            how["insiders"] = self.insiders
        made = protect(self.prior, self.inputs, self.region, cover=self.cover, progress=False, **how)
        return made.design, made.certificate.holds, made.certificate.evidence if made.certificate.holds else ""

    def _line(self, way: str, design: Design, level: Level | None = None, **more: Any) -> Line:
        """What readers of ``design`` know."""
        told = self._told(design)
        variance = (self._reader(design) if told is None else told.left_at)(self.places.all)
        more |= {"measured": self._measured(design), "record_std": self._record_std(design, told)}
        return self._line_of(way, variance, level, **more)

    def _record_std(self, design: Design, told: Told | None) -> float:
        """The least standard deviation of a record inside that a reader of ``design`` keeps."""
        if not self.private.any() or design.noise.compressed:
            return math.nan
        if told is not None:
            variance = told.left_of_records(np.flatnonzero(self.private))
        elif len(design.inputs) == len(self.inputs):
            variance = record_variances(design, np.flatnonzero(self.private))
        else:  # they were left out
            own = self.prior.noise_variance(len(self.inputs))[self.private]
            variance = variances(design, self.inputs.values[self.private]) + own
        return float(np.sqrt(np.min(variance)))

    def _line_of(self, way: str, variance: Array, level: Level | None, **more: Any) -> Line:
        """What readers with this ``variance`` know; ``level`` is None where nothing is promised."""
        outside, inside = self.places.split(variance)
        nothing: dict[str, Any] = {"holds": None, "noise": 0.0, "spill": math.nan}
        return Line(
            way=way,
            alpha=math.nan if level is None else level.alpha,
            floor=math.nan if level is None else float(np.min(level.floor(self.prior, self.places.inside))),
            learnt=float(np.max(1.0 - inside / self.prior_inside)),
            least_std=float(np.sqrt(np.min(inside))),
            rmse_inside=_root_mean(inside),
            rmse_outside=_root_mean(outside),
            loss=math.nan,
            **(nothing | more),
        )

    def _with_loss(self, line: Line) -> Line:
        """With the share of the variance that readers of all data explain outside, and readers of this do not."""
        explained, most = (1.0 - (one.rmse_outside / self.prior_rmse) ** 2 for one in (line, self.unprotected))
        return replace(line, loss=max(0.0, 1.0 - explained / most) if most > 0 else math.nan)

    def _cloaking_lines(self, levels: Sequence[Level]) -> list[Line]:
        if not self.private.any():
            self._leave_out("cloaking", None, "no row lies in the region, so there is nothing that it would protect")
            return []
        if len(self.inputs) > FEW_ROWS:
            self._leave_out("cloaking", None, f"it is compared up to {FEW_ROWS:,} rows only")
            return []
        start = time.perf_counter()
        points, outside = self.places.all, len(self.places.outside)
        readers = cloaked(self.prior, self.inputs, self.private, points, self.sensitivity)
        inside = np.arange(len(points)) >= outside
        lines, missed = [], []
        for level in levels:
            size = readers.least_noise(level.floor(self.prior, self.places.inside), inside)
            if size is None:
                missed.append(level)
                continue
            noise = size * readers.shape
            more: dict[str, Any] = {
                "noise": float(np.sqrt(np.mean(noise))),
                "spill": float(np.sum(noise[:outside]) / np.sum(noise)) if size else 0.0,
                "epsilon": readers.epsilon(size),
                "seconds": time.perf_counter() - start,
            }
            lines.append(self._line_of("cloaking", readers.variance(size), level, **more))
        if missed:
            # its noise covers what the private rows change, and nothing of what the others tell about the region
            why = f"no ε keeps {called(*missed)} (δ = {DELTA:g}): what it leaves of the predictions tells more"
            self._leave_out("cloaking", None, why)
        return lines

    def _measured(self, design: Design) -> float:
        if self.y is None:
            return math.nan
        if len(design.inputs) == len(self.inputs):
            return measured_error(design, self.y, np.flatnonzero(~self.private))
        return measured_error(design, self.y[~self.private], np.arange(len(design.inputs)))


def _root_mean(variance: Array) -> float:
    return float(np.sqrt(np.mean(variance))) if len(variance) else math.nan
