"""Noise that is learnt: one variance for all rows, or one that differs by a column.

The logarithm of the variance is a sum of levels, each with a weight that the value of the row in the column gives: one
level for each of a few values, or a line between levels at a few knots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array
from ..data import Inputs
from ..errors import InputError
from ..text import listed

LEARN_BY = "learn by"
#: A column with at most so many values has a level for each that so many rows have; others are read as smooth.
MOST_LEVELS, ROWS_A_LEVEL = 20, 5
#: Knots of a smooth noise: shares of the rows that lie below.
KNOTS = (0.0, 1 / 3, 2 / 3, 1.0)


@dataclass(frozen=True, eq=False)
class LearntNoise:
    """What the noise variance of a row depends on.

    ``label`` is the name of a column, "" for one variance. ``levels`` are the values that have a level, or knots if it
    is ``smooth``; ``shares`` of the fitted rows are at each: values without a level have the mean logarithm.
    """

    label: str = ""
    names: tuple[str, ...] = ("",)
    levels: Array | None = None
    shares: Array | None = None
    smooth: bool = False

    @property
    def size(self) -> int:
        return len(self.names)

    def basis(self, values: Array) -> Array:
        """The weights of the levels in rows with these values of the column, a row each."""
        if self.levels is None or self.shares is None:
            return np.ones((len(values), 1))
        if self.smooth:
            hats = np.eye(len(self.levels))
            return np.column_stack([np.interp(values, self.levels, hat) for hat in hats])
        at = values[:, None] == self.levels
        return np.where(at.any(axis=1, keepdims=True), at, self.shares)

    def of(self, basis: Array, variances: Array) -> float | Array:
        """``variances`` of the levels as a prior has them: one number, or one for each row."""
        return float(variances[0]) if self.size == 1 else np.exp(basis @ np.log(variances))

    def words(self, place: int) -> str:
        return f" of {self.names[place]}" if self.names[place] else ""

    def notes(self, values: Array, variances: Array) -> tuple[str, ...]:
        """What there is to say about the ``variances`` of the levels, and about rows that have none."""
        if self.levels is None:
            return ()
        each = listed([f"{name}: {value:.3g}" for name, value in zip(self.names, variances, strict=True)], MOST_LEVELS)
        said = f"the noise variance was learnt by {self.label}: {each}{', a line in logarithms between' * self.smooth}."
        if self.smooth:
            return (said,)
        rest = int((~np.isin(values, self.levels)).sum())
        others = (
            f"{rest} rows have other values of {self.label}, which fewer than {ROWS_A_LEVEL} fitted rows have: their "
            "noise is the geometric mean over the fitted rows."
        )
        return (said, others) if rest else (said,)


@dataclass(frozen=True, eq=False)
class NoiseColumn:
    """The column that the noise differs by: a number for each row, and what the numbers stand for."""

    label: str
    values: Array
    words: tuple[str, ...] | None = None

    def learnt(self, values: Array) -> LearntNoise:
        """The levels that fitted rows with these ``values`` tell."""
        found, counts = np.unique(values, return_counts=True)
        if self.words is None and len(found) > MOST_LEVELS:
            knots = np.unique(np.quantile(values, KNOTS))
            names = tuple(f"{self.label} = {knot:.4g}" for knot in knots)
            return LearntNoise(self.label, names, knots, np.full(len(knots), 1.0 / len(knots)), smooth=True)
        if len(found) > MOST_LEVELS:
            raise InputError(
                f"noise is to be learnt by {self.label}, which has {len(found)} levels; give a column with at most "
                f"{MOST_LEVELS}, or a number."
            )
        told = counts >= ROWS_A_LEVEL
        if told.sum() < 2:
            raise InputError(
                f"noise is to be learnt by {self.label}, but {int(told.sum())} of its values is in {ROWS_A_LEVEL} "
                'fitted rows or more; at least two are needed. Give noise="learn".'
            )
        levels = found[told]
        said = [f"{value:.6g}" if self.words is None else self.words[int(value)] for value in levels.tolist()]
        shares = counts[told] / counts[told].sum()
        return LearntNoise(self.label, tuple(f"{self.label} = {name}" for name in said), levels, shares)


def noise_column(asked: Sequence[Any], inputs: Inputs) -> NoiseColumn:
    """The column of ``("learn by", column)``: an input by name or number, or a label for each row."""
    if len(asked) != 2:
        raise InputError(f'noise is {tuple(asked)!r}; give ("{LEARN_BY}", column).')
    column = asked[1]
    if isinstance(column, str):
        return _of_inputs(column, inputs)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if not 0 <= column < inputs.dimension:
            raise InputError(f'noise is ("{LEARN_BY}", {column}), but X has {inputs.dimension} column(s).')
        return _of_inputs(inputs.names[int(column)], inputs)
    label = str(getattr(column, "name", None) or "the label")
    if np.ndim(column) != 1 or len(column) != len(inputs):
        raise InputError(
            f'noise is ("{LEARN_BY}", …) with labels of shape {np.shape(column)}; give a column of X, or one label for '
            f"each of its {len(inputs)} rows."
        )
    labels = pd.Series(np.asarray(column))
    if labels.isna().any():
        raise InputError(f"noise is to be learnt by {label}, which has missing labels; fill them or drop these rows.")
    if pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels):
        return NoiseColumn(label, labels.to_numpy(dtype=np.float64))
    codes, words = pd.factorize(labels, sort=True)
    return NoiseColumn(label, codes.astype(np.float64), tuple(map(str, words)))


def _of_inputs(name: str, inputs: Inputs) -> NoiseColumn:
    names = list(inputs.names)
    if name in names:
        return NoiseColumn(name, np.asarray(inputs.values[:, names.index(name)]))
    # a category is a column of 0 and 1 for each of its levels
    places = [place for place, column in enumerate(names) if column.startswith(f"{name}=")]
    if not places:
        raise InputError(
            f'noise is ("{LEARN_BY}", {name!r}), but X has the columns {listed(inputs.sources, 12)}; give one of them, '
            "or a label for each row."
        )
    words = tuple(names[place].removeprefix(f"{name}=") for place in places)
    return NoiseColumn(name, inputs.values[:, places].argmax(axis=1).astype(np.float64), words)
