"""The paper a ledger is written on: a text file of JSON lines that only grows, each with a hash over the one before.

The newline is what makes a line count: it is written when the line itself is on the disk. What a crash leaves
without one is torn, and stays: the next line to be written first marks it, and names its bytes in its own hash. So
an interrupted write can be told from a change. The hashes find damage; they are no signature, for whoever can write
the file can write all of it anew. Nor can the file itself know that lines at its end were taken away: keep ``head``
elsewhere, and give it to ``verify``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, BinaryIO

from ..errors import FormatError, InputError, SfumatoError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

FORMAT, VERSION = "sfumato ledger", 1
#: What the first line has in the place of the hash of a line before, and the head of a file without lines.
ROOT = hashlib.sha256(f"{FORMAT} {VERSION}".encode()).hexdigest()
LONGEST_LINE = 1 << 30

_HEADER = {"format": FORMAT, "version": VERSION}
_START = f'{{"body":{{"format":"{FORMAT}"'.encode()
#: Ends what an interrupted write left, so that even a whole line cannot count later on: no entry ends like this.
_MARK = b" (torn)"
_ROOM_FOR_MARKS = 1 << 16
_CHANGED = "the file was changed after it was written, or damaged; restore a backup"


class Moved(SfumatoError):  # noqa: N818
    """Someone else has written to the file since it was read; read it again and decide again."""


@dataclass(frozen=True)
class Entry:
    """A line that counts: its number (the header has 0, so the first is 1), what it says, and its hash."""

    number: int
    body: dict[str, Any]
    hash: str


@dataclass(frozen=True)
class Torn:
    """What interrupted writes left after line ``after`` (−1: before the header): so many bytes, with this hash."""

    after: int
    size: int
    sha256: str

    def to_tree(self) -> dict[str, Any]:
        return {"bytes": self.size, "sha256": self.sha256}


@dataclass(frozen=True)
class Chain:
    """What the file says: its entries, the hash of its last line, and what interrupted writes have left.

    ``torn`` is at the end and still unnamed; ``repaired`` lies between lines, named by the next of them.
    """

    entries: tuple[Entry, ...] = ()
    head: str = ROOT
    torn: Torn | None = None
    repaired: tuple[Torn, ...] = ()
    header: Entry | None = None

    def has(self, head: str) -> bool:
        """Whether the file once ended with the hash ``head``."""
        lines = self.entries if self.header is None else (self.header, *self.entries)
        return head == ROOT or any(line.hash == head for line in lines)


@dataclass(frozen=True)
class ChainedFile:
    """The file at ``path``, which is made with the first append.

    Guarantee: an entry that ``append`` has given back is on the disk and stays, whatever is killed and whoever else
    appends at the same time; what was written before is never changed. After an exception the entry may be there or
    not (read again), but never in part. Writers and readers wait for each other (``flock``), so all of them must use
    this class, on a file system that has locks.
    """

    path: str | os.PathLike[str]

    def read(self) -> Chain:
        """All of it, checked; ``FormatError`` where a line was changed. A file that is not there has no entries."""
        try:
            with self._locked(os.O_RDONLY) as handle:
                return self._scan(handle).chain()
        except FileNotFoundError:
            return Chain()

    def verify(self, head: str | None = None) -> Chain:
        """``read``, and check that an earlier ``head``, kept elsewhere, is among its hashes."""
        if head is not None and not is_hash(head):
            raise InputError(f"head is {str(head)[:80]!r}; give the 64 hexadecimal digits that were kept.")
        chain = self.read()
        if head is not None and not chain.has(head):
            raise FormatError(
                f"{self.path} has no line with the hash {head}: lines at its end were taken away, an old copy was put "
                "in its place, or it is another ledger; restore a backup."
            )
        return chain

    def append(self, body: dict[str, Any], *, expect: str | None = None) -> Entry:
        """Write ``body`` as the next line; with ``expect``, only if that is still the head (else ``Moved``)."""
        text = _checked(body)

        def next_text(chain: Chain) -> bytes:
            if expect is not None and chain.head != expect:
                raise Moved(f"{self.path} ends with {chain.head}, not with {expect} any more; read it again.")
            return text

        return self._extend(next_text, keep=False)

    def update(self, make: Callable[[Chain], dict[str, Any]]) -> Entry:
        """Write what ``make`` makes of the chain that is there. No one else can write in between.

        ``make`` must not use this file itself: it would wait for itself. Where it raises, nothing is written.
        """
        return self._extend(lambda chain: _checked(make(chain)), keep=True)

    def _extend(self, next_text: Callable[[Chain], bytes], *, keep: bool) -> Entry:
        with self._locked(os.O_RDWR | os.O_APPEND | os.O_CREAT) as handle:
            size = os.fstat(handle).st_size
            if size == 0:
                # before anything is in it: whoever finds something in it may rely on the folder
                _sync_folder(os.path.dirname(self._target()))
            scan = self._scan(handle, keep=keep)
            pieces, entry = _pieces(scan, next_text(scan.chain()))
            for piece in pieces:
                _put(handle, piece)
            self._check_written(handle, size, b"".join(pieces))
            return entry

    def _target(self) -> str:
        return os.path.realpath(os.fspath(self.path))

    @contextlib.contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        """The open file, locked: for oneself where it may be written, else with other readers."""
        if fcntl is None:
            raise InputError("this system has no file locks (flock), which a ledger needs; keep it on Linux or macOS.")
        kind = fcntl.LOCK_SH if flags == os.O_RDONLY else fcntl.LOCK_EX
        while True:
            handle = self._open(flags)
            try:
                self._lock(handle, kind)
                if self._is_still_there(handle):  # else it was replaced or removed while we waited
                    yield handle
                    return
            finally:
                with contextlib.suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_UN)  # closing is not enough where a fork has the file too
                os.close(handle)

    def _open(self, flags: int) -> int:
        target = self._target()
        try:
            # O_NONBLOCK: a pipe must be refused, not waited for
            handle = os.open(target, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and flags == os.O_RDONLY:
                raise
            raise InputError(
                f"path is {str(self.path)!r}, which cannot be opened ({error.strerror}); give the name of a ledger "
                "file, or of a new one in a folder that is there."
            ) from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise InputError(f"path is {str(self.path)!r}, which is not a file; give the name of a ledger file.")
        return handle

    def _lock(self, handle: int, kind: int) -> None:
        assert fcntl is not None
        try:
            fcntl.flock(handle, kind)
        except OSError as error:
            raise InputError(
                f"path is {str(self.path)!r}, which cannot be locked ({error.strerror}); keep a ledger on a disk of "
                "this machine."
            ) from error

    def _is_still_there(self, handle: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), os.stat(self._target()))
        return False

    def _scan(self, handle: int, *, keep: bool = True) -> _Scan:
        """Check every line; the entries of them are in the chain with ``keep``, else only what the next line needs."""
        os.lseek(handle, 0, os.SEEK_SET)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return _Scan(str(self.path), keep).over(file)

    def _check_written(self, handle: int, start: int, written: bytes) -> None:
        os.lseek(handle, start, os.SEEK_SET)
        with os.fdopen(handle, "rb", closefd=False) as file:
            found = file.read(len(written) + 1)
        if found != written:
            raise FormatError(
                f"{self.path} does not have what was just written to it: another program writes to it without asking "
                "for its lock, or the disk fails."
            )


class _Scan:
    """One pass over the lines of a file, in order."""

    def __init__(self, path: str, keep: bool) -> None:
        self.path, self.keep = path, keep
        self.place, self.next, self.head = 0, 0, ROOT
        self.header: Entry | None = None
        self.entries: list[Entry] = []
        self.repaired: list[Torn] = []
        # What interrupted writes left after the last line that counts, without the mark and newline at its end.
        self.left: tuple[int, Any] | None = None
        self.marked = False

    def over(self, file: BinaryIO) -> _Scan:
        limit = LONGEST_LINE + _ROOM_FOR_MARKS
        while line := file.readline(limit):
            self.place += 1
            if self.place == 1 and not _starts_well(line):
                raise FormatError(
                    f"{self.path} does not start like a {FORMAT}; it is damaged, or another kind of file."
                )
            if len(line) == limit:
                raise self.error(f"is longer than {LONGEST_LINE >> 20} MiB")
            if line.endswith(_MARK + b"\n"):
                self.leave(line[: -len(_MARK) - 1], marked=True)
            elif line.endswith(b"\n"):
                self.take(line[:-1])
            else:
                self.leave(line, marked=False)
        return self

    def chain(self) -> Chain:
        return Chain(tuple(self.entries), self.head, self.torn(), tuple(self.repaired), self.header)

    def torn(self) -> Torn | None:
        return None if self.left is None else Torn(self.next - 1, self.left[0], self.left[1].hexdigest())

    def leave(self, fragment: bytes, *, marked: bool) -> None:
        size, state = self.left or (0, hashlib.sha256())
        if self.marked:
            fragment = _MARK + b"\n" + fragment
        state.update(fragment)
        self.left, self.marked = (size + len(fragment), state), marked

    def take(self, line: bytes) -> None:
        """A line that ends as those that count do: it must be the next entry."""
        tree, torn = self.parsed(line), self.torn()
        if tree["number"] != self.next:
            why = "lines are missing, twice there or in another order"
            raise self.error(f"has the number {tree['number']!r:.40} where {self.next} is next: {why}")
        if tree["previous"] != self.head:
            raise self.error("does not follow from the line before it")
        if tree["torn"] != (None if torn is None else torn.to_tree()):
            raise self.error("does not name what lies between it and the entry before")
        entry = Entry(self.next, tree["body"], tree["hash"])
        if torn is not None:
            self.repaired.append(torn)
        if self.next == 0:
            self.header = entry
        elif self.keep:
            self.entries.append(entry)
        self.next, self.head, self.left, self.marked = self.next + 1, entry.hash, None, False

    def parsed(self, line: bytes) -> dict[str, Any]:
        """The parts of a line that is written as we write them and matches its hash."""
        try:
            tree = json.loads(line)
            if not isinstance(tree, dict) or not isinstance(tree.get("body"), dict) or _text(tree) != line:
                raise ValueError("it is not written as we write lines")
        except (ValueError, RecursionError):
            raise self.error("is not an entry") from None
        stated = tree.pop("hash", None)
        if tree.keys() != {"body", "number", "previous", "torn"} or stated != _hash(tree):
            raise self.error("does not match its hash")
        version = tree["body"].get("version")
        if self.next == 0 and tree["number"] == 0 and version != VERSION:
            raise FormatError(f"{self.path} has version {version!r:.40}, but this sfumato reads version {VERSION}.")
        return tree | {"hash": stated}

    def error(self, what: str) -> FormatError:
        return FormatError(f"line {self.place} of {self.path} {what}; {_CHANGED}.")


def is_hash(value: object) -> bool:
    """Whether ``value`` is a SHA-256 hash as we write them."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _starts_well(line: bytes) -> bool:
    """Whether ``line`` is the first of a ledger, or what an interrupted write left of it."""
    same = next((place for place, (a, b) in enumerate(zip(line, _START)) if a != b), min(len(line), len(_START)))
    return same == len(_START) or (same > 0 and set(line[same:]) <= set(_MARK + b"\n"))


