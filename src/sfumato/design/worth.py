"""Whether the best predictions are worth it on the owner's data, as their rows outside the region tell.

The best predictions are the best on average over all functions that the prior believes in. Whether they are for this
one, the rows outside the region tell: each of them is predicted from the release of the others, and what lies inside
is integrated out given the rows outside, so that nothing is learnt about it. The mean over all draws of the noise is
exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, Mask
from ..linalg import Whitening
from ..promise import Design, Finding, Served
from .closed_form import has_closed_form, least_noise

#: Comparing takes some factorisations of matrices of this size at most: seconds.
MOST_ROWS_COMPARED = 2000

#: Errors must be smaller by this share for the best predictions to be worth it.
LEAST_SAVED = 0.02

#: A row of which less than this share of the largest is let through tells nothing.
NOTHING = 1e-12


@dataclass(frozen=True)
class Worth:
    """Readers' errors at the served rows outside, as these tell: ``here``, and with the ``least`` noise instead.

    ``rows`` says which they are, in words: all rows outside, where no row is served.
    """

    here: float
    least: float
    rows: str = "your rows outside the region"

    @property
    def ratio(self) -> float:
        """How the errors compare; below 1 the best predictions are better."""
        return self.here / self.least

    @property
    def pays(self) -> bool:
        """Whether errors are smaller by enough to count on the prior for it."""
        return self.ratio <= 1.0 - LEAST_SAVED

    @property
    def in_words(self) -> str:
        """What the best predictions do to the errors here."""
        change = f"{'' if self.pays or self.ratio >= 1.0 else 'only '}{100.0 * abs(1.0 - self.ratio):.2g} %"
        return f"make errors {change} {'larger' if self.ratio >= 1.0 else 'smaller'}"

    def __str__(self) -> str:
        return (
            f"As {self.rows} tell, without a look inside, readers can be expected to be off by {self.here:.3g} there, "
            f"instead of {self.least:.3g} with the least noise."
        )


@dataclass(frozen=True, eq=False)
class ErrorsOutside:
    """What readers of one noise miss at each row outside that they predict from the others.

    For deviations v of the rows outside from the prior's mean that is ``residual v``, and ``variance`` besides, from
    the noise and from what is not known of the rows inside.
    """

    residual: Array
    variance: Array

    @classmethod
    def under(cls, noise: Array, suppressed: Array, function: Array, data: Array, inside: Mask) -> ErrorsOutside:
        """That of the ``noise`` that is drawn and of what is ``suppressed`` on rows with the covariance ``data``.

        ``function`` is the covariance of f there.
        """
        outside = np.flatnonzero(~inside)
        half = Whitening.of(data + noise).without(suppressed).apply(np.eye(len(data)))
        P = half.T @ half
        cross, columns = function[:, outside], P[:, outside]
        own = np.diag(P)[outside]
        told = own > NOTHING * float(np.max(own))
        without = np.where(told, np.sum(columns * cross, axis=0) / np.where(told, own, 1.0), 0.0)
        weights = P @ cross - columns * without
        whiten = Whitening.of(data[np.ix_(~inside, ~inside)])
        known = whiten.apply(data[np.ix_(~inside, inside)])
        left = data[np.ix_(inside, inside)] - known.T @ known
        # the mean of the rows inside given those outside
        expected = known.T @ whiten.apply(np.eye(len(outside)))
        residual = np.eye(len(outside)) - weights[~inside].T - weights[inside].T @ expected
        drawn = np.sum(weights * (noise @ weights), axis=0)
        return cls(residual, drawn + np.sum(weights[inside] * (left @ weights[inside]), axis=0))

    def rms(self, deviations: Array, counts: Array) -> float:
        """The root mean square error over the rows, which count so much each."""
        squares = (self.residual @ deviations) ** 2 + self.variance
        return float(np.sqrt(np.average(squares, weights=counts)))


@dataclass(frozen=True, eq=False)
class ObjectivesOutside:
    """Readers' errors outside under a design that serves them, and under the least noise, for any values."""

    design: Design
    outside: Mask
    counts: Array
    here: ErrorsOutside
    least: ErrorsOutside

    @classmethod
    def of(cls, design: Design) -> ObjectivesOutside | None:
        """None where nothing is compared.

        That is where nothing is served outside, no row lies inside, there are too many rows, or the least noise has no
        closed form.
        """
        rows = len(design.inputs)
        if design.serves is None or design.noise.compressed or rows > MOST_ROWS_COMPARED or not has_closed_form(design):
            return None
        inside = np.asarray(design.region.contains(design.inputs.values), dtype=np.bool_)
        counts = _counts(design.inputs.values, design.serves)[~inside]
        if not counts.any() or not inside.any():
            return None
        function = design.prior.covariance(design.inputs)
        data = function + np.diag(design.prior.noise_variance(rows))
        noise, nothing = design.noise, np.zeros((rows, 0))
        here = ErrorsOutside.under(noise.drawn_covariance(), noise.suppressed, function, data, inside)
        instead = least_noise(design, design.tolerance, design.protects, data)
        return cls(design, ~inside, counts, here, ErrorsOutside.under(instead, nothing, function, data, inside))

    def worth(self, y: Array) -> Worth | None:
        """What the rows of ``y`` outside the region tell; None where readers of the least noise make no error."""
        seen = (y - self.design.prior.mean_at(self.design.inputs))[self.outside]
        here, least = (errors.rms(seen, self.counts) for errors in (self.here, self.least))
        named = Worth.rows if self.counts.all() else "the served rows outside the region"
        return Worth(here, least, named) if least > 0.0 else None


def not_worth_it(worth: Worth | None) -> Iterator[Finding]:
    """A finding where the rows outside tell that the least noise would serve readers as well or better."""
    if worth is not None and not worth.pays:
        yield Finding(
            "predictions-not-better",
            "low",
            "Are the best predictions worth it here? They are the best on average over what the prior believes, and "
            f"count on it more. Here they {worth.in_words}. {worth}",
            'Give objective="noise", unless you know better than these rows: a measured trade-off, for example, looks '
            "at those inside too.",
        )


def _counts(rows: Array, served: Served) -> Array:
    """How much each row counts: the mean weight of served inputs that are its own, else 0; all alike if no row is."""
    own: dict[bytes, list[float]] = {}
    for place, weight in zip(served.places + 0.0, served.weights, strict=True):
        own.setdefault(place.tobytes(), []).append(float(weight))
    counts = np.array([np.mean(own.get(row.tobytes(), [0.0])) for row in rows + 0.0])
    return counts if counts.any() else np.ones(len(rows))
