"""What every engine keeps, wherever it works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

import sfumato as sf
from sfumato.arrays import Array
from sfumato.data.on_dask import OnDask, as_engine
from sfumato.data.parts import ArrayPart, Engine, Here, Part, Totals

ROWS = 1000


def rows_in_parts(rows: int = ROWS, size: int = 90) -> list[Part]:
    """Rows of very different size, so that the order of a sum shows."""
    draw = np.random.default_rng(5)
    X = draw.standard_normal((rows, 3)) * 10.0 ** draw.uniform(-6, 6, (rows, 1))
    return ArrayPart.of(X, {"y": X @ np.array([1.0, -2.0, 0.5])}, size)


@dataclass(frozen=True, eq=False)
class Gram:
    """Work on a part, with something of its own to be sent along."""

    weights: Array

    def __call__(self, part: Part) -> Totals:
        X = part.inputs() * self.weights
        return {"gram": X.T @ X, "moment": X.T @ part.column("y"), "rows": np.array(part.rows)}


@dataclass(frozen=True)
class Spoiled:
    """Work that fails on one part."""

    start: int

    def __call__(self, part: Part) -> Totals:
        if part.start == self.start:
            raise sf.InputError(f"the rows from {part.start} on are spoiled")
        return {"rows": np.array(part.rows)}


def start_of(part: Part) -> int:
    return part.start


def untouched(part: Part) -> Totals:
    """The same array each time: an engine that adds into it would spoil the next sum."""
    return {"values": part.inputs()}


class EngineContract:
    """A new engine supplies a fixture ``engine`` and inherits these."""

    @pytest.mark.parametrize("size", [90, 125, ROWS], ids=["12 parts", "8 parts", "1 part"])
    def test_the_total_is_the_sum_over_all_parts(self, engine: Engine, size: int) -> None:
        parts, work = rows_in_parts(size=size), Gram(np.array([1.0, 2.0, 3.0]))
        found = engine.total(work, parts, lambda rows: None)
        whole = work(rows_in_parts(size=ROWS)[0])
        assert found.keys() == whole.keys()
        for name, values in whole.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-12 * np.abs(values).max())

    def test_the_total_is_the_same_every_time(self, engine: Engine) -> None:
        parts, work = rows_in_parts(), Gram(np.ones(3))
        first, second = (engine.total(work, parts, lambda rows: None) for _ in range(2))
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])

    def test_results_come_in_the_order_of_the_parts(self, engine: Engine) -> None:
        parts = rows_in_parts(size=30)
        assert list(engine.each(start_of, parts, lambda rows: None)) == [part.start for part in parts]

    def test_all_rows_are_reported_as_done(self, engine: Engine) -> None:
        parts = rows_in_parts()
        for told in (told_by_total(engine, parts), told_by_each(engine, parts)):
            assert sorted(told) == sorted(part.rows for part in parts)

    def test_an_error_in_the_work_comes_back_as_it_is(self, engine: Engine) -> None:
        parts = rows_in_parts()
        with pytest.raises(sf.InputError, match=r"^the rows from 270 on are spoiled$"):
            engine.total(Spoiled(270), parts, lambda rows: None)
        results = engine.each(Spoiled(270), parts, lambda rows: None)
        assert [int(next(results)["rows"]) for _ in range(3)] == [90, 90, 90]
        with pytest.raises(sf.InputError, match=r"^the rows from 270 on are spoiled$"):
            next(results)

    def test_work_goes_on_after_an_error_and_after_a_reader_who_leaves(self, engine: Engine) -> None:
        parts = rows_in_parts()
        with pytest.raises(sf.InputError):
            engine.total(Spoiled(0), parts, lambda rows: None)
        left = engine.each(start_of, parts, lambda rows: None)
        next(left)
        left.close()  # type: ignore[attr-defined]
        assert int(engine.total(Spoiled(-1), parts, lambda rows: None)["rows"]) == ROWS

    def test_more_rows_than_a_message_should_have_are_no_reason_to_warn(self, engine: Engine) -> None:
        part = ArrayPart(0, 200_000, np.ones((200_000, 8)))
        assert list(engine.each(start_of, [part], lambda rows: None)) == [0]

    def test_nothing_is_worked_on_where_there_is_nothing(self, engine: Engine) -> None:
        assert list(engine.each(start_of, [], lambda rows: None)) == []


def told_by_total(engine: Engine, parts: list[Part]) -> list[int]:
    told: list[int] = []
    engine.total(Gram(np.ones(3)), parts, told.append)
    return told


def told_by_each(engine: Engine, parts: list[Part]) -> list[int]:
    told: list[int] = []
    for _ in engine.each(start_of, parts, told.append):
        pass
    return told


class TestHere(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return Here()


class TestHereAheadOfAGPU(EngineContract):
    """Some parts are under way at a time; no GPU is needed to see that nothing else changes."""

    @pytest.fixture
    def engine(self, monkeypatch: pytest.MonkeyPatch) -> Engine:
        monkeypatch.setattr("os.cpu_count", lambda: 4)
        engine = Here("cuda")
        assert engine.at_once == 4
        return engine


class TestOnDask(EngineContract):
    """The workers are threads of this process; test_dask.py has separate processes."""

    @pytest.fixture(scope="class")
    def engine(self) -> Iterator[Engine]:
        distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'sfumato[dask]'")
        with (
            distributed.LocalCluster(
                processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0", protocol="inproc"
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield OnDask(client)

    def test_sums_do_not_spoil_what_they_are_made_of(self, engine: Engine) -> None:
        parts = [ArrayPart(i, 1, np.full((1, 1), float(i))) for i in range(7)]
        assert engine.total(untouched, parts, lambda rows: None)["values"].item() == 21.0
        assert [part.values.item() for part in parts] == list(range(7))

    def test_an_error_says_where_on_the_worker_it_was_raised(self, engine: Engine) -> None:
        with pytest.raises(sf.InputError) as caught:
            engine.total(Spoiled(0), rows_in_parts(), lambda rows: None)
        assert "in __call__" in str(caught.value.__cause__)

    def test_threads_are_shared_and_given_back(self, engine: Engine) -> None:
        before = torch.get_num_threads(), blas_threads()
        seen = list(engine.each(threads_of, rows_in_parts(), lambda rows: None))
        # two workers of one host share its cores
        from dask.system import CPU_COUNT

        assert seen == [max(1, CPU_COUNT // 2)] * len(seen)
        assert (torch.get_num_threads(), blas_threads()) == before


def threads_of(part: Part) -> int:
    return torch.get_num_threads()


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def test_no_engine_is_here_and_an_engine_is_itself() -> None:
    assert isinstance(as_engine(None), Here)
    here = Here()
    assert as_engine(here) is here


@pytest.mark.parametrize("wrong", [3, object(), ["tcp://10.0.0.1:8786"]])
def test_what_is_no_engine_is_refused_by_name(wrong: object) -> None:
    with pytest.raises(sf.InputError, match=r"engine is .*Client or the address"):
        as_engine(wrong)


def test_an_address_without_dask_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(sf.InputError, match=r"pip install 'sfumato\[dask\]'"):
        as_engine("tcp://10.0.0.1:8786")
    with pytest.raises(sf.InputError, match="engine is 3"):
        as_engine(3)


def test_an_asynchronous_client_is_refused() -> None:
    with pytest.raises(sf.InputError, match="asynchronous"):
        OnDask(SimpleNamespace(asynchronous=True))  # type: ignore[arg-type]
