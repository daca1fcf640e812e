"""Whether a certificate of a release is true: what readers of the release know, by dense textbook formulas.

The proof room is asked nothing. Where float64 says that a promise is broken, 50 digits decide, if the kernel is one
that is known in 50 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.models import OutputsKernel, Prior, describe_kernel
from sfumato.promise import (
    FloorTolerance,
    FractionTolerance,
    KernelTolerance,
    MatrixTolerance,
    OutputTolerance,
    RecordTolerance,
    TabulatedFloor,
)

from .arithmetic import SingularError, in_digits, largest_ratio, numbers
from .oracle import One, Process, Reader, Tolerated, Values, insider_ratio_above, values_at

#: Ratios are promised to within 1e-9. Float64 alone decides where it is off by more than this, or asks 50 digits.
PROMISED, SEEN = 2e-9, 1e-6
#: At so many inputs of a region is looked; 50 digits look at the worst few of them.
INPUTS, WORST = 300, 4
#: V below this share of the variance of f is none: the record is f there.
LEAST_OWN = 1e-9
#: More rows than these take long in 50 digits.
MOST_ROWS = 40


class UndecidedError(Exception):
    """Neither float64 nor 50 digits can tell."""


@dataclass(frozen=True)
class AsGiven(Process):
    """A process whose covariances sfumato's own models give: several outputs. It has no 50 digits."""

    prior: Prior

    def covariance(self, A: Any, B: Any, exact: bool) -> Any:
        if exact:
            raise UndecidedError
        return self.prior.covariance(np.asarray(A), np.asarray(B))


def falsehood(release: sf.Release, found: sf.Certificate, random: np.random.Generator) -> str | None:
    """What ``found`` says of ``release`` and is not true; None: nothing. ``UndecidedError`` where nobody can tell."""
    if not found.holds:
        return None
    design = release.design
    X, region = np.asarray(design.inputs.values), design.region
    inside = np.flatnonzero(region.contains(X))
    named = [design.prior, *design.others]
    for prior in [*named, *_members(design, random)]:
        process: Process = AsGiven(prior)
        if not isinstance(prior.kernel, OutputsKernel):
            process = One(describe_kernel(prior.kernel))
        errors = np.asarray(prior.noise_variance(len(X)))
        reader = Reader(process, X, errors, np.arange(len(X)), design.noise.covariance(), False)
        own = [one.noise_variance(len(X))[inside] > LEAST_OWN * one.variance(X[inside]) for one in named]
        rows = inside[np.all(own, axis=0)] if design.protects != "function" else inside[:0]
        told = _of_reader(design, reader, rows, any(prior is one for one in named), found, random)
        if told is not None:
            return told
    return None


def _members(design: Any, random: np.random.Generator) -> Iterator[Prior]:
    """Some members of the families, the outermost among them."""
    for family in design.families:
        for corner in (0.0, 1.0, *random.uniform(size=2)):
            ranges = {name: getattr(family, name) for name in ("lengthscale", "variance", "noise")}
            yield family.member(**{name: low + corner * (high - low) for name, (low, high) in ranges.items()})


def _of_reader(
    design: Any, reader: Reader, rows: Any, jointly: bool, found: sf.Certificate, random: np.random.Generator
) -> str | None:
    S = design.sensitive if design.protects != "records" else design.sensitive[:0]
    for values, tolerated in _promised(design, reader, rows, random):
        ratios = _least_ratio(reader, values, tolerated)
        if ratios < 1.0 - PROMISED and found.evidence == "proved":
            return f"a proved certificate, and readers get to {ratios:.12g} of the floor"
        if ratios < 1.0 - PROMISED and (design.cover in ("rows", "points") or ratios < 0.99):
            return f"a certificate that holds, and readers get to {ratios:.12g} of the floor"
        varies = isinstance(design.tolerance.alone, (TabulatedFloor, OutputTolerance))
        if jointly and design.guarantee == "joint" and not varies:
            ratio = _joint(reader, values_at(S, reader.X, rows), tolerated)
            if ratio > 1.0 + PROMISED:
                return f"a certificate that holds, and combinations are told {ratio:.12g} times what they may be"
        if design.insiders is not None and not varies:
            joint = design.guarantee == "joint"
            for held in design.insiders.groups:
                ratio = _decided(
                    reader,
                    lambda one: insider_ratio_above(one, held, values_at(S, one.X, rows), tolerated, joint),  # noqa: B023
                    lambda value: value <= 1.0 + PROMISED,
                )
                if ratio > 1.0 + 1e-7:
                    return f"a certificate that holds, and insiders are told {ratio:.12g} times what they may be"
    return None


