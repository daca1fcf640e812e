"""The command line in tests: run it, and look at what it says."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from sfumato.__main__ import app


def run(*words: object) -> Any:
    """What ``sfumato`` with these words says, and its exit code; never a traceback."""
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="sfumato")
    assert "Traceback" not in result.output
    return result


def done(result: Any) -> Any:
    assert result.exit_code == 0, result.output
    return result


def answer(result: Any) -> Any:
    """The one JSON object on stdout."""
    return json.loads(done(result).stdout)


def refused(result: Any, *parts: str, code: int = 2) -> None:
    """Nothing on stdout, and one paragraph on stderr that has all the ``parts``."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    lines = result.stderr.splitlines()
    # a wrong text of a region or a relation is shown with a mark under the place
    assert len(lines) == (3 if lines[-1].strip() == "^" else 1)
    for part in parts:
        assert part in result.stderr


def as_words(options: dict[str, object]) -> list[object]:
    """``{"fit_outside": True, "alpha": 0.5}`` as words of a command line; None leaves an option out."""
    words: list[object] = []
    for name, value in options.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}"] if value is True else [f"--{name.replace('_', '-')}", value]
    return words
