"""Noise that is a random function: ``z(x) = k(x, centres) C ω``, the same for any number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from ..arrays import Array
from ..data import Inputs, Part, parts_of
from ..models import Prior, kernel_matrix
from .noise import Noise

#: How many rows are worked on at a time.
ROWS_AT_ONCE, ROWS_ON_GPU = 2048, 1 << 18


@dataclass(frozen=True, eq=False)
class RandomFunction:
    """A drawn noise function, ``z(x) = Σ_j k_j(x, Z_j) w_j``. Whoever has it can take the noise off: it is secret."""

    priors: tuple[Prior, ...]
    centres: tuple[Array, ...]
    weights: tuple[Array, ...]
    device: str = "cpu"

    def at(self, X: Array) -> Array:
        """z at each row of ``X``."""
        drawn = np.zeros(len(X))
        step = ROWS_AT_ONCE if self.device == "cpu" else ROWS_ON_GPU
        terms = [
            (prior.kernel_on(self.device), self._there(centres), self._there(weights))
            for prior, centres, weights in zip(self.priors, self.centres, self.weights, strict=True)
        ]
        with torch.no_grad():
            for start in range(0, len(X), step):
                rows = self._there(X[start : start + step])
                for kernel, centres, weights in terms:
                    drawn[start : start + step] += (kernel_matrix(kernel, rows, centres) @ weights).cpu().numpy()
        return drawn

    def _there(self, values: Array) -> torch.Tensor:
        return torch.from_numpy(np.array(values)).to(self.device)

    def __repr__(self) -> str:
        return "<a random function, secret>"


@dataclass(frozen=True, eq=False)
class FunctionalNoise(Noise):
    """``Σ = K_XZ C Cᵀ K_ZX``; where there are several priors K_XZ has the columns of each one after the other.

    ``inputs`` are the rows X, ``centres`` Z for each prior and ``mixing`` is C, with a row for each centre. Nothing of
    the size of the rows is stored; ``factor`` and ``covariance()`` make it where it is asked for. ``known_trace`` is
    Tr Σ where it has been summed up already.
    """

    priors: tuple[Prior, ...]
    centres: tuple[Array, ...]
    mixing: Array
    inputs: Inputs
    shift: float = field(default=0.0, init=False)
    known_trace: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        mixing = np.array(self.mixing, dtype=np.float64)
        mixing.setflags(write=False)
        object.__setattr__(self, "mixing", mixing)

    @property
    def rows(self) -> int:
        return len(self.inputs)

    @cached_property
    def rank(self) -> int:
        values = np.linalg.svd(self.mixing, compute_uv=False)
        return int(np.sum(values > 1e-12 * max(float(np.max(values, initial=0.0)), np.finfo(float).tiny)))

    @property
    def least(self) -> float:
        return 0.0

    @property
    def normals_needed(self) -> int:
        return int(self.mixing.shape[1])

    @cached_property
    def factor(self) -> Array:  # type: ignore[override]
        """F = K_XZ C, a row for each row of the data: as large as the data."""
        return np.vstack([self.factor_at(X) for X in self._blocks()])

    def factor_at(self, X: Array) -> Array:
        """The rows of F for any inputs."""
        blocks = [prior.covariance(X, centres) for prior, centres in zip(self.priors, self.centres, strict=True)]
        return np.asarray(np.hstack(blocks) @ self.mixing)

    def variance_at(self, X: Array) -> Array:
        """How much the noise blurs any inputs."""
        blocks = (self.factor_at(X[start : start + ROWS_AT_ONCE]) for start in range(0, len(X), ROWS_AT_ONCE))
        return np.concatenate([np.einsum("ij,ij->i", block, block) for block in blocks])

    def variance(self) -> Array:
        return np.concatenate([self.variance_at(X) for X in self._blocks()])

    @cached_property
    def trace(self) -> float:
        if self.known_trace is not None:
            return self.known_trace
        return float(sum(np.sum(self.variance_at(X)) for X in self._blocks()))

    def covariance(self) -> Array:
        return np.asarray(self.factor @ self.factor.T)

    def function(self, normals: Array, device: str = "cpu") -> RandomFunction:
        """The random function that follows from ``normals_needed`` standard normals."""
        weights = self.by_prior(self.mixing @ normals)
        return RandomFunction(self.priors, self.centres, tuple(weights), device)

    def by_prior(self, rows: Array) -> list[Array]:
        """``rows``, one for each centre, those of each prior by themselves."""
        return np.split(rows, np.cumsum([len(centres) for centres in self.centres])[:-1])

    def draw(self, normals: Array, device: str = "cpu") -> Array:
        function = self.function(normals, device)
        return np.concatenate([function.at(X) for X in self._blocks()])

    def parts(self) -> Sequence[Part]:
        """The rows, part after part."""
        return parts_of(self.inputs)

    def _blocks(self) -> Iterator[Array]:
        return (part.inputs() for part in self.parts())
