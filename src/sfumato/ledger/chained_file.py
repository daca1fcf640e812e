"""The file of a ledger: JSON lines that only grow in number, each with a hash over the one before.

A line counts as soon as all of it is there, however it ends: its hash says that it is whole. The newline is written
when the line itself is on the disk. Other programs may lose it, flip it or write others (editors, a file system after a
crash); blanks at the ends of lines change nothing. What a kill leaves of a line is torn, and stays, as does anything
else that is no entry: the next line to be written first marks it, and names its bytes in its own hash, so that an
interrupted write can be told from a change. ``Chain.remarks`` says what was found. The hashes find damage; they are no
signature, for whoever can write the file can write all of it anew. Nor can the file know that lines at its end were
taken away: keep ``head`` elsewhere, and give it to ``verify``.

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
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, BinaryIO

from ..errors import FormatError, InputError
from ..files import sync_folder, told_of_failures

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
#: Every entry begins like this. Where it stands anywhere else, an entry may be hidden, and is not passed over.
_BODY = b'{"body":'
#: Ends what an interrupted write left: no entry ends like this.
_MARK = b" (torn)"
#: What editors put at the ends of lines, or take away.
_BLANKS = b" \t\r\n"
_ROOM_FOR_MARKS = 1 << 16


@dataclass(frozen=True)
class Entry:
    """A line that counts: its number (the header has 0, so the first is 1), what it says, and its hash."""

    number: int
    body: dict[str, Any]
    hash: str


@dataclass(frozen=True)
class Torn:
    """What is no entry after line ``after`` (−1: before the header): so many bytes, with this hash."""

    after: int
    size: int
    sha256: str

    def to_tree(self) -> dict[str, Any]:
        return {"bytes": self.size, "sha256": self.sha256}


@dataclass(frozen=True)
class Chain:
    """What the file says: its ``lines``, a header and then entries, and what else is in it.

    ``torn`` is at the end and still unnamed; ``repaired`` lies between lines, named by the next of them. ``unfinished``
    is what has to be written before the next line, piece by piece. ``respaced``: another program changed blanks at the
    ends of lines. ``disowned`` are entries that an older version took for torn, and that count all the same.
    """

    lines: tuple[Entry, ...] = ()
    torn: Torn | None = None
    repaired: tuple[Torn, ...] = ()
    unfinished: tuple[bytes, ...] = ()
    respaced: bool = False
    disowned: tuple[Entry, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the owner should know about how the file ends and how it was treated; nothing where all is usual."""
        said = []
        if self.torn is not None and self.torn.size > 0:
            said.append(
                f"TORN: {self.torn.size} bytes at the end are no entry; an interrupted write or damage left them. They "
                "count for nothing, and the next line marks them. A write that was interrupted gave no release out; if "
                "one is out that the ledger does not list, restore a backup, or record it."
            )
        elif self.torn is not None or self.unfinished:
            said.append(
                "The last line has lost its newline to an interrupted write or an editor; it is whole, and counts."
            )
        if self.respaced:
            said.append("Another program has changed blanks at the ends of lines; all entries are whole, and count.")
        for entry in self.disowned:
            said.append(
                f"Entry {entry.number} ({entry.hash[:16]}…) is whole and counts, but an older version took it for "
                "torn: later releases were designed without it."
            )
        return tuple(said)

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
            with told_of_failures(self.path, "what the ledger had is there, and this release was not given out"):
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


@dataclass(frozen=True)
class _Tip:
    """A line that the next one may follow (None: it is the first), and what lies after it that is no entry."""

    last: Entry | None = None
    left: bytearray = field(default_factory=bytearray)  # it grows: a file may have a million torn lines

    @property
    def number(self) -> int:
        return -1 if self.last is None else self.last.number

    @property
    def head(self) -> str:
        return ROOT if self.last is None else self.last.hash

    @property
    def torn(self) -> Torn | None:
        left = self.left.removesuffix(_MARK + b"\n")
        return Torn(self.number, len(left), hashlib.sha256(left).hexdigest()) if self.left else None

    def names(self, tree: dict[str, Any]) -> bool:
        """Whether the line ``tree`` names what lies before it."""
        return bool(tree["torn"] == (None if self.torn is None else self.torn.to_tree()))


