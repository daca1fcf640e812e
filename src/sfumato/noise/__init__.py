"""Σ as values: correlated, independent or a random function; secure draws; rounding.

It takes factors of Σ and entropy of the operating system. It gives draws of the noise, which nobody without the key can
repeat.
"""

from .entropy import (
    LARGEST_IN_STEPS,
    SecretKey,
    check_resolution,
    default_resolution,
    finest_resolution,
    round_outputs,
)
from .noise import (
    CorrelatedNoise,
    ErrorCovariance,
    FunctionalNoise,
    IndependentNoise,
    Noise,
    RandomFunction,
    RecordNoise,
    no_noise,
    of_prior,
)
