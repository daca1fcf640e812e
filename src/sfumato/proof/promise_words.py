"""The promise of a design as a sentence, with how large its floors are."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..arrays import Array
from ..promise import (
    MOST_OF_OWN,
    NOT_ANY_RECORD,
    Design,
    FloorTolerance,
    FractionTolerance,
    OutputTolerance,
    Reader,
    Tolerance,
)
from .records import RecordsFromSums, RecordsKnown

#: A floor that varies by less than this share over the region is told as one number.
SAME_FLOOR = 1e-6

#: Averages of more sensitive values than this are not taken apart to say how much of them may be learnt.
MOST_AVERAGED = 600


def share_in_words(share: float) -> str:
    """A share that is proved, from below: less than all of it is never called 100 %.

    >>> share_in_words(0.99999), share_in_words(1.0), share_in_words(0.0)
    ('99.9 %', '100 %', 'none')
    """
    if share in (0.0, 1.0):
        return "100 %" if share == 1.0 else "none"
    return f"{np.floor(1000.0 * share) / 10.0:.1f} %"


def promise_in_words(design: Design, points: Array, known: RecordsKnown | RecordsFromSums) -> str:
    """The promise as a sentence; ``points`` are inputs of the region, to say how large its floor is.

    ``known`` are the records in the region.
    """
    where = design.region.in_words(design.inputs.names)
    free = free_columns(design)
    if free:
        where += f"; {', '.join(free)} as observed together in the data"
    named = 1 + len(design.others)
    who = "no reader with this prior" if named == 1 else f"no reader with any of the {named} priors"
    if design.families:
        who = "no reader of the family" if named == 1 else f"{who} or of the family"
    allowed = design.tolerance.in_words(design.inputs.outputs.names)
    if not isinstance(design.tolerance, OutputTolerance):  # that begins with the name of an output
        allowed = allowed[:1].upper() + allowed[1:]
    joint = design.guarantee == "joint"
    count = known.promised
    records = f"any of the {count:,} records" if count != 1 else "the record"
    if not design.protects_function:
        promise = f"{who} can know {records} in the region ({where}) better than {_record_floor_in_words(known)}"
        average = f", nor {averages_in_words(design, count)}" if joint else _AVERAGES_KNOWN
        return f"{promise}{average}{_to_insiders(design)}. {allowed}"
    at_rows = design.cover == "rows" and design.region.points is None
    place = f"at any {'row of the data' if at_rows else 's'} in the region ({where})"
    promise = f"{who} can know f(s) better than {_floor_in_words(design, points)} {place}"
    if count:
        promise += f", nor {records} there better than {_record_floor_in_words(known)}"
    if joint:
        inputs = "at the sensitive input" if design.promised == 1 else f"at the {design.promised} sensitive inputs"
        several = "" if design.cover == "everywhere" else f" ({inputs})"
        promise += f", nor {averages_in_words(design, count)}{several}"
    else:
        promise += _AVERAGES_KNOWN
    if design.protects == "function" and known.bare.any_own:
        promise += f". f(s) is {NOT_ANY_RECORD}"
    return f"{promise}{_to_insiders(design)}. {allowed}"


def averages_in_words(design: Design, records: int, them: str = "weighted average of them") -> str:
    """What a joint promise says of averages, in shares that may be learnt; ``records`` are promised too, so many."""
    share, own = _most_of_averages(design, records)
    # other readers of a family are promised single values alone
    named = "with the prior itself" if not design.others else "with one of the priors that are named"
    who = f"({named}) " if design.families else ""
    if not np.isfinite(share):
        return f"{who}any {them} better than the tolerance allows"
    part = f"what is the records' own in any {them}" if own else f"the variance of any {them}"
    # rounded up: never less than what may be learnt
    return f"{who}learn more than {np.ceil(1e4 * share - 1e-6) / 100:g} % of {part}"


def _most_of_averages(design: Design, records: int) -> tuple[float, bool]:
    """The largest share of an average that may be learnt, from above, and whether of the records' own part alone.

    Where the same share may be learnt of f everywhere it is that, or the share of what is a record's own where that is
    larger. Else it is the largest eigenvalue of Δ in units of the covariance at the sensitive inputs; NaN where these
    are many, or there are records too.
    """
    tolerance, priors = design.tolerance.alone, (design.prior, *design.others)
    if isinstance(tolerance, FractionTolerance):
        return tolerance.alpha, not design.protects_function
    if not design.protects_function:
        owns = np.concatenate([np.atleast_1d(prior.noise) for prior in priors])
        kept = _one_floor(tolerance) ** 2
        # as long as the records' own part is enough, nothing is asked of the function (RecordTolerance)
        return (float(1.0 - kept / np.max(owns)), True) if kept <= MOST_OF_OWN * np.min(owns) else (np.nan, False)
    # everywhere, where there are no sensitive inputs, one share is the same at any
    everywhere = design.cover == "everywhere"
    places = design.inputs.sample.values[:MOST_AVERAGED] if everywhere else design.sensitive
    if not 0 < len(places) <= MOST_AVERAGED:
        return np.nan, False
    found = []
    for prior in priors:
        shares = tolerance.budget(prior, places) / prior.variance(places)
        most = float(np.max(shares))
        if isinstance(tolerance, FloorTolerance) and np.ptp(shares) <= SAME_FLOOR * most:
            if records:
                # of a record's own part 1 − floor²/(K + V) may be learnt
                own = float(np.max(prior.noise))
                variance = float(np.max(prior.variance(places)))
                most = (most * variance + own) / (variance + own)
        elif records or everywhere:
            return np.nan, False
        else:
            delta, covariance = tolerance.matrix(prior, places), prior.covariance(places)
            try:
                most = float(scipy.linalg.eigh(delta, covariance, eigvals_only=True)[-1])
            except np.linalg.LinAlgError:
                return np.nan, False
        found.append(most)
    return min(max(found), 1.0), False


def _one_floor(tolerance: Tolerance) -> float:
    """The floor that is asked for everywhere; NaN where it varies, or none is."""
    is_one = isinstance(tolerance, FloorTolerance) and not callable(tolerance.value)
    return float(tolerance.value) if is_one else np.nan  # type: ignore[attr-defined]


def _to_insiders(design: Design) -> str:
    if design.insiders is None:
        return ""
    return f". {design.insiders.in_words.capitalize()} learns no larger share of what they did not know"


_AVERAGES_KNOWN = "; a weighted average of several of them may be known better"


def record_floors(design: Design) -> Array:
    """How well each record that is promised may be known at best: a row for each prior that readers may hold."""
    values = [Reader(prior).values(design.inputs, design.records) for prior in design.examined]
    return np.array([design.tolerance.floor(one, one.places(design.inputs.values[:0])) for one in values])


def _record_floor_in_words(known: RecordsKnown | RecordsFromSums) -> str:
    low, high = float(np.min(known.asked)), float(np.max(known.asked))
    return f"±{low:.6g}" if high - low <= SAME_FLOOR * high else f"±{low:.4g} (up to ±{high:.4g})"


def _floor_in_words(design: Design, points: Array) -> str:
    outputs = design.inputs.outputs
    if not outputs.numbered:  # its name need not be said
        return _range_in_words(design, points)
    about = [(name, points[outputs.numbers(points) == number]) for number, name in enumerate(outputs)]
    return ", ".join(f"{_range_in_words(design, own)} ({name})" for name, own in about if len(own))


def floor_range(design: Design, points: Array) -> tuple[float, float]:
    """The least and the largest floor at ``points``, for readers with any of the priors."""
    floors = np.concatenate([design.tolerance.floor(prior, points) for prior in design.examined])
    return float(np.min(floors)), float(np.max(floors))


def _range_in_words(design: Design, points: Array) -> str:
    low, high = floor_range(design, points)
    if not np.isfinite(low + high) or low <= 0:
        return "the tolerance allows"
    if high - low <= SAME_FLOOR * high:
        return f"±{low:.6g}"
    return f"±{low:.4g} (up to ±{high:.4g}, depending on s{' and the prior' if len(design.examined) > 1 else ''})"


def free_columns(design: Design) -> list[str]:
    """The columns that the region leaves to the combinations that rows of the data have."""
    if design.region.points is not None or design.cover in ("rows", "everywhere"):
        return []
    owners = (*design.inputs.owners, *design.inputs.names[design.inputs.features :])
    return list(dict.fromkeys(name for name, free in zip(owners, design.free_columns, strict=True) if free))
