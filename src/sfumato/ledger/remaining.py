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


#: How many inputs of a region are looked at for the history and the picture.
LOOKS = 400


@dataclass(frozen=True, eq=False)
class Left:
    """What is left of one promise. ``history`` is the share of it that was used after each release of the ledger.

    ``points``, ``deviations`` and ``floors`` say along the region what readers keep now, and what they must keep.
    """

    promise: Promise
    certificate: Certificate
    history: tuple[float, ...]
    points: Array
    deviations: Array
    floors: Array

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

    promises: tuple[Left, ...]

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


def left_of(promise: Promise, releases: Sequence[Revealed]) -> Left:
    """What ``releases`` have left of ``promise``."""
    certificate, _ = promise.kept_by(releases)
    design, prior = promise.design, promise.prior
    region = design.region
    points = region.points if region.points is not None else region.probes(LOOKS, design.inputs, batch=0)
    points = np.vstack([points, certificate.worst_input[None]])
    worst: tuple[float, tuple[float, ...], Array] | None = None
    for reading in interpretations(releases):
        history, explained = _used(promise, reading, points)
        if worst is None or history[-1] > worst[0]:
            worst = history[-1], history, explained
    assert worst is not None
    deviations = np.sqrt(np.maximum(prior.variance(points) - worst[2], 0.0))
    return Left(promise, certificate, worst[1], points, deviations, design.tolerance.floor(prior, points))


def _used(promise: Promise, releases: Sequence[Revealed], points: Array) -> tuple[tuple[float, ...], Array]:
    """The share that was used after each release, and what is explained at ``points`` after all of them."""
    design, prior = promise.design, promise.prior
    budgets = design.tolerance.budget(prior, points)
    history, explained = [], np.zeros(len(points))
    for count in range(1, len(releases) + 1):
        try:
            published = Published.by(prior, promise.layout, releases[:count])
        except BudgetError:
            # some of it has no noise at all
            history.append(np.inf)
            explained = prior.variance(points)
            continue
        if not len(published.composition):
            history.append(0.0)
            continue
        explained = np.sum(published.about(points) ** 2, axis=0)
        used = float(np.max(explained / budgets))
        if design.guarantee == "joint" and len(design.sensitive):
            delta = design.tolerance.matrix(prior, design.sensitive)
            used = max(used, most_used(published.about(design.sensitive), delta))
        history.append(used)
    return tuple(history), explained
