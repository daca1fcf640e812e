"""The certificate: what was promised, by how much it is kept, and what that means (examination.py makes it)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ..arrays import Array
from ..data import ONE_OUTPUT, Encoding, Finest, Outputs
from ..errors import InputError
from ..promise import (
    ALARMING,
    NOT_ANY_RECORD,
    SEVERITIES,
    Finding,
    Verdict,
    accepting,
    in_order,
    verdict,
    verdict_in_words,
)
from ..text import counted, plain, shown_lines
from ..views import boxed_table
from .privacy_loss import PrivacyLoss, gaussian_epsilon
from .promise_words import share_in_words
from .roundoff import TOLERANCE

Evidence: TypeAlias = Literal["proved", "searched"]

#: A date with a time of the day.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")

_STRUCTURES = {"full": "correlated noise", "diagonal": "independent noise on every row"}


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was promised, and by how much it is kept.

    Guarantee: when ``holds`` is true, a reader who knows the inputs, the prior (any of the priors), V, Σ and every
    published value keeps a standard deviation of at least the floor at each input for which the promise was made. With
    the joint guarantee ``K_SX M⁻¹ K_XS ⪯ Δ`` holds at the sensitive inputs as well. Each is kept to within 1e-9, with
    round-off counted against it.

    ================== ===================================================================================
    ``promise``        what is promised, in words, and ``prior``: to readers with which prior or priors
    ``guarantee``      "joint" or "pointwise", and ``structure``: "full" or "diagonal" noise
    ``holds``          the promise is kept where it was made
    ``evidence``       "proved": a theorem says that the promise is kept at every input for which it was made
                       (docs/proof.md); "searched": a part of the region could not be proved, and no input was found
                       there that falls short
    ``proved_share``   how much of the region is proved, from 0 to 1 (1: all of it)
    ``joint_ratio``    λ_max(Δ^{-1/2} K_SX M⁻¹ K_XS Δ^{-1/2}), at most 1, except that
                       ``guarantee="pointwise"`` does not promise it
    ``floor_ratio``    the least std(f(s)|W) / floor(s) that was seen in the region: at least 1, except that
                       ``cover="rows"`` does not promise it between the rows
    ``promised_ratio`` the same over the inputs for which it was promised
    ``worst_input``    where ``floor_ratio`` is reached, with ``worst_std`` and ``worst_floor``
    ``trace``          the noise that is drawn: Tr Σ; combinations of rows that are suppressed are none of it
    ``trace_lower``    a lower bound for any noise (of this structure) that keeps the promise at the sensitive inputs
                       and suppresses nothing
    ``gap``            how far at most what was optimised (Tr Σ, Tr CΣ, or ``explained``) is from its best value, as a
                       share
    ``objective``      what the noise is the best for: "noise", or "predictions" at the served inputs
    ``explained``      the share of the variance of f at the served inputs that readers explain (NaN: the objective is
                       the noise), and ``explained_upper``: no noise that keeps the promise leaves them more
    ``suppressed``     how many combinations of the rows are not published
    ``spill``          the share of the noise that falls on rows outside the region; where combinations of rows are
                       suppressed, of the change from true to published values
    ``protects``       what is promised about: "both", "function" (f, not any single record) or "records"
    ``records``        how many records lie inside the region, and ``raw_records``: how many of them go out unchanged
    ``record_noise``   the least standard deviation of the noise, or of that change, on a record inside the region, in
                       units
    ``record_ratio``   the least std(y_i|W) / floor over the records that are promised: at least 1 (NaN: none are)
    ``record_learnt``  the largest share of the variance of a record inside the region that the best reader learns
    ``record_sensitivity`` by how many standard deviations of the noise a unit in one of these records moves the
                       release (``dp`` turns it into ε); infinite where the noise has no part of its own on a record
    ``insider_ratio``  the most that an insider learns, as a share of what they may: at most 1 (NaN: none were asked
                       for), and ``insider_group``: the number of the group that learns it (−1: none)
    ``compression``    how much of the noise compression costs at most, as a share (0: not compressed)
    ``sensitive``      how many sensitive inputs the noise was designed for
    ``checked``        at how many inputs it was computed what readers know: the nodes of a proof, or those of a search
    ``allowance``      the round-off that was subtracted from M
    ``outputs``        the names of the outputs, where several are one process; the last column of an input is their
                       number
    ``findings``       what else a person should know (``sf.Finding``), the worst first; ``verdict`` follows from them
    ``encoding``       how the columns of a table became numbers, where they were dates or categories
    ================== ===================================================================================
    """

    promise: str
    prior: str
    guarantee: str
    structure: str
    cover: str
    holds: bool
    evidence: Evidence
    proved_share: float
    joint_ratio: float
    floor_ratio: float
    promised_ratio: float
    worst_input: Array
    worst_std: float
    worst_floor: float
    trace: float
    trace_lower: float
    gap: float
    objective: str
    explained: float
    explained_upper: float
    suppressed: int
    spill: float
    protects: str
    records: int
    raw_records: int
    record_noise: float
    record_ratio: float
    record_learnt: float
    record_sensitivity: float
    insider_ratio: float
    insider_group: int
    compression: float
    sensitive: int
    checked: int
    allowance: float
    columns: tuple[str, ...]
    outputs: tuple[str, ...]
    findings: tuple[Finding, ...]
    encoding: Encoding | None = field(default=None, repr=False)

    @property
    def verdict(self) -> Verdict:
        """ "publish", "publish with care" or "do not publish"."""
        return verdict(self.holds, self.findings)

    @property
    def verdict_in_words(self) -> str:
        """The verdict as a heading, and what the promise rests on."""
        return verdict_in_words(self.holds, self.findings, self.evidence == "proved", self.about)

    @property
    def about(self) -> str:
        """What the promise is about where records are more than f at their inputs and it is not about both."""
        if any(one.code == "function-only" for one in self.findings):
            return NOT_ANY_RECORD
        return "single records, not the typical value at given inputs" if self.protects == "records" else ""

    def dp(self, range: float, delta: float = 1e-6) -> PrivacyLoss:
        """The record-level differential privacy of the release: ε at ``delta``, for records that span ``range``.

        Neighbours differ in one record inside the region by at most ``range``. That is what an insider who holds all
        other records can tell. It is infinite where the noise has no part of its own on a record.
        """
        if not (isinstance(range, (int, float)) and 0.0 < range < np.inf):
            raise InputError(f"range is {range!r}; give the largest difference between two records, in their units.")
        if not (isinstance(delta, (int, float)) and 0.0 < delta < 1.0):
            raise InputError(f"delta is {delta!r}; give a small probability, such as 1e-6.")
        mu = float(range) * self.record_sensitivity
        if not np.isfinite(mu):
            text = (
                "no differential privacy (ε = ∞): the noise has no part of its own on some record inside the region, "
                "so who knows all other records can take it off"
            )
            return PrivacyLoss(np.inf, delta, mu, text)
        epsilon = gaussian_epsilon(mu, delta)
        text = (
            f"(ε = {epsilon:.3g}, δ = {delta:g})-differentially private for each record inside the region that may lie "
            f"anywhere in a range of {range:g} (μ = {mu:.3g})"
        )
        return PrivacyLoss(epsilon, delta, mu, text)

    def with_findings(self, *more: Finding) -> Certificate:
        """The same certificate with more findings."""
        return replace(self, findings=in_order((*self.findings, *more)))

    def accepting(self, codes: Collection[str]) -> Certificate:
        """The same certificate with findings of these codes accepted, where they can be."""
        return replace(self, findings=accepting(self.findings, codes))

    @property
    def accepted(self) -> frozenset[str]:
        """The codes of the findings that the owner accepted."""
        return frozenset(one.code for one in self.findings if one.accepted)

    @property
    def worst_place(self) -> str:
        """The worst input in words; of dates the day, or the minute where the promise speaks of times."""
        outputs = Outputs.several(self.outputs) if self.outputs else ONE_OUTPUT
        finest: Finest = "m" if _TIME.search(self.promise) else "D"
        return outputs.place_in_words(self.columns, self.worst_input, encoding=self.encoding, finest=finest)

    @property
    def evidence_in_words(self) -> str:
        """What the promise rests on."""
        if not self.holds:
            return "none: the promise does not hold, or could not be checked"
        if self.evidence == "proved":
            return "proved: it is kept at every input for which it was made, and not only at those looked at"
        if self.proved_share == 1.0 and np.isfinite(self.insider_ratio):
            return (
                "proved for readers who hold no rows; for insiders searched: no input was found that falls short "
                "between the sensitive ones"
            )
        return (
            f"searched: {share_in_words(self.proved_share)} of the region is proved; elsewhere no input was found "
            "that falls short"
        )

    def rows(self) -> list[tuple[str, str]]:
        """The certificate as label and value, for tables."""
        floor = f"{self.floor_ratio:.9g} (at least 1)"
        if self.floor_ratio < 1 - TOLERANCE:
            floor = f"{self.floor_ratio:.9g}  BELOW 1" + (", not promised there" if self.holds else "")
        joint = f"{self.joint_ratio:.9g} (at most 1)"
        if self.guarantee == "pointwise":
            joint = f"{self.joint_ratio:.6g}, not promised"
        return [
            ("promise", self.promise),
            ("to readers with the", self.prior),
            ("holds", "yes" if self.holds else "NO"),
            ("evidence", self.evidence_in_words),
            ("guarantee, noise", f"{self.guarantee}, {_STRUCTURES.get(self.structure, self.structure)}"),
            ("joint ratio", joint),
            ("floor ratio over the region", floor),
            ("worst input", self.worst_place),
            ("reader's std there", f"{self.worst_std:.6g}, floor {self.worst_floor:.6g}"),
            ("trace of the noise", f"{self.trace:.6g}" + ", apart from what is not published" * (self.suppressed > 0)),
            *self._best_as_rows(),
            ("spill outside the region", f"{100 * self.spill:.1f} %"),
            *self._records_as_rows(),
            *self._insiders_as_rows(),
            ("cover", f"{self.cover}, {counted(self.sensitive, 'sensitive input')}"),
            ("inputs looked at", f"{self.checked:,}"),
            *self._findings_as_rows(),
        ]

    def _best_as_rows(self) -> list[tuple[str, str]]:
        """How good what was optimised is, beside the best that is possible."""
        gap = "–" if np.isnan(self.gap) else f"{self.gap:.2e}"
        if self.objective == "noise":
            return [("lower bound, gap", f"{self.trace_lower:.6g}, {gap}")]
        # of releases of a ledger: what is the best beside the others is not known from this one
        bound = [] if np.isnan(self.explained_upper) else [("upper bound, gap", f"{self.explained_upper:.6g}, {gap}")]
        return [
            ("readers explain", f"{self.explained:.6g} of the variance of f at the inputs that are to stay useful"),
            *bound,
            ("not published", f"{counted(self.suppressed, 'combination')} of the rows"),
        ]

    def _records_as_rows(self) -> list[tuple[str, str]]:
        """What goes out of the records inside the region."""
        if not self.records:
            return [("records in the region", "none")]
        unchanged = f"{self.raw_records:,} go out unchanged" if self.raw_records else "none goes out unchanged"
        least = "least change" if self.suppressed else "least noise"
        rows = [("records in the region", f"{self.records:,}, {unchanged}; {least} ±{self.record_noise:.4g}")]
        if np.isfinite(self.record_learnt):
            counts = ", with what they learn of the function" if self.protects == "records" else ""
            rows.append(("best-known record", f"readers learn {self.record_learnt:.4g} of its variance{counts}"))
        if np.isfinite(self.record_ratio):
            rows.append(("record ratio", f"{self.record_ratio:.9g} (at least 1)"))
        return rows

    def _insiders_as_rows(self) -> list[tuple[str, str]]:
        """What whoever holds rows learns."""
        if np.isnan(self.insider_ratio):
            return []
        return [
            ("insiders", f"learn {self.insider_ratio:.9g} of what they may (at most 1), group {self.insider_group}")
        ]

    def _findings_as_rows(self) -> list[tuple[str, str]]:
        """What is alarming, with its remedy, and what is good to know; questions to the owner are only counted."""
        told = [one for one in self.findings if one.severity != "low"]
        rows = [(one.label, str(one) if one.severity in ALARMING else one.text) for one in told]
        if questions := len(self.findings) - len(told):
            rows.append(
                (SEVERITIES["low"][0], f"{counted(questions, 'question')} before you publish; the report lists them")
            )
        return rows

    def as_dict(self) -> dict[str, Any]:
        """All fields in plain Python types; what is not finite becomes None, as JSON has it."""
        told = {**asdict(replace(self, encoding=None)), "verdict": self.verdict}
        del told["encoding"]  # worst_place says what it is needed for
        found: dict[str, Any] = plain(told | ({} if self.encoding is None else {"worst_place": self.worst_place}))
        return found

    def _repr_html_(self) -> str:
        return self.as_html()

    def as_html(self, title: str = "") -> str:
        """For a notebook: the verdict in a box, with what it is about, and the certificate below."""
        return boxed_table(self.verdict, title, f"{self.verdict_in_words}.", self.rows())

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return shown_lines(f"{label:<{width}}  {value}" for label, value in rows)
