"""The mean of many differentially private draws, as the paper's scripts score it, with the budget it really spends."""

from __future__ import annotations

import hashlib
import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, final, get_args

import numpy as np
import scipy.linalg
from scipy.special import log_ndtr

from ..arrays import Array, Mask
from ..data import as_outputs
from ..errors import GuaranteeWarning, InputError
from ..linalg import Ellipsoid, smallest_ellipsoid
from ..models import Prior
from ..noise import CorrelatedNoise, Noise, SecretKey, default_resolution, round_outputs
from .baselines import PredictionMap, prediction_map, rows_inside, solve_positive

# How much Gaussian noise (ε, δ)-differential privacy takes, for a sensitivity of 1.
#
# With noise N(0, σ²) on a number that one person can move by 1, the chance that the privacy loss exceeds ε is weighed
# by
#
#     δ(ε, σ) = Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ)
#
# exactly (Balle and Wang 2018), and so it is for vectors with noise N(0, σ² M) whose change c has cᵀ M⁻¹ c ≤ 1.

Calibration = Literal["classical", "hall", "analytic"]
CALIBRATIONS: tuple[str, ...] = get_args(Calibration)

_UNIT = 2.3e-16


def noise_multiplier(epsilon: float, delta: float, calibration: Calibration = "analytic") -> float:
    """σ: the standard deviation of the noise for each unit of sensitivity.

    =========== ======================= ========================================================
    calibration σ
    =========== ======================= ========================================================
    "classical" √(2 ln(1.25/δ)) / ε     Dwork and Roth 2014; proven for ε ≤ 1 only
    "hall"      √(2 ln(2/δ)) / ε        Hall et al. 2013, Smith et al. 2018; proven for ε ≤ 1 only
    "analytic"  the least that is enough Balle and Wang 2018; any ε
    =========== ======================= ========================================================

    Guarantee: noise of this size is (ε, δ)-differentially private; "analytic" is rounded up, never down.

    >>> [round(noise_multiplier(0.5, 0.01, how), 4) for how in ("classical", "hall", "analytic")]
    [6.215, 6.5105, 3.1469]
    """
    check_budget(epsilon, delta)
    if calibration not in CALIBRATIONS:
        raise InputError(f"calibration is {calibration!r}; choose one of {', '.join(map(repr, CALIBRATIONS))}.")
    if calibration == "analytic":
        return _least(lambda multiplier: log_delta(multiplier, epsilon) <= math.log(delta))
    if epsilon > 1.0:
        raise InputError(
            f'epsilon is {epsilon:g}, but the proof behind calibration="{calibration}" needs epsilon ≤ 1 (beyond, the '
            'noise can be too small); use calibration="analytic", which is exact for every epsilon.'
        )
    return math.sqrt(2.0 * math.log((1.25 if calibration == "classical" else 2.0) / delta)) / epsilon


def exact_epsilon(multiplier: float, delta: float) -> float:
    """The least ε for which noise of ``multiplier`` · sensitivity is (ε, δ)-differentially private, rounded up.

    The mean of k independent draws has ``multiplier / √k``, and tells exactly what the k draws tell together.

    >>> round(exact_epsilon(3.1469, 0.01), 4)
    0.5
    """
    check_budget(1.0, delta)
    if math.isnan(multiplier) or multiplier < 0.0:
        raise InputError(f"multiplier is {multiplier!r}; give a number ≥ 0.")
    if multiplier == 0.0:
        return math.inf
    if math.isinf(multiplier) or log_delta(multiplier, 0.0) <= math.log(delta):
        return 0.0
    return _least(lambda epsilon: log_delta(multiplier, epsilon) <= math.log(delta))


