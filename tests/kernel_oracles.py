"""Kernels given by trees and their derivatives, in 50 digits, from the textbook formulas.

Nothing here imports sfumato.
"""

from __future__ import annotations

import mpmath
import numpy as np

DIGITS = 50


def kernel50(tree, a, b):
    """k(a, b) of two lists of mpmath numbers, for a tree as in sfumato's files."""
    if "active_dims" in tree:
        a, b = [a[i] for i in tree["active_dims"]], [b[i] for i in tree["active_dims"]]
    kind = tree["kind"]
    if kind == "scale":
        return mpmath.mpf(tree["variance"]) * kernel50(tree["kernel"], a, b)
    if kind == "sum":
        return mpmath.fsum(kernel50(part, a, b) for part in tree["kernels"])
    if kind == "product":
        return mpmath.fprod(kernel50(part, a, b) for part in tree["kernels"])
    if kind == "constant":
        return mpmath.mpf(tree["constant"])
    if kind == "linear":
        return mpmath.fsum(v * s * t for v, s, t in zip(_spread(tree["variance"], a), a, b))
    if kind == "polynomial":
        return (mpmath.mpf(tree["offset"]) + mpmath.fsum(s * t for s, t in zip(a, b))) ** tree["power"]
    if kind == "trend":
        places = zip(_spread(tree["centre"], a), _spread(tree["width"], a))
        u = [((s - c) / w) * ((t - c) / w) for s, t, (c, w) in zip(a, b, places)]
        return mpmath.fsum(one**p for one in u for p in range(1, tree["power"] + 1))
    if kind == "cosine":
        return mpmath.cos(mpmath.pi * mpmath.norm([s - t for s, t in zip(a, b)]) / mpmath.mpf(tree["period_length"]))
    if kind == "spectral_mixture":
        value = mpmath.mpf(1)
        for j, (s, t) in enumerate(zip(a, b)):
            waves = zip(tree["mixture_weights"], tree["mixture_means"], tree["mixture_scales"])
            value *= mpmath.fsum(
                mpmath.mpf(w)
                * mpmath.exp(-2 * (mpmath.pi * mpmath.mpf(v[j]) * (s - t)) ** 2)
                * mpmath.cos(2 * mpmath.pi * mpmath.mpf(m[j]) * (s - t))
                for w, m, v in waves
            )
        return value
    scales = _spread(tree["lengthscale"], a)
    if kind == "periodic":
        periods = _spread(tree["period_length"], a)
        waves = [mpmath.sin(mpmath.pi * (s - t) / p) ** 2 / c for s, t, p, c in zip(a, b, periods, scales)]
        return mpmath.exp(-2 * mpmath.fsum(waves))
    r = mpmath.norm([(s - t) / c for s, t, c in zip(a, b, scales)])
    if kind == "rbf":
        return mpmath.exp(-(r**2) / 2)
    if kind == "rbf_stretch":
        return mpmath.exp(-(r**2) / 2) * (1 - r**2 / len(a))
    if kind.startswith("rational_quadratic"):
        alpha = mpmath.mpf(tree["alpha"])
        growth = 1 + r**2 / (2 * alpha)
        return growth**-alpha * (1 - r**2 / len(a) / growth if kind.endswith("stretch") else 1)
    z = mpmath.sqrt(2 * mpmath.mpf(tree["nu"])) * r
    if kind == "matern_stretch":
        bend = {0.5: z, 1.5: z**2, 2.5: (1 + z) * z**2 / 3}[tree["nu"]] / len(a)
        return ({0.5: 1, 1.5: 1 + z, 2.5: 1 + z + z**2 / 3}[tree["nu"]] - bend) * mpmath.exp(-z)
    assert kind == "matern"
    return {0.5: 1, 1.5: 1 + z, 2.5: 1 + z + z**2 / 3}[tree["nu"]] * mpmath.exp(-z)


def _spread(values, like):
    return [mpmath.mpf(v) for v in np.broadcast_to(np.ravel(values), len(like)).tolist()]


