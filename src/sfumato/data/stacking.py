"""Rows about several outputs: one below the other, the last column saying which output a row is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array, Index
from ..errors import InputError
from .inputs import Inputs, as_inputs, as_outputs

#: What the column is called that says which output a row is about.
COLUMN = "output"


def stacked_inputs(rows: Mapping[str, Inputs], outputs: Sequence[str]) -> Inputs:
    """The rows about each output, in the order of ``rows``, as one set of inputs."""
    first = next(iter(rows.values()))
    blocks = []
    for name, inputs in rows.items():
        if inputs.names != first.names:
            raise InputError(
                f"X has the columns {', '.join(inputs.names)} for {name!r}, but {', '.join(first.names)} for "
                f"{next(iter(rows))!r}; give all outputs inputs with the same columns."
            )
        number = float(outputs.index(name))
        blocks.append(np.column_stack([inputs.values, np.full(len(inputs), number)]))
    values = np.vstack(blocks)
    values.setflags(write=False)
    return Inputs(values, (*first.names, column_name(first.names)), tuple(outputs), _labels(list(rows.values())))


def _labels(blocks: Sequence[Inputs]) -> Any:
    """The row labels of ``blocks``, one below the other, if all have some."""
    labels = [block.index for block in blocks if block.index is not None]
    return labels[0].append(labels[1:]) if len(labels) == len(blocks) else None


def column_name(names: Sequence[str]) -> str:
    """What the column with the number of the output is called beside columns with these ``names``."""
    name = COLUMN
    while name in names:
        name += "_"
    return name


def rows_about(inputs: Inputs, output: str) -> Index:
    """Which rows are about ``output``."""
    assert inputs.outputs is not None
    return np.flatnonzero(inputs.values[:, -1] == inputs.outputs.index(known_output(inputs.outputs, output)))


def present_outputs(inputs: Inputs) -> tuple[str, ...]:
    """The outputs that some row is about, in the order in which they come."""
    assert inputs.outputs is not None
    _, first = np.unique(inputs.values[:, -1], return_index=True)
    return tuple(inputs.outputs[int(inputs.values[place, -1])] for place in np.sort(first))


def known_output(outputs: Sequence[str], name: Any, argument: str = "output") -> str:
    """``name``, if it is one of ``outputs``."""
    if not isinstance(name, str) or name not in outputs:
        raise InputError(f"{argument} is {str(name)[:60]!r}; choose one of {', '.join(map(repr, outputs))}.")
    return name


def at_output(X_new: Any, inputs: Inputs, output: Any, place_of: Callable[[int], Array | None]) -> Inputs:
    """``X_new`` as rows about ``output``; a quantity without inputs of its own has one place."""
    assert inputs.outputs is not None
    if output is None:
        if len(inputs.outputs) > 1:
            raise InputError(
                f"output is missing; this is about several: choose one of {', '.join(map(repr, inputs.outputs))}."
            )
        output = inputs.outputs[0]
    number = inputs.outputs.index(known_output(inputs.outputs, output))
    if X_new is None:
        place = place_of(number)
        if place is None:
            raise InputError(f"X_new is missing; {output!r} is a function of the inputs, so say where.")
        plain = Inputs(place[None])
    else:
        plain = as_inputs(X_new, "X_new", like=inputs.plain)
    values = np.column_stack([plain.values, np.full(len(plain), float(number))])
    return Inputs(values, inputs.columns, inputs.outputs, plain.index)


def stacked_outputs(inputs: Inputs, y: Any) -> Array:
    """One value for each row: from a dict or DataFrame with a column for each output, a matrix, or a plain vector."""
    if inputs.outputs is None:
        return as_outputs(y, inputs)
    present = present_outputs(inputs)
    if isinstance(y, (Mapping, pd.DataFrame)):
        given = {str(name): y[name] for name in y}
        missing = [name for name in present if name not in given]
        if missing:
            raise InputError(f"y has no values of {missing[0]!r}; give {', '.join(map(repr, present))}.")
        unknown = [name for name in given if name not in present] if isinstance(y, Mapping) else []
        if unknown:
            raise InputError(f"y has values of {unknown[0]!r}, which is not released; give {', '.join(present)}.")
    elif np.ndim(y) == 2 and np.shape(y)[1] == len(present) and len(present) > 1:
        table = np.asarray(y, dtype=np.float64)
        given = {name: table[:, place] for place, name in enumerate(present)}
    else:
        return as_outputs(y, inputs)
    values = np.empty(len(inputs))
    for name in present:
        own = rows_about(inputs, name)
        values[own] = as_outputs(given[name], inputs.select(own), f"y[{name!r}]")
    return as_outputs(values, len(inputs))
