"""All that a design and a certificate need to know of any number of rows: a few p × p sums (MATH.md, section 6.3).

With features Φ (features.py) the data ``y = Φu + g(X) + e`` tell of u what p *virtual rows* tell: the least squares
coefficients, u plus noise of covariance ``(ΦᵀV⁻¹Φ)⁻¹``. Noise ``Z = Φ c ω`` adds ``c cᵀ`` to that. So the noise
programs run as they are on p virtual rows, whatever the number of real ones is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from .engine.engine import Done, Engine, Totals
from .errors import InputError
from .features import ROWS_ON_CPU, Features
from .inputs import Array, Inputs
from .machine import free_memory
from .parts import Part, parts_of
from .prior import Prior

_UNIT = float(np.finfo(np.float64).eps)

#: The share of a GPU's free memory that one block of rows may take.
SHARE_OF_MEMORY = 0.05

#: A variance that is negative by more than this share of itself does not come from round-off.
NOT_A_COVARIANCE = 1e-4

#: Gram matrices are summed block column by block column, so that only about half of them is computed.
GRAM_BLOCKS = 4


@dataclass(frozen=True, eq=False)
class Gram:
    """The work on a part of the rows: sums of ``s_i φ_i φ_iᵀ`` for several scales s, and of what is left out.

    ``noisy`` are the places of priors whose V is given for each row, in columns ``noise_<place>`` of the part;
    ``weighted`` says that the part has a column ``weights``, ``observed`` that it has one with ``outputs``: then
    ``ΦᵀV⁻¹(outputs − mean)`` is summed too, for the first prior.
    """

    features: tuple[Features, ...]
    noisy: tuple[int, ...]
    weighted: bool
    observed: bool
    device: str = "cpu"

    def __call__(self, part: Part) -> Totals:
        size = sum(len(features) for features in self.features)
        rows = _rows_at_once(size, self.device)
        X = torch.from_numpy(np.array(part.inputs()))
        columns = {name: torch.from_numpy(np.array(part.column(name))) for name in self._columns()}
        if self.observed:
            columns["outputs"] -= torch.from_numpy(self.features[0].prior.mean_at(X.numpy()))
        totals: dict[str, torch.Tensor] = {}
        for start in range(0, part.rows, rows):
            here = X[start : start + rows].to(self.device)
            more = {name: values[start : start + rows].to(self.device) for name, values in columns.items()}
            self._add(totals, here, more)
        found = {name: value.cpu().numpy() for name, value in totals.items()}
        for name in found:
            if found[name].ndim == 2:
                found[name] = np.tril(found[name]) + np.tril(found[name], -1).T
        return found | {"rows": np.array(float(part.rows))}

    def _columns(self) -> list[str]:
        more = [name for name, given in (("weights", self.weighted), ("outputs", self.observed)) if given]
        return [f"noise_{place}" for place in self.noisy] + more

    def _add(self, totals: dict[str, torch.Tensor], X: torch.Tensor, columns: dict[str, torch.Tensor]) -> None:
        weights = columns.get("weights")
        blocks = [features.block(X) for features in self.features]
        for place, features in enumerate(self.features):
            variance = features.variance(X)
            _accumulate(totals, f"variance_{place}", variance.sum())
            if weights is not None:
                _accumulate(totals, f"weighted_variance_{place}", (variance * weights).sum())
        together = blocks[0] if len(blocks) == 1 else torch.hstack(blocks)
        if self.observed:
            values = columns["outputs"] / columns["noise_0"] if 0 in self.noisy else columns["outputs"]
            _accumulate(totals, "projection", together.T @ values)
        for name, scale in self._scales(columns).items():
            if name not in totals:
                totals[name] = torch.zeros(together.shape[1], together.shape[1], dtype=X.dtype, device=X.device)
            _add_gram(totals[name], together, together if scale is None else together * scale[:, None])

    def _scales(self, columns: dict[str, torch.Tensor]) -> dict[str, torch.Tensor | None]:
        weights = columns.get("weights")
        scales: dict[str, torch.Tensor | None] = {"plain": None}
        if weights is not None:
            scales |= {"cost": weights, "squared_cost": weights.square()}
        for place in self.noisy:
            noise = columns[f"noise_{place}"]
            scales[f"precision_{place}"] = 1.0 / noise
            scales[f"spread_{place}"] = noise if weights is None else noise * weights.square()
        return scales


def _accumulate(totals: dict[str, torch.Tensor], name: str, value: torch.Tensor) -> None:
    totals[name] = totals[name] + value if name in totals else value


def _add_gram(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """Add the lower half of ``leftᵀ right`` to ``total``."""
    step = -(-total.shape[0] // GRAM_BLOCKS)
    for start in range(0, total.shape[0], step):
        total[start:, start : start + step].addmm_(left[:, start:].T, right[:, start : start + step])


def _rows_at_once(size: int, device: str) -> int:
    if device == "cpu":
        return ROWS_ON_CPU
    return int(np.clip(SHARE_OF_MEMORY * free_memory(device) / (8 * size), ROWS_ON_CPU, 1 << 20))


@dataclass(frozen=True, eq=False)
class Summary:
    """What the rows tell of the features' coefficients. The coefficients of several priors follow each other.

    ``noises`` holds V where it is one number for all rows, else None.
    """

    features: tuple[Features, ...]
    noises: tuple[float | None, ...]
    totals: Totals

    def __len__(self) -> int:
        """How many virtual rows there are."""
        return sum(len(features) for features in self.features)

    @property
    def rows(self) -> int:
        return int(self.totals["rows"])

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the coefficients of each prior lie."""
        ends = np.cumsum([len(features) for features in self.features])
        return tuple(slice(int(end) - len(features), int(end)) for end, features in zip(ends, self.features))

    @property
    def plain(self) -> Array:
        """ΦᵀΦ: ``Tr Σ = Tr cᵀ(ΦᵀΦ)c``."""
        return self.totals["plain"]

    @property
    def cost(self) -> Array:
        """ΦᵀCΦ, so that what is minimised is ``Tr cᵀ(ΦᵀCΦ)c``."""
        return self.totals.get("cost", self.plain)

    def spread(self, place: int) -> Array:
        """ΦᵀC V CΦ for the prior at ``place``."""
        noise = self.noises[place]
        if noise is None:
            return self.totals[f"spread_{place}"]
        return noise * self.totals.get("squared_cost", self.plain)

    def residual(self, place: int, weighted: bool) -> float:
        """``Tr C(K_XX − ΦΦᵀ)``: how much the features leave out, with what round-off may hide of it."""
        weighted = weighted and "cost" in self.totals
        total = float(self.totals[f"weighted_variance_{place}" if weighted else f"variance_{place}"])
        known = np.diag(self.cost if weighted else self.plain)[self.slices[place]]
        left_out = total - float(self.features[place].shares @ known)
        if left_out < -NOT_A_COVARIANCE * total:
            raise InputError("kernel is not a covariance: variances are negative once f is known at the centres.")
        return max(left_out, 0.0) + 64.0 * _UNIT * total

    @cached_property
    def allowance(self) -> Array:
        """How much information, for V = 1, round-off may have taken from each coefficient: added to its own.

        A feature is wrong by about ``u √p |k| ‖row of L⁻¹‖``, and an entry (j, k) of ΦᵀΦ by ``e_k √(ΦᵀΦ)_jj`` with
        ``e_k`` that, times √n. A diagonal a covers such errors if ``a_j a_k ≥ p e_k² (ΦᵀΦ)_jj``, so if each a_j
        has a part that is relative to ΦᵀΦ and one that is relative to the error.
        """
        size, rows = len(self), self.rows
        own = np.diag(self.plain)
        reach = max(float(np.max(features.prior.variance(features.centres))) for features in self.features)
        amplified = np.concatenate([features.amplification for features in self.features])
        error = _UNIT**2 * size * rows * reach**2 * amplified
        balance = _UNIT * np.sqrt(size * reach * float(np.max(amplified)))
        return np.asarray(4.0 * np.sqrt(size) * (balance * own + error / balance))

    def told(self, place: int) -> Array:
        """``ΦᵀV⁻¹Φ`` for the prior at ``place``."""
        noise = self.noises[place]
        return self.totals[f"precision_{place}"] if noise is None else self.plain / noise

    def information(self, place: int) -> Array:
        """``ΦᵀV⁻¹Φ`` for the prior at ``place``, from the safe side: never less than the rows tell."""
        precise = self.told(place)
        scale = float(np.trace(precise)) / float(np.trace(self.plain))
        return np.asarray(precise + np.diag(scale * self.allowance))

    @property
    def projection(self) -> Array:
        """``ΦᵀV⁻¹(outputs − mean)`` for the first prior, where outputs were summed up."""
        noise = self.noises[0]
        return self.totals["projection"] if noise is None else self.totals["projection"] / noise


