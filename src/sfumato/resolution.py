"""How finely published outputs are written down: one step for all rows, or one for each of several outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from .design import Design
from .entropy import check_resolution, default_resolution, finest_resolution, round_outputs
from .errors import InputError
from .inputs import Array, Inputs
from .noise import IndependentNoise, Noise
from .stacking import known_output

#: The step of published outputs: one, or one for each of several outputs.
Resolution: TypeAlias = float | tuple[float, ...]


def rounded(values: Array, resolution: Resolution, design: Design) -> Array:
    """``values`` to multiples of the resolution of their output."""
    steps, result = steps_of(resolution, design), np.empty(len(values))
    for step in np.unique(steps):
        result[steps == step] = round_outputs(values[steps == step], float(step))
    return result


def steps_of(resolution: Resolution, design: Design) -> Array:
    """The resolution of each row."""
    if isinstance(resolution, float):
        return np.full(len(design.inputs), resolution)
    return np.array(resolution)[design.inputs.values[:, -1].astype(np.intp)]


def checked_resolution(resolution: Any, design: Design) -> Resolution:
    outputs = design.inputs.outputs
    if not isinstance(resolution, (tuple, list)):
        check_resolution(resolution)
        return float(resolution)
    if outputs is None or len(resolution) != len(outputs):
        raise InputError(f"resolution has {len(resolution)} entries; give one number, or one for each output.")
    for step in resolution:
        check_resolution(step)
    return tuple(float(step) for step in resolution)


def resolution_for(design: Design, asked: Any) -> Resolution:
    """The step to round to, from public things only; ``asked`` may be a dict with one for each of several outputs."""
    outputs = design.inputs.outputs
    if outputs is None:
        return _resolution_of(design, asked, design.lookout, design.noise, float(np.mean(design.prior.noise)))
    given = asked if isinstance(asked, Mapping) else dict.fromkeys(outputs, asked)
    for name in given:
        known_output(outputs, name, "resolution")
    steps, variances, errors = [], design.noise.variance(), design.prior.noise_variance(len(design.inputs))
    for number, name in enumerate(outputs):
        own = np.flatnonzero(design.inputs.values[:, -1] == number)
        rows = design.inputs.select(own) if own.size else design.inputs
        noise = IndependentNoise(variances[own] if own.size else variances)
        error = float(np.mean(errors[own])) if own.size else 0.0
        steps.append(_resolution_of(design, given.get(name), rows, noise, error))
    return tuple(steps)


def _resolution_of(design: Design, asked: Any, rows: Inputs, noise: Noise, error: float) -> float:
    prior = design.prior
    std = float(np.sqrt(np.mean(prior.variance(rows)) + error))
    scale = float(np.mean(np.abs(prior.mean_at(rows))))
    if asked is None:
        return default_resolution(noise, std, scale)
    check_resolution(asked)
    finest = finest_resolution(std, scale)
    if asked < finest:
        raise InputError(
            f"resolution is {asked:g}, finer than doubles can hold for outputs of this size; give at least "
            f"{finest:.2g}, or leave it out."
        )
    return float(asked)


def resolution_in_words(resolution: Resolution, design: Design) -> str:
    if isinstance(resolution, float):
        return f"{resolution:g}"
    outputs = design.inputs.outputs or ()
    return ", ".join(f"{step:g} ({name})" for step, name in zip(resolution, outputs, strict=True))
