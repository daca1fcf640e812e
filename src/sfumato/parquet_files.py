"""Which Parquet files are meant: one, several, those of a folder, or those that fit a pattern."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Sequence
from pathlib import Path

from .errors import InputError

ENDINGS = (".parquet", ".pq")


def parquet_files(paths: Sequence[Path]) -> list[Path]:
    """All Parquet files that ``paths`` speak of: files, folders with files at any depth, and patterns; sorted."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = [file for file in path.rglob("*") if file.suffix.lower() in ENDINGS and _visible(file, path)]
            if not inside:
                raise InputError(f"{path} has no Parquet files in it; give a folder with .parquet files.")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            matching = [Path(name) for name in glob.glob(str(path), recursive=True)]
            if not matching:
                raise InputError(f"{path} does not exist; give a Parquet file, a folder of them or a pattern.")
            found += [file for file in matching if file.is_file()]
    wrong = [path for path in found if path.suffix.lower() not in ENDINGS]
    if wrong:
        raise InputError(f"{wrong[0]} does not end in .parquet or .pq; only Parquet files are read part after part.")
    files = sorted(path.resolve() for path in found)
    twice = [path for path, following in itertools.pairwise(files) if path == following]
    if twice:
        raise InputError(f"{twice[0]} is given more than once; its rows would be counted twice.")
    return files


def _visible(file: Path, folder: Path) -> bool:
    # other programs keep summaries and unfinished files under such names
    return file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def fingerprint(files: Sequence[Path]) -> list[list[str | int]]:
    """By which it is noticed that some of ``files`` were replaced or written to: their names, sizes and times."""
    return [[str(file), about.st_size, about.st_mtime_ns] for file in files for about in [file.stat()]]