def log_delta(multiplier: float, epsilon: float) -> float:
    """log δ(ε, σ), never below the true value: bounds for round-off are added where they count."""
    half, centre = 0.5 / multiplier, epsilon * multiplier
    first = float(log_ndtr(half - centre))
    second = epsilon + float(log_ndtr(-half - centre))
    doubt = 8.0 * _UNIT * (1.0 + epsilon + (half + centre) * (1.0 + half + centre))
    apart = max(first - second, 0.0) + doubt
    # log(1 − e^{−x}), by the form that keeps its digits
    rest = math.log(-math.expm1(-apart)) if apart < math.log(2.0) else math.log1p(-math.exp(-apart))
    return min(first + doubt + rest, 0.0)


def check_budget(epsilon: Any, delta: Any) -> None:
    """Raise ``InputError`` unless 0 < ε and 0 < δ < 1 are numbers of usual size."""
    if not _is_number(epsilon) or not 1e-12 <= epsilon <= 1e12:
        raise InputError(f"epsilon is {epsilon!r}; give a positive number (1e-12 to 1e12), for example 0.5.")
    if not _is_number(delta) or not 1e-100 <= delta < 1.0:
        raise InputError(f"delta is {delta!r}; give a number between 0 and 1 (1e-100 at least), for example 0.01.")


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)


def _least(enough: Callable[[float], bool]) -> float:
    """The least x > 0 that is enough, by bisection; what comes back is always enough itself."""
    upper = 1.0
    while not enough(upper):
        upper *= 2.0
    lower = upper / 2.0
    while lower > 0.0 and enough(lower):
        lower, upper = lower / 2.0, lower
    while lower < (middle := lower + (upper - lower) / 2.0) < upper:
        lower, upper = (lower, middle) if enough(middle) else (middle, upper)
    return upper


# One honest draw: predictions with differentially private noise, drawn once for one data set.

_DOMAIN = b"sfumato rival draw 1\x00"


@dataclass(frozen=True, eq=False)
class NoisyPrediction:
    """Predictions as they would be published: ``mean``, multiples of ``resolution``.

    ``noise_std`` is that of the noise; ``std`` counts the posterior's own uncertainty as well. ``unsafe`` says that
    the noise came from a known seed.
    """

    mean: Array
    std: Array
    noise_std: Array
    resolution: float
    unsafe: bool = False

    def __len__(self) -> int:
        return int(self.mean.shape[0])


@final
class NoiseSource:
    """A secret key that remembers for which data it has been asked.

    Guarantee: the same data get the same noise, so that asking again can never be averaged; a ``GuaranteeWarning`` says
    when different data have been asked for, because each of these draws spends the budget anew.
    """

    __slots__ = ("__asked", "__key")

    def __init__(self) -> None:
        self.__key = SecretKey.fresh()
        self.__asked: set[bytes] = set()

    def normals(self, message: bytes, count: int) -> Array:
        """``count`` standard normals for this message."""
        self.__asked.add(message)
        if len(self.__asked) > 1:
            warnings.warn(
                f"this mechanism has now drawn noise for {len(self.__asked)} different data sets; each of them spends "
                "epsilon and delta anew, so publish one of them only",
                GuaranteeWarning,
                stacklevel=4,
            )
        return self.__key.normals(message, count)

    def __repr__(self) -> str:
        return "<secret noise source>"

    def __deepcopy__(self, memo: dict[int, Any]) -> NoiseSource:
        return self


