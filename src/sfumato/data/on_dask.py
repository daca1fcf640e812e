"""A Dask cluster as an engine, and the rows of a Dask DataFrame as its parts.

The workers make and check the partitions, do the work and add up the sums; only what is asked for comes back.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import traceback
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from ..arrays import Array
from ..errors import InputError, ResourceError, SfumatoError
from ..linalg import thread_share
from ..progress import Progress
from ..text import one_line
from .columns import asked_columns, require_columns, require_numbers
from .parts import LARGEST_NUMBER, Done, Engine, Here, Part, Result, TablePart, Totals
from .stored import StoredInputs, scanned

if TYPE_CHECKING:
    from dask.dataframe import DataFrame
    from distributed import Client, Future


#: At least this many parts are being worked on, however few workers there are yet.
LEAST_UNDER_WAY = 8

#: The number of rows of a partition before it has been counted.
UNKNOWN = -1

_passes = itertools.count(1)


@dataclass(frozen=True, repr=False)
class Sealed:
    """A value that shows nothing of itself: Dask logs the arguments of a task that fails."""

    value: Any


class WorkError(Exception):
    """Brings an error from a worker, and where it was raised; what Dask logs of it says nothing of the data."""

    def __repr__(self) -> str:
        return "the work on a part failed; the client is told how"

    __str__ = __repr__


class WorkerError(Exception):
    """The cause of an error that comes from a worker: where it was raised there."""


@dataclass(frozen=True, eq=False)
class DaskPart(TablePart):
    """The rows of partition ``place``, with the columns ``names`` as inputs.

    ``source`` is the partition as Dask would make it, or the table itself once it is where the work is done.
    Guarantee: what is read is finite float64 and has ``rows`` rows, or there is an ``InputError``.
    """

    place: int
    names: tuple[str, ...]
    source: Any = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """The table; made here, if it is not there yet."""
        try:
            made = self.source if isinstance(self.source, pd.DataFrame) else self.source.compute()
        except Exception as error:
            raise _not_made(self, error) from error
        if self.rows not in (UNKNOWN, len(made)):
            raise InputError(
                f"partition {self.place} had {self.rows} rows when they were counted and has {len(made)} now; "
                "give a frame that is the same each time it is computed, for example frame.persist()."
            )
        return made

    def read(self, names: Sequence[str]) -> Array:
        frame = self.frame()
        values = np.empty((len(frame), len(names)))
        for place, name in enumerate(names):
            where = f"column {name!r} of partition {self.place}"
            require_numbers(frame[name].dtype, where, f"frame[{name!r}]")
            values[:, place] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
            wrong = np.flatnonzero(~(np.abs(values[:, place]) < LARGEST_NUMBER))
            if wrong.size:
                raise InputError(
                    f"{where} has {wrong.size} value(s) that are NaN, infinite or too large, the first in its row "
                    f"{int(wrong[0])}; drop or fill these rows first."
                )
        return values


class OnDask(Engine):
    """Works on the parts on the workers that ``client`` reaches, a few at a time for each of them.

    Guarantee: a worker that dies changes nothing but the time it takes. All that a pass needs is known to the scheduler
    as tasks that can be done again, and the order in which sums are taken does not depend on who is ready first. No log
    of the cluster shows data: tasks are named by counting, and their arguments and errors are sealed.
    """

    def __init__(self, client: Client) -> None:
        if client.asynchronous:
            raise InputError(f"engine is {client!r}, which is asynchronous; give a Client(...) that waits for results.")
        self.client = client

    def total(self, work: Callable[[Part], Totals], parts: Sequence[Part], done: Done) -> Totals:
        with _told_of_the_cluster(self.client):
            return self._total(work, parts, done)

    def _total(self, work: Callable[[Part], Totals], parts: Sequence[Part], done: Done) -> Totals:
        tasks = _Pass(self.client, "total", work)
        # of 1, 2, 4, … parts, one for each digit 1 of their number in binary
        sums: list[Future] = []
        try:
            for number, (part, future) in enumerate(tasks.in_order(parts), start=1):
                if future.exception() is not None:
                    _result(future, part)
                done(part.rows)
                sums.append(future)
                while number % 2 == 0:
                    sums[-2:] = [tasks.submit(_sum, *sums[-2:])]
                    number //= 2
            while len(sums) > 1:
                sums[-2:] = [tasks.submit(_sum, *sums[-2:])]
            total: Totals = _result(sums[0])
            return total
        finally:
            # an error that is kept keeps these names alive too, and with them the tasks on the workers
            del sums, tasks

    def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
        with _told_of_the_cluster(self.client):
            for part, future in _Pass(self.client, "each", work).in_order(parts):
                result: Result = _result(future, part)
                done(part.rows)
                yield result


def as_engine(engine: Any, device: str | None = None) -> Engine:
    """The engine that a user means: None is here, a ``distributed.Client`` or its address is a Dask cluster.

    Here a part's own work is done on ``device``.
    """
    if engine is None:
        return Here(device)
    if isinstance(engine, Engine):
        return engine
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(engine, distributed.Client):
        return OnDask(engine)
    if not isinstance(engine, str):
        raise InputError(
            f"engine is {engine!r}, which is no place to work; leave it out to work here, or give a "
            "dask.distributed.Client or the address of a Dask scheduler, such as 'tcp://10.0.0.1:8786'."
        )
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            f"engine is {engine!r}, a Dask cluster, but Dask is not installed; install it with: "
            "pip install 'sfumato[dask]'"
        ) from None
    if not engine:
        raise InputError("engine is '', an empty address; give one such as 'tcp://10.0.0.1:8786'.")
    try:
        client = Client(engine, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"engine is {engine!r}, where no Dask scheduler answers ({one_line(error)}); start one with "
            "`dask scheduler` and give the address that it prints."
        ) from error
    there = OnDask(client)
    weakref.finalize(there, client.close)
    return there


class _Pass:
    """One work on many parts, as tasks of a cluster."""

    def __init__(self, client: Client, name: str, work: Callable[[Part], Any]) -> None:
        from distributed.comm import get_address_host

        self._client = client
        # the id of the client keeps the names of two clients of one cluster apart; it is random
        self._names = map(f"sfumato-{name}-{client.id}-{next(_passes)}-{{}}".format, itertools.count())
        self._turns = itertools.count()
        slots: Counter[str] = Counter()
        for address, threads in client.nthreads().items():
            slots[get_address_host(address)] += threads
        # a task and not scattered data, which would be lost with the workers that hold it
        self._work = self.submit(lambda sealed: sealed, Sealed((work, dict(slots))))

    def in_order(self, parts: Sequence[Part]) -> Iterator[tuple[Part, Future]]:
        """Each part with its result; work on the next few parts has begun."""
        under_way: deque[tuple[Part, Future]] = deque()
        to_do = iter(parts)
        try:
            while True:
                room = max(2 * sum(map(int, self._client.nthreads().values())), LEAST_UNDER_WAY)
                more = itertools.islice(to_do, max(room - len(under_way), 0))
                under_way.extend((part, self._start(part)) for part in more)
                if not under_way:
                    return
                yield under_way.popleft()
        finally:
            under_way.clear()

    def _start(self, part: Part) -> Future:
        if not isinstance(part, DaskPart):
            # Dask would rather work where the work has been sent to than where nobody works yet
            workers = sorted(self._client.nthreads())
            turn = [workers[next(self._turns) % len(workers)]] if workers else None
            return self.submit(_worked, self._work, Sealed(part), workers=turn, allow_other_workers=bool(turn))
        with _large_graphs():
            table = self._client.compute(part.source)
        return self.submit(_worked, self._work, Sealed(replace(part, source=None)), table)

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Future:
        with _large_graphs():
            return self._client.submit(function, *arguments, key=next(self._names), pure=False, **options)


@contextlib.contextmanager
def _told_of_the_cluster(client: Client) -> Iterator[None]:
    """What Dask raises when the cluster itself gives out, in words; errors of the work on a part are left alone.

    A cluster that goes away shows in errors of a dozen kinds, and in a client that no longer runs.
    """
    try:
        yield
    except Exception as error:
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        ours = isinstance(error, SfumatoError) or isinstance(error.__cause__, WorkerError)
        gone = client.status != "running" or isinstance(error, (CancelledError, CommClosedError))
        if ours or not (gone or isinstance(error, KilledWorker)):
            raise
        why = "went away" if gone else "lost worker after worker"
        remedy = "start it again" if gone else "give its workers more memory, or the rows in smaller parts"
        raise ResourceError(
            f"the Dask cluster {why} in the middle of the work ({type(error).__name__}: {one_line(error)[:200]}); "
            f"{remedy}, and repeat the call. Nothing was given out; a folder that was begun goes on where it was."
        ) from error


def _large_graphs() -> Any:
    """Rows in memory have to be sent: that is no reason to warn."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"})


