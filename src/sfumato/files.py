"""Files that are written completely or not at all, whatever fails or is killed in between."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from typing import BinaryIO

from .errors import InputError

#: What a kill may leave beside a file, for those who clean up.
TEMPORARY_NAME = r"\.sfumato-[0-9a-f]+\.tmp"

#: Failures that another path would not have.
_WRONG_PATH = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], check: Callable[[str], object] = lambda name: None) -> Iterator[BinaryIO]:
    """A new file to be written to and read, which takes the place of ``path`` at the end of the block.

    Guarantee: it is written under a temporary name in the same folder, flushed to the disk, given to ``check`` to be
    read back, and only then moved into place. A failure leaves the old file and nothing else. Links are followed.
    """
    folder = os.path.dirname(target := os.path.realpath(os.fspath(path)))
    if os.path.isdir(target) or not os.path.isdir(folder):
        raise InputError(f"path is {str(path)!r}; give the name of a file in a folder that is there.")
    temporary = os.path.join(folder, f".sfumato-{secrets.token_hex(8)}.tmp")
    try:
        # 0o666 is narrowed by the umask, as for any file that a program makes
        with os.fdopen(_new_file(temporary, 0o666), "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        check(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in _WRONG_PATH:
            raise InputError(f"path is {str(path)!r}, which cannot be written: {error.strerror}.") from error
        raise
    sync_folder(folder)


def create_private(path: str | os.PathLike[str], content: bytes) -> None:
    """A new file that only its owner can read (mode 0600).

    Guarantee: a file that is there already is never used or replaced (``FileExistsError``), and there is no moment at
    which others could read the new one.
    """
    with os.fdopen(_new_file(path, 0o600), "wb") as file:
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), 0o600)  # a strict umask may have taken even the owner's rights
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


def _new_file(path: str | os.PathLike[str], mode: int) -> int:
    extra = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | extra, mode)
