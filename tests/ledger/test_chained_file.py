"""Claims about the file of a ledger: it only grows, survives every kill, and shows every change."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.errors import FormatError, InputError, ResourceError
from sfumato.ledger import chained_file
from sfumato.ledger.chained_file import ROOT, Chain, ChainedFile, Entry

SOURCE = Path(sfumato.__file__).parents[1]
BODIES: list[dict[str, Any]] = [{"n": 1, "who": "größe\n"}, {"n": 2, "values": [0.1, 1e-300, None, True]}, {"n": 3}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that write thousands of files and pull no plug."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def append(path: Path, body: Any) -> Entry:
    return ChainedFile(path).update(lambda chain: body)


def bodies(chain: Chain) -> list[dict[str, Any]]:
    return [entry.body for entry in chain.entries]


def written(path: Path) -> bytes:
    path.unlink(missing_ok=True)
    for body in BODIES:
        append(path, body)
    return path.read_bytes()


class Killed(BaseException):
    """Nothing catches it, as nothing catches a kill."""


def cut_off(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], allowed: int) -> bool:
    """Do ``act`` until it has written ``allowed`` bytes and would write more; whether it came to its end."""
    room, write = [allowed], os.write

    def write_some(handle: int, data: Any) -> int:
        if room[0] == 0:
            raise Killed
        count = write(handle, bytes(data)[: room[0]])
        room[0] -= count
        return count

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_some)
        try:
            act()
        except Killed:
            return False
    return True


# ---------------------------------------------------------------- reading and writing


def test_what_is_read_is_what_was_written(path: Path) -> None:
    file = ChainedFile(path)
    assert file.read() == Chain()
    assert file.read().head == ROOT
    assert not path.exists()
    entries = [append(path, body) for body in BODIES]
    chain = file.read()
    assert chain.entries == tuple(entries)
    assert bodies(chain) == BODIES
    assert [entry.number for entry in entries] == [1, 2, 3]
    assert chain.head == entries[-1].hash
    assert chain.torn is None
    assert chain.repaired == ()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = path.read_bytes().split(b"\n")
    assert [json.loads(line)["number"] for line in lines[:-1]] == [0, 1, 2, 3]
    assert json.loads(lines[0])["body"] == {"format": "sfumato ledger", "version": 1}
    assert path.read_bytes().isascii()


def test_the_same_entries_give_the_same_file(tmp_path: Path) -> None:
    assert written(tmp_path / "a") == written(tmp_path / "b")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(), json_values), max_size=4))
def test_any_plain_json_comes_back(tmp_path_factory: pytest.TempPathFactory, given_bodies: list[Any]) -> None:
    file = ChainedFile(tmp_path_factory.mktemp("any") / "ledger")
    for body in given_bodies:
        assert append(file.path, body).body == body
    assert bodies(file.read()) == given_bodies


@pytest.mark.parametrize(
    "body",
    [{"a": float("nan")}, {"a": float("inf")}, {1: 2}, {"a": (1,)}, {"a": {1}}, {"a": b"x"}, [1], None, {"a": {2: 1}}],
)
def test_what_would_not_come_back_is_refused(body: Any, path: Path) -> None:
    with pytest.raises(InputError, match="an entry must be"):
        append(path, body)
    assert path.read_bytes() == b""
    assert ChainedFile(path).read() == Chain()


def test_a_cycle_or_a_huge_entry_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body: dict[str, Any] = {}
    body["self"] = body
    with pytest.raises(InputError):
        append(path, body)
    monkeypatch.setattr(chained_file, "LONGEST_LINE", 4096)
    with pytest.raises(InputError, match="bytes; at most"):
        append(path, {"a": "x" * 5000})
    append(path, {"a": "x" * 3000})
    with path.open("ab") as raw:
        raw.write(b"x" * (1 << 17))
    with pytest.raises(FormatError, match=r"line 3 .*longer than"):
        ChainedFile(path).read()


def test_an_entry_of_tens_of_megabytes(path: Path) -> None:
    file = ChainedFile(path)
    append(path, {"array": "x" * (30 << 20)})
    append(path, {"n": 2})
    assert [len(str(body)) > 1 << 20 for body in bodies(file.read())] == [True, False]


def test_an_update_sees_what_is_there_and_writes_nothing_when_it_fails(path: Path) -> None:
    file = ChainedFile(path)
    for count in range(3):
        entry = file.update(lambda chain: {"count": len(chain.entries), "head": chain.head})
        assert entry.body["count"] == count
    raw = path.read_bytes()
    with pytest.raises(FileNotFoundError):
        file.update(lambda chain: {"text": Path("nowhere").read_text()})
    with pytest.raises(InputError):
        file.update(lambda chain: {"value": {chain.head}})
    assert path.read_bytes() == raw
    assert append(path, {}).number == 4


def test_earlier_heads_are_found_and_lines_taken_from_the_end_are_missed(path: Path) -> None:
    raw, file = written(path), ChainedFile(path)
    chain = file.verify()
    assert chain.lines
    for head in (ROOT, *(line.hash for line in chain.lines)):
        assert file.verify(head) == chain
    path.write_bytes(raw[: raw[:-1].rindex(b"\n") + 1])
    assert bodies(file.verify(chain.entries[1].hash)) == BODIES[:2]
    with pytest.raises(FormatError, match="taken away"):
        file.verify(chain.head)
    path.unlink()
    with pytest.raises(FormatError, match="taken away"):
        file.verify(chain.head)
    for wrong in ("", "g" * 64, "A" * 64, 7):
        with pytest.raises(InputError, match="64 hexadecimal"):
            file.verify(wrong)  # type: ignore[arg-type]


# ---------------------------------------------------------------- torn writes


@pytest.mark.usefixtures("quick")
def test_a_file_cut_at_any_byte_keeps_its_earlier_lines_and_goes_on(path: Path) -> None:
    raw, file = written(path), ChainedFile(path)
    ends = [place for place, byte in enumerate(raw) if byte == ord("\n")]
    for length in range(len(raw) + 1):
        path.write_bytes(raw[:length])
        whole = sum(end <= length for end in ends)  # its newline is not needed
        rest = length - max([0, *(end + 1 for end in ends if end < length)])
        chain = file.read()
        entries = BODIES[: max(whole - 1, 0)]
        assert bodies(chain) == entries
        if length in ends or rest == 0:
            assert chain.torn is None
        else:
            assert chain.torn is not None
            assert (chain.torn.after, chain.torn.size) == (whole - 1, rest)
        entry = append(path, {"n": "new"})
        again = file.verify(chain.head)
        assert bodies(again) == [*entries, {"n": "new"}]
        assert (entry, again.torn) == (again.entries[-1], None)
        assert again.repaired == (() if chain.torn is None else (chain.torn,))
        assert path.read_bytes().startswith(raw[:length])


def starts(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[bytes, list[dict[str, Any]]]]:
    """Files as a kill may have left them, one or several times over, and the entries that count."""
    file, good = ChainedFile(path), written(path)
    yield b"", []
    yield good, BODIES
    for kills in ([5], [150], [330], [5, 3, 7, 8, 60], [100, 8, 8, 9, 400]):
        for start, entries in ((b"", list[dict[str, Any]]()), (good, BODIES)):
            path.write_bytes(start)
            for allowed in kills:
                cut_off(monkeypatch, lambda: append(path, {"lost": 1}), allowed)
            chain = file.read()
            assert bodies(chain)[: len(entries)] == entries
            yield path.read_bytes(), bodies(chain)


@pytest.mark.usefixtures("quick")
def test_a_write_cut_at_any_byte_loses_nothing_and_never_counts_in_part(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ChainedFile(path)
    for raw, entries in list(starts(path, monkeypatch)):
        path.write_bytes(raw)
        append(path, {"n": "cut"})
        total = path.stat().st_size - len(raw)
        for allowed in sorted({*range(20), *range(20, total, 9), *range(total - 20, total + 1)}):
            path.write_bytes(raw)
            done = cut_off(monkeypatch, lambda: append(path, {"n": "cut"}), allowed)
            after = file.read()
            assert bodies(after) in ([*entries, {"n": "cut"}], *([] if done else [entries]))
            assert path.read_bytes().startswith(raw)
            if not done:
                append(path, {"n": "next"})
                last = file.verify(after.head)
                assert bodies(last) == [*bodies(after), {"n": "next"}]
                assert last.torn is None
        assert done


#: How a file may end after its last entry (an editor, a flipped byte, a crash), and how many bytes of that are torn.
ENDINGS = [
    (b"", None), (b"\r\n", None), (b"  \n", None), (b"\n\n\r\n \n", None), (b"\n  ", None), (b"\r", None),
    *((bytes([ord("\n") ^ 1 << bit]), 1) for bit in range(8) if bit != 0), (b"\x0b\n", 2), (b"x" * 99, 99), (b"{}", 2),
    (b"\0" * 600, 600), (b"\n" + b"\0" * 600, 600), (b"\x0b\n  ", 4), (b" (to", 4), (b" (torn)", 7), (b" (torn)\n", 0),
]  # fmt: skip


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("ending", "size"), ENDINGS)
def test_a_whole_last_entry_counts_however_it_ends_and_the_file_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, ending: bytes, size: int | None
) -> None:
    raw, file = written(path)[:-1], ChainedFile(path)
    for allowed in (*range(12), 300):
        path.write_bytes(raw + ending)
        found = file.read()
        assert bodies(found) == BODIES
        assert (None if found.torn is None else found.torn.size) == size
        assert found.remarks
        cut_off(monkeypatch, lambda: append(path, {"n": 4}), allowed)
        cut_off(monkeypatch, lambda: append(path, {"n": 5}), 5)
        between = file.verify(found.head)
        assert bodies(between)[:3] == BODIES
        append(path, {"n": 6})
        last = file.verify(between.head)
        assert bodies(last) == [*bodies(between), {"n": 6}]
        assert last.torn is None
        assert path.read_bytes().startswith(raw + ending)


def scanned(raw: bytes) -> Chain:
    """What is read of a file with these bytes, without a file: thousands of them take seconds."""
    return chained_file._Scan("ledger").over(io.BytesIO(raw))


def test_no_damage_to_the_last_line_makes_it_forgotten_in_silence(path: Path) -> None:
    raw = written(path)
    start = raw[:-1].rindex(b"\n") + 1
    values = [b"\0", b"\n", b"\r", b" ", b"}", b'"', b"{", b"7", b"\xff"]
    outcomes = set()
    for place in range(start, len(raw)):
        flips = [bytes([raw[place] ^ 1 << bit]) for bit in range(8)]
        changed = [raw[:place] + new + raw[place + 1 :] for new in [b"", *values, *flips]]
        changed += [raw[:place] + new + raw[place:] for new in [*values, b" (torn)"]]
        changed += [raw[:place], raw[:place] + b"\0" * 40]  # what a crash of the file system leaves
        for number, damaged in enumerate(changed):
            try:
                chain = scanned(damaged)
            except FormatError:
                outcomes.add("refused")
                continue
            if bodies(chain) == BODIES:
                outcomes.add("counts")
                assert damaged == raw or chain.remarks
                continue
            outcomes.add("told")
            assert bodies(chain) == BODIES[:2]
            assert damaged == raw[:start] or "TORN" in chain.remarks[0]
            assert number >= len(changed) - 2  # only where it was cut: a kill leaves the same of what was never out
    assert outcomes == {"refused", "counts", "told"}
    for junk in (raw[start:], b"{}\n", b"x\n", b"x" + raw[start:], b"x" + raw[start:-1]):
        with pytest.raises(FormatError):
            scanned(raw + junk)
    path.write_bytes(raw + b"junk")
    assert bodies(ChainedFile(path).read()) == BODIES
    assert "TORN: 4 bytes" in ChainedFile(path).read().remarks[0]


def test_a_file_that_an_editor_converted_counts_in_full_and_can_be_converted_back(path: Path, mended: bytes) -> None:
    file, before = ChainedFile(path), ChainedFile(path).read()
    for converted in (mended.replace(b"\n", b"\r\n"), mended.replace(b"\n", b" \n\n")):
        path.write_bytes(converted)
        found = file.read()
        assert (found.entries, found.repaired) == (before.entries, before.repaired)
        assert "Another program has changed blanks" in found.remarks[-1]
        append(path, {"n": 6})
        assert len(file.verify(before.head).entries) == len(before.entries) + 1
        if b"\r" in converted:
            path.write_bytes(path.read_bytes().replace(b"\r", b""))
            assert file.verify(before.head).remarks == ()


def test_entries_that_an_older_version_took_for_torn_count(path: Path) -> None:
    raw, file = written(path), ChainedFile(path)
    whole = file.read()
    for times in (1, 2):
        # an editor took the newline; the older version marked the line, and went on from the one before
        path.write_bytes(raw[:-1])
        for _ in range(times):
            left = path.read_bytes().split(b"\n", 3)[-1]
            torn = chained_file.Torn(2, len(left), hashlib.sha256(left).hexdigest())
            pieces, _ = chained_file._pieces(Chain(whole.lines[:3], torn, (), (b" (torn)", b"\n")), {"n": "later"})
            with path.open("ab") as writing:
                writing.write(b"".join(pieces)[:-1])
        chain = file.read()
        assert bodies(chain) == [*BODIES, *[{"n": "later"}] * times]
        assert len(chain.disowned) == times
        assert "older version took it for torn" in chain.remarks[-1]
        append(path, {"n": "next"})
        assert bodies(file.verify(chain.head))[-2:] == [{"n": "later"}, {"n": "next"}]


def test_each_piece_is_on_the_disk_before_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(path)
    done: list[Any] = []
    write, sync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda handle, data: (done.append(bytes(data)), write(handle, data))[1])
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("sync"), sync(handle))[1])
    append(path, {"n": 4})
    line = path.read_bytes().splitlines()[-1]
    assert done == [line, "sync", b"\n", "sync"]
    with path.open("ab") as raw:
        raw.write(b"torn")
    done.clear()
    append(path, {"n": 5})
    line = path.read_bytes().splitlines()[-1]
    assert done == [b" (torn)", "sync", b"\n", "sync", line, "sync", b"\n", "sync"]
    done.clear()
    append(path.with_name("new"), {})
    assert done[0] == "sync"  # the folder
    assert done.count("sync") == 5


def test_what_is_not_found_again_is_not_acknowledged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, write = written(path), os.write

    def bad_disk(handle: int, data: Any) -> int:
        return write(handle, bytes(data).replace(b"n", b"m"))

    monkeypatch.setattr(os, "write", bad_disk)
    with pytest.raises(FormatError, match="just written"):
        append(path, {"n": 4})
    assert path.read_bytes().startswith(raw)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_full_disk_is_told_and_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, kind: int) -> None:
    raw, file, write = written(path), ChainedFile(path), os.write
    append(path, {"n": 4})
    size = path.stat().st_size - len(raw)
    for room in (0, 1, 50, size - 2, size - 1):
        path.write_bytes(raw)
        left = [room]

        def write_some(handle: int, data: Any, left: list[int] = left) -> int:
            if left[0] == 0:
                raise OSError(kind, os.strerror(kind))
            count = write(handle, bytes(data)[: left[0]])
            left[0] -= count
            return count

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write_some)
            with pytest.raises(ResourceError, match=r"cannot be written: .* Make room.* not given out"):
                append(path, {"n": 4})
        assert bodies(file.read())[:3] == BODIES
        append(path, {"n": 5})
        assert bodies(file.verify())[-1] == {"n": 5}


# ---------------------------------------------------------------- changes


@pytest.fixture
def mended(path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A good file with torn bytes in it."""
    written(path)
    for allowed in (40, 100):
        cut_off(monkeypatch, lambda: append(path, {"lost": 1}), allowed)
    append(path, {"n": 4})
    append(path, {"n": 5})
    assert len(ChainedFile(path).read().repaired) == 1
    return path.read_bytes()


