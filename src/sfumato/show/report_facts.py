"""What a report says, as numbers and short texts: computed from a release and a ledger alone. Nothing here sees y."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..evaluate import ObjectivesCompared, compare_objectives
from ..ledger import Ledger, Remaining
from ..models import OutputsKernel
from ..promise import SEVERITIES, Design, Finding, asked_acceptance, check_accepted, in_order
from ..proof import (
    SAME_FLOOR,
    UNCHANGED,
    Certificate,
    averages_in_words,
    changes_of,
    floor_range,
    free_columns,
    record_floors,
)
from ..regions import OutputRegion
from ..release import Release, digest_outputs
from ..text import counted, listed

#: At how many inputs of a region its floor is looked at, to say how large it is.
LOOKS = 512

#: What the words of a certificate mean.
_GUARANTEES = {
    "joint": "Each sensitive value is protected, and every total, average and difference of them as well.",
    "pointwise": "Each sensitive value is protected by itself; totals and averages may be known better.",
}
_STRUCTURES = {"full": "correlated between rows", "diagonal": "independent on every row"}
_COVERS = {
    "rows": "The promise is made at the rows of the data inside the region, and nowhere else.",
    "points": "The promise is made at the single inputs that were named.",
    "greedy": "These inputs, for which the noise was designed, stand for the whole region, and all of it is promised.",
    "exchange": "The noise was designed for these inputs, added where the floor was not yet kept; the promise is for "
    "the whole region.",
    "everywhere": "A formula protects every input there is.",
}

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MANY_DIGITS = re.compile(r"(?<![\w.])\d+\.\d{7,}(?:e[-+]?\d+)?(?![\w.])")


def number(value: float, digits: int = 4) -> str:
    """A number for people.

    >>> number(0.00031812345), number(20000.0), number(1.25e-9), number(float("nan"))
    ('0.0003181', '20,000', '1.25 × 10⁻⁹', 'not known')
    """
    if math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "no limit" if value > 0 else "none"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        factor, exponent = f"{value:.{digits - 1}e}".split("e")
        factor = factor.rstrip("0").rstrip(".") if "." in factor else factor
        return f"{factor} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def plus_minus(value: float, digits: int = 4) -> str:
    return f"± {number(value, digits)}"


def multiple(ratio: float) -> str:
    """A multiple of a floor; never rounded up to 1 from below, but for round-off.

    >>> multiple(1.00004), multiple(0.9999999), multiple(1 - 1e-12)
    ('1.00004 × floor', '0.99999 × floor', '1.00000 × floor')
    """
    shown = math.floor(ratio * 1e5) / 1e5 if ratio < 1 - 1e-9 else ratio
    return f"{shown:.5f} × floor"


def shortened(text: str) -> str:
    """Numbers with many digits rounded, for prose; the certificate has them in full.

    >>> shortened("75 ≤ age ≤ 89.80469550524477")
    '75 ≤ age ≤ 89.8047'
    """
    return _MANY_DIGITS.sub(lambda found: f"{float(found[0]):.6g}", text)


def share(value: float) -> str:
    """A share as per cent; four digits where they make a difference to all of it.

    >>> share(0.3441), share(0.0), share(2.5e-7), share(0.99954)
    ('34.4 %', '0 %', '2.5 × 10⁻⁵ %', '99.95 %')
    """
    return f"{number(100 * value, 4 if 0.99 < value < 1 else 3)} %"


@dataclass(frozen=True)
class Floor:
    """How well an output may be known: ``low`` to ``high`` over its region, which is ``where``."""

    output: str
    where: str
    low: float
    high: float

    @property
    def range(self) -> str:
        if not np.isfinite(self.low + self.high) or self.low <= 0:
            return "what the tolerance allows"
        return f"{plus_minus(self.low)} to {plus_minus(self.high)}" if self._varies else plus_minus(self.low)

    @property
    def words(self) -> str:
        return f"{self.range}, depending on the place" if self._varies else self.range

    @property
    def _varies(self) -> bool:
        return self.low > 0 and np.isfinite(self.high) and self.high - self.low > SAME_FLOOR * self.high


@dataclass(frozen=True)
class Blur:
    """How far published values of some rows of an output are from the true ones: by noise, if nothing is suppressed.

    The least, the root mean square and the largest standard deviation; ``bare`` rows of them go out unchanged.
    """

    output: str
    inside: bool
    rows: int
    least: float
    typical: float
    largest: float
    prior: float
    bare: int


@dataclass(frozen=True, eq=False)
class Account:
    """A ledger as the report sees it, which holds no y; ``recorded``: the release of the report is in it."""

    name: str
    head: str
    releases: int
    recorded: bool
    remarks: tuple[str, ...]
    remaining: Remaining

    @classmethod
    def of(cls, ledger: Any, release: Release) -> Account:
        book = ledger
        if isinstance(ledger, (str, os.PathLike)):
            if not os.path.isfile(ledger):
                raise InputError(f"ledger is {str(ledger)!r}, which is not a file; give one that sf.Ledger has made.")
            book = Ledger(ledger)
        if not isinstance(book, Ledger):
            raise InputError(f"ledger is {str(ledger)[:60]!r}; give a sf.Ledger, or the name of its file.")
        chain = book.verify()
        if not chain.entries:
            raise InputError(f"ledger {os.path.basename(book.path)!r} has no releases yet; leave it out.")
        digest = digest_outputs(np.asarray(release.outputs))
        recorded = any(entry.body["record"]["outputs_digest"] == digest for entry in chain.entries)
        name = os.path.basename(os.fspath(book.path))
        return cls(name, chain.head, len(chain.entries), recorded, chain.remarks, book.remaining())

    @property
    def kept(self) -> bool:
        return self.remaining.holds and self.recorded

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with the accounting."""
        found = []
        if not self.remaining.holds:
            found.append(
                Finding(
                    "broken-together",
                    "high",
                    f"All releases together break a promise: the ledger {self.name} has "
                    f"{counted(self.releases, 'release')}; put together, readers know more than was promised.",
                    "Publish nothing more about these values; the promise cannot be mended.",
                )
            )
        if not self.recorded:
            found.append(
                Finding(
                    "not-in-the-ledger",
                    "high",
                    "This release is not in the ledger. A ledger accounts only for what it was told. One release "
                    "beside it, and its promises are void.",
                    "Write it down with ledger.record(release), and read what is left; or do not publish it.",
                )
            )
        return found

    @property
    def promise_rows(self) -> list[tuple[str, str, str, str]]:
        """Each promise: what it is about, whether it is kept, what is left, and where readers come closest."""
        return [
            (
                f"{listed(one.promise.layout.outputs, 4)}: {one.promise.design.region.in_words(found.columns)}",
                f"yes, {found.evidence}" if found.holds else "NO",
                share(max(one.left, 0.0)),
                f"{plus_minus(found.worst_std)} at {found.worst_place}; floor {plus_minus(found.worst_floor)}",
            )
            for one in self.remaining.promises
            for found in [one.certificate]
        ]


