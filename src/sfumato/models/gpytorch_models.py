"""GPyTorch: kernel, mean and noise of a model, in the units of the data; and the way back, ReleasedGP.

A model of ``(x − offset) / scale`` and of ``(y − shift) / factor`` is a model of x and y in other units (see units.py,
and botorch_units.py for models that change units themselves).

GPyTorch's own Gaussian likelihoods know one variance, or one a row. Noise that protects a region is correlated, and a
model that is told its diagonal alone draws wrong conclusions: ``FullNoiseLikelihood`` has a full covariance matrix over
the rows that were published.
"""

from __future__ import annotations

import copy
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.likelihoods.gaussian_likelihood import _GaussianLikelihoodBase
from gpytorch.likelihoods.noise_models import Noise
from gpytorch.means import Mean
from gpytorch.models import ExactGP
from gpytorch.models.exact_prediction_strategies import DefaultPredictionStrategy
from linear_operator import to_dense, to_linear_operator
from linear_operator.operators import DiagLinearOperator, LinearOperator

from ..arrays import Array
from ..errors import InputError
from ..linalg import Whitening
from .kernel_values import DifferentiableKernel, kernel_matrix, require_features
from .trees import build_kernel, build_mean, describe_kernel, describe_mean
from .units import ColumnMap, Units, kernel_before, mean_before, multiplied_kernel, multiplied_mean

#: At how many of its own rows a model is asked whether it is what its parts say.
ASKED_ROWS = 32

#: GPyTorch knows no suppressed combinations: as noise they have so many times their own variance. A millionth of it is
#: left, and solving with all of it loses six digits.
AS_NOISE = 2.0**20

#: How closely a model must agree with its parts, as a share of the largest value, in double and in single precision.
AGREEMENT = {torch.float64: 1e-4, torch.float32: 1e-2}


def parts_of_model(model: Any) -> tuple[Kernel, Mean, float | Array]:
    """Kernel, mean and noise V of an exact GP with one output, in the units of the data it was trained with."""
    _check_model(model)
    rows = _training_rows(model)
    units = _units(model, rows)
    kernel = _kernel(model.covar_module, units)
    mean = _mean(model.mean_module, units)
    noise = _noise(model.likelihood, units)
    if rows is not None:
        _check_forward(model, rows[:ASKED_ROWS], units, kernel, mean)
    return kernel, mean, noise


# ---------------------------------------------------------------- which models


def _check_model(model: Any) -> None:
    if isinstance(model, Kernel):
        raise InputError("model is a kernel; use sf.Prior(kernel=..., mean=..., noise=...) for that.")
    if not isinstance(model, gpytorch.models.ExactGP):
        raise InputError(
            f"model is of class {type(model).__name__}; give a gpytorch.models.ExactGP, for example a "
            "botorch.models.SingleTaskGP (approximate models and lists of models are no single prior)."
        )
    several = isinstance(model.likelihood, gpytorch.likelihoods.MultitaskGaussianLikelihood)
    tasks = any(isinstance(part, gpytorch.kernels.IndexKernel) for part in model.modules())
    if several or tasks or getattr(model, "num_outputs", 1) > 1:
        raise InputError(
            "model has several outputs; they are one process, and protecting one of them protects none. Use "
            "sf.JointPrior.from_multitask(kernel, outputs)."
        )
    for name in ("mean_module", "covar_module"):
        if not isinstance(getattr(model, name, None), Mean if name == "mean_module" else Kernel):
            raise InputError(
                f"model.{name} is missing or of another kind; a model must keep its mean as mean_module and its "
                "kernel as covar_module, or use sf.Prior(kernel=..., mean=..., noise=...)."
            )
    batch = model.covar_module.batch_shape
    if model.train_inputs is not None and not batch:
        batch = model.train_inputs[0].shape[:-2]
    if batch:
        raise InputError(
            f"model has a batch shape {tuple(batch)}; give one model, not a batch. Outputs that are related are "
            "a sf.JointPrior (sf.JointPrior.from_multitask, for example)."
        )


