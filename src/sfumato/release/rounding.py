"""To what step outputs are rounded, and which values can be hidden by noise in float64 at all.

A published value is that of ``y + Z`` in exact arithmetic, rounded, unless the sum lies within a few last bits of the
border between two steps. Steps must be far above the last bits of y and of Z for that: else they would show through.
docs/roundoff.md derives the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..arrays import UNIT, Array, Index
from ..data import Inputs
from ..errors import InputError
from ..noise import LARGEST_IN_STEPS, check_resolution, default_resolution, finest_resolution, round_outputs
from ..promise import Design

#: The step of published outputs: one, or one for each of several outputs.
Resolution: TypeAlias = float | tuple[float, ...]

#: Doubles at a value are at most this share of its noise apart, where there is noise to speak of: more than the second
#: share of the prior's standard deviation.
OF_NOISE, SPOKEN_OF = 2.0**-16, 2.0**-4

#: No values are further from a prior, in its standard deviations: √n of n values are, at the most, whatever they are,
#: if its standard deviation is theirs. Of values that are further than the second the owner is told.
BEYOND_BELIEF, FAR = 1e6, 30.0


def steps_of(resolution: Resolution, design: Design) -> Array:
    """The resolution of each row."""
    if isinstance(resolution, float):
        return np.full(len(design.inputs), resolution)
    return np.array(resolution)[design.inputs.outputs.numbers(design.inputs.values)]


def resolution_for(design: Design, asked: Any) -> Resolution:
    """The step to round to, from public things only; ``asked`` may be a dict with one for each of several outputs."""
    outputs = design.inputs.outputs
    if not outputs.numbered:  # one number, as files have it; the noise may be a function of the inputs
        rows, noise = design.representatives, design.noise
        return _resolution_of(design, asked, rows, noise.rms, noise.trace, float(np.mean(design.prior.noise)))
    given = asked if isinstance(asked, Mapping) else dict.fromkeys(outputs, asked)
    for name in given:
        outputs.number(name, "resolution")
    steps, variances, errors = [], design.noise.variance(), design.prior.noise_variance(len(design.inputs))
    for name in outputs:
        own = design.inputs.rows_about(name)
        rows = design.inputs.select(own) if own.size else design.inputs
        blurred = variances[own] if own.size else variances
        error = float(np.mean(errors[own])) if own.size else 0.0
        blur, trace = float(np.sqrt(np.mean(blurred))), float(np.sum(blurred))
        steps.append(_resolution_of(design, given.get(name), rows, blur, trace, error))
    return tuple(steps)


def _resolution_of(design: Design, asked: Any, rows: Inputs, blur: float, trace: float, error: float) -> float:
    prior = design.prior
    std = float(np.sqrt(np.mean(prior.variance(rows)) + error))
    size = float(np.max(np.abs(prior.mean_at(rows))))
    if not np.all(np.isfinite([std, size, trace])):
        raise InputError(
            f"the prior expects {size:g} ± {std:g}, and the noise adds up to a variance of {trace:g}: too large for "
            "float64. Give y in larger units."
        )
    # no row has more noise than all of them together; what is suppressed is as much as a row may have
    hidden = float(np.sqrt(max(trace, 0.0))) + (std if design.noise.suppressed_count else 0.0)
    finest = finest_resolution(std, size, hidden)
    if asked is None:
        return default_resolution(blur, std, finest)
    check_resolution(asked)
    if asked < finest:
        raise InputError(
            f"resolution is {asked:g}, finer than doubles can hold for outputs of this size; give at least "
            f"{finest:.2g}, or leave it out."
        )
    return float(asked)


def rounded(values: Array, resolution: Resolution, design: Design) -> Array:
    """``values`` to multiples of the resolution of their output."""
    steps, result = steps_of(resolution, design), np.empty(len(values))
    for step in np.unique(steps):
        result[steps == step] = round_outputs(values[steps == step], float(step))
    return result


class Expected(NamedTuple):
    """What the prior expects of some rows: ``mean``, and the standard deviation of a value about it."""

    mean: Array
    std: Array

    def furthest(self, values: Array) -> tuple[float, int]:
        """How far the furthest of ``values`` is from it, in standard deviations, and its row."""
        off = np.abs(values - self.mean)
        distance = np.divide(off, self.std, out=np.where(off > 0, np.inf, 0.0), where=self.std > 0)
        row = int(np.argmax(distance))
        return float(distance[row]), row


def typical_std(design: Design) -> Array:
    """The root mean square of the prior's standard deviations of a value: for each output, in the order of numbers."""
    rows, prior = design.representatives, design.prior
    errors = np.asarray(prior.noise)
    variances = prior.variance(rows) + (errors if errors.size == len(rows) else np.mean(errors))
    if not rows.outputs.numbered:
        return np.asarray(np.sqrt(np.mean(variances, keepdims=True)))
    numbers = rows.outputs.numbers(rows.values)
    counts = np.bincount(numbers, minlength=len(rows.outputs))
    return np.asarray(np.sqrt(np.bincount(numbers, variances, len(rows.outputs)) / np.maximum(counts, 1)))


