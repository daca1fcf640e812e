"""What a release tells about records by its arithmetic: exact differences, and noise that known rows take off.

Rows with equal inputs have the same f. Where they get the same noise, the difference of their records is published as
it is. Noise of few sources is known everywhere once it is known at as many rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Index
from ..linalg import pivoted_cholesky
from ..text import counted
from .target import Outcome, Severity, Target

#: A difference is exact where its noise is below this share of its own spread.
EXACT = 1e-3

#: Noise is taken off where less than this share of a record's own spread is left of it.
TAKEN_OFF = 0.1

#: As many rows as this may well be known to somebody.
FEW = 5


@dataclass(frozen=True)
class RecordsTold:
    """What is told about the ``count`` records inside the region, before and after they were protected.

    ``spread`` is the standard deviation of a record, ``own`` that of its own part (root means of squares). ``error`` is
    how far the best reader of the release is off, on these data; of the values without noise it was 0, and without any
    release ``before``. Of ``pairs`` of records with equal inputs the differences of ``exact`` are published.
    Whoever knows ``unmasked_by`` of these rows takes the noise off all others (None: no number of them does).
    """

    count: int
    spread: float
    own: float
    before: float
    error: float
    pairs: int
    exact: int
    unmasked_by: int | None

    @property
    def severity(self) -> Severity:
        """By what was found."""
        if self.unmasked_by == 0:
            return "critical"
        if self.exact or (self.unmasked_by is not None and self.unmasked_by <= FEW):
            return "high"
        return "none" if self.unmasked_by is None else "medium"

    @property
    def words(self) -> tuple[str, ...]:
        """A sentence for each number."""
        share = self.error / self.spread
        best = f"from the release ± {self.error:.3g} ({share:.0%} of their spread), before ± {self.before:.3g}"
        said = [f"{counted(self.count, 'private record')}: the best reader is off by 0 without protection, {best}."]
        if self.pairs:
            exact = f"differences of {self.exact:,} are published exactly" if self.exact else "no difference is exact"
            said.append(f"{counted(self.pairs, 'pair')} of private records with equal inputs: {exact}.")
        if self.unmasked_by is None:
            said.append("No number of known private rows takes the noise off all the others.")
        elif self.unmasked_by == 0:
            said.append("There is no noise worth the name to take off: it is far below what is each record's own.")
        else:
            rows = counted(self.unmasked_by, "private row")
            said.append(f"Whoever knows {rows} takes the noise off the other {self.count - self.unmasked_by:,}.")
        return tuple(said)


def records_told(target: Target, reader: Outcome) -> RecordsTold:
    """What a release tells; ``target`` is about all private records, and ``reader`` is its best reader."""
    assert target.records is not None
    rows, own = target.records, target.own_noise[target.records]
    pairs, exact = exact_differences(target, rows)
    spread = float(np.sqrt(np.mean(target.before**2)))
    told = (pairs, exact, rows_that_unmask(target, rows))
    return RecordsTold(len(rows), spread, float(np.sqrt(np.mean(own))), reader.before, reader.rmse, *told)


def exact_differences(target: Target, rows: Index) -> tuple[int, int]:
    """How many pairs of ``rows`` have equal inputs, and the differences of how many of these are published."""
    _, groups = np.unique(target.rows[rows], axis=0, return_inverse=True)
    pairs = exact = 0
    for group in range(int(np.max(groups)) + 1):
        alike = rows[np.ravel(groups) == group]
        first, second = np.triu_indices(len(alike), 1)
        first, second = alike[first], alike[second]
        noise, variance, own = target.noise, np.diag(target.noise), target.own_noise
        left = variance[first] + variance[second] - 2.0 * noise[first, second]
        pairs += len(first)
        exact += int(np.sum(left <= EXACT**2 * (own[first] + own[second])))
    return pairs, exact


def rows_that_unmask(target: Target, rows: Index) -> int | None:
    """The least number of ``rows``, found greedily, that tell the noise on all others; None where no number does."""
    unit = np.sqrt(target.own_noise[rows])
    noise = target.noise[np.ix_(rows, rows)] / np.outer(unit, unit)
    found = pivoted_cholesky(np.diag(noise).copy(), lambda row: noise[:, row], TAKEN_OFF**2, len(rows) - 1)
    return len(found.order) if found.largest[-1] <= TAKEN_OFF**2 else None
