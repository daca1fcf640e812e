"""The noise that is added: ``Z ~ N(0, Σ)``, with Σ kept in a form that is PSD by construction.

``Noise`` is the interface. Its final classes are noise with any correlations between rows, noise on each row by
itself, and noise that is a random function of the inputs, which takes the same memory for any number of rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np
import torch

from ..arrays import Array, Index
from ..data import Inputs
from ..errors import InputError
from ..linalg import as_tensor, side_by_side
from ..models import Prior, kernel_matrix
from ..regions import Region

#: How many rows a random function is evaluated at in one go: a few megabytes of kernel values, or much of a GPU.
ROWS_AT_ONCE, ROWS_ON_GPU = 2048, 1 << 18


class ErrorCovariance(ABC):
    """What stands between the data and published values, as readers know it: a covariance over the rows.

    ``suppressed`` has a column for each combination of the rows that is not published at all; often there is none. A
    column is so large that as noise it leaves nothing of the combination: whoever computes in floating point takes it
    as noise. What is published is a function of values with that noise.
    """

    suppressed: Array

    #: What round-off could hide of it on each row, which is taken off.
    uncertain: Array | float = 0.0

    @property
    @abstractmethod
    def least(self) -> float:
        """A lower bound for its smallest eigenvalue."""

    @abstractmethod
    def covariance(self) -> Array:
        """It as a matrix."""

    @abstractmethod
    def add_to(self, matrix: torch.Tensor) -> torch.Tensor:
        """``matrix`` itself, with it added in place; ``suppressed`` combinations are left to the caller."""


class Noise(ErrorCovariance):
    """A Gaussian noise covariance Σ over the rows of the data that can be drawn and published.

    ``Σ = F Fᵀ + shift · I``: ``factor`` is F, with a column for each independent source; ``shift`` is a tiny
    independent noise variance on every row that puts round-off on the safe side; it is usually 0. What follows from
    both is here; the final classes say what they know better.
    """

    factor: Array
    shift: float

    @property
    def suppressed_count(self) -> int:
        """How many combinations of the rows are ``suppressed``."""
        return int(self.suppressed.shape[1])

    @property
    def blurring(self) -> Array:
        """All that hides the data: F, and a column for each combination that is ``suppressed``."""
        return np.hstack([self.factor, self.suppressed]) if self.suppressed_count else self.factor

    @property
    def compressed(self) -> bool:
        """Whether Σ is that of a random function, of which nothing of the size of the data is stored."""
        return False

    @property
    def rows(self) -> int:
        """How many rows of data there are."""
        return int(self.factor.shape[0])

    @property
    def rank(self) -> int:
        """How many independent sources there are (the shift not counted)."""
        return int(self.factor.shape[1])

    @property
    def least(self) -> float:
        return self.shift

    @property
    def trace(self) -> float:
        return float(np.sum(self.factor**2) + self.rows * self.shift)

    @property
    def rms(self) -> float:
        """The root mean square of the noise on a row."""
        return math.sqrt(max(self.trace, 0.0) / max(self.rows, 1))

    def variance(self) -> Array:
        """The diagonal of Σ: how much each row is blurred."""
        return np.asarray(np.einsum("ij,ij->i", self.factor, self.factor) + self.shift)

    def variance_at(self, rows: Array) -> Array:
        """How much ``rows`` are blurred: all rows of the data, or any inputs where it is ``compressed``."""
        return self.variance()

    def covariance(self) -> Array:
        """Σ as a matrix; suppressed combinations have a variance in it that leaves nothing of them."""
        drawn, suppressed = self.drawn_covariance(), self.suppressed
        return drawn + suppressed @ suppressed.T if suppressed.size else drawn

    def drawn_covariance(self) -> Array:
        """That of the noise that is drawn, which has none of what is suppressed."""
        covariance = self.factor @ self.factor.T
        covariance[np.diag_indices(self.rows)] += self._independent
        return np.asarray(covariance)

    def add_to(self, matrix: torch.Tensor) -> torch.Tensor:
        factor = as_tensor(self.factor, matrix.device)
        matrix.addmm_(factor, factor.T)
        matrix.diagonal().add_(as_tensor(self._independent, matrix.device))
        return matrix

    @property
    def _independent(self) -> Array:
        """The variance of what each row has by itself, or that of all."""
        return np.asarray(self.shift)

    def as_function(self) -> FunctionalNoise:
        """Itself, where it is ``compressed``."""
        raise InputError('the noise is not a function of the inputs; design it with method="compressed".')

    @property
    def normals_needed(self) -> int:
        """How many independent standard normals one draw uses."""
        return self.rank + (self.rows if self.shift > 0 else 0)

    def draw(self, normals: Array, device: str = "cpu") -> Array:
        """Z made from ``normals_needed`` standard normals; where that is much work, on ``device``."""
        drawn = self.factor @ normals[: self.rank]
        if self.shift > 0:
            drawn = drawn + np.sqrt(self.shift) * normals[self.rank :]
        return np.asarray(drawn)

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """What a file has to hold of it besides ``shift``, by the names that the file gives them."""

    def digest_parts(self, inputs: Inputs, sensitive: Array, prior: Prior) -> Iterator[bytes]:
        """Bytes that are the same for the same noise of the same data and promise only."""
        own, errors = (*self.arrays().values(), np.array([self.shift])), prior.noise_variance(len(inputs))
        return _bytes_of(inputs.values, sensitive, *own, errors, prior.mean_at(inputs))

    def restricted(self, rows: Index) -> Noise:
        """The noise of some rows alone."""
        if len(rows) == self.rows:
            return self
        if self.suppressed_count:
            raise InputError(
                "this release suppresses combinations of its rows, and what is shown in their place depends on all of "
                "them: some of its rows alone cannot be taken from it. Give all of its outputs, or make releases of "
                'which some rows are to be taken with objective="noise".'
            )
        return CorrelatedNoise(self.factor[rows], self.shift)

    def in_units(self, scale: Array) -> Noise:
        """The noise on rows that are divided by ``scale``."""
        factor, shift = self.factor / scale[:, None], self.shift / float(np.max(scale)) ** 2
        if self.shift > 0 and np.ptp(scale) > 0:
            # rows in finer units carry more than the least of it
            more = np.sqrt(np.maximum(self.shift / scale**2 - shift, 0.0))
            factor = np.hstack([factor, np.diag(more)[:, more > 0]])
        return CorrelatedNoise(factor, shift, self.suppressed / scale[:, None])

    def none_at(self, inputs: Inputs) -> Noise:
        """No noise at ``inputs``, in the form that readers of this one are computed with."""
        return no_noise(len(inputs))


@final
@dataclass(frozen=True, eq=False)
class CorrelatedNoise(Noise):
    """``Σ = F Fᵀ + shift · I``, where some combinations of the rows may be ``suppressed``.

    ``factor`` is F, with one row for each row of data and one column for each independent source.
    ``shift`` is there only where round-off could decide otherwise: where the data's own covariance is singular to
    working precision, or where F comes from an approximation. It is drawn and published like the rest.
    """

    factor: Array
    shift: float = 0.0
    suppressed: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        suppressed = self.suppressed if self.suppressed.size else np.zeros((len(self.factor), 0))
        object.__setattr__(self, "factor", _fixed(np.ascontiguousarray(self.factor)))
        object.__setattr__(self, "shift", float(self.shift))
        object.__setattr__(self, "suppressed", _fixed(np.ascontiguousarray(suppressed)))

    def arrays(self) -> dict[str, Array]:
        suppressed = {"noise_suppressed": self.suppressed} if self.suppressed_count else {}
        return {"noise_factor": self.factor, **suppressed}


@final
@dataclass(frozen=True, eq=False)
class IndependentNoise(Noise):
    """``Σ = Diag(d)``: every row is blurred by itself. ``variances`` is d."""

    variances: Array
    shift: float = field(default=0.0, init=False)

    @property
    def suppressed(self) -> Array:  # type: ignore[override]
        return np.zeros((self.rows, 0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "variances", _fixed(self.variances))

    @cached_property
    def factor(self) -> Array:  # type: ignore[override]
        blurred = np.flatnonzero(self.variances)
        factor = np.zeros((self.rows, blurred.size))
        factor[blurred, np.arange(blurred.size)] = np.sqrt(self.variances[blurred])
        return factor

    @property
    def rows(self) -> int:
        return int(self.variances.shape[0])

    @property
    def rank(self) -> int:
        return int(np.count_nonzero(self.variances))

    @property
    def least(self) -> float:
        return float(np.min(self.variances))

    @property
    def trace(self) -> float:
        return float(np.sum(self.variances))

    def variance(self) -> Array:
        return np.array(self.variances)

    def drawn_covariance(self) -> Array:
        return np.diag(self.variances)

    def add_to(self, matrix: torch.Tensor) -> torch.Tensor:
        matrix.diagonal().add_(as_tensor(self.variances, matrix.device))
        return matrix

    @property
    def normals_needed(self) -> int:
        return self.rows

    def draw(self, normals: Array, device: str = "cpu") -> Array:
        return np.asarray(np.sqrt(self.variances) * normals)

    def arrays(self) -> dict[str, Array]:
        return {"noise_diagonal": self.variances}

    def restricted(self, rows: Index) -> Noise:
        return self if len(rows) == self.rows else IndependentNoise(self.variances[rows])

    def in_units(self, scale: Array) -> Noise:
        return IndependentNoise(self.variances / scale**2)


@final
@dataclass(frozen=True, eq=False)
class RandomFunction:
    """A drawn noise function, ``z(x) = Σ_j k_j(x, Z_j) w_j``. Whoever has it can take the noise off: it is secret."""

    priors: tuple[Prior, ...]
    centres: tuple[Array, ...]
    weights: tuple[Array, ...]
    device: str = "cpu"

    def at(self, X: Array) -> Array:
        """z at each row of ``X``."""
        drawn = np.zeros(len(X))
        on_cpu = self.device == "cpu"
        starts = range(0, len(X), ROWS_AT_ONCE if on_cpu else ROWS_ON_GPU)
        terms = [
            (prior.kernel_on(self.device), self._there(centres), self._there(weights))
            for prior, centres, weights in zip(self.priors, self.centres, self.weights, strict=True)
        ]

        def draw(share: slice) -> None:
            with torch.no_grad():
                for start in starts[share]:
                    here = slice(start, start + starts.step)
                    rows = self._there(X[here])
                    for kernel, centres, weights in terms:
                        drawn[here] += (kernel_matrix(kernel, rows, centres) @ weights).cpu().numpy()

        if on_cpu:
            side_by_side(draw, len(starts))
        else:
            draw(slice(None))
        return drawn

    def _there(self, values: Array) -> torch.Tensor:
        return torch.from_numpy(np.array(values)).to(self.device)

    def __repr__(self) -> str:
        return "<a random function, secret>"


@final
@dataclass(frozen=True, eq=False)
class RecordNoise:
    """Noise on each row inside ``region`` by itself: ``multiple`` times V, the variance of what is a record's own."""

    region: Region
    multiple: float

    def at(self, rows: Array, errors: Array) -> Array:
        """Its variance on ``rows`` whose V is ``errors``."""
        return np.asarray(np.where(self.region.contains(rows), self.multiple * errors, 0.0))


