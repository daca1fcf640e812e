"""Gaussian processes: the prior the owner starts from and the posterior a reader ends with.

``Prior`` wraps a GPyTorch mean and kernel and the noise V of the data; conditioning it (or a
posterior) on values with any noise covariance gives a ``Posterior``, which is again a process.
Everything that comes back is float64 NumPy.
"""

from __future__ import annotations

import copy
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import gpytorch
import numpy as np
import pandas as pd
import torch

from ..arrays import Array
from ..data import ONE_OUTPUT, Encoding, Inputs, Outputs, as_inputs, as_outputs, is_plain
from ..errors import InputError
from ..linalg import Whitening
from ..machine import product_rate, require_memory, warn_of_time
from ..text import shown
from ..views import boxed_table
from .below import MEMBERS_TRIED, can_be_covered, cells_for, has_lengthscales, kernels_below, parts_below, stretched
from .kernel_terms import kernel_in_words
from .kernel_values import kernel_diagonal, kernel_matrix, require_features, seconds_a_value, with_exact_distances
from .trees import build_kernel, build_mean, describe_kernel, describe_mean
from .trends import PolynomialMean
from .units import ColumnMap, kernel_before, mean_before, scaled_kernel

#: A family has at most so many cells, and a factor lies between one over this and this.
MOST_CELLS, LARGEST_FACTOR = 48, 1e6

#: n × n matrices that there are at a time while a process is conditioned on n rows, and what else there is: blocks of
#: kernel values and predictions. (Measured at 3,000 rows; tests/release/test_small_files.py holds us to it.)
MATRICES_TO_CONDITION = {"predict": 4.5, "scikit-learn": 6.0, "GPyTorch": 7.0}
LEAST_BYTES = 128.0 * 2.0**20

#: So many rows take seconds, whatever the kernel.
QUICK_ROWS = 1000


class GaussianProcess(ABC):
    """A distribution over functions: a mean and a covariance at any inputs."""

    @abstractmethod
    def mean_at(self, A: Any) -> Array:
        """The mean at the rows of ``A``."""

    @abstractmethod
    def covariance(self, A: Any, B: Any | None = None) -> Array:
        """The covariance between the rows of ``A`` and of ``B`` (of ``A`` with itself if left out)."""

    @abstractmethod
    def variance(self, A: Any) -> Array:
        """The variance at the rows of ``A``."""

    def condition(self, X: Any, w: Any, noise_covariance: Any = None, suppressed: Any = None) -> Posterior:
        """What is known of the function after seeing ``w = f(X) + noise``.

        ``noise_covariance`` is a number, a diagonal or a matrix; left out, it is the noise V of the prior. The columns
        of ``suppressed`` are combinations of the rows that were not seen: whatever ``w`` has of them says nothing.
        """
        inputs = as_inputs(X, encoding=self._own_encoding())
        self.require_condition(inputs)
        outputs = as_outputs(w, inputs, "w")
        noise = _noise_matrix(self._own_noise() if noise_covariance is None else noise_covariance, len(inputs))
        unseen = np.zeros((len(inputs), 0)) if suppressed is None else np.asarray(suppressed, dtype=np.float64)
        if unseen.ndim != 2 or len(unseen) != len(inputs) or not np.all(np.isfinite(unseen)):
            raise InputError(
                f"suppressed has shape {np.shape(suppressed)}; give a matrix with a row for each of the {len(inputs)} "
                "rows of X and a column for each combination, all finite."
            )
        return Posterior(self, inputs, outputs, noise, unseen)

    def require_condition(self, inputs: Inputs, use: str = "predict") -> None:
        """Raise where the posterior given rows at ``inputs`` does not fit in memory; warn where it takes long.

        ``use`` says for whom it is made: readers of ours who predict, "scikit-learn" or "GPyTorch".
        """
        rows, work = float(len(inputs)), f"the exact posterior given {len(inputs):,} rows"
        require_memory(
            LEAST_BYTES + 8.0 * MATRICES_TO_CONDITION[use] * rows**2,
            work,
            'take fewer rows, or a machine with more memory; owners can publish with method="compressed".',
        )
        if rows > QUICK_ROWS:
            seconds = rows**2 * self._seconds_a_value(inputs) + 2.0 * rows**3 / product_rate()
            warn_of_time(seconds, work, "take fewer rows, or a simpler kernel.")

    def _seconds_a_value(self, inputs: Inputs) -> float:
        """How long one covariance takes."""
        return 0.0

    def _own_noise(self) -> Any:
        return 0.0

    def _own_encoding(self) -> Encoding | None:
        return None