def expected(design: Design) -> Expected:
    """What the prior expects of all rows, in memory."""
    rows, prior = design.inputs, design.prior
    std = np.sqrt(prior.variance(rows) + prior.noise_variance(len(rows)))
    typical = typical_std(design)
    each = typical[rows.outputs.numbers(rows.values)] if rows.outputs.numbered else typical
    # where a prior knows a value better than the others it is not the value that is beyond belief
    return Expected(prior.mean_at(rows), np.maximum(std, each))


def far_in_words(distance: float, place: str) -> str:
    """What to tell an owner whose values are far from what the prior expects."""
    return (
        f"Is the prior right about these values? That in {place} is {distance:.3g} standard deviations from what the "
        "prior expects there; the promise is to readers who believe the prior, and as large as its uncertainty."
    )


def place_of(rows: Inputs, row: int) -> str:
    """Which row that is, in words: with its inputs, if they are few, because rows before it may have been left out."""
    if not rows.outputs.numbered:
        where = rows.in_words(rows.values[row])
        return f"row {row} (counted from 0{f'; {where}' if len(where) <= 60 else ''})"
    name = rows.outputs.names[int(rows.outputs.numbers(rows.values[[row]])[0])]
    return f"row {int(np.searchsorted(rows.rows_about(name), row))} of {name!r} (counted from 0)"


def check_values(design: Design, values: Array, resolution: Resolution) -> None:
    """Raise ``InputError`` where the noise of a design cannot hide ``values``, one for each row in memory."""

    about, steps = expected(design), steps_of(resolution, design)

    def noise_of(few: Index) -> Array:
        """What is suppressed hides a row as noise does, as much as there is to hide."""
        suppressed = np.minimum(np.sum(design.noise.suppressed[few] ** 2, axis=1), about.std[few] ** 2)
        return np.asarray(np.sqrt(design.noise.variance()[few] + suppressed))

    check_rows(values, about, steps, noise_of, lambda row: place_of(design.inputs, row))


def check_rows(
    values: Array, about: Expected, steps: Array, noise_of: Callable[[Index], Array], place: Callable[[int], str]
) -> tuple[float, int]:
    """How far the value furthest from the prior is, in standard deviations, and its row.

    Raises ``InputError`` for values that the prior cannot believe, or of which rounding would swallow the noise.
    ``noise_of`` gives the standard deviations of the noise on some rows, and is asked for those few that need it.
    """
    distance, row = about.furthest(values)
    if distance > BEYOND_BELIEF:
        raise InputError(
            f"y is {values[row]:g} in {place(row)}, {distance:.3g} standard deviations from the "
            f"{about.mean[row]:g} ± {about.std[row]:.3g} that the prior expects; no data are that far from a prior "
            "that fits them. Look for other units, or for a number that stands for a missing value; or fit the prior "
            "to these data."
        )
    apart = UNIT * np.abs(values)
    large = (np.abs(values) > LARGEST_IN_STEPS * steps) | (apart > OF_NOISE * SPOKEN_OF * about.std)
    few = np.flatnonzero(large)
    if not few.size:
        return distance, row
    noise, size = noise_of(few), np.abs(values[few])
    least = np.where(noise > SPOKEN_OF * about.std[few], OF_NOISE * noise, np.inf)
    swallowed, shown = apart[few] > least, (noise > 0) & (size > LARGEST_IN_STEPS * steps[few])
    if not np.any(swallowed | shown):
        return distance, row
    one = int(np.argmax(np.where(swallowed if np.any(swallowed) else shown, size, 0.0)))
    row = int(few[one])
    below = f"the noise there, {noise[one]:.2g}. Take"
    if not swallowed[one]:
        coarser = 1.01 * size[one] / LARGEST_IN_STEPS
        below = f"the resolution, {steps[row]:g}. Give a resolution of at least {coarser:.2g}, or take"
    raise InputError(
        f"y is {values[row]:g} in {place(row)}, where doubles are {apart[row]:.2g} apart: not far enough below {below} "
        "a number that all may know off y, and off the prior's mean, before it is protected."
    )
