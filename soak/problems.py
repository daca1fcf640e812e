"""Random problems: every claim of a certificate and of a release is compared with an independent answer.

Float64 looks first. Where it has a doubt, however small, 50 digits decide, and in a tenth of the trials they decide
anyway. So float64 needs no allowance where a promise is concerned; where it stands alone (predictions, bounds for the
noise), the allowance is a multiple of round-off times the condition number, and is named.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.models import build_kernel, describe_kernel
from sfumato.noise import FunctionalNoise, IndependentNoise, Noise

from .arithmetic import Array, SingularError, in_digits, is_positive, kernel, largest_ratio, numbers
from .drawing import Drawn, Random, chance, drawn_problem
from .oracle import Mixed, One, Process, Reader, Tolerated, Values, WithSlope, insider_ratio_above, values_at
from .outcome import Outcome, reason

#: Certificates promise ratios to within 1e-9; this is a little more.
SLACK = 2e-9

#: In this share of the trials 50 digits are used without any doubt.
EXACT = 0.1

#: Up to so many rows and sensitive values together 50 digits are affordable.
MOST_EXACT = 260

#: Ratios of insiders are told to this share.
ALIKE = 1e-4

#: V below this share of the variance of f is nothing that could be kept apart from f in float64.
LEAST_OWN = 1e-9

#: In 50 digits what is suppressed is made so many times larger than files have it, where it is far too large already.
NOTHING_LEFT = 10**10

UNIT = 2.0**-53


class BrokenError(Exception):
    """A claim that is not true, in a sentence."""


@dataclass
class Notes:
    """What is counted in a trial."""

    counts: Counter[str] = field(default_factory=Counter)


def trial(random: Random, folder: Path) -> Outcome:
    """Protect, release, save, load and certify; each claim is checked."""
    drawn, notes = drawn_problem(random), Notes()
    notes.counts[f"asked: {drawn.program}"] += 1
    broken, case = None, drawn.case
    try:
        FLOWS.get(drawn.program, one_release)(drawn, random, folder, notes)
    except SfumatoError as error:
        notes.counts[reason(error)] += 1
    except BrokenError as error:
        broken = str(error)
    except Exception as error:
        broken = f"an exception that is not sfumato's: {type(error).__name__}: {error}"
        case = case | {"stack": traceback.format_exc().splitlines()}
    return Outcome("problems", dict(notes.counts), broken, case)


# ---------------------------------------------------------------- what is compared


@dataclass(frozen=True)
class Claim:
    """Who has seen what, and what was promised to them: f at ``S``, records of ``rows``, and f all over the area."""

    drawn: Drawn
    process: Process
    errors: Array
    X: Array
    shows: Array
    noise: Any
    tolerated: Tolerated
    joint: bool
    S: Array
    rows: Array
    everywhere: Array

    def reader(self, exact: bool) -> Reader:
        return Reader(self.process, self.X, numbers(self.errors, exact), self.shows, self.noise(exact), exact)

    @property
    def values(self) -> Values:
        S = self.S[:0] if self.tolerated.records else self.S
        return values_at(S, self.X, self.rows)

    @property
    def size(self) -> int:
        return len(self.X) + len(self.values)


def check_claim(claim: Claim, exact: bool, who: str, notes: Notes, joint_ratio: float, better: Any = None) -> None:
    """The joint promise at the sensitive values, and each floor: in float64, and in 50 digits where that is needed.

    ``better(places, ratios_at)`` may find inputs of the region where readers come closer to the floor.
    """
    small = claim.size <= MOST_EXACT
    values = claim.values
    places = Values(claim.everywhere, np.full(len(claim.everywhere), -1))
    if claim.tolerated.records:
        places = Values(places.places[:0], places.measurements[:0])
    doubts = exact and small
    worst = places
    if not doubts:
        try:
            reader = claim.reader(False)
            if claim.joint and len(values):
                told, allowed = reader.joint(values, claim.tolerated)
                ratio = largest_ratio(told, allowed)
                doubts |= not ratio <= min(1.0, joint_ratio) + 1e-9
            single = reader.floor_ratios(values, claim.tolerated)
            doubts |= bool(np.any(~(single >= 1.0)))
            if len(places) and better is not None:
                more = better(places.places, lambda A: reader.floor_ratios(values_at(A, claim.X, []), claim.tolerated))
                places = values_at(np.vstack([places.places, more]), claim.X, [])
            ratios = reader.floor_ratios(places, claim.tolerated)
            doubts |= bool(np.any(~(ratios >= 1.0)))
            order = np.argsort(ratios)[:6]
            worst = Values(places.places[order], places.measurements[order])
        except SingularError:
            doubts = True
    elif len(places):
        order = np.arange(len(places))[:12]
        worst = Values(places.places[order], places.measurements[order])
    if not doubts:
        return
    if not small:
        notes.counts["too large for 50 digits"] += 1
        _check_with_allowance(claim, worst, who)
        return
    notes.counts["in 50 digits"] += 1
    with in_digits():
        reader = claim.reader(True)
        try:
            reader.lower  # noqa: B018
        except SingularError:
            raise BrokenError(f"{who}: the covariance of what is published is not positive definite") from None
        if claim.joint and len(values):
            told, allowed = reader.joint(values, claim.tolerated)
            most = mpmath.mpf(min(1.0, joint_ratio)) + mpmath.mpf(SLACK)
            if not is_positive(most * allowed - told):
                ratio = largest_ratio(told, allowed)
                raise BrokenError(f"{who}: joint ratio {ratio!r} where {joint_ratio!r} is claimed and 1 is promised")
        for what, some in (("a sensitive value", values), ("an input of the region", worst)):
            ratios = reader.floor_ratios(some, claim.tolerated)
            if np.any(ratios < 1 - SLACK):
                place = int(np.argmin(ratios))
                raise BrokenError(
                    f"{who}: floor ratio {float(ratios[place])!r} at {what}, {some.places[place].tolist()}"
                    f"{'' if some.measurements[place] < 0 else ', its record'}"
                )


def _check_with_allowance(claim: Claim, worst: Values, who: str) -> None:
    """Float64 alone: 1e-6, and round-off times the condition numbers of M and Δ."""
    try:
        reader = claim.reader(False)
        told, allowed = reader.joint(claim.values, claim.tolerated)
        conditions = [np.linalg.cond(m / np.sqrt(np.outer(np.diag(m), np.diag(m)))) for m in (reader.seen, allowed)]
        allowance = 1e-6 + 100 * len(claim.X) * UNIT * max(conditions)
        ratio = largest_ratio(told, allowed) if claim.joint else 0.0
        least = float(np.min(reader.floor_ratios(worst, claim.tolerated), initial=np.inf))
    except SingularError:
        return
    if ratio > 1 + allowance or least < 1 - allowance:
        raise BrokenError(f"{who}: joint ratio {ratio!r}, floor ratio {least!r} (round-off up to {allowance:.3g})")


def noise_of(noise: Noise, X: Array, errors: Array, inside: Array) -> Any:
    """Σ from the published numbers, as a function of whether it is asked for in 50 digits.

    Combinations that are suppressed have so much noise that nothing is left of them, as far as digits go.
    """
    drawn = drawn_noise_of(noise, X, errors, inside)

    def matrix(exact: bool) -> Array:
        suppressed = noise.suppressed
        if not suppressed.shape[1]:
            return drawn(exact)
        if isinstance(noise, FunctionalNoise):
            suppressed = _functions(noise, X, exact).dot(numbers(noise.suppressing, exact))
        hidden = numbers(suppressed, exact) * (NOTHING_LEFT if exact else 1)
        return drawn(exact) + hidden.dot(hidden.T)

    return matrix


def _functions(noise: FunctionalNoise, X: Array, exact: bool) -> Array:
    trees = [describe_kernel(prior.kernel) for prior in noise.priors]
    return np.hstack([kernel(tree, X, centres, exact) for tree, centres in zip(trees, noise.centres)])


def drawn_noise_of(noise: Noise, X: Array, errors: Array, inside: Array) -> Any:
    """The same for what is drawn at random alone."""

    def matrix(exact: bool) -> Array:
        if isinstance(noise, IndependentNoise):
            return np.diag(numbers(noise.variances, exact))
        if isinstance(noise, FunctionalNoise):
            factor = _functions(noise, X, exact).dot(numbers(noise.mixing, exact))
            own = numbers(errors * inside * (noise.records.multiple if noise.records else 0.0), exact)
            return factor.dot(factor.T) + np.diag(own)
        factor = numbers(noise.factor, exact)
        squares = factor.dot(factor.T) if factor.shape[1] else numbers(np.zeros((len(X), len(X))), exact)
        return squares + np.diag(numbers(np.full(len(X), noise.shift), exact))

    return matrix


def closer_inputs(drawn: Drawn, random: Random, rows: Array) -> Any:
    """Looks for inputs of the region that are closer to the floor: around the worst, in ever smaller steps."""

    def better(places: Array, ratios_at: Any) -> Array:
        spread = np.maximum(np.ptp(places, axis=0), 1e-9 * np.abs(places).max(axis=0)) * 0.2
        best, found = places[np.argsort(ratios_at(places))[:2]], []
        for step in (1.0, 0.2, 0.04):
            moved = np.repeat(best, 12, axis=0)
            moved = moved + step * spread * random.normal(size=moved.shape) * (random.uniform(size=moved.shape) < 0.7)
            moved = _kept_combinations(drawn, moved, best, rows)
            moved = moved[drawn.area.holds(moved, rows)]
            if len(moved):
                found.append(moved)
                best = np.vstack([best, moved])
                best = best[np.argsort(ratios_at(best))[:2]]
        return np.vstack(found) if found else places[:0]

    return better


def _kept_combinations(drawn: Drawn, moved: Array, best: Array, rows: Array) -> Array:
    """Columns without bounds keep the combinations that rows have; open sides end where the rows end."""
    free = np.array([_is_free(drawn.area.tree, column) for column in range(moved.shape[1])])
    moved[:, free] = np.repeat(best, 12, axis=0)[:, free]
    if _is_open(drawn.area.tree):
        low, high = np.minimum(rows.min(axis=0), best.min(axis=0)), np.maximum(rows.max(axis=0), best.max(axis=0))
        moved = np.clip(moved, low, high)
    return moved


def _is_free(tree: dict[str, Any], column: int) -> bool:
    if "join" in tree:
        return any(_is_free(part, column) for part in tree["parts"])
    if "columns" in tree:
        return f"x{column}" not in tree["columns"]
    return "box" in tree and tree["box"][column] == [None, None]


def _is_open(tree: dict[str, Any]) -> bool:
    if "join" in tree:
        return any(_is_open(part) for part in tree["parts"])
    sides = tree["columns"].values() if "columns" in tree else tree.get("box", [])
    return any(None in side for side in sides)


# ---------------------------------------------------------------- one release


def one_release(drawn: Drawn, random: Random, folder: Path, notes: Notes) -> None:
    prior = sf.Prior(build_kernel(drawn.tree, drawn.X.shape[1]), mean=drawn.mean, noise=_noise(drawn.noise))
    others = [sf.Prior(build_kernel(tree, drawn.X.shape[1]), noise=noise) for tree, noise in drawn.others]
    options = dict(drawn.options)
    family = options.pop("family", None)
    asked: Any = prior if family is None else prior.family(**{k: tuple(v) for k, v in family.items()})
    mechanism = sf.protect(
        asked,
        drawn.X,
        drawn.area.region(),
        **_promise(drawn.tolerated),
        protects=drawn.protects,
        priors=others,
        progress=False,
        **options,
    )
    check_mechanism(drawn, mechanism, asked, random, notes)
    y = _values(random, One(drawn.tree), drawn.X, np.broadcast_to(drawn.noise, len(drawn.X)))
    y = drawn.mean + y * drawn.y_factor
    check_release(drawn, mechanism, y, One(drawn.tree), random, folder, notes)


def _noise(noise: float | list[float]) -> Any:
    return noise if isinstance(noise, float) else np.array(noise)


def _promise(tolerated: Tolerated) -> dict[str, Any]:
    if tolerated.tree is not None:
        return {"tolerance": sf.KernelTolerance(build_kernel(tolerated.tree))}
    if tolerated.matrix is not None:
        return {"tolerance": sf.MatrixTolerance(tolerated.matrix)}
    return {"alpha": tolerated.alpha} if tolerated.alpha is not None else {"floor": tolerated.floor}


def _values(random: Random, process: Process, X: Array, errors: Array) -> Array:
    """Values that the prior believes in."""
    A = process.covariance(X, X, False)
    sizes, vectors = np.linalg.eigh(A + np.diag(errors))
    return np.asarray(vectors @ (np.sqrt(np.maximum(sizes, 0.0)) * random.normal(size=len(X))))


def check_mechanism(drawn: Drawn, mechanism: sf.Mechanism, asked: Any, random: Random, notes: Notes) -> None:
    certificate, design = mechanism.certificate, mechanism.design
    notes.counts["certificates" if certificate.holds else "certificates that do not hold"] += 1
    notes.counts[f"evidence: {certificate.evidence}"] += bool(certificate.holds)
    if not certificate.holds:
        return
    n, exact = len(drawn.X), chance(random, EXACT)
    inside = drawn.area.holds(drawn.X, drawn.X)
    believed = [(drawn.tree, np.broadcast_to(drawn.noise, n)), *((t, np.full(n, v)) for t, v in drawn.others)]
    if drawn.program == "family":
        for _ in range(3):
            ends = chance(random, 0.5)
            factors = {
                k: float(random.choice(v) if ends else random.uniform(*v)) for k, v in drawn.options["family"].items()
            }
            member = asked.member(**factors)
            believed.append((describe_kernel(member.kernel), np.broadcast_to(member.noise, n)))
    rows = np.flatnonzero(inside) if drawn.protects != "function" else np.zeros(0, dtype=int)
    for tree, errors in believed[: 1 + len(drawn.others)]:
        rows = rows[errors[rows] > LEAST_OWN * One(tree).variance(drawn.X[rows], False)]
    at = promised_inputs(drawn, design.cover, random, drawn.X)
    joint = design.guarantee == "joint" or drawn.area.is_everywhere
    S = mechanism.sensitive
    if drawn.area.is_everywhere:  # any inputs there are
        S = np.unique(np.vstack([drawn.area.inputs(random, 3, drawn.X), drawn.X[:3]]), axis=0)
    for number, (tree, errors) in enumerate(believed):
        noise = noise_of(design.noise, drawn.X, np.broadcast_to(drawn.noise, n), inside)
        claim = Claim(
            drawn,
            One(tree),
            errors,
            drawn.X,
            np.arange(n),
            noise,
            drawn.tolerated,
            joint and (drawn.program != "family" or number == 0),
            S,
            rows,
            at,
        )
        better = closer_inputs(drawn, random, drawn.X) if _all_over(drawn, certificate) else None
        if not _all_over(drawn, certificate):
            claim = replace(claim, everywhere=at[: _listed(drawn, design)])
        check_claim(claim, exact, f"a reader with prior {number}", notes, certificate.joint_ratio, better)
        if "insiders" in drawn.options and number == 0:
            check_insiders(claim, mechanism, random, notes)
    check_noise(
        drawn,
        mechanism,
        Claim(
            drawn,
            One(drawn.tree),
            believed[0][1],
            drawn.X,
            np.arange(n),
            drawn_noise_of(design.noise, drawn.X, believed[0][1], inside),
            drawn.tolerated,
            joint,
            S,
            rows,
            at,
        ),
    )
    if "dp" in drawn.options:
        check_privacy(drawn, mechanism, inside)


def _all_over(drawn: Drawn, certificate: sf.Certificate) -> bool:
    """Whether it is claimed that every input of an infinite region keeps its floor."""
    proved = certificate.evidence == "proved" or (certificate.proved_share == 1.0 and "insiders" in drawn.options)
    return not drawn.area.is_finite and certificate.cover != "rows" and proved


def _listed(drawn: Drawn, design: Any) -> int | None:
    return None if drawn.area.is_finite or design.cover == "rows" else 0


def promised_inputs(drawn: Drawn, cover: str, random: Random, X: Array) -> Array:
    """Inputs at which the floor is promised, whether they were looked at or not."""
    if drawn.area.is_finite:
        return np.array(drawn.area.tree["points"])
    inside = X[drawn.area.holds(X, X)]
    return inside if cover == "rows" else np.vstack([inside, drawn.area.inputs(random, 40, X)])


def check_insiders(claim: Claim, mechanism: sf.Mechanism, random: Random, notes: Notes) -> None:
    """What some groups learn at the sensitive values, in 50 digits."""
    if claim.size > 60:
        return
    asked = claim.drawn.options["insiders"]
    groups = [[row] for row in range(len(claim.X))] if asked == "rows" else asked
    told = mechanism.certificate.insider_ratio
    worst = mechanism.certificate.insider_group
    with in_digits():
        reader = claim.reader(True)
        for number in {int(random.integers(len(groups))), max(worst, 0)}:
            ratio = insider_ratio_above(reader, groups[number], claim.values, claim.tolerated, claim.joint)
            notes.counts["insiders"] += 1
            if not ratio <= min(1.0 + SLACK, told + ALIKE):
                raise BrokenError(f"group {number} learns {ratio!r} of what it may, where {told!r} is claimed")


def check_noise(drawn: Drawn, mechanism: sf.Mechanism, claim: Claim) -> None:
    """The trace is that of Σ, no less than the bound, and the bound is no more than the least noise."""
    certificate = mechanism.certificate
    trace = float(np.trace(claim.noise(False)))
    # where most is suppressed next to nothing is drawn, and round-off in it is a matter of V
    tiny = 1e-9 * float(np.sum(claim.errors)) if certificate.objective == "predictions" else 1e-300
    if abs(trace - certificate.trace) > 1e-6 * trace + tiny:
        raise BrokenError(f"the trace is {trace!r}, and {certificate.trace!r} is claimed")
    if certificate.objective == "predictions":
        check_explained(mechanism, claim)
        return
    if certificate.trace_lower > trace * (1 + 1e-6):
        raise BrokenError(f"the trace {trace!r} is below its lower bound {certificate.trace_lower!r}")
    if trace > 0 and "weights" not in drawn.options and certificate.gap < 1 - certificate.trace_lower / trace - 1e-6:
        raise BrokenError(
            f"gap {certificate.gap!r} is less than bound {certificate.trace_lower!r} and trace {trace!r} say"
        )
    plain = drawn.program in ("joint", "compressed") and not drawn.area.is_everywhere and len(claim.values)
    if not plain or trace == 0.0:
        return
    # Tr B⁺ from the textbook; round-off in Δ⁻¹ is allowed for
    try:
        reader = claim.reader(False)
        _, delta = reader.joint(claim.values, claim.tolerated)
        cross, A = reader.cross(claim.values), reader.seen - reader.noise
        scale = np.sqrt(np.diag(delta))
        condition = np.linalg.cond(delta / scale / scale[:, None])
        G = cross @ np.linalg.solve(delta, cross.T)
    except (SingularError, np.linalg.LinAlgError):
        return
    least = float(np.maximum(np.linalg.eigvalsh((G + G.T) / 2 - A), 0.0).sum())
    allowance = 1e-6 * least + 100 * UNIT * condition * len(A) * (np.trace(G) + np.trace(A))
    if certificate.trace_lower > least + allowance:
        raise BrokenError(f"the lower bound {certificate.trace_lower!r} is above the least trace {least!r}")


def check_explained(mechanism: sf.Mechanism, claim: Claim) -> None:
    """The explained share is that of a dense posterior, and not above its bound."""
    certificate, design = mechanism.certificate, mechanism.design
    served = design.serves
    if not certificate.explained <= certificate.explained_upper + 1e-6:
        raise BrokenError(f"{certificate.explained!r} is explained, and at most {certificate.explained_upper!r} can be")
    if not abs(certificate.gap - max(0.0, 1.0 - certificate.explained / certificate.explained_upper)) <= 1e-6:
        raise BrokenError(f"gap {certificate.gap!r}")
    if claim.size + len(served) > 60 or design.noise.compressed:  # hundreds of centres take 50 digits a minute
        return
    noise = noise_of(design.noise, claim.X, claim.errors, claim.drawn.area.holds(claim.X, claim.X))
    with in_digits():
        reader = Reader(claim.process, claim.X, numbers(claim.errors, True), claim.shows, noise(True), True)
        values = values_at(served.places, claim.X, [])
        told = np.diag(reader.told(values)).astype(float)
    explained = float(served.weights @ told / (served.weights @ claim.process.variance(served.places, False)))
    if not abs(explained - certificate.explained) <= 1e-5:
        raise BrokenError(f"{explained!r} of the variance is explained, where {certificate.explained!r} is claimed")


def check_privacy(drawn: Drawn, mechanism: sf.Mechanism, inside: Array) -> None:
    """Each record inside has the asked (ε, δ): the Gaussian mechanism's exact curve, in 50 digits."""
    epsilon, span = drawn.options["dp"]
    if not np.any(inside):
        return
    noise = mechanism.noise
    sigma = noise_of(noise, drawn.X, np.broadcast_to(drawn.noise, len(drawn.X)), inside)(False)
    moved = np.diag(np.linalg.pinv(sigma, hermitian=True))[inside]
    with in_digits():
        mu = mpmath.mpf(span) * mpmath.sqrt(mpmath.mpf(float(np.max(moved))))
        e = mpmath.mpf(epsilon)
        delta = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
    if not float(delta) <= 1e-6 * (1 + 1e-3):
        raise BrokenError(f"records have δ = {float(delta)!r} at ε = {epsilon!r}, and 1e-6 was asked for")


