"""The system's browser, which some tests drive; none is fetched for them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
NO_BROWSER = "no chromium here: apt-get install chromium"

#: For tests in a browser: they are left out, with this reason, where there is none.
in_a_browser = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Come back when something that was done in a browser has come through; fail where it does not."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)
