"""What scikit-learn transformers (``preprocess=``) do to each column: move it and scale it, or they are refused.

Scalers, and pipelines and column transformers of scalers, keep every column to itself and map it by a line. A region
in the units before them then means something exact after them, and a kernel after them is a kernel before them.
"""

from __future__ import annotations

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
from ..models import ColumnMap

SUPPORTED = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, 'passthrough', or a Pipeline or ColumnTransformer of "
    "those"
)

#: A transformer agrees with the lines that were read from it up to this share of its values.
_AGREEMENT = 1e-9


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
    largest = np.abs(rows.values[:, list(found.sources)]).max(axis=0)
    size = (largest + np.abs(found.offsets)) / np.abs(found.scales)
    if out.shape != (len(rows), found.width) or np.any(np.abs(out - found.apply(rows.values)) > _AGREEMENT * size):
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
    if not isinstance(fitted, ColumnTransformer):
        offsets, scales = _line(fitted, len(names))
        return ColumnMap(tuple(range(len(names))), tuple(map(float, offsets)), tuple(map(float, scales)))
    lines: list[tuple[int, float, float]] = []
    for _, step, columns in fitted.transformers_:
        places = _places(columns, names)
        if places and not (isinstance(step, str) and step == "drop"):
            part = _read(step, tuple(names[place] for place in places))
            sources = [places[j] for j in part.sources]
            lines += zip(sources, part.offsets, part.scales, strict=True)
    taken = [names[source] for source, _, _ in lines]
    twice = sorted(name for name in taken if taken.count(name) > 1)
    if twice:
        raise InputError(f"preprocess takes the column {twice[0]!r} more than once; take each at most once.")
    return ColumnMap(*zip(*lines, strict=True)) if lines else ColumnMap((), (), ())


def _places(columns: Any, names: tuple[str, ...]) -> list[int]:
    """Where the columns are that a ColumnTransformer names, numbers, slices or marks, as pandas has it."""
    if np.ndim(columns) == 0 and not isinstance(columns, slice):
        columns = [columns]
    named = (columns.start, columns.stop) if isinstance(columns, slice) else (columns := list(columns))
    places = pd.Series(range(len(names)), index=list(names))
    try:
        chosen = places.loc[columns] if any(isinstance(one, str) for one in named) else places.iloc[columns]
    except KeyError as error:
        raise InputError(f"preprocess: {error.args[0]}; the columns are {', '.join(map(repr, names))}.") from None
    return [int(place) for place in chosen]


def _passes(step: Any) -> bool:
    if isinstance(step, str):
        return step == "passthrough"
    return type(step) is FunctionTransformer and step.func is None


def _line(step: Any, columns: int) -> tuple[Array, Array]:
    """Offsets and scales of one scaler. The exact class: a subclass may compute something else."""
    zeros, ones, kind = np.zeros(columns), np.ones(columns), type(step)
    if _passes(step):
        return zeros, ones
    if kind is StandardScaler:
        return step.mean_ if step.with_mean else zeros, step.scale_ if step.with_std else ones
    if kind is RobustScaler:
        return step.center_ if step.with_centering else zeros, step.scale_ if step.with_scaling else ones
    if kind is MinMaxScaler and not step.clip:
        return -step.min_ / step.scale_, 1.0 / step.scale_
    if kind is MaxAbsScaler and not getattr(step, "clip", False):
        return zeros, step.scale_
    raise InputError(
        f"preprocess has the part {_name(step)}, which does not map each column by a line of its own, so a region in "
        f"the units of X has no exact meaning after it; use {SUPPORTED}, or transform X before and give the region in "
        "the units that result."
    )


def _name(step: Any) -> str:
    return " ".join(str(step).split())[:80]
