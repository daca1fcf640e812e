"""The pitfalls that apply to one release: what breaks its promise, what weakens it, what nobody but its owner knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InputError
from ..models import describe_kernel
from ..proof import TOLERANCE
from .report_facts import Facts
from .report_html import counted, listed, number, share

Severity = Literal["breaks", "weakens", "ask", "costs"]

#: From the worst to the least, with what they are called.
SEVERITIES: dict[Severity, tuple[str, str]] = {
    "breaks": ("breaks the promise", "the promise is void until this is settled"),
    "weakens": ("weakens", "the promise is kept, but it protects less than it seems to"),
    "ask": ("to be answered", "only you can know; the promise counts on it"),
    "costs": ("costs accuracy", "nothing is given away; the data are less useful"),
}

#: From how many inputs on a region cannot be looked at everywhere.
MANY_DIMENSIONS = 4

#: Noise outside the region is worth a word from this share on.
MUCH_SPILL = 0.25


@dataclass(frozen=True)
class Pitfall:
    """Something to settle before publication, in words for the one who signs."""

    severity: Severity
    title: str
    why: str
    remedy: str


def pitfalls_of(facts: Facts, ledger: bool = False) -> list[Pitfall]:
    """All that apply, the worst first; ``ledger``: one accounts for earlier releases."""
    found = [
        *_broken(facts),
        *_from_notes(facts),
        *_about_promise(facts),
        *_about_region(facts),
        *_about_noise(facts),
        *_about_prior(facts),
        *_to_answer(facts, ledger),
        *_costs(facts),
    ]
    order = list(SEVERITIES)
    return sorted(found, key=lambda one: order.index(one.severity))


def _broken(facts: Facts) -> Iterator[Pitfall]:
    release, certificate = facts.release, facts.certificate
    if release.unsafe:
        yield Pitfall(
            "breaks",
            "The noise came from a known seed",
            "Whoever guesses the seed takes all noise off and has the true values, to the last digit. Such a release "
            "is for experiments.",
            "Release again without unsafe_seed; do not publish this one.",
        )
    if not certificate.holds:
        yield Pitfall(
            "breaks",
            "The certificate does not hold",
            f"Computed again, the promise is not kept: readers get to {number(certificate.promised_ratio)} of the "
            "floor where it was promised, or know some weighted average better than allowed.",
            "Do not publish. Protect again.",
        )
    if facts.claimed and not certificate.holds:
        yield Pitfall(
            "breaks",
            "The file claims more than can be proved",
            "The release says that its certificate holds; computed again from the same file it does not.",
            "Ask where the file comes from; it was damaged or made by something else.",
        )


def _from_notes(facts: Facts) -> Iterator[Pitfall]:
    for note in facts.certificate.notes:
        if note.startswith("PROTECTED ONE BY ONE"):
            yield Pitfall(
                "breaks",
                "Several outputs, protected one by one",
                f"{_sentence(note)}. Each protected alone, together they are not.",
                "Publish one of them only, or say how they hang together with sf.JointPrior (--relation) and protect "
                "them as one.",
            )
        if note.startswith("NO FLOOR AT"):
            yield Pitfall(
                "breaks",
                "No floor in a part of the region",
                f"{_sentence(note)}.",
                "Choose a smaller alpha or a tolerance that is below the prior variance everywhere.",
            )


def _about_promise(facts: Facts) -> Iterator[Pitfall]:
    certificate = facts.certificate
    if facts.design.cover == "rows":
        low = 1 - certificate.floor_ratio
        between = (
            f"Between rows, at {facts.worst_place}, readers get {share(low)} below the floor."
            if low > TOLERANCE
            else "Between rows nothing is promised, although readers happen to stay above the floor here."
        )
        yield Pitfall(
            "weakens",
            "Only the rows are protected, not what lies between them",
            between,
            'Protect again with cover="auto" (--cover auto): then the whole region is promised.',
        )
    if certificate.guarantee == "pointwise":
        more = (
            f"some average is learnt {number(certificate.joint_ratio, 3)} times as well as a joint promise would allow"
            if certificate.joint_ratio > 1
            else "here averages happen to be protected as well, but that is not promised"
        )
        yield Pitfall(
            "weakens",
            "Each value is protected by itself; averages and differences are not",
            f"Totals, averages and differences of sensitive values may be known better: {more}.",
            'Use guarantee="joint" (--guarantee joint) where totals are sensitive too.',
        )
    if any("floor varies" in note for note in certificate.notes):
        yield Pitfall(
            "weakens",
            "The floor varies over the region",
            "It was looked at only where it was checked; a narrow peak between these inputs would not be seen.",
            "Give one floor for the whole region, or one that changes slowly.",
        )


def _about_region(facts: Facts) -> Iterator[Pitfall]:
    if facts.free_columns:
        yield Pitfall(
            "weakens",
            f"The region leaves {counted(len(facts.free_columns), 'column')} free",
            f"{listed(facts.free_columns)}: the promise covers the combinations that rows of the data have, and no "
            "others.",
            'Bound these columns, or use sf.Box(…, free="ranges").',
        )
    if facts.ends_of_data:
        yield Pitfall(
            "weakens",
            "The region ends where the data end",
            f"Nothing is promised for {listed(facts.ends_of_data)}, and readers can extrapolate from where the data "
            "end.",
            "If that part is sensitive too, give the region a bound further out.",
        )
    if facts.design.inputs.features >= MANY_DIMENSIONS and facts.design.region.points is None:
        yield Pitfall(
            "weakens",
            f"{facts.design.inputs.features} inputs: a region that cannot be looked at everywhere",
            f"The promise was checked at {facts.certificate.checked:,} inputs, with walks towards worse ones and a "
            "small margin for what lies between.",
            "Keep to few input columns where you can, or audit at inputs of your own choice.",
        )
    if facts.compressed:
        sample = len(facts.design.lookout)
        looked = "" if sample >= facts.rows else f" Inputs were looked for around {sample:,} of {facts.rows:,} rows."
        yield Pitfall(
            "weakens",
            "A compressed design",
            "The noise is a random function of the inputs. Readers are given all that it leaves out, so the stated "
            f"errors are lower bounds; every row in the region was checked.{looked}",
            'Use method="subspace" where the rows fit into memory.',
        )


def _about_noise(facts: Facts) -> Iterator[Pitfall]:
    noise = facts.design.noise
    if facts.design.structure != "diagonal" and 0 < noise.rank < facts.rows:
        yield Pitfall(
            "ask",
            f"Does anybody hold the true values of {noise.rank:,} of these rows?",
            f"The noise has {counted(noise.rank, 'independent source')} for {counted(facts.rows, 'row')}. Who knows as "
            "many true values as there are sources can compute the noise, and take it off everywhere.",
            "Take rows that others hold out of the data, choose a larger floor, or use independent noise "
            '(structure="diagonal"), which costs more.',
        )


def _about_prior(facts: Facts) -> Iterator[Pitfall]:
    report = facts.design.prior.fit_report
    if report is None:
        yield Pitfall(
            "ask",
            "Were the model’s parameters learnt from the sensitive rows?",
            "Mean, variance, lengthscale and error variance are published. This report cannot see where they come "
            "from. Learnt from the rows inside the region, they carry a little of the secret, which is not accounted "
            "for.",
            "Learn them outside: fit_prior(…, exclude=region), --fit-outside; or take them from elsewhere.",
        )
    elif report.rows_excluded < facts.rows_inside:
        used = "all rows" if report.rows_excluded == 0 else "rows inside the region too"
        yield Pitfall(
            "weakens",
            "The model’s parameters were learnt from the sensitive rows",
            f"They were fitted to {used} ({report.rows_used:,}) and are published, so they carry a little of the "
            "secret, which is not accounted for.",
            "Learn them outside: fit_prior(…, exclude=region), or --fit-outside.",
        )


def _to_answer(facts: Facts, ledger: bool) -> Iterator[Pitfall]:
    if not ledger:
        yield Pitfall(
            "ask",
            "Is this the only release of these values?",
            "Two releases of one secret can be averaged. This report knows of this one only: the promise is for it "
            "alone.",
            "Publish once, or let a ledger account for all releases (sf.Ledger, --ledger).",
        )
    if not facts.design.others:
        yield Pitfall(
            "ask",
            "Could a reader have a better model?",
            "The promise is to readers with the model in the certificate. Someone who rightly believes in a longer "
            "lengthscale, a trend or a physical law can know more.",
            "Name the models that you fear in priors=[…]; let sf.audit (sfumato audit) try some on your data.",
        )
    yield Pitfall(
        "ask",
        "What else is known or published?",
        "Values next to the region that others know, an earlier raw version, or another column that follows from this "
        "one (a velocity from a position, a tax from an income) are not part of the promise.",
        "Publish related columns as one (sf.JointPrior, --relation), enlarge the region, or choose a larger floor.",
    )
    yield Pitfall(
        "ask",
        "May the inputs be seen?",
        f"{listed(facts.columns)} {'is' if len(facts.columns) == 1 else 'are'} published as "
        f"{'it is' if len(facts.columns) == 1 else 'they are'}, for every row. Only {listed(facts.released)} is "
        "blurred; that a row is in the table is not hidden.",
        "If being in the table is the secret, this method is not for you.",
    )
    if facts.errors > 0:
        yield Pitfall(
            "ask",
            "Are the measurement errors real?",
            f"The model says that the true values carry errors of ± {number(facts.errors)}, which hide something by "
            "themselves. If they are smaller than that, the promise is broken.",
            "When in doubt protect with a smaller error variance.",
        )


def _costs(facts: Facts) -> Iterator[Pitfall]:
    if facts.certificate.spill > MUCH_SPILL:
        yield Pitfall(
            "costs",
            f"{share(facts.certificate.spill)} of the noise falls outside the region",
            "Values just outside tell about those just inside, so they have to be blurred too.",
            "A rougher kernel (Matérn), a smaller region or a larger alpha spill less.",
        )
    if _is_smooth(facts.design.prior.kernel):
        yield Pitfall(
            "costs",
            "A very smooth model",
            "Under an RBF kernel any small piece of a function determines all of it, so noise has to spread far; and "
            "real data are seldom that smooth.",
            'Prefer kernel="matern52" when in doubt, and compare.',
        )


def _is_smooth(kernel: Any) -> bool:
    try:
        return "'kind': 'rbf'" in repr(describe_kernel(kernel))
    except InputError:
        return False


def _sentence(note: str) -> str:
    """What a note says after the words in capitals."""
    said = note.partition(":")[2].strip()
    return said[:1].upper() + said[1:]
