"""What a ledger says about all releases together, for a report. A ledger holds no y."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .errors import InputError
from .inputs import place_in_words
from .ledger import Ledger
from .release import Release
from .release_record import digest_outputs
from .remaining import Remaining
from .report_figures import picture, shown
from .report_html import Html, counted, listed, number, share, table, tag
from .report_pitfalls import Pitfall


@dataclass(frozen=True, eq=False)
class Account:
    """A ledger as the report sees it; ``recorded``: the release of the report is in it."""

    name: str
    head: str
    releases: int
    recorded: bool
    torn: bool
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
        return cls(name, chain.head, len(chain.entries), recorded, chain.torn is not None, book.remaining())

    def pitfalls(self) -> list[Pitfall]:
        """What is wrong with the accounting."""
        found = []
        if not self.remaining.holds:
            found.append(
                Pitfall(
                    "breaks",
                    "All releases together break a promise",
                    f"The ledger {self.name} has {counted(self.releases, 'release')}; put together, readers know more "
                    "than was promised.",
                    "Publish nothing more about these values; the promise cannot be mended.",
                )
            )
        if not self.recorded:
            found.append(
                Pitfall(
                    "breaks",
                    "This release is not in the ledger",
                    "A ledger accounts only for what it was told. One release beside it, and its promises are void.",
                    "Write it down with ledger.record(release), and read what is left; or do not publish it.",
                )
            )
        return found


def ledger_section(account: Account) -> list[Html]:
    """What all releases have used, in a table and a picture."""
    rows = []
    for one in account.remaining.promises:
        found = one.certificate
        place = place_in_words(found.columns, found.worst_input, found.outputs)
        rows.append(
            [
                f"{listed(one.promise.speech.outputs, 4)}: {one.promise.design.region.in_words(found.columns)}",
                "yes" if found.holds else "NO",
                share(max(one.left, 0.0)),
                f"± {number(found.worst_std)} at {place}; floor ± {number(found.worst_floor)}",
            ]
        )

    def draw() -> Figure:
        figure = account.remaining.plot().figure
        assert isinstance(figure, Figure)
        return figure

    alt = f"Bars: the share of each promise that is used after each of {counted(account.releases, 'release')}."
    drawn = picture(draw, "ledger", alt, "How much of each promise was used after each release; 100 % is all of it.")
    return [
        tag("h2", "All releases together"),
        tag(
            "p",
            f"The ledger {account.name} accounts for {counted(account.releases, 'release')} of these values; this one "
            f"is {'among them' if account.recorded else 'NOT among them'}. "
            + (
                "The promise is kept for all of them together, as long as nothing is published beside the ledger."
                if account.remaining.holds and account.recorded
                else "NOT everything that was promised is kept by all that is published."
            ),
        ),
        table("Promises of the ledger", ["Promise about", "Kept", "Left", "Closest to the floor"], rows, numbers=(2,)),
        *shown(drawn),
        tag("p", "Head of the ledger: ", tag("code", account.head)),
        *([tag("p", "An interrupted write is at its end; it counts for nothing.")] if account.torn else []),
    ]
