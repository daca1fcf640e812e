"""A design: everything about a protected data set that is public before any value is.

It is what the reader is assumed to know (the prior, the inputs, V and Σ) together with what was promised.
Certificates are computed from it alone, and a release is a design with outputs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .inputs import Array, Inputs
from .noise import Noise
from .prior import Prior
from .regions import Region
from .tolerance import Tolerance

Cover = Literal["rows", "points", "greedy", "exchange", "everywhere"]


#: Of more rows than this, every so many-eth is taken where one cannot look at all.
MOST_ROWS_IN_REACH = 4096


def rows_in_reach(region: Region, inputs: Inputs) -> Array:
    """For each row of the data the input of the region next to it: where most is learnt. Each place once."""
    moved = region.project(inputs.values, inputs) + 0.0
    places = np.unique(moved[region.contains(moved)], axis=0)
    inside = region.contains(inputs.values)
    if len(places) > MOST_ROWS_IN_REACH:
        every = -(-len(places) // MOST_ROWS_IN_REACH)
        places = np.unique(np.vstack([places[::every], inputs.values[inside] + 0.0]), axis=0)
    return places


@dataclass(frozen=True, eq=False)
class Design:
    """The public side of a mechanism.

    ``cover`` says how the sensitive inputs were chosen and ``sensitive`` lists them (S₀, γ × d): the joint promise
    is made for their values. With "greedy", "exchange" and "everywhere" the floor is promised at every input
    of the region, with "rows" at the rows of the data inside it, with "points" at the points of the region.
    ``weights`` is C where the least ``Tr CΣ`` was asked for instead of the least ``Tr Σ``: a diagonal or a matrix.
    """

    prior: Prior
    inputs: Inputs
    region: Region
    tolerance: Tolerance
    cover: Cover
    sensitive: Array
    noise: Noise
    weights: Array | None = None

    def data_covariance(self) -> Array:
        """A = K_XX + V, the covariance of the data y."""
        return self.prior.covariance(self.inputs) + np.diag(self.prior.noise_variance(len(self.inputs)))

    def rows_inside(self) -> Array:
        """The rows of the data that lie in the region."""
        return np.asarray(self.inputs.values[self.region.contains(self.inputs.values)])

    def rows_in_reach(self) -> Array:
        """The inputs of the region next to the rows of the data."""
        return rows_in_reach(self.region, self.inputs)

    def digest(self) -> bytes:
        """A fingerprint of all that decides how outputs are blurred."""
        state = hashlib.sha256()
        for array in (
            self.inputs.values,
            self.sensitive,
            self.noise.factor,
            np.array([self.noise.shift]),
            self.prior.noise_variance(len(self.inputs)),
            self.prior.mean_at(self.inputs),
        ):
            state.update(np.array(array.shape, dtype=np.int64).tobytes())
            state.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        return state.digest()
