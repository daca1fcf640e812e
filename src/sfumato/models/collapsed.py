"""A lower bound of the likelihood of many rows, from sums over them (Titsias 2009), and its slopes.

With inducing inputs Z and Q = K(X, Z) K(Z, Z)⁻¹ K(Z, X), for noise N and a trend Hβ with the best β,

    log p(y) ≥ log N(y − Hβ; 0, Q + N) − ½ Σ_i (k(x_i, x_i) − q_ii) / N_i .

All of it follows from sums over the rows whose size is that of Z: rows are worked on some at a time, here or on a GPU,
and the memory does not grow with their number. The slopes take a second pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError

from ..arrays import Array
from ..linalg import pivoted_cholesky
from ..machine import free_memory
from .fit_rows import FitRows
from .fit_search import LOST, Rows, Search, exactly
from .likelihoods import LOG_2_PI

#: The most inducing inputs here, and on a GPU.
INDUCING, INDUCING_THERE = 300, 1000
#: Variance that they leave, and error that they are seen with (which keeps it a bound), as shares of the noise; and the
#: share of the variance that rounding needs as an error.
ENOUGH, ERROR, LEAST_ERROR = 1e-4, 1e-3, 1e-8
#: Rows that are worked on together here, and on a GPU.
BLOCK, BLOCK_THERE = 1 << 11, 1 << 17
#: Rows on the common scale are kept if they take at most this share of the memory that is free.
KEPT = 0.25
#: When a search with the bound is at a maximum; and its most steps.
CLOSE, STEPS = {"ftol": 1e-7, "gtol": 5e-5, "maxls": 10}, 60


@dataclass(frozen=True, eq=False)
class Sums:
    """Σ vvᵀ, Σ vrᵀ, Σ rrᵀ, Σ log N and Σ k/N, with v = L⁻¹ K(Z, x)/√N, LLᵀ = K(Z, Z), and r = (y, H)/√N.

    Dividing by L row by row loses half as many digits as dividing the sums.
    """

    inducing: torch.Tensor
    cross: torch.Tensor
    data: torch.Tensor
    log_noise: torch.Tensor
    variances: torch.Tensor

    @classmethod
    def zero(cls, inducing: int, data: int, device: str) -> Sums:
        shapes = ((inducing, inducing), (inducing, data), (data, data), (), ())
        return cls(*(torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes))


@dataclass(frozen=True, eq=False)
class Bounded:
    """The bound, the coefficients of the trend, and how far below the likelihood it is expected to be at most.

    That is Σ (k − q)/N, for outputs that come from the prior (Burt, Rasmussen and van der Wilk 2019).
    """

    value: float
    beta: Array
    slack: float


class CollapsedBound:
    """The bound for the ``rows`` as a function of what ``search`` is free to choose, for each row.

    ``places`` are the inducing inputs on the common scale. ``tell`` hears how many more rows are done.
    """

    def __init__(
        self,
        search: Search,
        rows: FitRows,
        places: Array,
        device: str = "cpu",
        tell: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.search, self.rows, self.device, self.tell = search, rows, device, tell
        self.places = torch.from_numpy(places).to(device)
        self.error = ERROR * search.typical_noise()
        self._kept: list[Rows] | None = None
        learnt = search.question.noise
        width = rows.inputs.dimension + 3 + (1 if learnt is None else learnt.size)
        if 8.0 * width * len(rows) <= KEPT * free_memory(None if device == "cpu" else device):
            self._kept = list(self._blocks())

    def _blocks(self) -> Iterator[Rows]:
        for block in self.rows.blocks(BLOCK if self.device == "cpu" else BLOCK_THERE):
            rows = self.search.on_scale(block, features=True)
            basis = None if rows.basis is None else rows.basis.to(self.device)
            yield Rows(rows.X.to(self.device), rows.y.to(self.device), basis, rows.noise.to(self.device))

    def blocks(self) -> Iterator[Rows]:
        return self._blocks() if self._kept is None else iter(self._kept)

    def _weighted(self, rows: Rows) -> tuple[torch.Tensor, ...]:
        """w, r, and the sums of log N and k/N of a block."""
        noise = self.search.noise(rows)
        root = noise.rsqrt()[:, None]
        w = self.search.searched.covariance(rows.X, self.places) * root
        r = rows.y[:, None] if rows.basis is None else torch.cat([rows.y[:, None], rows.basis], dim=1)
        variance = self.search.searched.diagonal(rows.X)
        return w, r * root, noise.log().sum(), (variance / noise).sum()

    def _lower(self) -> torch.Tensor:
        """L, with slopes."""
        covariance = self.search.searched.covariance(self.places, self.places)
        error = self.error + LEAST_ERROR * covariance.diagonal().mean()
        lower: torch.Tensor = psd_safe_cholesky(covariance + error * torch.eye(len(covariance), **_like(covariance)))
        return lower

    def sums(self, inverse: torch.Tensor) -> Sums:
        """The sums over all rows, given L⁻¹."""
        total: Sums | None = None
        with torch.no_grad():
            for rows in self.blocks():
                w, r, log_noise, variances = self._weighted(rows)
                v = w @ inverse.T
                if total is None:
                    total = Sums.zero(v.shape[1], r.shape[1], self.device)
                total.inducing.addmm_(v.T, v)
                total.cross.addmm_(v.T, r)
                total.data.addmm_(r.T, r)
                total.log_noise.add_(log_noise)
                total.variances.add_(variances)
                self.tell(len(rows.y))
        assert total is not None
        return total

    def _solved(self, sums: Sums) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The bound from sums, β, and Σ (k − q)/N."""
        inner = psd_safe_cholesky(sums.inducing + torch.eye(len(sums.inducing), **_like(sums.inducing)))
        cross = torch.linalg.solve_triangular(inner, sums.cross, upper=False)
        left = sums.data - cross.T @ cross
        squares, beta = left[0, 0], left.new_zeros(0)
        if len(left) > 1:
            # directions that the features have in common count once
            known = left.detach().cpu()
            beta = torch.linalg.lstsq(known[1:, 1:], known[1:, :1], driver="gelsd").solution[:, 0].to(left.device)
            # β is where this is least, so that what depends on it has no slope
            squares = squares - 2.0 * beta @ left[1:, 0] + beta @ left[1:, 1:] @ beta
        determinant = sums.log_noise + 2.0 * inner.diagonal().log().sum()
        trace = sums.variances - sums.inducing.diagonal().sum()
        return -0.5 * (squares + determinant + len(self.rows) * LOG_2_PI + trace), beta, trace

    def value(self) -> Bounded:
        """The bound on the common scale with the parameters as they are."""
        with torch.no_grad():
            bound, beta, trace = self._solved(self.sums(_inverse(self._lower())))
        return Bounded(float(bound), beta.cpu().numpy(), float(trace))

    def loss_and_slopes(self, vector: Array) -> tuple[float, Array]:
        """Minus the bound for each row; ``LOST`` and no slopes where matrices are not positive definite."""
        search = self.search
        search.put(vector)
        for one in search.free():
            one.grad = None
        try:
            lower = self._lower()
            inverse = _inverse(lower.detach())
            sums = self.sums(inverse)
            # 1, with the slopes that sums divided by L have by L
            turn = inverse @ lower
            turn = turn - turn.detach() + torch.eye(len(turn), **_like(turn))
            leaves = [sums.inducing, sums.cross, sums.data, sums.log_noise, sums.variances]
            first, second, *others = (tensor.requires_grad_() for tensor in leaves)
            half = torch.linalg.solve_triangular(turn, first, upper=False)
            inducing = torch.linalg.solve_triangular(turn, half.T, upper=False)
            cross = torch.linalg.solve_triangular(turn, second, upper=False)
            bound, _, _ = self._solved(Sums(inducing, cross, *others))
            loss = -(bound + search.log_priors()) / len(self.rows)
            loss.backward()
        except (NotPSDError, NanError):
            return LOST, np.zeros(len(vector))
        by_inducing, by_cross, by_data, by_log_noise, by_variances = (_slope(leaf) for leaf in leaves)
        turned, crossed = (by_inducing + by_inducing.T) @ inverse, by_cross.T @ inverse
        for rows in self.blocks():
            w, r, log_noise, variances = self._weighted(rows)
            with torch.no_grad():
                v = w @ inverse.T
                by_w = (v @ turned).addmm_(r, crossed)
                by_r = v @ by_cross + r @ (by_data + by_data.T)
            given = [(w, by_w), (r, by_r), (log_noise, by_log_noise), (variances, by_variances)]
            followed = [(one, slope) for one, slope in given if one.requires_grad]
            torch.autograd.backward([one for one, _ in followed], [slope for _, slope in followed])
            self.tell(len(rows.y))
        found, value = search.slopes(), float(loss.detach())
        return (value, found) if math.isfinite(value) and np.all(np.isfinite(found)) else (LOST, np.zeros(len(vector)))