def _training_rows(model: Any) -> torch.Tensor | None:
    """The inputs as the user gave them: BoTorch swaps them for transformed ones while it predicts."""
    if getattr(model, "_has_transformed_inputs", False):
        original: torch.Tensor = model._original_train_inputs
        return original
    if model.train_inputs is None:
        return None
    if len(model.train_inputs) != 1:
        raise InputError(f"model has {len(model.train_inputs)} inputs; give a model of one table of inputs.")
    given: torch.Tensor = model.train_inputs[0]
    return given


def _units(model: Any, rows: torch.Tensor | None) -> Units:
    inputs, outputs = getattr(model, "input_transform", None), getattr(model, "outcome_transform", None)
    columns = 0 if rows is None else int(rows.shape[-1])
    if inputs is not None and rows is None:
        raise InputError("model has an input_transform but no data; set its training data first.")
    if inputs is None and outputs is None:
        return Units(ColumnMap.identity(columns))
    from .botorch_units import units_of

    return units_of(inputs, outputs, columns)


# ---------------------------------------------------------------- its parts


def _noise(likelihood: Any, units: Units) -> float | Array:
    # The exact classes: others under these names do more than add noise.
    if type(likelihood) not in (GaussianLikelihood, FixedNoiseGaussianLikelihood, FullNoiseLikelihood):
        raise InputError(
            f"model.likelihood is of class {type(likelihood).__name__}; give a model with a GaussianLikelihood or a "
            "FixedNoiseGaussianLikelihood, or use sf.Prior(kernel=..., mean=..., noise=...)."
        )
    values = likelihood.noise.detach().double().cpu().numpy() * units.factor**2
    if values.ndim > 1:
        raise InputError(f"model.likelihood has noise of shape {values.shape}; give a model of one output.")
    # One number serves any rows, one a row only those.
    return float(values.flat[0]) if np.all(values == values.flat[0]) else np.asarray(values)


def _mean(mean: Mean, units: Units) -> Mean:
    try:
        tree = describe_mean(mean)
    except InputError:
        own = copy.deepcopy(mean)
        return own if units.same_inputs and units.same_outputs else RescaledMean(own, units)
    if units.same_inputs and units.same_outputs:
        return build_mean(tree)
    width = {"linear": "weights", "polynomial": "centre"}.get(tree["kind"])
    if width is not None and units.columns.width != len(tree[width]):
        return RescaledMean(copy.deepcopy(mean), units)
    tree = multiplied_mean(mean_before(tree, units.columns, units.columns.width), units.factor, units.shift)
    return build_mean(tree)


class RescaledMean(Mean):
    """A mean of scaled inputs for scaled outputs, in the user's units."""

    def __init__(self, mean: Mean, units: Units) -> None:
        super().__init__()
        self.own, self.shift, self.factor = mean, units.shift, units.factor
        self.register_buffer("offsets", torch.tensor(units.columns.offsets, dtype=torch.float64))
        self.register_buffer("scales", torch.tensor(units.columns.scales, dtype=torch.float64))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        scaled = X if len(self.scales) == 0 else (X - self.offsets) / self.scales
        values: torch.Tensor = self.own(scaled) * self.factor + self.shift
        return values


def _kernel(kernel: Kernel, units: Units) -> Kernel:
    own = copy.deepcopy(kernel)
    if not units.same_inputs:
        require_features(kernel, units.columns.width)
        try:
            own = build_kernel(kernel_before(describe_kernel(kernel), units.columns, units.columns.width))
        except InputError as error:
            raise InputError(
                f"model.covar_module cannot be carried over from transformed inputs: {error} Or fit a model without "
                "input_transform."
            ) from None
    return multiplied_kernel(own, [units.factor])


# ---------------------------------------------------------------- whether they are all there is


