"""Trials that do not come back, that raise, and one that does: for the soak's own tests."""

from __future__ import annotations

import os
import signal
import time

import sfumato as sf
from soak.outcome import Outcome


def trial(random, folder):
    what = ["dies", "hangs", "raises", "refuses", "ends", "breaks"][random.integers(6)]
    if what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hangs":
        time.sleep(3600.0)
    if what == "raises":
        raise IndexError("not ours")
    if what == "refuses":
        raise sf.InputError(f"alpha is {random.uniform()}; give less.")
    (folder / "file.txt").write_text(what)
    return Outcome("lost", {what: 1}, "it says so" if what == "breaks" else None)
