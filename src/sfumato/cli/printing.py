"""What commands print: tables and verdicts on stdout, or one JSON object; notes on stderr.

Nothing else of the command line writes to the screen. Whatever a name holds, of a column or in somebody's file, it is
shown as text: it gives no orders to the terminal, and no line of its own.
"""

from __future__ import annotations

import json
import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from ..errors import FindingWarning, FitWarning, GuaranteeWarning, LongWorkWarning
from ..text import plain, shown
from .option_words import in_options

if TYPE_CHECKING:
    from rich.table import Table

    from ..ledger import Remaining
    from ..proof import Certificate

#: Letters that a screen must have for all columns of a table with some room between them.
WIDE = 100

#: On screens with fewer letters than this the names of numbers take a third, in several lines.
SMALL = 72


@contextmanager
def show_warnings_as_notes() -> Iterator[None]:
    """Warnings that a person should act on appear as notes on stderr; those of other libraries do not appear."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for category in (FitWarning, GuaranteeWarning, LongWorkWarning, RuntimeWarning):
            warnings.simplefilter("default", category)
        warnings.showwarning = lambda message, *_, **__: say_note(" ".join(str(message).split()))
        yield


@contextmanager
def findings_are_shown_later() -> Iterator[None]:
    """No notes for the findings of a certificate, because it is going to be shown with them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FindingWarning)
        yield


def say(text: str, style: str = "") -> None:
    """A paragraph, in lines that fit the screen, with options instead of arguments."""
    _say_paragraph(console(), in_options(text), style)


def say_note(text: str) -> None:
    """A paragraph on stderr, for people who run a command."""
    _say_paragraph(console(err=True), f"note: {in_options(text)}")


def say_error(*lines: str) -> None:
    """What is wrong, on stderr: a paragraph, or lines that belong below each other."""
    first, *more = (in_options(line) for line in lines)
    _say_paragraph(console(err=True), f"error: {first.strip()}")
    say_lines(*more, err=True)


def _say_paragraph(screen: Console, text: str, style: str = "") -> None:
    """All lines but the first are indented: a long name cannot look like the start of another paragraph.

    Other programs that read stderr get one line.
    """
    whole = Text(shown(text), style)
    one_line = screen.stderr and not screen.is_terminal
    for number, line in enumerate([whole] if one_line else whole.wrap(screen, max(screen.width - 2, 1))):
        line.rstrip()
        screen.print(Text("  ") + line if number else line, soft_wrap=True)


def say_lines(*lines: str, err: bool = False) -> None:
    """Lines as they are, for what is laid out already."""
    for line in lines:
        typer.echo(shown(line), err=err)


class _Screen(Console):
    """A terminal on which all strings, in tables as well, are lines of text: no markup, no controls."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(shown(text), **how)


def console(err: bool = False) -> Console:
    """The screen, on stdout or stderr."""
    return _Screen(stderr=err, highlight=False, markup=False, emoji=False)


def new_table(title: str) -> Table:
    """A table with a header and a line under it, to be filled; close together on a small screen."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    gap = (0, 1 if console().width >= WIDE else 0, 0, 0)
    table = Table(title=title, pad_edge=False, box=SIMPLE_HEAD, padding=gap)
    table.show_edge = False  # two columns more for numbers
    return table


def show_table(table: Table) -> None:
    """A table, below its title."""
    title, table.title = table.title, None
    say(str(title), "bold")
    console().print(table)


def command_in_lines(command: str) -> list[str]:
    """A command that can be copied, in lines that fit the screen and that a shell reads as one."""
    words = [shlex.quote(word) for word in shlex.split(command)]
    # an option and its value stay together
    parts = re.split(r"\0(?=--)", "\0".join(words))
    lines, line = [], parts[0].replace("\0", " ")
    for part in (one.replace("\0", " ") for one in parts[1:]):
        if len(line) + len(part) + 3 > console().width:
            lines.append(f"{line} \\")
            line = f"  {part}"
        else:
            line = f"{line} {part}"
    return [*lines, line]


def show_certificate(certificate: Certificate, title: str, more: Sequence[tuple[str, str]] = ()) -> None:
    """The certificate as a table, with ``more`` rows, and under it the verdict in plain words."""
    from rich.table import Table

    table = Table(title=title, show_header=False, pad_edge=False)
    # on a small screen what is said needs the room
    small = console().width < SMALL
    table.add_column(no_wrap=not small, max_width=console().width // 3 if small else None)
    table.add_column(overflow="fold")
    for name, value in [*certificate.rows(), *more]:
        table.add_row(name, in_options(value))
    show_table(table)
    show_verdict(certificate)


def show_verdict(certificate: Certificate) -> None:
    """The verdict in plain words."""
    say_in_colour(f"{certificate.verdict_in_words}.", certificate.verdict)


def say_in_colour(text: str, verdict: str) -> None:
    """``text`` in the colour of a verdict."""
    colour = {"publish": "green", "publish with care": "yellow", "do not publish": "red"}[verdict]
    say(text, f"bold {colour}")


def say_written(*files: Path | str | None) -> None:
    """Which files were written; nothing where none was."""
    given = [str(file) for file in files if file is not None]
    if given:
        say_lines("", f"Written: {' and '.join(given)}")


def say_replaced(in_ledger: bool = False) -> None:
    """A release was written over another one, which may be published already."""
    then = "If it is out and not in the ledger, the promise is void."
    alone = "Publish one of them only: two of one secret can be averaged."
    say(f"The old release was replaced. {then if in_ledger else alone}")


def say_what_is_left(left: Remaining) -> None:
    """A paragraph for each promise, with the outputs that it is about."""
    for one in left.promises:
        say(f"{', '.join(one.promise.layout.outputs)}: {one}")


def as_json(value: dict[str, Any]) -> None:
    """Print one JSON object to stdout; paths become texts, and what cannot be seen is escaped as JSON does it."""
    text = json.dumps(plain(value), indent=2, allow_nan=False, ensure_ascii=False)
    typer.echo("".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text))
