"""A reader who works with scikit-learn: what a release says, as a plain fitted ``GaussianProcessRegressor``."""

from __future__ import annotations

import copy
from typing import Any

import gpytorch
import numpy as np
import scipy.linalg
import torch
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin
from gpytorch.distributions import MultivariateNormal
from gpytorch.means import ConstantMean, ZeroMean
from gpytorch.models import ExactGP
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from ..arrays import Array
from ..errors import InputError
from .from_gpytorch import FullNoiseLikelihood
from .kernel_values import DifferentiableKernel, require_features
from .prior import Posterior, Prior
from .trees import describe_kernel

# What a reader knows, as a GPyTorch model that BoTorch can work with.
#
# The conclusions are those of ``release.predict``; as a model they can be differentiated, sampled from and handed to
# acquisition functions that look for the largest value.


class ReleasedGP(ExactGP, GPyTorchModel, FantasizeMixin):  # type: ignore[misc]
    """A prior given published outputs whose noise is a full matrix; everything is in the user's units.

    Parameters are fixed (``requires_grad`` is off): they are those of the release.
    """

    _num_outputs = 1

    def __init__(self, prior: Prior, inputs: Array, outputs: Array, noise: Array) -> None:
        """``noise`` is the covariance of ``outputs`` about f at ``inputs``: V, what was added, and the rounding."""
        X, y, covariance = (torch.from_numpy(np.array(part, dtype=np.float64)) for part in (inputs, outputs, noise))
        own = torch.as_tensor(np.array(prior.noise), dtype=torch.float64)
        require_features(prior.kernel, X.shape[-1])
        super().__init__(X, y, FullNoiseLikelihood(X, covariance, own))
        self.mean_module = copy.deepcopy(prior.mean)
        self.covar_module = copy.deepcopy(prior.kernel)
        self.requires_grad_(False)
        self.eval()

    def forward(self, X: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(X), DifferentiableKernel(self.covar_module)(X))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.training:
            return super().__call__(*args, **kwargs)
        settings = gpytorch.settings
        # GPyTorch would solve with more than 800 rows to two digits, and warn about questions at published inputs
        with settings.fast_computations(False, False, False), settings.debug(False):
            return super().__call__(*args, **kwargs)


REMEDY = "use release.predict instead."
_FIXED = "fixed"


def as_regressor(posterior: Posterior) -> GaussianProcessRegressor:
    """The regressor whose ``predict`` is that of ``posterior``, with the same mean, deviations and covariances."""
    prior, rows = posterior.process, posterior.inputs
    assert isinstance(prior, Prior)
    if type(prior.mean) not in (ZeroMean, ConstantMean):
        raise InputError(f"the prior's mean is a {type(prior.mean).__name__}, which scikit-learn lacks; {REMEDY}")
    centre = float(prior.mean_at(rows.values[:1])[0])
    kernel = _Converter(rows.dimension).convert(describe_kernel(prior.kernel), list(range(rows.dimension)))
    total = prior.covariance(rows) + posterior.noise
    lower = _cholesky(total)
    residual = np.array(posterior.outputs) - centre
    regressor = GaussianProcessRegressor(kernel=kernel, alpha=np.diag(posterior.noise).copy(), optimizer=None)
    regressor.kernel_ = kernel
    regressor.X_train_, regressor.y_train_ = np.array(rows.values), residual
    # scikit-learn adds the mean back as it does after normalize_y
    regressor._y_train_mean, regressor._y_train_std = np.array(centre), np.array(1.0)
    regressor.L_, regressor.alpha_ = lower, scipy.linalg.cho_solve((lower, True), residual)
    density = residual @ regressor.alpha_ + 2 * np.log(np.diag(lower)).sum() + len(rows) * np.log(2 * np.pi)
    regressor.log_marginal_likelihood_value_ = -float(density) / 2
    regressor.n_features_in_ = rows.dimension
    if rows.columns is not None:
        regressor.feature_names_in_ = np.array(rows.columns, dtype=object)
    return regressor


