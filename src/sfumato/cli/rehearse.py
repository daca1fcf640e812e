"""The command ``sfumato rehearse``, and the rehearsal that ``sfumato protect`` makes before it writes anything.

A promise is as good as its prior. Regions like the sensitive one are hidden, and textbooks predict them.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ..errors import InputError
from ..files import OWNER_ONLY
from ..text import counted
from .command import exit_by
from .fitted import fitted_table
from .options import (
    FIGURES,
    Figure,
    Fit,
    Json,
    Reading,
    Replace,
    Sensitive,
    Table,
    Written,
    check_written,
    option,
    save_figure,
)
from .outputs import names_text
from .printing import (
    as_json,
    command_in_lines,
    new_table,
    say,
    say_in_colour,
    say_lines,
    say_note,
    say_written,
    show_table,
)

if TYPE_CHECKING:
    import pandas as pd

    from ..evaluate import Rehearsal
    from ..models import JointPrior, Prior, PriorFamily
    from ..regions import Region

    #: What readers are taken to believe.
    Readers: TypeAlias = Prior | PriorFamily | JointPrior

REHEARSE_EXAMPLES = (
    'sfumato rehearse orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1',
    'sfumato rehearse co2.csv --inputs year --output ppm --region "1985 <= year <= 1988" --floor 1 '
    '--kernel "rbf + periodic(period=1) * rbf" --figure rehearsal.png',
    'sfumato rehearse people.csv --inputs age,place --output income --region "age >= 75" --alpha 0.3 --json',
)

#: Before something is written, at most this many rows take part: enough to show a prior that is far off, in seconds.
FEW_ROWS = 300


def rehearse(
    data: Table,
    sensitive: Sensitive,
    fit: Fit,
    reading: Reading,
    alpha: Annotated[
        float | None, option("NUMBER", "The share of the prior variance that readers may learn: 0.1 is strong.")
    ] = None,
    floor: Annotated[
        float | None,
        option("NUMBER", "Or: the standard deviation that every reader keeps, in units of the output."),
    ] = None,
    figure: Figure = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Try a prior before you publish: regions like yours are hidden and predicted; exit code 1 if it fails."""
    sensitive.check()
    if (alpha is None) == (floor is None):
        given = "neither" if alpha is None else "both"
        raise InputError(f"--alpha and --floor: {given} given; choose one, for example --alpha 0.1.")
    check_written(Written("--figure", figure, FIGURES), read=[data], replace=replace)
    from ..evaluate import rehearse as try_out
    from ..show import plot_rehearsal

    X, y, where, prior, fitted = fitted_table(data, sensitive, fit, reading, progress=not json)
    found = try_out(prior, X, y, where, alpha, floor=floor, progress=not json)
    if figure is not None:
        if found.results:
            save_figure(plot_rehearsal(found).figure, figure, private=True)
        else:
            say_note(f"--figure {figure} was not written: there is no look-alike to draw.")
    options = [*fit.options(), *reading.options()]
    again = _protect_words(data, sensitive, alpha, floor, options, found)
    if json:
        say_lines(OWNER_ONLY, err=True)
        about = {"owner_only": True, "data": data, "output": sensitive.output, "figure": figure}
        as_json({**about, **found.as_dict(), "command": again})
    else:
        title = f"{sensitive.output}, rehearsed where {where.in_words(tuple(sensitive.columns))}"
        _show_rehearsal(found, title, fitted, again)
        say_written(figure if found.results else None)
    exit_by(found.verdict)


def _show_rehearsal(found: Rehearsal, title: str, fitted: str, again: str | None) -> None:
    from ..evaluate import REHEARSAL_HEADER

    say(OWNER_ONLY, "bold red")
    if found.results:
        table = new_table(f"{title}: {counted(len(found.look_alikes), 'look-alike')}")
        for number, name in enumerate(REHEARSAL_HEADER):
            table.add_column(name, justify="right" if number else "left", no_wrap=True)
        for row in found.table():
            table.add_row(*row)
        show_table(table)
        say(f"The prior claims that nobody can be nearer than {found.claimed:.3g}; the floor is {found.floor:.3g}.")
    say(fitted)
    for note in found.notes:
        say(f"- {note}")
    for finding in found.findings:
        say(f"- {finding.label}: {finding.text}")
    say_in_colour(_in_words(found), found.verdict)
    if found.advised is not None:
        what = "Use instead, which passes:" if found.advised.passes else "Nearer, though it does not pass either:"
        if found.advised.lower is not None:
            say(found.advised.promises)
        say_lines(what, "", *command_in_lines(again or ""))


