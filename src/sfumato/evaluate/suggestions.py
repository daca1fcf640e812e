"""Suggestions: the strongest promise that costs no more than is allowed, or what a promise would cost.

For each of the three promises levels are tried by bisection, on designs that share their factorisations
(design/levels.py). What is suggested is made by ``protect``, and the numbers are its own. No values are needed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ..design import check_choice
from ..errors import GuaranteeWarning, InputError
from ..models import Prior
from ..progress import AskedProgress, Progress
from ..progress import progress as show_progress
from ..promise import Objective, Protects
from ..regions import Region
from ..text import aligned, name_and_unit, plain, shown_lines, wrapped
from ..views import boxed_table, pictures
from .comparison import Comparison, Level, Line, asked_levels, checked_problem
from .tradeoff_readers import places_to_serve
from .tradeoffs import COUNTS_ON_THE_PRIOR, errors_outside, number, share, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What can be asked for: what it may cost, or the level.
Asked = Literal["max_loss", "max_error", "max_noise", "alpha", "floor"]

#: What each limit is about: a field of ``Line``.
COSTS: dict[Asked, str] = {"max_loss": "loss", "max_error": "rmse_outside", "max_noise": "noise"}

#: What each promise is called among the ways of a trade-off, the widest promise first.
WAYS: dict[Protects, str] = {"both": "joint", "records": "records", "function": "function"}

#: When each promise is right.
RIGHT_FOR: dict[Protects, str] = {
    "both": "when in doubt: neither the typical value in the region nor any record there is known",
    "records": "for people: what is each record's own stays unknown, the typical value may be known",
    "function": "for a surrogate, an orbit or a map: the typical value is the secret, single records are not",
}

#: The first levels that are tried, the strongest and the weakest among them.
FIRST = (0.01, 0.05, 0.2, 0.5, 0.8, 0.99)

#: Bisection ends where α is known to this share of itself, and of 1 − α: the floor is then known to half of that.
CLOSE = 0.02

#: What is suggested may cost more than the designs that were looked at, by what a proof takes; so often it is mended.
MENDED = 5

#: A promise that lets readers learn more than this share is suggested only where no other is to be had.
MOST_LEARNT = 0.5

#: What stays unused of what may be lost, or added, as a share: costs are computed to about that.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Option:
    """One promise at the strongest level that costs no more than was asked for; NaN where no level does.

    ``alpha`` and ``floor`` are the level, the floor in the units of the output: the least in the region (of records,
    where only these are promised). ``loss`` is the share of their accuracy that readers elsewhere lose, ``error`` their
    expected error there, ``noise`` the root mean square noise a row; ``function_std`` and ``record_std`` are the least
    standard deviations of f and of a record that readers keep inside. All of it is of the design that ``protect`` makes
    at this level, and ``evidence`` is its certificate's. Where no level is cheap enough they are of the weakest level
    that was tried. ``curve`` are all levels that were tried. ``why`` says why a promise cannot be made at all.

    ``objective`` is what was asked for, ``serves`` whether inputs were named that are to stay useful. ``other`` is a
    look at the same level under the other objective; None where it cannot be had.
    """

    protects: Protects
    alpha: float
    floor: float = math.nan
    loss: float = math.nan
    error: float = math.nan
    noise: float = math.nan
    function_std: float = math.nan
    record_std: float = math.nan
    evidence: str = ""
    curve: tuple[Line, ...] = ()
    by_floor: bool = False
    affordable: bool = False
    why: str = ""
    objective: Objective = "noise"
    serves: bool = False
    other: Line | None = None

    @property
    def right_for(self) -> str:
        """When this promise is the right one."""
        return RIGHT_FOR[self.protects]

    @property
    def call(self) -> str:
        """The call that makes it; empty where it is too dear."""
        level = f"floor={self.floor:.12g}" if self.by_floor else f"alpha={self.alpha:g}"
        serving = ', objective="predictions"' * (self.objective == "predictions")
        serving += ", serve=serve" * (self.objective == "predictions" and self.serves)
        return f'sf.protect(prior, X, region, {level}, protects="{self.protects}"{serving})' if self.affordable else ""

    @property
    def options(self) -> str:
        """The same for the command line."""
        level = f"--floor {self.floor:.12g}" if self.by_floor else f"--alpha {self.alpha:g}"
        serving = " --objective predictions" * (self.objective == "predictions")
        return f"{level} --protects {self.protects}{serving}" if self.affordable else ""


@dataclass(frozen=True, eq=False)
class Suggestion:
    """What each promise can be had for: ``options``, one a promise; ``best`` is the one to start with.

    ``asked`` says what was given: ("max_loss", 0.1), say. ``unprotected`` is the expected error outside without any
    protection.

    Guarantee: every option with a ``call`` costs at most what was asked: the share ``max_loss`` of the variance that
    readers of all data would explain outside the region, expected under the prior, the expected error ``max_error``
    there, or ``max_noise``, the root mean square noise a row. The numbers are those of ``protect`` at that level, whose
    certificate holds. Whether the prior is right, and whose promise it should be, it cannot know: ``right_for`` says
    when each is.
    """

    options: tuple[Option, ...]
    asked: tuple[Asked, float]
    unprotected: float
    region: str
    output: str = "f"

    @property
    def is_level(self) -> bool:
        """Whether a level was asked about, and not what it may cost."""
        return self.asked[0] in ("alpha", "floor")

    @property
    def max_loss(self) -> float | None:
        """The share of accuracy that may be lost; None where something else was asked."""
        return self.asked[1] if self.asked[0] == "max_loss" else None

    @property
    def unit(self) -> str:
        """The unit of the output, from brackets at the end of its name, with a space before it; else nothing."""
        return name_and_unit(self.output)[1]

    @property
    def best(self) -> Option | None:
        """The widest promise that lets nobody learn more than half; else the strongest; None where all are too dear.

        At a level that was given: the widest that can be made.
        """
        affordable = [option for option in self.options if option.call]
        strong = [option for option in affordable if self.is_level or option.alpha <= MOST_LEARNT]
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
                self.asked[0]: self.asked[1],
                "unprotected": self.unprotected,
                "options": options,
                "best": None if self.best is None else self.best.protects,
            }
        )
        return found

    def sentence(self, option: Option) -> str:
        """One promise in a sentence, in the units of the output.

        >>> line = Option("both", 0.3, 20.0, 0.1, 74.2, 12.0, affordable=True)
        >>> print(Suggestion((line,), ("max_loss", 0.1), 67.04, "75 ≤ age ≤ 90", "mass [g]").sentence(line))
        both: the strongest floor is ±20 g (α = 0.3): error outside 67 → 74 g, 10 % of the accuracy there is lost; noise
        12 g a row.
        """
        if option.why:
            return f"{option.protects} cannot be promised: {option.why}"
        unit = self.unit
        costs = errors_outside(self.unprotected, option.error, option.loss, unit) + _other(option)
        costs += f"; noise {short(option.noise)}{unit} a row"
        costs += " (searched, not proved)" * (option.evidence == "searched")
        alpha = "" if math.isnan(option.alpha) else f" (α = {option.alpha:g})"
        level = f"±{number(option.floor)}{unit}{alpha}"
        if self.is_level:
            return f"{option.protects}: a floor of {level} costs: {costs}."
        if not option.affordable:
            return f"{option.protects}: too dear, even a floor of {level} costs: {costs}."
        limit = f"; α below {FIRST[0]:g} was not tried" if option.alpha <= FIRST[0] else ""
        return f"{option.protects}: the strongest floor is {level}: {costs}{limit}."

    def plot(self, ax: Axes | None = None) -> Axes:
        """What each promise costs against its floor, with what was chosen marked."""
        axes: Axes = pictures().plot_suggestion(self, ax=ax)
        return axes

    def __str__(self) -> str:
        lines = [*wrapped(self._title), *aligned([_HEADER, *self._rows()]), ""]
        for text in (_LEGEND, *self._sentences()):
            lines += wrapped(text)
        return shown_lines([*lines, "", *([self._start, f"  {self.call}"] if self.call else [self._none])])

    def _repr_html_(self) -> str:
        end = f"{self._start}  {self.call}" if self.call else self._none
        return boxed_table("", "", self._title, self._rows(), _HEADER, [*self._sentences(), end])

    @property
    def _title(self) -> str:
        word, value = self.asked
        name, unit = name_and_unit(self.output)
        asked = {
            "max_loss": f"losing at most {share(value)} of the accuracy outside",
            "max_error": f"with an error outside of at most {number(value)}{unit}",
            "max_noise": f"with noise of at most {number(value)}{unit} a row",
            "alpha": f"at α = {value:g}",
            "floor": f"at a floor of ±{number(value)}{unit}",
        }[word]
        units = f"; floors, errors and noise in{unit}" if unit else ""
        return f"{name} where {self.region} is protected, {asked}{units}"

    @property
    def _start(self) -> str:
        return "" if self.best is None else f'If "{self.best.protects}" is right for you:'

    @property
    def _none(self) -> str:
        word, value = self.asked
        if self.is_level:
            return "None of the promises can be made at this level."
        if word == "max_loss":
            return f"None costs as little as {share(value)}."
        amount = f"{number(value)}{self.unit}"
        if word == "max_error":
            return f"None leaves an error outside of {amount}."
        return f"None needs only {amount} of noise."

    def _rows(self) -> list[tuple[str, ...]]:
        bare = ("nothing", "", "", "0 %", short(self.unprotected), "0", "", "0")
        return [bare, *(_cells(one) for one in self.options)]

    def _sentences(self) -> list[str]:
        """Each promise in a sentence, then when it is right, if it can be made; and what to know of the objective."""
        said = [self.sentence(one) + ("" if one.why else f" Right {one.right_for}.") for one in self.options]
        return [*said, COUNTS_ON_THE_PRIOR] if any(one.other is not None for one in self.options) else said


_HEADER = ("protects", "α", "floor", "loss", "error out", "noise", "f in", "y in")

#: What the noise of each objective has.
OBJECTIVES: dict[Objective, str] = {"noise": "least noise", "predictions": "best predictions"}

_LEGEND = (
    "loss: of the variance that all data would explain outside, the share that is not explained; f in, y in: how well "
    "readers then know f and a record inside, at best; noise: root mean square change of a row. All of it is for "
    "readers with this prior; a rehearsal tries whether it is right."
)


def _other(option: Option) -> str:
    """What the other objective loses at the same level, in words."""
    if option.other is None:
        return ""
    return f", {share(option.other.loss)} with the {OBJECTIVES[other_objective(option.objective)]}"


def other_objective(objective: Objective) -> Objective:
    """The other objective."""
    return "noise" if objective == "predictions" else "predictions"


def _cells(option: Option) -> tuple[str, ...]:
    level = "–" if option.why else "too dear" if not option.affordable else number(option.alpha)
    values = (option.error, option.noise, option.function_std, option.record_std)
    return (option.protects, level, number(option.floor), share(option.loss), *map(short, values))


def suggest(
    prior: Prior,
    X: Any,
    region: Region,
    max_loss: float | None = None,
    *,
    max_error: float | None = None,
    max_noise: float | None = None,
    alpha: float | None = None,
    floor: float | None = None,
    objective: Objective = "noise",
    serve: Any = None,
    output: str | None = None,
    progress: AskedProgress = True,
) -> Suggestion:
    """Which floor each promise can be had at, or what a level would cost; give one of five.

    ============= ======================================================================================
    given         found, for each of the promises "both", "records" and "function"
    ============= ======================================================================================
    ``max_loss``  the strongest floor that costs readers outside the region at most this share of their accuracy (0.1
                  if nothing is given)
    ``max_error`` the strongest floor with which their expected error outside is at most this, in the units of y
    ``max_noise`` the strongest floor with noise of at most this root mean square a row, √(Tr Σ / n), in the units of y:
                  the utility-aware formulation of the paper (its section 3), whose utility loss is E‖W − y‖² = Tr Σ
    ``alpha``     what the promise by this α costs outside, and how much noise it adds
    ``floor``     the same for a floor in the units of y
    ============= ======================================================================================

    Accuracy is the variance that readers explain in the mean over inputs outside, expected under the prior, against
    what they would explain without protection; the inputs are ``serve`` (inputs or a region), or a spread that follows
    the data. ``objective`` is that of ``protect``; what the other one would cost at the same level is said too. Under a
    prior with a large variance a small share of it can be many times the error: ask by ``max_error`` there. Levels
    between α = 0.01 and 0.99 are tried, to about 1 % of the floor. ``output`` names what y is, with its unit in
    brackets at the end ("mass [g]").

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> kernel = gpytorch.kernels.RBFKernel()
    >>> kernel.lengthscale = 0.3
    >>> found = sf.suggest(sf.Prior(kernel, noise=0.5), np.linspace(0, 3, 61), sf.Box(1, 2), max_loss=0.05)
    >>> found.best.protects, found.best.alpha
    ('records', 0.01)
    >>> found.call
    'sf.protect(prior, X, region, alpha=0.01, protects="records")'
    """
    asked = check_suggestion(max_loss, max_error, max_noise, alpha, floor, objective)
    inputs, bound = checked_problem(prior, X, region)
    places = places_to_serve(inputs, bound, serve)
    if not len(places.outside):
        raise InputError("region leaves no inputs outside it, so there is nobody to lose accuracy; give serve inputs.")
    comparison = Comparison(prior, inputs, bound, places, serve=serve)
    with warnings.catch_warnings(), show_progress(progress) as step:
        # of designs that are compared, not published
        warnings.simplefilter("ignore", GuaranteeWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        bare = comparison.unprotected.rmse_outside
        if asked[0] == "max_error" and asked[1] <= bare:
            raise InputError(f"max_error is {asked[1]:g}, but without protection the error is {bare:.4g}; give more.")
        options = tuple(_Search(comparison, protects, asked, step, objective).option() for protects in WAYS)
    words = bound.in_words(inputs.names)
    return Suggestion(options, asked, bare, words, output or "f")


def check_suggestion(
    max_loss: Any, max_error: Any, max_noise: Any, alpha: Any, floor: Any, objective: Any
) -> tuple[Asked, float]:
    """What was asked for, checked: one of the five."""
    check_choice("objective", objective, get_args(Objective))
    if max_noise is not None and objective == "predictions":
        raise InputError(
            'max_noise is given, but objective is "predictions", which does not ask for little noise; give max_loss or '
            'max_error, or objective="noise".'
        )
    given: dict[Asked, Any] = {"max_loss": max_loss, "max_error": max_error, "max_noise": max_noise}
    given |= {"alpha": alpha, "floor": floor}
    given = {word: value for word, value in given.items() if value is not None} or {"max_loss": 0.1}
    if len(given) > 1:
        first, *more = given
        raise InputError(f"{first} is given, and {' and '.join(more)} too; give one of them.")
    ((word, value),) = given.items()
    real = isinstance(value, (int, float)) and not isinstance(value, bool)
    if word in ("alpha", "floor"):
        _level(word, value)
    elif word == "max_loss" and not (real and 0.0 < value < 1.0):
        raise InputError(f"max_loss is {value!r}; give a share between 0 and 1, such as 0.1.")
    elif word in ("max_error", "max_noise") and not (real and 0.0 < value < math.inf):
        raise InputError(f"{word} is {value!r}; give a positive standard deviation in the units of y.")
    return word, float(value)


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for the strongest level of one promise."""

    comparison: Comparison
    protects: Protects
    asked: tuple[Asked, float]
    step: Progress
    objective: Objective

    def option(self) -> Option:
        word, value = self.asked
        self.step.stage(f"what it costs to protect {self.protects}")
        if word in ("alpha", "floor"):
            made = self._made(_level(word, value))
            if made is None or not made.holds:
                return self._cannot()
            option = self._found(made, self._first(), True, by_floor=word == "floor")
            if word == "floor" and self.protects != "records":
                # the same in shares of the prior variance: the largest that may be learnt anywhere
                most = float(np.max(self.comparison.prior_inside))
                option = replace(option, alpha=float(f"{1.0 - value**2 / most:.3g}"))
            return option
        curve = self._first()
        if not curve:
            return self._cannot()
        alpha = self._strongest(curve)
        for _ in range(MENDED):
            made = self._made(_level("alpha", alpha))
            if made is not None and self._is_cheap(made):
                return self._found(made, curve, True)
            if alpha >= FIRST[-1]:
                break
            # a proof takes a little more than a look
            alpha = _rounded_up(min(FIRST[-1], 1.0 / (1.0 + (1.0 / alpha - 1.0) * (1.0 - 2.0 * CLOSE))))
        weakest = made if made is not None and alpha >= FIRST[-1] else self._made(_level("alpha", FIRST[-1]))
        return self._cannot() if weakest is None else self._found(weakest, curve, False)

    def _first(self) -> list[Line]:
        """The first levels that can be had."""
        return [line for line in map(self._looked_at, FIRST) if line is not None]

    def _strongest(self, curve: list[Line]) -> float:
        """The least α that is cheap enough, or the weakest level, from lines of the ``curve``, which grows.

        Between a level that is cheap and one that is not, the next one is where the cost would be right if its
        logarithm were linear in that of the odds of α.
        """
        cheap = [line for line in curve if self._is_cheap(line)]
        if not cheap:
            return FIRST[-1]
        high = min(cheap, key=lambda line: line.alpha)
        low = max((line for line in curve if line.alpha < high.alpha), key=lambda line: line.alpha, default=high)
        while _odds(high) - _odds(low) > CLOSE:
            costs = [self._cost(line) for line in (low, high)]
            share = 0.5
            if costs[0] > costs[1] > 0.0:
                share = math.log(costs[0] / self.asked[1]) / math.log(costs[0] / costs[1])
            # beside what is expected, on either side, so that it lies between two that are close
            share += 0.4 * CLOSE / (_odds(high) - _odds(low)) * (1.0 if share < 0.5 else -1.0)
            odds = _odds(low) + min(max(share, 0.1), 0.9) * (_odds(high) - _odds(low))
            line = self._looked_at(1.0 / (1.0 + math.exp(-odds)))
            if line is None:
                break
            curve.append(line)
            low, high = (low, line) if self._is_cheap(line) else (line, high)
        return _rounded_up(high.alpha)

    def _looked_at(self, alpha: float) -> Line | None:
        return self.comparison.line(WAYS[self.protects], _level("alpha", alpha), self.step, objective=self.objective)

    def _made(self, level: Level) -> Line | None:
        """As ``protect`` makes it."""
        return self.comparison.line(WAYS[self.protects], level, self.step, proved=True, objective=self.objective)

    def _other(self, level: Level) -> Line | None:
        """A look at the other objective."""
        return self.comparison.line(WAYS[self.protects], level, self.step, objective=other_objective(self.objective))

    def _cost(self, line: Line) -> float:
        return float(getattr(line, COSTS[self.asked[0]]))

    def _is_cheap(self, line: Line) -> bool:
        return line.holds is True and self._cost(line) <= self.asked[1] * (1.0 + ROUNDING)

    def _found(self, line: Line, curve: Sequence[Line], affordable: bool, by_floor: bool = False) -> Option:
        tried = sorted([*curve, line], key=lambda one: one.floor)
        word, value = self.asked if by_floor else ("alpha", line.alpha)
        return Option(
            self.protects,
            line.alpha,
            line.floor,
            line.loss,
            line.rmse_outside,
            line.noise,
            line.least_std,
            line.record_std,
            line.evidence,
            tuple(tried),
            by_floor,
            affordable,
            objective=self.objective,
            serves=self.comparison.serve is not None,
            other=self._other(_level(word, value)) if affordable else None,
        )

    def _cannot(self) -> Option:
        own = [why for way, _, why in self.comparison.left_out if way == WAYS[self.protects]]
        if self.protects == "both" and self.asked[0] in COSTS and own:
            raise InputError(own[-1])
        return Option(self.protects, math.nan, why=own[-1] if own else "no noise was found that keeps it.")


def _level(word: Asked, value: float) -> Level:
    (level,) = asked_levels([value] if word == "alpha" else None, [value] if word == "floor" else None)
    return level


def _odds(line: Line) -> float:
    """The logarithm of the odds of α."""
    return math.log(line.alpha / (1.0 - line.alpha))


def _rounded_up(alpha: float) -> float:
    """α with three digits, towards the weaker promise, which costs less."""
    digits = 3 - math.ceil(math.log10(alpha))
    return min(float(math.ceil(alpha * 10.0**digits - 1e-9) / 10.0**digits), FIRST[-1])
