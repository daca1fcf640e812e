"""Kernels and means on scaled columns, written as kernels and means on the columns before they were scaled.

A stationary kernel sees differences of inputs, so a column that was multiplied by a is a lengthscale divided by |a|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .column_map import ColumnMap
from .errors import InputError
from .model_tree import build_kernel, build_mean, describe_kernel, describe_mean
from .prior import Prior

#: The parameters that are distances between inputs.
_DISTANCES = {"rbf": "lengthscale", "matern": "lengthscale", "rational_quadratic": "lengthscale"}


def in_original_units(prior: Prior, scaling: ColumnMap, columns: int) -> Prior:
    """The prior over ``columns`` columns that says of x what ``prior`` says of ``scaling.apply(x)``."""
    if scaling.is_identity(columns):
        return prior
    folding = _Folding(scaling, columns)
    kernel = build_kernel(folding.kernel(describe_kernel(prior.kernel), list(range(scaling.width))), columns)
    mean = build_mean(folding.mean(describe_mean(prior.mean)), columns)
    return Prior(kernel, mean, prior.noise, fit_report=prior.fit_report)


@dataclass(frozen=True)
class _Folding:
    scaling: ColumnMap
    columns: int

    def kernel(self, tree: dict[str, Any], seen: list[int]) -> dict[str, Any]:
        """``tree``, which is handed the scaled columns ``seen``; its leaves pick the original ones themselves."""
        kind = tree["kind"]
        if "active_dims" in tree:
            seen = [seen[place] for place in tree["active_dims"]]
        folded = {name: value for name, value in tree.items() if name != "active_dims"}
        if kind in ("sum", "product"):
            return folded | {"kernels": [self.kernel(part, seen) for part in tree["kernels"]]}
        if kind == "scale":
            return folded | {"kernel": self.kernel(tree["kernel"], seen)}
        if kind == "constant":
            return folded
        sources = [self.scaling.sources[j] for j in seen]
        factors = np.abs([self.scaling.factors[j] for j in seen])
        if sources != list(range(self.columns)):
            folded["active_dims"] = sources
        if kind in _DISTANCES:
            return folded | {_DISTANCES[kind]: _divided(tree[_DISTANCES[kind]], factors)}
        if kind == "periodic":
            width = np.broadcast_to(tree["lengthscale"], factors.shape)
            return folded | {
                "period_length": _divided(tree["period_length"], factors),
                "lengthscale": [float(v) for v in width],
            }
        if kind == "cosine" and np.ptp(factors) == 0:
            return folded | {"period_length": float(tree["period_length"] / factors[0])}
        raise InputError(
            f"kernel has a {kind} part, which does not stay one when columns are scaled by preprocess; leave "
            "preprocess out and give the kernel in the units of X."
        )

    def mean(self, tree: dict[str, Any]) -> dict[str, Any]:
        if tree["kind"] != "linear":
            return tree
        weights, bias = np.zeros(self.columns), float(tree.get("bias", 0.0))
        weights[list(self.scaling.sources)] = np.array(tree["weights"]) * self.scaling.factors
        bias += float(np.dot(tree["weights"], self.scaling.shifts))
        return {"kind": "linear", "weights": [float(w) for w in weights], "bias": bias}


def _divided(lengths: Any, factors: Any) -> list[float]:
    return [float(v) for v in np.broadcast_to(lengths, factors.shape) / factors]
