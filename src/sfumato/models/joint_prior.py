"""One prior for several related outputs: a function and its derivative, coregionalised outputs, independent ones.

Related outputs that are protected one by one are not protected: each tells about the others (MATH.md, section 8).
A ``JointPrior`` says how they are related; it becomes a ``Prior`` over rows ``[x, number of the output]`` once the
columns of the inputs are known.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
from gpytorch.kernels import AdditiveKernel, Kernel, LCMKernel, MultitaskKernel, ScaleKernel

from ..arrays import Array
from ..data import Encoding
from ..errors import InputError
from ..regions import MOST_OUTPUTS
from ..text import shown
from ..views import boxed_table
from .functionals import Functional, Value
from .kernel_terms import kernel_in_words, mixing_in_words
from .kernel_values import require_features
from .outputs import OutputsKernel, OutputsMean, Term
from .prior import Prior, as_mean

#: The most characters of the name of an output.
MAX_NAME = 100

#: An eigenvalue of B may be below zero by this share of the largest: that is round-off.
NEGATIVE = 1e-10

#: For each output what its mean is a sum of: functionals of GPyTorch means.
Means = tuple[tuple[tuple[Functional, gpytorch.means.Mean], ...], ...]


@dataclass(frozen=True, eq=False)
class JointPrior:
    """Several named outputs that are one Gaussian process; made by ``of``, ``independent`` or ``coregionalised``.

    The altitude of a satellite and its rate of climb: the second is the derivative of the first.

    >>> import gpytorch, sfumato as sf
    >>> kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    >>> kernel.outputscale, kernel.base_kernel.lengthscale = 2.0, 0.5
    >>> joint = sf.JointPrior.of(sf.Prior(kernel), {"r": sf.Value(), "rdot": sf.Derivative("t")})
    >>> print(joint)
    r: f; rdot: df/dt; where f is RBF, lengthscale 0.5; variance 2
    >>> prior = joint.prior_on(("t",))
    >>> prior.covariance([[0.0, 0.0], [0.5, 0.0], [0.5, 1.0]]).round(4)
    array([[ 2.    ,  1.2131, -2.4261],
           [ 1.2131,  2.    ,  0.    ],
           [-2.4261,  0.    ,  8.    ]])
    """

    outputs: tuple[str, ...]
    terms: tuple[Term, ...]
    means: Means
    noise: tuple[float, ...]
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        _check_names(self.outputs)

    @classmethod
    def of(
        cls, prior: Prior, functionals: Mapping[str, Functional], noise: Mapping[str, float] | None = None
    ) -> JointPrior:
        """Linear functionals of one function ``f ~ prior``.

        ``noise`` maps names of outputs to the variance of the noise in their data. Where it says nothing, a ``Value``
        has the noise of the prior, and everything else has none: the safe side, for noise only hides.
        """
        _check_prior(prior, "prior")
        if not isinstance(functionals, Mapping) or not functionals:
            raise InputError(
                f"functionals is {str(functionals)[:60]}; give a name and a functional for each output, "
                'as in {"r": sf.Value(), "rdot": sf.Derivative("t")}.'
            )
        for name, functional in functionals.items():
            if not isinstance(functional, Functional):
                raise InputError(
                    f"functionals has {str(functional)[:60]} for {name!r}; give sf.Value(), sf.Derivative(column), "
                    "sf.Average(points) or sf.Integral(lower, upper)."
                )
        entries = tuple(enumerate(functionals.values()))
        names, values = tuple(functionals), {name for name, one in functionals.items() if isinstance(one, Value)}
        variances = _noise(noise, names, lambda name: _own_noise(prior) if name in values else 0.0)
        means = tuple(((functional, prior.mean),) for functional in functionals.values())
        terms = (Term(prior.kernel, entries, np.ones((len(entries), 1))),)
        return cls(names, terms, means, variances, prior.encoding)

    @classmethod
    def independent(cls, *parts: JointPrior | Mapping[str, Prior]) -> JointPrior:
        """Outputs of different parts are independent; a part is a ``JointPrior`` or ``{name: prior}``."""
        if not parts:
            raise InputError('parts is empty; give a JointPrior, or {"r": prior_r, "theta": prior_theta}.')
        terms: list[Term] = []
        shift = 0
        singles = [single for part in parts for single in _singles(part)]
        for one in singles:
            for term in one.terms:
                entries = tuple((number + shift, functional) for number, functional in term.entries)
                terms.append(Term(term.kernel, entries, term.mixing))
            shift += len(one.outputs)
        outputs = tuple(name for one in singles for name in one.outputs)
        means = tuple(mean for one in singles for mean in one.means)
        variances = tuple(variance for one in singles for variance in one.noise)
        encoding = next((one.encoding for one in singles if one.encoding is not None), None)
        return cls(outputs, tuple(terms), means, variances, encoding)

    @classmethod
    def coregionalised(
        cls,
        prior: Prior,
        B: Any,
        outputs: Sequence[str],
        mean: Mapping[str, Any] | None = None,
        noise: Mapping[str, float] | None = None,
    ) -> JointPrior:
        """Intrinsic coregionalisation: ``Cov(f_i(x), f_j(x′)) = B[i, j] k(x, x′)`` with the kernel of ``prior``.

        ``mean`` maps names to numbers or GPyTorch means, ``noise`` to variances; outputs that they leave out have those
        of ``prior``.
        """
        _check_prior(prior, "prior")
        names = _as_names(outputs)
        entries = tuple((number, Value()) for number in range(len(names)))
        term = Term(prior.kernel, entries, covariance_factor(B, names))
        variances = _noise(noise, names, lambda _: _own_noise(prior))
        return cls(names, (term,), _value_means(names, mean, prior.mean), variances, prior.encoding)

    @classmethod
    def from_multitask(
        cls,
        kernel: gpytorch.kernels.Kernel,
        outputs: Sequence[str],
        mean: Mapping[str, float] | None = None,
        noise: float | Mapping[str, float] = 0.0,
    ) -> JointPrior:
        """The prior of GPyTorch's ``MultitaskKernel`` or ``LCMKernel``, whose tasks are called ``outputs`` here.

        ``mean`` maps names to numbers (0 if left out); ``noise`` is one variance for all, or one a name.
        """
        names = _as_names(outputs)
        entries = tuple((number, Value()) for number in range(len(names)))
        terms = tuple(Term(Prior(base).kernel, entries, mixing) for base, mixing in multitask_factors(kernel, names))
        variances = _noise(noise if isinstance(noise, Mapping) else dict.fromkeys(names, noise), names, lambda _: 0.0)
        return cls(names, terms, _value_means(names, mean, gpytorch.means.ZeroMean()), variances)

    def with_related(
        self, functionals: Mapping[str, tuple[str, Functional]], noise: Mapping[str, float] | None = None
    ) -> JointPrior:
        """These outputs, and what follows from one of them: ``{"v": ("r", sf.Derivative("t"))}``.

        ``noise`` maps their names to the variance of the noise in their data, which is 0 where it says nothing.
        """
        names = tuple(functionals)
        terms: list[tuple[Term, list[tuple[int, Functional]], list[Array]]]
        terms = [(term, list(term.entries), [*term.mixing]) for term in self.terms]
        means = list(self.means)
        for number, (name, (source, functional)) in enumerate(functionals.items(), len(self.outputs)):
            if not isinstance(functional, Functional):
                raise InputError(
                    f"functionals has {str(functional)[:60]} for {name!r}; give sf.Derivative(column), "
                    "sf.Average(points) or sf.Integral(lower, upper)."
                )
            own = self.number_of(source)
            if not all(isinstance(one, Value) for one in self._functionals(source)):
                raise InputError(
                    f"functionals has {name!r}, which follows from {source!r}, which follows from another output "
                    "itself; relate it to an output that does not."
                )
            for term, entries, mixing in terms:
                for (output, _), row in zip(term.entries, term.mixing, strict=True):
                    if output == own:
                        entries.append((number, functional))
                        mixing.append(row)
            means.append(tuple((functional, mean) for _, mean in self.means[own]))
        made = tuple(Term(term.kernel, tuple(entries), np.array(mixing)) for term, entries, mixing in terms)
        variances = (*self.noise, *_noise(noise, names, lambda _: 0.0))
        return JointPrior((*self.outputs, *names), made, tuple(means), variances, self.encoding)

    def prior_on(self, names: Sequence[str]) -> Prior:
        """The prior over rows ``[x, number of the output]``, for inputs with these columns.

        It has no noise of its own: see ``noise_of``.
        """
        names = tuple(names)
        terms = [Term(t.kernel, tuple((o, part.on(names)) for o, part in t.entries), t.mixing) for t in self.terms]
        kernel = OutputsKernel(terms)
        require_features(kernel, len(names) + 1)
        mean = OutputsMean([[(part.on(names), mean) for part, mean in parts] for parts in self.means])
        prior = Prior(kernel, mean)
        try:
            prior.mean_at([[0.0] * len(names) + [float(number)] for number in range(len(self.outputs))])
        except RuntimeError as error:
            raise InputError(
                f"mean cannot be computed for the column(s) {', '.join(names)}: {error}; "
                "give a mean that is made for these columns."
            ) from error
        return prior

    def prior_of(self, output: str) -> Prior | None:
        """The prior of one output by itself, over the inputs; None for a derivative, an average or an integral."""
        number = self.number_of(output)
        if not all(isinstance(functional, Value) for functional in self._functionals(output)):
            return None
        parts = []
        for term in self.terms:
            own = np.array([o == number for o, _ in term.entries])
            variance = float(np.sum(term.mixing[own].sum(axis=0) ** 2))
            if variance > 0.0:
                scaled = ScaleKernel(copy.deepcopy(term.kernel)).double()
                scaled.outputscale = variance
                parts.append(scaled)
        # an output has one mean here, which is a value too
        ((_, mean),) = self.means[number]
        kernel = parts[0] if len(parts) == 1 else AdditiveKernel(*parts)
        return Prior(kernel, mean, self.noise_of(output), encoding=self.encoding)

    def noise_of(self, output: str) -> float:
        """The variance of the noise in the data of this output."""
        return self.noise[self.number_of(output)]

    def takes_input(self, output: str) -> bool:
        """Whether the output has a value at every x; an average or an integral has only one."""
        return any(functional.takes_input for functional in self._functionals(output))

    def place_of(self, output: str, names: Sequence[str] | None = None) -> Array:
        """The x that stands for an output without inputs, in the order of the columns ``names`` if these are given.

        Without them it is in the order of the points themselves, which differs where they came as a DataFrame.
        """
        for functional in self._functionals(output):
            place = (functional if names is None else functional.on(names)).place
            if place is not None:
                return place
        raise InputError(f"output is {output!r}, which takes an input; ask only for the place of an average.")

    def number_of(self, output: str) -> int:
        """The number of the output in the last column of a row."""
        if output not in self.outputs:
            raise InputError(f"output is {output!r}, but the outputs are {', '.join(self.outputs)}; give one of them.")
        return self.outputs.index(output)

    def _functionals(self, output: str) -> list[Functional]:
        number = self.number_of(output)
        return [functional for term in self.terms for o, functional in term.entries if o == number]

    def __str__(self) -> str:
        outputs, functions = self._parts()
        listed = [f"{name}: {words}" for name, words in outputs]
        return shown(f"{'; '.join(listed)}; where {' and '.join(f'{title} is {words}' for title, words in functions)}")

    def _repr_html_(self) -> str:
        outputs, functions = self._parts()
        return boxed_table("", "", "Prior of several outputs", [*outputs, *functions])

    def _parts(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """What each output is of the functions, and what these are."""
        titles = ["f"] if len(self.terms) == 1 else [f"f{q + 1}" for q in range(len(self.terms))]
        listed = []
        for number, name in enumerate(self.outputs):
            parts = [
                part.words((), f) for f, term in zip(titles, self.terms) for o, part in term.entries if o == number
            ]
            listed.append((name, " + ".join(parts)))
        columns = () if self.encoding is None else self.encoding.names
        functions = [
            (title, f"{kernel_in_words(term.kernel, columns, encoding=self.encoding)}{mixing_in_words(term.mixing)}")
            for title, term in zip(titles, self.terms)
        ]
        return listed, functions


# ---------------------------------------------------------------- how outputs are mixed: B between outputs as W Wᵀ


def covariance_factor(B: Any, names: Sequence[str]) -> Array:
    """W with ``W Wᵀ = B``; outputs that B does not connect share no column of it.

    >>> covariance_factor([[4.0, 0.0], [0.0, 9.0]], ("a", "b"))
    array([[2., 0.],
           [0., 3.]])
    """
    matrix = _covariance(B, names)
    columns = []
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(matrix != 0.0, directed=False)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        values, vectors = np.linalg.eigh(matrix[np.ix_(members, members)])
        for value, vector in zip(values, vectors.T, strict=True):
            if value > 0.0:
                column = np.zeros(len(matrix))
                # the sign of an eigenvector is free; this one does not depend on the machine
                column[members] = np.sqrt(value) * vector * (np.sign(vector[np.argmax(np.abs(vector))]))
                columns.append(column)
    return np.stack(columns, axis=1)


def _covariance(B: Any, names: Sequence[str]) -> Array:
    try:
        matrix = np.array(B.detach().cpu() if hasattr(B, "detach") else B, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"B is {str(B)[:60]!r}; give a matrix of numbers.") from None
    count = len(names)
    if matrix.shape != (count, count) or not np.all(np.isfinite(matrix)):
        raise InputError(
            f"B has shape {matrix.shape}; give a {count} × {count} matrix of finite numbers, one row for each of "
            f"{', '.join(names)}."
        )
    if np.abs(matrix - matrix.T).max() > NEGATIVE * np.abs(matrix).max():
        raise InputError("B is not symmetric, but a covariance is; give for example (B + B.T)/2.")
    matrix = (matrix + matrix.T) / 2.0
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -NEGATIVE * np.abs(values).max():
        raise InputError(f"B has the eigenvalue {values[0]:.4g}, but a covariance has none below 0; give W @ W.T.")
    if values[-1] <= 0.0:
        raise InputError("B is zero, and so are all outputs; give a covariance with a positive diagonal.")
    return matrix


def multitask_factors(kernel: Kernel, names: Sequence[str]) -> list[tuple[Kernel, Array]]:
    """The base kernels of a GPyTorch kernel for several tasks, each with the W that mixes it."""
    if type(kernel) is LCMKernel:
        return [_factor(part, names) for part in kernel.covar_module_list]
    return [_factor(kernel, names)]


def _factor(kernel: Kernel, names: Sequence[str]) -> tuple[Kernel, Array]:
    if type(kernel) is not MultitaskKernel:
        raise InputError(
            f"kernel is of class {type(kernel).__name__}; give a MultitaskKernel or an LCMKernel, or use "
            "JointPrior.coregionalised with a matrix B."
        )
    if kernel.batch_shape:
        raise InputError(f"kernel has a batch shape {tuple(kernel.batch_shape)}; give one kernel, not a batch.")
    if kernel.num_tasks != len(names):
        raise InputError(f"kernel has {kernel.num_tasks} tasks, but outputs has {len(names)} names; give one a task.")
    base = kernel.data_covar_module
    _refuse_columns(kernel)
    _refuse_columns(base)
    while isinstance(base, ScaleKernel):
        base = base.base_kernel
        _refuse_columns(base)
    tasks = copy.deepcopy(kernel.task_covar_module).double().requires_grad_(False)
    own = np.diag(np.sqrt(tasks.var.cpu().numpy()))
    return kernel.data_covar_module, np.concatenate([tasks.covar_factor.cpu().numpy(), own], axis=1)


def _refuse_columns(kernel: Kernel) -> None:
    if kernel.active_dims is not None:
        raise InputError(
            f"kernel has a {type(kernel).__name__} with active_dims={kernel.active_dims.tolist()}, which GPyTorch "
            "passes over inside a MultitaskKernel; leave active_dims out, or use JointPrior.coregionalised."
        )


# ---------------------------------------------------------------- names and numbers by name


def _check_names(names: tuple[str, ...]) -> None:
    if not 1 <= len(names) <= MOST_OUTPUTS:
        raise InputError(f"outputs has {len(names)} names; give 1 to {MOST_OUTPUTS}.")
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or ":" in name or "=" in name:
            raise InputError(
                f"outputs has the name {str(name)[:MAX_NAME]!r}; use a text of 1 to {MAX_NAME} characters "
                "without ':' and '='."
            )
        if names.count(name) > 1:
            raise InputError(f"outputs has the name {name!r} more than once; give each output its own name.")


def _as_names(outputs: Sequence[str]) -> tuple[str, ...]:
    if isinstance(outputs, str) or not isinstance(outputs, Sequence):
        raise InputError(f'outputs is {outputs!r}; give a name for each output, as in ("a", "b").')
    _check_names(tuple(outputs))
    return tuple(outputs)


def _check_prior(prior: Any, what: str) -> None:
    if not isinstance(prior, Prior):
        raise InputError(f"{what} is of class {type(prior).__name__}; give a sf.Prior.")
    if any(isinstance(part, OutputsKernel) for part in prior.kernel.modules()):
        raise InputError(f"{what} is itself over several outputs; give a prior over the inputs alone.")


def _singles(part: JointPrior | Mapping[str, Prior]) -> list[JointPrior]:
    if isinstance(part, JointPrior):
        return [part]
    if not isinstance(part, Mapping) or not part:
        raise InputError(
            f"parts has a {type(part).__name__} without names of outputs; give a JointPrior, or "
            '{"r": prior_r, "theta": prior_theta}.'
        )
    for name, prior in part.items():
        _check_prior(prior, f"the prior of {name!r}")
    return [JointPrior.of(prior, {name: Value()}) for name, prior in part.items()]


def _own_noise(prior: Prior) -> float:
    if not isinstance(prior.noise, float):
        raise InputError(
            f"noise of the prior has {len(prior.noise)} values, one for each row; "
            "give one number, or noise={name: variance} for the outputs."
        )
    return prior.noise


def _mapped(given: Mapping[str, float] | None, names: Sequence[str], what: str) -> dict[str, float]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"{what} is {given!r}; give a number for each name, as in {{{names[0]!r}: 0.1}}.")
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"{what} names the output {unknown[0]!r}, but the outputs are {', '.join(names)}; use these.")
    return dict(given)


def _noise(
    given: Mapping[str, float] | None, names: Sequence[str], otherwise: Callable[[str], float]
) -> tuple[float, ...]:
    """The variance of the noise of each output; ``otherwise`` gives those that were not given."""
    numbers = _mapped(given, names, "noise")
    found = [numbers[name] if name in numbers else otherwise(name) for name in names]
    for value in found:
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not np.isfinite(value) or value < 0:
            raise InputError(f"noise is {value!r}; give a variance ≥ 0 for each output.")
    return tuple(float(value) for value in found)


def _value_means(names: Sequence[str], given: Mapping[str, Any] | None, own: gpytorch.means.Mean) -> Means:
    numbers = _mapped(given, names, "mean")
    return tuple(((Value(), as_mean(numbers[name]) if name in numbers else own),) for name in names)
