"""Claims about files: complete or not at all, private from the first moment, and nothing left behind."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from sfumato.errors import FormatError, InputError, ResourceError
from sfumato.files import create_private, replacing


def write(path: Path, content: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(content)


def test_a_file_is_replaced_whole_and_keeps_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    before = os.umask(0o022)
    try:
        for content in (b"first", b"second"):
            write(tmp_path / "link", content)
            assert (tmp_path / "file").read_bytes() == content
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_what_was_written_is_on_the_disk_and_checked_before_it_is_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, move = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("sync"), sync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append("move"), move(old, new))[1])

    def check(name: str) -> None:
        assert Path(name).read_bytes() == b"new"
        done.append("check")

    with replacing(tmp_path / "file", check) as file:
        file.write(b"new")
    assert done == ["sync", "check", "move", "sync"]


def refuse(name: str) -> None:
    raise FormatError("it cannot be read back")


def interrupted(old: str, new: str) -> None:
    raise KeyboardInterrupt


def full_disk(handle: int) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(FormatError), replacing(path, refuse) as file:
        file.write(b"new")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(ResourceError, match=r"the disk is full .* Make room"):
            write(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_path_that_cannot_be_a_file_is_refused_in_words(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("", "no folder/file", "x" * 300, "pipe", "link", "loop"):
        with pytest.raises(InputError, match="path is"):
            write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["link", "loop", "pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)  # as /dev/null, it has not become a file


def test_a_private_file_is_for_its_owner_only_whatever_the_umask_and_never_replaced(tmp_path: Path) -> None:
    for mask in (0o000, 0o777):
        before = os.umask(mask)
        try:
            create_private(tmp_path / str(mask), b"secret")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / str(mask)).stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("0", "link"):
        with pytest.raises(FileExistsError):
            create_private(tmp_path / name, b"other")
    assert (tmp_path / "0").read_bytes() == b"secret"
