"""The problem that the next of several releases solves: all promises ever made, given all that is out already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..data import Inputs
from ..design import AskedCover, Problem, Solution, UnitsProblem, design_in, in_units, output_units
from ..errors import InputError
from ..models import Prior
from ..noise import no_noise
from ..promise import (
    Cover,
    Design,
    Disclosure,
    KernelTolerance,
    MatrixTolerance,
    OutputTolerance,
    Speech,
    readings,
    rows_in_reach,
)
from ..proof import Certificate
from ..regions import OutputRegion, bound_points
from .past import LeftOver, Past, PastAudience
from .promises import Promise, check_composable, distinct_promises, promises_of

#: A release that could tell less than this share of a tolerance, without any noise, leaves a promise alone.
NOTHING = 1e-12

#: How many inputs of a promise's region are looked at to see whether a release tells of it at all.
LOOKS = 512


@dataclass(frozen=True, eq=False)
class LedgerProblem(Problem):
    """The least noise for the rows of ``asked``, given the ``disclosed``; ``region`` is where anything was promised.

    The first promise is that of ``asked`` itself, for everything that is published together. ``whole`` is the same
    problem in the owner's units, where this one is in others (units.py).
    """

    asked: Problem = field(kw_only=True)
    following: Disclosure = field(kw_only=True)
    disclosed: tuple[Disclosure, ...] = field(kw_only=True)
    promises: tuple[Promise, ...] = field(kw_only=True)
    watched: tuple[Promise, ...] = field(kw_only=True)
    share: float = field(kw_only=True)
    whole: LedgerProblem | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls,
        asked: Problem,
        cover: AskedCover,
        name: str,
        remeasured: bool,
        disclosed: Sequence[Disclosure],
        share: float,
    ) -> LedgerProblem:
        kind: Cover = "rows" if cover == "rows" else "points" if asked.region.points is not None else "exchange"
        design = Problem.published(asked, kind, asked.inputs.values[:0], Solution(no_noise(len(asked.inputs))))
        check_composable(design)
        following = Disclosure(design, name, remeasured)
        made = promises_of(following)
        earlier = distinct_promises([promise for one in disclosed for promise in promises_of(one)])
        known = {promise.key: promise for promise in earlier}
        keys = {promise.key for promise in made}
        new = [_with_sensitive(promise, known.get(promise.key)) for promise in made]
        told = [spoken for promise in earlier if (spoken := spoken_to(promise, new[0], following)) is not None]
        others = [promise for promise in distinct_promises(told) if promise.key not in keys]
        given = {part.name: getattr(asked, part.name) for part in fields(Problem)}
        problem = cls(
            **given,
            asked=asked,
            following=following,
            disclosed=tuple(disclosed),
            promises=(*new, *others),
            watched=(),
            share=share,
        )
        kept = [promise for promise in others if problem.tells_of(promise)]
        # those, too, that no noise is designed for: their readers may see some of the rows
        watched = [
            promise
            for promise in earlier
            if promise.key not in keys
            and len(promise.speech.rows_of(following)[1])
            and (problem.tells_of(promise) or promise.kept_by(disclosed)[0].holds)
        ]
        region = new[0].design.region
        for promise in (*new[1:], *kept):
            if promise.design.region != region:
                region = region | promise.design.region
        return replace(problem, promises=(*new, *kept), watched=tuple(watched), region=region)

    def tells_of(self, promise: Promise) -> bool:
        """Whether this release could tell anything about what was promised, even without noise."""
        look = _look(promise, self.following)
        return any(one.most_told(look) > NOTHING for one in self.hearers(promise))

    def in_units(self) -> LedgerProblem:
        """The same problem in units that suit the outputs; itself where they have the same ones."""
        asked = in_units(self.asked)
        if not isinstance(asked, UnitsProblem):
            return self
        unit = output_units(self.asked.prior, self.asked.inputs)
        disclosed = []
        for one in self.disclosed:
            design = design_in(unit, one.design, one.name)
            if design is None:
                return self
            disclosed.append(replace(one, design=design))
        cover: AskedCover = "rows" if self.following.design.cover == "rows" else "auto"
        following, share = self.following, self.share
        scaled = LedgerProblem.of(asked, cover, following.name, following.remeasured, disclosed, share)
        return replace(scaled, whole=replace(self, asked=asked.whole))

    @cached_property
    def audiences(self) -> tuple[PastAudience, ...]:
        return tuple(one for promise in self.promises for one in self.hearers(promise))

    def hearers(self, promise: Promise) -> list[PastAudience]:
        """Readers to whom ``promise`` was made: those who think that rows were measured anew, and those who do not."""
        audiences = []
        for *disclosed, following in readings((*self.disclosed, self.following)):
            past = Past.of(promise.prior, promise.speech, disclosed, following)
            design = promise.design
            left = LeftOver(design.tolerance, design.region, past, self.share)
            prior = replace(promise.prior, noise=past.errors)
            inputs = promise.speech.stacked(past.rows)
            audiences.append(PastAudience(prior, inputs, left, None, design.guarantee == "joint", promise, past))
        return audiences

    def check_budget(self) -> None:
        """Raise ``BudgetError`` where the past has left nothing of a promise that this release would tell of."""
        for audience in self.audiences:
            assert audience.promise is not None
            design, left = audience.promise.design, audience.tolerance
            assert isinstance(left, LeftOver)
            left.check(audience.prior, _look(audience.promise, self.following), audience.inputs)
            if audience.joint and len(design.sensitive):
                left.check_together(audience.prior, design.sensitive)

    @property
    def least_spare(self) -> float:
        """More than for one release: later ones, whose noise is larger, must not hide this one's in their round-off."""
        return 1024.0

    def jointly(self) -> None:
        return None

    def left_in_words(self) -> str:
        """How much of the tightest promise is left."""
        least = 1.0
        for audience in self.audiences:
            assert audience.promise is not None
            points, left = _look(audience.promise, self.following), audience.tolerance
            whole = audience.promise.design.tolerance.budget(audience.prior, points)
            least = min(least, float(np.min(left.budget(audience.prior, points) / (self.share * whole))))
        return f"At most {max(least, 0.0):.2%} of the tolerance is left."

    @property
    def given(self) -> Array:
        """The inputs for which the promises were made before."""
        return np.unique(np.vstack([promise.design.sensitive for promise in self.promises]) + 0.0, axis=0)

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        if self.whole is not None:
            assert isinstance(self.asked, UnitsProblem)
            return self.whole.published(cover, sensitive, self.asked.owners(solution))
        kind = self.following.design.cover
        own = sensitive[self.promises[0].design.region.contains(sensitive)]
        return self.asked.published(kind if kind in ("rows", "points") else cover, own, Solution(solution.noise))

    def examine(self, design: Design) -> tuple[Certificate, Array]:
        """The certificate of everything that is then published: of the new promise, if all others are kept too."""
        if self.whole is not None:
            return self.whole.examine(design)
        following = replace(self.following, design=design)
        together, made = (*self.disclosed, following), promises_of(following)
        made = [replace(promise, earlier=self.promises[place].earlier) for place, promise in enumerate(made)]
        results = [promise.kept_by(together) for promise in (*made, *self.promises[len(made) :])]
        main, short = results[0][0], [found for _, found in results]
        keys = {promise.key for promise in self.promises}
        results += [promise.kept_by(together) for promise in self.watched if promise.key not in keys]
        worst = min((certificate for certificate, _ in results), key=lambda one: one.holds)
        own = f"this is about all {len(together)} releases of the ledger together"
        certificate = replace(
            main if worst.holds else worst,
            trace=design.noise.trace,
            notes=(own, *main.notes) if len(together) > 1 else main.notes,
        )
        return certificate, np.vstack(short)