def test_any_changed_byte_is_found(path: Path, mended: bytes) -> None:
    for place in range(len(mended) - 1):  # how the last line ends does not matter
        for change in {1, 0x80, mended[place] ^ ord("\n"), mended[place] ^ ord(" ")} - {0}:
            raw = bytearray(mended)
            raw[place] ^= change
            with pytest.raises(FormatError, match=r"line|does not start like"):
                scanned(raw)
            if change == 1 and place % 50 == 0:
                path.write_bytes(raw)
                with pytest.raises(FormatError):
                    append(path, {})
                assert path.read_bytes() == raw


def test_missing_added_and_exchanged_lines_are_found(path: Path, mended: bytes) -> None:
    lines = mended.splitlines(keepends=True)
    torn = next(place for place, line in enumerate(lines) if line.endswith(b" (torn)\n"))
    bad = [lines[:place] + lines[place + 1 :] for place in range(len(lines) - 1)]
    bad += [[*lines[:place], lines[place], *lines[place:]] for place in range(len(lines))]
    bad += [[*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]] for place in range(len(lines) - 1)]
    bad += [[*lines[:place], b" (torn)\n", *lines[place:]] for place in range(len(lines))]
    bad += [[b"\n", *lines], [*lines, b"{}\n"], [*lines, lines[torn].replace(b" (torn)", b"")]]
    for changed in bad:
        path.write_bytes(b"".join(changed))
        with pytest.raises(FormatError, match=r"restore a backup|another kind of file"):
            ChainedFile(path).read()


