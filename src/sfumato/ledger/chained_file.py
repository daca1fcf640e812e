"""The file of a ledger: JSON lines that only grow in number, each with a hash over the one before.

A line counts as soon as all of it is there. The newline is written when the line itself is on the disk, so a line that
ends well is whole. What a kill leaves of a line is torn, and stays: the next line to be written first marks it, and
names its bytes in its own hash, so that an interrupted write can be told from a change. The hashes find damage; they
are no signature, for whoever can write the file can write all of it anew. Nor can the file know that lines at its end
were taken away: keep ``head`` elsewhere, and give it to ``verify``.

Why not SQLite: its file is whole only together with its journal. Killed at any of 13 of the 24 writes that add an entry
of 50 kB, it leaves a file that cannot be read at all without the journal, as after a move, a copy or a backup; in WAL
mode such a copy lacks releases that were acknowledged. This file, cut at any byte, keeps all lines before the cut.
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

from ..errors import FormatError, InputError
from ..files import sync_folder

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

FORMAT, VERSION = "sfumato ledger", 1
#: What the first line has in the place of the hash of a line before, and the head of a file without lines.
ROOT = hashlib.sha256(f"{FORMAT} {VERSION}".encode()).hexdigest()
#: A longer line was not written by us; it is read into memory as a whole.
LONGEST_LINE = 1 << 30

_HEADER = {"format": FORMAT, "version": VERSION}
_START = f'{{"body":{{"format":"{FORMAT}"'.encode()
#: Ends what an interrupted write left: no entry ends like this.
_MARK = b" (torn)"
_ROOM_FOR_MARKS = 1 << 16


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
    """What the file says: its ``lines``, a header and then entries, and what interrupted writes have left.

    ``torn`` is at the end and still unnamed; ``repaired`` lies between lines, named by the next of them. ``unfinished``
    is what has to be written before the next line, piece by piece.
    """

    lines: tuple[Entry, ...] = ()
    torn: Torn | None = None
    repaired: tuple[Torn, ...] = ()
    unfinished: tuple[bytes, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.lines[1:]

    @property
    def head(self) -> str:
        """The hash of the last line."""
        return self.lines[-1].hash if self.lines else ROOT

    def has(self, head: str) -> bool:
        """Whether the file once ended with the hash ``head``."""
        return head == ROOT or any(line.hash == head for line in self.lines)


@dataclass(frozen=True)
class ChainedFile:
    """The file at ``path``, which is made with the first update.

    Guarantee: an entry that ``update`` has given back is on the disk and stays, whatever is killed and whoever else
    writes at the same time; what was written before is never changed. After an exception the entry may be there or
    not (read again), but never in part. Writers and readers wait for each other (``flock``), so all of them must use
    this class, on a file system that has locks.
    """

    path: str | os.PathLike[str]

    def read(self) -> Chain:
        """All of it, checked; ``FormatError`` where a line was changed. A file that is not there has no entries."""
        try:
            with self._locked(os.O_RDONLY) as handle:
                return self._scan(handle)
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

    def update(self, make: Callable[[Chain], dict[str, Any]]) -> Entry:
        """Write what ``make`` makes of the chain that is there. No one else can write in between.

        ``make`` must not use this file itself: it would wait for itself. Where it raises, nothing is written.
        """
        with self._locked(os.O_RDWR | os.O_APPEND | os.O_CREAT) as handle:
            size = os.fstat(handle).st_size
            if size == 0:
                # before anything is in it: whoever finds something in it may rely on the folder
                sync_folder(os.path.dirname(self._target()))
            chain = self._scan(handle)
            body = make(chain)
            _check_body(body)
            pieces, entry = _pieces(chain, body)
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(handle, rest) :]
                os.fsync(handle)
            os.lseek(handle, size, os.SEEK_SET)
            with os.fdopen(handle, "rb", closefd=False) as file:
                if file.read(sum(map(len, pieces)) + 1) != b"".join(pieces):
                    raise FormatError(
                        f"{self.path} does not have what was just written to it: another program writes to it without "
                        "asking for its lock, or the disk fails."
                    )
            return entry

    def _target(self) -> str:
        return os.path.realpath(os.fspath(self.path))

    @contextlib.contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        """The open file, locked: for oneself where it may be written, else with other readers."""
        if fcntl is None:
            raise InputError("this system has no file locks (flock), which a ledger needs; keep it on Linux or macOS.")
        while True:
            handle = self._open(flags)
            try:
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH if flags == os.O_RDONLY else fcntl.LOCK_EX)
                except OSError as error:
                    raise InputError(
                        f"path is {str(self.path)!r}, which cannot be locked ({error.strerror}); keep a ledger on a "
                        "disk of this machine."
                    ) from error
                if self._is_still_there(handle):  # else it was replaced or removed while we waited
                    yield handle
                    return
            finally:
                with contextlib.suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_UN)  # closing is not enough where a fork has the file too
                os.close(handle)

    def _open(self, flags: int) -> int:
        try:
            # O_NONBLOCK: a pipe must be refused, not waited for
            handle = os.open(self._target(), flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
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

    def _is_still_there(self, handle: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), os.stat(self._target()))
        return False

    def _scan(self, handle: int) -> Chain:
        os.lseek(handle, 0, os.SEEK_SET)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return _Scan(str(self.path)).over(file)


class _Scan:
    """One pass over the lines of a file, in order."""

    def __init__(self, path: str) -> None:
        self.path, self.place = path, 0
        self.lines: list[Entry] = []
        self.repaired: list[Torn] = []
        # What interrupted writes left after the last line that counts, with the marks and newlines that end it.
        self.left = b""

    def over(self, file: BinaryIO) -> Chain:
        limit = LONGEST_LINE + _ROOM_FOR_MARKS
        unfinished: tuple[bytes, ...] = ()
        while line := file.readline(limit):
            self.place += 1
            if self.place == 1 and not _starts_well(line):
                raise FormatError(
                    f"{self.path} does not start like a {FORMAT}; it is damaged, or another kind of file."
                )
            if len(line) == limit:
                raise self.error(f"is longer than {LONGEST_LINE >> 20} MiB")
            if line.endswith(_MARK + b"\n"):
                self.left += line
            elif line.endswith(b"\n"):
                self.take(line[:-1])
            elif self.is_whole(line):
                self.take(line)
                unfinished = (b"\n",)
            else:
                self.left += line
                unfinished = (_MARK, b"\n")
        return Chain(tuple(self.lines), self.torn(), tuple(self.repaired), unfinished)

    def torn(self) -> Torn | None:
        left = self.left.removesuffix(_MARK + b"\n")
        return Torn(len(self.lines) - 1, len(left), hashlib.sha256(left).hexdigest()) if self.left else None

    def is_whole(self, line: bytes) -> bool:
        """Whether ``line``, the last one, lacks nothing but its newline: a kill, or an editor, took that alone."""
        try:
            _, end = json.JSONDecoder().raw_decode(text := line.decode("latin-1"))
        except (ValueError, RecursionError):
            return False
        rest = text[end:].encode("latin-1")
        # older versions marked such lines as torn; one that was killed meanwhile left the beginning of a mark
        if len(rest) > 1 and _MARK.startswith(rest.replace(_MARK, b"")):
            return False
        if rest:
            raise self.error("has something else than a newline at its end")
        return True

    def take(self, line: bytes) -> None:
        """A line with a proper end: it must be the next entry."""
        tree, torn, number = self.parsed(line), self.torn(), len(self.lines)
        if tree["number"] != number:
            why = "lines are missing, twice there or in another order"
            raise self.error(f"has the number {tree['number']!r:.40} where {number} is next: {why}")
        if tree["previous"] != (self.lines[-1].hash if self.lines else ROOT):
            raise self.error("does not follow from the line before it")
        if tree["torn"] != (None if torn is None else torn.to_tree()):
            raise self.error("does not name what lies between it and the entry before")
        self.repaired += [] if torn is None else [torn]
        self.lines.append(Entry(number, tree["body"], tree["hash"]))
        self.left = b""

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
        if not self.lines and tree["number"] == 0 and version != VERSION:
            raise FormatError(f"{self.path} has version {version!r:.40}, but this sfumato reads version {VERSION}.")
        return tree | {"hash": stated}

    def error(self, what: str) -> FormatError:
        return FormatError(
            f"line {self.place} of {self.path} {what}; the file was changed after it was written, or damaged; restore "
            "a backup."
        )


def is_hash(value: object) -> bool:
    """Whether ``value`` is a SHA-256 hash as we write them."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _starts_well(line: bytes) -> bool:
    """Whether ``line`` is the first of a ledger, or what an interrupted write left of it."""
    same = next((length for length in range(len(_START), 0, -1) if line.startswith(_START[:length])), 0)
    return same == len(_START) or (same > 0 and set(line[same:]) <= set(_MARK + b"\n"))


def _text(tree: dict[str, Any]) -> bytes:
    """The one way to write ``tree``."""
    return json.dumps(tree, sort_keys=True, allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _hash(tree: dict[str, Any]) -> str:
    return hashlib.sha256(_text(tree)).hexdigest()


def _check_body(body: dict[str, Any]) -> None:
    """Refuse what would not come back from its text the same."""
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


def _pieces(chain: Chain, body: dict[str, Any]) -> tuple[list[bytes], Entry]:
    """What to write, each piece once the one before is on the disk, and the entry that it becomes."""
    pieces, torn, head = list(chain.unfinished), chain.torn, chain.head
    number = len(chain.lines)
    for content in [_HEADER, body] if number == 0 else [body]:
        tree = {"body": content, "number": number, "previous": head, "torn": None if torn is None else torn.to_tree()}
        entry = Entry(number, content, _hash(tree))
        pieces += [_text(tree | {"hash": entry.hash}), b"\n"]
        number, head, torn = number + 1, entry.hash, None
    return pieces, entry
