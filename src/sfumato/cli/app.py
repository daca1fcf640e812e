"""The command ``sfumato``: all commands but those of the paper, in the order in which the help shows them.

PyTorch and pandas are imported inside the commands, so that ``sfumato --help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..text import shown
from ..version import __version__
from .audit import AUDIT_EXAMPLES, audit
from .certify import CERTIFY_EXAMPLES, certify
from .command import add_command
from .demo import DEMO_EXAMPLES, demo
from .ledger import ledger_app
from .predict import PREDICT_EXAMPLES, predict
from .printing import say_lines
from .protect import PROTECT_EXAMPLES, protect
from .rehearse import REHEARSE_EXAMPLES, rehearse
from .report import REPORT_EXAMPLES, report
from .suggest import SUGGEST_EXAMPLES, suggest
from .tradeoff import TRADEOFF_EXAMPLES, tradeoff


class _Commands(TyperGroup):
    """The commands; what was typed wrong is shown as text, whatever it is."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _shown_mistakes():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _shown_mistakes():
            return super().invoke(ctx)


@contextmanager
def _shown_mistakes() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(getattr(error, "message", None), str):  # Typer's own; which class it has is Typer's affair
            error.message = shown(error.message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name="sfumato",
    cls=_Commands,
    help="Publish data with exactly the noise that a privacy promise needs, and a proof that it is kept.",
    epilog="Try first:  sfumato demo\n\n"
    "Exit codes: 0 done; 1 do not publish, or nothing is left of a promise; 2 wrong use.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        say_lines(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


add_command(app, demo, DEMO_EXAMPLES)
add_command(app, rehearse, REHEARSE_EXAMPLES)
add_command(app, protect, PROTECT_EXAMPLES)
add_command(app, predict, PREDICT_EXAMPLES)
add_command(app, certify, CERTIFY_EXAMPLES)
add_command(app, report, REPORT_EXAMPLES)
add_command(app, audit, AUDIT_EXAMPLES)
add_command(app, tradeoff, TRADEOFF_EXAMPLES)
add_command(app, suggest, SUGGEST_EXAMPLES)
app.add_typer(ledger_app)