def test_lines_of_another_ledger_do_not_follow(path: Path) -> None:
    other = path.with_name("other")
    append(other, {"n": "another"})
    append(other, {"n": 2})
    lines, others = (raw.splitlines(keepends=True) for raw in (written(path), other.read_bytes()))
    path.write_bytes(b"".join([*lines[:2], others[2]]))
    with pytest.raises(FormatError, match=r"line 3 .* does not follow from the line before"):
        ChainedFile(path).read()


def test_the_line_and_what_it_means_are_named(path: Path) -> None:
    lines = written(path).splitlines(keepends=True)
    for changed, message in (
        ([lines[0], *lines[2:]], "line 2 .* has the number 2 where 1 is next"),
        ([*lines[:2], lines[2].replace(b"0.1", b"0.2"), lines[3]], "line 3 .* does not match its hash"),
        ([*lines[:2], b"hello\n"], "line 3 .* is not an entry; the file was changed"),
        ([lines[0].replace(b'"version":1', b'"version":2'), *lines[1:]], "line 1 .* does not match its hash"),
    ):
        path.write_bytes(b"".join(changed))
        with pytest.raises(FormatError, match=message):
            ChainedFile(path).read()


def test_another_version_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(chained_file, "_HEADER", {"format": "sfumato ledger", "version": 2})
        patch.setattr(chained_file, "VERSION", 2)
        written(path)
    with pytest.raises(FormatError, match="has version 2, but this sfumato reads version 1"):
        ChainedFile(path).read()


