"""What releases are compared with: predictions of a GP with all rows, with some and refitted, and with private noise.

The rivals blur predictions by differentially private noise: DP-Cloaking, and noise for functions. How much noise
(ε, δ)-differential privacy takes, for a sensitivity of 1: with noise N(0, σ²) on a number that one person can move by
1, the chance that the privacy loss exceeds ε is weighed by

    δ(ε, σ) = Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ)

exactly (Balle and Wang 2018), and so it is for vectors with noise N(0, σ² M) whose change c has cᵀ M⁻¹ c ≤ 1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from scipy.special import log_ndtr

from ..arrays import Array, Mask, is_number
from ..data import Inputs, as_inputs, as_outputs
from ..errors import GuaranteeWarning, InputError
from ..linalg import Whitening, smallest_ellipsoid
from ..models import Posterior, Prior, fit_prior
from ..noise import CorrelatedNoise, SecretKey
from ..regions import Region

Calibration = Literal["classical", "hall", "analytic"]
CALIBRATIONS: tuple[str, ...] = get_args(Calibration)

#: Names the random stream of the rivals' noise.
_DOMAIN = b"sfumato rival draw 1\x00"

#: A little above the relative error of one operation in double precision.
_ROUND_OFF = 2.3e-16


@dataclass(frozen=True, eq=False)
class PredictionMap:
    """The posterior mean at ``new`` as a function of y, and the posterior variance there, which does not depend on y.

    The mean is ``m(X_new) + C (y − m(X))`` with ``matrix`` C = K_*X (K_XX + V)⁻¹.
    """

    inputs: Inputs
    new: Inputs
    mean_at_inputs: Array
    mean_at_new: Array
    matrix: Array
    variance: Array

    def predict(self, y: Any) -> Array:
        """The posterior mean at the new inputs, without any noise."""
        values = as_outputs(y, len(self.inputs))
        return np.asarray(self.mean_at_new + self.matrix @ (values - self.mean_at_inputs))


def prediction_map(prior: Prior, X: Any, X_new: Any) -> PredictionMap:
    """How predictions at ``X_new`` depend on the outputs at ``X``."""
    inputs = as_inputs(X)
    new = as_inputs(X_new, "X_new", like=inputs)
    cross = prior.covariance(inputs, new)
    total = prior.covariance(inputs) + np.diag(prior.noise_variance(len(inputs)))
    matrix = solve_positive(total, cross).T
    left = prior.variance(new) - np.einsum("ij,ji->i", matrix, cross)
    return PredictionMap(
        inputs=inputs,
        new=new,
        mean_at_inputs=prior.mean_at(inputs),
        mean_at_new=prior.mean_at(new),
        matrix=matrix,
        variance=np.maximum(left, 0.0),
    )


def solve_positive(A: Array, B: Array) -> Array:
    """A⁻¹ B for a covariance A; where A is singular to working precision, the directions of round-off are left out."""
    whiten = Whitening.of(A)
    if not whiten.rank:
        raise InputError("the covariance of the observed values is zero; check the kernel and the noise of the prior.")
    if whiten.lower is not None:
        return np.asarray(scipy.linalg.cho_solve((whiten.lower, True), B, check_finite=False))
    return np.asarray(whiten.vectors @ ((whiten.vectors.T @ B) / whiten.values[:, None]))


def rows_inside(region: Any, inputs: Inputs, name: str) -> Mask:
    """The rows that a region or a list of true and false picks out, at least one."""
    if isinstance(region, Region):
        inside = np.asarray(region.bind(inputs).contains(inputs.values), dtype=np.bool_)
    else:
        try:
            inside = np.array(region)
        except (TypeError, ValueError):
            inside = np.array(None)
        if inside.dtype != np.bool_ or inside.shape != (len(inputs),):
            raise InputError(
                f"{name} is {str(region)[:60]!r}; give a region, for example sf.Box(1.0, 2.0), or "
                f"{len(inputs)} times True or False, one for each row of X."
            )
    if not np.any(inside):
        raise InputError(f"{name} holds none of the {len(inputs)} rows of X; there is nothing to protect.")
    return inside


def dropout(prior: Prior, X: Any, y: Any, region: Any) -> Posterior:
    """The model made without the rows inside ``region`` (or where a mask is True): nothing of them is published.

    It promises nothing: the rows outside still tell about the region what the prior lets them tell.

    >>> import gpytorch, sfumato as sf
    >>> prior = sf.Prior(gpytorch.kernels.RBFKernel())
    >>> dropout(prior, [0.0, 1.0, 2.0], [5.0, 7.0, 6.0], sf.Box(0.5, 1.5)).outputs.tolist()
    [5.0, 6.0]
    """
    inputs = as_inputs(X)
    outputs = as_outputs(y, len(inputs))
    keep = ~rows_inside(region, inputs, "region")
    if not np.any(keep):
        raise InputError(f"region holds all {len(inputs)} rows of X, so no data are left; give a smaller region.")
    return prior.condition(inputs.select(keep), outputs[keep], prior.noise_variance(len(inputs))[keep])


def stationary(
    X: Any, W: Any, *, kernel: str | Kernel = "rbf", mean: str | float | Mean = "constant", **how: Any
) -> Posterior:
    """A reader who takes the published values ``W`` for plain data and ignores Σ.

    Lengthscales, noise, mean and scale are fitted to W (``how`` goes to ``fit_prior``), as one independent noise
    variance for all rows; ``posterior.process`` is the fitted prior.
    """
    inputs = as_inputs(X)
    outputs = as_outputs(W, len(inputs), "W")
    fitted: Prior = fit_prior(inputs, outputs, kernel, mean, **{"noise": "learn", **how})
    return fitted.condition(inputs, outputs)


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
    doubt = 8.0 * _ROUND_OFF * (1.0 + epsilon + (half + centre) * (1.0 + half + centre))
    apart = max(first - second, 0.0) + doubt
    # log(1 − e^{−x}), by the form that keeps its digits
    rest = math.log(-math.expm1(-apart)) if apart < math.log(2.0) else math.log1p(-math.exp(-apart))
    return min(first + doubt + rest, 0.0)


def check_budget(epsilon: Any, delta: Any) -> None:
    """Raise ``InputError`` unless 0 < ε and 0 < δ < 1 are numbers of usual size."""
    if not is_number(epsilon) or not 1e-12 <= epsilon <= 1e12:
        raise InputError(f"epsilon is {epsilon!r}; give a positive number (1e-12 to 1e12), for example 0.5.")
    if not is_number(delta) or not 1e-100 <= delta < 1.0:
        raise InputError(f"delta is {delta!r}; give a number between 0 and 1 (1e-100 at least), for example 0.01.")


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


@dataclass(frozen=True)
class Budget:
    """(ε, δ) for a change of any one private output by at most ``sensitivity``, in the units of y."""

    epsilon: float
    delta: float
    sensitivity: float
    calibration: Calibration = "hall"

    def __post_init__(self) -> None:
        if not is_number(self.sensitivity) or not self.sensitivity > 0.0:
            raise InputError(
                f"sensitivity is {self.sensitivity!r}; give the most that one output can change, a positive number in "
                "the units of y."
            )
        noise_multiplier(self.epsilon, self.delta, self.calibration)

    @cached_property
    def multiplier(self) -> float:
        """σ: the standard deviation of the noise for each unit of what one output can change."""
        return noise_multiplier(self.epsilon, self.delta, self.calibration)


@dataclass(frozen=True, eq=False)
class PrivatePredictions:
    """Predictions at some inputs, with the noise that a rival puts on them. It is for comparisons, not for publishing.

    ``reach`` is max_i c_iᵀ M⁺ c_i over the private columns c_i of the prediction that is really made, if the noise is
    (d σ)² M, d the sensitivity and σ the multiplier.

    Guarantee: with ``reach`` ≤ 1, one draw is (ε, δ)-differentially private for a change of any one private output by
    at most the sensitivity. The inputs, the prior and the public outputs are taken as known to everyone.
    """

    prediction: PredictionMap
    private: Mask
    budget: Budget
    noise: CorrelatedNoise
    reach: float = 1.0

    @property
    def holds(self) -> bool:
        """Whether the noise covers what one private output can change."""
        return self.reach <= 1.0

    def epsilon_spent(self, draws: int = 1) -> float:
        """The ε that ``draws`` independent draws spend together, exactly; infinite where a change is not covered."""
        if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
            raise InputError(f"draws is {draws!r}; give a whole number of draws, at least 1.")
        multiplier = self.budget.multiplier / math.sqrt(draws * max(self.reach, 1.0))
        return exact_epsilon(multiplier, self.budget.delta)

    def std(self) -> Array:
        """How far one draw is from f: the noise and the posterior's own uncertainty."""
        return np.asarray(np.sqrt(self.prediction.variance + self.noise.variance()))

    def draw(self, y: Any, *, unsafe_seed: int, draws: int = 1) -> Array:
        """The prediction from ``y`` with the mean of ``draws`` draws of the noise; anyone can take it off again.

        The mean of k draws is a draw with σ/√k: whoever can publish it has spent ``epsilon_spent(k)``.
        """
        normals = unsafe_normals(unsafe_seed, draws * self.noise.normals_needed).reshape(draws, -1)
        return self.prediction.predict(y) + self.noise.draw(normals.mean(axis=0))