def _check_forward(model: Any, rows: torch.Tensor, units: Units, kernel: Kernel, mean: Mean) -> None:
    """A model may do more in ``forward`` than its parts say: what it computes there must be what we carry over."""
    x = rows.detach()
    plain = x.double().cpu()
    seen = torch.from_numpy(units.columns.apply(plain.numpy())).to(x)
    training = model.training
    try:
        # while it trains, a BoTorch model would transform these rows again, and learn the transform from them
        model.training = False
        with torch.no_grad(), gpytorch.settings.debug(False):
            prior = model.forward(seen)
            theirs = prior.covariance_matrix.double().cpu() * units.factor**2
            their_mean = prior.mean.double().cpu() * units.factor + units.shift
            ours, our_mean = kernel_matrix(kernel.double().cpu(), plain, plain), mean.double().cpu()(plain)
    finally:
        model.training = training
    bound = AGREEMENT.get(x.dtype, AGREEMENT[torch.float32])
    size = float(theirs.diagonal().abs().max())
    same = ours.shape == theirs.shape and float((ours - theirs).abs().max()) <= bound * size
    level = max(float(their_mean.abs().max()), size**0.5)
    if not same or float((our_mean - their_mean).abs().max()) > bound * level:
        raise InputError(
            "model.forward does not compute what model.mean_module and model.covar_module say (it may transform its "
            "inputs itself, or use a network); write what it does into a kernel and use sf.Prior(kernel=...)."
        )