@pytest.mark.parametrize("raw", [b"x,y\n1,2\n", b"no newline", b"\n", b"\x00" * 99, b"{}\n", b"[" * 10**5 + b"\n"])
def test_a_file_of_another_kind_is_not_written_to(raw: bytes, path: Path) -> None:
    path.write_bytes(raw)
    for act in (ChainedFile(path).read, lambda: append(path, {})):
        with pytest.raises(FormatError, match=r"does not start like a sfumato ledger|line 1 "):
            act()
    assert path.read_bytes() == raw


def test_deep_or_strange_json_is_refused(path: Path) -> None:
    good = written(path)
    for text in (
        '{"body":' * 10**5,
        '{"body":{"a":' + "[" * 10**5,
        "9" * 10**5,
        '{"body":{},"body":{}}',
        '{"body":NaN}',
    ):
        path.write_bytes(good + text.encode() + b"\n")
        with pytest.raises(FormatError, match=r"line 5 .* is not an entry"):
            ChainedFile(path).read()


# ---------------------------------------------------------------- wrong use


def test_a_path_that_cannot_be_a_ledger_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in (".", "pipe", "loop/x", "no folder/ledger"):
        with pytest.raises(InputError, match="path is"):
            append(tmp_path / name, {})
    for name in (".", "pipe"):
        with pytest.raises(InputError, match="not a file"):
            ChainedFile(tmp_path / name).read()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(path: Path) -> None:
    written(path)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be opened"):
        ChainedFile(path).read()