@dataclass(frozen=True, eq=False)
class Prior(GaussianProcess):
    """``f ~ GP(mean, kernel)`` and ``y = f(X) + e`` with ``e ~ N(0, V)``.

    ``kernel`` is any GPyTorch kernel on the inputs in the user's units, ``mean`` is "zero", a number or
    a GPyTorch mean, ``noise`` is V: 0, one number (a variance) or one number for each row. ``encoding`` is how the
    dates and categories of the table that it was fitted to became numbers; other tables are read the same way.

    >>> import gpytorch, sfumato as sf
    >>> kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    >>> kernel.outputscale, kernel.base_kernel.lengthscale = 2.0, 0.5
    >>> prior = sf.Prior(kernel=kernel, mean=1.0)
    >>> prior.covariance([0.0, 0.5]).round(4)
    array([[2.    , 1.2131],
           [1.2131, 2.    ]])
    """

    kernel: gpytorch.kernels.Kernel
    mean: Any = "zero"
    noise: Any = 0.0
    fit_report: Any = field(default=None, repr=False, compare=False)
    encoding: Encoding | None = field(default=None, repr=False, compare=False)
    _copies: dict[str, gpytorch.kernels.Kernel] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, gpytorch.kernels.Kernel):
            raise InputError(
                f"kernel is {self.kernel!r}, not a GPyTorch kernel; give for example "
                "gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())."
            )
        if self.kernel.batch_shape:
            raise InputError(
                f"kernel has a batch shape {tuple(self.kernel.batch_shape)}; give one kernel, not a batch."
            )
        object.__setattr__(self, "kernel", _private_copy(self.kernel))
        object.__setattr__(self, "mean", as_mean(self.mean))
        object.__setattr__(self, "noise", _as_noise(self.noise))

    @classmethod
    def from_sklearn(cls, gpr: Any) -> Prior:
        """The prior of a fitted scikit-learn ``GaussianProcessRegressor``, in the units of its y.

        Its ``WhiteKernel`` and ``alpha`` are the noise, and ``normalize_y=True`` is undone, so that ``condition(X, y)``
        on its data predicts what it predicts. (Where it has a ``WhiteKernel``, its ``return_std`` is about a new
        measurement; ours is about f.) What it learnt from y becomes public with the prior.
        """
        from .sklearn_models import parts_of_regressor

        return cls(*parts_of_regressor(gpr))

    @classmethod
    def from_gpytorch(cls, model: Any) -> Prior:
        """The prior of a trained ``gpytorch.models.ExactGP`` or ``botorch.models.SingleTaskGP``, in your own units.

        An ``input_transform`` (Normalize, InputStandardize) and an ``outcome_transform`` (Standardize) are undone, so
        that the prior is about X and y as you gave them to the model. The data of the model have no part in it.

        What becomes public: kernel, mean and noise are published with every release, and if the model was fitted to
        sensitive values they tell of them (see ``exclude=`` of ``sf.fit_prior``).
        """
        from .gpytorch_models import parts_of_model

        return cls(*parts_of_model(model))

    def to_gpytorch(self, inputs: Array, outputs: Array, noise: Array, suppressed: Array) -> Any:
        """A model of f given ``outputs``, with covariance ``noise`` about f: BoTorch's where it is, else GPyTorch's.

        Combinations of the rows that are ``suppressed`` are not counted on.
        """
        try:
            from .botorch_models import ReleasedModel as Released
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("botorch"):
                raise
            from .gpytorch_models import ReleasedGP as Released

        return Released(self.kernel, self.mean, self.noise, inputs, outputs, noise, suppressed)

    @property
    def stands_for(self) -> float:
        """The variance of f for the readers it stands for, as a multiple of its own (below.py)."""
        return 1.0

    def family(
        self,
        lengthscale: tuple[float, float] = (1.0, 1.0),
        variance: tuple[float, float] = (1.0, 1.0),
        noise: tuple[float, float] = (1.0, 1.0),
    ) -> PriorFamily:
        """All priors whose lengthscales (by one factor for all), variance and noise are these times factors in ranges.

        Where it is used as a prior, or among ``priors``, a promise is made to every reader of the family, and not only
        to some of them: for RBF, Matérn and rational quadratic kernels, and their sums and products with others, it is
        proved for the whole ranges (``sf.PriorFamily``).

        >>> import gpytorch, numpy as np, sfumato as sf
        >>> prior = sf.Prior(gpytorch.kernels.RBFKernel(), noise=0.01)
        >>> family = prior.family(lengthscale=(0.5, 1.5), noise=(0.5, 1.0))
        >>> sf.protect(family, np.linspace(0, 3, 16), sf.Box(1, 2), alpha=0.3).certificate.evidence
        'proved'
        """
        return PriorFamily(self, lengthscale, variance, noise)

    def before(self, scaling: ColumnMap, columns: int) -> Prior:
        """The prior over ``columns`` columns that says of x what this one says of ``scaling.apply(x)``."""
        if scaling.is_identity(columns):
            return self
        try:
            kernel = kernel_before(describe_kernel(self.kernel), scaling, columns)
        except InputError as error:
            raise InputError(f"{error} Or leave preprocess out and give the kernel in the units of X.") from None
        mean = mean_before(describe_mean(self.mean), scaling, columns)
        return replace(self, kernel=build_kernel(kernel, columns), mean=build_mean(mean, columns))

    def mean_at(self, A: Any) -> Array:
        """The prior mean at the rows of ``A``."""
        with torch.no_grad():
            return np.asarray(self.mean(self._tensor(A)).numpy(), dtype=np.float64)

    def covariance(self, A: Any, B: Any | None = None) -> Array:
        """K_AB, the prior covariance between the rows of ``A`` and of ``B`` (of ``A`` with itself if left out)."""
        first = self._checked(A)
        with torch.no_grad():
            block = kernel_matrix(self.kernel, first, first if B is None else self._checked(B)).numpy()
        return _symmetric(block) if B is None else np.asarray(block, dtype=np.float64)

    def variance(self, A: Any) -> Array:
        """The prior variance of f at the rows of ``A``."""
        with torch.no_grad():
            return np.asarray(kernel_diagonal(self.kernel, self._checked(A)).numpy(), dtype=np.float64)

    def kernel_on(self, device: str) -> gpytorch.kernels.Kernel:
        """The kernel with its parameters on ``device``."""
        if device == "cpu":
            return self.kernel
        if device not in self._copies:
            self._copies[device] = with_exact_distances(copy.deepcopy(self.kernel).to(device))
        return self._copies[device]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_copies": {}}

    def _checked(self, A: Any) -> torch.Tensor:
        inputs = self._tensor(A)
        # GPyTorch itself would spread one feature over several lengthscales without a word
        require_features(self.kernel, inputs.shape[1])
        return inputs

    def _tensor(self, A: Any) -> torch.Tensor:
        # arrays are in numbers already, and may have the number of an output in their last column
        encoding = self.encoding if isinstance(A, (pd.DataFrame, pd.Series)) else None
        return torch.from_numpy(np.array(as_inputs(A, "A", encoding=encoding).values))

    def noise_variance(self, rows: int) -> Array:
        """The diagonal of V for ``rows`` rows of data."""
        if isinstance(self.noise, float):
            return np.full(rows, self.noise)
        if self.noise.shape[0] != rows:
            raise InputError(
                f"noise has {self.noise.shape[0]} values, but X has {rows} rows; give one number, or one a row of X."
            )
        return cast(Array, self.noise)

    def _seconds_a_value(self, inputs: Inputs) -> float:
        return seconds_a_value(self.kernel, inputs.values)

    def _own_noise(self) -> Any:
        return self.noise

    def _own_encoding(self) -> Encoding | None:
        return self.encoding

    def __str__(self) -> str:
        return shown(self.in_words(self._columns))

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def _columns(self) -> Sequence[str]:
        """The names of the columns, which a fit knows."""
        return getattr(self.fit_report, "columns", () if self.encoding is None else self.encoding.names)

    def _fitted(self) -> list[str]:
        """How it was fitted, a line each; none where it was not."""
        return [] if self.fit_report is None else [line.strip() for line in str(self.fit_report).splitlines()]

    def _repr_html_(self) -> str:
        return boxed_table("", "", "Prior", self._parts(), notes=self._fitted())

    def in_words(self, names: Sequence[str], outputs: Outputs = ONE_OUTPUT) -> str:
        """This prior for people, over columns with these ``names``."""
        if outputs.numbered:
            kernel = kernel_in_words(self.kernel, names, outputs.names, self.encoding)
            return f"prior {kernel}; noise variance {_noise_in_words(self.noise)}"
        (_, kernel), *others = self._parts(names)
        return "; ".join([f"prior {kernel}", *(f"{what} {words}" for what, words in others)])

    def _parts(self, names: Sequence[str] | None = None) -> list[tuple[str, str]]:
        """What it consists of, each with its words; a fit knows the ``names`` of the columns."""
        names = self._columns if names is None else names
        parameters = [f"{float(value):.6g}" for value in self.mean.parameters() if value.numel() == 1]
        mean = " ".join([type(self.mean).__name__.replace("Mean", "").lower(), *parameters])
        if isinstance(self.mean, PolynomialMean):
            mean = self.mean.in_words(names, self.encoding)
        kernel = kernel_in_words(self.kernel, names, encoding=self.encoding)
        return [("kernel", kernel), ("mean", mean), ("noise variance", _noise_in_words(self.noise))]


