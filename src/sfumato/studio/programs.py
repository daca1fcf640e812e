"""The choices as a program that makes the same design: in Python, and as a command.

Names come from data and may hold anything. In Python they are literals, in the command quoted words; none of them ever
stands in a comment.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ..cli import FEW_ROWS, Fit, names_text
from ..errors import InputError
from ..text import number_text, shown, shown_lines
from .choices import Choices
from .demos import demo
from .publication import ENDINGS, stem_of

#: Lines of a program are at most this wide, unless one name alone is wider.
WIDTH = 88


def as_python(choices: Choices, *, fitted_outside: bool = True) -> str:
    """A Python program that reads the same table, fits the same prior, keeps the same promise and saves a release.

    ``fitted_outside`` says whether rows in the region have no part in the fit, where that was asked for: too few rows
    may be left.
    """
    _require_complete(choices)
    usual = Fit().settings()
    fit = {name: value for name, value in choices.fit.settings().items() if value != usual[name]}
    outside = {"exclude": _Name("region")} if choices.fit_outside and fitted_outside else {}
    lines = [
        *_imports(choices),
        "",
        f"inputs = {list(choices.inputs)!r}",
        f"output = {choices.output!r}",
        *_table(choices),
        "X, y = table[inputs], table[output]",
        "",
        *_region(choices.regions),
        *_call("prior", "sf.fit_prior", ("X", "y"), {**fit, **outside}),
        "",
    ]
    promise: dict[str, Any] = {
        **choices.asked,
        **({} if choices.protects == "both" else {"protects": choices.protects}),
        **({} if choices.objective == "noise" else {"objective": choices.objective}),
    }
    if choices.insiders is not None:
        labels = _Name(f"table[{choices.insiders!r}].tolist()")
        promise["insiders"] = choices.insiders if choices.insiders == "rows" else labels
    if choices.is_rehearsed:
        lines += [*_rehearsal(choices), ""]
        promise["findings"] = _Name("rehearsal.findings")
    if choices.accept:
        promise["accept"] = choices.accept
    if choices.ledger is None:
        lines += _call("mechanism", "sf.protect", ("prior", "X", "region"), promise)
    else:
        promise |= {"output_name": _Name("output")} | ({} if choices.share is None else {"share": choices.share})
        lines += [f"ledger = sf.Ledger({choices.ledger!r})"]
        lines += _call("mechanism", "ledger.protect", ("prior", "X", "region"), promise)
    lines += ["print(mechanism.certificate)", "", "release = mechanism.release(y, output_name=output)"]
    # what cannot be seen stands in literals only, and is written there as an escape that means the same
    return shown_lines([*lines, f"release.save({_release(choices)!r})", ""])


def no_command(choices: Choices) -> str:
    """Why there is no command for these choices, in a sentence; empty where there is one."""
    if choices.source == "notebook":
        return "These data are in a notebook, and commands read files: save them as a file, and open that."
    given = (choices.data, *choices.inputs, choices.output, *choices.regions, choices.insiders or "")
    if any("\0" in text for text in given):
        return "A name has a zero character in it, which no command can have: copy the Python program."
    return ""


def as_command(choices: Choices) -> str | None:
    """A command, for bash or zsh, that does what ``as_python`` does; None where there is none (``no_command``)."""
    _require_complete(choices)
    if no_command(choices):
        return None
    data, lines = _path(choices), []
    if choices.source == "demo":
        name = demo(choices.data).choices.data
        data = f"sfumato-demo-{name}.csv"
        program = f'import sfumato as sf; sf.demo_table("{name}").to_csv("{data}", index=False)'
        lines.append(f"python -c {_word(program)}")
    options: list[tuple[str, str | None]] = [("--inputs", names_text(choices.inputs)), ("--output", choices.output)]
    options += [("--region", text) for text in choices.regions]
    options += [(f"--{choices.level}", number_text(choices.value))]
    options += [("--protects", choices.protects)] if choices.protects != "both" else []
    options += [("--objective", choices.objective)] if choices.objective != "noise" else []
    options += [("--insiders", choices.insiders), ("--sep", choices.sep), ("--decimal", choices.decimal)]
    options += [("--encoding", choices.encoding)]
    options += [("--drop-missing", "")] if choices.drop_missing else []
    options += [("--kernel", choices.kernel)]
    options += [("--lengthscale", None if choices.lengthscale is None else number_text(choices.lengthscale))]
    for name in ("mean", "coefficients", "noise"):
        options += [(f"--{name}", getattr(choices, name))] * (getattr(choices, name) != getattr(Fit, name))
    options += [] if choices.fit_outside else [("--fit-all", "")]
    options += [("--fit-rows", None if choices.fit_rows is None else str(choices.fit_rows))]
    options += [("--accept", code) for code in choices.accept]
    options += [("--ledger", choices.ledger)]
    options += [("--share", None if choices.share is None else number_text(choices.share))]
    options += [("--out", _release(choices))]
    words = [_option(name, value) for name, value in options if value is not None]
    lines.append(" \\\n    ".join([f"sfumato protect {_word(_no_option(data))}", *words]))
    return "\n".join([*lines, ""])


class _Name(str):
    """A piece of a program, not a text in it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _require_complete(choices: Choices) -> None:
    if not choices.inputs or not choices.output:
        raise InputError("There is no program yet: choose inputs and an output among the columns first.")
    if not choices.regions:
        raise InputError("There is no program yet: say first what is sensitive.")


