"""Σ as values: correlated, independent or a random function; secure draws; rounding.

In come factors of Σ and entropy of the operating system. Out come draws of the noise, of which nobody can have a
second one.
"""

from .entropy import SecretKey, check_resolution, default_resolution, finest_resolution, round_outputs
from .noise import (
    CorrelatedNoise,
    ErrorCovariance,
    FunctionalNoise,
    IndependentNoise,
    Noise,
    RandomFunction,
    no_noise,
    of_prior,
)
