"""Settings that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
# Rich and Typer would otherwise wrap and colour messages after the terminal the tests happen to run in.
os.environ["COLUMNS"] = "200"
os.environ["NO_COLOR"] = "1"
os.environ.pop("FORCE_COLOR", None)

from hypothesis import settings

settings.register_profile("sfumato", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("sfumato")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the paper's data files; skips where it is not beside the checkout."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the paper's data files (../shared/data) are not beside this checkout")
    return SHARED_DATA