def _noise_in_words(noise: Any) -> str:
    """
    >>> _noise_in_words(0.25), _noise_in_words(np.array([0.25, 1.0, 1.0]))
    ('0.25', '0.25 to 1, one for each of 3 rows')
    """
    if isinstance(noise, float):
        return f"{noise:.4g}"
    least, most = f"{np.min(noise):.4g}", f"{np.max(noise):.4g}"
    return f"{least if least == most else f'{least} to {most}'}, one for each of {len(noise)} rows"


@dataclass(frozen=True, eq=False)
class FamilyMember(Prior):
    """A process that stands for readers of a family: one of them, or one below some of them.

    The variance of f for these readers is ``stands_for`` times its own.
    """

    stands_for: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True, eq=False)
class PriorFamily:
    """All priors whose hyper-parameters are those of ``prior`` times factors in these ranges.

    ``lengthscale`` is one factor for all lengthscales, ``variance`` one for the kernel, ``noise`` one for V. ``cells``
    is in how many parts the range of lengthscales is cut where something is proved about all of it.
    """

    prior: Prior
    lengthscale: tuple[float, float] = (1.0, 1.0)
    variance: tuple[float, float] = (1.0, 1.0)
    noise: tuple[float, float] = (1.0, 1.0)
    cells: int = MEMBERS_TRIED

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Prior):
            raise InputError(f"prior is {self.prior!r}; give a sf.Prior for one output.")
        for name in ("lengthscale", "variance", "noise"):
            object.__setattr__(self, name, _as_range(name, getattr(self, name)))
        if self.lengthscale != (1.0, 1.0) and not has_lengthscales(self.prior.kernel):
            raise InputError("lengthscale is a range, but the kernel has no lengthscale that could be stretched.")

    @property
    def is_proved(self) -> bool:
        """Whether what is shown of the processes below is shown of every member."""
        return self.lengthscale[0] == self.lengthscale[1] or can_be_covered(self.prior.kernel)

    @property
    def fit_report(self) -> Any:
        return self.prior.fit_report

    @property
    def encoding(self) -> Encoding | None:
        return self.prior.encoding

    def member(self, lengthscale: float = 1.0, variance: float = 1.0, noise: float = 1.0) -> Prior:
        """The prior with these factors.

        >>> import gpytorch, sfumato as sf
        >>> prior = sf.Prior(gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()), noise=0.1)
        >>> family = prior.family(lengthscale=(0.5, 2.0), noise=(0.5, 1.0))
        >>> print(family.member(lengthscale=2.0, noise=0.5).noise)
        0.05
        """
        for name, value in {"lengthscale": lengthscale, "variance": variance, "noise": noise}.items():
            low, high = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"{name} is {value!r}, not in this family; give a factor from {low:g} to {high:g}.")
        kernel = scaled_kernel(stretched(self.prior.kernel, lengthscale), variance)
        return Prior(kernel, self.prior.mean, _times(self.prior.noise, noise), encoding=self.encoding)

    def cells_for(self, columns: int, shrinks: float) -> int:
        """How many cells it takes that no process below has a variance less than ``shrinks`` times that of a member."""
        return cells_for(self.prior.kernel, self.lengthscale, columns, shrinks)

    def parts_of_members(self, columns: int) -> tuple[int, int]:
        """How many processes stand for all members with one variance and noise, and of how many parts each is made."""
        single = self.lengthscale[0] == self.lengthscale[1]
        return (1 if single else self.cells + 1), parts_below(self.prior.kernel, columns)

    def members(self, columns: int, corners: Sequence[tuple[float, float]]) -> tuple[FamilyMember, ...]:
        """Processes for inputs of so many ``columns`` that stand for all members with these variances and noises.

        ``corners`` are factors for the variance and the noise.
        """
        kernels = kernels_below(self.prior.kernel, self.lengthscale, columns, self.cells)
        return tuple(
            FamilyMember(
                scaled_kernel(kernel, variance), self.prior.mean, _times(self.prior.noise, noise), stands_for=stands_for
            )
            for variance, noise in corners
            for kernel, stands_for in kernels
        )

    def __str__(self) -> str:
        return shown(self.in_words(getattr(self.fit_report, "columns", ())))

    def in_words(self, names: Sequence[str], outputs: Outputs = ONE_OUTPUT) -> str:
        """This family for people, over columns with these ``names``."""
        return f"{self.prior.in_words(names, outputs)}, and every prior with {self._ranges}"

    @property
    def _ranges(self) -> str:
        ranges = {"all lengthscales": self.lengthscale, "the variance": self.variance, "the noise": self.noise}
        said = [f"{what} × {low:g} to {high:g}" for what, (low, high) in ranges.items() if (low, high) != (1.0, 1.0)]
        return ", ".join(said) or "the same values"

    def _repr_html_(self) -> str:
        rows = [*self.prior._parts(), ("and every prior with", self._ranges)]
        return boxed_table("", "", "Family of priors", rows)


