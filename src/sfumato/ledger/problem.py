"""The problem of the next of several releases: to keep all promises ever made, given all earlier releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..design import AskedCover, BackEnd, Exposure, InUnits, Problem, Solution, Solver, design_in, rescaled
from ..errors import InputError
from ..linalg import as_array
from ..models import Prior
from ..noise import no_noise
from ..promise import (
    Cover,
    Design,
    Revealed,
    RowLayout,
    interpretations,
    rows_in_reach,
)
from ..proof import Certificate, Effort, Examination, Pieces, findings_on_design
from ..regions import OutputRegion, bound_points
from .past import Commitment, OtherReader
from .promises import (
    Promise,
    about_all,
    as_proved_as,
    check_composable,
    distinct_promises,
    promises_of,
    promises_of_all,
    worst_of,
)

#: A release that could tell less than this share of a tolerance, without any noise, leaves a promise alone.
NOTHING = 1e-12

#: How many inputs of a promise's region are probed to see whether a release tells of it at all, or more than its share.
PROBES = 512

#: Covariances that differ by no more than this share are those of readers who see the data alike.
ALIKE = 1e-12

#: A release that uses this share more of what is left than it may is one that round-off made.
NO_MORE = 1e-6


@dataclass(frozen=True, eq=False)
class NextRelease:
    """The rows of the problem ``asked``, for readers of all that is ``revealed``: a back end of designs.

    ``following`` is what it would reveal. The first of ``promises`` is that of ``asked`` itself, for everything that is
    published together; those that are only ``watched`` are designed for where they were made. ``problem`` is ``asked``
    in the region in which anything was promised about f.
    """

    problem: Problem
    asked: Problem
    following: Revealed
    revealed: tuple[Revealed, ...]
    promises: tuple[Promise, ...]
    watched: tuple[Promise, ...]
    share: float

    @classmethod
    def of(
        cls,
        asked: Problem,
        cover: AskedCover,
        name: str,
        remeasured: bool,
        revealed: Sequence[Revealed],
        share: float,
    ) -> NextRelease:
        of_rows = cover == "rows" or asked.protects == "records"
        kind: Cover = "rows" if of_rows else "points" if asked.region.points is not None else "exchange"
        design = asked.published(kind, asked.inputs.values[:0], Solution(no_noise(len(asked.inputs))))
        check_composable(design)
        following = Revealed(design, name, remeasured)
        made = promises_of(following, len(revealed))
        earlier = promises_of_all(revealed)
        known = {promise.key: promise for promise in earlier}
        keys = {promise.key for promise in made}
        new = [_with_sensitive(promise, known.get(promise.key)) for promise in made]
        binding = [bound for promise in earlier if (bound := binding_on(promise, new[0], following)) is not None]

        def tells_of(promise: Promise) -> bool:
            """Whether this release could tell anything about what was promised, even without noise."""
            points = _probes(promise, following)
            return any(one.most_told(points) > NOTHING for one in commitments(promise, revealed, following, share))

        kept = [promise for promise in distinct_promises(binding) if promise.key not in keys and tells_of(promise)]
        # those, too, whose readers lay out inputs otherwise: they may see some of the rows
        watched = [
            promise
            for promise in earlier
            if promise.key not in keys
            and len(promise.layout.rows_of(following)[1])
            and (tells_of(promise) or promise.kept_by(revealed).holds)
        ]
        of_function = [promise.design.region for promise in (*new, *kept) if promise.design.protects_function]
        region = of_function[0] if of_function else asked.region
        for one in of_function[1:]:
            if one != region:
                region = region | one
        # records are promised by each promise for itself; where any is about f too, it is designed for as such
        problem = replace(asked, region=region, protects="both" if of_function else "records")
        return cls(problem, asked, following, tuple(revealed), (*new, *kept), tuple(watched), share)

    def in_units(self) -> BackEnd:
        """The same problem in units that suit the outputs; itself where they have the same ones."""
        found = rescaled(self.asked)
        if found is None:
            return self
        revealed = []
        for one in self.revealed:
            design = design_in(found.unit, one.design, one.name)
            if design is None:
                return self
            revealed.append(replace(one, design=design))
        cover: AskedCover = "rows" if self.following.design.cover == "rows" else "auto"
        following = self.following
        inner = NextRelease.of(found.problem, cover, following.name, following.remeasured, revealed, self.share)
        return InUnits(inner, replace(self, asked=found.owner), found.rows)

    @cached_property
    def commitments(self) -> tuple[Commitment, ...]:
        """What binds this release: each promise, to each reader to whom it was made."""
        made = (commitments(promise, self.revealed, self.following, self.share) for promise in self.promises)
        return tuple(one for each in made for one in each)

    @cached_property
    def elsewhere(self) -> tuple[Commitment, ...]:
        """What binds it to readers who lay out inputs otherwise, where they see all of its rows."""
        found: list[Commitment] = []
        for promise in self._only_watched:
            if len(promise.layout.rows_of(self.following)[1]) == len(self.following.design.inputs):
                points = _probes(promise, self.following)
                bound = commitments(promise, self.revealed, self.following, self.share)
                found += [one for one in bound if one.most_told(points) > NOTHING]
        return tuple(found)

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        return (*(one.exposure for one in self.commitments), *map(OtherReader, self.elsewhere))

    @cached_property
    def readers_see_alike(self) -> bool:
        """Whether all readers see the data alike, so that one P = (A + Σ)⁻¹ says what each of them learns."""
        first, *others = (as_array(one.data_covariance) for one in self.exposures)
        close = ALIKE * float(np.max(np.diag(first), initial=0.0))
        return all(one.shape == first.shape and np.max(np.abs(one - first)) <= close for one in others)

    @property
    def _only_watched(self) -> list[Promise]:
        keys = {promise.key for promise in self.promises}
        return [promise for promise in self.watched if promise.key not in keys]

    @property
    def given(self) -> Array:
        """The inputs for which the promises were made before."""
        return np.unique(np.vstack([promise.design.sensitive for promise in self.promises]) + 0.0, axis=0)

    def admissible(self, points: Array) -> Array:
        return points

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        kind = self.following.design.cover
        own = sensitive[self.promises[0].design.region.contains(sensitive) & self.asked.protects_function]
        return self.asked.published(kind if kind in ("rows", "points") else cover, own, Solution(solution.noise))

    def jointly(self) -> None:
        """Nothing: earlier promises may be of either kind."""
        return

    def check_budget(self) -> None:
        """Raise ``BudgetError`` where the past has left nothing of a promise that this release would tell of."""
        for one in (*self.commitments, *self.elsewhere):
            one.check_left(_probes(one.promise, self.following))

    def left_in_words(self) -> str:
        """How much of the tightest promise is left."""
        left = [one.least_left(_probes(one.promise, self.following)) for one in self.commitments]
        return f"At most {max(min(1.0, *left), 0.0):.2%} of the tolerance is left."

    def examine(self, design: Design, needed: Sequence[Pieces] | None, effort: Effort | None = None) -> Examination:
        """The certificate of everything that is then published: of the new promise, if all others are kept too."""
        following = replace(self.following, design=design)
        together, made = (*self.revealed, following), promises_of(following, len(self.revealed))
        before = self.promises[: len(made)]
        made = [replace(one, earlier=known.earlier, by=known.by) for one, known in zip(made, before, strict=True)]
        kept = (*made, *self.promises[len(made) :], *self._only_watched)
        results = [promise.kept_by(together, effort) for promise in kept]
        broken = [one for one in results if not one.holds]

        def make() -> Certificate:
            certificate, noise = (broken or results)[0].certificate(), design.noise
            certificate = replace(certificate, trace=noise.trace, suppressed=noise.suppressed_count)
            certificate = as_proved_as(certificate, [one.certificate() for one in results])
            return certificate.with_findings(
                *([about_all(len(together))] if len(together) > 1 else []),
                *(one for one in findings_on_design(design, certificate.spill) if one.code != "only-release"),
            )

        return replace(self._within_share(design, worst_of(results)), make=make)

    def _within_share(self, design: Design, seen: Examination) -> Examination:
        """``seen``, with the inputs where the release would use more than its share of what is left among the short."""
        if self.share == 1.0:
            return seen
        solver = Solver(self)
        points = np.vstack([_probes(promise, self.following) for promise in self.promises])
        try:
            learnt = solver.learnt(design.noise, solver.probes(points))
            of_records = max(one.told_of_records(design.noise) for one in self.commitments)
        except np.linalg.LinAlgError:
            learnt, of_records = np.full(len(points), np.inf), np.inf
        more, most = learnt > 1.0 + NO_MORE, max(float(np.max(learnt, initial=0.0)), of_records)
        return replace(
            seen,
            holds=seen.holds and most <= 1.0 + NO_MORE,
            short=np.vstack([seen.short, points[more]]),
            learnt=np.concatenate([seen.learnt, learnt[more]]),
            most=max(seen.most, most),
        )


def commitments(promise: Promise, revealed: Sequence[Revealed], following: Revealed, share: float) -> list[Commitment]:
    """``promise`` to readers who think that rows were measured anew, and to those who do not."""
    return [Commitment.of(promise, past, last, share) for *past, last in interpretations((*revealed, following))]


def _with_sensitive(promise: Promise, known: Promise | None) -> Promise:
    """A new promise that was made before starts from the sensitive inputs it was made for then."""
    if known is None:
        return promise
    before = known.design
    design = replace(promise.design, sensitive=before.sensitive, promised=before.promised, cover=before.cover)
    return replace(promise, design=design, earlier=known.earlier, by=(*known.by, *promise.by))


def _probes(promise: Promise, following: Revealed) -> Array:
    """Inputs of a promise's region, those next to the rows of the next release among them."""
    region, rows = promise.design.region, promise.design.inputs
    if region.points is not None:
        return np.vstack([region.points, promise.design.sensitive])
    new = promise.layout.inputs_of(promise.layout.rows_of(following)[0])
    near = rows_in_reach(region, new) if len(new) else new.values
    return np.vstack([region.probes(PROBES, rows, batch=0), near, promise.design.sensitive])


