"""The problems that several benchmarks share: inputs in the unit cube (MATH.md, section 6), and census-like people."""

from __future__ import annotations

from dataclasses import dataclass

import gpytorch
import numpy as np
import torch

import sfumato as sf
from sfumato.arrays import Array
from sfumato.data.inputs import MemoryInputs, as_inputs
from sfumato.data.parts import Part
from sfumato.data.stored import StoredInputs
from sfumato.design.sensitive import greedy_order

ALPHA, NOISE, LENGTHSCALE = 0.3, 0.01, 0.1

#: Of the unit cube, the share that is protected.
SHARE = 0.15

#: Lengthscales, variance and noise that the paper's scripts fitted to the census, in standard deviations.
CENSUS_LENGTHSCALES, CENSUS_VARIANCE, CENSUS_NOISE = (0.63, 0.61, 0.60, 0.57, 0.63), 1.69, 0.2528


def prior(kernel: str = "rbf", lengthscale: float = LENGTHSCALE) -> sf.Prior:
    if kernel == "rbf":
        made = gpytorch.kernels.RBFKernel().double()
    else:
        made = gpytorch.kernels.MaternKernel(nu={"matern32": 1.5, "matern52": 2.5}[kernel]).double()
    made.lengthscale = lengthscale
    return sf.Prior(kernel=made, noise=NOISE)


def box(dimension: int = 2) -> sf.Box:
    """A corner of the unit cube with 15 % of the rows in it."""
    return sf.Box([0.0] * dimension, [SHARE ** (1 / dimension)] * dimension)


def rows(count: int, dimension: int = 2) -> Array:
    return np.random.default_rng(1).random((count, dimension))


def sensitive(of: sf.Prior, dimension: int = 2, epsilon: float = 0.05, most: int = 128) -> Array:
    """A greedy cover of the region: the sensitive inputs that a design without a search is made for."""
    corner = as_inputs(np.vstack([np.zeros(dimension), np.full(dimension, SHARE ** (1 / dimension))]))
    places = box(dimension).bind(corner).probes(2048, corner)
    return np.asarray(places[greedy_order(of, places, epsilon, most).order])


@dataclass(frozen=True, eq=False)
class GeneratedPart(Part):
    """Rows that are made where they are needed, the same each time: any number of them takes no memory."""

    dimension: int

    def inputs(self) -> Array:
        return np.random.default_rng([7, self.start]).random((self.rows, self.dimension))

    def own_column(self, name: str) -> Array:
        assert name == "y"
        return np.sin(6.0 * self.inputs()[:, 0])


def generated(count: int, dimension: int, step: int = 1 << 22) -> StoredInputs:
    """Rows that are made part after part, ``step`` at a time."""
    parts = [GeneratedPart(start, min(step, count - start), dimension) for start in range(0, count, step)]
    few = np.vstack([parts[0].inputs()[:8192], np.zeros(dimension), np.ones(dimension)])
    return StoredInputs(tuple(parts), MemoryInputs(few))


def census(count: int) -> tuple[sf.Prior, Array, sf.Box]:
    """The shape of the paper's census experiment: five inputs, a box that bounds two of them, with about 2 % inside."""
    X = np.random.default_rng(1).standard_normal((count, 5))
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=5)).double()
    kernel.outputscale = CENSUS_VARIANCE
    kernel.base_kernel.lengthscale = torch.tensor([CENSUS_LENGTHSCALES], dtype=torch.float64)
    region = sf.Box([-np.inf, -np.inf, 1.3, -np.inf, -np.inf], [-0.9, np.inf, np.inf, np.inf, np.inf])
    return sf.Prior(kernel=kernel, noise=CENSUS_NOISE), X, region