def check_release(
    drawn: Drawn, mechanism: sf.Mechanism, y: Array, process: Process, random: Random, folder: Path, notes: Notes
) -> None:
    """Outputs, file, certificate from the file, predictions."""
    release = mechanism.release(y)
    notes.counts["releases"] += 1
    again = mechanism.release(y)
    if not np.array_equal(release.outputs, again.outputs):
        raise BrokenError("the same values were released with other noise")
    _check_steps(release)
    deviation = np.sqrt(mechanism.noise.variance())
    if np.any(deviation > 100 * release.steps):
        shown = np.abs(release.outputs - y)[deviation > 100 * release.steps]
        if np.all(shown <= release.steps[deviation > 100 * release.steps]):
            raise BrokenError("the noise is nowhere to be seen in the outputs")
    loaded = _through_file(release, folder)
    if not np.array_equal(loaded.outputs, release.outputs):
        raise BrokenError("outputs changed in the file")
    with _must_work("certify"):
        found = loaded.certify(progress=False)
    claimed = mechanism.certificate
    same = (found.holds, found.cover, found.protects) == (claimed.holds, claimed.cover, claimed.protects)
    # a proof that is found only now is welcome; one that is not found again accuses an honest file
    same = same and (found.evidence == claimed.evidence or found.evidence == "proved")
    close = np.allclose(
        [found.joint_ratio, found.trace, found.record_ratio, found.insider_ratio],
        [claimed.joint_ratio, claimed.trace, claimed.record_ratio, claimed.insider_ratio],
        rtol=1e-6,
        equal_nan=True,
    )
    if not same or not close:
        raise BrokenError(
            f"certified again from the file it is another certificate:\n{found}\nwhere there was\n{claimed}"
        )
    check_predictions(drawn, loaded, process, random, notes)