def _with_sensitive(promise: Promise, known: Promise | None) -> Promise:
    """A new promise that was made before starts from the sensitive inputs it was made for then."""
    if known is None:
        return promise
    design = replace(promise.design, sensitive=known.design.sensitive, cover=known.design.cover)
    return replace(promise, design=design, earlier=known.earlier)


def _look(promise: Promise, following: Disclosure) -> Array:
    """Inputs of a promise's region, those next to the rows of the next release among them."""
    region, rows = promise.design.region, promise.design.inputs
    if region.points is not None:
        return np.vstack([region.points, promise.design.sensitive])
    new = promise.speech.stacked(promise.speech.rows_of(following)[0])
    near = rows_in_reach(region, new) if len(new) else new.values
    return np.vstack([region.probes(LOOKS, rows, batch=0), near, promise.design.sensitive])


def spoken_to(promise: Promise, new: Promise, following: Disclosure) -> Promise | None:
    """An earlier promise as it bears on the next release; None where they have nothing to do with each other.

    Its own prior is that of its readers, if it speaks of rows as the new one does; else it is kept for readers with
    the new one, which must know of its outputs.
    """
    if (promise.speech.outputs, promise.speech.joint) == (new.speech.outputs, new.speech.joint):
        return promise
    sensitive = sensitive_outputs(promise)
    if all(name in new.speech.outputs for name in sensitive):
        return translated(promise, new.prior, new.speech)
    if not len(promise.speech.rows_of(following)[1]):
        return None
    missing = next(name for name in sensitive if name not in new.speech.outputs)
    raise InputError(
        f"prior knows nothing of {missing!r}, about which the ledger has a promise that this release bears on; give a "
        f"sf.JointPrior with the outputs {', '.join(dict.fromkeys((*new.speech.outputs, *sensitive)))}."
    )