def binding_on(promise: Promise, new: Promise, following: Revealed) -> Promise | None:
    """An earlier promise as it bears on the next release; None where they have nothing to do with each other.

    Its own prior is that of its readers, if it lays out rows as the new one does; else it is kept for readers with the
    new one, which must know of its outputs.
    """
    if (promise.layout.outputs, promise.layout.numbered) == (new.layout.outputs, new.layout.numbered):
        return promise
    sensitive = sensitive_outputs(promise)
    if all(name in new.layout.outputs for name in sensitive):
        return translated(promise, new.prior, new.layout)
    if not len(promise.layout.rows_of(following)[1]):
        return None
    missing = next(name for name in sensitive if name not in new.layout.outputs)
    raise InputError(
        f"prior does not have {missing!r}, about which the ledger has a promise that this release bears on; give a "
        f"sf.JointPrior with the outputs {', '.join(dict.fromkeys((*new.layout.outputs, *sensitive)))}."
    )


def sensitive_outputs(promise: Promise) -> tuple[str, ...]:
    region = promise.design.region
    if isinstance(region, OutputRegion):
        return tuple(promise.layout.outputs[number] for number in region.sensitive)
    if promise.layout.numbered:
        if region.points is None:
            return promise.layout.outputs
        return tuple(promise.layout.outputs[int(number)] for number in np.unique(region.points[:, -1]))
    return promise.layout.outputs