def _text(tree: dict[str, Any]) -> bytes:
    """The one way to write ``tree``."""
    return json.dumps(tree, sort_keys=True, allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _hash(tree: dict[str, Any]) -> str:
    return hashlib.sha256(_text(tree)).hexdigest()


def _checked(body: dict[str, Any]) -> bytes:
    """``body`` as text, if it comes back from it the same."""
    try:
        text = _text(body)
        same = isinstance(body, dict) and json.loads(text) == body
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"an entry must be plain JSON, and this one is not: {error}.") from error
    if not same:
        raise InputError(
            "an entry must be a dict of text keys, lists, texts and numbers; others do not come back as given."
        )
    if len(text) > LONGEST_LINE - 1024:
        raise InputError(f"an entry takes {len(text)} bytes; at most {LONGEST_LINE >> 20} MiB go into a line.")
    return text


def _pieces(scan: _Scan, body: bytes) -> tuple[list[bytes], Entry]:
    """What to write, each piece once the one before is on the disk, and the entry that it becomes.

    A kill leaves any beginning of this. A line counts from its newline on; what has no newline yet is torn, and
    what has the mark before it stays so, though it were a whole line.
    """
    pieces = [_MARK, b"\n"] if scan.left is not None and not scan.marked else []
    torn = scan.torn()
    number, head = scan.next, scan.head
    for content in [_HEADER, json.loads(body)] if number == 0 else [json.loads(body)]:
        tree = {"body": content, "number": number, "previous": head, "torn": None if torn is None else torn.to_tree()}
        entry = Entry(number, content, _hash(tree))
        pieces += [_text(tree | {"hash": entry.hash}), b"\n"]
        number, head, torn = number + 1, entry.hash, None
    return pieces, entry


def _put(handle: int, piece: bytes) -> None:
    """Write all of ``piece`` at the end of the file, and to the disk."""
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):  # some systems cannot sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
