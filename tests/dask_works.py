"""Work that the tests send to a cluster. It imports little: each worker that is started again imports it again."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.arrays import Array
    from sfumato.data.parts import Part, Totals


def gram(part: Part) -> Totals:
    X = np.column_stack([part.inputs(), part.column("y")])
    return {"gram": X.T @ X, "rows": np.array(part.rows)}


def die_once(flag: Path) -> None:
    """As the system ends a process that takes too much memory: no notice, no last words."""
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Killed:
    """``gram``, but who works on a part that begins at one of ``starts`` for the first time is killed."""

    folder: Path
    starts: tuple[int, ...]

    def __call__(self, part: Part) -> Totals:
        time.sleep(0.02)
        if part.start in self.starts:
            die_once(self.folder / str(part.start))
        return gram(part)


@dataclass(frozen=True)
class KilledIn:
    """``work``, but who does it on a part that begins at one of ``starts`` for the first time is killed: before the
    first of these is begun, and when others are done and nobody was told."""

    work: Any
    folder: Path
    starts: tuple[int, ...]

    def __call__(self, part: Part) -> Any:
        if part.start == self.starts[0]:
            die_once(self.folder / str(part.start))
        done = self.work(part)
        if part.start in self.starts:
            die_once(self.folder / str(part.start))
        return done


@dataclass(frozen=True)
class AllKilled:
    """``gram``, but each of the first two workers is killed in its third part: all that they held is lost."""

    folder: Path

    def __call__(self, part: Part) -> Totals:
        mine = self.folder / f"worker-{os.getpid()}-{part.start}"
        mine.touch()
        began = len(list(self.folder.glob(f"worker-{os.getpid()}-*")))
        if began == 3 and len(list(self.folder.glob("killed-*"))) < 2:
            die_once(self.folder / f"killed-{os.getpid()}")
        return gram(part)


@dataclass(frozen=True, eq=False)
class Modelled:
    """Work that brings a model, a region and an array."""

    prior: Any
    region: Any
    centres: Array

    def __call__(self, part: Part) -> Totals:
        block = self.prior.covariance(part.inputs(), self.centres) + self.prior.mean_at(part.inputs())[:, None]
        inside = self.region.contains(part.inputs())
        return {"gram": block.T @ block, "inside": block[inside].sum(axis=0)}


def start_of(part: Part) -> int:
    return part.start


def end_of(part: Part) -> int:
    return part.start + part.rows


@dataclass(frozen=True)
class Secretive:
    """Work whose own text, and whose error, would give something away."""

    key: str
    fails: bool

    def __call__(self, part: Part) -> Totals:
        if self.fails and part.start == 4000:
            raise ValueError(f"{self.key} {part!r}")
        return gram(part)


def with_worker(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(worker=os.getpid())


def weighted(part: Part) -> Totals:
    return {"sum": part.column("more") @ (part.inputs() * part.column("y")[:, None])}


def shrinking(frame: pd.DataFrame, seen: Path) -> pd.DataFrame:
    if seen.exists():
        return frame.iloc[1:]
    seen.touch()
    return frame
