"""One honest draw: predictions with differentially private noise, drawn once for one data set."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..entropy import SecretKey, default_resolution, round_outputs
from ..errors import GuaranteeWarning
from ..inputs import Array, as_outputs
from ..noise import Noise
from .prediction_map import PredictionMap

_DOMAIN = b"sfumato rival draw 1\x00"


@dataclass(frozen=True, eq=False)
class NoisyPrediction:
    """Predictions as they would be published: ``mean``, multiples of ``resolution``.

    ``noise_std`` is that of the noise; ``std`` counts the posterior's own uncertainty as well. ``unsafe`` says that
    the noise came from a known seed.
    """

    mean: Array
    std: Array
    noise_std: Array
    resolution: float
    unsafe: bool = False

    def __len__(self) -> int:
        return int(self.mean.shape[0])


@final
class NoiseSource:
    """A secret key that remembers for which data it has been asked.

    Guarantee: the same data get the same noise, so that asking again can never be averaged; a ``GuaranteeWarning`` says
    when different data have been asked for, because each of these draws spends the budget anew.
    """

    __slots__ = ("__asked", "__key")

    def __init__(self) -> None:
        self.__key = SecretKey.fresh()
        self.__asked: set[bytes] = set()

    def normals(self, message: bytes, count: int) -> Array:
        """``count`` standard normals for this message."""
        self.__asked.add(message)
        if len(self.__asked) > 1:
            warnings.warn(
                f"this mechanism has now drawn noise for {len(self.__asked)} different data sets; each of them spends "
                "epsilon and delta anew, so publish one of them only",
                GuaranteeWarning,
                stacklevel=4,
            )
        return self.__key.normals(message, count)

    def __repr__(self) -> str:
        return "<secret noise source>"

    def __deepcopy__(self, memo: dict[int, Any]) -> NoiseSource:
        return self


def draw_once(
    prediction: PredictionMap, noise: Noise, source: NoiseSource, y: Any, unsafe_seed: int | None = None
) -> NoisyPrediction:
    """The prediction from ``y`` plus one draw of ``noise``, rounded to a step that follows from public things."""
    values = np.asarray(as_outputs(y, len(prediction.inputs)) + 0.0)
    exact = prediction.predict(values)
    if unsafe_seed is None:
        parts = (prediction.matrix, prediction.mean_at_new, noise.factor, np.array(noise.shift), values)
        digest = hashlib.sha256(_DOMAIN + b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
        normals = source.normals(digest.digest(), noise.normals_needed)
    else:
        normals = unsafe_normals(unsafe_seed, noise.normals_needed)
    step = resolution_for(prediction, noise)
    return noisy_prediction(
        prediction, round_outputs(exact + noise.draw(normals), step), noise.variance(), step, unsafe_seed is not None
    )


def unsafe_normals(unsafe_seed: int, count: int) -> Array:
    """Standard normals that anyone who knows the seed can make again: for experiments."""
    return SecretKey.from_unsafe_seed(unsafe_seed).normals(_DOMAIN, count)


def resolution_for(prediction: PredictionMap, noise: Noise) -> float:
    """The step to round to: far below the noise, far above the last bits of a double."""
    spread = float(np.sqrt(np.mean(prediction.variance)))
    return default_resolution(noise, spread, float(np.mean(np.abs(prediction.mean_at_new))))


def noisy_prediction(
    prediction: PredictionMap, mean: Array, noise_variance: Array, resolution: float, unsafe: bool
) -> NoisyPrediction:
    std = np.sqrt(prediction.variance + noise_variance)
    return NoisyPrediction(mean, np.asarray(std), np.sqrt(noise_variance), resolution, unsafe)
