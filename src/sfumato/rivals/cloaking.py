"""DP-Cloaking: predictions of a Gaussian process with differentially private noise (Smith et al. 2018).

The prediction at X_new is linear in y. If one private output moves by at most d, the prediction moves by at most
d c_i, c_i the column of C = K_*X (K_XX + V)⁻¹ that belongs to it. Noise N(0, (d σ)² M) hides that to (ε, δ) if
c_iᵀ M⁺ c_i ≤ 1 for every private row i; M is the smallest such ellipsoid (ellipsoid.py), σ the multiplier
(dp_noise.py). Independent columns have M = C Cᵀ: cloaking is then the same as noise d σ on each private output.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..errors import GuaranteeWarning, InputError
from ..inputs import Array, Mask
from ..noise import CorrelatedNoise
from ..prior import Prior
from .dp_draw import NoiseSource, NoisyPrediction, draw_once
from .dp_noise import Calibration, exact_epsilon, noise_multiplier
from .ellipsoid import Ellipsoid, smallest_ellipsoid
from .prediction_map import PredictionMap, prediction_map, rows_inside, solve_positive

CloakingMatrix = Literal["all", "private"]


@dataclass(frozen=True, eq=False)
class Cloak:
    """Noise on predictions, and what it promises.

    ``noise`` is N(0, (d σ)² M) over the new inputs, with d = ``sensitivity`` and σ = ``multiplier``. ``reach`` is
    max_i c_iᵀ M⁺ c_i over the private columns of the prediction that is really made.

    Guarantee: with ``reach`` ≤ 1, one draw is (ε, δ)-differentially private for a change of any one private output by
    at most ``sensitivity``. The inputs, the prior and the public outputs are taken as known to everyone.
    """

    prediction: PredictionMap
    private: Mask
    matrix: CloakingMatrix
    epsilon: float
    delta: float
    sensitivity: float
    calibration: Calibration
    multiplier: float
    ellipsoid: Ellipsoid
    noise: CorrelatedNoise
    reach: float
    _source: NoiseSource = field(default_factory=NoiseSource, repr=False)

    @property
    def gap(self) -> float:
        """How far log det M is above the least possible, at most."""
        return self.ellipsoid.gap

    @property
    def holds(self) -> bool:
        """Whether the noise covers what one private output can change."""
        return self.reach <= 1.0

    @property
    def exact_epsilon(self) -> float:
        """The ε that one draw really spends at this δ: less than ``epsilon`` where the calibration is generous."""
        return epsilon_of_draws(self, 1)

    def noise_covariance(self) -> Array:
        """(d σ)² M, one row and column for each new input."""
        return self.noise.covariance()

    def draw(self, y: Any, *, unsafe_seed: int | None = None) -> NoisyPrediction:
        """The prediction from ``y`` with noise, drawn once: asking again with the same ``y`` gives the same draw.

        ``unsafe_seed`` is for experiments: the noise then depends on the seed alone, and anyone can take it off.
        """
        return draw_once(self.prediction, self.noise, self._source, y, unsafe_seed)

    def __str__(self) -> str:
        rows = f"{int(self.private.sum())} of {self.private.shape[0]} rows private"
        promise = f"(ε = {self.epsilon:g}, δ = {self.delta:g}) for a change of one of them by {self.sensitivity:g}"
        state = "holds" if self.holds else f"DOES NOT HOLD: a change reaches {math.sqrt(self.reach):.4g} times too far"
        return (
            f"Cloak for {len(self.prediction.new)} predictions, {rows}\n"
            f"  promise      {promise}; {state}\n"
            f"  noise        {math.sqrt(self.noise.trace / self.noise.rows):.4g} root mean square, rank "
            f"{self.noise.rank}, {self.calibration} calibration; log det within {self.gap:.1e} of the least"
        )


def cloak(
    prior: Prior,
    X: Any,
    X_new: Any,
    private: Any,
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    matrix: CloakingMatrix = "all",
    calibration: Calibration = "classical",
    accuracy: float = 1e-7,
) -> Cloak:
    """The DP-Cloaking noise for predictions at ``X_new`` from outputs at ``X``.

    ``private`` is a region or a True/False for each row: the outputs that are protected. ``sensitivity`` is d, the
    most that one of them can change, in the units of y.

    ========= =========================================================================================
    matrix    the columns that are cloaked
    ========= =========================================================================================
    "all"     those of K_*X (K_XX + V)⁻¹ for the private rows: the method, with the other rows public
    "private" K_*P K_PP⁻¹ over the private rows P alone and without V, as in the paper's scripts. The prediction
              is made from all rows, so it seldom covers what they change: ``reach`` says how far off it is
    ========= =========================================================================================

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> from sfumato.rivals.cloaking import cloak
    >>> t = np.linspace(0.0, 3.0, 31)
    >>> prior = sf.Prior(gpytorch.kernels.RBFKernel(), noise=0.1)
    >>> made = cloak(prior, t, [0.5, 1.5], sf.Box(1.0, 2.0), epsilon=0.5, delta=0.01, sensitivity=2.0)
    >>> made.holds, made.draw(np.sin(t)).mean.shape
    (True, (2,))
    """
    if matrix not in ("all", "private"):
        raise InputError(f"matrix is {matrix!r}; choose 'all' (the method) or 'private' (the paper's scripts).")
    size = checked_sensitivity(sensitivity)
    multiplier = noise_multiplier(epsilon, delta, calibration)
    prediction = prediction_map(prior, X, X_new)
    inside = rows_inside(private, prediction.inputs, "private")
    real = prediction.matrix[:, inside]
    columns = real
    if matrix == "private":
        hidden = prediction.inputs.select(inside)
        columns = solve_positive(prior.covariance(hidden), prior.covariance(hidden, prediction.new)).T
    ellipsoid = smallest_ellipsoid(columns, accuracy)
    # for its own columns the ellipsoid holds by construction
    reach = 1.0 if matrix == "all" else _snapped(ellipsoid.reach(real))
    if reach > 1.0:
        warnings.warn(
            f'matrix is "private": the noise does not cover what a private output changes (a reach of {reach:.4g}, at '
            'most 1 is needed), so no (ε, δ) is promised; use matrix="all" for anything but a comparison',
            GuaranteeWarning,
            stacklevel=2,
        )
    scale = size * multiplier
    noise = CorrelatedNoise(scale * ellipsoid.factor, scale**2 * ellipsoid.shift)
    return Cloak(
        prediction=prediction,
        private=inside,
        matrix=matrix,
        epsilon=float(epsilon),
        delta=float(delta),
        sensitivity=size,
        calibration=calibration,
        multiplier=multiplier,
        ellipsoid=ellipsoid,
        noise=noise,
        reach=reach,
    )


def epsilon_of_draws(made: Cloak, draws: int) -> float:
    """The ε that ``draws`` independent draws spend together, exactly: infinite where a change is not covered at all."""
    return exact_epsilon(made.multiplier / math.sqrt(draws * max(made.reach, 1.0)), made.delta)


def checked_sensitivity(sensitivity: Any) -> float:
    number = isinstance(sensitivity, (int, float, np.number)) and not isinstance(sensitivity, bool)
    if not number or not 0.0 < float(sensitivity) < math.inf:
        raise InputError(
            f"sensitivity is {sensitivity!r}; give the most that one output can change, a positive number in the "
            "units of y."
        )
    return float(sensitivity)


def _snapped(reach: float) -> float:
    """Equality up to round-off counts as equality."""
    return 1.0 if 1.0 < reach < 1.0 + 1e-9 else reach
