"""What a report says of single records: how many are in the region, how they go out, and what is known of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..text import counted, listed
from .report_facts import Facts, multiple, number, plus_minus, share

#: A record is said to differ by this many of its standard deviations where ε is told: almost all of them lie in it.
SPREADS = 4.0


@dataclass(frozen=True, eq=False)
class RecordFacts:
    """The records of a release, in words; every number comes from its certificate, its noise or its prior."""

    facts: Facts

    @property
    def none(self) -> str:
        """What is said where there is no table."""
        if not self.facts.rows_inside:
            return "No row has inputs in the region, so that no record of it is published."
        return f"What goes out of the {counted(self.facts.rows_inside, 'record')} in the region was not computed."

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Each number of the certificate that is about records, with what it means."""
        facts, found = self.facts, self.facts.certificate
        if not found.records:
            return []
        if math.isfinite(found.record_ratio):
            ratio, means = (
                multiple(found.record_ratio),
                "The least error of readers with this model about a record over its floor.",
            )
        elif facts.has_errors:
            ratio, means = "not promised", "Nothing is promised about single records."
        else:
            ratio, means = "as below", "By the model a record has no part of its own: it is the value at its inputs."
        return [
            ("In the region", f"{found.records:,} of {counted(facts.rows, 'row')}", "Rows with inputs in the region."),
            ("Unchanged", f"{found.raw_records:,}", "Records in the region that go out as they are, without noise."),
            (
                "Least change" if facts.suppressed else "Least noise",
                plus_minus(found.record_noise),
                f"On the record that has the least. {self._own}",
            ),
            ("Record ratio", ratio, means),
            (
                "Best-known record",
                f"{share(found.record_learnt)} learnt",
                "Of all records in the region, the largest share of its variance that the best reader learns of one"
                f"{'.' if facts.design.protects_function else '; what they learn of the function counts in.'}",
            ),
            self._insiders,
            ("Differential privacy", *self._privacy),
        ]

    @property
    def _own(self) -> str:
        least, most = (float(np.sqrt(size(np.asarray(self.facts.design.prior.noise)))) for size in (np.min, np.max))
        if most == 0:
            return "By the model records have nothing of their own."
        spread = plus_minus(least) if least == most else f"{plus_minus(least)} to {plus_minus(most)}"
        return f"By the model a record differs by {spread} from the typical value at its inputs."

    @property
    def _insiders(self) -> tuple[str, str, str]:
        found, insiders = self.facts.certificate, self.facts.design.insiders
        if insiders is None or not math.isfinite(found.insider_ratio):
            return (
                "Insiders",
                "not counted in",
                "Nothing is promised to people who hold true values of some rows, such as their own.",
            )
        return (
            "Insiders",
            f"{share(found.insider_ratio)} of what they may",
            f"The most that {insiders.in_words} learns, as a share of what the promise allows (at most 100 %). "
            f"It is group {found.insider_group} of {len(insiders):,}, counted from 0.",
        )

    @property
    def _privacy(self) -> tuple[str, str]:
        """ε, and what it means."""
        facts, found = self.facts, self.facts.certificate
        if not math.isfinite(found.record_sensitivity):
            return (
                "none (ε = ∞)",
                "The noise has no part of its own on some record: whoever knows all other records takes it off. The "
                "promise above is to readers who do not.",
            )
        rows = facts.design.representatives.values
        inside = rows[facts.design.region.contains_for_any_output(rows)]
        noise = float(np.max(np.asarray(facts.design.prior.noise)))
        width = SPREADS * float(np.sqrt(np.max(facts.design.prior.variance(inside)) + noise))
        loss = found.dp(width)
        return (
            f"ε = {number(loss.epsilon, 3)} at δ = {number(loss.delta, 1)}",
            f"For each record in the region that may differ by {number(width)} ({SPREADS:g} standard deviations of "
            f"the model), even to a reader who knows all other records (μ = {number(loss.mu, 3)}).",
        )

    @property
    def published(self) -> list[str]:
        """How the rows inside and outside go out."""
        found = []
        for blur in self.facts.blurs:
            what = "a change" if self.facts.suppressed else "noise"
            how = f"{what} of {plus_minus(blur.least)} to {plus_minus(blur.largest)} on a row"
            bare = f"; {blur.bare:,} of {blur.rows:,} unchanged: their true values" if blur.bare else ""
            found.append(f"{self.facts.rows_label(blur.output, blur.inside)}: {how}{bare}")
        return found

    @property
    def hidden(self) -> str:
        """Which true values are not in the release, as long as the noise is not taken off."""
        bare = {blur.inside for blur in self.facts.blurs if blur.bare}
        if True in bare or self.facts.certificate.raw_records:
            return ""
        where = " inside the region" if False in bare else ""
        return f"the true values of {listed(self.facts.released)}{where}, without noise"