class FullNoise(Noise):
    """The noise covariance ``covariance`` at the published ``inputs``, and V (``own``) at any others.

    GPyTorch and BoTorch hand over the inputs of their data as a list, and inputs at which they ask for a new
    measurement as a tensor: a new measurement at a published input has the noise V.
    """

    def __init__(self, inputs: torch.Tensor, covariance: torch.Tensor, own: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("inputs", inputs)
        self.register_buffer("covariance", covariance)
        self.register_buffer("own", own)
        #: The variances of rows that were added later, and whether rows were added with V.
        self.later: torch.Tensor | None = None
        self.added = False

    def forward(self, *params: Any, shape: torch.Size, noise: torch.Tensor | None = None, **_: Any) -> LinearOperator:
        if noise is not None:
            return DiagLinearOperator(noise.expand(shape))
        if not self._is_data(params, shape):
            return DiagLinearOperator(self._at_new_inputs(shape))
        rows, later = len(self.covariance), self.later
        matrix = self.covariance.new_zeros(*shape, shape[-1])
        matrix[..., :rows, :rows] = self.covariance
        if later is not None:
            matrix.diagonal(dim1=-2, dim2=-1)[..., rows : rows + later.shape[-1]] = later
            rows += later.shape[-1]
        if rows < shape[-1]:
            rest = torch.Size((*shape[:-1], shape[-1] - rows))
            matrix.diagonal(dim1=-2, dim2=-1)[..., rows:] = self._at_new_inputs(rest)
        return to_linear_operator(matrix)

    def _is_data(self, params: tuple[Any, ...], shape: torch.Size) -> bool:
        """Whether this is asked about the published rows, with rows below them that were added later."""
        rows = len(self.covariance)
        if not params:
            return bool(self.training) and shape[-1] == rows
        listed = isinstance(params[0], (list, tuple))
        asked = params[0][0] if listed else params[0]
        if not (listed or self.training) or asked.shape[-2] < rows or asked.shape[-1] != self.inputs.shape[-1]:
            return False
        return bool((asked[..., :rows, :] == self.inputs).all())

    def _at_new_inputs(self, shape: torch.Size) -> torch.Tensor:
        if self.own.dim() > 0:
            raise InputError(
                f"the noise of a new measurement is not known: the prior has one variance for each of its "
                f"{len(self.own)} rows. Leave observation_noise out, or give noise= (a variance for each new input)."
            )
        own: torch.Tensor = self.own.expand(shape)
        return own

    def with_rows(self, noise: torch.Tensor | None) -> FullNoise:
        """This noise with more rows below the published ones, of variances ``noise`` or of V."""
        more = copy.deepcopy(self)
        if noise is None:
            more.added = True
            return more
        if self.added:
            raise InputError("noise is given for these rows, but was left out for rows before; give it for all.")
        if self.later is not None:
            noise = torch.cat([self.later.expand(*noise.shape[:-1], -1), noise], dim=-1)
        more.later = noise
        return more


class FullNoiseLikelihood(_GaussianLikelihoodBase):
    """``y = f(X) + e`` with ``e ~ N(0, covariance)`` at the published rows, V at new inputs."""

    def __init__(self, inputs: torch.Tensor, covariance: torch.Tensor, own: torch.Tensor) -> None:
        super().__init__(noise_covar=FullNoise(inputs, covariance, own))

    @property
    def noise(self) -> torch.Tensor:
        """V: one variance, or one for each published row; without what was added to protect them."""
        own: torch.Tensor = self.noise_covar.own
        return own

    def get_fantasy_likelihood(self, noise: torch.Tensor | None = None, **_: Any) -> FullNoiseLikelihood:
        more = copy.copy(self)
        more._modules = {**self._modules, "noise_covar": self.noise_covar.with_rows(noise)}
        return more


class ReleasedGP(ExactGP):
    """A prior given published outputs whose noise is a full matrix; everything is in the user's units.

    The conclusions are those of ``release.predict``; as a model they can be differentiated and sampled from.

    Parameters are fixed (``requires_grad`` is off): they are those of the release.
    """

    def __init__(
        self, kernel: Kernel, mean: Mean, own: Any, inputs: Array, outputs: Array, noise: Array, suppressed: Array
    ) -> None:
        """``own`` is V; ``noise`` is V, what was added to protect, and the rounding of ``outputs``, as a matrix.

        The columns of ``suppressed`` are combinations of the rows that were not published.
        """
        X, y, V = (torch.from_numpy(np.array(part, dtype=np.float64)) for part in (inputs, outputs, own))
        require_features(kernel, X.shape[-1])
        white: torch.Tensor | None = None
        if suppressed.shape[1]:
            with torch.no_grad():
                total = kernel_matrix(kernel, X, X).numpy() + noise
            seen = Whitening.of(total)
            kept = seen.without(suppressed)
            assert kept.unbounded is not None
            unseen = total @ (seen.apply(np.eye(len(total))).T @ kept.unbounded)
            noise, white = noise + AS_NOISE * (unseen @ unseen.T), torch.from_numpy(kept.apply(np.eye(len(total))))
        covariance = torch.from_numpy(np.array(noise, dtype=np.float64))
        super().__init__(X, y, FullNoiseLikelihood(X, covariance, V))
        self.register_buffer("white", white)
        self.mean_module = copy.deepcopy(mean)
        self.covar_module = copy.deepcopy(kernel)
        self.requires_grad_(False)
        self.eval()

    def forward(self, X: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(X), DifferentiableKernel(self.covar_module)(X))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.training:
            return super().__call__(*args, **kwargs)
        if self.white is not None and getattr(self, "prediction_strategy", None) is None:
            self.prediction_strategy = self._strategy()
        settings = gpytorch.settings
        # GPyTorch would solve with more than 800 rows to two digits, and warn about questions at published inputs
        with settings.fast_computations(False, False, False), settings.debug(False):
            return super().__call__(*args, **kwargs)

    def _strategy(self) -> DefaultPredictionStrategy | None:
        """How to predict from the published rows alone; None where other rows were given, which GPyTorch does."""
        rows = self.train_inputs
        if len(rows[0]) != len(self.white) or not torch.equal(rows[0], self.likelihood.noise_covar.inputs):
            return None
        return KeptPredictions(self.white, list(rows), self.forward(*rows), self.train_targets, self.likelihood)


class KeptPredictions(DefaultPredictionStrategy):
    """Predictions from rows of which some combinations are suppressed: ``white`` is R with RᵀR = P.

    As noise, what is suppressed is known to a few digits only, because V is lost beside it. Rows that are added later
    are predicted from like that.
    """

    def __init__(self, white: torch.Tensor, *parts: Any) -> None:
        super().__init__(*parts)
        self.white = white
        self.weights = white.T @ (white @ (self.train_labels - self.train_prior_dist.mean))

    def exact_predictive_mean(self, test_mean: torch.Tensor, test_train_covar: Any) -> torch.Tensor:
        mean: torch.Tensor = test_mean + to_dense(test_train_covar) @ self.weights
        return mean

    def exact_predictive_covar(self, test_test_covar: Any, test_train_covar: Any) -> LinearOperator:
        explained = to_dense(test_train_covar) @ self.white.T
        return to_linear_operator(to_dense(test_test_covar) - explained @ explained.mT)

    def get_fantasy_strategy(self, *args: Any, **kwargs: Any) -> DefaultPredictionStrategy:
        parts = (self.train_inputs, self.train_prior_dist, self.train_labels, self.likelihood)
        return DefaultPredictionStrategy(*parts).get_fantasy_strategy(*args, **kwargs)
