"""Settings that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from browsers import NO_BROWSER

os.environ.setdefault("MPLBACKEND", "Agg")
# Rich and Typer would otherwise wrap and colour messages after the terminal the tests happen to run in.
os.environ["COLUMNS"] = "200"
os.environ["NO_COLOR"] = "1"
os.environ.pop("FORCE_COLOR", None)

from hypothesis import settings

settings.register_profile("sfumato", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("sfumato")

#: The paper's own data files, which are beside some checkouts and in no repository.
PAPER_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The folder with the paper's data files. Tests that ask for it are left out where it is missing."""
    return PAPER_DATA


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs the paper's files where they are missing; made-up tables go through the same code."""
    if not PAPER_DATA.is_dir():
        left_out = [item for item in items if "paper_data" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say at the end, where nobody overlooks it, that there was no browser."""
    yield
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    if count := sum(NO_BROWSER in reason for reason in skipped):
        terminalreporter.write_line(f"NOT TESTED: {count} tests need a browser; {NO_BROWSER}", red=True, bold=True)
