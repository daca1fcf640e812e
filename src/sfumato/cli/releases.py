"""Releases and their truth, as commands are given them: files and tables."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FormatError, InputError

if TYPE_CHECKING:
    from ..arrays import Array
    from ..release import Release
    from .options import Reading


def open_release(path: Path) -> Release:
    """The release in a file or a folder."""
    from ..release import load

    if not (path.is_file() or (path / "release.sfumato").is_file()):
        raise InputError(
            f"{path} {'is not a release' if path.exists() else 'does not exist'}; give a release file, or the "
            "folder of a release that is complete."
        )
    try:
        return load(path)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error


def true_values(release: Release, truth: Path, output: str | None, reading: Reading) -> Array:
    """The secret values from a table, in the order of the release's rows, matched by their inputs.

    Where inputs are repeated, their values are taken in the order of the file.
    """
    import numpy as np

    from ..data import as_inputs

    rows = release.design.inputs
    if rows.outputs.numbered and output is not None:
        raise InputError(
            f"--output is {output!r}, but the release is about {', '.join(rows.present)}; give a table with a "
            "column for each of them, and leave --output out."
        )
    asked = {output or name: rows.rows_about(name) for name in rows.present}
    names = list(rows.sources)
    table = reading.table(truth, names, list(asked))
    if not rows.outputs.numbered and len(table) != len(rows):
        raise InputError(
            f"--truth {truth} has {len(table)} rows, but the release has {len(rows)}; give the table that was "
            "protected."
        )
    places = as_inputs(table[names], str(truth), like=rows.plain).values
    found = np.empty(len(rows))
    for column, own in asked.items():
        values: dict[bytes, list[float]] = defaultdict(list)
        # + 0.0 turns −0 into 0: they are the same input
        for row, value in zip(np.ascontiguousarray(places) + 0.0, table[column], strict=True):
            values[row.tobytes()].append(float(value))
        for number, row in zip(own, np.ascontiguousarray(rows.plain.values[own]) + 0.0, strict=True):
            left = values[row.tobytes()]
            if not left:
                place = rows.plain.in_words(row)
                raise InputError(
                    f"--truth {truth} has no row for {place} (row {number + 1} of the release); inputs must be exactly "
                    "those that were released: give the table that was protected."
                )
            found[number] = left.pop(0)
    return found