@final
@dataclass(frozen=True, eq=False)
class FunctionalNoise(Noise):
    """Noise that is a random function, ``z(x) = k(x, Z) C ω``: ``Σ = K_XZ C Cᵀ K_ZX``.

    ``inputs`` are the rows X, ``centres`` Z for each prior and ``mixing`` is C, with a row for each centre; where there
    are several priors K_XZ has the columns of each one after the other. Nothing of the size of the rows is stored;
    ``factor`` and ``covariance()`` make it where it is asked for. ``known_trace`` is Tr Σ where it has been summed up
    already.

    ``records`` is noise that records carry besides, each by itself; V is the first prior's. It is a part of Σ, and none
    of ``factor``.

    ``suppressing`` is S, with a row for each centre: of the functions ``k(x, Z) S`` nothing is published, whatever
    multiple of them the data have. What is drawn has none of them; a release puts there what the rest predicts.
    """

    priors: tuple[Prior, ...]
    centres: tuple[Array, ...]
    mixing: Array
    inputs: Inputs
    shift: float = field(default=0.0, init=False)
    known_trace: float | None = field(default=None, repr=False)
    records: RecordNoise | None = None
    suppressing: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        nothing = np.zeros((len(self.mixing), 0))
        object.__setattr__(self, "mixing", _fixed(self.mixing))
        object.__setattr__(self, "suppressing", _fixed(self.suppressing if self.suppressing.size else nothing))

    @property
    def suppressed(self) -> Array:  # type: ignore[override]
        """K_XZ S, a row for each row of the data: as large as the data."""
        if not self.suppressed_count:
            return np.zeros((self.rows, 0))
        return np.vstack([self._functions_at(X, self.suppressing) for X in self._blocks()])

    @property
    def suppressed_count(self) -> int:
        return int(self.suppressing.shape[1])

    @property
    def compressed(self) -> bool:
        return True

    def as_function(self) -> FunctionalNoise:
        return self

    @property
    def rows(self) -> int:
        return len(self.inputs)

    @cached_property
    def rank(self) -> int:
        values = np.linalg.svd(self.mixing, compute_uv=False)
        return int(np.sum(values > 1e-12 * max(float(np.max(values, initial=0.0)), np.finfo(float).tiny)))

    @property
    def sources(self) -> int:
        """How many standard normals the random function takes."""
        return int(self.mixing.shape[1])

    @property
    def normals_needed(self) -> int:
        return self.sources + (0 if self.records is None else self.rows)

    @cached_property
    def factor(self) -> Array:  # type: ignore[override]
        """F = K_XZ C, a row for each row of the data: as large as the data."""
        return np.vstack([self.factor_at(X) for X in self._blocks()])

    def factor_at(self, X: Array) -> Array:
        """The rows of F for any inputs."""
        return self._functions_at(X, self.mixing)

    def _functions_at(self, X: Array, weights: Array) -> Array:
        blocks = [prior.covariance(X, centres) for prior, centres in zip(self.priors, self.centres, strict=True)]
        return np.asarray(np.hstack(blocks) @ weights)

    def variance(self) -> Array:
        return np.concatenate(
            [self.function_variance_at(X) + self.independent_at(X, V) for X, V in self._with_errors()]
        )

    def variance_at(self, rows: Array) -> Array:
        """Where V differs from row to row, and ``rows`` are not all of them, its mean stands for it."""
        errors = np.asarray(self.priors[0].noise)
        errors = errors if len(errors.shape) == 0 or len(errors) == len(rows) else np.mean(errors)
        return self.function_variance_at(rows) + self.independent_at(rows, errors)

    def function_variance_at(self, rows: Array) -> Array:
        """How much the random function alone blurs any inputs."""
        blocks = [self.factor_at(rows[start : start + ROWS_AT_ONCE]) for start in range(0, len(rows), ROWS_AT_ONCE)]
        return np.concatenate([np.zeros(0), *(np.einsum("ij,ij->i", block, block) for block in blocks)])

    def independent_at(self, rows: Array, errors: Array) -> Array:
        """The variance of the independent noise on ``rows`` whose V is ``errors``."""
        return np.zeros(len(rows)) if self.records is None else self.records.at(rows, errors)

    @property
    def _independent(self) -> Array:
        return np.concatenate([self.independent_at(X, V) for X, V in self._with_errors()])

    @cached_property
    def trace(self) -> float:
        if self.known_trace is not None:
            return self.known_trace
        return float(np.sum(self.variance()))

    def draw(self, normals: Array, device: str = "cpu") -> Array:
        function = self.function(normals[: self.sources], device)
        drawn = np.concatenate([function.at(X) for X in self._blocks()])
        if self.records is not None:
            drawn = drawn + np.sqrt(self._independent) * normals[self.sources :]
        return drawn

    def function(self, normals: Array, device: str = "cpu", instead: Array | None = None) -> RandomFunction:
        """The random function that follows from as many standard normals as it has ``sources``.

        With ``instead`` the suppressed functions are added, so many times each.
        """
        weights = self.mixing @ normals
        if instead is not None:
            weights = weights + self.suppressing @ instead
        return RandomFunction(self.priors, self.centres, tuple(self.by_prior(weights)), device)

    def by_prior(self, rows: Array) -> list[Array]:
        """``rows``, one for each centre, those of each prior by themselves."""
        return np.split(rows, np.cumsum([len(centres) for centres in self.centres])[:-1])

    def arrays(self) -> dict[str, Array]:
        centres = {of_prior("noise_centres", place): z for place, z in enumerate(self.centres)}
        suppressed = {"noise_suppressed": self.suppressing} if self.suppressed_count else {}
        return {"noise_mixing": self.mixing} | suppressed | centres

    def digest_parts(self, inputs: Inputs, sensitive: Array, prior: Prior) -> Iterator[bytes]:
        yield b"functional"
        blocks = [own.covariance(z) for own, z in zip(self.priors, self.centres, strict=True)]
        yield from _bytes_of(*self.centres, *blocks, self.mixing, sensitive, np.asarray(prior.noise))
        if self.suppressed_count:
            yield from _bytes_of(self.suppressing)
        if self.records is not None:
            yield from _bytes_of(np.array([self.records.multiple]))
        for part in inputs.parts():
            rows = np.ascontiguousarray(part.inputs(), dtype=np.float64)
            yield rows.tobytes()
            if self.records is not None:
                yield self.records.region.contains(rows).tobytes()

    def none_at(self, inputs: Inputs) -> Noise:
        nothing = np.zeros_like(self.mixing)
        return replace(self, mixing=nothing, inputs=inputs, known_trace=0.0, records=None, suppressing=nothing[:, :0])

    def _blocks(self) -> Iterator[Array]:
        return (part.inputs() for part in self.inputs.parts())

    def _with_errors(self) -> Iterator[tuple[Array, Array]]:
        """The rows some at a time, each with its V."""
        errors = self.priors[0].noise
        for part in self.inputs.parts():
            yield part.inputs(), np.asarray(errors if isinstance(errors, float) else errors[part.places])


def no_noise(rows: int) -> Noise:
    """Σ = 0."""
    return CorrelatedNoise(np.zeros((rows, 0)))


def of_prior(name: str, place: int) -> str:
    """What a file calls the array ``name`` of the prior (place 0) or of one of the others."""
    return name if place == 0 else f"{name}_{place}"


def _fixed(values: Array) -> Array:
    """A copy that nobody can write to."""
    copy = np.array(values, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def _bytes_of(*arrays: Array) -> Iterator[bytes]:
    for array in arrays:
        yield np.array(array.shape, dtype=np.int64).tobytes()
        yield np.ascontiguousarray(array, dtype=np.float64).tobytes()
