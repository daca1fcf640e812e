"""The key file of a run that writes a release part after part, so that the run can be taken up again after a kill.

Whoever has the key can take the noise off the release. The file exists while the run is under way, and only its owner
can read it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from pathlib import Path

from .entropy import SecretKey
from .errors import InputError

_MODE = 0o600
_BYTES = 32


def make_key(path: Path, purpose: str) -> SecretKey:
    """A fresh key, kept in a new file at ``path`` with a note of its ``purpose``.

    Guarantee: a file that is there already is never used or replaced (``FileExistsError``), and there is no moment at
    which others could read the new one.
    """
    raw = secrets.token_bytes(_BYTES)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), _MODE)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        if hasattr(os, "fchmod"):
            os.fchmod(handle, _MODE)  # a strict umask may have taken even the owner's rights
        json.dump({"key": raw.hex(), "for": purpose}, file)
        file.flush()
        os.fsync(file.fileno())
    return SecretKey(raw)


def find_key(path: Path, purpose: str) -> SecretKey | None:
    """The key in ``path``; None if there is none, or if it was made for another purpose.

    Raises ``InputError`` if others may have read or written it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}, the key file of an interrupted run, cannot be opened: {error.strerror}.") from error
    with os.fdopen(handle, "rb") as file:
        _check_private(path, os.fstat(file.fileno()))
        text = file.read(4096)
    # a file that a crash left half written is as good as none
    with contextlib.suppress(ValueError, TypeError, KeyError):
        tree = json.loads(text)
        if tree["for"] == purpose:
            return SecretKey(bytes.fromhex(tree["key"]))
    return None


def _check_private(path: Path, about: os.stat_result) -> None:
    if os.name != "posix":
        return
    if not stat.S_ISREG(about.st_mode) or stat.S_IMODE(about.st_mode) != _MODE or about.st_uid != os.getuid():
        raise InputError(
            f"{path}, the key file of an interrupted run, is not a file that only you can read (mode 0600): others may "
            f"know the noise. Remove the folder {path.parent} and start again."
        )