def translated(promise: Promise, prior: Prior, layout: RowLayout) -> Promise:
    """The same promise to readers with another prior, which knows more outputs."""
    design, old = promise.design, promise.layout
    number = {place: layout.outputs.index(name) for place, name in enumerate(old.outputs) if name in layout.outputs}
    theirs, ours, region = old.inputs.outputs, layout.inputs.outputs, design.region

    def moved(points: Array) -> Array:
        numbers = np.array([number[place] for place in theirs.numbers(points)], dtype=np.intp)
        return ours.rows(theirs.plain(points), numbers)

    if region.points is not None:
        region = bound_points(moved(region.points), layout.inputs.columns)
    elif isinstance(region, OutputRegion):
        parts_of_region = {number[place]: part for place, part in region.parts}
        region = OutputRegion(parts_of_region, layout.outputs) if layout.numbered else parts_of_region[0]
    else:
        region = OutputRegion({number[0]: region}, layout.outputs)
    carried = replace(
        design,
        prior=prior,
        inputs=layout.inputs.select(np.arange(len(layout.inputs))),
        region=region,
        tolerance=design.tolerance.carried_to(number, moved, layout.numbered),
        sensitive=moved(design.sensitive),
    )
    return Promise(carried, prior, layout, promise.by, tuple(moved(one) for one in promise.earlier), promise.asked)
