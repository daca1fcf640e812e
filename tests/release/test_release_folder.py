"""Releases of any number of rows in a folder: written part after part, taken up after a kill, read with suspicion."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from command_line import as_words, refused, run
from dask_works import KilledIn
from sfumato.cli.protect import rows_to_fit
from sfumato.data.parts import Done, Engine, Here, Part, Result
from sfumato.data.stored import StoredInputs, fingerprint, parquet_files, rows_of_parquet
from sfumato.noise.noise import FunctionalNoise
from sfumato.progress import Progress
from sfumato.promise.design import Design
from sfumato.promise.findings import Finding
from sfumato.proof.certificate import Certificate
from sfumato.release.file import MANIFEST, ROW_FOLDER, read_release
from sfumato.release.folder import DESIGN, KEY, RUN, STAMP, TASK, WRITTEN, Blur, FolderWriter, locked

COUNT, PART = 1000, 100
REGION = sf.Box([0.0, 0.0], [0.4, 0.4])


def values() -> np.ndarray:
    X = np.random.default_rng(0).random((COUNT, 2))
    noise = np.random.default_rng(1).normal(size=COUNT)
    return np.column_stack([X, np.sin(4 * X[:, 0]) + np.cos(3 * X[:, 1]) + 0.1 * noise])


def write_table(path: Path, table: np.ndarray) -> None:
    pq.write_table(pa.table({"a": table[:, 0], "b": table[:, 1], "y": table[:, 2]}), path)


def read_rows(path: Path) -> StoredInputs:
    return rows_of_parquet([path], ["a", "b"], "y", Progress(), rows=PART)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Design, Certificate]:
    path = tmp_path_factory.mktemp("data") / "t.parquet"
    write_table(path, values())
    kernel = gpytorch.kernels.RBFKernel()
    kernel.lengthscale = 0.5
    prior = sf.Prior(kernel, noise=0.01)
    mechanism = sf.protect(prior, read_rows(path), REGION, 0.3, protects="both", method="compressed", progress=False)
    assert mechanism.certificate.holds
    return mechanism.design, mechanism.certificate


class Stopping(Here):
    """Stops after some row files, as if someone had pressed Ctrl-C."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
        for number, result in enumerate(super().each(work, parts, done)):
            yield result
            if isinstance(work, Blur) and number + 1 == self.after:
                raise KeyboardInterrupt


@dataclass
class Job:
    """A release that can be written again and again."""

    data: Path
    made: tuple[Design, Certificate]
    out: Path
    said: list[str] = field(default_factory=list)
    designed: int = 0

    def write(
        self, out: Path | None = None, stop_after: int | None = None, engine: Engine | None = None, **options: Any
    ) -> None:
        self.said, self.designed = [], 0
        rows = read_rows(self.data)
        engine = engine or (Here() if stop_after is None else Stopping(stop_after))
        writer = FolderWriter(out or self.out, rows, rows.column("y"), engine, self.said.append, **options)

        def design() -> tuple[Design, Certificate]:
            self.designed += 1
            return self.made

        def task() -> dict[str, Any]:
            return {"data": fingerprint(parquet_files([self.data]))}

        asked = task()
        writer.write(design, asked, lambda: task() == asked)

    def interrupt(self, after: int = 4) -> None:
        with pytest.raises(KeyboardInterrupt):
            self.write(stop_after=after)

    def table(self, out: Path | None = None) -> np.ndarray:
        """All rows that were published, as any reader of Parquet sees them."""
        files = sorted(((out or self.out) / ROW_FOLDER).iterdir())
        return pd.concat([pd.read_parquet(file) for file in files]).to_numpy()

    def noise(self, out: Path | None = None) -> np.ndarray:
        return np.asarray(self.table(out)[:, 2] - pd.read_parquet(self.data)["y"].to_numpy())


@pytest.fixture
def job(tmp_path: Path, made: tuple[Design, Certificate]) -> Job:
    write_table(tmp_path / "t.parquet", values())
    return Job(tmp_path / "t.parquet", made, tmp_path / "out")


def same_noise(first: np.ndarray, second: np.ndarray) -> bool:
    return bool(np.allclose(first, second, atol=1e-9))