@dataclass(frozen=True, eq=False)
class Posterior(GaussianProcess):
    """A Gaussian process given values ``w = f(X) + noise`` at ``X``, but for combinations that are ``suppressed``."""

    process: GaussianProcess
    inputs: Inputs
    outputs: Array
    noise: Array
    suppressed: Array
    _whitening: Whitening = field(init=False, repr=False)
    _weights: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        whitening = _whitening(self.process.covariance(self.inputs) + self.noise)
        if self.suppressed.shape[1]:
            whitening = whitening.without(self.suppressed)
        residual = self.outputs - self.process.mean_at(self.inputs)
        object.__setattr__(self, "_whitening", whitening)
        object.__setattr__(self, "_weights", whitening.apply(residual[:, None])[:, 0])

    def mean_at(self, A: Any) -> Array:
        A = as_inputs(A, "A", like=self.inputs)
        return np.asarray(self.process.mean_at(A) + self._explained(A).T @ self._weights)

    def _explained(self, A: Inputs) -> Array:
        """The covariance of the observed values with f(A), whitened."""
        return self._whitening.apply(self.process.covariance(self.inputs, A))

    def covariance(self, A: Any, B: Any | None = None) -> Array:
        A = as_inputs(A, "A", like=self.inputs)
        B = None if B is None else as_inputs(B, "B", like=self.inputs)
        first = self._explained(A)
        if B is None:
            return _symmetric(self.process.covariance(A) - first.T @ first)
        return np.asarray(self.process.covariance(A, B) - first.T @ self._explained(B))

    def variance(self, A: Any) -> Array:
        A = as_inputs(A, "A", like=self.inputs)
        explained = self._explained(A)
        left = self.process.variance(A) - np.einsum("ij,ij->j", explained, explained)
        return np.asarray(np.maximum(left, 0.0))

    def to_sklearn(self) -> Any:
        """A fitted ``GaussianProcessRegressor`` of scikit-learn that predicts the same; the process is a prior."""
        from .sklearn_models import regressor_of

        prior = self.process
        assert isinstance(prior, Prior)
        covariance = prior.covariance(self.inputs)
        known = (covariance, self.outputs, self.noise, self.suppressed)
        return regressor_of(prior.kernel, prior.mean, self.inputs, *known)


