"""The command ``sfumato studio``: a page in the browser that does what the other commands do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..cli import add_command, findings_are_shown_later, flag, option, say_lines
from ..errors import FormatError

STUDIO_EXAMPLES = (
    "sfumato studio",
    "sfumato studio people.csv",
    "sfumato studio orbit.parquet --port 8123 --no-browser",
    "sfumato studio people.csv --choices people.studio.json",
)


def run_studio(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="Your table, .csv (also .gz) or .parquet; or open it there.")
    ] = None,
    port: Annotated[int | None, option("NUMBER", "The port to listen on, on this machine only (a free one).")] = None,
    no_browser: Annotated[bool, flag("--no-browser", "Say the address, and start no browser.")] = False,
    choices: Annotated[Path | None, option("FILE", "Choices that were saved in the studio.")] = None,
) -> None:
    """Open the studio: protect a table in the browser, step by step, on this machine only."""
    from .server import check_installed, open_studio

    check_installed()
    from .choices import MOST_CHARACTERS, Choices
    from .session import Session

    session = Session()
    if choices is not None:
        with choices.open("rb") as file:
            content = file.read(4 * MOST_CHARACTERS + 1)
        try:
            chosen = Choices.from_json(content)
        except FormatError as error:
            raise FormatError(f"--choices {choices}: {error}") from None
        session.open_choices(chosen if data is None else chosen.changed(data=str(data), source="file"))
    elif data is not None:
        session.open_path(data)
    opened = open_studio(session, port=port)
    try:
        say_lines(f"The studio is at {opened.url}")
        say_lines("Only this machine can reach it; whoever has the address can. Ctrl-C ends it.")
        if not no_browser:
            opened.open_browser()
        with findings_are_shown_later():  # on the page
            opened.wait()
    finally:
        opened.server.stop()


def add_studio(app: typer.Typer) -> None:
    """Give ``app`` the command ``studio``."""
    add_command(app, run_studio, STUDIO_EXAMPLES, name="studio")