def _promised(
    design: Any, reader: Reader, rows: Any, random: np.random.Generator
) -> Iterator[tuple[Values, Tolerated]]:
    """Values of which each is promised by itself, and what may be learnt of them."""
    places, records = _places(design, random), isinstance(design.tolerance, RecordTolerance)
    alone = design.tolerance.alone
    if isinstance(alone, OutputTolerance):
        for number, own in alone.parts:
            some = values_at(places[places[:, -1] == number], reader.X, rows[reader.X[rows, -1] == number])
            yield some, replace(_one(own), records=records)
    elif isinstance(alone, TabulatedFloor):
        floors = {row.tobytes(): float(value) for row, value in zip(alone.inputs + 0.0, alone.values)}
        values = values_at(places, reader.X, rows)
        asked = np.array([floors.get((row + 0.0).tobytes(), np.inf) for row in values.places])
        try:
            ratios = np.sqrt(np.maximum(reader.left(values), 0.0)) / asked
        except SingularError:
            ratios = -asked
        for one in np.argsort(ratios)[:WORST]:
            if np.isfinite(asked[one]):
                some = Values(values.places[[one]], values.measurements[[one]])
                yield some, Tolerated(floor=asked[one], records=records)
    else:
        yield values_at(places, reader.X, rows), replace(_one(alone), records=records)


def _one(tolerance: Any) -> Tolerated:
    if isinstance(tolerance, FractionTolerance):
        return Tolerated(alpha=tolerance.alpha)
    if isinstance(tolerance, FloorTolerance):
        return Tolerated(floor=tolerance.value)
    if isinstance(tolerance, KernelTolerance):
        return Tolerated(tree=describe_kernel(tolerance.kernel))
    assert isinstance(tolerance, MatrixTolerance)
    return Tolerated(matrix=tolerance.delta, points=tolerance.points)


def _places(design: Any, random: np.random.Generator) -> Any:
    """Inputs at which f is promised."""
    X, region = np.asarray(design.inputs.values), design.region
    if design.protects == "records":
        return X[:0]
    if isinstance(design.tolerance.alone, TabulatedFloor):
        places = design.tolerance.alone.inputs
    elif region.points is not None:
        places = region.points
    elif design.cover == "rows":
        places = X
    elif design.cover == "everywhere":
        spread = np.maximum(np.ptp(X, axis=0), 1.0)
        places = np.vstack([X, X[random.integers(len(X), size=INPUTS)] + spread * random.normal(size=(INPUTS, 1))])
    else:
        places = np.vstack([region.probes(INPUTS, design.inputs, batch=int(random.integers(2, 50))), X])
    return np.unique(places[region.contains(places)], axis=0)


def _least_ratio(reader: Reader, values: Values, tolerated: Tolerated) -> float:
    """The least std/floor; 50 digits look at the worst again where that is below 1."""
    if not len(values):
        return np.inf
    try:
        ratios = reader.floor_ratios(values, tolerated)
    except SingularError:
        ratios = np.zeros(len(values))
    worst = np.argsort(ratios)[:WORST]
    least = float(ratios[worst[0]])
    if least >= 1.0 - PROMISED:
        return least
    some = Values(values.places[worst], values.measurements[worst])
    return _decided(
        reader,
        lambda one: float(np.min(one.floor_ratios(some, tolerated))),
        lambda value: value >= 1.0 - PROMISED,
        given=None if np.all(ratios == 0.0) else least,
        clear=lambda value: value < 1.0 - SEEN,
    )


def _joint(reader: Reader, values: Values, tolerated: Tolerated) -> float:
    if not len(values):
        return 0.0
    return _decided(
        reader,
        lambda one: largest_ratio(*one.joint(values, tolerated)),
        lambda value: value <= 1.0 + PROMISED,
        clear=lambda value: value > 1.0 + 1e-4,
    )


def _decided(
    reader: Reader,
    ask: Callable[[Reader], float],
    fine: Callable[[float], bool],
    given: float | None = None,
    clear: Callable[[float], bool] = lambda value: False,
) -> float:
    """What ``ask`` says in float64 where that is ``fine``, else in 50 digits; without these, where it is ``clear``."""
    if given is None:
        try:
            given = ask(reader)
        except (SingularError, np.linalg.LinAlgError, ValueError):
            given = np.nan
    if fine(given):
        return given
    if isinstance(reader.process, AsGiven) or len(reader.X) > MOST_ROWS:
        if clear(given):
            return given
        raise UndecidedError
    with in_digits():
        try:
            return ask(replace(reader, errors=numbers(reader.errors, True), noise=_exact(reader), exact=True))
        except (SingularError, ZeroDivisionError, ValueError) as error:
            raise UndecidedError from error


def _exact(reader: Reader) -> Any:
    """The noise in 50 digits: its doubles, as they were added up in float64, which is within its last bits."""
    return numbers(reader.noise, True)
