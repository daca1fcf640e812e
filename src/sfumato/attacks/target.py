"""What is attacked: a release, the owner's truth, and the sensitive inputs at which knowledge is judged."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..design import Design
from ..errors import InputError
from ..inputs import Array, Mask, among, as_inputs
from ..prior import GaussianProcess, Posterior, Prior
from ..release import Release
from ..resolution import steps_of
from ..row_labels import without_labels
from ..stacking import stacked_outputs
from ..tolerance import TabulatedFloor

#: Knowledge is judged at this many inputs of the region at most.
MOST_INPUTS = 200

#: Attackers work with n × n matrices; beyond this many rows they would take hours.
MOST_ROWS = 4000

#: Turns 0 and 1 of a region's sequence are those of designs and certificates.
_TURN = 2


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an attacker holds: ``values = f(inputs) + noise``, where the noise has the covariance ``blur``.

    A release is such evidence (blur V + Σ), and so are values known from elsewhere: everything that an attacker could
    know about f in this library has this form, so one formula judges them all.
    """

    inputs: Array
    values: Array
    blur: Array

    def seen_by(self, prior: GaussianProcess) -> Posterior:
        """What someone who holds ``prior`` concludes from it."""
        with warnings.catch_warnings():
            # exact side information is often redundant: singular directions are nothing to worry about here
            warnings.simplefilter("ignore", RuntimeWarning)
            return prior.condition(self.inputs, self.values, self.blur)

    def and_also(self, inputs: Array, values: Array, blur: Array, shared: Array) -> Evidence:
        """This evidence and more; ``shared`` is the covariance of the noise here with the noise there."""
        return Evidence(
            np.vstack([self.inputs, inputs]),
            np.concatenate([self.values, values]),
            np.block([[self.blur, shared], [shared.T, blur]]),
        )


@dataclass(frozen=True, eq=False)
class Target:
    """A release, the owner's values ``y`` at its rows, and the sensitive inputs S (``inputs``) where it is judged.

    ``prior`` is the one under which expected errors are computed: that of the design, or another one for which the
    promise was made. Only the owner can make a target: it holds the secret.
    """

    release: Release
    y: Array
    inputs: Array
    prior: Prior

    @property
    def design(self) -> Design:
        return self.release.design

    @cached_property
    def rows(self) -> Array:
        """X, the inputs of the data."""
        return np.asarray(self.design.inputs.values)

    @cached_property
    def published(self) -> Array:
        """W."""
        return np.asarray(self.release.outputs, dtype=np.float64)

    @cached_property
    def noise(self) -> Array:
        """Σ."""
        return self.design.noise.covariance()

    @property
    def own_noise(self) -> Array:
        """The diagonal of V."""
        return self.prior.noise_variance(len(self.rows))

    @property
    def steps(self) -> Array:
        """What each row of W is a multiple of."""
        return steps_of(self.release.resolution, self.design)

    @property
    def rounding(self) -> Array:
        """The variances of the rounding errors: counted in what readers claim, never in what is promised."""
        return self.steps**2 / 12

    @cached_property
    def evidence(self) -> Evidence:
        """The release: W at X with the noise V + Σ."""
        return Evidence(self.rows, self.published, self.noise + np.diag(self.own_noise))

    def evidence_with(self, rows: Mask, values: Array) -> Evidence:
        """The release, and ``values`` of y at some of its ``rows``: they share the measurement errors of W there."""
        errors = np.diag(self.own_noise)
        more = self.rows[rows], values, errors[np.ix_(rows, rows)], errors[:, rows]
        return self.evidence.and_also(*more)

    @cached_property
    def floor(self) -> Array:
        """The standard deviation that was promised at each sensitive input."""
        return self.design.tolerance.floor(self.prior, self.inputs)

    @cached_property
    def owner(self) -> Posterior:
        """What the owner knows about f: everything that y tells."""
        return Evidence(self.rows, self.y, np.diag(self.own_noise)).seen_by(self.prior)

    @cached_property
    def truth(self) -> Array:
        """The owner's best knowledge of f(S): y itself at rows where it has no measurement errors."""
        return self.owner.mean_at(self.inputs)

    @cached_property
    def rows_inside(self) -> Mask:
        return self.design.region.contains(self.rows)

    def error(self, mean: Array) -> float:
        """How far an estimate of f(S) is from the truth, root mean square."""
        return root_mean_square(mean - self.truth)

    @cached_property
    def bayes_error(self) -> float:
        """How far the reader who has the right prior is from the truth."""
        return self.error(self.evidence.seen_by(self.prior).mean_at(self.inputs))

    def away_from(self, rows: Mask) -> Target | None:
        """The same target, judged only at sensitive inputs that are none of these rows; None where there are none."""
        away = ~among(self.inputs, self.rows[rows])
        return replace(self, inputs=self.inputs[away]) if np.any(away) else None


def target_for(release: Release, y: Any, sensitive: Any = None) -> Target:
    """Check what is given and choose where to judge: ``sensitive``, or a spread of the inputs of the region."""
    if not isinstance(release, Release):
        raise InputError(f"release is {str(release)[:60]!r}; give a sf.Release, for example sf.load('orbit.sfumato').")
    design = release.design
    if len(design.inputs) > MOST_ROWS:
        raise InputError(
            f"release has {len(design.inputs)} rows; attacks need matrices of that size and work up to {MOST_ROWS} "
            "rows. Protect some of the rows in the same way and audit that release."
        )
    values = stacked_outputs(design.inputs, without_labels(y, "y"))
    if sensitive is None:
        chosen = judged_inputs(design)
    else:
        chosen = as_inputs(sensitive, "sensitive", like=design.inputs).values
        outside = ~design.region.contains(chosen)
        if np.any(outside):
            raise InputError(
                f"sensitive has {int(outside.sum())} input(s) outside the region "
                f"({design.region.in_words(release.columns)}), the first {chosen[outside][0].tolist()}; nothing is "
                "promised there. Give inputs of the region, or leave it out."
            )
    target = Target(release, values, chosen, release.prior)
    if not np.any(target.floor > 0):
        raise InputError(
            "release promises no floor at the sensitive inputs (its tolerance is as large as the prior's variance), so "
            "there is nothing to judge by; protect with alpha= or floor=."
        )
    return target


def judged_inputs(design: Design) -> Array:
    """Inputs for which the floor was promised: the points of the region, or rows and places between them."""
    if design.region.points is not None:
        return _some(np.asarray(design.region.points), MOST_INPUTS)
    if design.cover == "rows":
        return _some(np.unique(design.rows_inside() + 0.0, axis=0), MOST_INPUTS)
    if isinstance(design.tolerance, TabulatedFloor):
        return between_rows(design)
    rows = _some(design.rows_in_reach(), MOST_INPUTS // 2)
    return np.unique(np.vstack([rows, between_rows(design)]) + 0.0, axis=0)


def between_rows(design: Design) -> Array:
    """Inputs of the region that need not be rows."""
    places = design.region.candidates(MOST_INPUTS // 2, design.lookout, turn=_TURN)
    if isinstance(design.tolerance, TabulatedFloor):
        # a floor that varies is known from the file only where it was written down
        places = design.tolerance.inputs
    return _some(places[design.region.contains(places)], MOST_INPUTS // 2)


def root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _some(places: Array, most: int) -> Array:
    """At most ``most`` of the places, spread evenly."""
    return places[np.unique(np.linspace(0, len(places) - 1, min(len(places), most)).round().astype(np.intp))]
