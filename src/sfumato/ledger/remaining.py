"""What releases have used of a promise, and what is left of it: in words, in numbers and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..errors import BudgetError
from ..promise import Revealed, interpretations
from ..proof import Certificate
from ..views import pictures
from .past import LEAST_LEFT, Published, most_used
from .promises import Promise

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: At how many inputs of a region it is computed what releases have used.
PROBES = 400


@dataclass(frozen=True, eq=False)
class PromiseBudget:
    """What is left of one promise. ``history`` is the share of it that was used after each release of the ledger."""

    promise: Promise
    certificate: Certificate
    history: tuple[float, ...]

    @property
    def used(self) -> float:
        """The largest share of the tolerance that is used, of any value and, where promised, any weighted average."""
        return self.history[-1] if self.history else 0.0

    @property
    def left(self) -> float:
        """What is left, as a share of the tolerance: 1 before the first release, at most 0 when it is used up."""
        return 1.0 - self.used

    def __str__(self) -> str:
        certificate = self.certificate
        if self.left <= LEAST_LEFT:
            state = "NOTHING IS LEFT" if certificate.holds else "THE PROMISE IS BROKEN"
        else:
            state = f"{self.left:.1%} of the tolerance is left"
        return (
            f"{state} after {len(self.history)} release(s): {certificate.promise}. Readers are closest to their floor "
            f"at {certificate.worst_place}, where they know f to within ±{certificate.worst_std:.6g} and the floor "
            f"is ±{certificate.worst_floor:.6g}."
        )


@dataclass(frozen=True, eq=False)
class Remaining:
    """What is left of every promise that a ledger holds about a region."""

    promises: tuple[PromiseBudget, ...]

    @property
    def left(self) -> float:
        """The least that is left of any of them, as a share of its tolerance."""
        return min(one.left for one in self.promises)

    @property
    def used(self) -> float:
        return 1.0 - self.left

    @property
    def holds(self) -> bool:
        """Whether all of them are kept."""
        return all(one.certificate.holds for one in self.promises)

    def as_dict(self) -> dict[str, Any]:
        """Numbers in plain Python types."""
        return {
            "left": self.left,
            "holds": self.holds,
            "promises": [
                {
                    "promise": one.certificate.promise,
                    "left": one.left,
                    "history": list(one.history),
                    "certificate": one.certificate.as_dict(),
                }
                for one in self.promises
            ],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """How much was used after each release."""
        axes: Axes = pictures().plot_history(self, ax=ax)
        return axes

    def __str__(self) -> str:
        return "\n".join(str(one) for one in self.promises)


def budget_of(promise: Promise, releases: Sequence[Revealed]) -> PromiseBudget:
    """What ``releases`` have left of ``promise``."""
    certificate, _ = promise.kept_by(releases)
    region = promise.design.region
    points = region.points if region.points is not None else region.probes(PROBES, promise.design.inputs, batch=0)
    points = np.vstack([points, certificate.worst_input[None]])
    histories = [_history(promise, reading, points) for reading in interpretations(releases)]
    return PromiseBudget(promise, certificate, max(histories, key=lambda history: history[-1]))


def _history(promise: Promise, releases: Sequence[Revealed], points: Array) -> tuple[float, ...]:
    """The share of the tolerance that was used after each release, at ``points`` and of any weighted average."""
    design, prior = promise.design, promise.prior
    budgets = design.tolerance.budget(prior, points)
    history = []
    for count in range(1, len(releases) + 1):
        try:
            published = Published.by(prior, promise.layout, releases[:count])
        except BudgetError:
            # some of it has no noise at all
            history.append(np.inf)
            continue
        if not len(published.composition):
            history.append(0.0)
            continue
        used = float(np.max(np.sum(published.about(points) ** 2, axis=0) / budgets))
        if design.guarantee == "joint" and len(design.sensitive):
            delta = design.tolerance.matrix(prior, design.sensitive)
            used = max(used, most_used(published.about(design.sensitive), delta))
        history.append(used)
    return tuple(history)
