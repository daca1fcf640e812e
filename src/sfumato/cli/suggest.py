"""The command ``sfumato suggest``: which promise, and how strong, readers elsewhere can afford."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

from .fitted import fitted_table
from .options import (
    FIGURES,
    SERVED,
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
    served_by,
    served_table,
)
from .printing import as_json, say, say_lines, say_written

SUGGEST_EXAMPLES = (
    'sfumato suggest people.csv --inputs age,place --output income --region "age >= 75" --figure costs.png',
    'sfumato suggest orbit.csv --inputs t --output r --region "1 <= t <= 2" --max-noise 0.5 --json',
    'sfumato suggest orbit.csv --inputs t --output r --region "1 <= t <= 2" --floor 2',
)


def suggest(
    data: Table,
    sensitive: Sensitive,
    fit: Fit,
    reading: Reading,
    max_loss: Annotated[
        float | None,
        option("NUMBER", "The share of accuracy that readers outside the region may lose (0.1 if nothing is given)."),
    ] = None,
    max_error: Annotated[
        float | None, option("NUMBER", "Or: the error outside that readers may have, in units of the output.")
    ] = None,
    max_noise: Annotated[
        float | None, option("NUMBER", "Or: the noise that a row may get, root mean square, in units of the output.")
    ] = None,
    alpha: Annotated[float | None, option("NUMBER", "Or, the other way round: what this α would cost.")] = None,
    floor: Annotated[float | None, option("NUMBER", "Or what this floor would cost, in units of the output.")] = None,
    objective: Annotated[
        str,
        option(
            "WORD",
            "Which noise is sought: noise, the least; predictions, the one with the best predictions at the inputs "
            "that are to stay useful, which counts on the prior more. What the other one costs is said too.",
        ),
    ] = "noise",
    serve: Annotated[
        str | None, option("FILE or TEXT", f"What is to stay useful: {SERVED} (default: all that is outside).")
    ] = None,
    figure: Figure = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Suggest a promise: the strongest floor for what it may cost, when each is right, and the call to copy."""
    sensitive.check()
    check_written(Written("--figure", figure, FIGURES), read=[data, served_table(serve)], replace=replace)
    from ..evaluate import check_suggestion
    from ..evaluate import suggest as look
    from ..show import plot_suggestion

    asked = {"max_loss": max_loss, "max_error": max_error, "max_noise": max_noise, "alpha": alpha, "floor": floor}
    check_suggestion(**asked, objective=objective)
    served, _ = served_by(serve, sensitive.columns, [sensitive.output], reading)
    X, _, where, prior, fitted = fitted_table(data, sensitive, fit, reading, progress=not json)
    aim: Any = objective
    found = look(prior, X, where, **asked, objective=aim, serve=served, output=sensitive.output, progress=not json)
    if figure is not None:
        save_figure(plot_suggestion(found).figure, figure)
    if json:
        as_json({"data": data, "figure": figure, **found.as_dict()})
        return
    say_lines(*str(found).split("\n"))
    if found.best is not None:
        useful = "" if serve is None or objective == "noise" else f" --serve {shlex.quote(serve)}"
        say_lines("or", f"  sfumato protect … {found.best.options}{useful}")
    say(fitted)
    say_written(figure)
