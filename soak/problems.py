"""Random problems: every certificate is compared with an independent answer."""

from __future__ import annotations

from pathlib import Path

import gpytorch
import numpy as np

import sfumato as sf

from .outcome import Outcome


def trial(random: np.random.Generator, folder: Path) -> Outcome:
    """Protect, and ask a dense oracle whether the joint promise is kept at the sensitive inputs."""
    rows, alpha = np.sort(random.uniform(0.0, 3.0, size=random.integers(3, 30))), random.uniform(0.05, 0.95)
    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = random.uniform(0.05, 0.3)
    noise = 10.0 ** random.uniform(-4.0, 0.0)
    case = {"rows": rows.tolist(), "alpha": alpha, "lengthscale": float(kernel.lengthscale), "noise": noise}
    prior = sf.Prior(kernel=kernel, noise=noise)
    mechanism = sf.protect(prior, rows, sf.Box(1.0, 2.0), alpha=alpha, protects="function", progress=False)
    S = mechanism.sensitive
    gaps = np.concatenate([rows, S.ravel()])
    K = np.exp(-0.5 * ((gaps[:, None] - gaps) / float(kernel.lengthscale)) ** 2)
    n = len(rows)
    M = K[:n, :n] + noise * np.eye(n) + mechanism.noise.covariance()
    told = K[n:, :n] @ np.linalg.solve(M, K[:n, n:])
    least = np.linalg.eigvalsh(alpha * K[n:, n:] - told)[0] if len(S) else 0.0
    broken = f"readers learn more than they may, by {-least:.3g}" if least < -1e-9 else None
    return Outcome("problems", {"certificates": 1}, broken, case)