def _noise_matrix(noise: Any, rows: int) -> Array:
    """A noise covariance given as a number, a diagonal or a matrix, as a ``rows`` × ``rows`` matrix."""
    try:
        values = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"noise_covariance is {str(noise)[:60]!r}; give a number, variances or a matrix.") from None
    if values.ndim == 0:
        values = np.full(rows, float(values))
    if values.shape == (rows,):
        values = np.diag(values)
    if values.shape != (rows, rows) or not np.all(np.isfinite(values)):
        raise InputError(
            f"noise_covariance has shape {np.shape(noise)}; give a number, {rows} variances or a "
            f"{rows} × {rows} matrix, all finite."
        )
    if np.any(np.diag(values) < 0):
        raise InputError(f"noise_covariance has a negative variance ({np.diag(values).min():g}); variances are ≥ 0.")
    return _symmetric(values)


def _whitening(total: Array) -> Whitening:
    """By the covariance of observed values; singular directions, which carry no information, are left out."""
    found = Whitening.of(total)
    if found.rank == 0:
        raise InputError("the covariance of the observed values is zero; check the kernel and the noise.")
    if found.rank < found.size:
        warnings.warn(
            f"the covariance of the {found.size} observed values is singular to working precision; "
            f"{found.size - found.rank} directions are left out of the prediction",
            RuntimeWarning,
            stacklevel=4,
        )
    return found