def draw_once(
    prediction: PredictionMap, noise: Noise, source: NoiseSource, y: Any, unsafe_seed: int | None = None
) -> NoisyPrediction:
    """The prediction from ``y`` plus one draw of ``noise``, rounded to a step that follows from public things."""
    values = np.asarray(as_outputs(y, len(prediction.inputs)) + 0.0)
    exact = prediction.predict(values)
    if unsafe_seed is None:
        parts = (prediction.matrix, prediction.mean_at_new, noise.factor, np.array(noise.shift), values)
        digest = hashlib.sha256(_DOMAIN + b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
        normals = source.normals(digest.digest(), noise.normals_needed)
    else:
        normals = unsafe_normals(unsafe_seed, noise.normals_needed)
    step = resolution_for(prediction, noise)
    return noisy_prediction(
        prediction, round_outputs(exact + noise.draw(normals), step), noise.variance(), step, unsafe_seed is not None
    )


def unsafe_normals(unsafe_seed: int, count: int) -> Array:
    """Standard normals that anyone who knows the seed can make again: for experiments."""
    return SecretKey.from_unsafe_seed(unsafe_seed).normals(_DOMAIN, count)


def resolution_for(prediction: PredictionMap, noise: Noise) -> float:
    """The step to round to: far below the noise, far above the last bits of a double."""
    spread = float(np.sqrt(np.mean(prediction.variance)))
    return default_resolution(noise.rms, spread, float(np.mean(np.abs(prediction.mean_at_new))))


def noisy_prediction(
    prediction: PredictionMap, mean: Array, noise_variance: Array, resolution: float, unsafe: bool
) -> NoisyPrediction:
    std = np.sqrt(prediction.variance + noise_variance)
    return NoisyPrediction(mean, np.asarray(std), np.sqrt(noise_variance), resolution, unsafe)


# DP-Cloaking: predictions of a Gaussian process with differentially private noise (Smith et al. 2018).
#
# The prediction at X_new is linear in y. If one private output moves by at most d, the prediction moves by at most
# d c_i, c_i the column of C = K_*X (K_XX + V)⁻¹ that belongs to it. Noise N(0, (d σ)² M) hides that to (ε, δ) if
# c_iᵀ M⁺ c_i ≤ 1 for every private row i; M is the smallest such ellipsoid (ellipsoid.py), σ the multiplier
# (dp_noise.py). Independent columns have M = C Cᵀ: cloaking is then the same as noise d σ on each private output.

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
            f"  noise        {self.noise.rms:.4g} root mean square, rank "
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


# Standard differential privacy for functions (Hall, Rinaldo and Wasserman 2013), applied to a GP's prediction.
#
# The prediction is a function in the space H of the kernel: μ = m + Σ_i a_i K(·, x_i) with a = A⁻¹ (y − m(X)),
# A = K_XX + V. If the private output y_j moves by at most d, μ moves by at most d g_j, g_j = K(·, X) A⁻¹ e_j, and
#
#     ‖g_j‖_H² = e_jᵀ A⁻¹ K_XX A⁻¹ e_j.
#
# Let Δ = d max_j ‖g_j‖_H over the private rows. For any inputs T and any g in H, g(T)ᵀ K_TT⁺ g(T) ≤ ‖g‖_H² (the left
# side is the norm of the smallest function with these values). So μ + Δ σ G with G ~ GP(0, K) and σ the multiplier of
# dp_noise.py is (ε, δ)-differentially private at all inputs together, before anyone says at which: it hides the whole
# function, where DP-Cloaking hides the values that are asked for.


@dataclass(frozen=True, eq=False)
class StandardDP:
    """Noise (Δ σ)² K(X_new, X_new) on predictions; ``function_sensitivity`` is Δ, ``multiplier`` is σ.

    Guarantee: one draw is (ε, δ)-differentially private for a change of any one private output by at most
    ``sensitivity``. The inputs, the prior and the public outputs are taken as known to everyone.
    """

    prediction: PredictionMap
    private: Mask
    epsilon: float
    delta: float
    sensitivity: float
    calibration: Calibration
    multiplier: float
    function_sensitivity: float
    noise: CorrelatedNoise
    _source: NoiseSource = field(default_factory=NoiseSource, repr=False)

    @property
    def exact_epsilon(self) -> float:
        """The ε that one draw really spends at this δ."""
        return exact_epsilon(self.multiplier, self.delta)

    def noise_covariance(self) -> Array:
        return self.noise.covariance()

    def draw(self, y: Any, *, unsafe_seed: int | None = None) -> NoisyPrediction:
        """The prediction from ``y`` with noise, drawn once; ``unsafe_seed`` is for experiments."""
        return draw_once(self.prediction, self.noise, self._source, y, unsafe_seed)


def standard_dp(
    prior: Prior,
    X: Any,
    X_new: Any,
    private: Any,
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    calibration: Calibration = "hall",
) -> StandardDP:
    """The noise of standard differential privacy for predictions at ``X_new`` from outputs at ``X``.

    The arguments are those of ``cloak``. Without noise V the norm of g_j is √(K_XX⁻¹)_jj, which is large for smooth
    kernels and close rows: that is why DP-Cloaking was made.
    """
    size = checked_sensitivity(sensitivity)
    multiplier = noise_multiplier(epsilon, delta, calibration)
    prediction = prediction_map(prior, X, X_new)
    inside = rows_inside(private, prediction.inputs, "private")
    vectors, roots = _root_from_above(prior.covariance(prediction.new))
    # never above the norm but for round-off, which is then covered too
    seen = np.linalg.norm((vectors / roots).T @ prediction.matrix[:, inside], axis=0)
    norm = float(max(np.max(function_norms(prior, prediction, inside)), np.max(seen)))
    return StandardDP(
        prediction=prediction,
        private=inside,
        epsilon=float(epsilon),
        delta=float(delta),
        sensitivity=size,
        calibration=calibration,
        multiplier=multiplier,
        function_sensitivity=size * norm,
        noise=CorrelatedNoise(size * norm * multiplier * vectors * roots),
    )


def function_norms(prior: Prior, prediction: PredictionMap, inside: Mask) -> Array:
    """‖g_j‖_H for the chosen rows: how far μ moves as a function when y_j moves by 1."""
    inputs = prediction.inputs
    kernel = prior.covariance(inputs)
    noise = np.diag(prior.noise_variance(len(inputs)))
    responses = solve_positive(kernel + noise, np.eye(len(inputs))[:, inside])
    squares = np.einsum("ij,ij->j", responses, kernel @ responses)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _root_from_above(covariance: Array) -> tuple[Array, Array]:
    """Eigenvectors and roots of eigenvalues, those lost in round-off raised to its size: more noise, never less."""
    values, vectors = scipy.linalg.eigh(covariance, check_finite=False)
    floor = covariance.shape[0] * float(np.finfo(np.float64).eps) * float(values[-1])
    return np.asarray(vectors), np.asarray(np.sqrt(np.maximum(values, floor)))


@dataclass(frozen=True, eq=False)
class AveragedPrediction:
    """The mean of ``draws`` draws; whoever can publish it has spent ``effective_epsilon``, not ``nominal_epsilon``."""

    prediction: NoisyPrediction
    draws: int
    nominal_epsilon: float
    effective_epsilon: float


def average_as_the_scripts_did(made: Cloak, y: Any, draws: int = 100, *, unsafe_seed: int) -> AveragedPrediction:
    """The mean of ``draws`` independent draws of one cloak: for reproducing the paper, never for publishing.

    The mean of k draws is a draw with σ/√k, so its exact ε at the same δ follows from the curve of dp_noise.py: this is
    composition without any loss. It takes a seed because an honest cloak draws only once.
    """
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
        raise InputError(f"draws is {draws!r}; give a whole number of draws, at least 1.")
    noise = made.noise
    exact = made.prediction.predict(y)
    normals = unsafe_normals(unsafe_seed, int(draws) * noise.normals_needed).reshape(int(draws), -1)
    mean = exact + noise.draw(normals.mean(axis=0))
    return AveragedPrediction(
        prediction=noisy_prediction(made.prediction, mean, noise.variance() / draws, 0.0, True),
        draws=int(draws),
        nominal_epsilon=made.epsilon,
        effective_epsilon=epsilon_of_draws(made, int(draws)),
    )