def jet50(tree, A, B, left, right) -> np.ndarray:
    """∂/∂a_left ∂/∂b_right k(a, b) for all rows (None: no derivative), by differences in 50 digits."""
    with mpmath.workdps(DIGITS):
        rows = [[mpmath.mpf(v) for v in row] for row in np.asarray(A, dtype=float).tolist()]
        columns = [[mpmath.mpf(v) for v in row] for row in np.asarray(B, dtype=float).tolist()]
        return np.array([[float(_jet(tree, a, b, left, right)) for b in columns] for a in rows])


def _jet(tree, a, b, left, right):
    def moved(row, column, step):
        return row if column is None else [v + step if i == column else v for i, v in enumerate(row)]

    orders = (0 if left is None else 1, 0 if right is None else 1)
    return mpmath.diff(lambda s, t: kernel50(tree, moved(a, left, s), moved(b, right, t)), (0, 0), orders)


def kernel_values(tree, A, B) -> np.ndarray:
    """k(a, b) for all rows, in float64, from the same formulas."""
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    if "active_dims" in tree:
        A, B = A[:, tree["active_dims"]], B[:, tree["active_dims"]]
    kind = tree["kind"]
    if kind == "scale":
        return tree["variance"] * kernel_values(tree["kernel"], A, B)
    if kind == "sum":
        return sum(kernel_values(part, A, B) for part in tree["kernels"])
    if kind == "product":
        return np.prod([kernel_values(part, A, B) for part in tree["kernels"]], axis=0)
    if kind == "constant":
        return np.full((len(A), len(B)), float(tree["constant"]))
    gaps = A[:, None, :] - B[None, :, :]
    if kind == "linear":
        return (A * np.asarray(tree["variance"])) @ B.T
    if kind == "polynomial":
        return (tree["offset"] + A @ B.T) ** tree["power"]
    if kind == "trend":
        u, v = ((rows - np.asarray(tree["centre"])) / np.asarray(tree["width"]) for rows in (A, B))
        return sum(u**p @ (v**p).T for p in range(1, tree["power"] + 1))
    if kind == "cosine":
        return np.cos(np.pi * np.linalg.norm(gaps, axis=2) / tree["period_length"])
    if kind == "spectral_mixture":
        means, scales = (2.0 * np.pi * np.array(tree[f"mixture_{key}"]) for key in ("means", "scales"))
        waves = np.exp(-0.5 * (gaps[..., None, :] * scales) ** 2) * np.cos(gaps[..., None, :] * means)
        return np.prod(np.einsum("ijqd,q->ijd", waves, tree["mixture_weights"]), axis=2)
    scales = np.asarray(tree["lengthscale"])
    if kind == "periodic":
        return np.exp(-2.0 * np.sum(np.sin(np.pi * gaps / np.asarray(tree["period_length"])) ** 2 / scales, axis=2))
    r = np.linalg.norm(gaps / scales, axis=2)
    if kind == "rbf":
        return np.exp(-0.5 * r**2)
    columns = A.shape[1]
    if kind == "rbf_stretch":
        return np.exp(-0.5 * r**2) * (1.0 - r**2 / columns)
    if kind.startswith("rational_quadratic"):
        growth = 1.0 + r**2 / (2.0 * tree["alpha"])
        return growth ** -tree["alpha"] * (1.0 - r**2 / columns / growth if kind.endswith("stretch") else 1.0)
    z = np.sqrt(2.0 * tree["nu"]) * r
    if kind == "matern_stretch":
        bend = {0.5: z, 1.5: z**2, 2.5: (1.0 + z) * z**2 / 3.0}[tree["nu"]] / columns
        return ({0.5: 1.0, 1.5: 1.0 + z, 2.5: 1.0 + z + z**2 / 3.0}[tree["nu"]] - bend) * np.exp(-z)
    assert kind == "matern"
    return {0.5: 1.0, 1.5: 1.0 + z, 2.5: 1.0 + z + z**2 / 3.0}[tree["nu"]] * np.exp(-z)