def _worked(given: Sealed, part: Sealed, table: Any = None) -> Any:
    """The work on a part, with its share of this machine's cores.

    The number of tasks on each host is the one at the start of the pass, so that a worker that dies meanwhile does not
    change how sums are taken inside of BLAS.
    """
    from dask.system import CPU_COUNT
    from distributed import get_worker
    from distributed.comm import get_address_host

    work, slots = given.value
    worker = get_worker()
    tasks = slots.get(get_address_host(worker.address), int(worker.state.nthreads))
    try:
        with thread_share(max(1, int(CPU_COUNT) // tasks)):
            return work(part.value if table is None else replace(part.value, source=table))
    except Exception as error:
        failed = WorkError(error, traceback.format_exc())
    # raised here, where the error itself is no context that would be logged
    raise failed


def _sum(first: Totals, second: Totals) -> Totals:
    """A new sum: what it is made of may be needed again when a worker dies."""
    return {name: values + second[name] for name, values in first.items()}


def _result(future: Future, part: Part | None = None) -> Any:
    """What a task gives; an error of the work as it was raised, one of making the rows of ``part`` in words."""
    from distributed import KilledWorker

    try:
        return future.result()
    except WorkError as failed:
        error, where = failed.args
    except Exception as failed:
        if future.status == "error" and isinstance(part, DaskPart) and not isinstance(failed, KilledWorker):
            raise _not_made(part, failed) from failed
        raise
    raise error from WorkerError(f"\n{where}")


def _not_made(part: DaskPart, error: Exception) -> InputError:
    return InputError(
        f"partition {part.place} of the Dask DataFrame cannot be computed ({type(error).__name__}: "
        f"{one_line(error)[:200]}); try frame.get_partition({part.place}).compute(), and look at what it reads."
    )


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

    wanted = asked_columns(inputs, output)
    frame = frame.rename(columns={column: str(column) for column in frame.columns})
    require_columns("the Dask DataFrame", wanted, list(frame.columns))
    frame = frame if output is None else frame[wanted]
    if engine is None:
        engine = Here()
        with contextlib.suppress(ImportError, ValueError):
            from distributed import default_client

            engine = OnDask(default_client())  # where frame.compute() would work
    step = Progress() if step is None else step
    partitions = [dask.optimize(each)[0] for each in frame.to_delayed()]
    parts = [DaskPart(0, UNKNOWN, place, tuple(inputs), source) for place, source in enumerate(partitions)]
    step.stage("counting the rows")
    rows = list(engine.each(lambda part: len(cast(DaskPart, part).frame()), parts, lambda _: None))
    if sum(rows) == 0:
        raise InputError("the Dask DataFrame has no rows; give at least one.")
    starts = itertools.accumulate(rows, initial=0)
    placed = zip(parts, starts, rows, strict=False)
    parts = [replace(part, start=start, rows=count) for part, start, count in placed if count]
    return scanned(parts, inputs, output, step, engine)