def test_a_system_without_locks_is_told_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chained_file, "fcntl", None)
    with pytest.raises(InputError, match="no file locks"):
        append(path, {})
    with pytest.raises(InputError, match="no file locks"):
        ChainedFile(path).read()


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("ledger")
    append(tmp_path / "link", {})
    assert (tmp_path / "link").is_symlink()
    assert len(ChainedFile(tmp_path / "ledger").read().entries) == 1


# ---------------------------------------------------------------- several at once, and kills

PREAMBLE = f"""
import json, os, random, select, signal, sys, time, types
sys.path.insert(0, {str(SOURCE)!r})
room = sys.modules["sfumato.ledger"] = types.ModuleType("sfumato.ledger")  # without its door, which needs PyTorch
room.__path__ = [{str(SOURCE / "sfumato" / "ledger")!r}]
from sfumato.ledger.chained_file import ChainedFile

def append(path, body):
    return ChainedFile(path).update(lambda chain: body)
"""


def run(script: str, *arguments: str) -> str:
    """A small program that knows the standard library and this one module: it starts quickly, and may fork."""
    command = [sys.executable, "-S", "-c", PREAMBLE + script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.processes
def test_the_module_needs_the_standard_library_only(path: Path) -> None:
    assert run("print(sorted({name.split('.')[0] for name in sys.modules} & {'numpy', 'torch', 'pandas'}))") == "[]\n"


@pytest.mark.processes
def test_four_processes_at_once_lose_nothing(path: Path) -> None:
    script = """
for who in range(4):
    if os.fork() == 0:
        for number in range(50):
            append(sys.argv[1], {"who": who, "number": number, "text": "x" * 20_000 * (number % 7 == 0)})
        os._exit(0)
assert [os.wait()[1] for _ in range(4)] == [0] * 4
"""
    run(script, str(path))
    chain = ChainedFile(path).verify()
    assert [entry.number for entry in chain.entries] == list(range(1, 201))
    for who in range(4):
        mine = [entry.body["number"] for entry in chain.entries if entry.body["who"] == who]
        assert mine == list(range(50))
    assert chain.torn is None
    assert chain.repaired == ()


def test_updates_of_several_threads_and_readers_see_each_other(path: Path) -> None:
    file, seen = ChainedFile(path), list[Chain]()

    def work() -> None:
        for _ in range(20):
            file.update(lambda chain: {"count": len(chain.entries)})
            seen.append(file.read())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [body["count"] for body in bodies(file.read())] == list(range(60))
    assert all(chain.torn is None for chain in seen)  # no one saw a line half written


@pytest.mark.processes
def test_a_file_that_is_replaced_while_one_waits_is_not_written_to(path: Path) -> None:
    script = """
import fcntl
path = sys.argv[1]
append(path, {"n": 1})
handle = os.open(path, os.O_RDWR)
fcntl.flock(handle, fcntl.LOCK_EX)
if os.fork() == 0:
    append(path, {"n": 2})
    os._exit(0)
time.sleep(0.3)
open(path + ".copy", "wb").write(open(path, "rb").read())
os.replace(path + ".copy", path)
fcntl.flock(handle, fcntl.LOCK_UN)
assert os.wait()[1] == 0
"""
    run(script, str(path))
    assert bodies(ChainedFile(path).read()) == [{"n": 1}, {"n": 2}]


KILL_AT_RANDOM = """
folder, kills, chance = sys.argv[1], int(sys.argv[2]), random.Random(int(sys.argv[3]))
interrupted = told = 0
for kill in range(kills):
    if kill % 25 == 0:  # a new file now and then: a long one is slow to check
        path, known = f"{folder}/ledger{kill}", {}
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        number = 0
        while True:
            size = chance.choice([0, 100, 100_000])
            entry = append(path, {"kill": kill, "number": number, "text": "x" * size})
            os.write(writing, json.dumps([entry.number, entry.hash, number]).encode() + b"\\n")
            number += 1
    os.close(writing)
    if kill % 2:
        select.select([reading], [], [], 10)  # on a busy machine, too, something is acknowledged
    time.sleep(chance.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    acknowledged = [json.loads(line) for line in open(reading, "rb")]
    for number, name, own in acknowledged:
        known[number] = (name, kill, own)
    chain = ChainedFile(path).read()
    interrupted += len(chain.unfinished) > 0
    there = {entry.number: (entry.hash, entry.body["kill"], entry.body["number"]) for entry in chain.entries}
    assert list(there) == list(range(1, len(there) + 1))
    assert all(there[number] == what for number, what in known.items()), "an acknowledged entry is gone"
    assert len(there) - len(known) in (0, 1), "more than the one entry that was not told about"
    assert len({what[1:] for what in there.values()}) == len(there), "an entry is there twice"
    known = there
    if chance.random() < 0.3:
        entry = append(path, {"kill": kill, "number": -1})
        known[entry.number] = (entry.hash, kill, -1)
    told += len(acknowledged)
print(interrupted, told)
"""


@pytest.mark.processes
@pytest.mark.parametrize("kills", [60, pytest.param(240, marks=pytest.mark.slow)])
def test_kills_at_random_moments_lose_nothing_that_was_acknowledged(tmp_path: Path, kills: int) -> None:
    interrupted, acknowledged = map(int, run(KILL_AT_RANDOM, str(tmp_path), str(kills), "1").split())
    assert interrupted > 0
    assert acknowledged >= kills // 2


def test_what_is_torn_hides_no_entry_and_takes_no_time(path: Path) -> None:
    whole = written(path)
    *before, last = whole.splitlines(keepends=True)
    for begun in (1, 8, 9, len(last) // 2):
        path.write_bytes(b"".join(before) + last[:begun] + last.rstrip())
        with pytest.raises(FormatError, match="something before an entry"):
            ChainedFile(path).read()
    path.write_bytes(whole + b" (torn)\n" * 300_000)  # half a minute, were each line added to a copy of all before
    begin = time.process_time()
    assert len(ChainedFile(path).read().entries) == len(BODIES)
    assert time.process_time() - begin < 10