def _imports(choices: Choices) -> list[str]:
    needs = {
        "import dataclasses": bool(choices.fit.noise_column) and choices.is_rehearsed,
        "import numpy as np": choices.is_rehearsed or choices.source == "notebook",
        "import pandas as pd": choices.source == "notebook",
    }
    return [*(line for line, needed in needs.items() if needed), "import sfumato as sf"]


def _path(choices: Choices) -> str:
    """Where the program finds the file: of one that was sent to the page only the name is known."""
    return choices.data if choices.source == "file" else PurePath(choices.data.replace("\\", "/")).name


def _table(choices: Choices) -> list[str]:
    """The lines that make ``table``: the columns that take part."""
    if choices.source == "demo":
        return _call("table", "sf.demo_table", (repr(choices.data),), {})
    if choices.source == "notebook":
        lines = [
            "# X and y are what you gave to sf.studio.",
            "table = X if hasattr(X, 'columns') else pd.DataFrame(np.asarray(X))",
            "table = table.rename(columns=str if hasattr(X, 'columns') else 'x{}'.format)",
            "if table.shape[1] == 1 and not hasattr(X, 'columns'):",
            "    table.columns = ['x']",
            "if output not in table:",
            "    table = table.assign(**{output: y})",
        ]
        return lines + ["table = table.dropna(subset=[*inputs, output])"] * choices.drop_missing
    reading = {name: getattr(choices, name) for name in ("sep", "decimal", "encoding")}
    how: dict[str, Any] = {name: value for name, value in reading.items() if value is not None}
    how |= {"drop_missing": True} if choices.drop_missing else {}
    if choices.insiders not in (None, "rows", *choices.inputs):
        how["labels"] = [choices.insiders]
    return _call("table", "sf.read_table", (repr(_path(choices)), "inputs", "output"), how)


def _region(texts: Sequence[str]) -> list[str]:
    first, *more = (f"sf.parse_region({text!r}, inputs)" for text in texts)
    if not more:
        return [f"region = {first}"]
    return ["region = (", f"    {first}", *(f"    | {one}" for one in more), ")"]


def _rehearsal(choices: Choices) -> list[str]:
    """As the studio does it: on some rows, which is enough to show a prior that is far off."""
    lines = [f"few = np.unique(np.linspace(0, len(X) - 1, min(len(X), {FEW_ROWS})).round().astype(int))"]
    prior = "prior"
    if choices.fit.noise_column:
        lines += ["trial = prior"]
        lines += ["if not isinstance(prior.noise, float):  # a variance for each row"]
        lines += ["    trial = dataclasses.replace(prior, noise=prior.noise[few])"]
        prior = "trial"
    return lines + _call("rehearsal", "sf.rehearse", (prior, "X.iloc[few]", "y.iloc[few]", "region"), choices.asked)


def _call(name: str, function: str, given: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """``name = function(given, option=value, …)`` in one line, or, where it is too wide, one line for each."""
    words = [*given, *(f"{option}={_literal(value)}" for option, value in options.items())]
    line = f"{name} = {function}({', '.join(words)})"
    return [line] if len(line) <= WIDTH else [f"{name} = {function}(", *(f"    {word}," for word in words), ")"]


def _literal(value: Any) -> str:
    odd = isinstance(value, float) and not math.isfinite(value)
    return f"float({str(value)!r})" if odd else repr(value)


def _option(name: str, value: str) -> str:
    """An option and its value; one that looks like an option itself is tied to the name."""
    if not value:
        return name
    return _word(f"{name}={value}") if value.startswith("-") else f"{name} {_word(value)}"


def _word(text: str) -> str:
    """``text`` as one word for a shell; what cannot be seen on a page, a line break too, is written by its bytes."""
    if shown(text) == text:
        return shlex.quote(text)
    plain = [one if shown(one) == one and one not in "\\'" else _by_bytes(one) for one in text]
    return f"$'{''.join(plain)}'"


def _by_bytes(one: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in one.encode())


def _no_option(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path


def _release(choices: Choices) -> str:
    return f"{stem_of(choices.data)}{ENDINGS['release file']}"