@dataclass(frozen=True, eq=False)
class Facts:
    """All that a public report is made from: a release, with a certificate that was computed again.

    Guarantee: it is made from a ``Release`` and a ledger, which hold no y, and from nothing else; only on the owner's
    own page findings that were made with the truth join (``for_owner``).
    """

    release: Release

    @classmethod
    def of(cls, release: Release, account: Account | None = None) -> Facts:
        """Compute the certificate again; a ledger answers the question about other releases."""
        certificate = release.certify(progress=False)
        if account is not None:
            others = [one for one in certificate.findings if one.code != "only-release"]
            certificate = replace(certificate, findings=in_order([*account.findings, *others]))
        return cls(replace(release, certificate=certificate))

    def for_owner(self, findings: Sequence[Finding], accept: Any) -> Facts:
        """The same with what a rehearsal or an audit found, and what the owner accepts: for the owner's page."""
        codes, mine = asked_acceptance(accept), {one.code for one in findings}
        # in place of the sentences without numbers that are published
        others = [one for one in self.certificate.findings if one.code not in mine]
        found = replace(self.certificate, findings=in_order([*others, *findings]))
        check_accepted(codes, found.findings)
        certificate = found.accepting({*self.certificate.accepted, *codes})
        return replace(self, release=replace(self.release, certificate=certificate))

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate

    @property
    def design(self) -> Design:
        return self.release.design

    @property
    def verdict_in_words(self) -> str:
        return self.certificate.verdict_in_words

    @property
    def why(self) -> str:
        """What is wrong; or how many points are below."""
        findings = self.certificate.findings
        if self.certificate.verdict == "do not publish":
            return next((one for one in findings if one.stops), findings[0]).text
        accepted = sum(one.severity == "high" for one in findings)
        care, questions = (sum(one.severity == severity for one in findings) for severity in ("medium", "low"))
        said = [counted(accepted, "point") + " that you accepted"] if accepted else []
        said += [counted(care, "point") + " to take care of"] if care else []
        said += [counted(questions, "question") + " that only you can answer"] if questions else []
        return f"Below: {', '.join(said[:-1])}{' and ' if said[1:] else ''}{said[-1]}." if said else ""

    @property
    def labels(self) -> dict[str, str]:
        """What the findings are called, and what that means."""
        findings = self.certificate.findings
        said = {
            label: means for key, (label, means) in SEVERITIES.items() if any(one.label == label for one in findings)
        }
        accepted = {"accepted": "the owner knows of it and publishes all the same"}
        return (accepted if any(one.label == "accepted" for one in findings) else {}) | said

    @cached_property
    def released(self) -> tuple[str, ...]:
        """The outputs that are published."""
        return self.design.inputs.present

    @property
    def never_released(self) -> tuple[str, ...]:
        return tuple(name for name in self.design.inputs.outputs if name not in self.released)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the inputs, without the column that says which output a row is about."""
        return self.design.inputs.names[: self.design.inputs.features]

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the table that the inputs came from: a category is one, whatever its levels."""
        encoding = self.design.inputs.encoding
        return self.columns if encoding is None else encoding.sources

    @cached_property
    def quantities(self) -> tuple[str, ...]:
        """Outputs without inputs, such as an average."""
        kernel, outputs = self.design.prior.kernel, self.design.inputs.outputs
        if not isinstance(kernel, OutputsKernel):
            return ()
        return tuple(name for place, name in enumerate(outputs) if not kernel.takes_input(place))

    @property
    def rows(self) -> int:
        return len(self.design.inputs)

    @cached_property
    def rows_inside(self) -> int:
        """How many rows have inputs in the region."""
        region = self.design.region
        return sum(int(np.sum(region.contains_for_any_output(part.inputs()))) for part in self.design.inputs.parts())

    @property
    def steps(self) -> list[tuple[str, float]]:
        """To multiples of what each released output is rounded."""
        resolution = self.release.resolution
        steps = resolution if isinstance(resolution, tuple) else (resolution,)
        named = zip(self.design.inputs.outputs, steps, strict=False)
        return [(name, step) for name, step in named if name in self.released]

    @cached_property
    def has_errors(self) -> bool:
        """Whether a record is more than f at its inputs."""
        return any(bool(np.any(np.asarray(prior.noise) > 0)) for prior in self.design.priors)

    @property
    def protected(self) -> str:
        """What the floors are about, in the singular."""
        if not self.design.protects_function:
            return "record"
        return "typical value" if self.has_errors else "true value"

    @cached_property
    def floors(self) -> tuple[Floor, ...]:
        """One for each output that is protected: those of f, or of the records where f is not promised."""
        region, design = self.design.region, self.design
        if not design.protects_function:
            return self.record_floors
        if not isinstance(region, OutputRegion):
            where = shortened(region.in_words(design.inputs.names))
            return (self._floor(self.release.output_name, where, self._promised),)
        found = []
        for place, part in region.parts:
            name, own = design.inputs.outputs.names[place], self._promised[self._promised[:, -1] == place]
            where = "" if name in self.quantities else shortened(part.in_words(design.inputs.plain.names))
            found.append(self._floor(name, where, own))
        return tuple(found)

    @cached_property
    def record_floors(self) -> tuple[Floor, ...]:
        """One for each output whose records are protected."""
        inputs, region = self.design.inputs, self.design.region
        if not len(self.design.records):
            return ()
        floors, about = record_floors(self.design), inputs.outputs.numbers(inputs.values[self.design.records])
        parts = dict(region.parts) if isinstance(region, OutputRegion) else {}
        found = []
        for place in np.unique(about).tolist():
            own, part = floors[:, about == place], parts.get(place)
            where = (part.in_words(inputs.plain.names)) if part else region.in_words(inputs.names)
            name = inputs.outputs.names[place] if inputs.outputs.numbered else self.release.output_name
            found.append(Floor(name, shortened(where), float(own.min()), float(own.max())))
        return tuple(found)

    @cached_property
    def _promised(self) -> Array:
        """Some inputs for which the promise is made."""
        design = self.design
        if design.tolerance.listed_at is not None:
            return design.tolerance.listed_at
        if design.region.points is not None:
            return design.region.points
        if design.cover == "rows":
            return design.rows_inside()
        found = np.vstack([design.region.probes(LOOKS, design.representatives), design.sensitive])
        return np.asarray(found[design.region.contains(found)])

    def _floor(self, name: str, where: str, points: Array) -> Floor:
        if not len(points):
            return Floor(name, where, np.nan, np.nan)
        return Floor(name, where, *floor_range(self.design, points))

    def floor_of(self, name: str) -> Floor | None:
        return next((one for one in self.floors if one.output == name), None)

    @property
    def promise(self) -> str:
        """The promise in one sentence."""
        known, records = "; nor ".join(self._known(floor) for floor in self.floors), len(self.design.records)
        model = "one of these models" if self.design.others or self.design.families else "this model"
        sentence = f"No reader with {model} can know {known}"
        if records and self.design.protects_function:
            several = len(self.record_floors) > 1
            better = [f"{floor.range}{f' ({floor.output})' if several else ''}" for floor in self.record_floors]
            sentence += f", nor any of the {counted(records, 'single record')} there better than {', '.join(better)}"
        if self.design.guarantee == "joint":
            values = "total, average or difference of these values"
            sentence += f", nor {averages_in_words(self.design, records, values)}"
        return f"{sentence}."

    @property
    def not_promised(self) -> str:
        """What the promise leaves out of records or of the function; nothing where it is about both."""
        certificate, inside = self.certificate, counted(self.rows_inside, "record")
        if not self.design.protects_function:
            return (
                "About the typical value at given inputs nothing is promised: readers may learn it. Nor is anything "
                "promised about records outside the region."
            )
        if not certificate.about:
            return ""
        learnt = f": readers learn {share(certificate.record_learnt)} of the variance of the one that they know best"
        return (
            f"This is about {certificate.about}. About the {inside} in the region nothing is promised"
            f"{learnt if math.isfinite(certificate.record_learnt) else ''}."
        )

    @property
    def about_whom(self) -> str:
        """Whose values the promise is about."""
        rows = f"the {self.rows_inside:,} of {counted(self.rows, 'row')} whose inputs lie in the region"
        if not self.rows_inside:
            return "nobody: no row has inputs in the region. The promise is about what holds there all the same."
        if not self.design.protects_function:
            return f"whoever stands behind {rows}, row by row."
        if self.certificate.about:
            return f"nobody in particular: what is typical in the region, not {rows}."
        between = "" if self.design.cover == "rows" else ", and what holds at all other inputs of the region"
        return f"whoever stands behind {rows}, row by row{between}."

    @property
    def against_whom(self) -> str:
        """To which readers the promise is made."""
        models = len(self.design.priors)
        said = (
            f"every reader who holds {'the model' if models == 1 else f'any of the {models} models'} named below and "
            "knows all that is published: the inputs, how the noise was made and the published values."
        )
        if self.design.insiders is None:
            return f"{said} Readers who hold true values of some rows, such as their own, are not counted in."
        return (
            f"{said} Also {self.design.insiders.in_words}, such as their own: of what these people did not know, the "
            "release tells them no larger share."
        )

    def _known(self, floor: Floor) -> str:
        cover = self.design.cover
        if not self.design.protects_function:
            many = counted(len(self.design.records), "record")
            of_these = f"any of the {many}" if len(self.floors) == 1 else "any of the records"
            return f"{of_these} of {floor.output} better than {floor.range} where {floor.where}"
        typical = "the typical value of " if self.has_errors and floor.output not in self.quantities else ""
        how = f"{typical}{floor.output} better than {floor.words}"
        if floor.output in self.quantities:
            return how
        if cover == "everywhere":
            return f"{how}, anywhere"
        if self.design.region.points is not None:
            return f"{how} at {floor.where}"
        return f"{how} {'at any row of the data' if cover == 'rows' else 'anywhere'} where {floor.where}"

    @property
    def protected_rows(self) -> list[tuple[str, str, str, str]]:
        """Each protected output: where it is sensitive, its floor, and whether it is published."""
        about = f": {self.protected}s" if self.has_errors else ""
        both = [(floor, about) for floor in self.floors]
        both += [(floor, ": records") for floor in self.record_floors if self.design.protects_function]
        return [
            (
                f"{floor.output}{about if floor.output not in self.quantities else ''}",
                floor.where or "one quantity, without inputs",
                floor.words,
                self.how_published if floor.output in self.released else "never published",
            )
            for floor, about in both
        ]

    @property
    def suppressed(self) -> int:
        """How many combinations of the rows are not published."""
        return self.design.noise.suppressed_count

    @property
    def how_published(self) -> str:
        return "published in part, and with noise" if self.suppressed else "published with noise"

    @property
    def free_columns(self) -> list[str]:
        """Columns that the region leaves to the combinations that rows of the data have."""
        return free_columns(self.design)

    @property
    def quantity_rows(self) -> list[tuple[str, str, str, str]]:
        """Of each quantity without inputs: how well it was known, how well it is known now, and the floor."""
        release, found = self.release, []
        outputs = self.design.inputs.outputs
        for name in self.quantities:
            output = outputs.number(name)
            before = release.prior.variance(outputs.rows(release.prior.kernel.place(output)[None], output))
            now, floor = release.predict(None, output=name).std, self.floor_of(name)
            known = (plus_minus(float(before[0]) ** 0.5), plus_minus(float(now[0])))
            found.append((name, *known, "nothing is promised" if floor is None else floor.words))
        return found

    @cached_property
    def worst_prior(self) -> float:
        """How well readers knew the worst input before the release, or the worst record: the prior's deviation."""
        worst, prior = self.certificate.worst_input[None, :], self.design.prior
        own = 0.0 if self.design.protects_function else prior.noise
        if isinstance(own, np.ndarray):
            own = np.min(own[np.all(self.design.inputs.values == worst, axis=1)])
        return float(np.sqrt(prior.variance(worst)[0] + own))

    @property
    def worst_kept(self) -> float:
        """The share of their uncertainty there that readers keep."""
        return self.certificate.worst_std / self.worst_prior if self.worst_prior > 0 else float("nan")

    @property
    def certificate_rows(self) -> list[tuple[str, str, str]]:
        """The fields of the certificate: what each is called, its value, and what it means."""
        found, design, about_f = self.certificate, self.design, self.protected != "record"
        rows_only = design.cover == "rows" and about_f
        rows = [
            (
                "Holds",
                "yes" if found.holds else "NO",
                "The promise is kept wherever it was made. Without this nothing is released.",
            ),
            (
                "Evidence",
                found.evidence_in_words,
                "Proved means: for every input at which the promise is made, also between those that were looked at. "
                "Searched means: in a part of the region an input that was not looked at may be known better.",
            ),
            (
                "Promise",
                found.promise,
                "The exact wording; f is the function behind the data, s a sensitive input, and a record one value of "
                "the data.",
            ),
            ("Model", found.prior, "What readers are assumed to believe beforehand. It is published."),
            ("Guarantee", found.guarantee, _GUARANTEES[found.guarantee]),
            (
                "Closest to the floor",
                multiple(found.floor_ratio),
                "The least error of readers with this model over the floor that was seen in the region. At least 1 is "
                f"needed{', but here only the rows are promised' if rows_only else ''}.",
            ),
        ]
        if rows_only:
            means = "The same at the rows inside the region, where it was promised."
            rows.append(("Closest where promised", multiple(found.promised_ratio), means))
        limit = "at most 100 %" if found.guarantee == "joint" else "not promised here"
        rows += [
            (
                "Tolerance used",
                share(found.joint_ratio),
                f"How much of what may be learnt is learnt, of any weighted combination of sensitive values ({limit}).",
            ),
            (
                "Worst input",
                found.worst_place,
                "Where readers come closest to the floor, of all inputs that were looked at.",
            ),
            (
                "Error there",
                f"{plus_minus(found.worst_std, 6)}; floor {plus_minus(found.worst_floor, 6)}",
                f"How well the best reader knows the {self.protected} at the worst input, and how well they may.",
            ),
            (
                "Kind of noise",
                _STRUCTURES[found.structure],
                "Correlated noise hides the same with less of it; independent noise is easier to explain.",
            ),
            *self._optimality_rows,
            (
                "Spill",
                share(found.spill),
                f"The share of the {'change' if self.suppressed else 'noise'} that falls on rows outside the region.",
            ),
        ]
        if about_f:
            rows.append(("Designed for", f"{found.sensitive:,} inputs ({found.cover})", _COVERS[found.cover]))
        rows += [
            (
                "Looked at",
                f"{found.checked:,} inputs",
                "Inputs at which it was computed what readers know. A proof goes from them to all others.",
            ),
            (
                "Round-off",
                number(found.allowance, 2),
                "Rounding error that was given to the reader, to be on the safe side.",
            ),
        ]
        if found.compression > 0:
            means = "How much of the noise is there only because the design was compressed."
            if self.design.serves is not None:
                means = "How much readers may explain less only because the design was compressed, as a share."
            rows.append(("Compression", share(found.compression), means))
        return rows

    @property
    def _optimality_rows(self) -> list[tuple[str, str, str]]:
        """How much noise there is, or how well it serves, beside the best that is possible."""
        found, gap = self.certificate, share(self.gap) if self.gap_known else "not known"
        drawn = "; what is suppressed is none of it" if self.suppressed else ""
        means = f"The sum of the noise variances of all rows, in squared units{drawn}."
        total = ("Total noise", number(found.trace), means)
        if self.design.serves is not None:
            return [
                total,
                (
                    "Suppressed",
                    counted(self.suppressed, "combination"),
                    "Weighted sums of rows that are not published.",
                ),
                (
                    "Readers explain",
                    share(found.explained),
                    f"Of the variance of f {self.where_served}, with this model. The noise was made for that.",
                ),
                (
                    "Most possible",
                    "not known" if self.counts_others else share(found.explained_upper),
                    "Other releases of the ledger have a part in it."
                    if self.counts_others
                    else "What any noise with this promise leaves readers at most. It is proved, not estimated.",
                ),
                ("Gap", gap, "The share by which readers could explain more at most."),
            ]
        return [
            total,
            (
                "Least possible",
                number(found.trace_lower),
                "What any noise with this promise needs at least. It is proved, not estimated."
                if found.trace_lower > 0
                else "Not known here: earlier releases have a part in it.",
            ),
            ("Gap", gap, "The share of the noise that could be saved at most."),
        ]

    @property
    def counts_others(self) -> bool:
        """Whether what readers explain counts other releases of a ledger, so that the best is not known."""
        return self.design.serves is not None and math.isnan(self.certificate.explained_upper)

    @cached_property
    def compared(self) -> ObjectivesCompared | None:
        """What readers cannot explain where predictions are to be the best, beside other noises."""
        return compare_objectives(self.design, self.certificate)

    @cached_property
    def where_served(self) -> str:
        """The inputs that are to stay useful, in words."""
        assert self.design.serves is not None
        where = "outside the region" if self.serves_outside else "that are to stay useful"
        return f"at {counted(len(self.design.serves), 'input')} {where}"

    @cached_property
    def serves_outside(self) -> bool:
        """Whether all inputs that are to stay useful lie outside the region."""
        serves = self.design.serves
        return serves is not None and not np.any(self.design.region.contains_for_any_output(serves.places))

    @property
    def unexplained(self) -> str:
        """What readers cannot explain at the served inputs; beside the least noise, where that is known."""
        found = share(max(0.0, 1.0 - self.certificate.explained))
        least = None if self.compared is None else self.compared.least
        return found if least is None else f"{found} instead of {share(least)}"

    @property
    def gap_known(self) -> bool:
        return not math.isnan(self.certificate.gap)

    @property
    def gap(self) -> float:
        return max(self.certificate.gap, 0.0)

    @cached_property
    def blurs(self) -> tuple[Blur, ...]:
        """The change of the rows inside and outside the region, of each output; of many rows, a sample."""
        design = self.design
        rows, outputs = design.representatives.values, design.inputs.outputs
        variances, inside = changes_of(design), design.region.contains_for_any_output(rows)
        found = []
        for name in self.released:
            own = outputs.numbers(rows) == outputs.number(name)
            for within in (True, False):
                mask = own & (inside == within)
                if np.any(mask):
                    prior = float(np.sqrt(np.mean(design.prior.variance(rows[mask]))))
                    least, mean, most = (float(np.sqrt(size(variances[mask]))) for size in (np.min, np.mean, np.max))
                    bare = int(np.sum(np.sqrt(variances[mask]) <= UNCHANGED * prior))
                    found.append(Blur(name, within, int(np.sum(mask)), least, mean, most, prior, bare))
        return tuple(found)

    def rows_label(self, output: str, inside: bool) -> str:
        """What some rows are called in a table."""
        label = f"{output}, " if len(self.released) > 1 else "rows "
        return f"{label}{'inside the region' if inside else 'outside'}"

    def typical_noise(self, inside: bool) -> str:
        """That of the first output."""
        found = next((blur for blur in self.blurs if blur.inside == inside), None)
        return "no rows" if found is None else plus_minus(found.typical)

    @property
    def noise_rows(self) -> list[tuple[str, ...]]:
        """Rows inside and outside, how many there are, their noise, and what that is of the natural spread."""
        return [
            (
                self.rows_label(blur.output, blur.inside),
                f"{blur.rows:,}",
                plus_minus(blur.typical),
                plus_minus(blur.largest),
                f"{number(blur.typical / blur.prior, 3)} ×" if blur.prior > 0 else "–",
            )
            for blur in self.blurs
        ]

    @property
    def sample_in_words(self) -> str:
        sample = len(self.design.representatives)
        return "" if sample >= self.rows else f", from a sample of {sample:,} rows"
