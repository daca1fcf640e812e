"""What a reader of a release knows, as models of other libraries, which take seconds to import: only when asked for."""

from __future__ import annotations

from typing import Any

from ..arrays import Array
from .prior import Posterior, Prior


def as_gpytorch(prior: Prior, inputs: Array, outputs: Array, noise: Array) -> Any:
    """A ``ReleasedGP``; ``noise`` is the covariance of ``outputs`` about f at ``inputs``."""
    from .released_gp import ReleasedGP

    return ReleasedGP(prior, inputs, outputs, noise)


def as_regressor(posterior: Posterior) -> Any:
    """The ``GaussianProcessRegressor`` whose ``predict`` is that of ``posterior``."""
    from .to_sklearn import regressor_of

    return regressor_of(posterior)
