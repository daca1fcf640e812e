"""An attacker who looks for the input that a release tells most about, with formulas of their own.

Kernels are trees as in sfumato's files, evaluated by plain NumPy and in 50 digits (kernel_oracles.py). Nothing here
imports sfumato.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np

from kernel_oracles import DIGITS, kernel50


def kernel_values(tree: dict, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """K(A, B) for a tree, from the textbook formulas."""
    if "active_dims" in tree:
        A, B = A[:, tree["active_dims"]], B[:, tree["active_dims"]]
    kind, gaps = tree["kind"], A[:, None, :] - B[None, :, :]
    if kind == "scale":
        return tree["variance"] * kernel_values(tree["kernel"], A, B)
    if kind == "sum":
        return sum(kernel_values(part, A, B) for part in tree["kernels"])
    if kind == "product":
        return np.prod([kernel_values(part, A, B) for part in tree["kernels"]], axis=0)
    if kind == "constant":
        return np.full(gaps.shape[:2], float(tree["constant"]))
    if kind == "linear":
        return (A * np.ravel(tree["variance"])) @ B.T
    if kind == "polynomial":
        return (A @ B.T + tree["offset"]) ** tree["power"]
    if kind == "cosine":
        return np.cos(np.pi * np.linalg.norm(gaps, axis=2) / tree["period_length"])
    scales = np.ravel(tree["lengthscale"])
    if kind == "periodic":
        return np.exp(-2.0 * np.sum(np.sin(np.pi * gaps / np.ravel(tree["period_length"])) ** 2 / scales, axis=2))
    squares = np.sum((gaps / scales) ** 2, axis=2)
    if kind == "rbf":
        return np.exp(-squares / 2.0)
    if kind == "rational_quadratic":
        return (1.0 + squares / (2.0 * tree["alpha"])) ** -tree["alpha"]
    assert kind == "matern"
    z = np.sqrt(2.0 * tree["nu"] * squares)
    return {0.5: 1.0, 1.5: 1.0 + z, 2.5: 1.0 + z + z**2 / 3.0}[tree["nu"]] * np.exp(-z)


@dataclass(frozen=True)
class Attacker:
    """Knows the kernel, the rows, V and Σ, and the floor's square ``(1 − alpha) K(s, s)`` or ``floor²``."""

    tree: dict
    X: np.ndarray
    V: np.ndarray | float
    sigma: np.ndarray
    alpha: float | None = None
    floor: float | None = None

    def variance(self, S: np.ndarray) -> np.ndarray:
        few = [S[start : start + 32] for start in range(0, len(S), 32)]
        return np.concatenate([np.diagonal(kernel_values(self.tree, part, part)) for part in few])

    def floors2(self, S: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return np.full(len(S), self.floor**2) if self.floor is not None else (1.0 - self.alpha) * variance

    def ratios(self) -> Callable[[np.ndarray], np.ndarray]:
        """The reader's standard deviation over the floor, at any inputs."""
        noise = np.diag(np.broadcast_to(self.V, len(self.X)))
        values, vectors = np.linalg.eigh(kernel_values(self.tree, self.X, self.X) + noise + self.sigma)
        kept = values > 1e-15 * len(values) * values[-1]
        white = (vectors[:, kept] / np.sqrt(values[kept])).T

        def at(S: np.ndarray) -> np.ndarray:
            variance = self.variance(S)
            left = variance - np.sum((white @ kernel_values(self.tree, self.X, S)) ** 2, axis=0)
            return np.sqrt(np.maximum(left, 0.0) / self.floors2(S, variance))

        return at

    def worst(self, starts: np.ndarray, into: Callable[[np.ndarray], np.ndarray], walks=12, steps=30, seed=0):
        """The least ratio that random descent from the worst of ``starts`` finds, and where; ``into`` the region."""
        rng, at = np.random.default_rng(seed), self.ratios()
        here = into(starts)
        found = at(here)
        order = np.argsort(found)[:walks]
        extent = np.ptp(here, axis=0)
        here, found, step = here[order], found[order], np.full(len(order), 0.1)
        for _ in range(steps):
            trial = here[:, None] + step[:, None, None] * extent * rng.standard_normal((len(here), 12, here.shape[1]))
            flat = into(trial.reshape(-1, here.shape[1]))
            ratios = at(flat).reshape(len(here), -1)
            best = ratios.argmin(axis=1)
            better = ratios.min(axis=1) < found
            here[better] = flat.reshape(trial.shape)[np.arange(len(here)), best][better]
            found = np.minimum(found, ratios.min(axis=1))
            step = np.where(better, step, 0.5 * step)
        return float(found.min()), here[found.argmin()]

    def ratio50(self, s: np.ndarray) -> float:
        """The ratio at one input in 50 digits."""
        with mpmath.workdps(DIGITS):
            rows = [[mpmath.mpf(float(v)) for v in row] for row in self.X]
            place = [mpmath.mpf(float(v)) for v in s]
            noise = np.broadcast_to(self.V, len(rows))
            M = mpmath.matrix(len(rows), len(rows))
            for i, a in enumerate(rows):
                for j, b in enumerate(rows[: i + 1]):
                    M[i, j] = M[j, i] = kernel50(self.tree, a, b) + mpmath.mpf(float(self.sigma[i, j]))
                M[i, i] += mpmath.mpf(float(noise[i]))
            cross = mpmath.matrix([kernel50(self.tree, a, place) for a in rows])
            variance = kernel50(self.tree, place, place)
            left = variance - (cross.T * mpmath.lu_solve(M, cross))[0]
            asked = mpmath.mpf(self.floor) ** 2 if self.floor is not None else (1 - mpmath.mpf(self.alpha)) * variance
            return float(mpmath.sqrt(left / asked))
