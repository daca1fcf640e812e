"""scikit-learn's Gaussian processes, read: what a fitted regressor says as a kernel, a mean and a noise of ours."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from ..arrays import Array
from ..errors import FormatError, InputError
from .kernel_kinds import KINDS, SMOOTHNESS
from .trees import Tree, build_kernel, fold

SUPPORTED = (
    "RBF, Matern (nu 0.5, 1.5, 2.5, inf), RationalQuadratic, ExpSineSquared, DotProduct, ConstantKernel, WhiteKernel, "
    "and their sums, products and whole powers"
)


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
