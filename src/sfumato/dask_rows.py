"""Rows in a Dask DataFrame: its partitions are made, checked and worked on where the workers are."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .dask_part import UNKNOWN, DaskPart
from .engine.engine import Engine
from .engine.here import Here
from .engine.on_dask import OnDask
from .errors import InputError
from .parts import Part
from .progress import Progress
from .row_scan import Scan
from .stored_inputs import StoredInputs

if TYPE_CHECKING:
    from dask.dataframe import DataFrame


def is_dask_frame(X: Any) -> bool:
    """Whether ``X`` is a Dask DataFrame; Dask need not be installed to ask."""
    return type(X).__module__.startswith(("dask.", "dask_expr.")) and hasattr(X, "to_delayed") and hasattr(X, "columns")


def rows_of_dask(
    frame: DataFrame,
    inputs: Sequence[str],
    output: str | None = None,
    step: Progress | None = None,
    *,
    engine: Engine | None = None,
) -> StoredInputs:
    """The rows of ``frame``, partition after partition, with the columns ``inputs`` as inputs.

    One pass counts the rows and one makes sure that the inputs and ``output`` are finite numbers. With an ``OnDask``
    engine, or where Dask has a client by default, only a sample of the inputs comes here. Unless ``frame`` has been
    persisted its partitions are made anew for each pass and dropped after it, so that all rows need not fit into the
    memory of the workers; they must be the same each time.
    """
    import dask

    named = _checked(frame, inputs, output)
    engine = _where_dask_works() if engine is None else engine
    step = Progress() if step is None else step
    partitions = [dask.optimize(each)[0] for each in named.to_delayed()]
    parts = [DaskPart(0, UNKNOWN, place, tuple(inputs), source) for place, source in enumerate(partitions)]
    step.stage("counting the rows")
    rows = list(engine.each(_counted, parts, lambda _: None))
    total = sum(rows)
    if total == 0:
        raise InputError("the Dask DataFrame has no rows; give at least one.")
    starts = itertools.accumulate(rows, initial=0)
    placed = zip(parts, starts, rows, strict=False)
    parts = [replace(part, start=start, rows=count) for part, start, count in placed if count]
    step.stage("reading the rows")
    scan = Scan.of(total, output)
    return scan.stored(parts, list(engine.each(scan, parts, step.counter(total))), tuple(inputs))


def _checked(frame: DataFrame, inputs: Sequence[str], output: str | None) -> DataFrame:
    """``frame`` with names that are words; with an ``output``, only the columns that are needed."""
    if isinstance(inputs, str) or not inputs:
        raise InputError(f"inputs is {inputs!r}; give the names of the input columns in a list.")
    if any(not isinstance(column, str) for column in frame.columns):
        frame = frame.rename(columns={column: str(column) for column in frame.columns})
    there, wanted = list(frame.columns), [*inputs, *([] if output is None else [output])]
    for name in wanted:
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1)
            shown = ", ".join(there[:20]) + (" …" if len(there) > 20 else "")
            raise InputError(
                f"the Dask DataFrame has no column {name!r}; it has {shown}."
                + (f" Did you mean {near[0]!r}?" if near else "")
            )
        if there.count(name) > 1:
            raise InputError(f"the Dask DataFrame has the column {name!r} more than once; give each its own name.")
        if wanted.count(name) > 1:
            raise InputError(f"the column {name!r} is asked for more than once; name each column once.")
    return frame if output is None else frame[wanted]


def _where_dask_works() -> Engine:
    """Where ``frame.compute()`` would work."""
    try:
        from distributed import default_client

        return OnDask(default_client())
    except (ImportError, ValueError):
        return Here()


def _counted(part: Part) -> int:
    assert isinstance(part, DaskPart)
    return len(part.frame())
