"""Which inputs are to stay useful, as ``protect`` is asked for it (``objective``, ``serve``, ``weights``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from ..arrays import Array
from ..data import Inputs, as_inputs, in_row_order, sample_places
from ..errors import InputError
from ..models import Prior
from ..promise import Finding, Insiders, Objective, Served
from ..regions import Everywhere, Region
from ..release import MOST_SERVED, SMALLEST_WEIGHT

#: Of more rows without weights than this evenly spread ones are served, and of a region without rows so many inputs.
MOST_ROWS_SERVED, SPREAD = 4096, 512

#: The best predictions for insiders who hold so many rows in all take minutes, for more of them hours; so do those for
#: more than so many pairs of a row that is held and a record that is promised.
MOST_HELD, MOST_PAIRS = 100, 4000


def _fell_back(why: str, remedy: str) -> Finding:
    return Finding(
        "least-noise-instead",
        "note",
        f"The best predictions were asked for, but {why}. The noise is the least that keeps the promise to all, "
        "whatever weights were given.",
        f'For the best predictions {remedy}; else give objective="noise".',
    )


#: What is said where the best predictions were asked for and the least noise was taken, by what stood in the way.
FELL_BACK = {
    "priors": _fell_back(
        "readers may hold several priors, and what is best for some of them need not be for others",
        "name one prior, without a family",
    ),
    "insiders": _fell_back(
        f"insiders hold more than {MOST_HELD} rows in all, or more than {MOST_PAIRS:,} divided by the number of "
        "private records, and the best predictions for so many take too long",
        'promise to insiders with fewer rows in all or to none, or of the function alone (protects="function")',
    ),
    "records": _fell_back(
        'method is "compressed" and protects is "records", where each record carries noise of its own, as much as it '
        "needs, and there is nothing to choose",
        'give fewer rows, which can be protected exactly (method="eigh"), if f outside is to be told even better',
    ),
    "search": _fell_back(
        "no noise was found that leaves them and keeps the promise: round-off is in the way where the data have next "
        "to no errors of their own, or where next to nothing may be learnt",
        "give the prior the variance of the errors in the data (noise) if it has none, or promise less (a larger "
        "alpha, a smaller floor)",
    ),
    "releases": _fell_back(
        "the ledger has promises to readers who see the data differently (other priors, or rows measured anew), and "
        "what is best for some of them need not be for others",
        "use a ledger of one prior",
    ),
}


def can_serve(priors: int, insiders: Insiders | None, records: int) -> bool:
    """Whether predictions can be the best for all readers: those with one prior, and few insiders."""
    held = 0 if insiders is None else sum(map(len, insiders.groups))
    return priors == 1 and held <= MOST_HELD and held * records <= MOST_PAIRS


def check_objective(objective: Any, structure: str, serve: Any = None) -> None:
    """Refuse an objective that is none, or that does not go with the rest."""
    if not isinstance(objective, str) or objective not in get_args(Objective):
        raise InputError(f"objective is {objective!r}; choose one of {', '.join(map(repr, get_args(Objective)))}.")
    if objective == "noise" and serve is not None:
        raise InputError(
            'serve is given, but objective is "noise", which asks for the least noise alone; give '
            'objective="predictions", or leave serve out.'
        )
    if objective == "predictions" and structure == "diagonal":
        raise InputError(
            'objective is "predictions", but structure is "diagonal"; the best predictions suppress combinations of '
            'rows. Give structure="full", or objective="noise".'
        )


def served_inputs(
    serve: Any,
    weights: Any,
    inputs: Inputs,
    region: Region,
    stacked: Callable[[Any], Inputs | Region] | None = None,
) -> Served:
    """The inputs that are to stay useful: inputs as they are given; a region stands for its rows that are not private.

    ``stacked`` reads what was given for several outputs as one process.
    """
    if isinstance(region, Everywhere):
        raise InputError(
            'objective is "predictions", but region is sf.Everywhere(), which leaves nothing to serve; bound the '
            'region, or give objective="noise".'
        )
    if isinstance(serve, str):
        raise InputError(
            f"serve is {serve!r}; give inputs, or a region such as sf.Box(2, 3), or sf.parse_region('t >= 2', columns)."
        )
    if serve is not None and stacked is not None:
        serve = stacked(serve)
    if serve is None or isinstance(serve, Region):
        return _rows_served(serve, weights, inputs, region)
    places = np.array(as_inputs(serve, "serve", like=inputs).values)
    if not len(places):
        raise InputError("serve has no rows; give the inputs that are to stay useful, or leave it out.")
    if len(places) > MOST_SERVED:
        raise InputError(
            f"serve has {len(places):,} rows; at most {MOST_SERVED:,} inputs are served, give fewer of them."
        )
    return Served(places, positive_numbers(weights, len(places), "served input"))


def _rows_served(serve: Region | None, weights: Any, inputs: Inputs, region: Region) -> Served:
    """The rows outside ``region``, those in ``serve`` if it is given; a spread of it where it has no rows at all."""
    rows = inputs.sample.values
    if serve is not None:
        serve = bound_served(serve, inputs)
    own = np.ones(len(rows), dtype=np.bool_) if serve is None else serve.contains(rows)
    if weights is not None and len(rows) < len(inputs):
        raise InputError("weights is given, but X has too many rows to serve each; give serve inputs with weights.")
    if weights is not None:
        weights = in_row_order(weights, inputs.index, "weights")
    numbers = positive_numbers(weights, len(rows), "row")
    if serve is not None and not np.any(own):
        if weights is not None:
            raise InputError(
                "weights is given, but serve is a region that has no row, so that there is nothing to weigh; give "
                "serve inputs with weights, or leave weights out."
            )
        places = serve.probes(SPREAD, inputs.sample)
        places = places[~region.contains(places)]
        if not len(places):
            raise _all_private()
        return Served(places, np.ones(len(places)))
    kept = np.flatnonzero(own & ~region.contains(rows))
    if not len(kept):
        if serve is not None:
            raise _all_private()
        raise InputError(
            "region leaves no rows outside it, so that nothing is left to serve; give serve inputs, or "
            'objective="noise".'
        )
    if weights is None:
        kept = kept[sample_places(len(kept), MOST_ROWS_SERVED)]
    return Served(np.array(rows[kept]), numbers[kept])


def _all_private() -> InputError:
    return InputError(
        "serve is a region inside the private one, where readers are to know little; give a region outside, or inputs, "
        "which are served wherever they lie."
    )


def check_unknown(served: Served, prior: Prior) -> None:
    """Refuse inputs at which there is nothing to predict."""
    known = ~(prior.variance(served.places) > 0.0)
    if np.any(known):
        raise InputError(
            f"serve has the input {served.places[known][0].tolist()}, where the prior knows f already (its variance "
            "is 0) and nothing is left to predict; leave it out."
        )


def bound_served(serve: Region, inputs: Inputs) -> Region:
    """A region that is to stay useful, for the data ``inputs``; refused in words about ``serve`` if it is none."""
    try:
        return serve.bind(inputs)
    except InputError as error:
        raise InputError(f"serve is a region that does not fit: {error} Or give serve inputs.") from None


def positive_numbers(weights: Any, count: int, what: str) -> Array:
    """``weights`` as one positive number for each ``what``; all the same where they are left out."""
    if weights is None:
        return np.ones(count)
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights is {str(weights)[:60]!r}; give one positive number a {what}.") from None
    if values.shape != (count,):
        raise InputError(f"weights has shape {values.shape}; give {count} positive numbers, one a {what}.")
    wrong = values[~((values >= SMALLEST_WEIGHT) & (values <= 1 / SMALLEST_WEIGHT))]
    if wrong.size:
        raise InputError(
            f"weights has the value {wrong[0]}; give one positive number a {what}, between {SMALLEST_WEIGHT:g} and "
            f"{1 / SMALLEST_WEIGHT:g}."
        )
    return values
