"""Making a release: the owner's values with noise on them, rounded. Here y comes in, and nothing of it stays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Array
from ..data import Inputs, stacked_outputs
from ..errors import GuaranteeError, InputError
from ..noise import SecretKey, check_resolution, default_resolution, finest_resolution, round_outputs
from ..promise import Design
from ..proof import Certificate
from .release import Release, Resolution, check_name, steps_of

#: What the noise of a release with a known seed depends on, besides the seed.
UNSAFE_MESSAGE = b"sfumato unsafe release 1"


def make_release(
    design: Design,
    certificate: Certificate,
    key: SecretKey,
    y: Any,
    *,
    output_name: str = "y",
    resolution: Any = None,
    unsafe_seed: int | None = None,
    device: str = "cpu",
) -> Release:
    """Blur ``y`` and give back what may be published.

    Guarantee: nothing comes back under a failed certificate. With one key, the same design and the same y always
    get the same noise, whatever the output is called and however it is rounded, so that asking again can never be
    averaged; another y gets unrelated noise. With ``unsafe_seed`` the noise depends on the seed alone and the
    release is marked.
    """
    if not certificate.holds:
        raise GuaranteeError(why_not(certificate))
    values = _values(design, y)
    check_name(output_name)
    step = resolution_for(design, resolution)
    if unsafe_seed is None:
        message = release_digest(design, values)
    else:
        key, message = SecretKey.from_unsafe_seed(unsafe_seed), UNSAFE_MESSAGE
    drawn = design.noise.draw(key.normals(message, design.noise.normals_needed), device)
    return Release(
        design, certificate, rounded(values + drawn, step, design), step, unsafe_seed is not None, output_name
    )


def release_digest(design: Design, y: Any) -> bytes:
    """What the noise of a release depends on, besides the key: the design and the values."""
    values = _values(design, y)
    return hashlib.sha256(b"sfumato release 1\x00" + design.digest() + values.astype("<f8").tobytes()).digest()


def _values(design: Design, y: Any) -> Array:
    # + 0.0 turns −0 into 0: equal data must get equal noise.
    return np.asarray(stacked_outputs(design.inputs, y) + 0.0)


def why_not(certificate: Certificate) -> str:
    return (
        f"nothing was released: the certificate does not hold (joint ratio {certificate.joint_ratio:.6g}, at most 1 is "
        f"allowed; floor ratio {certificate.promised_ratio:.6g} where it was promised, at least 1 is needed). The "
        f"worst input is {certificate.worst_place}, where readers would reach ± {certificate.worst_std:.6g} and the "
        f'floor is {certificate.worst_floor:.6g}. Protect again with another cover ("greedy" or "exchange"), with '
        'method="eigh", or with a smaller alpha (a larger floor).'
    )


def resolution_for(design: Design, asked: Any) -> Resolution:
    """The step to round to, from public things only; ``asked`` may be a dict with one for each of several outputs."""
    outputs = design.inputs.outputs
    if not outputs.numbered:  # one number, as files have it; the noise may be a function of the inputs
        return _resolution_of(
            design, asked, design.representatives, design.noise.rms, float(np.mean(design.prior.noise))
        )
    given = asked if isinstance(asked, Mapping) else dict.fromkeys(outputs, asked)
    for name in given:
        outputs.number(name, "resolution")
    steps, variances, errors = [], design.noise.variance(), design.prior.noise_variance(len(design.inputs))
    for name in outputs:
        own = design.inputs.rows_about(name)
        rows = design.inputs.select(own) if own.size else design.inputs
        blur = float(np.sqrt(np.mean(variances[own] if own.size else variances)))
        error = float(np.mean(errors[own])) if own.size else 0.0
        steps.append(_resolution_of(design, given.get(name), rows, blur, error))
    return tuple(steps)


def _resolution_of(design: Design, asked: Any, rows: Inputs, blur: float, error: float) -> float:
    prior = design.prior
    std = float(np.sqrt(np.mean(prior.variance(rows)) + error))
    scale = float(np.mean(np.abs(prior.mean_at(rows))))
    if asked is None:
        return default_resolution(blur, std, scale)
    check_resolution(asked)
    finest = finest_resolution(std, scale)
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
