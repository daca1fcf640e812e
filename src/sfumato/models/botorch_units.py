"""Models of BoTorch that change units themselves: normalised inputs and standardised outputs."""

from __future__ import annotations

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

from ..errors import InputError
from .units import ColumnMap, Units


def units_of(inputs: InputTransform | None, outputs: OutcomeTransform | None, columns: int) -> Units:
    """The units in which a model with these transforms sees inputs of so many ``columns``, and their outputs."""
    seen = _seen_inputs(inputs, columns)
    shift, factor = _seen_outputs(outputs)
    if not np.all(np.isfinite(seen.offsets + seen.scales)) or 0.0 in seen.scales:
        raise InputError(
            f"model.input_transform has offsets {seen.offsets} and scales {seen.scales}, which cannot be undone; give "
            "it bounds between which each column varies, and fit the model again."
        )
    return Units(seen, shift, factor)


def _seen_inputs(transform: Any, columns: int) -> ColumnMap:
    seen = ColumnMap.identity(columns)
    if transform is None:
        return seen
    if type(transform) is ChainedInputTransform:
        for part in transform.values():
            seen = seen.then(_seen_inputs(part, columns))
        return seen
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
    offsets, scales = np.zeros(columns), np.ones(columns)
    chosen = np.arange(columns) if getattr(transform, "indices", None) is None else transform.indices.cpu().numpy()
    offsets[chosen] = transform.offset.detach().double().cpu().numpy().reshape(-1)
    scales[chosen] = transform.coefficient.detach().double().cpu().numpy().reshape(-1)
    if transform.reverse:
        offsets, scales = -offsets / scales, 1.0 / scales
    return ColumnMap(seen.sources, tuple(offsets.tolist()), tuple(scales.tolist()))


def _seen_outputs(transform: Any) -> tuple[float, float]:
    """The shift and the factor of outputs."""
    if transform is None:
        return 0.0, 1.0
    if type(transform) is ChainedOutcomeTransform:
        shift, factor = 0.0, 1.0
        for part in transform.values():
            own_shift, own_factor = _seen_outputs(part)
            shift, factor = shift + factor * own_shift, factor * own_factor
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
    return float(transform.means.double()), float(transform.stdvs.double())