def sensitive_outputs(promise: Promise) -> tuple[str, ...]:
    region = promise.design.region
    if isinstance(region, OutputRegion):
        return tuple(promise.speech.outputs[number] for number in region.sensitive)
    if promise.speech.joint:
        if region.points is None:
            return promise.speech.outputs
        return tuple(promise.speech.outputs[int(number)] for number in np.unique(region.points[:, -1]))
    return promise.speech.outputs


def translated(promise: Promise, prior: Prior, speech: Speech) -> Promise:
    """The same promise to readers with another prior, which knows more outputs."""
    design, old = promise.design, promise.speech
    number = {place: speech.outputs.index(name) for place, name in enumerate(old.outputs) if name in speech.outputs}
    region, tolerance = design.region, design.tolerance
    if isinstance(tolerance, OutputTolerance):
        parts = tuple((number[place], part) for place, part in tolerance.parts)
        tolerance = OutputTolerance(parts, tolerance.common) if speech.joint else parts[0][1]
    elif isinstance(tolerance, MatrixTolerance) and tolerance.points is not None:
        tolerance = MatrixTolerance(tolerance.delta, _renumbered(tolerance.points, old, speech, number))
    elif isinstance(tolerance, KernelTolerance):
        raise InputError("a promise with a tolerance kernel cannot be carried over to a prior with other outputs.")
    if region.points is not None:
        region = bound_points(_renumbered(region.points, old, speech, number), speech.inputs.columns)
    elif isinstance(region, OutputRegion):
        parts_of_region = {number[place]: part for place, part in region.parts}
        region = OutputRegion(parts_of_region, speech.outputs) if speech.joint else parts_of_region[0]
    else:
        region = OutputRegion({number[0]: region}, speech.outputs)
    carried = replace(
        design,
        prior=prior,
        inputs=Inputs(speech.inputs.values, speech.inputs.columns, speech.inputs.outputs),
        region=region,
        tolerance=tolerance,
        sensitive=_renumbered(design.sensitive, old, speech, number),
    )
    earlier = tuple(_renumbered(one, old, speech, number) for one in promise.earlier)
    return Promise(carried, prior, speech, earlier, promise.asked)


def _renumbered(points: Array, old: Speech, new: Speech, number: dict[int, int]) -> Array:
    theirs, ours = old.inputs.outputs, new.inputs.outputs
    return ours.rows(theirs.plain(points), np.array([number[place] for place in theirs.numbers(points)], dtype=np.intp))
