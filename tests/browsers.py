"""The system's browser, which some tests drive; none is fetched for them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

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


def choose(page: Page, label: str, option: str) -> None:
    """Choose from a list by keyboard and mouse, as a person does: once more, where it was filled anew meanwhile.

    It comes back when the list is gone: until then it may take the next click, and the focus once more.
    """
    from playwright.sync_api import TimeoutError as NotInTime

    for _ in range(5):
        page.get_by_role("combobox", name=label).press("Enter")
        with suppress(NotInTime):
            page.get_by_role("option", name=option, exact=True).click(timeout=1500)
            page.get_by_role("option").first.wait_for(state="detached")
            return
    raise AssertionError(f"{option} cannot be chosen")
