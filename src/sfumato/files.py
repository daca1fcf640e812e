"""Files that are written completely or not at all, whatever fails or is killed in between.

Some hold the truth, or what was learnt with it: those are private, and say so where a person begins to read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import InputError, ResourceError

#: What a file or a page says first that must stay with the owner of the data.
OWNER_ONLY = "OWNER ONLY: this uses the truth; do not publish this output."

#: What a kill may leave beside a file, for those who clean up.
TEMPORARY_NAME = r"\.sfumato-[0-9a-f]+\.tmp"

#: Failures that another path would not have, and those that a disk with room and in order would not have.
_WRONG_PATH = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG),
    *(errno.EISDIR, errno.ENOTDIR, errno.ENOENT, errno.ELOOP),
}
_DISK = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota is used up",
    errno.EFBIG: "the file is larger than is allowed here",
    errno.EIO: "the disk fails",
}


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], check: Callable[[str], object] = lambda name: None, *, private: bool = False
) -> Iterator[BinaryIO]:
    """A new file to be written to and read, which takes the place of ``path`` at the end of the block.

    Guarantee: it is written under a temporary name in the same folder, flushed to the disk, given to ``check`` to be
    read back, and only then moved into place. A failure leaves the old file and nothing else. Links are followed. A
    ``private`` one can never be read by others (mode 0600), whatever the umask is and whoever could read the old file.
    """
    folder = os.path.dirname(target := os.path.realpath(os.fspath(path)))
    # a pipe or a device such as /dev/null must not become a file
    if not os.path.isdir(folder) or (os.path.lexists(target) and not os.path.isfile(target)):
        raise InputError(f"path is {str(path)!r}; give the name of a file in a folder that is there.")
    temporary = os.path.join(folder, f".sfumato-{secrets.token_hex(8)}.tmp")
    with told_of_failures(path, "nothing was written, and a file that was there is as it was"):
        try:
            # 0o666 is narrowed by the umask, as for any file that a program makes
            with os.fdopen(_new_file(temporary, 0o600 if private else 0o666), "w+b") as file:
                if private:
                    _for_owner_only(file)
                yield file
                file.flush()
                os.fsync(file.fileno())
            check(temporary)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    sync_folder(folder)


def where_it_leads(path: str | os.PathLike[str]) -> Path:
    """The file behind all links; links that lead in a circle (which ``Path.resolve`` refuses) lead to themselves."""
    return Path(os.path.realpath(path))


@contextlib.contextmanager
def told_of_failures(path: str | os.PathLike[str], kept: str) -> Iterator[None]:
    """What the system says of writing to ``path``, as an error with a remedy; ``kept`` says how things stand then."""
    try:
        yield
    except OSError as error:
        if isinstance(error, ResourceError):
            raise
        if error.errno in _WRONG_PATH:
            raise InputError(f"path is {str(path)!r}, which cannot be written: {error.strerror}.") from error
        if error.errno in _DISK:
            raise ResourceError(
                f"{str(path)!r} cannot be written: {_DISK[error.errno]} ({error.strerror}). Make room, or write to "
                f"another disk, and try again; {kept}."
            ) from error
        raise


def create_private(path: str | os.PathLike[str], content: bytes) -> None:
    """A new file that only its owner can read (mode 0600).

    Guarantee: a file that is there already is never used or replaced (``FileExistsError``), and there is no moment at
    which others could read the new one.
    """
    with (
        told_of_failures(path, "what was begun can be gone on with"),
        os.fdopen(_new_file(path, 0o600), "wb") as file,
    ):
        _for_owner_only(file)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make sure that names given to files in ``folder`` outlast a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _for_owner_only(file: BinaryIO) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), 0o600)  # a strict umask may have taken even the owner's rights


def _new_file(path: str | os.PathLike[str], mode: int) -> int:
    extra = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | extra, mode)