def _private_copy(kernel: gpytorch.kernels.Kernel) -> gpytorch.kernels.Kernel:
    kernel = copy.deepcopy(kernel).double().cpu().eval()
    kernel.requires_grad_(False)
    return with_exact_distances(kernel)


def as_mean(mean: Any) -> gpytorch.means.Mean:
    """A GPyTorch mean: a copy of the given one, or the one that "zero" or a number stands for."""
    if isinstance(mean, gpytorch.means.Mean):
        module = copy.deepcopy(mean).double().cpu().eval()
        module.requires_grad_(False)
        return module
    if isinstance(mean, str) and mean == "zero":
        return build_mean({"kind": "zero"})
    if isinstance(mean, (int, float, np.number)) and not isinstance(mean, bool) and np.isfinite(mean):
        return build_mean({"kind": "constant", "value": float(mean)})
    raise InputError(f'mean is {mean!r}; give "zero", a finite number or a GPyTorch mean.')


def _as_range(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in given)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not 1.0 / LARGEST_FACTOR <= low <= high <= LARGEST_FACTOR:
        raise InputError(
            f"{name} is {given!r}; give the least and the largest factor around the prior's own value, such as "
            "(0.5, 2.0)."
        )
    return low, high


def _times(noise: Any, factor: float) -> Any:
    return noise if factor == 1.0 else noise * factor


def _as_noise(noise: Any) -> float | Array:
    if isinstance(noise, pd.Series) and not is_plain(noise.index):
        raise InputError(
            "noise is a Series with row labels, and a prior does not know the rows of X; give noise.loc[X.index]"
            ".to_numpy(), in the order of X."
        )
    try:
        values = np.array(np.nan if isinstance(noise, (str, bool)) else noise, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim > 1 or values.size == 0 or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError(f"noise is {noise!r}; give a variance ≥ 0, or one for each row of X.")
    if values.ndim == 0:
        return float(values)
    values.setflags(write=False)
    return values


def _symmetric(matrix: Array) -> Array:
    return np.asarray((matrix + matrix.T) / 2.0, dtype=np.float64)
