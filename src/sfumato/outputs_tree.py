"""Joint kernels and means over outputs as plain trees; how their parts are written is ``model_tree``'s business.

As there, ``build_*`` reads trees that may come from anywhere: what is not exactly as expected is a ``FormatError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from .errors import FormatError, InputError
from .functionals import MAX_POINTS, Average, Derivative, Functional, Value
from .inputs import Array
from .outputs_kernel import OutputsKernel, Term
from .outputs_mean import OutputsMean
from .tree_checks import finite, kind_and_fields, require_entries, short, whole

KIND = "outputs"
MAX_OUTPUTS = 64
MAX_TERMS = 64
MAX_ENTRIES = 256
MAX_RANK = 256
MAX_COLUMNS = 10_000
FUNCTIONAL_KINDS = ("value", "derivative", "average")


def is_joint(tree: object) -> bool:
    """Whether a tree says that it is of a joint kernel or a joint mean."""
    return isinstance(tree, dict) and tree.get("kind") == KIND


def describe_outputs_kernel(kernel: OutputsKernel, describe: Callable[[Kernel], dict[str, Any]]) -> dict[str, Any]:
    """The tree of ``kernel``, its parts written by ``describe``."""
    terms = [
        {
            "kernel": describe(term.kernel),
            "entries": [{"output": output, **_describe(functional)} for output, functional in term.entries],
            "mixing": term.mixing.tolist(),
        }
        for term in kernel.terms
    ]
    return {"kind": KIND, "terms": terms}


def describe_outputs_mean(mean: OutputsMean, describe: Callable[[Mean], dict[str, Any]]) -> dict[str, Any]:
    """The tree of ``mean``, its parts written by ``describe``."""
    outputs = [
        [{"functional": _describe(functional), "mean": describe(part)} for functional, part in parts]
        for parts in mean.outputs
    ]
    return {"kind": KIND, "outputs": outputs}


def _describe(functional: Functional) -> dict[str, Any]:
    if isinstance(functional, Average):
        return {"kind": "average", "points": functional.points.tolist(), "weights": functional.weights.tolist()}
    if isinstance(functional, Derivative):
        return {"kind": "derivative", "column": functional.column}
    if isinstance(functional, Value):
        return {"kind": "value"}
    raise InputError(
        f"an output is a {type(functional).__name__} of a function, which cannot be written to a file; "
        f"use the kinds {', '.join(FUNCTIONAL_KINDS)}."
    )


def build_outputs_kernel(
    tree: object, dimension: int | None, build: Callable[[object, int | None], Kernel]
) -> OutputsKernel:
    """The kernel that ``tree`` describes, for rows of ``dimension`` columns, the output's number included.

    ``build`` makes a base kernel of its tree and the number of its columns.
    """
    fields, _ = kind_and_fields(tree, "kernel", (KIND,))
    require_entries(fields, KIND, ("terms",), ())
    columns = _input_columns(dimension)
    terms = []
    for term in _items(fields["terms"], 1, MAX_TERMS, "terms of the joint kernel"):
        if not isinstance(term, dict):
            raise FormatError(f"a term of the joint kernel must be an object, not {short(term)}.")
        if set(term) != {"kernel", "entries", "mixing"}:
            raise FormatError("a term of the joint kernel must have kernel, entries and mixing, and nothing else.")
        entries = tuple(_entry(entry, columns) for entry in _items(term["entries"], 1, MAX_ENTRIES, "entries"))
        mixing = _matrix(term["mixing"], len(entries), MAX_RANK, "mixing")
        if len(mixing) != len(entries):
            raise FormatError(f"mixing has {len(mixing)} rows for {len(entries)} entries.")
        terms.append(Term(build(term["kernel"], columns), entries, mixing))
    with _refusals():
        return OutputsKernel(terms)


def build_outputs_mean(tree: object, dimension: int | None, build: Callable[[object, int | None], Mean]) -> OutputsMean:
    """The mean that ``tree`` describes, for rows of ``dimension`` columns, the output's number included."""
    fields, _ = kind_and_fields(tree, "mean", (KIND,))
    require_entries(fields, KIND, ("outputs",), ())
    columns = _input_columns(dimension)
    outputs = []
    for parts in _items(fields["outputs"], 1, MAX_OUTPUTS, "outputs of the joint mean"):
        pairs = []
        for part in _items(parts, 0, MAX_ENTRIES, "an output of the joint mean"):
            if not isinstance(part, dict) or set(part) != {"functional", "mean"}:
                raise FormatError("a part of the joint mean must have functional and mean, and nothing else.")
            pairs.append((_functional(part["functional"], columns, ()), build(part["mean"], columns)))
        outputs.append(pairs)
    with _refusals():
        return OutputsMean(outputs)


def _input_columns(dimension: int | None) -> int | None:
    if dimension is not None and dimension < 2:
        raise FormatError(f"a joint model needs an input and the number of an output, but there is {dimension} column.")
    return None if dimension is None else dimension - 1


def _entry(tree: object, columns: int | None) -> tuple[int, Functional]:
    functional = _functional(tree, columns, ("output",))
    assert isinstance(tree, dict)
    return whole(tree["output"], 0, MAX_OUTPUTS - 1, "output of an entry"), functional


def _functional(tree: object, columns: int | None, also: tuple[str, ...]) -> Functional:
    fields, kind = kind_and_fields(tree, "functional", FUNCTIONAL_KINDS)
    if kind == "value":
        require_entries(fields, kind, also, ())
        return Value()
    if kind == "derivative":
        require_entries(fields, kind, (*also, "column"), ())
        most = MAX_COLUMNS if columns is None else columns - 1
        return Derivative(whole(fields["column"], 0, most, "column of the derivative"))
    require_entries(fields, kind, (*also, "points", "weights"), ())
    points = _matrix(fields["points"], MAX_POINTS, MAX_COLUMNS, "points of the average")
    if columns is not None and points.shape[1] != columns:
        raise FormatError(f"points of the average have {points.shape[1]} column(s), but the inputs have {columns}.")
    what = "weights of the average"
    weights = [finite(weight, what) for weight in _items(fields["weights"], 1, MAX_POINTS, what)]
    if len(weights) != len(points):
        raise FormatError(f"weights of the average has {len(weights)} entries for {len(points)} points.")
    with _refusals():
        return Average(points, weights)


def _items(values: object, least: int, most: int, what: str) -> list[object]:
    if not isinstance(values, list):
        raise FormatError(f"{what} must be a list, not {short(values)}.")
    if not least <= len(values) <= most:
        raise FormatError(f"{what} has {len(values)} entries; from {least} to {most} are allowed.")
    return values


def _matrix(values: object, most_rows: int, most_columns: int, what: str) -> Array:
    rows = [_items(row, 1, most_columns, f"a row of {what}") for row in _items(values, 1, most_rows, what)]
    if len({len(row) for row in rows}) != 1:
        raise FormatError(f"{what} has rows of different lengths.")
    return np.array([[finite(value, what) for value in row] for row in rows], dtype=np.float64)


@contextmanager
def _refusals() -> Iterator[None]:
    """What our own classes refuse is, in a file, damage."""
    try:
        yield
    except InputError as error:
        raise FormatError(f"the joint model is wrong: {error}") from None
