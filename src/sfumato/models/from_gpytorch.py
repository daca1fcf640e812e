"""The kernel, the mean and the noise of a GPyTorch or BoTorch model, in the units of the user's data.

BoTorch fits its models to normalised inputs and standardised outputs. Lengthscales and periods become longer by the
range of their column, variances larger by the squared scale of y; what such a change of units does not keep
(a linear kernel has its zero at a certain place) is refused.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import torch
from botorch.models.transforms.input import (
    AffineInputTransform,
    ChainedInputTransform,
    InputStandardize,
    InputTransform,
    Normalize,
)
from botorch.models.transforms.outcome import ChainedOutcomeTransform, OutcomeTransform, Standardize
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.likelihoods.gaussian_likelihood import _GaussianLikelihoodBase
from gpytorch.likelihoods.noise_models import Noise
from gpytorch.means import Mean
from linear_operator import to_linear_operator
from linear_operator.operators import DiagLinearOperator, LinearOperator

from ..arrays import Array
from ..errors import InputError
from .kernel_values import kernel_matrix, require_features
from .trees import build_kernel, build_mean, describe_kernel, describe_mean

# What BoTorch does to inputs and outputs before its model sees them, as long as it is affine.
#
# A model of ``z = (x − offset) / scale`` and of ``(y − shift) / factor`` is a model of x and y in other units.


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


# A GPyTorch likelihood whose noise is a full covariance matrix over the rows that were published.
#
# GPyTorch's own Gaussian likelihoods know one variance, or one a row. Noise that protects a region is correlated, and
# a model that is told its diagonal alone draws wrong conclusions.


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


#: At how many of its own rows a model is asked whether it is what its parts say.
ASKED_ROWS = 32

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
            f"model has a batch shape {tuple(batch)}; give one model, not a batch. Outputs that know of each other are "
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
        return own if units.same_inputs and (units.shift, units.factor) == (0.0, 1.0) else RescaledMean(own, units)
    if tree["kind"] == "zero":
        tree = tree if units.shift == 0.0 else {"kind": "constant", "value": units.shift}
    elif tree["kind"] == "constant":
        tree["value"] = units.shift + units.factor * tree["value"]
    elif not units.same_inputs or (units.shift, units.factor) != (0.0, 1.0):
        if len(units.scale) != len(tree["weights"]):
            return RescaledMean(copy.deepcopy(mean), units)
        weights = units.factor * np.array(tree["weights"]) / units.scale
        tree["weights"] = weights.tolist()
        tree["bias"] = float(units.shift + units.factor * tree.get("bias", 0.0) - weights @ units.offset)
    return build_mean(tree)


class RescaledMean(Mean):
    """A mean of scaled inputs for scaled outputs, in the user's units."""

    def __init__(self, mean: Mean, units: Units) -> None:
        super().__init__()
        self.own, self.shift, self.factor = mean, units.shift, units.factor
        self.register_buffer("offset", torch.from_numpy(np.array(units.offset)))
        self.register_buffer("scale", torch.from_numpy(np.array(units.scale)))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        scaled = X if len(self.scale) == 0 else (X - self.offset) / self.scale
        values: torch.Tensor = self.own(scaled) * self.factor + self.shift
        return values


def _kernel(kernel: Kernel, units: Units) -> Kernel:
    try:
        tree = describe_kernel(kernel)
    except InputError as error:
        if not units.same_inputs:
            raise InputError(
                f"model.covar_module cannot be carried over from transformed inputs: {error} Or fit a model without "
                "input_transform."
            ) from None
        own = copy.deepcopy(kernel)
        if units.factor == 1.0:
            return own
        scaled = ScaleKernel(own).double()
        scaled.outputscale = torch.tensor(units.factor**2, dtype=torch.float64)
        return scaled
    if not units.same_inputs:
        require_features(kernel, len(units.scale))
        tree = _in_units(tree, units.offset, units.scale)
    if units.factor != 1.0 and tree["kind"] == "scale":
        tree["variance"] *= units.factor**2
    elif units.factor != 1.0:
        tree = {"kind": "scale", "variance": units.factor**2, "kernel": tree}
    return build_kernel(tree)


def _in_units(tree: dict[str, Any], offset: Array, scale: Array) -> dict[str, Any]:
    """The tree of ``k((x − offset)/scale, (x′ − offset)/scale)`` as a kernel of x."""
    if "active_dims" in tree:
        offset, scale = offset[tree["active_dims"]], scale[tree["active_dims"]]
    kind, scale = tree["kind"], np.abs(scale)
    if kind in ("sum", "product"):
        return tree | {"kernels": [_in_units(part, offset, scale) for part in tree["kernels"]]}
    if kind == "scale":
        return tree | {"kernel": _in_units(tree["kernel"], offset, scale)}
    if kind in ("rbf", "matern", "rational_quadratic"):
        return tree | {"lengthscale": _stretched(tree["lengthscale"], scale)}
    if kind == "periodic":
        period = _stretched(tree["period_length"], scale)
        # one value a column for both, or for none
        each = np.broadcast_to(tree["lengthscale"], len(scale)).tolist() if isinstance(period, list) else None
        return tree | {"period_length": period, "lengthscale": tree["lengthscale"] if each is None else each}
    if kind == "constant":
        return tree
    if kind == "cosine" and np.all(scale == scale[0]):
        return tree | {"period_length": tree["period_length"] * float(scale[0])}
    if kind == "linear" and not np.any(offset):
        return tree | {"variance": _stretched(tree["variance"], scale**-2)}
    raise InputError(
        f"model.covar_module has a {kind} kernel, which changes when input_transform moves or stretches its columns; "
        "fit a model without input_transform, or one with other kernels."
    )


def _stretched(values: float | list[float], by: Array) -> float | list[float]:
    """One value a column, or one value where all columns are stretched alike."""
    if isinstance(values, float) and np.all(by == by[0]):
        return values * float(by[0])
    return [float(value) for value in np.broadcast_to(values, len(by)) * by]


# ---------------------------------------------------------------- whether they are all there is


def _check_forward(model: Any, rows: torch.Tensor, units: Units, kernel: Kernel, mean: Mean) -> None:
    """A model may do more in ``forward`` than its parts say: what it computes there must be what we carry over."""
    x = rows.detach()
    plain = x.double().cpu()
    seen = ((plain - torch.from_numpy(units.offset)) / torch.from_numpy(units.scale)).to(x)
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