class _Scan:
    """One pass over the lines of a file, in order."""

    def __init__(self, path: str) -> None:
        self.path, self.place = path, 0
        self.lines: list[Entry] = []
        self.repaired: list[Torn] = []
        self.disowned: list[Entry] = []
        self.respaced = False
        # Two where the last line is whole and marked as torn: older versions went on as if it were not there.
        self.tips = [_Tip()]

    def over(self, file: BinaryIO) -> Chain:
        limit = LONGEST_LINE + _ROOM_FOR_MARKS
        ended = True
        while line := file.readline(limit):
            self.place += 1
            if self.place == 1 and not _starts_well(line):
                raise FormatError(
                    f"{self.path} does not start like a {FORMAT}; it is damaged, or another kind of file."
                )
            if len(line) == limit:
                raise self.error(f"is longer than {LONGEST_LINE >> 20} MiB")
            ended = line.endswith(b"\n")
            self.add(line, ended)
        tip = self.tips[0]
        marked = tip.left.endswith(_MARK + b"\n")
        unfinished = (_MARK, b"\n") if tip.left and not marked else () if ended else (b"\n",)
        found = tuple(self.lines), tip.torn, tuple(self.repaired), unfinished, self.respaced, tuple(self.disowned)
        return Chain(*found)

    def add(self, line: bytes, ended: bool) -> None:
        """The next line, with all that ends it: an entry, blanks, or what is torn."""
        start = len(line) - len(line.lstrip(_BLANKS))
        kept = line.rstrip(_BLANKS) + b"\n" if ended else line
        self.respaced |= kept != line
        try:
            tree, end = json.JSONDecoder().raw_decode(line.decode("latin-1"), start)
        except (ValueError, RecursionError):
            end = 0
        if end > 0:
            self.respaced |= start > 0
            self.take(self.checked(tree, line[start:end]), kept, kept[end:])
        elif start == len(line) and (ended or not self.tips[0].left):
            self.respaced = True
        elif not ended or kept.endswith(_MARK + b"\n"):
            if line.find(_BODY, 1) > 0:
                raise self.error("has something before an entry")
            for tip in self.tips:
                tip.left.extend(kept)
        else:
            raise self.error("is not an entry")

    def take(self, tree: dict[str, Any], line: bytes, rest: bytes) -> None:
        """An entry, and the ``rest`` of its ``line``; it must follow from what was there before."""
        following = [tip for tip in self.tips if tree["previous"] == tip.head and tree["number"] == tip.number + 1]
        if not following:
            if tree["number"] != (number := self.tips[0].number + 1):
                why = "lines are missing, twice there or in another order"
                raise self.error(f"has the number {tree['number']!r:.40} where {number} is next: {why}")
            raise self.error("does not follow from the line before it")
        tip = next((tip for tip in following if tip.names(tree)), None)
        if tip is None:
            raise self.error("does not name what lies between it and the entry before")
        if _BODY in rest:
            raise self.error("has another entry at its end")
        self.disowned += self.lines[-1:] if tip is not self.tips[0] else []
        self.repaired += [] if tip.torn is None else [tip.torn]
        entry = Entry(tree["number"], tree["body"], tree["hash"])
        self.lines.append(entry)
        left = rest if rest.strip(_BLANKS) else b""
        self.respaced |= not left and rest not in (b"", b"\n")
        tip.left.extend(line)
        self.tips = [_Tip(entry, bytearray(left)), *([tip] if _MARK in rest else [])]

    def checked(self, tree: Any, text: bytes) -> dict[str, Any]:
        """The parts of a line: written as we write them, and with the hash that it states."""
        if not isinstance(tree, dict) or not isinstance(tree.get("body"), dict) or not _is_text_of(tree, text):
            raise self.error("is not an entry")
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


def _is_text_of(tree: dict[str, Any], text: bytes) -> bool:
    """Whether ``text`` is the one way to write ``tree``."""
    try:
        return _text(tree) == text
    except (ValueError, RecursionError):
        return False


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
    number = chain.lines[-1].number + 1 if chain.lines else 0
    for content in [_HEADER, body] if number == 0 else [body]:
        tree = {"body": content, "number": number, "previous": head, "torn": None if torn is None else torn.to_tree()}
        entry = Entry(number, content, _hash(tree))
        pieces += [_text(tree | {"hash": entry.hash}), b"\n"]
        number, head, torn = number + 1, entry.hash, None
    return pieces, entry
