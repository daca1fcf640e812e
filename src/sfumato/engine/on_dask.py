"""The engine of a Dask cluster: the workers do the work and add up the sums, and only what is asked for comes back.

Guarantee: a worker that dies changes nothing but the time it takes. All that a pass needs is known to the scheduler as
tasks that can be done again, and the order in which sums are taken does not depend on who is ready first. No log of the
cluster shows data: tasks are named by counting, and their arguments and errors are sealed.
"""

from __future__ import annotations

import itertools
import sys
import traceback
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..dask_part import to_be_made, with_source
from ..errors import InputError
from ..parts import Part
from .engine import Done, Engine, Result, Totals
from .here import Here
from .sealed import Sealed, WorkerError, WorkError
from .thread_share import thread_share

if TYPE_CHECKING:
    from distributed import Client, Future

#: At least so many parts are under way, however few workers there are yet.
LEAST_UNDER_WAY = 8

_passes = itertools.count(1)


class OnDask(Engine):
    """Works on the parts on the workers that ``client`` reaches, a few at a time for each of them."""

    def __init__(self, client: Client) -> None:
        if client.asynchronous:
            raise InputError(f"engine is {client!r}, which is asynchronous; give a Client(...) that waits for results.")
        self.client = client

    def total(self, work: Callable[[Part], Totals], parts: Sequence[Part], done: Done) -> Totals:
        tasks = _Pass(self.client, "total", work)
        under_way: dict[Future, int] = {}
        # how many parts have gone into a sum, and the sum: sizes fall, as the digits of a binary number
        sums: list[tuple[int, Future]] = []

        def leave(room: int) -> None:
            while len(under_way) > room:
                for finished in self._finished(list(under_way)):
                    if finished.status != "finished":
                        _result(finished)
                    done(under_way.pop(finished))

        def add_last_two() -> None:
            (size, first), (more, second) = sums[-2:]
            sums[-2:] = [(size + more, tasks.submit(_sum, first, second))]

        try:
            for part in parts:
                leave(tasks.room() - 1)
                sums.append((1, tasks.start(part)))
                under_way[sums[-1][1]] = part.rows
                while len(sums) > 1 and sums[-1][0] == sums[-2][0]:
                    add_last_two()
            leave(0)
            while len(sums) > 1:
                add_last_two()
            assert sums
            total: Totals = _result(sums[0][1])
            return total
        finally:
            # whoever keeps an error keeps these names too, and would keep the workers at work
            sums.clear()
            under_way.clear()
            tasks.close()

    def _finished(self, futures: list[Future]) -> set[Future]:
        """Those that are done, as soon as one of them is."""
        from distributed import wait

        # it would ask the client that was made last
        with self.client.as_current():
            return set(wait(futures, return_when="FIRST_COMPLETED").done)

    def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
        tasks = _Pass(self.client, "each", work)
        under_way: deque[tuple[Part, Future]] = deque()
        to_do = iter(parts)
        try:
            while True:
                free = max(tasks.room() - len(under_way), 0)
                under_way.extend((part, tasks.start(part)) for part in itertools.islice(to_do, free))
                if not under_way:
                    return
                result: Result = _result(under_way[0][1])
                done(under_way.popleft()[0].rows)
                yield result
        finally:
            under_way.clear()
            tasks.close()


def as_engine(engine: Any) -> Engine:
    """The engine that a user means: None is here, a ``distributed.Client`` or its address is a Dask cluster."""
    if engine is None:
        return Here()
    if isinstance(engine, Engine):
        return engine
    if isinstance(engine, str):
        return _at_address(engine)
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(engine, distributed.Client):
        return OnDask(engine)
    raise InputError(
        f"engine is {engine!r}, which is no place to work; leave it out to work here, or give a "
        "dask.distributed.Client or the address of a Dask scheduler, such as 'tcp://10.0.0.1:8786'."
    )


def _at_address(address: str) -> OnDask:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            f"engine is {address!r}, a Dask cluster, but Dask is not installed; install it with: "
            "pip install 'sfumato[dask]'"
        ) from None
    if not address:
        raise InputError("engine is '', an empty address; give one such as 'tcp://10.0.0.1:8786'.")
    try:
        client = Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"engine is {address!r}, where no Dask scheduler answers ({' '.join(str(error).split())}); start one with "
            "`dask scheduler` and give the address that it prints."
        ) from error
    engine = OnDask(client)
    weakref.finalize(engine, client.close)
    return engine


class _Pass:
    """One work on many parts, as tasks of a cluster."""

    def __init__(self, client: Client, name: str, work: Callable[[Part], Any]) -> None:
        self._client = client
        # the id of the client keeps the names of two clients of one cluster apart; it is random
        self._names = map(f"sfumato-{name}-{client.id}-{next(_passes)}-{{}}".format, itertools.count())
        self._turns = itertools.count()
        # a task and not scattered data, which would be lost with the workers that hold it
        self._work: Future | None = self.submit(_given, Sealed((work, _slots(client))))

    def room(self) -> int:
        """How many parts should be under way."""
        return max(2 * sum(map(int, self._client.nthreads().values())), LEAST_UNDER_WAY)

    def start(self, part: Part) -> Future:
        source = to_be_made(part)
        if source is None:
            # Dask would rather work where the work has been sent to than where nobody works yet
            workers = sorted(self._client.nthreads())
            turn = [workers[next(self._turns) % len(workers)]] if workers else None
            return self.submit(_worked, self._work, Sealed(part), workers=turn, allow_other_workers=bool(turn))
        with _large_graphs():
            table = self._client.compute(source)
        return self.submit(_worked, self._work, Sealed(with_source(part, None)), table)

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Future:
        with _large_graphs():
            return self._client.submit(function, *arguments, key=next(self._names), pure=False, **options)

    def close(self) -> None:
        self._work = None


def _large_graphs() -> Any:
    """Rows in memory have to be sent: that is no reason to warn."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"})


def _slots(client: Client) -> dict[str, int]:
    """How many tasks run at once on each host."""
    from distributed.comm import get_address_host

    slots: Counter[str] = Counter()
    for address, threads in client.nthreads().items():
        slots[get_address_host(address)] += threads
    return dict(slots)


def _given(work: Sealed[Any]) -> Sealed[Any]:
    return work


def _worked(given: Sealed[tuple[Callable[[Part], Any], dict[str, int]]], part: Sealed[Part], table: Any = None) -> Any:
    work, slots = given.value
    try:
        with thread_share(_threads(slots)):
            return work(part.value if table is None else with_source(part.value, table))
    except Exception as error:
        failed = WorkError(error, traceback.format_exc())
    # raised here, where the error itself is no context that would be logged
    raise failed


def _threads(slots: dict[str, int]) -> int:
    """The share of this machine's cores for a task; the number of tasks is the one at the start of the pass.

    So that a worker that dies meanwhile does not change how sums are taken inside of BLAS.
    """
    from dask.system import CPU_COUNT
    from distributed import get_worker
    from distributed.comm import get_address_host

    worker = get_worker()
    return max(1, int(CPU_COUNT) // slots.get(get_address_host(worker.address), int(worker.state.nthreads)))


def _sum(first: Totals, second: Totals) -> Totals:
    """A new sum: what it is made of may be needed again when a worker dies."""
    return {name: values + second[name] for name, values in first.items()}


def _result(future: Future) -> Any:
    try:
        return future.result()
    except WorkError as failed:
        error, where = failed.error, failed.traceback
    raise error from WorkerError(where)
