"""Many naive readers at once: stationary processes fitted to published values, one for each release of a study.

A study refits this model to thousands of releases. On one set of times that is linear algebra on whole tables: the
likelihood is maximised over a fine grid of lengthscales and noise shares, or Adam follows it for all releases together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import torch
from torch.nn.functional import softplus

from ..arrays import Array

#: The grid of the likelihood: lengthscales in orbits, and noise as a share of noise and variance together.
LENGTHSCALES = np.geomspace(0.02, 40.0, 161)
SHARES = np.geomspace(1e-9, 1.0, 121)

#: Adam as in the paper's scripts, on standardised data; 0 is where a GPyTorch model starts its mean and its raw scale.
EPOCHS, LEARNING_RATE, WEIGHT_DECAY, DECAY = 50, 0.1, 1e-4, (10, 0.1)
START_LENGTHSCALE, START_NOISE, LEAST_NOISE = 0.7, 0.01, 1e-4


@dataclass(frozen=True, eq=False)
class NaiveReaders:
    """A constant mean, an RBF kernel and independent noise for each row of ``outputs``, values at ``times``."""

    times: Array
    outputs: Array
    lengthscale: Array
    variance: Array
    noise: Array
    mean: Array

    def means_at(self, at: Array) -> Array:
        """The posterior means, a row for each reader and a column for each time of ``at``."""
        own = self._correlation(self.times) * self.variance[:, None, None]
        own[:, np.arange(len(self.times)), np.arange(len(self.times))] += self.noise[:, None]
        weights = np.linalg.solve(own, (self.outputs - self.mean[:, None])[:, :, None])
        across = self._correlation(at) * self.variance[:, None, None]
        return np.asarray(self.mean[:, None] + (across @ weights)[:, :, 0])

    def _correlation(self, at: Array) -> Array:
        apart = (at[:, None] - self.times[None, :]) ** 2
        return np.asarray(np.exp(-0.5 * apart / self.lengthscale[:, None, None] ** 2))


def most_likely(times: Array, outputs: Array) -> NaiveReaders:
    """The maximum of the likelihood for each row of ``outputs``, over a grid of lengthscales and noise shares.

    Mean and scale have closed forms for each of them: with C = (1 − ρ) K + ρ I, β = 1ᵀC⁻¹w / 1ᵀC⁻¹1 and
    s² = (w − β)ᵀC⁻¹(w − β)/n. One spectral decomposition a lengthscale serves all shares ρ and all rows.
    """
    n = len(times)
    # numbers near zero lose fewer digits
    centre = outputs.mean(axis=1, keepdims=True)
    residual = (outputs - centre).T
    best = np.full(outputs.shape[0], -np.inf)
    found = np.zeros((4, outputs.shape[0]))
    for lengthscale in LENGTHSCALES:
        values, vectors = scipy.linalg.eigh(np.exp(-0.5 * ((times[:, None] - times) / lengthscale) ** 2))
        spectrum = (1.0 - SHARES[:, None]) * np.maximum(values, 0.0) + SHARES[:, None]
        ones, turned = vectors.sum(axis=0), vectors.T @ residual
        shift = (1.0 / spectrum) @ (ones[:, None] * turned) / ((1.0 / spectrum) @ ones**2)[:, None]
        square = (1.0 / spectrum) @ turned**2 - shift**2 * ((1.0 / spectrum) @ ones**2)[:, None]
        scale = np.maximum(square / n, np.finfo(float).tiny)
        likelihood = -0.5 * (n * np.log(scale) + np.log(spectrum).sum(axis=1)[:, None])
        row, column = np.argmax(likelihood, axis=0), np.arange(outputs.shape[0])
        better = likelihood[row, column] > best
        best = np.where(better, likelihood[row, column], best)
        here = np.array(
            [
                np.full_like(best, lengthscale),
                (1.0 - SHARES[row]) * scale[row, column],
                SHARES[row] * scale[row, column],
                shift[row, column],
            ]
        )
        found = np.where(better, here, found)
    return NaiveReaders(times, outputs, found[0], found[1], found[2], found[3] + centre[:, 0])


def by_adam(times: Array, outputs: Array) -> NaiveReaders:
    """Fifty steps of Adam on standardised data with the schedule of the paper's scripts, short of a maximum or not."""
    t_scale = float(np.std(times, ddof=1))
    centre, scale = outputs.mean(axis=1), outputs.std(axis=1, ddof=1)
    squares = torch.from_numpy(((times[:, None] - times) / t_scale) ** 2)
    w = torch.from_numpy((outputs - centre[:, None]) / scale[:, None])
    start = (_inverse_softplus(START_LENGTHSCALE), 0.0, _inverse_softplus(START_NOISE - LEAST_NOISE), 0.0)
    raw = [torch.full((len(outputs),), value, dtype=torch.float64, requires_grad=True) for value in start]
    optimiser = torch.optim.Adam(raw, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, *DECAY)
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        # the readers are fitted independently, so the slope of the sum is that of each
        _misfits(raw, squares, w).sum().backward()
        optimiser.step()
        schedule.step()
    lengthscale, variance, noise, mean = (value.detach().numpy() for value in _parameters(raw))
    return NaiveReaders(
        times, outputs, t_scale * lengthscale, scale**2 * variance, scale**2 * noise, centre + scale * mean
    )


def _misfits(raw: list[torch.Tensor], squares: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """−log N(w; β, C)/n of each reader, up to a constant."""
    lengthscale, variance, noise, mean = _parameters(raw)
    correlation = torch.exp(squares * (-0.5 / lengthscale**2)[:, None, None])
    covariance = correlation * variance[:, None, None] + torch.diag_embed(noise[:, None].expand_as(w))
    lower = torch.linalg.cholesky(covariance)
    white = torch.linalg.solve_triangular(lower, (w - mean[:, None])[:, :, None], upper=False)
    log_root = torch.log(torch.diagonal(lower, dim1=1, dim2=2)).sum(dim=1)
    misfits: torch.Tensor = (0.5 * (white**2).sum(dim=(1, 2)) + log_root) / w.shape[1]
    return misfits


def _parameters(raw: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    lengthscale, variance, noise, mean = raw
    return softplus(lengthscale), softplus(variance), LEAST_NOISE + softplus(noise), mean


def _inverse_softplus(value: float) -> float:
    return float(np.log(np.expm1(value)))
