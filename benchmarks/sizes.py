"""The problem that the benchmarks of large sizes share (MATH.md, section 6), and what describes the machine."""

from __future__ import annotations

import platform
import resource
from dataclasses import dataclass

import gpytorch
import numpy as np
import torch

import sfumato as sf
from sfumato.arrays import Array
from sfumato.data.inputs import as_inputs
from sfumato.data.parts import Part
from sfumato.design.search import greedy_order

ALPHA, NOISE, LENGTHSCALE, SIDE = 0.3, 0.01, 0.1, float(np.sqrt(0.15))

KERNELS = ("rbf", "matern32", "matern52")


def prior(kernel: str = "rbf", lengthscale: float = LENGTHSCALE) -> sf.Prior:
    if kernel == "rbf":
        made = gpytorch.kernels.RBFKernel().double()
    else:
        made = gpytorch.kernels.MaternKernel(nu={"matern32": 1.5, "matern52": 2.5}[kernel]).double()
    made.lengthscale = lengthscale
    return sf.Prior(kernel=made, noise=NOISE)


def box(dimension: int = 2) -> sf.Box:
    """A corner of the unit cube with 15 % of the rows in it."""
    return sf.Box([0.0] * dimension, [0.15 ** (1 / dimension)] * dimension)


def rows(count: int, dimension: int = 2) -> Array:
    return np.random.default_rng(1).random((count, dimension))


def sensitive(of: sf.Prior, dimension: int = 2, epsilon: float = 0.05, most: int = 128) -> Array:
    """A greedy cover of the region: the sensitive inputs that a design without a search is made for."""
    corner = as_inputs(np.vstack([np.zeros(dimension), np.full(dimension, 0.15 ** (1 / dimension))]))
    places = box(dimension).bind(corner).probes(2048, corner)
    return np.asarray(places[greedy_order(of, places, epsilon, most).order])


@dataclass(frozen=True, eq=False)
class GeneratedPart(Part):
    """Rows that are made where they are needed, the same each time: any number of them takes no memory."""

    start: int
    rows: int
    dimension: int

    def inputs(self) -> Array:
        return np.random.default_rng([7, self.start]).random((self.rows, self.dimension))

    def column(self, name: str) -> Array:
        assert name == "y"
        return np.sin(6.0 * self.inputs()[:, 0])


def machine() -> dict[str, object]:
    description: dict[str, object] = {
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    if torch.cuda.is_available():
        description["gpu"] = torch.cuda.get_device_name()
    return description


def peak_memory() -> int:
    """The most memory this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
