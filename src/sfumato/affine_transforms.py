"""What BoTorch does to inputs and outputs before its model sees them, as long as it is affine.

A model of ``z = (x − offset) / scale`` and of ``(y − shift) / factor`` is a model of x and y in other units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from botorch.models.transforms.input import (
    AffineInputTransform,
    ChainedInputTransform,
    InputStandardize,
    InputTransform,
    Normalize,
)
from botorch.models.transforms.outcome import ChainedOutcomeTransform, OutcomeTransform, Standardize

from .errors import InputError
from .inputs import Array


@dataclass(frozen=True)
class Units:
    """Inputs are seen as ``(x − offset) / scale``, column by column, and outputs as ``(y − shift) / factor``."""

    offset: Array
    scale: Array
    shift: float = 0.0
    factor: float = 1.0

    @property
    def same_inputs(self) -> bool:
        """Whether inputs are seen as they are."""
        return not np.any(self.offset) and bool(np.all(self.scale == 1.0))


def units_of(inputs: InputTransform | None, outputs: OutcomeTransform | None, columns: int) -> Units:
    """The units in which a model with these transforms sees inputs of so many ``columns``, and their outputs."""
    offset, scale = _seen_inputs(inputs, np.zeros(columns), np.ones(columns))
    shift, factor = _seen_outputs(outputs, 0.0, 1.0)
    if not (np.all(np.isfinite(offset)) and np.all(np.isfinite(scale)) and np.all(scale != 0)):
        raise InputError(
            f"model.input_transform has offsets {offset} and scales {scale}, which cannot be undone; give it bounds "
            "between which each column varies, and fit the model again."
        )
    return Units(offset, scale, shift, factor)


def _seen_inputs(transform: Any, offset: Array, scale: Array) -> tuple[Array, Array]:
    """What ``transform`` makes of inputs that are already seen with ``offset`` and ``scale``."""
    if transform is None:
        return offset, scale
    if type(transform) is ChainedInputTransform:
        for part in transform.values():
            offset, scale = _seen_inputs(part, offset, scale)
        return offset, scale
    if type(transform) not in (AffineInputTransform, Normalize, InputStandardize):
        raise InputError(
            f"model.input_transform is of class {type(transform).__name__}, which is not a change of units; use "
            "Normalize, InputStandardize or AffineInputTransform, or transform X yourself and fit a model to that."
        )
    if not (transform.transform_on_train and transform.transform_on_eval):
        raise InputError(
            "model.input_transform is switched off for training or for predictions; a prior needs one that is always "
            "on, or none."
        )
    if transform.coefficient.dim() > 2 or transform.offset.dim() > 2:
        raise InputError("model.input_transform has a batch shape; give a model of one output without batches.")
    moved, widened = np.zeros(len(scale)), np.ones(len(scale))
    chosen = np.arange(len(scale)) if getattr(transform, "indices", None) is None else transform.indices.cpu().numpy()
    moved[chosen] = transform.offset.detach().double().cpu().numpy().reshape(-1)
    widened[chosen] = transform.coefficient.detach().double().cpu().numpy().reshape(-1)
    if transform.reverse:
        moved, widened = -moved / widened, 1.0 / widened
    return offset + scale * moved, scale * widened


def _seen_outputs(transform: Any, shift: float, factor: float) -> tuple[float, float]:
    if transform is None:
        return shift, factor
    if type(transform) is ChainedOutcomeTransform:
        for part in transform.values():
            shift, factor = _seen_outputs(part, shift, factor)
        return shift, factor
    if type(transform) is not Standardize:
        raise InputError(
            f"model.outcome_transform is of class {type(transform).__name__}, which is not a change of units; use "
            "Standardize or none, or transform y yourself and protect the transformed values."
        )
    if transform.means.numel() != 1:
        raise InputError(
            f"model.outcome_transform is for {transform.means.numel()} outputs or batches; give a model of one output."
        )
    own_shift, own_factor = float(transform.means.double()), float(transform.stdvs.double())
    return shift + factor * own_shift, factor * own_factor
