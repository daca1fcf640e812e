"""Trials in processes of their own: who dies or hangs is told, counted as broken and replaced."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Generator, Iterator
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path

from sfumato.errors import SfumatoError

from .broken import BREAKS
from .outcome import Outcome, Task, reason

#: How long a worker may take to start, in seconds.
STARTS = 120.0


def perform(task: Task, keep: Path) -> Outcome:
    """Run one trial in this process; ``keep/KIND-NUMBER`` stays, with its files and ``case.json``, where it is broken.

    A ``SfumatoError`` that leaves the trial is a refusal. Any other exception is a defect.
    """
    folder = keep / task.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with warnings.catch_warnings(), (folder / "stack.txt").open("w") as stack:
        warnings.simplefilter("ignore")
        # where it hangs: written just before the time is up
        faulthandler.dump_traceback_later(0.95 * task.kind.seconds, file=stack)
        try:
            outcome = task.kind.trial(task.random(), folder)
        except SfumatoError as error:
            outcome = Outcome(task.kind.name, {reason(error): 1})
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            outcome = Outcome(
                task.kind.name, {}, f"an exception that is not sfumato's: {told}", {"stack": _stack(error)}
            )
        finally:
            faulthandler.cancel_dump_traceback_later()
    if outcome.broken is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        (folder / "stack.txt").unlink(missing_ok=True)
        keep_case(task, outcome, keep)
    return outcome


def keep_case(task: Task, outcome: Outcome, keep: Path) -> None:
    """Write what is needed to run a broken trial again."""
    folder = keep / task.name
    folder.mkdir(parents=True, exist_ok=True)
    again = f"python -m soak --seed {task.seed} --trial {task.kind.name}:{task.number}"
    written = {"broken": outcome.broken, "again": again, "counts": outcome.counts, "case": outcome.case}
    (folder / "case.json").write_text(json.dumps(written, indent=2, default=str) + "\n")


def _stack(error: BaseException) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


class Worker:
    """A process, our end of its pipe, and what it is at since when: ``task`` is None while it starts."""

    def __init__(self, keep: Path, number: int, breaks: str | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, keep, keep / f"worker-{number}.txt", breaks))
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.since = time.monotonic()

    @property
    def until(self) -> float:
        return self.since + (STARTS if self.task is None else self.task.kind.seconds)

    def takes(self, task: Task) -> None:
        self.task, self.since = task, time.monotonic()
        self.pipe.send(task)

    def says(self) -> Outcome | None:
        """What came of the task, or None where the worker only says that it has started."""
        if not self.pipe.poll():
            self.end()
            raise LostError("hanging", f"it took more than {self.until - self.since:g} s")
        try:
            said: Outcome | None = self.pipe.recv()
        except (EOFError, OSError) as error:
            self.end()
            raise LostError("dead", f"its process ended with code {self.process.exitcode}") from error
        return said

    def end(self) -> None:
        """Kill the process and whatever it started: it leads a group of its own."""
        if self.process.pid is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):  # it is gone, or was not yet so far as to lead a group
                self.process.kill()
        self.process.join()
        self.pipe.close()


class LostError(Exception):
    """A worker does not come back: what is counted, and what is told."""


def performed(
    following: Iterator[Task], keep: Path, workers: int, seconds: float, breaks: str | None = None
) -> Generator[tuple[Task, Outcome]]:
    """What comes of the trials, as they end, until ``seconds`` have passed or there are no more.

    Trials that run when the time is up are given up, and not counted. Closing the generator ends all workers.
    """
    end, numbers = time.monotonic() + seconds, count()
    keep.mkdir(parents=True, exist_ok=True)
    busy = [Worker(keep, next(numbers), breaks) for _ in range(workers)]
    try:
        while busy and (now := time.monotonic()) < end:
            limit = min([end, *(worker.until for worker in busy)])
            ready = wait([worker.pipe for worker in busy], timeout=max(0.0, limit - now))
            for worker in [one for one in busy if one.pipe in ready or one.until <= time.monotonic()]:
                task = worker.task
                try:
                    outcome = worker.says()
                except LostError as lost:
                    busy.remove(worker)
                    if task is None:
                        raise RuntimeError(f"a worker did not start: {lost.args[1]}; see {keep}.") from lost
                    busy.append(Worker(keep, next(numbers), breaks))
                    outcome = Outcome(task.kind.name, {lost.args[0]: 1}, lost.args[1])
                    keep_case(task, outcome, keep)
                    yield task, outcome
                    continue
                if task is not None and outcome is not None:
                    yield task, outcome
                if (coming := next(following, None)) is not None:
                    worker.takes(coming)
                else:
                    worker.end()
                    busy.remove(worker)
    finally:
        for worker in busy:
            worker.end()
            if worker.task is not None:
                shutil.rmtree(keep / worker.task.name, ignore_errors=True)
        for log in keep.glob("worker-*.txt"):
            if not log.stat().st_size:
                log.unlink()


def _work(pipe: Connection, keep: Path, log: Path, breaks: str | None) -> None:
    """What a worker does: tasks come in, outcomes go out, until the pipe is closed."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(told, 1)
    os.dup2(told, 2)
    faulthandler.enable()
    if breaks is not None:
        BREAKS[breaks]()
    pipe.send(None)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(perform(task, keep))
