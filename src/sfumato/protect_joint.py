"""What ``protect`` is given where several outputs are one process: which are released where, and which are sensitive.

A pair of an input and an output is a row with the output's number in the last column; from there on nothing is special.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .errors import InputError
from .inputs import Array, Inputs, as_inputs
from .joint_prior import JointPrior
from .prior import Prior
from .regions import Everywhere, OutputRegion, Points, Region
from .stacking import known_output, stacked_inputs
from .tolerance import FloorTolerance, FractionTolerance, OutputTolerance, Tolerance

#: At how many inputs of a region it is looked how much of each output may be learnt.
LOOKS = 512


@dataclass(frozen=True, eq=False)
class JointTask:
    """Released rows, sensitive region and tolerance of several outputs, as if they were one."""

    prior: Prior
    others: tuple[Prior, ...]
    inputs: Inputs
    region: Region


def joint_task(joint: JointPrior, X: Any, region: Any, released: Any, others: Sequence[Any]) -> JointTask:
    """``X`` is common to all outputs or a dict with those of each; ``region`` likewise. ``others`` are JointPriors."""
    for other in others:
        if not isinstance(other, JointPrior) or other.outputs != joint.outputs:
            raise InputError(
                f"priors has a {type(other).__name__} that is not about the outputs {', '.join(joint.outputs)}; give "
                "JointPriors with the same outputs in the same order."
            )
    inputs = _inputs(joint, X, _released(joint, X, released))
    names = inputs.plain.names
    priors = [_with_noise(one, one.prior_on(names), inputs) for one in (joint, *others)]
    return JointTask(priors[0], tuple(priors[1:]), inputs, _region(joint, region, names))


def _released(joint: JointPrior, X: Any, released: Any) -> tuple[str, ...]:
    if isinstance(X, Mapping):
        given = tuple(known_output(joint.outputs, name, "X") for name in X)
        if released is not None and set(released) != set(given):
            raise InputError(
                f"released is {tuple(released)!r}, but X has inputs for {given!r}; give the same, or leave it out."
            )
        if not given:
            raise InputError("X is empty; give inputs for each output that is released.")
        return given
    if released is None:
        return tuple(name for name in joint.outputs if joint.takes_input(name))
    if isinstance(released, str):
        released = (released,)
    chosen = tuple(known_output(joint.outputs, name, "released") for name in released)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"released is {chosen!r}; name each output that is to be published once.")
    return chosen


def _inputs(joint: JointPrior, X: Any, released: Sequence[str]) -> Inputs:
    given = X if isinstance(X, Mapping) else dict.fromkeys(released, X)
    common: Inputs | None = None
    rows: dict[str, Inputs] = {}
    for name in released:
        if joint.takes_input(name):
            if given[name] is None:
                raise InputError(f"X has no inputs for {name!r}, which is a function of them.")
            rows[name] = as_inputs(given[name], f"X[{name!r}]" if isinstance(X, Mapping) else "X")
            common = common or rows[name]
    for name in released:
        if not joint.takes_input(name):
            place = np.array(joint.place_of(name, None if common is None else common.names))[None]
            rows[name] = Inputs(place, None if common is None else common.columns)
    return stacked_inputs({name: rows[name] for name in released}, joint.outputs)


def _with_noise(joint: JointPrior, prior: Prior, inputs: Inputs) -> Prior:
    levels = np.array([joint.noise_of(name) for name in joint.outputs])
    noise: Array = levels[inputs.values[:, -1].astype(np.intp)]
    return replace(prior, noise=float(noise[0]) if np.ptp(noise) == 0 else noise)


def _region(joint: JointPrior, region: Any, names: tuple[str, ...]) -> Region:
    if isinstance(region, (Everywhere, OutputRegion)):
        return region
    if isinstance(region, Region):
        region = {name: region for name in joint.outputs if joint.takes_input(name)}
    if not isinstance(region, Mapping) or not region:
        raise InputError(
            f"region is {region!r}; give a region for all outputs, or a dict with one for each sensitive output, such "
            f"as {{{joint.outputs[0]!r}: sf.Box(1, 2)}}."
        )
    parts: dict[int, Region] = {}
    for name, part in region.items():
        known_output(joint.outputs, name, "region")
        if not joint.takes_input(name):
            if part is not None and not isinstance(part, Everywhere):
                raise InputError(
                    f"region has {part!r} for {name!r}, which is one quantity and has no inputs; give None for it."
                )
            part = Points(np.array(joint.place_of(name, names))[None])
        elif not isinstance(part, Region):
            raise InputError(f"region has {part!r} for {name!r}; give a region such as sf.Box(1, 2).")
        elif isinstance(part, Everywhere):
            raise InputError(
                f"region has sf.Everywhere() for {name!r}; bound it, or give sf.Everywhere() for all outputs together."
            )
        parts[joint.outputs.index(name)] = part
    return OutputRegion(parts)


def tolerance_by_output(
    joint: JointPrior, prior: Prior, inputs: Inputs, region: Region, alpha: Any, floor: Any
) -> Tolerance | None:
    """The tolerance where each sensitive output has its own: a dict of them, or a floor, whose meaning is its own.

    None where there is one ``alpha`` for all, or none was given. ``region`` is bound to ``inputs``.
    """
    if alpha is not None and floor is not None:
        raise InputError("give exactly one of alpha, floor and tolerance; alpha and floor was given.")
    numbers = region.sensitive if isinstance(region, OutputRegion) else range(len(joint.outputs))
    names = [joint.outputs[number] for number in numbers]
    word, given = ("alpha", alpha) if alpha is not None else ("floor", floor)
    if floor is not None and not isinstance(floor, Mapping):
        given = dict.fromkeys(names, floor)
    if not isinstance(given, Mapping):
        return None
    for name in given:
        known_output(names, name, word)
    missing = [name for name in names if name not in given]
    if missing:
        raise InputError(f"{word} has no value for {missing[0]!r}, which is sensitive; give one for each of {names}.")
    if any(callable(value) for value in given.values()):
        raise InputError(f"{word} has a function for an output; give a number for each output.")
    make = FractionTolerance if word == "alpha" else FloorTolerance
    parts = tuple((number, make(given[joint.outputs[number]])) for number in numbers)
    look = region.points if region.points is not None else region.candidates(LOOKS, inputs, turn=0)
    for number, part in parts:
        # first, so that a floor above the prior's own spread is named as such
        part.check(prior, look[look[:, -1] == number], inputs)
    return OutputTolerance.of(parts, prior, look)
