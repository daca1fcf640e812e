"""What releases are compared with: a GP's prediction as a linear map of y, with all rows, with some, and refitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from ..arrays import Array, Mask
from ..data import Inputs, as_inputs, as_outputs
from ..errors import InputError
from ..linalg import Whitening
from ..models import Posterior, Prior, fit_prior
from ..regions import Region


@dataclass(frozen=True, eq=False)
class PredictionMap:
    """The posterior mean at ``new`` as a function of y, and the posterior variance there, which does not depend on y.

    The mean is ``m(X_new) + C (y − m(X))`` with ``matrix`` C = K_*X (K_XX + V)⁻¹.
    """

    inputs: Inputs
    new: Inputs
    mean_at_inputs: Array
    mean_at_new: Array
    matrix: Array
    variance: Array

    def predict(self, y: Any) -> Array:
        """The posterior mean at the new inputs, without any noise."""
        values = as_outputs(y, len(self.inputs))
        return np.asarray(self.mean_at_new + self.matrix @ (values - self.mean_at_inputs))


def prediction_map(prior: Prior, X: Any, X_new: Any) -> PredictionMap:
    """How predictions at ``X_new`` depend on the outputs at ``X``."""
    inputs = as_inputs(X)
    new = as_inputs(X_new, "X_new", like=inputs)
    cross = prior.covariance(inputs, new)
    total = prior.covariance(inputs) + np.diag(prior.noise_variance(len(inputs)))
    matrix = solve_positive(total, cross).T
    left = prior.variance(new) - np.einsum("ij,ji->i", matrix, cross)
    return PredictionMap(
        inputs=inputs,
        new=new,
        mean_at_inputs=prior.mean_at(inputs),
        mean_at_new=prior.mean_at(new),
        matrix=matrix,
        variance=np.maximum(left, 0.0),
    )


def solve_positive(A: Array, B: Array) -> Array:
    """A⁻¹ B for a covariance A; where A is singular to working precision, the directions of round-off are left out."""
    whiten = Whitening.of(A)
    if not whiten.rank:
        raise InputError("the covariance of the observed values is zero; check the kernel and the noise of the prior.")
    if whiten.lower is not None:
        return np.asarray(scipy.linalg.cho_solve((whiten.lower, True), B, check_finite=False))
    return np.asarray(whiten.vectors @ ((whiten.vectors.T @ B) / whiten.values[:, None]))


def rows_inside(region: Any, inputs: Inputs, name: str) -> Mask:
    """The rows that a region or a list of true and false picks out, at least one."""
    if isinstance(region, Region):
        inside = np.asarray(region.bind(inputs).contains(inputs.values), dtype=np.bool_)
    else:
        try:
            inside = np.array(region)
        except (TypeError, ValueError):
            inside = np.array(None)
        if inside.dtype != np.bool_ or inside.shape != (len(inputs),):
            raise InputError(
                f"{name} is {str(region)[:60]!r}; give a region, for example sf.Box(1.0, 2.0), or "
                f"{len(inputs)} times True or False, one for each row of X."
            )
    if not np.any(inside):
        raise InputError(f"{name} holds none of the {len(inputs)} rows of X; there is nothing to protect.")
    return inside


def dropout(prior: Prior, X: Any, y: Any, region: Any) -> Posterior:
    """The model made without the rows inside ``region`` (or where a mask is True): nothing of them is published.

    It promises nothing: the rows outside still tell about the region what the prior lets them tell.

    >>> import gpytorch, sfumato as sf
    >>> prior = sf.Prior(gpytorch.kernels.RBFKernel())
    >>> dropout(prior, [0.0, 1.0, 2.0], [5.0, 7.0, 6.0], sf.Box(0.5, 1.5)).outputs.tolist()
    [5.0, 6.0]
    """
    inputs = as_inputs(X)
    outputs = as_outputs(y, len(inputs))
    keep = ~rows_inside(region, inputs, "region")
    if not np.any(keep):
        raise InputError(f"region holds all {len(inputs)} rows of X, so no data are left; give a smaller region.")
    return prior.condition(inputs.select(keep), outputs[keep], prior.noise_variance(len(inputs))[keep])


def stationary(
    X: Any, W: Any, *, kernel: str | Kernel = "rbf", mean: str | float | Mean = "constant", **how: Any
) -> Posterior:
    """A reader who takes the published values ``W`` for plain data and ignores Σ.

    Lengthscales, noise, mean and scale are fitted to W (``how`` goes to ``fit_prior``), as one independent noise
    variance for all rows; ``posterior.process`` is the fitted prior.
    """
    inputs = as_inputs(X)
    outputs = as_outputs(W, len(inputs), "W")
    return fit_prior(inputs, outputs, kernel, mean, **{"noise": "learn", **how}).condition(inputs, outputs)