def _inverse(lower: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = torch.linalg.solve_triangular(lower, torch.eye(len(lower), **_like(lower)), upper=False)
    return found


def _slope(leaf: torch.Tensor) -> torch.Tensor:
    assert leaf.grad is not None
    return leaf.grad


def _like(tensor: torch.Tensor) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "device": tensor.device}


def inducing_inputs(search: Search, device: str) -> Array:
    """Rows of the search that leave the least variance when f is known there, chosen greedily."""
    X, searched = search.rows.X, search.searched
    most = INDUCING if device == "cpu" else INDUCING_THERE
    with exactly(), torch.no_grad():

        def column(place: int) -> Array:
            return searched.covariance(X, X[place : place + 1])[:, 0].numpy()

        diagonal = searched.diagonal(X).numpy()
        pivots = pivoted_cholesky(diagonal, column, ENOUGH * search.typical_noise(), most)
    return X.numpy()[pivots.order]


def climbed(bound: CollapsedBound) -> tuple[Array, float]:
    """Where L-BFGS-B ends from where the parameters are, and the largest slope there."""
    search = bound.search
    found = scipy.optimize.minimize(
        bound.loss_and_slopes,
        search.vector(),
        jac=True,
        method="L-BFGS-B",
        bounds=search.limits(),
        options={"maxiter": STEPS, **CLOSE},
    )
    return np.asarray(found.x), search.steepest(found.x, np.asarray(found.jac))
