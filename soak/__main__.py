"""``python -m soak``: random trials for some minutes, and a table of what came of them."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

# before NumPy and torch are imported: one core a worker
for threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

if TYPE_CHECKING:
    from .outcome import Outcome, Task


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    from .broken import BREAKS
    from .outcome import KINDS

    parser = argparse.ArgumentParser("python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument("--trials", type=int, help="end after so many trials, if that is earlier")
    parser.add_argument("--seed", type=int, help="a whole number that fixes all trials; one is drawn and told")
    parser.add_argument("--keep", type=Path, default=Path("build/soak"), help="where broken cases stay (build/soak)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--only", default=",".join(KINDS), help=f"kinds of trials, of {','.join(KINDS)} (all)")
    parser.add_argument("--trial", metavar="KIND:NUMBER", help="run this one trial of the seed alone, in this process")
    parser.add_argument("--break", dest="breaks", choices=BREAKS, help="break the package on purpose")
    asked = parser.parse_args(arguments)
    names = asked.only.split(",")
    if asked.trial is not None:
        kind, _, number = asked.trial.partition(":")
        names = [kind]
        if asked.seed is None or not number.isdecimal():
            parser.error("--trial is KIND:NUMBER, and --seed says of which run.")
        asked.number = int(number)
    if unknown := [kind for kind in names if kind not in KINDS]:
        parser.error(f"there is no kind {unknown[0]!r} of trials; give some of {','.join(KINDS)}.")
    asked.kinds = [KINDS[name] for name in names]
    if asked.seed is None:
        asked.seed = secrets.randbelow(2**31)
    return asked


def main(arguments: list[str] | None = None) -> int:
    """1 where anything was broken."""
    asked = options(arguments)
    from .outcome import Task, tasks
    from .workers import performed

    if asked.trial is not None:
        return _alone(Task(asked.kinds[0], asked.number, asked.seed), asked)
    print(f"soak --seed {asked.seed} --minutes {asked.minutes:g}; broken cases: {asked.keep}", file=sys.stderr)
    following: Iterator[Task] = islice(tasks(asked.kinds, asked.seed), asked.trials)
    table, start = Table(), time.monotonic()
    with closing(performed(following, asked.keep, asked.workers, 60.0 * asked.minutes, asked.breaks)) as outcomes:
        try:
            for task, outcome in outcomes:
                table.count(task, outcome)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
    table.show(time.monotonic() - start, asked)
    return 1 if table.broken else 0


def _alone(task: Task, asked: argparse.Namespace) -> int:
    """Run one trial here, where a debugger can look at it."""
    import json

    from .broken import BREAKS
    from .workers import perform

    if asked.breaks is not None:
        BREAKS[asked.breaks]()
    outcome = perform(task, asked.keep)
    print(json.dumps({"counts": outcome.counts, "broken": outcome.broken, "case": outcome.case}, indent=2, default=str))
    return 1 if outcome.broken else 0


class Table:
    """Counts of each kind, and the broken trials."""

    def __init__(self) -> None:
        self.trials: Counter[str] = Counter()
        self.counts: dict[str, Counter[str]] = {}
        self.broken: list[tuple[Task, str]] = []

    def count(self, task: Task, outcome: Outcome) -> None:
        self.trials[task.kind.name] += 1
        self.counts.setdefault(task.kind.name, Counter()).update(outcome.counts)
        if outcome.broken is not None:
            self.broken.append((task, outcome.broken))
            print(f"broken: {task.kind.name}:{task.number}: {outcome.broken!a}", file=sys.stderr)

    def show(self, seconds: float, asked: argparse.Namespace) -> None:
        from rich.console import Console
        from rich.table import Table as Rows
        from rich.text import Text

        rows = Rows(title=f"seed {asked.seed}, {seconds:.0f} s, workers: {asked.workers}", title_justify="left")
        rows.add_column("kind")
        rows.add_column("what")
        rows.add_column("number", justify="right")
        for kind in (one.name for one in asked.kinds):  # those that time did not reach as well
            broken = sum(task.kind.name == kind for task, _ in self.broken)
            rows.add_row(kind, "trials", f"{self.trials[kind]:,}")
            for what, number in self.counts.get(kind, Counter()).most_common():
                rows.add_row("", Text(what), f"{number:,}")
            rows.add_row("", Text("broken", style="bold red" if broken else ""), f"{broken:,}", end_section=True)
        console = Console(width=None if sys.stdout.isatty() else 120)
        console.print(rows)
        for task, told in self.broken[:20]:
            console.print(Text(f"broken: {task.kind.name}:{task.number}: {told}"))
        if self.broken:
            again = f"python -m soak --seed {asked.seed} --trial KIND:NUMBER"
            console.print(Text(f"{len(self.broken)} broken, kept in {asked.keep}; again: {again}"))
        else:
            console.print("broken: 0")


if __name__ == "__main__":
    sys.exit(main())