@contextmanager
def _must_work(what: str) -> Iterator[None]:
    """What was released can be used: here a refusal is a defect too."""
    try:
        yield
    except SfumatoError as error:
        raise BrokenError(f"{what} is refused: {error}") from error


def _through_file(release: sf.Release, folder: Path) -> sf.Release:
    path = folder / "release.sfumato"
    with _must_work("save or load"):
        release.save(path)
        return sf.load(path)


def _check_steps(release: sf.Release) -> None:
    outputs, steps = np.asarray(release.outputs), release.steps
    multiples = outputs / steps
    off = np.abs(multiples - np.rint(multiples)) > 1e-3 + 4 * UNIT * np.abs(multiples)
    if np.any(off):
        raise BrokenError(f"{outputs[off][0]!r} is no multiple of {steps[off][0]!r}")


def check_predictions(drawn: Drawn, release: sf.Release, process: Process, random: Random, notes: Notes) -> None:
    """Predictions are the dense posterior, to 1e-6 and a multiple of round-off times the condition number."""
    X = np.asarray(release.inputs)
    n = len(X)
    errors = np.broadcast_to(drawn.noise, n)
    places = np.vstack(
        [X[random.integers(n, size=1)], drawn.X[random.integers(n, size=3)] + 0.1 * np.ptp(drawn.X, axis=0)]
    )
    inside = drawn.area.holds(drawn.X, drawn.X)
    sigma = noise_of(release.noise, X, errors, inside)
    exact = chance(random, EXACT)

    def blur(exact: bool) -> Array:
        return sigma(exact) + np.diag(numbers(release.steps**2 / 12, exact))

    reader = Reader(process, X, numbers(errors, exact), np.arange(n), None, exact)
    values = values_at(places, X, [])
    with _must_work("predict"):
        predicted = release.predict(places)
    with in_digits():
        reader = replace(reader, noise=blur(exact))
        try:
            mean, std = reader.predicted(values, release.outputs, drawn.mean)
        except SingularError:
            notes.counts["predictions not compared"] += 1
            return
    drawn_alone = drawn_noise_of(release.noise, X, errors, inside)(False) + np.diag(release.steps**2 / 12)
    M = replace(reader, errors=errors, noise=drawn_alone, exact=False).seen
    scale = np.sqrt(np.diag(M))
    condition = np.linalg.cond(M / scale / scale[:, None])
    away = np.asarray(release.outputs) - drawn.mean
    white = float(np.sqrt(max(away @ np.linalg.lstsq(M, away, rcond=None)[0], 0.0)))
    prior = np.sqrt(np.diag(process.covariance(places, places, False)))
    # what is suppressed is noise to float64
    allowance = 1e-6 + 100 * n * UNIT * condition * (1e6 if release.noise.suppressed_count and not exact else 1.0)
    wrong = np.abs(predicted.mean - mean) > allowance * prior * (1 + white) + 1e-12 * abs(drawn.mean)
    lower = getattr(predicted, "std_lower", None)
    if release.noise.compressed and lower is not None:
        off = (std < np.asarray(lower) * (1 - 1e-6) - np.sqrt(allowance) * prior) | (
            std > predicted.std * (1 + 1e-6) + np.sqrt(allowance) * prior
        )
        wrong = wrong & False
    else:
        off = np.abs(predicted.std**2 - std**2) > allowance * prior**2
    if np.any(off) or np.any(wrong):
        raise BrokenError(
            f"predicted {predicted.mean.tolist()} ± {predicted.std.tolist()} where the posterior is {mean.tolist()} ± "
            f"{std.tolist()} (condition number {condition:.3g})"
        )
    notes.counts["predictions"] += 1


