"""The pieces of a run that can be taken up again: its key file, its row files and its folder."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.data.parts import ArrayPart, Part
from sfumato.progress import Progress
from sfumato.release.file import (
    MANIFEST,
    ROW_FOLDER,
    RowFile,
    file_name,
    released_name,
    released_rows,
    write_rows,
)
from sfumato.release.folder import (
    KEY,
    RUN,
    TASK,
    WRITTEN,
    FolderRun,
    abandon,
    find_key,
    locked,
    make_key,
    open_run,
    prepare_folder,
    publish,
)

VALUES = np.random.default_rng(0).normal(size=(50, 3))
NAMES = ("a", "b", "y")
ASKED: dict[str, object] = {"data": "t.parquet", "alpha": 0.3}


def quiet(text: str) -> None:
    raise AssertionError(f"nothing to say, but: {text}")


class TestKeyFile:
    def test_it_is_for_its_owner_only_whatever_the_umask(self, tmp_path: Path) -> None:
        for mask in (0o000, 0o022, 0o277):
            before = os.umask(mask)
            try:
                make_key(tmp_path / str(mask), "this")
            finally:
                os.umask(before)
            assert stat.S_IMODE((tmp_path / str(mask)).stat().st_mode) == 0o600

    def test_the_same_key_comes_back_for_the_same_purpose_only(self, tmp_path: Path) -> None:
        made = make_key(tmp_path / "key", "this")
        found = find_key(tmp_path / "key", "this")
        assert found is not None
        np.testing.assert_array_equal(found.normals(b"m", 3), made.normals(b"m", 3))
        assert find_key(tmp_path / "key", "that") is None
        assert find_key(tmp_path / "none", "this") is None

    def test_it_never_replaces_a_file(self, tmp_path: Path) -> None:
        make_key(tmp_path / "key", "this")
        before = (tmp_path / "key").read_bytes()
        with pytest.raises(FileExistsError):
            make_key(tmp_path / "key", "this")
        assert (tmp_path / "key").read_bytes() == before

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o400, 0o700])
    def test_a_key_that_others_may_have_read_is_refused(self, tmp_path: Path, mode: int) -> None:
        make_key(tmp_path / "key", "this")
        (tmp_path / "key").chmod(mode)
        with pytest.raises(sf.InputError, match="only you can read"):
            find_key(tmp_path / "key", "this")

    def test_a_key_of_somebody_else_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        make_key(tmp_path / "key", "this")
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(sf.InputError, match="only you can read"):
            find_key(tmp_path / "key", "this")

    def test_a_link_is_refused(self, tmp_path: Path) -> None:
        make_key(tmp_path / "key", "this")
        (tmp_path / "link").symlink_to(tmp_path / "key")
        with pytest.raises(sf.InputError, match="cannot be opened"):
            find_key(tmp_path / "link", "this")

    def test_half_a_key_is_no_key(self, tmp_path: Path) -> None:
        make_key(tmp_path / "key", "this")
        whole = (tmp_path / "key").read_bytes()
        for content in (b"", whole[:20], b"[]", b'{"for": "this"}', b'{"for": "this", "key": "00"}', b"\xff\xfe"):
            (tmp_path / "key").write_bytes(content)
            assert find_key(tmp_path / "key", "this") is None


class TestRowFiles:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        files = [write_rows(tmp_path / file_name(i), NAMES, VALUES[20 * i : 20 * i + 20]) for i in range(3)]
        assert [file.rows for file in files] == [20, 20, 10]
        rows = released_rows(tmp_path, files, ["a", "b"], "y", Progress())
        np.testing.assert_array_equal(rows.values, VALUES[:, :2])
        np.testing.assert_array_equal(np.asarray(rows.column("y")), VALUES[:, 2])
        assert sorted(os.listdir(tmp_path)) == [file.name for file in files]

    def test_any_reader_of_parquet_can_read_it(self, tmp_path: Path) -> None:
        write_rows(tmp_path / "t.parquet", NAMES, VALUES)
        table = pq.read_table(tmp_path / "t.parquet")
        assert table.column_names == list(NAMES)
        assert set(table.schema.types) == {pa.float64()}

    def test_the_same_values_give_the_same_bytes(self, tmp_path: Path) -> None:
        assert write_rows(tmp_path / "a", NAMES, VALUES).sha256 == write_rows(tmp_path / "b", NAMES, VALUES).sha256

    def test_a_failed_write_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_rows(tmp_path / "t.parquet", NAMES, VALUES)
        before = (tmp_path / "t.parquet").read_bytes()

        def full(handle: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write_rows(tmp_path / "t.parquet", NAMES, -VALUES)
        assert os.listdir(tmp_path) == ["t.parquet"]
        assert (tmp_path / "t.parquet").read_bytes() == before

    def test_an_output_steps_aside_for_an_input_of_its_name(self) -> None:
        assert released_name("y", ["a", "b"]) == "y"
        assert released_name("y", ["x", "y"]) == "y (released)"


class TestUntrustedRowFiles:
    @pytest.fixture
    def file(self, tmp_path: Path) -> RowFile:
        return write_rows(tmp_path / file_name(0), NAMES, VALUES)

    def read(self, folder: Path, *files: RowFile, inputs: tuple[str, ...] = ("a", "b")) -> None:
        np.asarray(released_rows(folder, files, inputs, "y", Progress()).column("y"))

    def replace(self, folder: Path, table: pa.Table) -> RowFile:
        """A file with other contents and a digest that fits."""
        pq.write_table(table, folder / file_name(0))
        digest = hashlib.sha256((folder / file_name(0)).read_bytes()).hexdigest()
        return RowFile(file_name(0), table.num_rows, digest)

    def test_every_changed_byte_is_noticed(self, tmp_path: Path, file: RowFile) -> None:
        path = tmp_path / file.name
        whole = path.read_bytes()
        for place in range(0, len(whole), 97):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(sf.FormatError, match="digest"):
                self.read(tmp_path, file)
        path.write_bytes(whole[:-1])
        with pytest.raises(sf.FormatError, match="digest"):
            self.read(tmp_path, file)

    def test_a_file_is_checked_at_every_reading(self, tmp_path: Path, file: RowFile) -> None:
        rows = released_rows(tmp_path, [file], ("a", "b"), "y", Progress())
        (tmp_path / file.name).write_bytes(b"something else")
        with pytest.raises(sf.FormatError, match="digest"):
            _ = rows.values

    def test_missing_files_pipes_and_links_are_refused(self, tmp_path: Path, file: RowFile) -> None:
        path = tmp_path / file.name
        path.rename(tmp_path / "elsewhere")
        with pytest.raises(sf.FormatError, match="missing"):
            self.read(tmp_path, file)
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(sf.FormatError, match="not a file"):
            self.read(tmp_path, file)
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(sf.FormatError, match="not a file"):
            self.read(tmp_path, file)

    def test_other_names_counts_and_sizes_are_refused(self, tmp_path: Path, file: RowFile) -> None:
        for name in ("../secret", "/etc/passwd", "part-00001.parquet", ""):
            with pytest.raises(sf.FormatError, match="cannot have"):
                self.read(tmp_path, RowFile(name, file.rows, file.sha256))
        for rows in (0, -1, 2**40):
            with pytest.raises(sf.FormatError, match="cannot have"):
                self.read(tmp_path, RowFile(file.name, rows, file.sha256))
        for rows in (49, 51):
            with pytest.raises(sf.FormatError, match="has 50 rows"):
                self.read(tmp_path, RowFile(file.name, rows, file.sha256))
        with open(tmp_path / file.name, "ab") as opened:
            opened.truncate(1 << 30)
        with pytest.raises(sf.FormatError, match="too large"):
            self.read(tmp_path, file)
        with pytest.raises(sf.FormatError, match="no rows"):
            self.read(tmp_path)

    def test_other_columns_types_and_values_are_refused(self, tmp_path: Path, file: RowFile) -> None:
        with pytest.raises(sf.FormatError, match="float64 columns"):
            self.read(tmp_path, file, inputs=("b", "a"))
        good = {"a": [1.0, 2.0], "b": [1.0, 2.0], "y": [1.0, 2.0]}
        for wrong in ([1, 2], ["1", "2"], pa.array([1.0, 2.0], pa.float32())):
            with pytest.raises(sf.FormatError, match="float64 columns"):
                self.read(tmp_path, self.replace(tmp_path, pa.table(good | {"b": wrong})))
        with pytest.raises(sf.FormatError, match="float64 columns"):
            self.read(tmp_path, self.replace(tmp_path, pa.table(good | {"more": [1.0, 2.0]})))
        for value in (None, np.nan, np.inf, 1e200):
            with pytest.raises(sf.FormatError, match="missing, infinite"):
                self.read(tmp_path, self.replace(tmp_path, pa.table(good | {"y": [1.0, value]})))

    def test_what_is_no_parquet_is_refused(self, tmp_path: Path) -> None:
        for content in (b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"x" * 1000):
            (tmp_path / file_name(0)).write_bytes(content)
            with pytest.raises(sf.FormatError, match="cannot be read"):
                self.read(tmp_path, RowFile(file_name(0), 2, hashlib.sha256(content).hexdigest()))


class TestFolder:
    def test_a_new_or_an_empty_folder_is_taken(self, tmp_path: Path) -> None:
        prepare_folder(tmp_path / "new")
        prepare_folder(tmp_path / "new")
        assert os.listdir(tmp_path / "new") == []

    @pytest.mark.parametrize("name", ["photo.jpg", MANIFEST, f"{ROW_FOLDER}/x", f"{RUN}/precious"])
    def test_what_is_not_ours_is_left_alone(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True)
        path.write_text("mine")
        with pytest.raises(sf.InputError, match="not a release of sfumato"):
            prepare_folder(tmp_path / "folder")
        assert path.read_text() == "mine"

    def test_files_and_missing_parents_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(sf.InputError, match="is a file"):
            prepare_folder(tmp_path / "file")
        with pytest.raises(sf.InputError, match="make it first"):
            prepare_folder(tmp_path / "no" / "such")

    def test_a_linked_run_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / RUN).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(sf.InputError, match="not a release of sfumato"):
            prepare_folder(tmp_path / "folder")

    def test_two_runs_do_not_write_to_one_folder(self, tmp_path: Path) -> None:
        with locked(tmp_path), pytest.raises(sf.InputError, match="another run"), locked(tmp_path):
            pass
        with locked(tmp_path):
            pass

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="before 3.11 pathlib keeps functions of os for itself")
    @pytest.mark.parametrize("killed_after", ["unlink", "rename", "replace", None])
    def test_publishing_can_be_done_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_after: str | None
    ) -> None:
        """At every moment there is the old manifest with the old rows, no manifest, or the new one with the new."""
        run = open_run(tmp_path / "out", {}, quiet)
        write_rows(run.place / ROW_FOLDER / file_name(0), NAMES, VALUES)
        (run.place / MANIFEST).write_text("new")
        write_old = tmp_path / "out" / ROW_FOLDER
        write_old.mkdir()
        write_rows(write_old / file_name(0), NAMES, -VALUES)
        (tmp_path / "out" / MANIFEST).write_text("old")

        class Killed(BaseException):
            pass

        def killing(what: object) -> object:
            def call(*arguments: object, **options: object) -> None:
                what(*arguments, **options)  # type: ignore[operator]
                raise Killed

            return call

        if killed_after is not None:
            with monkeypatch.context() as patch:
                patch.setattr(os, killed_after, killing(getattr(os, killed_after)))
                with pytest.raises(Killed):
                    publish(tmp_path / "out")
            if (tmp_path / "out" / MANIFEST).is_file():
                assert killed_after == "replace"
                assert not (tmp_path / "out" / RUN / KEY).exists()
                return
        publish(tmp_path / "out")
        assert (tmp_path / "out" / MANIFEST).read_text() == "new"
        table = pq.read_table(tmp_path / "out" / ROW_FOLDER / file_name(0))
        np.testing.assert_array_equal(table.column("y").to_numpy(), VALUES[:, 2])
        assert sorted(os.listdir(tmp_path / "out")) == [MANIFEST, ROW_FOLDER]


class TestRun:
    def parts(self) -> list[Part]:
        return [ArrayPart(20 * i, rows, VALUES[20 * i : 20 * i + rows]) for i, rows in enumerate([20, 20, 10])]

    def begin(self, folder: Path) -> FolderRun:
        return open_run(folder, ASKED, quiet)

    def again(self, folder: Path, **changed: object) -> tuple[FolderRun, list[str]]:
        said: list[str] = []
        return open_run(folder, ASKED | changed, said.append), said

    def normals(self, run: FolderRun) -> list[float]:
        assert run.key is not None
        return list(run.key.normals(b"m", 4))

    def test_a_new_run_keeps_its_key_where_only_its_owner_can_read_it(self, tmp_path: Path) -> None:
        self.begin(tmp_path / "out")
        assert stat.S_IMODE((tmp_path / "out" / RUN).stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "out" / RUN / KEY).stat().st_mode) == 0o600

    def test_the_same_task_is_taken_up_with_the_same_key(self, tmp_path: Path) -> None:
        run = self.begin(tmp_path / "out")
        again, said = self.again(tmp_path / "out")
        assert self.normals(again) == self.normals(run)
        assert said == []

    def test_another_task_or_a_lost_key_starts_over(self, tmp_path: Path) -> None:
        first = self.begin(tmp_path / "out")
        write_rows(first.place / ROW_FOLDER / file_name(0), NAMES, VALUES)
        second, said = self.again(tmp_path / "out", alpha=0.4)
        assert len(said) == 1
        assert "cannot be continued" in said[0]
        assert self.normals(second) != self.normals(first)
        assert os.listdir(second.place / ROW_FOLDER) == []
        (tmp_path / "out" / RUN / KEY).unlink()
        third, said = self.again(tmp_path / "out", alpha=0.4)
        assert len(said) == 1
        assert self.normals(third) != self.normals(second)
        (tmp_path / "out" / RUN / TASK).unlink()
        fourth, said = self.again(tmp_path / "out", alpha=0.4)
        assert len(said) == 1
        assert self.normals(fourth) != self.normals(third)

    def test_a_key_that_others_can_read_stops_the_run(self, tmp_path: Path) -> None:
        self.begin(tmp_path / "out")
        (tmp_path / "out" / RUN / KEY).chmod(0o644)
        with pytest.raises(sf.InputError, match="only you can read"):
            self.again(tmp_path / "out")

    def test_the_noise_is_for_one_message_only(self, tmp_path: Path) -> None:
        run = self.begin(tmp_path / "out")
        assert run.agrees(b"one")
        assert run.agrees(b"one")
        assert not run.agrees(b"two")
        again, _ = self.again(tmp_path / "out")
        assert again.agrees(b"one")
        assert not again.agrees(b"two")

    def test_only_complete_row_files_that_were_recorded_are_kept(self, tmp_path: Path) -> None:
        run, parts = self.begin(tmp_path / "out"), self.parts()
        rows = run.place / ROW_FOLDER
        for number, part in enumerate(parts):
            file = write_rows(rows / file_name(number), NAMES, VALUES[part.start : part.start + part.rows])
            if number != 1:
                run.record(file)
        (rows / ".part-00007.parquet.abc.tmp").touch()
        with open(tmp_path / "out" / RUN / WRITTEN, "a", encoding="utf-8") as log:
            log.write('{"name": "part-00001.parq')
        assert sorted(run.written(parts)) == [0, 2]
        assert sorted(os.listdir(rows)) == [file_name(0), file_name(2)]
        (rows / file_name(0)).write_bytes(b"damaged")
        assert sorted(run.written(parts)) == [2]
        assert run.written(parts[:2]) == {}

    def test_a_record_holds_no_secret(self, tmp_path: Path) -> None:
        run = self.begin(tmp_path / "out")
        run.agrees(b"one")
        key = json.loads((tmp_path / "out" / RUN / KEY).read_text())["key"]
        for path in (tmp_path / "out").rglob("*"):
            assert path.is_dir() or path.name == KEY or key not in path.read_text()
        assert key not in repr(run)

    def test_nothing_is_left_of_a_run_that_is_removed(self, tmp_path: Path) -> None:
        self.begin(tmp_path / "out")
        abandon(tmp_path / "out")
        assert os.listdir(tmp_path) == []
