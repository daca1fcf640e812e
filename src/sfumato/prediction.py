"""What a reader concludes at new inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .inputs import Array, Inputs
from .prior import GaussianProcess

# Doubles that one block of cross-covariances may take while predicting (32 MiB).
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Prediction:
    """Mean and standard deviation of the function f (not of a new noisy measurement) at the asked inputs.

    ``std_lower`` is ``std`` itself, except for compressed releases: there the exact standard deviation lies between
    ``std_lower`` and ``std``, so that error bars are never too short. ``index`` has the row labels of the asked inputs,
    if they were a DataFrame.
    """

    mean: Array
    std: Array
    _covariance: Callable[[], Array] = field(repr=False)
    std_lower: Array | None = None
    index: pd.Index[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.std_lower is None:
            object.__setattr__(self, "std_lower", self.std)

    def covariance(self) -> Array:
        """The joint covariance of f at the asked inputs; computed when asked for, m × m."""
        return self._covariance()

    def to_frame(self) -> pd.DataFrame:
        """Mean and standard deviation as a table, with the row labels of the asked inputs.

        Where the standard deviation is known between bounds (compressed releases), ``std_lower`` is a third column.
        """
        columns = {"mean": self.mean, "std": self.std}
        if self.std_lower is not None and self.std_lower is not self.std:
            columns["std_lower"] = self.std_lower
        return pd.DataFrame(columns, index=self.index)

    def __len__(self) -> int:
        return int(self.mean.shape[0])


def predict_with(process: GaussianProcess, new: Inputs, rows: int) -> Prediction:
    """The prediction of ``process``, which was conditioned on ``rows`` rows, block by block so memory stays bounded."""
    mean, std = np.empty(len(new)), np.empty(len(new))
    step = max(128, _BLOCK // max(rows, 1))
    for start in range(0, len(new), step):
        block = Inputs(new.values[start : start + step], new.columns, new.outputs)
        mean[start : start + step] = process.mean_at(block)
        std[start : start + step] = np.sqrt(process.variance(block))
    return Prediction(mean, std, lambda: process.covariance(new), index=new.index)