def _in_words(found: Rehearsal) -> str:
    if not found.results:
        return "The prior could not be tried."
    return "The prior passes its rehearsal." if found.passes else f"{found.verdict.capitalize()} with this prior."


def _protect_words(
    data: Path,
    asked: Sensitive,
    alpha: float | None,
    floor: float | None,
    options: Sequence[str],
    found: Rehearsal,
) -> str | None:
    """The command that publishes with the prior that is advised, ready to copy; None where none is."""
    from ..data import table_stem

    if found.advised is None:
        return None
    level = ["--alpha", f"{alpha:g}"] if alpha is not None else ["--floor", f"{found.advised.lower or floor:g}"]
    words = ["sfumato", "protect", str(data), "--inputs", names_text(asked.columns)]
    words += ["--output", asked.output, "--region", asked.region]
    prior = ["--kernel", found.advised.kernel, "--mean", found.advised.mean]
    rest = [*level, *prior, *options, "--out", f"{table_stem(data)}.sfumato"]
    return shlex.join([*words, *rest])


# ---------------------------------------------------------------- before sfumato protect writes anything


def rehearsals(
    prior: Readers,
    table: pd.DataFrame,
    columns: Sequence[str],
    regions: Mapping[str, Region | None],
    promise: Mapping[str, Any],
    progress: bool,
    advise: bool = True,
    rows: int | None = None,
) -> dict[str, Rehearsal]:
    """A rehearsal for each sensitive output that is a column of the data, by itself; ``table`` may be part of ``rows``.

    There is none of a quantity without inputs or of what follows from another output, nor where readers may know the
    function because only records are promised.
    """
    from ..models import JointPrior

    if promise["protects"] == "records" and promise["floor"] is None:
        return {}
    found = {}
    for name, where in regions.items():
        alone = prior.prior_of(name) if isinstance(prior, JointPrior) else prior
        if where is None or alone is None or name not in table:
            continue
        levels = {level: _own(promise[level], name) for level in ("alpha", "floor")}
        X, y = table[list(columns)], table[name]
        found[name] = rehearsed_on_few(alone, X, y, where, **levels, advise=advise, progress=progress)
    if found and (rows or len(table)) > FEW_ROWS:
        say_note(f"the rehearsal took {min(FEW_ROWS, len(table))} of {rows or len(table)} rows, evenly spread.")
    return found


def rehearsed_on_few(
    prior: Prior | PriorFamily, X: pd.DataFrame, y: pd.Series[Any], where: Region, **how: Any
) -> Rehearsal:
    """``sf.rehearse`` on ``FEW_ROWS`` rows, evenly spread; ``how`` are its other arguments."""
    from ..arrays import evenly
    from ..evaluate import rehearse as try_out
    from ..models import Prior

    places = evenly(len(X), FEW_ROWS)
    if isinstance(prior, Prior) and not isinstance(prior.noise, float):  # a variance for each row
        prior = dataclasses.replace(prior, noise=prior.noise[places])
    return try_out(prior, X.iloc[places], y.iloc[places], where, **how)


def _own(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, dict) else given


def _lower(found: Rehearsal) -> str:
    """What to promise with the advised prior, where it is less than what was asked for."""
    return "" if found.advised is None or found.advised.lower is None else f" {found.advised.promises}"


def refusal(found: Rehearsal, about: str) -> str:
    """Why nothing is written, and what to do instead; in one paragraph."""
    from ..promise import how_to_accept

    stopping = [one for one in found.findings if one.stops]
    said = " ".join(one.text for one in stopping)
    instead = "" if found.advised is None else f" Use instead: {found.advised.options}.{_lower(found)}"
    return (
        f"the prior failed its rehearsal{about}. {said}{instead} {how_to_accept(stopping)} sfumato rehearse shows "
        "all of it; --no-rehearsal leaves it out."
    )
