"""How the command line talks: errors as one paragraph, certificates as tables, JSON for scripts."""

from __future__ import annotations

import functools
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from ..errors import BudgetError, FitWarning, GuaranteeError, GuaranteeWarning, SfumatoError

if TYPE_CHECKING:
    from ..proof import Certificate


P = ParamSpec("P")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

NOT_GUARANTEED, WRONG_USE, OUR_FAULT = 1, 2, 3


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(f"[cyan]{line}[/cyan]" for line in lines)


def speaking(command: Callable[P, None]) -> Callable[P, None]:
    """Turn errors into one paragraph on stderr and an exit code."""

    @functools.wraps(command)
    def spoken(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (BudgetError, GuaranteeError) as error:
            _fail(str(error), NOT_GUARANTEED)
        except SfumatoError as error:
            _fail(str(error), WRONG_USE)
        except BrokenPipeError:
            # The reader of our pipe has gone, as in `sfumato predict … | head`; that is no error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            _fail(f"{error.filename or 'a file'}: {error.strerror or error}", WRONG_USE)
        except MemoryError:
            _fail("there is not enough memory for a table of this size; take fewer rows.", WRONG_USE)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if os.environ.get("SFUMATO_TRACEBACK"):
                raise
            _fail(
                f"this is a bug in sfumato ({type(error).__name__}: {error}). SFUMATO_TRACEBACK=1 shows where.",
                OUR_FAULT,
            )

    return spoken


def _fail(message: str, code: int) -> None:
    typer.echo(f"error: {message.strip()}", err=True)
    raise typer.Exit(code)


@contextmanager
def show_warnings_as_notes() -> Iterator[None]:
    """Warnings that a person should act on appear as notes on stderr; those of other libraries do not appear."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for category in (FitWarning, GuaranteeWarning, RuntimeWarning):
            warnings.simplefilter("default", category)
        warnings.showwarning = _show_note
        yield


def _show_note(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo("note: " + " ".join(str(message).split()), err=True)


def show_certificate(certificate: Certificate, title: str) -> None:
    """The certificate as a table on stdout, under a verdict in plain words."""
    from rich.console import Console
    from rich.table import Table

    from ..promise import verdict_in_words

    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in certificate.rows():
        table.add_row(name, value)
    console = Console(highlight=False)
    console.print(table)
    colour = {"publish": "green", "publish with care": "yellow", "do not publish": "red"}[certificate.verdict]
    console.print(f"[bold {colour}]{verdict_in_words(certificate.holds, certificate.findings)}.[/]")


def as_json(value: dict[str, Any]) -> None:
    """Print one JSON object to stdout."""
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Numbers, strings, lists and dictionaries only; JSON has no infinity and no NaN, so these become null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
