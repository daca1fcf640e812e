"""What readers cannot explain where predictions are to be the best: with a design, with the least noise, with none.

The least noise is the closed form at the sensitive inputs of the design itself. A proof over the region adds to it, so
that as a rule it is shown as a little better than it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..design import MOST_ROWS_COMPARED, has_closed_form, least_noise
from ..linalg import Whitening
from ..promise import Design
from ..proof import Certificate


@dataclass(frozen=True)
class ObjectivesCompared:
    """Shares of the variance of f at the served inputs that readers cannot explain.

    ``here`` with the design at hand, ``least`` with the least noise for the same promise (None: not known), and
    ``nothing`` without protection.
    """

    here: float
    least: float | None
    nothing: float

    def __str__(self) -> str:
        here, nothing = (f"{100 * value:.3g} %" for value in (self.here, self.nothing))
        least = "" if self.least is None else f" instead of {100 * self.least:.3g} % with the least noise"
        return (
            f"What readers cannot explain at the inputs that stay useful: {here} of the variance{least}; {nothing} "
            "without protection."
        )


def compare_objectives(design: Design, certificate: Certificate) -> ObjectivesCompared | None:
    """What a design that serves readers is worth, by its ``certificate``.

    None where it serves nobody, that would take long, or earlier releases have a part in the promise: the certificate
    then knows no best. The least noise is left out where it has no closed form.
    """
    serves, rows = design.serves, len(design.inputs)
    if serves is None or design.noise.compressed or rows > MOST_ROWS_COMPARED:
        return None
    if not np.isfinite(certificate.explained) or np.isnan(certificate.explained_upper):
        return None
    prior = design.prior
    data = prior.covariance(design.inputs) + np.diag(prior.noise_variance(rows))
    counts = np.sqrt(serves.coefficients(prior, design.inputs.outputs))
    cross = prior.covariance(design.inputs, serves.places) * counts

    def unexplained(noise: Array) -> float:
        shift = design.noise.shift * np.eye(rows)
        return max(0.0, 1.0 - float(np.sum(Whitening.of(data + noise + shift).apply(cross) ** 2)))

    least = None
    if has_closed_form(design):
        least = unexplained(least_noise(design, design.tolerance, design.protects, data))
    return ObjectivesCompared(max(0.0, 1.0 - certificate.explained), least, unexplained(np.zeros_like(data)))