# ---------------------------------------------------------------- several outputs, and ledgers


def several_outputs(drawn: Drawn, random: Random, folder: Path, notes: Notes) -> None:
    """Two outputs that are one process: coregionalised ones, or f and its derivative."""
    columns = drawn.X.shape[1]
    noise = float(np.mean(drawn.noise))
    slope = columns == 1 and chance(random, 0.5)
    if slope:
        length = float(np.ptp(drawn.X) * random.uniform(0.1, 1.0)) or 1.0
        spread = float(drawn.tree["variance"])
        tree = {"kind": "scale", "variance": spread, "kernel": {"kind": "rbf", "lengthscale": length}}
        levels = {"a": noise, "b": noise / length**2}
        prior = sf.Prior(build_kernel(tree, 1), noise=noise)
        joint = sf.JointPrior.of(prior, {"a": sf.Value(), "b": sf.Derivative("x")}, noise=levels)
        process: Process = WithSlope(length, spread)
    else:
        skew = random.normal(size=(2, 2))
        B = skew @ skew.T + 0.1 * np.eye(2)
        B = (B + B.T) / 2
        levels = {"a": noise, "b": 2.0 * noise}
        prior = sf.Prior(build_kernel(drawn.tree, columns), noise=noise)
        joint = sf.JointPrior.coregionalised(prior, B, ["a", "b"], noise=levels)
        process = Mixed(drawn.tree, B)
    tolerated = Tolerated(alpha=drawn.tolerated.alpha or 0.3, records=drawn.tolerated.records)
    released = [["a", "b"], ["a"], ["b"]][random.integers(3)]
    about = [["a"], ["b"], ["a", "b"]][random.integers(3)]
    region = {name: drawn.area.region() for name in about}
    mechanism = sf.protect(
        joint, drawn.X, region, alpha=tolerated.alpha, protects=drawn.protects, released=released, progress=False
    )
    certificate = mechanism.certificate
    notes.counts["certificates" if certificate.holds else "certificates that do not hold"] += 1
    notes.counts[f"evidence: {certificate.evidence}"] += bool(certificate.holds)
    if not certificate.holds:
        return
    X = np.asarray(mechanism.inputs)
    errors = np.array([levels["ab"[int(number)]] for number in X[:, -1]])
    inside = drawn.area.holds(X[:, :-1], drawn.X) & np.isin(X[:, -1], ["ab".index(name) for name in about])
    rows = np.flatnonzero(inside) if drawn.protects != "function" else np.zeros(0, dtype=int)
    rows = rows[errors[rows] > LEAST_OWN * process.variance(X[rows], False)]
    at = np.vstack(
        [
            np.hstack([found, np.full((len(found), 1), "ab".index(name))])
            for name in about
            for found in [promised_inputs(drawn, certificate.cover, random, drawn.X)]
        ]
    )
    if not (_all_over(drawn, certificate) or _listed(drawn, mechanism.design) is None):
        at = at[:0]
    claim = Claim(
        drawn,
        process,
        errors,
        X,
        np.arange(len(X)),
        noise_of(mechanism.noise, X, errors, inside),
        tolerated,
        True,
        mechanism.sensitive,
        rows,
        at,
    )
    check_claim(claim, chance(random, EXACT), "a reader", notes, certificate.joint_ratio)
    y = _values(random, process, X, errors)
    given = {name: y[X[:, -1] == "ab".index(name)] for name in released}
    release = mechanism.release(given if len(released) > 1 else y)
    notes.counts["releases"] += 1
    _check_steps(release)
    loaded = _through_file(release, folder)
    with _must_work("certify"):
        found = loaded.certify(progress=False)
    if not np.array_equal(loaded.outputs, release.outputs) or found.holds != certificate.holds:
        raise BrokenError("the file has other outputs, or another certificate")