def unsafe_normals(unsafe_seed: int, count: int) -> Array:
    """Standard normals that anyone who knows the seed can make again: for experiments."""
    return SecretKey.from_unsafe_seed(unsafe_seed).normals(_DOMAIN, count)


CloakingMatrix = Literal["all", "private"]


def cloak(
    prior: Prior, X: Any, X_new: Any, private: Any, budget: Budget, matrix: CloakingMatrix = "all"
) -> PrivatePredictions:
    """DP-Cloaking (Smith et al. 2018): noise for predictions at ``X_new`` from outputs at ``X``.

    ``private`` is a region or a True/False for each row: the outputs that are protected. The prediction is linear in y.
    If one private output moves by at most d, it moves by at most d c_i, c_i the column of C = K_*X (K_XX + V)⁻¹ that
    belongs to it. Noise N(0, (d σ)² M) hides that to (ε, δ) if c_iᵀ M⁺ c_i ≤ 1 for every private row i; M is the
    smallest such ellipsoid. Independent columns have M = C Cᵀ: cloaking is then the same as noise d σ on each private
    output.

    ========= =========================================================================================
    matrix    the columns that are cloaked
    ========= =========================================================================================
    "all"     those of K_*X (K_XX + V)⁻¹ for the private rows: the method, with the other rows public
    "private" K_*P K_PP⁻¹ over the private rows P alone and without V, as in the paper's scripts. The prediction
              is made from all rows, so it seldom covers what they change: ``reach`` says how far off it is
    ========= =========================================================================================

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 31)
    >>> prior = sf.Prior(gpytorch.kernels.RBFKernel(), noise=0.1)
    >>> made = cloak(prior, t, [0.5, 1.5], sf.Box(1.0, 2.0), Budget(epsilon=0.5, delta=0.01, sensitivity=2.0))
    >>> made.holds, made.draw(np.sin(t), unsafe_seed=1).shape
    (True, (2,))
    """
    if matrix not in ("all", "private"):
        raise InputError(f"matrix is {matrix!r}; choose 'all' (the method) or 'private' (the paper's scripts).")
    prediction = prediction_map(prior, X, X_new)
    inside = rows_inside(private, prediction.inputs, "private")
    real = prediction.matrix[:, inside]
    columns = real
    if matrix == "private":
        hidden = prediction.inputs.select(inside)
        columns = solve_positive(prior.covariance(hidden), prior.covariance(hidden, prediction.new)).T
    ellipsoid = smallest_ellipsoid(columns)
    # for its own columns the ellipsoid holds by construction
    reach = ellipsoid.reach(real) if matrix == "private" else 1.0
    # equality up to round-off counts as equality
    reach = 1.0 if 1.0 < reach < 1.0 + 1e-9 else reach
    if reach > 1.0:
        warnings.warn(
            f'matrix is "private": the noise does not cover what a private output changes (a reach of {reach:.4g}, at '
            'most 1 is needed), so no (ε, δ) is promised; use matrix="all" for anything but a comparison',
            GuaranteeWarning,
            stacklevel=2,
        )
    scale = budget.sensitivity * budget.multiplier
    noise = CorrelatedNoise(scale * ellipsoid.factor, scale**2 * ellipsoid.shift)
    return PrivatePredictions(prediction, inside, budget, noise, reach)


