"""Kernels and means on scaled columns, written as kernels and means on the columns before they were scaled.

A stationary kernel sees differences of inputs, so a column that was multiplied by a is a lengthscale divided by |a|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from ..arrays import Array
from ..data import Inputs
from ..errors import InputError
from .prior import Prior
from .trees import build_kernel, build_mean, describe_kernel, describe_mean

# What a scikit-learn transformer does to each column: multiply it and shift it, or it is refused.
#
# Scalers, and pipelines and column transformers of scalers, keep every column to itself and map it by a line. A region
# in the units before them then means something exact after them, and a kernel after them is a kernel before them.

SUPPORTED = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, 'passthrough', or a Pipeline or ColumnTransformer of "
    "those"
)


@dataclass(frozen=True)
class ColumnMap:
    """Column j of what comes out is ``factors[j] · x + shifts[j]``, x being column ``sources[j]`` of what goes in."""

    sources: tuple[int, ...]
    factors: tuple[float, ...]
    shifts: tuple[float, ...]

    @classmethod
    def identity(cls, columns: int) -> ColumnMap:
        return cls(tuple(range(columns)), (1.0,) * columns, (0.0,) * columns)

    @property
    def width(self) -> int:
        return len(self.sources)

    def is_identity(self, columns: int) -> bool:
        """Whether these ``columns`` columns come out as they went in."""
        return self == ColumnMap.identity(columns)

    def apply(self, X: Array) -> Array:
        return np.asarray(X[:, list(self.sources)] * np.array(self.factors) + np.array(self.shifts))

    def then(self, later: ColumnMap) -> ColumnMap:
        """This map and ``later`` after it."""
        sources = tuple(self.sources[j] for j in later.sources)
        factors = tuple(f * self.factors[j] for f, j in zip(later.factors, later.sources, strict=True))
        shifts = tuple(
            f * self.shifts[j] + s for f, s, j in zip(later.factors, later.shifts, later.sources, strict=True)
        )
        return ColumnMap(sources, factors, shifts)


def fitted_map(transformer: Any, rows: Inputs) -> ColumnMap:
    """What a copy of ``transformer``, fitted to ``rows``, does to their columns; None does nothing."""
    if transformer is None or _passes(transformer):
        return ColumnMap.identity(rows.dimension)
    if not hasattr(transformer, "fit") or not hasattr(transformer, "transform") or isinstance(transformer, type):
        raise InputError(f"preprocess is {str(transformer)[:80]!r}, not a transformer; give one of {SUPPORTED}.")
    values: Any = np.array(rows.values)
    table = values if rows.columns is None else pd.DataFrame(values, columns=list(rows.columns))
    fitted = clone(transformer).fit(table)
    found = _read(fitted, rows.names)
    if found.width == 0:
        raise InputError(f"preprocess is {_name(transformer)}, which leaves no column; let it keep at least one.")
    out = np.asarray(fitted.transform(table), dtype=np.float64)
    size = np.abs(rows.values[:, list(found.sources)]).max(axis=0) * np.abs(found.factors) + np.abs(found.shifts)
    if out.shape != (len(rows), found.width) or np.any(np.abs(out - found.apply(rows.values)) > 1e-9 * size):
        raise InputError(
            f"preprocess is {_name(transformer)}, which does more to the columns than scaling them; give one of "
            f"{SUPPORTED}."
        )
    return found


def _read(fitted: Any, names: tuple[str, ...]) -> ColumnMap:
    if isinstance(fitted, Pipeline):
        found = ColumnMap.identity(len(names))
        for _, step in fitted.steps:
            found = found.then(_read(step, tuple(names[j] for j in found.sources)))
        return found
    if isinstance(fitted, ColumnTransformer):
        return _read_columns(fitted, names)
    factors, shifts = _line(fitted, len(names))
    sources = tuple(range(len(names)))
    return ColumnMap(sources, tuple(map(float, factors)), tuple(map(float, shifts)))


def _read_columns(fitted: ColumnTransformer, names: tuple[str, ...]) -> ColumnMap:
    sources: list[int] = []
    factors: list[float] = []
    shifts: list[float] = []
    for _, step, columns in fitted.transformers_:
        places = _places(columns, names)
        if (isinstance(step, str) and step == "drop") or not places:
            continue
        part = _read(step, tuple(names[place] for place in places))
        sources += [places[j] for j in part.sources]
        factors += part.factors
        shifts += part.shifts
    twice = sorted({names[j] for j in sources if sources.count(j) > 1})
    if twice:
        raise InputError(f"preprocess takes the column {twice[0]!r} more than once; take each at most once.")
    return ColumnMap(tuple(sources), tuple(factors), tuple(shifts))


def _places(columns: Any, names: tuple[str, ...]) -> list[int]:
    """Where the columns that a ColumnTransformer names, numbers, slices or marks are."""
    if isinstance(columns, str) or (np.ndim(columns) == 0 and not isinstance(columns, slice)):
        columns = [columns]
    if isinstance(columns, slice) and any(isinstance(end, str) for end in (columns.start, columns.stop)):
        # as pandas has it: a slice of names includes its end
        first = 0 if columns.start is None else _place(columns.start, names)
        last = len(names) - 1 if columns.stop is None else _place(columns.stop, names)
        return list(range(first, last + 1))
    if not isinstance(columns, slice) and any(isinstance(column, str) for column in columns):
        return [_place(column, names) for column in columns]
    places = np.arange(len(names))
    chosen = places[columns] if isinstance(columns, slice) else places[np.asarray(columns, dtype=_kind(columns))]
    return [int(place) for place in chosen]


def _place(column: Any, names: tuple[str, ...]) -> int:
    if column not in names:
        raise InputError(f"preprocess names the column {column!r}; the columns are {', '.join(map(repr, names))}.")
    return names.index(column)


def _kind(columns: Any) -> Any:
    return np.bool_ if len(columns) and all(isinstance(c, (bool, np.bool_)) for c in columns) else np.intp


def _passes(step: Any) -> bool:
    if isinstance(step, str):
        return step == "passthrough"
    return type(step) is FunctionTransformer and step.func is None


def _line(step: Any, columns: int) -> tuple[Array, Array]:
    """Factors and shifts of one scaler. The exact class: a subclass may compute something else."""
    ones, zeros, kind = np.ones(columns), np.zeros(columns), type(step)
    if _passes(step):
        return ones, zeros
    if kind is StandardScaler:
        factors = 1.0 / step.scale_ if step.with_std else ones
        return factors, -step.mean_ * factors if step.with_mean else zeros
    if kind is RobustScaler:
        factors = 1.0 / step.scale_ if step.with_scaling else ones
        return factors, -step.center_ * factors if step.with_centering else zeros
    if kind is MinMaxScaler and not step.clip:
        return step.scale_, step.min_
    if kind is MaxAbsScaler and not getattr(step, "clip", False):
        return 1.0 / step.scale_, zeros
    raise InputError(
        f"preprocess has the part {_name(step)}, which does not map each column by a line of its own, so a region in "
        f"the units of X has no exact meaning after it; use {SUPPORTED}, or transform X before and give the region in "
        "the units that result."
    )


def _name(step: Any) -> str:
    return " ".join(str(step).split())[:80]


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
