"""On a real cluster: separate processes, some of which are killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from dask_works import AllKilled, Killed, Modelled, Secretive, end_of, gram, shrinking, start_of, weighted, with_worker
from sfumato.data import on_dask
from sfumato.data.inputs import as_inputs
from sfumato.data.on_dask import OnDask, as_engine, is_dask_frame, rows_of_dask
from sfumato.data.parts import ArrayPart, Engine, Here, Part
from sfumato.data.stored import rows_of_parquet

REASON = "Dask is not installed: pip install 'sfumato[dask]'"
distributed = pytest.importorskip("distributed", reason=REASON)
dd = pytest.importorskip("dask.dataframe", reason=REASON)

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform == "win32", reason="workers are killed by a signal that Windows lacks"),
]


def kernel_of(lengthscale: float) -> gpytorch.kernels.Kernel:
    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = lengthscale
    return kernel


class Clusters:
    """One cluster of two workers for all tests, and another one where a test before has ruined it."""

    def __init__(self) -> None:
        self.running: Any = None

    def whole(self) -> Any:
        if self.running is not None:
            try:
                # a worker that was killed by the test before is started again
                self.running.wait_for_workers(2, timeout=30)
                return self.running
            except TimeoutError:
                # now and then its nanny goes with it
                self.close()
        self.running = distributed.LocalCluster(
            processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        )
        self.running.wait_for_workers(2, timeout=120)
        return self.running

    def close(self) -> None:
        # on a busy machine a process can take longer to go than Dask waits for it
        with contextlib.suppress(asyncio.TimeoutError):
            self.running.close()


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    clusters = Clusters()
    yield clusters
    clusters.close()


@pytest.fixture
def cluster(clusters: Clusters) -> Any:
    return clusters.whole()


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=120)
        yield client


@pytest.fixture
def engine(client: Any) -> Engine:
    return OnDask(client)


def rows_in_parts(size: int = 500) -> list[Part]:
    draw = np.random.default_rng(3)
    X = draw.uniform(size=(8000, 2)) * 10.0 ** draw.uniform(-5, 5, (8000, 1))
    return ArrayPart.of(X, {"y": X[:, 0] - X[:, 1]}, size)


def ignored(rows: int) -> None:
    pass


@pytest.mark.slow
class TestAKilledWorkerChangesNothing:
    @pytest.mark.slow
    def test_in_the_middle_of_a_total(self, engine: Engine, tmp_path: Path) -> None:
        parts, told = rows_in_parts(), []
        undisturbed = engine.total(gram, parts, ignored)
        found = engine.total(Killed(tmp_path, (3000,)), parts, told.append)
        assert len(list(tmp_path.iterdir())) == 1
        np.testing.assert_array_equal(found["gram"], undisturbed["gram"])
        assert sum(told) == int(found["rows"]) == 8000

    def test_in_the_middle_of_each(self, engine: Engine, tmp_path: Path) -> None:
        parts, told = rows_in_parts(), []
        results = list(engine.each(Killed(tmp_path, (0, 4500)), parts, told.append))
        assert len(list(tmp_path.iterdir())) == 2
        assert len(results) == len(parts)
        for result, part in zip(results, parts, strict=True):
            np.testing.assert_array_equal(result["gram"], gram(part)["gram"])
        assert told == [part.rows for part in parts]

    @pytest.mark.slow
    def test_nor_do_all_of_them(self, engine: Engine, tmp_path: Path) -> None:
        parts, told = rows_in_parts(200), []
        undisturbed = engine.total(gram, parts, ignored)
        found = engine.total(AllKilled(tmp_path), parts, told.append)
        assert len(list(tmp_path.glob("killed-*"))) == 2
        np.testing.assert_array_equal(found["gram"], undisturbed["gram"])
        assert sum(told) == int(found["rows"]) == 8000

    def test_nor_does_one_with_partitions_in_memory(self, client: Any, tmp_path: Path) -> None:
        engine = OnDask(client)
        X = pd.DataFrame({"a": np.linspace(0, 1, 900), "b": np.arange(900.0), "y": np.ones(900)})
        with client.as_current():
            frame = dd.from_pandas(X, npartitions=9).persist()
            rows = rows_of_dask(frame, ["a", "b"], "y", engine=engine)
        results = engine.each(Killed(tmp_path, (500,)), rows.parts({}), ignored)
        found = np.concatenate([result["gram"][:2, 2] for result in results])
        assert len(list(tmp_path.iterdir())) == 1
        expected = X[["a", "b"]].groupby(np.arange(900) // 100).sum().to_numpy().ravel()
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def kernel() -> gpytorch.kernels.Kernel:
    # a prior on a hyper-parameter brings functions without a name along
    smooth = gpytorch.kernels.RBFKernel(ard_num_dims=2, lengthscale_prior=gpytorch.priors.GammaPrior(2.0, 1.0))
    scaled = gpytorch.kernels.ScaleKernel(smooth)
    scaled.outputscale, smooth.lengthscale = 2.0, [[0.3, 0.7]]
    return (scaled + gpytorch.kernels.MaternKernel(nu=1.5)).double()


@pytest.mark.parametrize(
    "region",
    [
        sf.Box([0.1, 0.2], [0.5, 0.9]) | sf.Ball([0.5, 0.5], 0.1),
        sf.parse_region("a <= 0.5 and b >= 0.2", ["a", "b"]),
        sf.Points([[0.5, 0.5]]) | sf.Box({"a": (0.0, 0.3)}),
    ],
    ids=["box and ball", "text", "points"],
)
def test_a_model_and_a_region_can_be_sent(engine: Engine, region: sf.Region) -> None:
    X = pd.DataFrame(np.random.default_rng(1).uniform(size=(600, 2)), columns=["a", "b"])
    inputs = as_inputs(X)
    work = Modelled(sf.Prior(kernel=kernel(), mean=1.5, noise=0.1), region.on_columns_of(inputs), inputs.values[:5])
    parts = ArrayPart.of(inputs.values, {}, 100)
    there, here = engine.total(work, parts, ignored), Here().total(work, parts, ignored)
    for name, values in here.items():
        np.testing.assert_allclose(there[name], values, rtol=1e-12)


class TestWhereTheClusterIs:
    def test_a_client_is_an_engine(self, client: Any) -> None:
        engine = as_engine(client)
        assert isinstance(engine, OnDask)
        assert engine.client is client

    def test_an_address_is_an_engine(self, cluster: Any) -> None:
        engine = as_engine(cluster.scheduler_address)
        assert isinstance(engine, OnDask)
        parts = rows_in_parts(2000)
        assert int(engine.total(gram, parts, ignored)["rows"]) == 8000
        # it does not put itself in the way of what else is done with Dask
        with pytest.raises(ValueError, match="No clients found"):
            distributed.default_client()
        client = engine.client
        del engine
        assert client.status == "closed"

    def test_an_address_where_nobody_answers_is_named(self) -> None:
        import dask

        with (
            dask.config.set({"distributed.comm.timeouts.connect": "300ms"}),
            pytest.raises(sf.InputError, match=r"engine is 'tcp://127.0.0.1:9', where no Dask scheduler answers"),
        ):
            as_engine("tcp://127.0.0.1:9")
        with pytest.raises(sf.InputError, match="empty address"):
            as_engine("")
        with pytest.raises(sf.InputError, match="no Dask scheduler answers"):
            as_engine("carrier-pigeon://roof")

    def test_two_clients_of_one_cluster_do_not_mix_up_their_work(
        self, cluster: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parts = rows_in_parts(1000)
        with (
            distributed.Client(cluster, set_as_default=False) as first,
            distributed.Client(cluster, set_as_default=False) as second,
        ):
            # two programs that both count from 1
            monkeypatch.setattr(on_dask, "_passes", count(1))
            starts = OnDask(first).each(start_of, parts, ignored)
            next(starts)
            monkeypatch.setattr(on_dask, "_passes", count(1))
            ends = OnDask(second).each(end_of, parts, ignored)
            next(ends)
            assert list(starts) == [part.start for part in parts[1:]]
            assert list(ends) == [part.start + part.rows for part in parts[1:]]


class TestAClusterThatGivesOut:
    @pytest.mark.parametrize("closes", ["cluster", "client"])
    def test_is_told_with_what_to_do(self, closes: str) -> None:
        here = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**here) as cluster, distributed.Client(cluster, set_as_default=False) as client:
            results = OnDask(client).each(gram, rows_in_parts(100), ignored)
            next(results)
            (cluster if closes == "cluster" else client).close()
            with pytest.raises(sf.ResourceError, match=r"the Dask cluster went away .*; start it again, and repeat"):
                list(results)
            with pytest.raises(sf.ResourceError, match="went away"):
                OnDask(client).total(gram, rows_in_parts(), ignored)

    def test_is_known_by_what_dask_raises_and_errors_of_the_work_are_left_alone(self, client: Any) -> None:
        killed = distributed.KilledWorker("a part", SimpleNamespace(address="tcp://x"), 3)
        gone = [distributed.client.FutureCancelledError("a part", "because"), distributed.comm.CommClosedError("gone")]
        for error, words in ((killed, "more memory"), *((one, "start it again") for one in gone)):
            with pytest.raises(sf.ResourceError, match=words), on_dask._told_of_the_cluster(client):
                raise error
        for own in (sf.InputError("x"), FileNotFoundError("of a partition"), TimeoutError("of a partition")):
            with pytest.raises(type(own)), on_dask._told_of_the_cluster(client):
                raise own


def test_nothing_of_the_work_is_in_the_logs_or_names(client: Any) -> None:
    parts = rows_in_parts(1000)
    value = f"{parts[4].inputs()[0, 0]:.6e}"[:7]
    with pytest.raises(ValueError, match="hunter2"):
        OnDask(client).total(Secretive("hunter2", fails=True), parts, ignored)
    running = OnDask(client).each(Secretive("hunter2", fails=False), parts, ignored)
    next(running)
    names = client.run_on_scheduler(lambda dask_scheduler: [str(name) for name in dask_scheduler.tasks])
    # the failed total may still be there
    assert any("each" in name for name in names)
    pattern = re.compile(rf"sfumato-(total|each)-{client.id}-\d+-\d+")
    assert [name for name in names if not pattern.fullmatch(name)] == []
    running.close()  # type: ignore[attr-defined]
    logs = str([client.get_scheduler_logs(), client.get_worker_logs(), client.get_worker_logs(nanny=True)])
    assert "the work on a part failed" in logs
    assert "hunter2" not in logs
    assert value not in logs


def table(rows: int = 40_000) -> pd.DataFrame:
    draw = np.random.default_rng(7)
    columns = {"a": draw.standard_normal(rows), "b": draw.integers(0, 9, rows), "who": ["x"] * rows}
    return pd.DataFrame({**columns, "y": draw.standard_normal(rows)})


class TestRowsOfADaskDataFrame:
    """More rows than a sample has, in partitions of different size of which some are empty."""

    @pytest.fixture(scope="class")
    def stored(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("parquet")
        whole = table()
        for place, (start, stop) in enumerate([(0, 9000), (9000, 9000), (9000, 31_000), (31_000, 40_000)]):
            whole.iloc[start:stop].to_parquet(folder / f"{place}.parquet")
        return folder

    def test_they_are_those_of_pandas(self, engine: Engine, stored: Path) -> None:
        rows, expected = (
            rows_of_dask(dd.read_parquet(stored), ["a", "b"], engine=engine),
            as_inputs(table()[["a", "b"]]),
        )
        assert len(rows) == 40_000
        assert rows.columns == ("a", "b")
        np.testing.assert_array_equal(rows.sample.values, expected.sample.values)
        np.testing.assert_array_equal(rows.sample.values.min(axis=0), expected.values.min(axis=0))
        np.testing.assert_array_equal(rows.sample.values.max(axis=0), expected.values.max(axis=0))
        np.testing.assert_array_equal(rows.values, expected.values)
        np.testing.assert_array_equal(np.asarray(rows.column("y")), table()["y"])
        assert [part.rows for part in rows.parts({})] == [9000, 22_000, 9000]

    def test_they_come_with_columns_of_the_frame_and_of_memory(self, engine: Engine, stored: Path) -> None:
        rows = rows_of_dask(dd.read_parquet(stored), ["a", "b"], "y", engine=engine)
        parts = rows.parts({"y": rows.column("y"), "more": np.arange(40_000.0)})
        found = engine.total(weighted, parts, ignored)
        whole = table()
        expected = np.arange(40_000.0) @ (whole[["a", "b"]].to_numpy() * whole[["y"]].to_numpy())
        np.testing.assert_allclose(found["sum"], expected, rtol=1e-12)

    def test_without_a_cluster_they_are_read_here(self, stored: Path) -> None:
        rows = rows_of_dask(dd.read_parquet(stored), ["a"])
        np.testing.assert_array_equal(rows.values[:, 0], table()["a"])

    def test_partitions_are_made_on_the_workers_only(self, client: Any, stored: Path) -> None:
        frame = dd.read_parquet(stored)[["a"]].map_partitions(with_worker)
        rows = rows_of_dask(frame, ["a", "worker"], engine=OnDask(client))
        assert os.getpid() not in rows.sample.values[:, 1]
        # the client that Dask has by default is the one that frame.compute() would ask
        with client.as_current():
            rows = rows_of_dask(frame, ["a", "worker"])
        assert os.getpid() not in rows.sample.values[:, 1]

    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
    def test_what_is_not_finite_is_refused_with_its_place(self, engine: Engine, value: float) -> None:
        wrong = table(400).drop(columns="who")
        wrong.loc[250, "a"] = value
        with pytest.raises(sf.InputError, match=r"column 'a' of partition 2 has 1 value.*the first in its row 50;"):
            rows_of_dask(dd.from_pandas(wrong, npartitions=4), ["b", "a"], engine=engine)
        with pytest.raises(sf.InputError, match="column 'a' of partition 2"):
            rows_of_dask(dd.from_pandas(wrong, npartitions=4), ["b"], "a", engine=engine)

    def test_words_are_refused_with_their_place(self, engine: Engine) -> None:
        with pytest.raises(sf.InputError, match="column 'who' of partition 0 is not numeric"):
            rows_of_dask(dd.from_pandas(table(40), npartitions=2), ["who"], engine=engine)

    def test_columns_that_are_not_there_are_named(self) -> None:
        frame = dd.from_pandas(table(40), npartitions=2)
        with pytest.raises(sf.InputError, match=r"no column 'whom'; it has a, b, who, y\. Did you mean 'who'"):
            rows_of_dask(frame, ["a", "whom"])
        with pytest.raises(sf.InputError, match="'a' is asked for more than once"):
            rows_of_dask(frame, ["a", "b"], "a")
        with pytest.raises(sf.InputError, match="in a list"):
            rows_of_dask(frame, "a")
        with pytest.raises(sf.InputError, match="has no rows"):
            rows_of_dask(frame[frame.a > 100], ["a"])

    def test_columns_need_not_be_words(self) -> None:
        numbers = pd.DataFrame(np.arange(20.0).reshape(10, 2))
        rows = rows_of_dask(dd.from_pandas(numbers, npartitions=2), ["0", "1"])
        assert rows.columns == ("0", "1")
        np.testing.assert_array_equal(rows.values, numbers.to_numpy())

    def test_a_frame_that_changes_is_refused(self, engine: Engine, tmp_path: Path) -> None:
        steady = dd.from_pandas(table(40)[["a"]], npartitions=1)
        frame = steady.map_partitions(shrinking, tmp_path / "seen", meta={"a": float})
        with pytest.raises(sf.InputError, match="partition 0 had 40 rows when they were counted and has 39 now"):
            rows_of_dask(frame, ["a"], engine=engine)

    @pytest.mark.parametrize("there", [True, False], ids=["on the cluster", "here"])
    def test_partitions_that_cannot_be_computed_are_named(self, client: Any, tmp_path: Path, there: bool) -> None:
        for place in range(3):
            table(40).to_parquet(tmp_path / f"{place}.parquet")
        rows = rows_of_dask(dd.read_parquet(tmp_path), ["a"], "y", engine=OnDask(client) if there else Here())
        (tmp_path / "1.parquet").write_bytes(b"")
        engine = OnDask(client) if there else Here()
        with pytest.raises(sf.InputError, match=r"partition 1 of the Dask DataFrame cannot be computed \(Arrow"):
            list(engine.each(weighted, rows.parts({"more": np.ones(120)}), ignored))

    def test_only_dask_frames_are_taken_for_such(self) -> None:
        assert is_dask_frame(dd.from_pandas(table(4), npartitions=1))
        assert not is_dask_frame(table(4))
        assert not is_dask_frame(np.ones(3))


def test_a_design_on_the_cluster_is_the_one_made_here(client: Any, tmp_path: Path) -> None:
    """Over Parquet in many parts: the same noise at the same key, and a release in a folder that holds."""
    rng = np.random.default_rng(0)
    X = rng.random((6000, 2))
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.sin(6 * X[:, 0])})
    for place in range(3):
        table[place::3].to_parquet(tmp_path / f"{place}.parquet", index=False)
    prior, region = sf.Prior(kernel=kernel_of(0.3), noise=0.01), sf.Points(rng.random((5, 2)))
    released, drawn = [], []
    for engine in (None, client):
        rows = rows_of_parquet(tmp_path, ["a", "b"], "y", rows=700)
        mechanism = sf.protect(prior, rows, region, alpha=0.3, engine=engine)
        assert mechanism.certificate.holds
        assert mechanism.certificate.compression < 1e-6
        drawn.append(mechanism.noise.draw(np.random.default_rng(1).standard_normal(mechanism.noise.normals_needed)))
        released.append(mechanism.release(rows.column("y"), unsafe_seed=1).outputs)
    assert np.max(np.abs(drawn[0] - drawn[1])) <= 1e-10 * np.max(np.abs(drawn[0]))
    # what differs in the last bits may be on another side of a border between two steps (docs/roundoff.md)
    assert np.mean(released[0] != released[1]) < 1e-3
    folder = mechanism.release_to(tmp_path / "release", "y", progress=False)
    assert folder.certify(engine=client).holds
    assert len(folder.to_frame()) == 6000
    with pytest.raises(sf.InputError, match="has released values already"):
        mechanism.release_to(tmp_path / "another", "y")


def test_a_dask_frame_is_protected_where_it_is(client: Any) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.random((4000, 2)), columns=["a", "b"])
    frame = dd.from_pandas(table, npartitions=5)
    prior, region = sf.Prior(kernel=kernel_of(0.4), noise=0.01), sf.parse_region("a <= 0.3 and b <= 0.3", ["a", "b"])
    there = sf.protect(prior, frame, region, alpha=0.3, engine=client)
    here = sf.protect(prior, table, region, alpha=0.3, method="compressed")
    assert there.certificate.holds
    # beside records the function's noise is made for exact data, where the order of the sums shows
    assert there.noise.trace == pytest.approx(here.noise.trace, rel=1e-6)
