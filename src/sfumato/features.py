"""Features: f as a sum of functions around centres, and a small rest that is never below zero.

``φ(x) = L⁻¹ k(Z, x)`` with ``K_ZZ = L Lᵀ`` for centres Z. Then ``K(x, x′) = φ(x)ᵀφ(x′) + (a covariance)``: what the
features leave out is the covariance of f once f(Z) is known. So ``Φ Φᵀ ⪯ K_XX`` for any rows X (MATH.md, section 6.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import torch

from .dense_kernel import kernel_diagonal, kernel_matrix
from .inputs import Array
from .prior import Prior

_UNIT = float(np.finfo(np.float64).eps)

#: How many rows of features are made at a time on a CPU: few enough to stay in its caches.
ROWS_ON_CPU = 1024


@dataclass(frozen=True, eq=False)
class Features:
    """The features of ``prior`` around ``centres`` (Z, p × d); ``lower`` is L.

    ``f = φ(·)ᵀu + g`` with ``u ~ N(0, Diag(shares))`` and g a process that is independent of u. In exact arithmetic all
    shares are 1; they are less by as much as round-off in L could make φ too large.
    """

    prior: Prior
    centres: Array
    lower: Array

    @classmethod
    def around(cls, prior: Prior, centres: Array) -> Features:
        lower = scipy.linalg.cholesky(prior.covariance(centres), lower=True, check_finite=False)
        return cls(prior, centres, np.asarray(lower))

    def __len__(self) -> int:
        return int(self.centres.shape[0])

    @cached_property
    def inverse(self) -> Array:
        """L⁻¹."""
        identity = np.eye(len(self))
        return np.asarray(scipy.linalg.solve_triangular(self.lower, identity, lower=True, check_finite=False))

    @cached_property
    def amplification(self) -> Array:
        """By how much each feature amplifies round-off in k(x, Z): the squared norms of the rows of L⁻¹."""
        return np.asarray(np.einsum("ij,ij->i", self.inverse, self.inverse))

    @cached_property
    def shares(self) -> Array:
        """The prior variance of u that is counted on."""
        largest = float(np.linalg.norm(self.lower, ord=2)) ** 2
        return np.asarray(1.0 / (1.0 + 4.0 * np.sqrt(len(self)) * _UNIT * largest * self.amplification))

    def at(self, X: Array) -> Array:
        """φ(x) for each row of ``X``, rows × p."""
        values = np.empty((len(X), len(self)))
        for start in range(0, len(X), ROWS_ON_CPU):
            stop = start + ROWS_ON_CPU
            values[start:stop] = self.block(torch.from_numpy(np.array(X[start:stop]))).numpy()
        return values

    def left_out(self, X: Array, values: Array | None = None) -> Array:
        """The variance at each row of ``X`` that is not counted on: all of it is given to the reader.

        ``values`` is φ there, where it is known already.
        """
        counted = (self.at(X) if values is None else values) ** 2 @ self.shares
        return np.maximum(self.prior.variance(X) - counted, 0.0)

    def block(self, X: torch.Tensor) -> torch.Tensor:
        """φ(x) for rows on any device."""
        device = str(X.device)
        with torch.no_grad():
            cross = kernel_matrix(self.prior.kernel_on(device), X, self._tensor("centres", device))
            if X.is_cuda:
                # a GPU multiplies far faster than it solves, and errs no more than the shares allow for
                return cross @ self._tensor("inverse", device)
            upper = self._tensor("upper", device)
            block: torch.Tensor = torch.linalg.solve_triangular(upper, cross, upper=True, left=False)
            return block

    def variance(self, X: torch.Tensor) -> torch.Tensor:
        """K(x, x) for rows on any device."""
        with torch.no_grad():
            return kernel_diagonal(self.prior.kernel_on(str(X.device)), X)

    @cached_property
    def _there(self) -> dict[tuple[str, str], torch.Tensor]:
        return {}

    def _tensor(self, name: str, device: str) -> torch.Tensor:
        if (name, device) not in self._there:
            values = {"centres": self.centres, "upper": self.lower.T}.get(name)
            values = self.inverse.T if values is None else values
            self._there[name, device] = torch.from_numpy(np.array(values)).to(device)
        return self._there[name, device]

    def __getstate__(self) -> dict[str, Any]:
        # tensors on a device are made again where they are needed
        return {name: self.__dict__[name] for name in ("prior", "centres", "lower")}