def summarise(
    priors: Sequence[Prior],
    features: Sequence[Features],
    inputs: Inputs,
    weights: Array | None,
    engine: Engine,
    device: str | None,
    done: Done,
    outputs: Array | None = None,
) -> Summary:
    """One pass over the rows; ``outputs`` are published values, for ``projection``."""
    columns = {f"noise_{i}": prior.noise for i, prior in enumerate(priors) if not isinstance(prior.noise, float)}
    if weights is not None:
        columns["weights"] = weights
    if outputs is not None:
        columns["outputs"] = outputs
    noisy = tuple(i for i, prior in enumerate(priors) if not isinstance(prior.noise, float))
    work = Gram(tuple(features), noisy, weights is not None, outputs is not None, device or "cpu")
    totals = engine.total(work, parts_of(inputs, columns), done)
    noises = tuple(prior.noise if isinstance(prior.noise, float) else None for prior in priors)
    return Summary(tuple(features), noises, totals)


def inverse(matrix: Array) -> Array:
    """The inverse of a positive definite matrix."""
    lower = scipy.linalg.cholesky(matrix, lower=True, check_finite=False)
    half = scipy.linalg.solve_triangular(lower, np.eye(len(matrix)), lower=True, check_finite=False)
    return np.asarray(half.T @ half)
