"""The system's browser, which some tests drive; none is fetched for them."""

from __future__ import annotations

import shutil

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
NO_BROWSER = "no chromium here: apt-get install chromium"

#: For tests in a browser: they are left out, with this reason, where there is none.
in_a_browser = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
