"""scikit-learn's Gaussian processes: a fitted regressor as a kernel, a mean and a noise of ours, and the way back."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean, ZeroMean
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from ..arrays import Array
from ..data import Inputs
from ..errors import FormatError, InputError
from ..linalg import Whitening
from .kernel_kinds import KINDS, SMOOTHNESS
from .trees import Tree, build_kernel, describe_kernel, fold

SUPPORTED = (
    "RBF, Matern (nu 0.5, 1.5, 2.5, inf), RationalQuadratic, ExpSineSquared, DotProduct, ConstantKernel, WhiteKernel, "
    "and their sums, products and whole powers"
)
#: What is suppressed has so many times its own variance as noise: 1/AS_NOISE of it is left, and as much is rounded.
AS_NOISE = 2.0**26

REMEDY = "use release.predict instead."
_FIXED = "fixed"  # scikit-learn's word for bounds of what is not optimised


def parts_of_regressor(regressor: Any) -> tuple[Kernel, float, float | Array]:
    """Kernel, mean and noise V of a fitted ``GaussianProcessRegressor``, in the units of its y.

    ``WhiteKernel`` and ``alpha`` become noise; the scale and the mean of ``normalize_y=True`` are undone.
    """
    if not isinstance(regressor, GaussianProcessRegressor):
        raise InputError(
            f"gpr is {str(regressor)[:80]!r}, not a scikit-learn GaussianProcessRegressor; give one that is fitted."
        )
    if not hasattr(regressor, "X_train_"):
        raise InputError("gpr is not fitted, so its kernel is only a start; call gpr.fit(X, y) first.")
    if np.ndim(regressor.y_train_) > 1 and np.shape(regressor.y_train_)[1] > 1:
        raise InputError(
            f"gpr was fitted to {np.shape(regressor.y_train_)[1]} outputs at once; fit one regressor for each."
        )
    columns = int(np.shape(regressor.X_train_)[1])
    part = _read(regressor.kernel_, columns)
    if part.tree is None:
        raise InputError(f"the kernel of gpr ({regressor.kernel_}) is white noise alone: no function is left to hide.")
    spread, centre = (float(np.ravel(v)[0]) for v in (regressor._y_train_std, regressor._y_train_mean))
    tree = _times(_Part({"kind": "constant", "constant": spread**2}), _Part(part.tree), regressor.kernel_).tree
    try:
        kernel = build_kernel(tree, columns)
    except FormatError as error:
        raise InputError(f"the kernel of gpr ({regressor.kernel_}) cannot be used: {error}") from None
    noise = (np.asarray(regressor.alpha, dtype=np.float64) + part.white) * spread**2
    return kernel, centre, float(noise) if noise.ndim == 0 else noise


@dataclass(frozen=True)
class _Part:
    """A part of a kernel: the tree of what is a function (None: nothing), and the variance of white noise."""

    tree: Tree | None
    white: float = 0.0


def _read(kernel: Any, columns: int) -> _Part:
    # the exact class: a subclass may compute something else
    kind = type(kernel)
    if kind is kernels.Sum:
        return _plus(_read(kernel.k1, columns), _read(kernel.k2, columns))
    if kind is kernels.Product:
        return _times(_read(kernel.k1, columns), _read(kernel.k2, columns), kernel)
    if kind is kernels.Exponentiation:
        return _power(kernel, columns)
    if kind is kernels.WhiteKernel:
        return _Part(None, float(kernel.noise_level))
    return _Part(_leaf(kernel, columns))


def _leaf(kernel: Any, columns: int) -> Tree:
    kind = type(kernel)
    if kind is kernels.ConstantKernel:
        return {"kind": "constant", "constant": float(kernel.constant_value)}
    if kind is kernels.RBF or (kind is kernels.Matern and np.isinf(kernel.nu)):
        return {"kind": "rbf", "lengthscale": _lengthscale(kernel)}
    if kind is kernels.Matern and kernel.nu in SMOOTHNESS:
        return {"kind": "matern", "nu": float(kernel.nu), "lengthscale": _lengthscale(kernel)}
    if kind is kernels.RationalQuadratic:
        return {"kind": "rational_quadratic", "alpha": float(kernel.alpha), "lengthscale": _lengthscale(kernel)}
    if kind is kernels.ExpSineSquared and columns == 1:
        # GPyTorch divides sin² by ℓ, scikit-learn by ℓ²
        period, wide = float(kernel.periodicity), float(kernel.length_scale) ** 2
        return {"kind": "periodic", "lengthscale": wide, "period_length": period}
    if kind is kernels.ExpSineSquared:
        raise InputError(
            f"the kernel of gpr has the part {kernel} on {columns} columns, where it is no covariance; "
            "fit it to one column, or use another kernel."
        )
    if kind is kernels.DotProduct:
        linear = {"kind": "linear", "variance": 1.0}
        constant = {"kind": "constant", "constant": float(kernel.sigma_0) ** 2}
        return linear if kernel.sigma_0 == 0 else {"kind": "sum", "kernels": [linear, constant]}
    raise InputError(f"the kernel of gpr has the part {kernel}, which sfumato does not have; it has {SUPPORTED}.")


def _lengthscale(kernel: Any) -> float | list[float]:
    values = np.asarray(kernel.length_scale, dtype=np.float64)
    return float(values) if values.ndim == 0 else [float(v) for v in values]


def _power(kernel: Any, columns: int) -> _Part:
    power = kernel.exponent
    if power != int(power) or not 1 <= power <= 100:
        raise InputError(
            f"the kernel of gpr has the part {kernel}, a power of {power:g}; use whole powers from 1 to 100."
        )
    if type(kernel.kernel) is kernels.DotProduct and kernel.kernel.sigma_0 != 0:
        return _Part({"kind": "polynomial", "offset": float(kernel.kernel.sigma_0) ** 2, "power": int(power)})
    part = _read(kernel.kernel, columns)
    return functools.reduce(lambda done, more: _times(done, more, kernel), [part] * int(power))


def _plus(a: _Part, b: _Part) -> _Part:
    trees = [tree for tree in (a.tree, b.tree) if tree is not None]
    # flat sums and products: nesting is limited, and costs time
    parts = [part for tree in trees for part in (tree["kernels"] if tree["kind"] == "sum" else [tree])]
    tree = {"kind": "sum", "kernels": parts} if len(parts) > 1 else (parts[0] if parts else None)
    return _Part(tree, a.white + b.white)


def _times(a: _Part, b: _Part, whole: Any) -> _Part:
    """(k_a + w_a δ)(k_b + w_b δ): white noise meets the diagonal of the other factor, which must be one number."""
    white = a.white * b.white
    for noise, other in ((a.white, b.tree), (b.white, a.tree)):
        if noise > 0 and other is not None:
            level = _diagonal(other)
            if level is None:
                raise InputError(
                    f"the kernel of gpr multiplies white noise by a kernel whose variance changes with the input "
                    f"({whole}); add WhiteKernel instead."
                )
            white += noise * level
    if a.tree is None or b.tree is None:
        return _Part(None, white)
    (scale_a, base_a), (scale_b, base_b) = _split(a.tree), _split(b.tree)
    factors = [f for base in (base_a, base_b) for f in (base["kernels"] if base.get("kind") == "product" else [base])]
    factors = [factor for factor in factors if factor]
    variance = scale_a * scale_b
    if not factors:
        return _Part({"kind": "constant", "constant": variance}, white)
    tree = factors[0] if len(factors) == 1 else {"kind": "product", "kernels": factors}
    return _Part(tree if variance == 1.0 else {"kind": "scale", "variance": variance, "kernel": tree}, white)


def _split(tree: Tree) -> tuple[float, Tree]:
    """A tree as a variance and what it scales (nothing, for a constant)."""
    if tree["kind"] == "scale":
        return tree["variance"], tree["kernel"]
    return (tree["constant"], {}) if tree["kind"] == "constant" else (1.0, tree)


def _diagonal(tree: Tree) -> float | None:
    """k(x, x) where it is the same at every x."""

    def join(kind: str, levels: list[float]) -> float:
        return float(np.sum(levels) if kind == "sum" else np.prod(levels))

    def leaf(tree: Tree, columns: list[int]) -> float:
        if tree["kind"] == "constant":
            return float(tree["constant"])
        return 1.0 if KINDS[tree["kind"]].stationary else np.nan

    level = fold(tree, (), leaf, lambda variance, below: variance * below, join)
    return None if np.isnan(level) else level


# ---------------------------------------------------------------- the way back


def regressor_of(
    kernel: Kernel, mean: Mean, inputs: Inputs, covariance: Array, outputs: Array, noise: Array, suppressed: Array
) -> GaussianProcessRegressor:
    """The regressor that predicts what our posterior does, with the same mean, deviations and covariances.

    ``covariance`` is that of f at ``inputs``, ``noise`` that of ``outputs`` about f, but for combinations of the rows
    that are ``suppressed``.
    """
    if type(mean) not in (ZeroMean, ConstantMean):
        raise InputError(f"the prior's mean is a {type(mean).__name__}, which scikit-learn lacks; {REMEDY}")
    centre = float(mean.constant) if type(mean) is ConstantMean else 0.0
    own = _as_sklearn(describe_kernel(kernel), inputs.dimension)
    whitening = Whitening.of(covariance + noise)
    lower = whitening.lower
    if lower is None:  # ours leaves directions out that it cannot tell from 0
        raise InputError(
            f"the covariance of the {len(inputs)} published values is singular to working precision, which "
            f"scikit-learn cannot hold; {REMEDY}"
        )
    residual = np.array(outputs) - centre
    if suppressed.shape[1]:
        # L (I + s B Bᵀ) Lᵀ with B = L⁻¹ suppressed, orthonormal: scikit-learn needs a triangle with an inverse
        unseen = whitening.without(suppressed).unbounded
        assert unseen is not None
        much = np.eye(len(lower)) + AS_NOISE * (unseen @ unseen.T)
        lower = np.tril(lower @ scipy.linalg.cholesky(much, lower=True, check_finite=False))
    regressor = GaussianProcessRegressor(kernel=own, alpha=np.diag(noise).copy(), optimizer=None)
    regressor.kernel_ = own
    regressor.X_train_, regressor.y_train_ = np.array(inputs.values), residual
    # scikit-learn adds the mean back as it does after normalize_y
    regressor._y_train_mean, regressor._y_train_std = np.array(centre), np.array(1.0)
    regressor.L_, regressor.alpha_ = lower, scipy.linalg.cho_solve((lower, True), residual)
    density = residual @ regressor.alpha_ + 2 * np.log(np.diag(lower)).sum() + len(inputs) * np.log(2 * np.pi)
    regressor.log_marginal_likelihood_value_ = -float(density) / 2
    regressor.n_features_in_ = inputs.dimension
    if inputs.columns is not None:
        regressor.feature_names_in_ = np.array(inputs.columns, dtype=object)
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
