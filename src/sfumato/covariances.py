"""Covariances under one prior as tensors on one device: where matrices are n × n, they are made where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from .composed_noise import ComposedNoise
from .dense_kernel import kernel_matrix, require_features
from .inputs import Array, Inputs
from .noise import IndependentNoise, Noise
from .prior import Prior
from .tensors import as_tensor

#: A block of rows has about this many entries; evaluating a kernel takes a few times its memory.
BLOCK = 1 << 25


@dataclass(frozen=True, eq=False)
class Covariances:
    """K, and A = K_XX + V, as ``prior`` has them, in float64 on ``device``."""

    prior: Prior
    device: str = "cpu"

    def between(self, A: Array, B: Array) -> torch.Tensor:
        """K(A, B)."""
        return self._kernel(self._tensor(A), self._tensor(B))

    def of_data(self, inputs: Inputs) -> torch.Tensor:
        """A. One n × n matrix is live, and one block of rows; it is symmetric to the last bit."""
        X = self._tensor(inputs.values)
        result = X.new_empty(len(X), len(X))
        for start, stop in _blocks(len(X)):
            own = self._kernel(X[start:stop], X[start:stop])
            result[start:stop, start:stop] = (own + own.T) / 2.0
            if start:
                result[start:stop, :start] = self._kernel(X[start:stop], X[:start])
                result[:start, start:stop] = result[start:stop, :start].T
        result.diagonal().add_(as_tensor(self.prior.noise_variance(len(X)), self.device))
        return result

    def data_times(self, inputs: Inputs, block: torch.Tensor) -> torch.Tensor:
        """A ``block``, without A: only a block of its rows is ever there."""
        X = self._tensor(inputs.values)
        result = as_tensor(self.prior.noise_variance(len(X)), self.device)[:, None] * block
        for start, stop in _blocks(len(X)):
            result[start:stop] += self._kernel(X[start:stop], X) @ block
        return result

    def _kernel(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return kernel_matrix(self.prior.kernel_on(self.device), A, B)

    def _tensor(self, values: Array) -> torch.Tensor:
        require_features(self.prior.kernel, values.shape[1])
        return torch.tensor(values, dtype=torch.float64, device=self.device)


def add_noise(matrix: torch.Tensor, noise: Noise) -> torch.Tensor:
    """``matrix`` itself, with Σ added to it in place."""
    if isinstance(noise, ComposedNoise):
        matrix += as_tensor(noise.covariance(), matrix.device)
    elif isinstance(noise, IndependentNoise):
        matrix.diagonal().add_(as_tensor(noise.variances, matrix.device))
    else:
        factor = as_tensor(noise.factor, matrix.device)
        matrix.addmm_(factor, factor.T)
        matrix.diagonal().add_(noise.shift)
    return matrix


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // max(1, rows))
    for start in range(0, rows, step):
        yield start, min(rows, start + step)