def standard_dp(prior: Prior, X: Any, X_new: Any, private: Any, budget: Budget) -> PrivatePredictions:
    """Differential privacy for functions (Hall, Rinaldo and Wasserman 2013); the arguments are those of ``cloak``.

    The prediction is a function in the space H of the kernel: μ = m + Σ_i a_i K(·, x_i) with a = A⁻¹ (y − m(X)),
    A = K_XX + V. If the private output y_j moves by at most d, μ moves by at most d g_j, g_j = K(·, X) A⁻¹ e_j. Let
    Δ = d max_j ‖g_j‖_H over the private rows. For any inputs T and any g in H, g(T)ᵀ K_TT⁺ g(T) ≤ ‖g‖_H² (the left side
    is the norm of the smallest function with these values). So μ + Δ σ G with G ~ GP(0, K) is (ε, δ)-differentially
    private at all inputs together, before anyone says at which: it hides the whole function, where DP-Cloaking hides
    the values that are asked for. Without V the norm of g_j is √(K_XX⁻¹)_jj, which is large for smooth kernels and
    close rows: that is why DP-Cloaking was made.
    """
    prediction = prediction_map(prior, X, X_new)
    inside = rows_inside(private, prediction.inputs, "private")
    # eigenvalues that are lost in round-off are raised to its size: more noise, never less
    values, vectors = scipy.linalg.eigh(prior.covariance(prediction.new), check_finite=False)
    roots = np.sqrt(np.maximum(values, len(values) * float(np.finfo(np.float64).eps) * float(values[-1])))
    # never above the norm but for round-off, which is then covered too
    seen = np.linalg.norm((vectors / roots).T @ prediction.matrix[:, inside], axis=0)
    norm = float(max(np.max(function_norms(prior, prediction, inside)), np.max(seen)))
    noise = CorrelatedNoise(budget.sensitivity * norm * budget.multiplier * vectors * roots)
    return PrivatePredictions(prediction, inside, budget, noise)


def function_norms(prior: Prior, prediction: PredictionMap, inside: Mask) -> Array:
    """‖g_j‖_H = √(e_jᵀ A⁻¹ K_XX A⁻¹ e_j) for the chosen rows: how far μ moves as a function when y_j moves by 1."""
    inputs = prediction.inputs
    kernel = prior.covariance(inputs)
    noise = np.diag(prior.noise_variance(len(inputs)))
    responses = solve_positive(kernel + noise, np.eye(len(inputs))[:, inside])
    squares = np.einsum("ij,ij->j", responses, kernel @ responses)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