def _cholesky(total: Array) -> Array:
    """The factor, where it says as much as the covariance: ours leaves directions out that it cannot tell from 0."""
    try:
        lower = scipy.linalg.cholesky(total, lower=True, check_finite=False)
        if np.min(np.diag(lower)) ** 2 > len(total) * np.finfo(float).eps * np.max(np.diag(total)):
            return np.asarray(lower)
    except np.linalg.LinAlgError:
        pass
    raise InputError(
        f"the covariance of the {len(total)} published values is singular to working precision, which scikit-learn "
        f"cannot hold; {REMEDY}"
    )


class _Converter:
    """Kernel trees as scikit-learn kernels on inputs of ``dimension`` columns, with nothing left to optimise."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def convert(self, tree: dict[str, Any], columns: list[int]) -> Any:
        """The kernel of ``tree``, which is handed these ``columns`` of the inputs."""
        kind = tree["kind"]
        if "active_dims" in tree:
            columns = [columns[place] for place in tree["active_dims"]]
        if kind in ("sum", "product"):
            first, *others = [self.convert(part, columns) for part in tree["kernels"]]
            for other in others:
                first = first + other if kind == "sum" else first * other
            return first
        if kind == "scale":
            return _constant(tree["variance"]) * self.convert(tree["kernel"], columns)
        if kind == "constant":
            return _constant(tree["constant"])
        if kind == "rbf":
            return kernels.RBF(self._lengthscale(tree, columns), length_scale_bounds=_FIXED)
        if kind == "matern":
            return kernels.Matern(self._lengthscale(tree, columns), length_scale_bounds=_FIXED, nu=tree["nu"])
        return self._on_all_columns(tree, columns)

    def _on_all_columns(self, tree: dict[str, Any], columns: list[int]) -> Any:
        kind = tree["kind"]
        if columns != list(range(self.dimension)):
            raise InputError(f"the kernel has a {kind} part on some columns only, which scikit-learn lacks; {REMEDY}")
        if kind == "rational_quadratic":
            width = _one_number(tree, "lengthscale")
            bounds = {"length_scale_bounds": _FIXED, "alpha_bounds": _FIXED}
            return kernels.RationalQuadratic(width, tree["alpha"], **bounds)
        if kind == "periodic" and self.dimension == 1:
            # GPyTorch divides sin² by ℓ, scikit-learn by ℓ²
            width, period = _one_number(tree, "lengthscale") ** 0.5, _one_number(tree, "period_length")
            bounds = {"length_scale_bounds": _FIXED, "periodicity_bounds": _FIXED}
            return kernels.ExpSineSquared(width, period, **bounds)
        if kind == "linear":
            return _constant(_one_number(tree, "variance")) * kernels.DotProduct(0.0, sigma_0_bounds=_FIXED)
        if kind == "polynomial":
            return kernels.DotProduct(tree["offset"] ** 0.5, sigma_0_bounds=_FIXED) ** tree["power"]
        raise InputError(
            f"the kernel has a {kind} part on {self.dimension} column(s), which scikit-learn lacks; {REMEDY}"
        )

    def _lengthscale(self, tree: dict[str, Any], columns: list[int]) -> Any:
        given = tree["lengthscale"]
        if columns == list(range(self.dimension)):
            return np.array(given) if isinstance(given, list) and len(given) > 1 else float(np.ravel(given)[0])
        if len(set(columns)) < len(columns):
            raise InputError(f"the kernel looks at a column twice, which scikit-learn cannot; {REMEDY}")
        # with an infinite lengthscale a column has no say
        values = np.full(self.dimension, np.inf)
        values[columns] = given
        return values


def _constant(value: float) -> Any:
    return kernels.ConstantKernel(value, constant_value_bounds=_FIXED)


def _one_number(tree: dict[str, Any], name: str) -> float:
    values = np.unique(tree[name])
    if values.size > 1:
        raise InputError(
            f"the kernel has a {tree['kind']} part with one {name} a column, and scikit-learn has one for all; {REMEDY}"
        )
    return float(values[0])
