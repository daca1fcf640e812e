"""Findings: what a certificate says besides its numbers, on the check and on the design.

All that follows from a design is found here, once, for ``protect``, ``certify``, the command line and the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from gpytorch.kernels import RBFKernel

from ..arrays import Array
from ..data import Column
from ..models import Prior
from ..promise import (
    NOT_ANY_RECORD,
    Design,
    Finding,
    FloorTolerance,
    TabulatedFloor,
    promised_records,
)
from ..text import counted, listed
from .insiders import InsidersKnown
from .knowledge import Knowledge
from .promise_words import free_columns, share_in_words
from .records import RecordsFromSums, RecordsKnown
from .region import Reason
from .related_outputs import findings_on_outputs
from .roundoff import TOLERANCE
from .sums import Summary

#: Noise outside the region is a finding from this share on, and noise that may be needless from that.
MUCH_SPILL, MUCH_GAP = 0.25, 0.1

#: Predictions that may be further from the best than this share are a finding.
FAR_FROM_BEST = 0.01

_LEARN_OUTSIDE = "Learn them outside: fit_prior(…, exclude=region), --fit-outside; or take them from elsewhere."
_PROTECT_AGAIN = 'Protect again: with cover="greedy" or "exchange", with method="eigh", or with a smaller alpha.'


def finding_on_promise(promised_ratio: float, joint_ratio: float) -> Finding:
    """A promise that is broken."""
    learnt = f"learn {joint_ratio:.6g} of what they may" if np.isfinite(joint_ratio) else "may learn anything"
    return Finding(
        "does-not-hold",
        "high",
        f"The promise does not hold: readers get to {promised_ratio:.6g} of the floor where it was promised (at least "
        f"1 is needed), and {learnt} about some weighted average.",
        _PROTECT_AGAIN,
    )


#: Why a part of a region is not proved, and what to do about it.
_WHY_OPEN = {
    "short": (
        "inputs come so close to the floor that nothing could be proved around them",
        "Protect again: designs keep back what a proof needs.",
    ),
    "floor": ("the floor is known at some inputs only, not between them", "Give one floor for the whole region."),
    "kernel": (
        "the kernel, or one of its parts, is none whose smoothness is known",
        "Use a kernel that is known: RBF, Matérn (1/2 in one column), rational quadratic, periodic, cosine, spectral "
        "mixture, linear or polynomial, their sums and products.",
    ),
    "columns": ("too many columns vary at once", "Bound fewer columns, or protect a smaller region."),
    "combinations": (
        "the region has too many combinations of the columns that it leaves free",
        "Bound these columns, or protect a smaller region.",
    ),
    "work": ("proving the rest would have taken too long", "Protect a smaller region, or use a smoother kernel."),
    "singular": (
        "the covariance of the published values is singular to working precision",
        "Give the prior the variance of the errors in the data (noise).",
    ),
}
_EXACTLY = 'Give fewer rows, which can be protected exactly (method="eigh").'
_INSIST = 'evidence="proved" (--evidence proved) takes longer over it.'


def findings_on_gap(design: Design, gap: float) -> Iterator[Finding]:
    """Noise that is far above what is known to be needed, or predictions far below what may be possible."""
    if design.serves is not None:
        if gap > FAR_FROM_BEST:
            yield Finding(
                "predictions-below-best",
                "note",
                f"At the inputs that are to stay useful readers explain at least {100 * (1 - gap):.3g} % of what any "
                "noise with this promise could let them explain; it may be that more is possible, and was not found.",
                _EXACTLY if design.noise.compressed else 'Try cover="exchange", or a smaller accuracy.',
            )
        return
    if gap > MUCH_GAP:
        remedy = 'Try cover="exchange".'
        if design.noise.compressed:
            remedy = _EXACTLY
        elif design.structure == "diagonal":
            remedy = 'Use structure="full", which needs less.'
        yield Finding(
            "noise-above-least",
            "note",
            f"Up to {100 * gap:.3g} % of the noise may be needless: less than {100 * (1 - gap):.3g} % of it is not "
            "possible, and nothing in between was found.",
            remedy,
        )


def findings_on_families(design: Design) -> Iterator[Finding]:
    """What is not shown of every reader of a family."""
    if any(not family.is_proved for family in design.families):
        yield Finding(
            "family-at-members-only",
            "medium",
            "The promise is made to every reader of the family of priors, but for this kernel it was looked at for "
            "some lengthscales only; nothing is proved between them.",
            "Use RBF, Matérn or rational quadratic kernels, or sums and products with them, for which the whole range "
            "is proved.",
        )
    elif design.families and design.guarantee == "joint":
        yield Finding(
            "family-averages",
            "note",
            "Each value is promised to every reader of the family. Weighted averages are promised to them relative to "
            f"{len(design.members)} processes that stand for all readers, and not to what each of them believes of the "
            "average.",
        )


def findings_on_evidence(
    design: Design, holds: bool, share: float, reasons: Sequence[Reason], insisted: bool = False
) -> Iterator[Finding]:
    """What the promise rests on where it is not proved; ``reasons`` say why not, though a proof was ``insisted`` on."""
    if not holds or share == 1.0:
        return
    known = reasons or ("floor" if design.tolerance.listed_at is not None else "combinations",)
    why, remedies = zip(*(_WHY_OPEN[reason] for reason in known), strict=True)
    yield Finding(
        "searched",
        "medium",
        f"The promise is searched, not proved: {share_in_words(share)} of the region is proved. Elsewhere no input "
        f"was found that falls short, but one that was not looked at may. The reason: {'; '.join(why)}.",
        " ".join([*remedies, *([_INSIST] if "work" in known and not insisted else [])]),
    )


def findings_on_check(
    design: Design, readers: Sequence[Knowledge], points: Array, worst: Array, floor_ratio: float, joint_ratio: float
) -> Iterator[Finding]:
    """What checking the promise at ``points`` has shown; readers came closest to the floor at ``worst``."""
    if any(reader.is_singular for reader in readers):
        yield Finding(
            "singular-covariance",
            "high",
            "The covariance of the published values is singular to working precision, so nothing can be certified.",
            _PROTECT_AGAIN,
        )
    if design.guarantee == "joint" and not design.lists_all_it_promised:
        named = design.region.points if design.cover == "points" else None
        count = design.promised if named is None else max(design.promised or 0, len(named))
        yield Finding(
            "sensitive-inputs-missing",
            "high",
            f"The joint promise was made for {count} sensitive inputs, but {len(design.sensitive)} are listed: they "
            "are not all there, so it cannot be checked.",
            "Ask its owner for the file that release.save wrote.",
        )
    bare = int(np.sum(np.any([reader.floors(points) <= 0 for reader in readers], axis=0)))
    if bare:
        yield Finding(
            "no-floor-somewhere",
            "high",
            f"There is no floor at {bare} of the {len(points)} inputs that were checked: there the tolerance is as "
            "large as the prior variance, so a release may tell everything.",
            "Choose a smaller alpha, or a tolerance that is below the prior variance everywhere.",
        )
    if design.cover == "rows" and design.region.points is None:
        place = design.inputs.in_words(worst)
        below = f"between them, at {place}, readers get {100 * (1 - floor_ratio):.2g} % below the floor"
        above = "between them nothing is promised, although readers happen to stay above the floor"
        yield Finding(
            "rows-only",
            "medium",
            f"Only the rows are protected: {below if floor_ratio < 1 - TOLERANCE else above}.",
            'Use cover="auto" (--cover auto) to protect the whole region.',
        )
    if design.guarantee == "pointwise":
        better = f"some weighted average is learnt {joint_ratio:.3g} times as well as a joint promise would allow"
        not_better = "here they happen to be protected as well, but that is not promised"
        yield Finding(
            "averages-not-promised",
            "medium",
            "Each value is protected by itself; totals, averages and differences may be known better: "
            f"{better if joint_ratio > 1 + TOLERANCE else not_better}.",
            'Use guarantee="joint" (--guarantee joint) where totals are sensitive too.',
        )
    promised = (
        design.region.promised_at_rows(design.representatives.values)
        if design.region.points is None and design.cover == "rows"
        else design.region.points
    )
    if design.guarantee == "joint" and promised is not None and 0 < len(design.sensitive) < len(promised):
        undetermined = max(reader.undetermined(promised) for reader in readers)
        yield Finding(
            "fewer-sensitive-inputs",
            "note",
            f"The joint promise is made for {len(design.sensitive)} of the {len(promised)} inputs; they determine the "
            f"others to within {undetermined:.1e} of their standard deviation.",
        )


def findings_on_compression(design: Design, summary: Summary, cost: float, proved: bool) -> Iterator[Finding]:
    """What a reader of the certificate of functional noise should know."""
    noise = design.noise.as_function()
    if noise.records is not None:
        costs = f", and costs at most {cost:.2g} of the noise" if design.serves is None else ""
        yield Finding(
            "independent-noise",
            "note",
            f"Every record in the region also carries noise of its own, of {noise.records.multiple:.4g} times the "
            f"variance of what is a record's own (V). That needs no comparison of records with each other{costs}; an "
            "exact design blurs them together with f.",
        )
    if not design.protects_function:
        return
    left_out = max(
        summary.residual(place, weighted=False) / float(np.mean(prior.variance(design.representatives.values)))
        for place, prior in enumerate(design.priors)
    )
    costs = "" if noise.records else f" That costs at most {cost:.1e} of the noise."
    if design.serves is not None:
        costs = f" That costs at most {cost:.1e} of what readers explain where they are served."
    yield Finding(
        "compression-cost",
        "note",
        f"The noise is compressed: a random function around {len(summary)} centres. Readers are given all that these "
        f"leave out of f ({left_out / summary.rows:.1e} of the variance of a row), so standard deviations are lower "
        f"bounds.{costs}",
    )
    if not proved and len(design.representatives) < summary.rows:
        yield Finding(
            "searched-around-a-sample",
            "low",
            f"Could readers come closest to the floor at an unusual input? Worse inputs were looked for around "
            f"{len(design.representatives):,} of the {summary.rows:,} rows; every row in the region was checked.",
            'Use method="subspace" where the rows fit into memory.',
        )


def findings_on_design(design: Design, spill: float) -> Iterator[Finding]:
    """What follows from the design alone: how the noise was made, and what the promise counts on."""
    yield from findings_on_outputs(design)
    yield from _on_parameters(design)
    yield from _on_region(design)
    yield from _to_answer(design)
    yield from _on_objective(design)
    if spill > MUCH_SPILL:
        yield Finding(
            "noise-outside",
            "note",
            f"{100 * spill:.3g} % of {_what_changes(design)} falls outside the region: values just outside tell about "
            "those just inside, so they have to be blurred too.",
            "A rougher kernel (Matérn), a smaller region or a larger alpha spill less.",
        )
    if design.noise.shift > 0:
        yield Finding(
            "safety-noise",
            "note",
            f"Every row also carries independent noise of standard deviation {np.sqrt(design.noise.shift):.1e}, which "
            "keeps the promise safe from round-off.",
        )
    if design.weights is not None:
        by_output = design.inputs.outputs.numbered and design.weights.ndim == 1
        yield Finding(
            "weighted-rows",
            "note",
            "Noise was counted relative to the weights of the rows (if none were given: to the prior variance of their "
            "output), and so are the gap and the spill."
            if by_output
            else "Rows were weighted: the gap is that of the weighted sum of variances, not of the trace.",
        )


def _what_changes(design: Design) -> str:
    return "the change to the data" if design.noise.suppressed_count else "the noise"


def _on_objective(design: Design) -> Iterator[Finding]:
    """The best predictions count on the prior more than the least noise does, inside and outside."""
    suppressed = design.noise.suppressed_count
    if design.serves is None or not (suppressed or design.noise.trace > 0.0):
        return
    missing = ""
    if suppressed:
        many = f"{counted(suppressed, 'combination')} of the {len(design.inputs):,} rows"
        missing = f" {many} {_is(suppressed)} not published; there the values show what the rest predicts."
    yield Finding(
        "trusts-the-prior",
        "low",
        "Is the prior right? The noise is the best for predictions with it at "
        f"{counted(len(design.serves), 'input')}.{missing} To readers with this prior the promise is the same as under "
        "the least noise. Readers who rightly believe in a smoother function or in smaller errors may learn far more "
        "of the region than under the least noise; and where the prior is wrong, predictions can be worse.",
        'Rehearse the prior and audit the release (sf.rehearse, sf.audit); when in doubt give objective="noise".',
    )


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _on_parameters(design: Design) -> Iterator[Finding]:
    """Where the published parameters of the prior come from; a file does not show it, so good news is not believed."""
    report = design.prior.fit_report
    inside = int(np.sum(design.region.contains_for_any_output(design.representatives.values)))
    whole = len(design.representatives) == len(design.inputs)
    if report is not None and report.rows_excluded < (inside if whole else min(inside, 1)):
        yield learnt_inside(report.rows_used, report.rows_excluded)
        return
    yield Finding(
        "parameters-unknown",
        "low",
        "Were the parameters of the model learnt from the sensitive rows? Mean, variance, lengthscale and error "
        "variance are published. Learnt from the rows inside the region, they carry a little of the secret, which "
        "is not accounted for.",
        _LEARN_OUTSIDE,
    )


def learnt_inside(rows_used: int, rows_excluded: int = 0, too_few: int | None = None) -> Finding:
    """The parameters of the prior were learnt from rows in the region, where ``too_few`` lie outside of it."""
    used = "all rows" if rows_excluded == 0 else "rows inside the region too"
    why = "" if too_few is None else f", because only {too_few:,} lie outside the region"
    return Finding(
        "parameters-from-sensitive-rows",
        "medium",
        f"The parameters of the model were learnt from {used} ({rows_used:,}){why}. They are published, so they carry "
        "a little of the secret, which is not accounted for.",
        _LEARN_OUTSIDE if too_few is None else "Take them from elsewhere, or give a smaller region.",
    )


def _on_region(design: Design) -> Iterator[Finding]:
    if free := free_columns(design):
        yield Finding(
            "free-columns",
            "low",
            f"Are other combinations sensitive? The region leaves {listed(free)} free: the promise covers the "
            "combinations that rows of the data have, and no others.",
            'Bound these columns, or use sf.Box(…, free="ranges").',
        )
    if sides := _ends_of_data(design):
        yield Finding(
            "ends-with-the-data",
            "low",
            f"Is f sensitive beyond the data? The region ends where the data end: nothing is promised for "
            f"{listed(sides)}, and readers can extrapolate.",
            "If that part is sensitive too, give the region a bound further out.",
        )
    if design.tolerance.varies and design.region.points is None and design.cover != "rows":
        yield Finding(
            "floor-varies",
            "low",
            "Does the floor change slowly? It is a function of the inputs, so it is known, and the promise searched, "
            "only at the inputs that were looked at; a narrow peak between them would not be seen.",
            "Give one floor for the whole region, or one that changes slowly.",
        )


def _ends_of_data(design: Design) -> list[str]:
    """Sides on which the region ends where the data end, in words."""
    if design.region.points is not None or design.cover == "everywhere" or not design.protects_function:
        return []
    lower, upper = design.region.bounding_box(design.inputs.dimension)
    found, encoding = [], design.inputs.encoding
    for place, name in enumerate(design.inputs.names[: design.inputs.features]):
        column = Column(name) if encoding is None else encoding.of_number(place)
        if column.kind == "category":
            continue  # there is nothing between or beyond its levels
        values = design.representatives.values[:, place]
        if np.isfinite(upper[place]) and upper[place] == values.max():
            found.append(f"{name} above {column.value_in_words(upper[[place]])}")
        if np.isfinite(lower[place]) and lower[place] == values.min():
            found.append(f"{name} below {column.value_in_words(lower[[place]])}")
    return found


def _to_answer(design: Design) -> Iterator[Finding]:
    """Questions that only the owner can answer."""
    rows, rank, suppressed = design.inputs, design.noise.rank, design.noise.suppressed_count
    between = [f"{counted(rank, 'independent source')} of noise"] if rank else []
    between += [f"{counted(suppressed, 'combination')} that {_is(suppressed)} not published"] * (suppressed > 0)
    if design.insiders is not None:
        yield Finding(
            "rows-held-by-others",
            "low",
            f"Could people pool what they hold? The promise is kept to {design.insiders.in_words}. Those who put the "
            "rows of several together may learn more.",
            "Give those who may do so one label (insiders, --insiders).",
        )
    elif design.structure != "diagonal" and 0 < rank + suppressed < len(rows):
        yield Finding(
            "rows-held-by-others",
            "low",
            "Does anybody hold true values of these rows, such as their own? Between the published and the true values "
            f"of {len(rows):,} rows stand {' and '.join(between)}: each true value that somebody knows takes some of "
            "that off the others, and as many as there are take off all of it.",
            'Use insiders="rows" or labels (--insiders) where people hold rows. Take rows that others hold out of the '
            'data, or use independent noise (structure="diagonal"), which costs more.',
        )
    yield Finding(
        "only-release",
        "low",
        "Is this the only release of these values? Two releases of one secret can be averaged; the promise is for this "
        "one alone.",
        "Publish once, or let a ledger account for all releases (sf.Ledger, --ledger).",
    )
    if not design.others:
        lengthscale = "" if design.families else "a longer lengthscale, "
        yield Finding(
            "better-model",
            "low",
            "Could a reader have a better model? The promise is to readers with the model in the certificate. Someone "
            f"who rightly believes in {lengthscale}a trend or a physical law can know more.",
            "Promise it to a family of priors (prior.family) or name the models that you fear in priors=[…]; let "
            "sf.rehearse and sf.audit try some on your data.",
        )
    if _is_smooth(design.prior):
        yield Finding(
            "smooth-kernel",
            "low",
            "Are the data as smooth as the model says? Under an RBF kernel any small piece of a function determines "
            "all of it, so noise has to spread far; and real data are seldom that smooth.",
            'Prefer kernel="matern52" when in doubt, and compare.',
        )
    yield Finding(
        "known-elsewhere",
        "low",
        "What else is known or published? Values next to the region that others know, an earlier raw version, or "
        "another column that follows from this one (a velocity from a position, a tax from an income) are not part of "
        "the promise.",
        "Publish related columns as one (sf.JointPrior, --relation), enlarge the region, or choose a larger floor.",
    )
    names = rows.sources
    yield Finding(
        "inputs-are-published",
        "low",
        f"May the inputs be seen? {listed(names)} {'is' if len(names) == 1 else 'are'} published without noise, for "
        "every row. Only outputs are blurred; that a row is in the table is not hidden.",
        "If being in the table is the secret, this method is not for you.",
    )
    yield from _on_errors(design)


def _on_errors(design: Design) -> Iterator[Finding]:
    """Which way the promise errs where V is not what the model says (docs/assumptions.md)."""
    errors = float(np.sqrt(np.max(np.asarray(design.prior.noise), initial=0.0)))
    if errors == 0:
        return
    tolerance = design.tolerance.alone
    if design.protects == "function" or isinstance(tolerance, (FloorTolerance, TabulatedFloor)):
        means = "which hide something by themselves. If they are smaller than that, the promise is broken."
        remedy = "When in doubt protect with a smaller error variance."
    elif design.protects == "records":
        means = "and the promise is a share of these. If they are larger than that, more is learnt of a record."
        remedy = "When in doubt protect with a larger error variance."
    else:
        means = (
            "which are a part of each record and hide something of the function. If they are smaller than that, more "
            "is learnt of the function; if they are larger, more of a record."
        )
        remedy = "When in doubt name priors with a smaller and with a larger error variance in priors=[…]."
    yield Finding(
        "measurement-errors",
        "low",
        f"Are the measurement errors real? The model says that records carry errors of ± {errors:.4g}, {means}",
        remedy,
    )


def _is_smooth(prior: Prior) -> bool:
    return any(isinstance(part, RBFKernel) for part in prior.kernel.modules())


def findings_on_insiders(design: Design, known: InsidersKnown, searched: bool) -> Iterator[Finding]:
    """What whoever holds rows learns."""
    assert design.insiders is not None
    if known.ratio > 1 + TOLERANCE:
        yield Finding(
            "insiders-learn-more",
            "high",
            f"Whoever holds the rows of group {known.worst_group} learns {known.ratio:.4g} times what they may.",
            _PROTECT_AGAIN,
        )
    if searched:
        yield Finding(
            "insiders-searched",
            "medium",
            f"The promise to insiders is checked for all {len(design.insiders):,} groups, of all combinations of the "
            f"{len(design.sensitive):,} sensitive inputs and {len(design.records):,} records; between the sensitive "
            "inputs it is searched, not proved.",
            'protects="records" (--protects records) needs no inputs between them.',
        )
    if known.determined:
        yield Finding(
            "known-to-insiders",
            "note",
            f"Some group's own rows determine up to {known.determined:,} of the sensitive values; of these nothing can "
            "be promised to that group.",
        )


def findings_on_records(design: Design, known: RecordsKnown | RecordsFromSums) -> Iterator[Finding]:
    """What goes out of the records inside the region."""
    bare = known.bare
    if bare.count:
        unchanged = f"{known.raw:,} of them unchanged" if known.raw else "none of them unchanged"
        remedy = "Choose a larger floor, or a smaller alpha."
        if design.protects == "function":
            remedy = 'Use protects="both" or "records" (--protects) where rows are people\'s.'
        yield Finding(
            "raw-records",
            "high",
            f"{bare.count:,} of the {known.count:,} records in the region go out with noise far below their own spread "
            f"(±{bare.noise:.3g} where that is ±{bare.own:.3g}), "
            f"{unchanged}: whoever looks one up reads it off.",
            remedy,
        )
    if design.protects == "both" and len(design.priors) > 1:
        alone = promised_records(design.protects, design.priors[:1], design.region, design.inputs)
        if len(alone) > len(design.records):
            yield Finding(
                "records-not-promised",
                "medium",
                f"{len(alone) - len(design.records):,} of the {len(alone):,} records in the region are not promised: "
                "one of the priors says that they have nothing of their own (noise 0), so that only f is.",
                "Give the noise of the data to all priors.",
            )
    if design.protects == "function" and bare.any_own:
        yield Finding(
            "function-only",
            "note",
            f"The promise is about {NOT_ANY_RECORD}: of the best-known record in the region readers learn "
            f"{100 * known.most_learnt:.4g} % of the variance.",
        )