class TestWriting:
    def test_inputs_are_published_as_they_are_and_outputs_with_noise(self, job: Job) -> None:
        job.write()
        assert sorted(os.listdir(job.out)) == [MANIFEST, ROW_FOLDER]
        assert len(os.listdir(job.out / ROW_FOLDER)) == COUNT // PART
        np.testing.assert_array_equal(job.table()[:, :2], values()[:, :2])
        assert np.std(job.noise()) > 0.1
        assert job.said == []

    def test_the_noise_is_one_function_over_all_parts_and_one_draw_for_each_record(self, job: Job) -> None:
        """What the first half of the rows outside says about the function foretells the second, and all but the
        records' own noise inside."""
        job.write()
        noise, X = job.made[0].noise, values()[:, :2]
        assert isinstance(noise, FunctionalNoise)
        factor, drawn, inside = noise.factor_at(X), job.noise(), np.all(X <= 0.4, axis=1)
        outside = np.flatnonzero(~inside)
        first, second = np.array_split(outside, 2)
        sources, *_ = np.linalg.lstsq(factor[first], drawn[first], rcond=1e-9)
        np.testing.assert_allclose(factor[second] @ sources, drawn[second], atol=1e-3 * np.std(drawn))
        own = (drawn - factor @ sources)[inside]
        assert np.std(own) == pytest.approx(np.sqrt(1.25 / 0.3 * 0.01), rel=0.35)
        assert abs(np.corrcoef(own[:-1], own[1:])[0, 1]) < 0.5
        assert len(np.unique(np.round(own, 9))) == len(own)

    def test_outputs_are_rounded_to_the_resolution(self, job: Job) -> None:
        job.write(resolution=0.25)
        np.testing.assert_array_equal(job.table()[:, 2] % 0.25, 0.0)
        with pytest.raises(sf.InputError, match="resolution"):
            job.write(resolution=1e-30)

    def test_every_run_has_its_own_noise(self, job: Job) -> None:
        job.write()
        first = job.noise()
        job.write()
        assert not same_noise(first, job.noise())

    def test_noise_is_a_function_of_key_and_values(self, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        real = secrets.token_bytes
        monkeypatch.setattr(secrets, "token_bytes", lambda size: bytes(size) if size == 32 else real(size))
        job.write()
        first = job.noise()
        job.write()
        assert same_noise(first, job.noise())
        table = values()
        table[777, 2] += 1e-9
        write_table(job.data, table)
        job.write()
        assert not same_noise(first, job.noise())
        assert abs(np.corrcoef(first, job.noise())[0, 1]) < 0.95
        table[777, 2] -= 1e-9
        table[0, 2] = 0.0
        write_table(job.data, table)
        job.write()
        zero = job.noise()
        table[0, 2] = -0.0
        write_table(job.data, table)
        job.write()
        assert same_noise(zero, job.noise())

    def test_nothing_is_written_under_a_failed_certificate(self, job: Job) -> None:
        design, certificate = job.made
        job.made = design, replace(certificate, holds=False)
        with pytest.raises(sf.GuaranteeError, match="nothing was released"):
            job.write()
        assert not job.out.exists()

    def test_noise_that_is_not_a_function_is_refused(self, job: Job) -> None:
        design, certificate = job.made
        job.made = replace(design, noise=sf.noise.no_noise(COUNT)), certificate
        with pytest.raises(sf.InputError, match="compressed"):
            job.write()
        assert not job.out.exists()

    def test_a_design_that_fails_leaves_no_key(self, job: Job) -> None:
        rows = read_rows(job.data)
        writer = FolderWriter(job.out, rows, rows.column("y"), Here(), job.said.append)

        def design() -> tuple[Design, Certificate]:
            assert (job.out / RUN / KEY).is_file()
            raise sf.InputError("region is wrong")

        with pytest.raises(sf.InputError, match="region is wrong"):
            writer.write(design, {})
        assert not job.out.exists()

    def test_all_rows_are_never_in_memory(self, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: StoredInputs) -> None:
            raise AssertionError("all rows were asked for")

        monkeypatch.setattr(StoredInputs, "values", property(refuse))
        job.write()
        read_release(job.out / MANIFEST)

    def test_data_that_change_meanwhile_are_not_released(self, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        real = FolderWriter._write_rows

        def meddling(self: FolderWriter, *arguments: Any) -> Any:
            written = real(self, *arguments)
            os.utime(job.data)
            return written

        monkeypatch.setattr(FolderWriter, "_write_rows", meddling)
        with pytest.raises(sf.InputError, match="have changed"):
            job.write()
        assert not job.out.exists()

    def test_values_that_change_between_two_readings_are_not_released(self, job: Job) -> None:
        """Not even where their file looks the same."""

        class Meddling(Here):
            def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
                for result in super().each(work, parts, done):
                    if isinstance(work, Blur):
                        about = job.data.stat()
                        write_table(job.data, values() + np.array([0.0, 0.0, 1e-9]))
                        os.utime(job.data, ns=(about.st_atime_ns, about.st_mtime_ns))
                    yield result

        with pytest.raises(sf.InputError, match="have changed"):
            job.write(engine=Meddling())
        assert not job.out.exists()

    def test_values_that_noise_cannot_hide_are_not_released(self, job: Job) -> None:
        table = values()
        table[777, 2] = 1e17
        write_table(job.data, table)
        with pytest.raises(sf.InputError, match=r"1e\+17 in row 777 .* standard deviations .* Nothing was released"):
            job.write()
        assert not job.out.exists()
        table[777, 2] = 1e3
        write_table(job.data, table)
        job.write()
        assert len(job.said) == 1
        assert "row 777 (counted from 0) is 995 standard deviations" in job.said[0]

    def test_a_folder_that_is_not_ours_is_left_alone(self, job: Job) -> None:
        job.out.mkdir()
        (job.out / "thesis.tex").write_text("mine")
        with pytest.raises(sf.InputError, match="not a release of sfumato"):
            job.write()
        assert os.listdir(job.out) == ["thesis.tex"]

    def test_one_run_at_a_time(self, job: Job) -> None:
        job.out.mkdir()
        with locked(job.out), pytest.raises(sf.InputError, match="another run"):
            job.write()


class TestTakingUp:
    def test_it_goes_on_where_it_was(self, job: Job) -> None:
        job.interrupt(after=4)
        kept = {file.name: file.stat().st_mtime_ns for file in (job.out / RUN / ROW_FOLDER).iterdir()}
        assert len(kept) == 4
        job.write()
        assert job.designed == 0
        assert job.said == ["continuing an interrupted run: 4 of 10 parts are written already."]
        for name, changed in kept.items():
            assert (job.out / ROW_FOLDER / name).stat().st_mtime_ns == changed

    def test_it_gives_what_an_uninterrupted_run_with_the_same_key_gives(self, job: Job, tmp_path: Path) -> None:
        job.interrupt()
        for name, gone in (("all", [STAMP, WRITTEN, ROW_FOLDER]), ("key", [STAMP, WRITTEN, ROW_FOLDER, DESIGN])):
            shutil.copytree(job.out, tmp_path / name)
            for part in gone:
                path = tmp_path / name / RUN / part
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        job.write()
        taken_up = job.table()
        job.write(tmp_path / "all")
        np.testing.assert_array_equal(job.table(tmp_path / "all"), taken_up)
        assert (job.designed, job.said) == (0, [])
        # the same key and the same design
        job.write(tmp_path / "key")
        np.testing.assert_array_equal(job.table(tmp_path / "key"), taken_up)
        assert (job.designed, job.said) == (1, [])
        for name in os.listdir(job.out / ROW_FOLDER):
            assert (job.out / ROW_FOLDER / name).read_bytes() == (tmp_path / "all" / ROW_FOLDER / name).read_bytes()

    @pytest.mark.slow
    @pytest.mark.processes
    def test_the_workers_of_a_cluster_write_the_same_also_when_they_are_killed(self, job: Job, tmp_path: Path) -> None:
        distributed = pytest.importorskip("distributed")
        from sfumato.data.on_dask import OnDask

        class Killing(OnDask):
            """Workers are killed before, and after, they have written a part."""

            def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
                killed = KilledIn(work, tmp_path / "killed", (500, 800)) if isinstance(work, Blur) else work
                return super().each(killed, parts, done)

        job.interrupt()
        shutil.copytree(job.out, tmp_path / "dask")
        (tmp_path / "killed").mkdir()
        job.write()
        asked = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
        with (
            distributed.LocalCluster(processes=True, **asked) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            job.write(tmp_path / "dask", engine=Killing(client))
        assert job.designed == 0
        assert sorted(os.listdir(tmp_path / "killed")) == ["500", "800"]
        # bit for bit: what differs in the last bits of the noise is rounded off (docs/roundoff.md)
        np.testing.assert_array_equal(job.table(tmp_path / "dask"), job.table())
        assert sorted(os.listdir(tmp_path / "dask")) == [MANIFEST, ROW_FOLDER]
        assert len(os.listdir(tmp_path / "dask" / ROW_FOLDER)) == COUNT // PART

    @pytest.mark.parametrize("lost", [KEY, TASK])
    def test_without_its_key_it_starts_over(self, job: Job, lost: str) -> None:
        job.interrupt()
        before = pq.read_table(job.out / RUN / ROW_FOLDER / "part-00000.parquet").column("y").to_numpy()
        (job.out / RUN / lost).unlink()
        job.write()
        assert len(job.said) == 1
        assert "cannot be continued" in job.said[0]
        assert job.designed == 1
        assert not same_noise(job.table()[:PART, 2], before)

    def test_a_key_that_others_can_read_stops_it(self, job: Job) -> None:
        job.interrupt()
        (job.out / RUN / KEY).chmod(0o644)
        with pytest.raises(sf.InputError, match="only you can read"):
            job.write()

    def test_other_data_start_over(self, job: Job) -> None:
        job.interrupt()
        os.utime(job.data, ns=(1, 1))
        job.write()
        assert len(job.said) == 1
        assert job.designed == 1

    def test_other_values_start_over_even_where_the_file_looks_the_same(self, job: Job) -> None:
        job.interrupt()
        before = pq.read_table(job.out / RUN / ROW_FOLDER / "part-00000.parquet").column("y").to_numpy()
        about, table = job.data.stat(), values()
        table[999, 2] += 1e-9
        write_table(job.data, table)
        os.utime(job.data, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert job.data.stat().st_size == about.st_size
        job.write()
        assert len(job.said) == 1
        assert "values are not the same" in job.said[0]
        assert not same_noise(job.table()[:PART, 2], before)

    def test_another_design_would_get_other_noise(self, job: Job) -> None:
        job.interrupt()
        design = job.out / RUN / DESIGN
        before = pq.read_table(job.out / RUN / ROW_FOLDER / "part-00000.parquet").column("y").to_numpy()
        design.unlink()
        made, certificate = job.made
        job.made = made, certificate.with_findings(Finding("another", "note", "another"))
        job.write()
        assert "cannot be continued" in job.said[0]
        assert not same_noise(job.table()[:PART, 2], before)

    def test_damaged_and_unfinished_files_are_written_again(self, job: Job) -> None:
        job.interrupt(after=6)
        rows = job.out / RUN / ROW_FOLDER
        good = (rows / "part-00001.parquet").read_bytes()
        (rows / "part-00001.parquet").write_bytes(good[:-10])
        (rows / "part-00002.parquet").unlink()
        (rows / ".part-00007.parquet.0123.tmp").write_bytes(b"half a file")
        job.write()
        assert job.said == ["continuing an interrupted run: 4 of 10 parts are written already."]
        assert (job.out / ROW_FOLDER / "part-00001.parquet").read_bytes() == good
        assert len(os.listdir(job.out / ROW_FOLDER)) == 10

    def test_a_complete_run_is_only_moved_into_place(self, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        class Killed(BaseException):
            pass

        def killed(folder: Path) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr("sfumato.release.folder.publish", killed)
            with pytest.raises(Killed):
                job.write()
        assert not (job.out / MANIFEST).exists()
        (job.out / RUN / KEY).unlink()
        job.write()
        assert (job.designed, job.said) == (0, [])
        assert sorted(os.listdir(job.out)) == [MANIFEST, ROW_FOLDER]

    def test_the_old_release_stays_until_the_new_one_is_complete(self, job: Job) -> None:
        job.write()
        old = job.table()
        os.utime(job.data, ns=(1, 1))
        job.interrupt(after=9)
        np.testing.assert_array_equal(job.table(), old)
        read_release(job.out / MANIFEST)
        job.write()
        assert not same_noise(job.table(), old)
        assert sorted(os.listdir(job.out)) == [MANIFEST, ROW_FOLDER]


class TestReading:
    @pytest.fixture
    def out(self, job: Job) -> Path:
        job.write()
        return job.out

    def test_a_reader_gets_rows_noise_and_certificate(self, job: Job, out: Path) -> None:
        release = sf.load(out)
        np.testing.assert_array_equal(release.inputs, values()[:, :2])
        np.testing.assert_array_equal(np.asarray(release.outputs), job.table()[:, 2])
        assert release.columns == ("a", "b")
        assert (len(release.design.inputs), release.unsafe) == (COUNT, False)
        noise, wanted = release.noise, job.made[0].noise
        assert isinstance(noise, FunctionalNoise)
        assert isinstance(wanted, FunctionalNoise)
        np.testing.assert_array_equal(noise.mixing, wanted.mixing)
        assert release.certificate.holds
        assert "1000 rows" in repr(release)
        np.testing.assert_array_equal(release.to_frame().to_numpy(), job.table())

    def test_the_manifest_can_be_named_instead(self, out: Path) -> None:
        assert len(sf.load(out / MANIFEST).design.inputs) == COUNT

    def test_it_certifies_and_predicts_as_if_it_were_one_file(self, out: Path, tmp_path: Path) -> None:
        release = sf.load(out)
        release.save(tmp_path / "one.sfumato")
        one = sf.load(tmp_path / "one.sfumato")
        new = np.random.default_rng(5).random((20, 2))
        np.testing.assert_allclose(release.predict(new).mean, one.predict(new).mean, atol=1e-6)
        np.testing.assert_allclose(release.predict(new).std, one.predict(new).std, rtol=1e-6)
        again = release.certify()
        assert again.holds
        assert again.floor_ratio == pytest.approx(one.certify().floor_ratio, abs=1e-9)

    def test_readers_do_not_need_all_rows_in_memory(self, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: StoredInputs) -> None:
            raise AssertionError("all rows were asked for")

        monkeypatch.setattr(StoredInputs, "values", property(refuse))
        release = sf.load(out)
        assert release.certify().holds
        release.predict([[0.5, 0.5]])
        str(release)

    def test_damaged_rows_are_refused(self, out: Path) -> None:
        release = sf.load(out)
        path = out / ROW_FOLDER / "part-00003.parquet"
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + b"?" + whole[101:])
        with pytest.raises(sf.FormatError, match=r"part-00003\.parquet does not match its digest"):
            sf.load(out)
        with pytest.raises(sf.FormatError, match="digest"):
            np.asarray(release.outputs)
        path.unlink()
        with pytest.raises(sf.FormatError, match="missing"):
            sf.load(out)

    @pytest.mark.parametrize(
        "listed",
        [
            [],
            None,
            "part-00000.parquet",
            [["part-00000.parquet", 1000]],
            [["../../secret.parquet", 1000, "0" * 64]],
            [["part-00000.parquet", -1000, "0" * 64]],
            [["part-00000.parquet", 10**12, "0" * 64]],
            [["part-00000.parquet", True, "0" * 64]],
            [["part-00000.parquet", 1000, None]],
        ],
    )
    def test_odd_lists_of_row_files_are_refused(self, out: Path, listed: Any) -> None:
        from sfumato.release.container import container, read_container

        manifest, tensors = read_container(out / MANIFEST, lambda version, manifest, shapes: manifest)
        manifest["row_files"] = listed
        (out / MANIFEST).write_bytes(container(manifest, tensors))
        with pytest.raises(sf.FormatError):
            sf.load(out)

    def test_a_folder_without_a_release_is_refused(self, job: Job, tmp_path: Path) -> None:
        with pytest.raises(sf.InputError):
            sf.load(tmp_path)
        job.interrupt()
        with pytest.raises(sf.InputError):
            sf.load(job.out)


def test_rows_to_fit_are_spread_evenly_and_outside_if_asked(job: Job) -> None:
    rows = read_rows(job.data)
    few, left_out = rows_to_fit(rows, REGION, 50, outside=False)
    assert not left_out
    assert (len(few), few[0], few[-1]) == (50, 0, COUNT - 1)
    assert np.ptp(np.diff(few)) <= 1
    # rows inside are there too: the fit leaves them out, and counts them
    few, left_out = rows_to_fit(rows, REGION, 50, outside=True)
    assert left_out
    inside = REGION.bind(rows).contains(rows.select(few).values)
    assert ((~inside).sum(), inside.sum()) == (50, REGION.bind(rows).contains(values()[:, :2]).sum())
    assert len(rows_to_fit(rows, REGION, 10**6, outside=False)[0]) == COUNT
    # no rows are outside: all of them count
    assert not rows_to_fit(rows, sf.Box([0.0, 0.0], [1.0, 1.0]), 50, outside=True)[1]


class TestCommand:
    #: So many that who watches them being written can end it in the middle.
    MANY = 100

    def table(self, folder: Path, files: int) -> Path:
        """A folder of small files: each is a part of its own."""
        folder.mkdir()
        table = np.vstack([values(), values()[::-1] + 0.01])
        for number, rows in enumerate(np.array_split(table, files)):
            write_table(folder / f"{number:04d}.parquet", rows)
        return folder

    @pytest.fixture
    def data(self, tmp_path: Path) -> Path:
        return self.table(tmp_path / "data", 8)

    def words(self, data: Path, folder: Path, **changed: object) -> list[str]:
        options: dict[str, object] = {
            "inputs": "a,b",
            "output": "y",
            "region": "a <= 0.4 and b <= 0.4",
            "alpha": 0.3,
            "kernel": "rbf",
            "lengthscale": 0.5,
            "noise": 0.01,
            "fit_rows": 100,
            "out": f"{folder}/",
            **changed,
        }
        return ["protect", str(data), "--no-rehearsal", *map(str, as_words(options))]

    def published(self, out: Path) -> np.ndarray:
        files = sorted((out / ROW_FOLDER).iterdir())
        return pd.concat([pd.read_parquet(file) for file in files]).to_numpy()

    def test_protect_predict_certify(self, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "release"
        result = run(*self.words(data, out))
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        assert "The promise holds." in result.stdout
        assert "2000 rows" in result.stdout
        assert sorted(os.listdir(out)) == [MANIFEST, ROW_FOLDER]
        certified = run("certify", out, "--json")
        assert certified.exit_code == 0, certified.output
        assert json.loads(certified.stdout)["holds"]
        pd.DataFrame({"a": [0.9], "b": [0.9]}).to_csv(tmp_path / "new.csv", index=False)
        predicted = run("predict", out, tmp_path / "new.csv", "--json")
        assert predicted.exit_code == 0, predicted.output
        refused(run(*self.words(data, out)), f"the release in --out {out}/ is there already; give --replace")
        again = run(*self.words(data, out, replace=True), "--json")
        assert again.exit_code == 0, again.output
        assert json.loads(again.stdout)["rows"] == 2000
        codes = [one["code"] for one in json.loads(again.stdout)["certificate"]["findings"]]
        assert "parameters-from-sensitive-rows" not in codes
        replaced = run(*self.words(data / "0000.parquet", out, replace=True))
        assert "The old release was replaced." in replaced.stdout, replaced.output
        assert len(self.published(out)) == 250

    def stopped_by(self, how: signal.Signals, words: list[str], out: Path) -> str:
        """What a command says that is stopped by a signal when it has written some row files."""
        process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        log = out / RUN / WRITTEN
        until = time.monotonic() + 120
        while not (log.is_file() and log.read_bytes().count(b"\n") >= 5):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.001)
        process.send_signal(how)
        said = "".join(process.communicate(timeout=60))
        assert process.returncode not in (0, 3)
        assert how == signal.SIGINT or process.returncode == -how
        return said

    @pytest.mark.slow
    @pytest.mark.processes
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
    def test_told_to_stop_it_goes_on_with_the_same_noise(self, how: signal.Signals, data: Path, tmp_path: Path) -> None:
        out, words = tmp_path / "release", self.words(data, tmp_path / "release")
        assert "Traceback" not in self.stopped_by(how, words, out)
        assert os.listdir(out) == [RUN]
        assert (out / RUN).stat().st_mode & 0o777 == 0o700
        files = sorted((out / RUN / ROW_FOLDER).glob("part-*.parquet"))
        early = np.vstack([pd.read_parquet(file).to_numpy() for file in files])
        taken_up = run(*words)
        assert taken_up.exit_code == 0, taken_up.output
        assert sorted(os.listdir(out)) == [MANIFEST, ROW_FOLDER]
        np.testing.assert_array_equal(self.published(out)[: len(early)], early)

    @pytest.mark.slow
    @pytest.mark.processes
    def test_killed_in_the_middle_it_goes_on_with_the_same_noise(self, tmp_path: Path) -> None:
        data, out = self.table(tmp_path / "data", self.MANY), tmp_path / "release"
        words = self.words(data, out)
        self.stopped_by(signal.SIGKILL, words, out)
        # nothing is published, nothing is half a file, and the key is its owner's
        assert os.listdir(out) == [RUN]
        assert (out / RUN / KEY).stat().st_mode & 0o777 == 0o600
        files = sorted(file for file in (out / RUN / ROW_FOLDER).iterdir() if file.suffix == ".parquet")
        assert 5 <= len(files) < self.MANY
        early = np.vstack([pd.read_parquet(file).to_numpy() for file in files])
        assert len(early) == 20 * len(files)
        # the same key and design from the beginning, and the same without the key
        whole, keyless = tmp_path / "whole", tmp_path / "keyless"
        for other in (whole, keyless):
            shutil.copytree(out, other)
        shutil.rmtree(whole / RUN / ROW_FOLDER)
        (whole / RUN / WRITTEN).unlink()
        (keyless / RUN / KEY).unlink()
        taken_up = run(*words)
        assert taken_up.exit_code == 0, taken_up.output
        assert f"of {self.MANY} parts are written already" in taken_up.stderr
        assert sorted(os.listdir(out)) == [MANIFEST, ROW_FOLDER]
        np.testing.assert_array_equal(self.published(out)[: len(early)], early)
        assert run(*self.words(data, whole)).exit_code == 0
        np.testing.assert_array_equal(self.published(whole), self.published(out))
        over = run(*self.words(data, keyless))
        assert over.exit_code == 0, over.output
        assert "starts over with new noise" in over.stderr
        assert not same_noise(self.published(keyless)[:, 2], self.published(out)[:, 2])
        assert sf.load(out).certificate.holds

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"weights": "b"}, "--weights is for tables that fit in memory"),
            ({"drop_missing": True}, "--drop-missing is for tables"),
            ({"csv": "public.csv"}, "--csv is for tables"),
            ({"method": "eigh"}, "--method is for tables"),
            ({"inputs": "a,b,c"}, "has no column 'c'"),
            ({"output": "a"}, "is also one of --inputs"),
            ({"region": "a >= 7"}, "outside the data"),
            ({"region": "c >= 7"}, "'c'"),
            ({"noise": 0}, "needs noise in the data"),
            ({"structure": "diagonal"}, "structure is"),
            ({"fit_rows": 1}, "--fit-rows is 1"),
            ({"out": "data/"}, "not a release of sfumato"),
            ({"out": "data/release/"}, "is inside"),
        ],
    )
    def test_wrong_use(
        self, data: Path, tmp_path: Path, changed: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        result = run(*self.words(data, tmp_path / "release", **changed))
        assert result.exit_code == 2, result.output
        assert said in result.stderr
        assert result.stdout == ""
        assert sorted(os.listdir(tmp_path)) == ["data"]

    def test_data_in_the_release_itself_are_refused(self, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "release"
        assert run(*self.words(data / "0000.parquet", out)).exit_code == 0
        result = run(*self.words(out / ROW_FOLDER / "part-00000.parquet", out))
        assert result.exit_code == 2
        assert "is in the folder" in result.stderr

    def test_a_folder_is_for_parquet(self, tmp_path: Path) -> None:
        pd.DataFrame(values(), columns=["a", "b", "y"]).to_csv(tmp_path / "t.csv", index=False)
        result = run(*self.words(tmp_path / "t.csv", tmp_path / "release", fit_rows=None))
        assert result.exit_code == 2
        assert "is a folder, which is for Parquet data" in result.stderr

    def test_parquet_that_fits_in_memory_still_goes_to_one_file(self, data: Path, tmp_path: Path) -> None:
        words = self.words(data / "0000.parquet", tmp_path, out=tmp_path / "one.sfumato")
        assert run(*words).exit_code == 0
        assert sf.load(tmp_path / "one.sfumato").outputs.shape == (250,)