def with_ledger(drawn: Drawn, random: Random, folder: Path, notes: Notes) -> None:
    """Two or three releases of one secret: all promises that were made are kept by all of them together."""
    columns = drawn.X.shape[1]
    noise = float(np.mean(drawn.noise))
    prior = sf.Prior(build_kernel(drawn.tree, columns), noise=noise)
    process, ledger = One(drawn.tree), sf.Ledger(folder / "one.ledger")
    X = np.unique(drawn.X, axis=0)
    drawn = replace(drawn, X=X)
    remeasured = chance(random, 0.2)
    made: list[tuple[sf.Mechanism, Array, Array]] = []
    shows, errors = np.zeros(0, dtype=int), np.zeros(0)
    f = _values(random, process, X, np.zeros(len(X)))
    truth = f + np.sqrt(noise) * random.normal(size=len(X))
    try:
        for number in range(int(random.integers(2, 4))):
            chosen = np.arange(len(X)) if chance(random, 0.6) else np.flatnonzero(random.uniform(size=len(X)) < 0.7)
            chosen = chosen if len(chosen) else np.arange(len(X))
            anew = remeasured and number > 0
            mechanism = ledger.protect(
                prior,
                X[chosen],
                drawn.area.region(),
                **_promise(drawn.tolerated),
                protects=drawn.protects,
                share=float(random.uniform(0.2, 0.6)),
                remeasured=anew,
                progress=False,
            )
            mechanism.release(f[chosen] + np.sqrt(noise) * random.normal(size=len(chosen)) if anew else truth[chosen])
            first = len(errors) if anew else 0
            if anew or number == 0:
                errors = np.concatenate([errors, np.full(len(X), noise)])
                truth = truth if not anew else f + np.sqrt(noise) * random.normal(size=len(X))
            made.append((mechanism, chosen, (chosen + first).astype(int)))
    except sf.BudgetError as error:
        notes.counts[reason(error)] += 1
    if not made:
        return
    certificate = ledger.certificate()
    notes.counts["certificates" if certificate.holds else "certificates that do not hold"] += 1
    notes.counts["releases of ledgers"] += len(made)
    if not certificate.holds:
        raise BrokenError("a ledger's releases do not keep its promises together")
    everything = np.vstack([X[chosen] for _, chosen, _ in made])
    shows = np.concatenate([which for _, _, which in made])

    def noise_of_all(exact: bool) -> Array:
        blocks = [noise_of(one.noise, X[chosen], np.zeros(len(chosen)), None)(exact) for one, chosen, _ in made]
        total = numbers(np.zeros((len(everything), len(everything))), exact)
        start = 0
        for block in blocks:
            total[start : start + len(block), start : start + len(block)] = block
            start += len(block)
        return total

    kept_all_over = drawn.area.is_finite or certificate.evidence == "proved"
    for one, chosen, which in made:
        records = np.zeros(0, dtype=int)
        if drawn.protects != "function":
            records = which[drawn.area.holds(X[chosen], X[chosen])]
            if noise <= LEAST_OWN * process.variance(X[:1], False)[0]:
                records = records[:0]
        S = one.sensitive
        claim = LedgerClaim(
            drawn,
            process,
            errors,
            everything,
            shows,
            noise_of_all,
            drawn.tolerated,
            one.design.guarantee == "joint" and not drawn.area.is_everywhere,
            S,
            records,
            promised_inputs(drawn, one.design.cover, random, X[chosen]) if kept_all_over else S[:0],
        )
        check_claim(claim, chance(random, 2 * EXACT), "who reads all releases", notes, np.inf)
    found = sf.Ledger(folder / "one.ledger").certificate()
    if found.holds != certificate.holds or len(sf.Ledger(folder / "one.ledger")) != len(made):
        raise BrokenError("a ledger that is opened again says something else")


class LedgerClaim(Claim):
    """Records are numbers of measurements, which rows of several releases may show."""

    @property
    def values(self) -> Values:
        S = self.S[:0] if self.tolerated.records else self.S
        first = np.array([int(np.flatnonzero(self.shows == m)[0]) for m in self.rows], dtype=int)
        places = self.X[first]
        return Values(np.vstack([S, places]), np.concatenate([np.full(len(S), -1), self.rows]).astype(int))


FLOWS = {"outputs": several_outputs, "ledger": with_ledger}
