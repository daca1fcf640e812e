"""What a reader of a release knows, as a plain fitted ``GaussianProcessRegressor`` of scikit-learn."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import scipy.linalg
from gpytorch.means import ConstantMean, ZeroMean
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from ..errors import InputError
from ..linalg import Whitening
from .prior import Posterior, Prior
from .trees import Tree, describe_kernel, fold

REMEDY = "use release.predict instead."
_FIXED = "fixed"  # scikit-learn's word for bounds of what is not optimised


def regressor_of(posterior: Posterior) -> GaussianProcessRegressor:
    """The regressor whose ``predict`` is that of ``posterior``, with the same mean, deviations and covariances."""
    prior, rows = posterior.process, posterior.inputs
    assert isinstance(prior, Prior)
    if type(prior.mean) not in (ZeroMean, ConstantMean):
        raise InputError(f"the prior's mean is a {type(prior.mean).__name__}, which scikit-learn lacks; {REMEDY}")
    centre = float(prior.mean_at(rows.values[:1])[0])
    kernel = _as_sklearn(describe_kernel(prior.kernel), rows.dimension)
    total = prior.covariance(rows) + posterior.noise
    lower = Whitening.of(total).lower
    if lower is None:  # ours leaves directions out that it cannot tell from 0
        raise InputError(
            f"the covariance of the {len(total)} published values is singular to working precision, which scikit-learn "
            f"cannot hold; {REMEDY}"
        )
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


def _as_sklearn(tree: Tree, dimension: int) -> Any:
    """The kernel of ``tree`` on inputs of ``dimension`` columns, with nothing left to optimise."""

    def leaf(tree: Tree, columns: list[int]) -> Any:
        if tree["kind"] == "constant":
            return _constant(tree["constant"])
        if tree["kind"] == "rbf":
            return kernels.RBF(_lengthscales(tree, columns, dimension), length_scale_bounds=_FIXED)
        if tree["kind"] == "matern":
            widths = _lengthscales(tree, columns, dimension)
            return kernels.Matern(widths, length_scale_bounds=_FIXED, nu=tree["nu"])
        return _on_all_columns(tree, columns, dimension)

    def join(kind: str, parts: list[Any]) -> Any:
        return functools.reduce(operator.add if kind == "sum" else operator.mul, parts)

    return fold(tree, range(dimension), leaf, lambda variance, kernel: _constant(variance) * kernel, join)


def _on_all_columns(tree: Tree, columns: list[int], dimension: int) -> Any:
    kind = tree["kind"]
    if columns != list(range(dimension)):
        raise InputError(f"the kernel has a {kind} part on some columns only, which scikit-learn lacks; {REMEDY}")
    if kind == "rational_quadratic":
        width = _one_number(tree, "lengthscale")
        bounds = {"length_scale_bounds": _FIXED, "alpha_bounds": _FIXED}
        return kernels.RationalQuadratic(width, tree["alpha"], **bounds)
    if kind == "periodic" and dimension == 1:
        # GPyTorch divides sin² by ℓ, scikit-learn by ℓ²
        width, period = _one_number(tree, "lengthscale") ** 0.5, _one_number(tree, "period_length")
        bounds = {"length_scale_bounds": _FIXED, "periodicity_bounds": _FIXED}
        return kernels.ExpSineSquared(width, period, **bounds)
    if kind == "linear":
        return _constant(_one_number(tree, "variance")) * kernels.DotProduct(0.0, sigma_0_bounds=_FIXED)
    if kind == "polynomial":
        return kernels.DotProduct(tree["offset"] ** 0.5, sigma_0_bounds=_FIXED) ** tree["power"]
    raise InputError(f"the kernel has a {kind} part on {dimension} column(s), which scikit-learn lacks; {REMEDY}")


def _lengthscales(tree: Tree, columns: list[int], dimension: int) -> Any:
    given = tree["lengthscale"]
    if columns == list(range(dimension)):
        return np.array(given) if isinstance(given, list) and len(given) > 1 else float(np.ravel(given)[0])
    if len(set(columns)) < len(columns):
        raise InputError(f"the kernel looks at a column twice, which scikit-learn cannot; {REMEDY}")
    # with an infinite lengthscale a column has no say
    values = np.full(dimension, np.inf)
    values[columns] = given
    return values


def _constant(value: float) -> Any:
    return kernels.ConstantKernel(value, constant_value_bounds=_FIXED)


def _one_number(tree: Tree, name: str) -> float:
    values = np.unique(tree[name])
    if values.size > 1:
        raise InputError(
            f"the kernel has a {tree['kind']} part with one {name} a column, and scikit-learn has one for all; {REMEDY}"
        )
    return float(values[0])
