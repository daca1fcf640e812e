"""The files that commands read and write, checked before any work is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError

if TYPE_CHECKING:
    from ..arrays import Array
    from ..release import Release

FIGURES = (".png", ".pdf", ".svg")
TABLES = (".csv", ".parquet", ".pq")

#: Sharp enough to be printed.
DOTS_AN_INCH = 200


class Written(NamedTuple):
    """A file that an option names, if it does, and the endings that its name may have (none: any)."""

    option: str
    path: Path | None
    endings: tuple[str, ...] = ()


def check_written(*files: Written, read: Sequence[Path | None]) -> None:
    """Refuse what cannot be written, what is read as well, and two files in one place."""
    sources = [path.resolve() for path in read if path is not None]
    places: dict[Path, str] = {}
    for option, path, _ in files:
        if path is None:
            continue
        if path.resolve() in sources:
            raise InputError(f"{option} {path} is what the command reads; write to another file.")
        if path.resolve() in places:
            raise InputError(f"{places[path.resolve()]} and {option} are both {path}; give them different names.")
        places[path.resolve()] = option
    for option, path, endings in files:
        if path is None:
            continue
        if path.is_dir():
            raise InputError(f"{option} {path} is a folder; give the name of a file.")
        if endings and path.suffix.lower() not in endings:
            raise InputError(f"{option} {path} ends in {path.suffix or 'nothing'!r}; choose {', '.join(endings)}.")
        if not path.parent.is_dir():
            raise InputError(
                f"{option} {path} cannot be written: the folder {path.parent} does not exist; make it first."
            )


def check_folder_name(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file; give the name of a folder.")


def save_figure(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=DOTS_AN_INCH)


def open_release(path: Path) -> Release:
    """The release in a file or a folder."""
    from ..release import load

    if not (path.is_file() or (path / "release.sfumato").is_file()):
        raise InputError(
            f"{path} {'is not a release' if path.exists() else 'does not exist'}; give a release file, or the "
            "folder of a release that is complete."
        )
    return load(path)


def true_values(release: Release, truth: Path, output: str | None) -> Array:
    """The secret values from a table, in the order of the release's rows, matched by their inputs.

    Where inputs are repeated, their values are taken in the order of the file.
    """
    import numpy as np

    from ..data import read_table, select_numbers

    rows = release.design.inputs
    if rows.outputs.numbered and output is not None:
        raise InputError(
            f"--output is {output!r}, but the release is about {', '.join(rows.present)}; give a table with a "
            "column for each of them, and leave --output out."
        )
    asked = {output or name: rows.rows_about(name) for name in rows.present}
    names = list(rows.plain.names)
    table = select_numbers(read_table(truth), [*names, *asked], truth)
    if not rows.outputs.numbered and len(table) != len(rows):
        raise InputError(
            f"--truth {truth} has {len(table)} rows, but the release has {len(rows)}; give the table that was "
            "protected."
        )
    found = np.empty(len(rows))
    for column, own in asked.items():
        values: dict[bytes, list[float]] = defaultdict(list)
        # + 0.0 turns −0 into 0: they are the same input
        for row, value in zip(table[names].to_numpy() + 0.0, table[column], strict=True):
            values[row.tobytes()].append(float(value))
        for number, row in zip(own, np.ascontiguousarray(rows.plain.values[own]) + 0.0, strict=True):
            left = values[row.tobytes()]
            if not left:
                place = ", ".join(f"{name} = {value!r}" for name, value in zip(names, row.tolist(), strict=True))
                raise InputError(
                    f"--truth {truth} has no row for {place} (row {number + 1} of the release); inputs must be exactly "
                    "those that were released: give the table that was protected."
                )
            found[number] = left.pop(0)
    return found
