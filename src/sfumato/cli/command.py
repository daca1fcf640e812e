"""From a function to a command: option groups become options, examples end the help, errors become exit codes.

A command is a function whose parameters are options, or groups of options: frozen dataclasses with an option a field
and a ``panel``, the title that the help shows above them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, get_args, get_type_hints

import typer

from ..errors import BudgetError, GuaranteeError, SfumatoError
from .printing import say_error, say_lines, show_warnings_as_notes

if TYPE_CHECKING:
    from ..promise import Verdict

P = ParamSpec("P")

#: Exit codes beside 0, done: do not publish, or nothing is left of a promise; wrong use; a bug in sfumato.
DO_NOT_PUBLISH, WRONG_USE, OUR_FAULT = 1, 2, 3
#: As of programs that end by the signals SIGINT and SIGPIPE.
INTERRUPTED, NOBODY_READS = 130, 141


#: What PyTorch says, as a plain error, when there is no memory left, here or on a GPU.
NO_MEMORY = ("not enough memory", "DefaultCPUAllocator", "out of memory", "alloc_cpu")


def add_command(app: typer.Typer, run: Callable[..., None], examples: Sequence[str], name: str | None = None) -> None:
    """Make ``run`` a command of ``app``; its docstring is the help, and ``examples`` stand at the end."""
    shown = "[bold]Examples[/bold]\n\n" + "\n\n".join(f"[cyan]{line}[/cyan]" for line in examples)
    app.command(name=name or run.__name__, epilog=shown)(_with_plain_options(_with_exit_codes(run)))


def exit_by(verdict: Verdict) -> None:
    """End the command with the exit code of its verdict."""
    if verdict == "do not publish":
        raise typer.Exit(DO_NOT_PUBLISH)


def _with_plain_options(run: Callable[..., None]) -> Callable[..., None]:
    """``run`` for Typer, which knows no groups: the fields of each group are parameters by themselves."""
    hints = get_type_hints(run, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[Parameter] = []
    for parameter in signature(run).parameters.values():
        if parameter.name in groups:
            parameters += _parameters_of(groups[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY))

    def command(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        run(**given)

    command.__doc__ = run.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameters_of(group: Any) -> list[Parameter]:
    """The fields of a group of options as parameters, each under the group's title in the help."""
    hints, found = get_type_hints(group, include_extras=True), []
    for field in fields(group):
        kind, option = get_args(hints[field.name])
        option = copy(option)
        option.rich_help_panel = group.panel
        default: Any = Parameter.empty
        if field.default is not MISSING:
            default = field.default
        elif field.default_factory is not MISSING:
            default = field.default_factory()
        found.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]))
    return found


def _with_exit_codes(run: Callable[P, None]) -> Callable[P, None]:
    """``run`` with errors as one paragraph on stderr and an exit code, and warnings as notes on stderr."""

    @functools.wraps(run)
    def safe(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with show_warnings_as_notes(), _all_printed():
                run(*args, **kwargs)
        except KeyboardInterrupt:
            say_lines("interrupted; no file was left half written.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (BudgetError, GuaranteeError) as error:
            _fail(DO_NOT_PUBLISH, *error.args)
        except SfumatoError as error:
            _fail(WRONG_USE, *error.args)
        except BrokenPipeError:
            # The reader of our pipe has gone, as in `sfumato predict … | head`; what it would have been told is open.
            raise typer.Exit(NOBODY_READS) from None
        except OSError as error:
            what = error.filename or "what is printed, or a file"
            _fail(WRONG_USE, f"{what}: {error.strerror or error}. See that it can be read or written, and try again.")
        except MemoryError as error:
            _fail(WRONG_USE, _short_of_memory(error))
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY):
                _fail(WRONG_USE, _short_of_memory(error))
            if os.environ.get("SFUMATO_TRACEBACK"):
                raise
            bug = f"this is a bug in sfumato ({type(error).__name__}: {error}). SFUMATO_TRACEBACK=1 shows where."
            _fail(OUR_FAULT, bug)

    return safe


@contextlib.contextmanager
def _all_printed() -> Iterator[None]:
    """All that is printed in the block has gone out at its end; what cannot go out (a full disk) is an OSError."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # as after `>&-`
                sys.stdout.flush()
    except OSError as error:
        if error.filename is None and not isinstance(error, SfumatoError):
            # else Python would try again at its end, and fail in its own words
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _short_of_memory(error: Exception) -> str:
    found = re.search(r"(\d{7,}) bytes|([\d.]+ [GT]i?B)", str(error))
    asked = "" if found is None else f" ({found[2] or f'{int(found[1]) / (1 << 30):.1f} GiB'} at once)"
    return (
        f"there is not enough memory for so many rows{asked}. Fit the prior to fewer with --fit-rows 2000, protect "
        "with --method compressed, or give fewer rows."
    )


def _fail(code: int, *lines: str) -> None:
    say_error(*lines)
    raise typer.Exit(code)
