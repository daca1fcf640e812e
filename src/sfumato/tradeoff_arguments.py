"""What ``tradeoff`` is given, checked before any work, and the levels and ways that it knows."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from .errors import InputError
from .inputs import Inputs, as_inputs
from .joint_prior import JointPrior
from .prior import Prior
from .protect_arguments import check_choice, check_prior
from .regions import Region
from .stored_inputs import StoredInputs
from .tolerance import FloorTolerance, FractionTolerance

Way = Literal["joint", "pointwise", "diagonal", "dropout", "cloaking"]
WAYS: tuple[Way, ...] = get_args(Way)
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)

Level: TypeAlias = FractionTolerance | FloorTolerance


def checked_problem(prior: Any, X: Any, region: Any) -> tuple[Inputs, Region]:
    """The inputs, and the region bound to them."""
    if isinstance(prior, JointPrior):
        raise InputError(
            f"prior is a JointPrior of {', '.join(prior.outputs)}, whose errors have units of their own, so that there "
            "is no one error to compare; give the sf.Prior of one output, or call sf.protect at each level and read "
            "the certificates."
        )
    if not isinstance(prior, Prior):
        raise InputError(f"prior is {prior!r}; give a sf.Prior, for example from sf.fit_prior(X, y).")
    if isinstance(X, StoredInputs):
        raise InputError("X is read part after part; give a sample of its rows in memory to compare levels on.")
    if not isinstance(region, Region):
        raise InputError(f"region is {region!r}; give a region such as sf.Box(1, 2).")
    inputs = as_inputs(X)
    check_prior(prior, inputs)
    return inputs, region.bind(inputs)


def asked_levels(alphas: Any, floors: Any) -> list[Level]:
    """One tolerance for each level."""
    word, given = ("alphas", alphas) if floors is None else ("floors", floors)
    listed = [given] if isinstance(given, (int, float)) and not isinstance(given, bool) else given
    if isinstance(listed, str) or not hasattr(listed, "__iter__") or not len(list(listed)):
        raise InputError(f"{word} is {given!r}; give one or more numbers, such as {word}=[0.1, 0.3].")
    made = [FractionTolerance(one) if floors is None else FloorTolerance(one) for one in listed]
    if any(callable(one.value) for one in made if isinstance(one, FloorTolerance)):
        raise InputError("floors has a function in it; give numbers, in the units of y.")
    return list(made)


def asked_ways(ways: Any) -> list[str]:
    """The ways, each known and named once."""
    listed = [ways] if isinstance(ways, str) else list(ways)
    for way in listed:
        check_choice("ways", way, WAYS)
    if not listed or len(set(listed)) < len(listed):
        raise InputError(f"ways is {ways!r}; name each way once: {', '.join(map(repr, WAYS))}.")
    return listed


def called(*levels: Level) -> str:
    """Levels in words."""
    word = "α" if isinstance(levels[0], FractionTolerance) else "floor"
    numbers = (one.alpha if isinstance(one, FractionTolerance) else one.value for one in levels)
    return f"{word} = {', '.join(f'{one:g}' for one in numbers)}"
