"""Suggestions: which promise, and how strong, readers elsewhere can afford.

Each promise is made at several levels, and what readers lose outside the region is expected under the prior, as in a
trade-off. No values are needed.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass
from typing import Any

from ..data import as_inputs
from ..errors import GuaranteeWarning, InputError
from ..models import Prior
from ..progress import Progress
from ..progress import progress as show_progress
from ..promise import Protects
from ..regions import Region
from ..text import aligned, plain
from .tradeoff_readers import Places, places_to_look
from .tradeoffs import Comparison, Line, asked_levels, checked_problem, number, share, short

#: What each promise is called among the ways of a trade-off, the widest promise first.
WAYS: dict[Protects, str] = {"both": "joint", "records": "records", "function": "function"}

#: When each promise is right.
RIGHT_FOR: dict[Protects, str] = {
    "both": "when in doubt: neither the typical value in the region nor any record there is known",
    "records": "for people: what is each record's own stays unknown, the typical value may be known",
    "function": "for a surrogate, an orbit or a map: the typical value is the secret, single records are not",
}

#: The levels that are tried.
LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

#: A promise that lets readers learn more than this share is suggested only where no other is to be had.
MOST_LEARNT = 0.5


@dataclass(frozen=True)
class Option:
    """One promise at the strongest level that costs no more than was asked, α; NaN where no level does.

    ``loss`` is what readers lose elsewhere, ``error`` their expected error there, ``function_std`` and ``record_std``
    the least standard deviation of f and of a record that they keep inside. Where no level is cheap enough, these are
    of the weakest level that was tried. ``why`` says why a promise cannot be made at all.
    """

    protects: Protects
    alpha: float
    loss: float = math.nan
    error: float = math.nan
    function_std: float = math.nan
    record_std: float = math.nan
    why: str = ""

    @property
    def right_for(self) -> str:
        """When this promise is the right one."""
        return RIGHT_FOR[self.protects]

    @property
    def call(self) -> str:
        """The call that makes it; empty where it is too dear."""
        if math.isnan(self.alpha):
            return ""
        return f'sf.protect(prior, X, region, alpha={self.alpha:g}, protects="{self.protects}")'

    @property
    def options(self) -> str:
        """The same for the command line."""
        return "" if math.isnan(self.alpha) else f"--alpha {self.alpha:g} --protects {self.protects}"


@dataclass(frozen=True, eq=False)
class Suggestion:
    """What each promise can be had for: ``options``, one a promise; ``best`` is the one to start with.

    Guarantee: every α costs at most the share ``max_loss`` of the variance that readers of all data would explain
    outside the region, expected under the prior. Whether the prior is right, and whose promise it should be, it cannot
    know: ``right_for`` says when each is.
    """

    options: tuple[Option, ...]
    max_loss: float
    unprotected: float
    region: str
    output: str = "f"

    @property
    def best(self) -> Option | None:
        """The widest promise that lets nobody learn more than half; else the strongest; None where all are too dear."""
        affordable = [option for option in self.options if option.call]
        strong = [option for option in affordable if option.alpha <= MOST_LEARNT]
        ordered = strong or sorted(affordable, key=lambda option: option.alpha)
        return ordered[0] if ordered else None

    @property
    def call(self) -> str:
        """The call of ``best``, to copy."""
        return "" if self.best is None else self.best.call

    def as_dict(self) -> dict[str, Any]:
        """All of it in plain Python types; what is not finite becomes None, as JSON has it."""
        options = [
            {**asdict(option), "call": option.call, "options": option.options, "right_for": option.right_for}
            for option in self.options
        ]
        found: dict[str, Any] = plain(
            {
                "region": self.region,
                "output": self.output,
                "max_loss": self.max_loss,
                "unprotected": self.unprotected,
                "options": options,
                "best": None if self.best is None else self.best.protects,
            }
        )
        return found

    def __str__(self) -> str:
        heads = ("protects", "α", "loss", "error out", "f in", "y in")
        rows = [heads, ("nothing", "", "0 %", short(self.unprotected), "", "0"), *(_cells(one) for one in self.options)]
        lines = aligned(rows)
        title = f"What readers of {self.output} elsewhere can afford where {self.region} is protected"
        what = f"α: the strongest that costs them at most {share(self.max_loss)} of what they could explain;"
        inside = "f in, y in: how well they then know f and a record inside, at best."
        when = [f"{one.protects}, {one.right_for}." for one in self.options]
        cannot = [f"{one.protects} was left out: {one.why}" for one in self.options if one.why]
        end = (
            f"If that is right for you:  {self.call}"
            if self.call
            else f"None costs as little as {share(self.max_loss)}."
        )
        return "\n".join([title, *lines, "", what, inside, *when, *cannot, "", end])


def _cells(option: Option) -> tuple[str, ...]:
    level = f"{option.alpha:g}" if option.call else "–" if option.why else "too dear"
    values = (short(option.error), number(option.function_std), number(option.record_std))
    return (option.protects, level, share(option.loss), *values)


def suggest(
    prior: Prior, X: Any, region: Region, max_loss: float = 0.1, *, serve: Any = None, progress: bool = True
) -> Suggestion:
    """Which promise, and which α, cost readers outside ``region`` at most the share ``max_loss`` of their accuracy.

    Accuracy is the variance that readers explain in the mean over inputs outside, expected under the prior, against
    what they would explain without protection; the inputs are ``serve``, or a spread that follows the data. For each
    of the promises ("both", "records", "function") the least of some α is looked for, by a few calls of ``protect``.

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> kernel = gpytorch.kernels.RBFKernel()
    >>> kernel.lengthscale = 0.3
    >>> found = sf.suggest(sf.Prior(kernel, noise=0.5), np.linspace(0, 3, 61), sf.Box(1, 2), max_loss=0.05)
    >>> found.best.protects, found.best.alpha
    ('records', 0.05)
    >>> found.call
    'sf.protect(prior, X, region, alpha=0.05, protects="records")'
    """
    if isinstance(max_loss, bool) or not isinstance(max_loss, (int, float)) or not 0.0 < max_loss < 1.0:
        raise InputError(f"max_loss is {max_loss!r}; give a share between 0 and 1, such as 0.1.")
    inputs, bound = checked_problem(prior, X, region)
    places = places_to_look(inputs, bound)
    if serve is not None:
        given = as_inputs(serve, "serve", like=inputs).values
        places = Places(given[~bound.contains(given)], places.inside)
    if not len(places.outside):
        raise InputError("region leaves no inputs outside it, so there is nobody to lose accuracy; give serve inputs.")
    comparison = Comparison(prior, inputs, bound, places, None, "auto")
    options: list[Option] = []
    with warnings.catch_warnings(), show_progress(progress) as step:
        # of designs that are compared, not published
        warnings.simplefilter("ignore", GuaranteeWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        for protects in WAYS:
            options.append(_strongest(comparison, protects, float(max_loss), step))
    return Suggestion(tuple(options), float(max_loss), comparison.unprotected_rmse, bound.in_words(inputs.names))


def _strongest(comparison: Comparison, protects: Protects, max_loss: float, step: Progress) -> Option:
    """The strongest level of a promise that costs no more than ``max_loss``; the stronger, the more it costs."""
    low, high = 0, len(LEVELS)
    found: Line | None = None
    while low < high:
        middle = (low + high) // 2
        try:
            _, (line,) = comparison.lines(asked_levels(LEVELS[middle], None), [WAYS[protects]], step)
        except InputError as error:
            if protects == "both":
                raise
            return Option(protects, math.nan, why=str(error))
        if line.holds and line.loss <= max_loss:
            high, found = middle, line
        else:
            low = middle + 1
    alpha, line = (math.nan, line) if found is None else (found.alpha, found)
    return Option(protects, alpha, line.loss, line.rmse_outside, line.least_std, line.record_std)
