"""Tolerances: how much of each sensitive value a reader may learn, as a matrix Δ.

The promise is ``K_SX M⁻¹ K_XS ⪯ Δ``: what the release explains of ``f(S)`` stays within Δ, so the reader's
standard deviation at s stays above ``floor(s) = √(K(s,s) − Δ(s,s))``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gpytorch
import numpy as np
import scipy.linalg

from ..arrays import Array, Mask
from ..data import Inputs, Outputs
from ..errors import InputError
from ..models import Prior, describe_kernel


class Uncertain(Protocol):
    """Values at inputs that somebody does not know: f under a prior, or sensitive values as a reader sees them."""

    def covariance(self, A: Array) -> Array: ...

    def variance(self, A: Array) -> Array: ...


@runtime_checkable
class WithRecords(Protocol):
    """Values of which some are records, seen by somebody who may have a past (``SensitiveValues``)."""

    def variance_before(self, S: Array) -> Array: ...

    def own_variance(self, S: Array) -> Array: ...

    @property
    def stands_for(self) -> float: ...


def _own(unknown: Uncertain, S: Array) -> Array:
    """How much of each value's variance is its own: nothing of f, V of a record."""
    return unknown.own_variance(S) if isinstance(unknown, WithRecords) else np.zeros(len(S))


def _before(unknown: Uncertain, S: Array) -> Array:
    """The variances before anything was seen."""
    return unknown.variance_before(S) if isinstance(unknown, WithRecords) else unknown.variance(S)


def _stands_for(unknown: Uncertain) -> float:
    """The variance of f for the readers that are meant, as a multiple of the one that is seen (models/below.py)."""
    return unknown.stands_for if isinstance(unknown, (Prior, WithRecords)) else 1.0


def _matrix_of(shares: tuple[Array, Array], unknown: Uncertain, S: Array) -> Array:
    """Δ where these ``shares`` may be learnt of the function's part of each value, and of its own."""
    own, root = _own(unknown, S), np.sqrt(shares[0])
    return np.asarray(root[:, None] * (unknown.covariance(S) - np.diag(own)) * root + np.diag(shares[1] * own))


class Tolerance(ABC):
    """What may be learnt: Δ at any finite set of sensitive inputs.

    ``unknown`` are the sensitive values as a reader sees them before the release; a prior stands for f itself.
    Fractions and floors are shares of what readers do not know; an insider may learn the same share of what is left.
    """

    @abstractmethod
    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        """Δ, γ × γ, at the γ sensitive inputs ``S``."""

    @abstractmethod
    def budget(self, unknown: Uncertain, S: Array) -> Array:
        """The diagonal of Δ: how much variance may be explained at each sensitive input."""

    @abstractmethod
    def in_words(self, outputs: Sequence[str] = ()) -> str:
        """A phrase for certificates and reports; ``outputs`` are the names of the outputs."""

    def floor(self, unknown: Uncertain, S: Array) -> Array:
        """The standard deviation that every reader keeps at each sensitive input (0: no promise there)."""
        return np.sqrt(np.maximum(self.kept(unknown, S), 0.0))

    def kept(self, unknown: Uncertain, S: Array) -> Array:
        """The variance that every reader keeps; what a floor asks for, also where there is less to begin with.

        Nothing can be kept there; 0 and less: nothing is promised.
        """
        return np.asarray(unknown.variance(S) - self.budget(unknown, S))

    def shares(self, unknown: Uncertain, S: Array) -> tuple[Array, Array] | None:
        """What may be learnt of the function's part of each value, and of its own, as shares of them.

        None where the tolerance is not made of such shares.
        """
        return None

    def beside_records(self, unknown: Uncertain, S: Array) -> Array | None:
        """Δ at ``S``, less what promises about records take of it; None: nothing, as long as none of it was used up."""
        return None

    def applies_to(self, S: Array) -> Mask:
        """Where anything is promised: everywhere, but for promises that are made about another region."""
        return np.ones(len(S), dtype=np.bool_)

    @property
    def alone(self) -> Tolerance:
        """The share or the floor that it is made of, whether of the function or of records."""
        return self

    @property
    def varies(self) -> bool:
        """Whether it is a floor that is a function of the inputs."""
        return False

    @property
    def known_between(self) -> bool:
        """Whether it is a polynomial between inputs wherever the variances of the prior and of ``kernels`` are."""
        return False

    @property
    def kernels(self) -> tuple[gpytorch.kernels.Kernel, ...]:
        """Kernels besides the prior's whose variance it follows."""
        return ()

    @property
    def listed_at(self) -> Array | None:
        """The inputs at which alone it is known; None where it is known everywhere."""
        return None

    def carried_to(self, numbers: Mapping[int, int], moved: Callable[[Array], Array], several: bool) -> Tolerance:
        """The same where output k has the number ``numbers[k]``, one of ``several``; inputs are ``moved`` there."""
        return self

    def in_units(self, units: Array, outputs: Outputs) -> Tolerance | None:
        """The same in other ``units``, one for each of the ``outputs``; None where it has none that is known."""
        return None

    def tabulated(self, inputs: Callable[[], Array]) -> Tolerance:
        """Itself; a function, which no file can hold, as a table at ``inputs()``."""
        return self

    def to_tree(self) -> dict[str, Any]:
        """What a file has to hold of it besides its ``arrays``."""
        raise InputError(f"tolerance is a {type(self).__name__}, which a release file cannot hold.")

    def arrays(self) -> dict[str, Array]:
        """The arrays that a file has to hold, by the names that it gives them."""
        return {}

    def check(self, unknown: Uncertain, S: Array, inputs: Inputs) -> None:
        """Raise ``InputError`` where this tolerance cannot be promised at ``S``."""
        if np.any(self.budget(unknown, S) <= 0):
            raise InputError("tolerance is zero somewhere in the region; every sensitive value needs a positive one.")


@dataclass(frozen=True)
class FractionTolerance(Tolerance):
    """Δ = α K_SS: a release may explain at most the fraction α of the prior variance."""

    alpha: float

    def __post_init__(self) -> None:
        if isinstance(self.alpha, (bool, np.bool_)) or not isinstance(
            self.alpha, (int, float, np.integer, np.floating)
        ):
            raise InputError(f"alpha is {self.alpha!r}; give a number between 0 and 1 (small = strong privacy).")
        if not 0.0 < self.alpha < 1.0:
            raise InputError(
                f"alpha is {self.alpha:.10g}; it must lie strictly between 0 and 1. alpha is the fraction of the "
                "prior variance that readers may learn: 0.1 is strong privacy, 0.9 is weak."
            )
        object.__setattr__(self, "alpha", float(self.alpha))

    @property
    def known_between(self) -> bool:
        return True

    def shares(self, unknown: Uncertain, S: Array) -> tuple[Array, Array]:
        # a process that stands for readers of a larger variance keeps 1 − α of theirs
        of_function = 1.0 - (1.0 - self.alpha) * _stands_for(unknown) if _stands_for(unknown) != 1.0 else self.alpha
        return np.full(len(S), of_function), np.full(len(S), self.alpha)

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        if _stands_for(unknown) != 1.0:
            return _matrix_of(self.shares(unknown, S), unknown, S)
        return self.alpha * unknown.covariance(S)

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        if _stands_for(unknown) != 1.0:
            (of_function, of_own), own = self.shares(unknown, S), _own(unknown, S)
            return np.asarray(of_function * (unknown.variance(S) - own) + of_own * own)
        return self.alpha * unknown.variance(S)

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        return f"readers keep at least {1 - self.alpha:.6g} of the prior variance (alpha = {self.alpha:.12g})"

    def in_units(self, units: Array, outputs: Outputs) -> FractionTolerance:
        return self

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "fraction", "alpha": self.alpha}


@dataclass(frozen=True)
class FloorTolerance(Tolerance):
    """No one may know f(s) better than ± ``value`` (one standard deviation, in the owner's units).

    Δ = D K_SS D with D = diag √α(s), α(s) = 1 − value(s)²/K(s,s). ``value`` is a number, or a function that
    takes an array of inputs, one a row, and returns one floor for each. No one may know a record better than that
    either. Jointly, f at its input is held to the floor as well, and of its own part the share 1 − value²/(K + V) may
    be learnt.
    """

    value: float | Callable[[Array], Any]

    def __post_init__(self) -> None:
        if callable(self.value):
            return
        real = isinstance(self.value, (int, float, np.integer, np.floating)) and not isinstance(self.value, bool)
        if not real or not 0.0 < self.value < np.inf:
            raise InputError(
                f"floor is {self.value!r}; give a positive standard deviation in the units of y, or a function of the "
                "inputs."
            )
        object.__setattr__(self, "value", float(self.value))

    def values(self, S: Array) -> Array:
        """The asked floor at each row of ``S``."""
        if not callable(self.value):
            return np.full(S.shape[0], self.value)
        returned = self.value(np.array(S))
        try:
            values = np.asarray(returned, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise InputError(
                f"floor returned {str(returned)[:60]!r}; it must return one positive number for each input."
            ) from None
        if values.size == 1:
            values = np.full(S.shape[0], values[0])
        if values.shape[0] != S.shape[0] or not np.all(np.isfinite(values)) or np.any(values <= 0):
            raise InputError(
                f"floor returned {np.array2string(values[:5])} for {S.shape[0]} inputs; it must return one positive "
                "number for each."
            )
        return values

    @property
    def known_between(self) -> bool:
        return not callable(self.value)

    def shares(self, unknown: Uncertain, S: Array) -> tuple[Array, Array]:
        kept, before = self.values(S) ** 2, _before(unknown, S)
        return np.maximum(1.0 - kept / (before - _own(unknown, S)), 0.0), np.maximum(1.0 - kept / before, 0.0)

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        return _matrix_of(self.shares(unknown, S), unknown, S)

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        return self.shares(unknown, S)[1] * unknown.variance(S)

    def kept(self, unknown: Uncertain, S: Array) -> Array:
        return np.asarray(self.values(S) ** 2 * (unknown.variance(S) / _before(unknown, S)))

    def check(self, unknown: Uncertain, S: Array, inputs: Inputs) -> None:
        _refuse_above(self.values(S), np.sqrt(unknown.variance(S)), S, inputs, "f")

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        if callable(self.value):
            return "readers keep at least the asked standard deviation, which varies over the region"
        return f"readers keep a standard deviation of at least {self.value:g}"

    @property
    def varies(self) -> bool:
        return callable(self.value)

    def in_units(self, units: Array, outputs: Outputs) -> FloorTolerance | None:
        if callable(self.value) or len(units) > 1:
            return None
        return FloorTolerance(self.value / float(units[0]))

    def tabulated(self, inputs: Callable[[], Array]) -> Tolerance:
        if not callable(self.value):
            return self
        # Told apart by their bytes, as the table looks them up: 0 and −0 are two inputs there.
        rows = {row.tobytes(): row for row in np.ascontiguousarray(inputs(), dtype=np.float64)}
        S = np.array([rows[key] for key in sorted(rows)])
        return TabulatedFloor(FloorTolerance(self.values), S, self.values(S))

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "floor", "value": self.value}


def _refuse_above(floors: Array, deviations: Array, S: Array, inputs: Inputs, what: str) -> None:
    """Refuse a floor above what is known beforehand."""
    worst = int(np.argmax(floors / deviations)) if len(S) else 0
    if len(S) and floors[worst] >= deviations[worst]:
        raise InputError(
            f"floor is {floors[worst]:g} at {inputs.in_words(S[worst])}, but the prior itself already knows {what} "
            f"there to within ± {deviations[worst]:g}; give a floor below {deviations[worst]:g}, or a prior with a "
            "larger variance."
        )


@dataclass(frozen=True, eq=False)
class TabulatedFloor(Tolerance):
    """A varying floor that came from a file: known at the inputs where it was written down."""

    source: FloorTolerance
    inputs: Array
    values: Array

    @classmethod
    def from_table(cls, inputs: Array, values: Array) -> TabulatedFloor:
        # + 0.0 turns −0 into 0: they are the same input
        table = {row.tobytes(): value for row, value in zip(np.ascontiguousarray(inputs) + 0.0, values, strict=True)}

        def look_up(S: Array) -> Array:
            try:
                return np.array([table[row.tobytes()] for row in np.ascontiguousarray(S) + 0.0])
            except KeyError:
                raise InputError(
                    "the floor of this release varies over the region and the file has it only at the inputs that were "
                    "checked; ask for it at those."
                ) from None

        return cls(FloorTolerance(look_up), inputs, values)

    @property
    def listed_at(self) -> Array:
        return self.inputs

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        return self.source.matrix(unknown, S)

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        return self.source.budget(unknown, S)

    def kept(self, unknown: Uncertain, S: Array) -> Array:
        return self.source.kept(unknown, S)

    def check(self, unknown: Uncertain, S: Array, inputs: Inputs) -> None:
        self.source.check(unknown, S, inputs)

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        low, high = float(np.min(self.values)), float(np.max(self.values))
        return (
            f"readers keep at least the asked standard deviation, which varies from {low:g} to {high:g} over the region"
        )

    @property
    def varies(self) -> bool:
        return True

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "table"}

    def arrays(self) -> dict[str, Array]:
        return {"floor_inputs": self.inputs, "floor_values": self.values}


@dataclass(frozen=True)
class OutputTolerance(Tolerance):
    """A tolerance of its own for each sensitive output, by its number: a fraction or a floor.

    With α(s) that of the output that s is about and ``common`` what may be learnt of all of them, m(s) = min(α(s),
    common), ``Δ(s, s′) = √(m(s) m(s′)) K(s, s′) + [same output] √((α(s) − m(s))(α(s′) − m(s′))) K(s, s′)``: what all
    may tell together is held to the least, and each output by itself to its own. (√α(s) √α(s′) K(s, s′) would ask for
    far more noise: where outputs determine each other it allows nothing of their difference.)
    """

    parts: tuple[tuple[int, FractionTolerance | FloorTolerance], ...]
    common: float

    @classmethod
    def of(
        cls, parts: tuple[tuple[int, FractionTolerance | FloorTolerance], ...], unknown: Uncertain, probes: Array
    ) -> OutputTolerance:
        """With the least of all fractions at the inputs ``probes`` in common."""
        alone = cls(parts, 1.0)
        return cls(parts, float(np.min(alone._alone(unknown, probes)[1])))

    def _alone(self, unknown: Uncertain, S: Array) -> Array:
        """α(s) of each value, where its output is by itself: of the function's part, and of its own."""
        found = np.full((2, len(S)), np.nan)
        for number, part in self.parts:
            own = np.flatnonzero(S[:, -1] == number)
            if own.size:
                # of all values: records are known by their place among them
                found[:, own] = np.array(part.shares(unknown, S))[:, own]
        missing = np.isnan(found[0])
        if np.any(missing):
            raise InputError(f"tolerance says nothing about the output {S[missing][0, -1]:g}; give it one.")
        return found

    @property
    def known_between(self) -> bool:
        return all(part.known_between for _, part in self.parts)

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        (of_function, of_own), of_records = self._alone(unknown, S), _own(unknown, S)
        shared = np.sqrt(np.minimum(of_function, self.common))
        own = np.sqrt(np.maximum(of_function - self.common, 0.0))
        same = S[:, -1][:, None] == S[:, -1][None, :]
        weights, function = np.outer(shared, shared) + np.outer(own, own) * same, unknown.covariance(S)
        function[np.diag_indices_from(function)] -= of_records
        return np.asarray(weights * function + np.diag(of_records * of_own))

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        return np.asarray(self._alone(unknown, S)[1] * unknown.variance(S))

    def kept(self, unknown: Uncertain, S: Array) -> Array:
        found = super().kept(unknown, S)
        for number, part in self.parts:
            if isinstance(part, FloorTolerance):
                found = np.where(S[:, -1] == number, part.kept(unknown, S), found)
        return found

    def check(self, unknown: Uncertain, S: Array, inputs: Inputs) -> None:
        deviations = np.sqrt(unknown.variance(S)) if len(S) else np.zeros(0)
        for number, part in self.parts:
            own = S[:, -1] == number
            if isinstance(part, FloorTolerance):
                _refuse_above(part.values(S[own]), deviations[own], S[own], inputs, "f")

    def carried_to(self, numbers: Mapping[int, int], moved: Callable[[Array], Array], several: bool) -> Tolerance:
        parts = tuple((numbers[number], part) for number, part in self.parts)
        return OutputTolerance(parts, self.common) if several else parts[0][1]

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        called = [outputs[number] if number < len(outputs) else f"output {number}" for number, _ in self.parts]
        return "; ".join(f"{name}: {part.in_words()}" for name, (_, part) in zip(called, self.parts, strict=True))

    def in_units(self, units: Array, outputs: Outputs) -> OutputTolerance | None:
        parts = [(number, part.in_units(units[number : number + 1], outputs)) for number, part in self.parts]
        known = tuple((number, part) for number, part in parts if part is not None)
        return OutputTolerance(known, self.common) if len(known) == len(parts) else None

    def to_tree(self) -> dict[str, Any]:
        parts = [[number, part.to_tree()] for number, part in self.parts]
        return {"kind": "outputs", "outputs": {"common": self.common, "parts": parts}}


def _share_of_own(of_function: Array, unknown: Uncertain, S: Array) -> Array:
    """What may be learnt of each record's own part, where ``of_function`` may be of f at its input: the same share."""
    own = _own(unknown, S)
    return np.asarray(own * np.minimum(of_function / (_before(unknown, S) - own), 1.0))


#: A floor asks for at most this share of what is a record's own, as long as the function leaves room for the rest.
MOST_OF_OWN = 0.9


@dataclass(frozen=True, eq=False)
class RecordTolerance(Tolerance):
    """How much of records may be learnt by readers who may know the function.

    With α (``part`` is a fraction) Δ = K_RR + α V_RR: readers keep 1 − α of what is each record's own. A floor τ asks
    for ``Var(y_i|W) ≥ τ²``: as much of that as can be (``MOST_OF_OWN``) is kept of the record's own part, the rest of
    the function's.
    """

    part: FractionTolerance | FloorTolerance | TabulatedFloor | OutputTolerance

    @property
    def alone(self) -> Tolerance:
        return self.part

    def shares(self, unknown: Uncertain, S: Array) -> tuple[Array, Array]:
        own = _own(unknown, S)
        function = _before(unknown, S) - own
        of_own = np.zeros(len(S))
        of_function = np.ones(len(S))
        for rows, part in self._parts(S):
            if isinstance(part, FractionTolerance):
                of_own[rows] = part.alpha
                continue
            kept = part.values(S[rows]) ** 2
            with np.errstate(divide="ignore"):
                whole = np.maximum(1.0 - kept / (function[rows] + own[rows]), 0.0)
                of_own[rows] = np.maximum(1.0 - kept / own[rows], np.minimum(1.0 - MOST_OF_OWN, whole))
            left = np.maximum(kept - (1.0 - of_own[rows]) * own[rows], 0.0)
            # where f is known beforehand there is nothing of it that could be learnt
            with np.errstate(over="ignore"):
                share = left / np.maximum(function[rows], np.finfo(float).tiny)
            of_function[rows] = np.clip(1.0 - share, 0.0, 1.0)
        return of_function, of_own

    def _parts(self, S: Array) -> list[tuple[Any, FractionTolerance | FloorTolerance]]:
        if isinstance(self.part, OutputTolerance):
            return [(np.flatnonzero(S[:, -1] == number), part) for number, part in self.part.parts]
        one = self.part.source if isinstance(self.part, TabulatedFloor) else self.part
        return [(slice(None), one)]

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        return _matrix_of(self.shares(unknown, S), unknown, S)

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        own = _own(unknown, S)
        of_function, of_own = self.shares(unknown, S)
        return np.asarray(of_function * (unknown.variance(S) - own) + of_own * own)

    def kept(self, unknown: Uncertain, S: Array) -> Array:
        asked = np.zeros(len(S))
        for rows, part in self._parts(S):
            if isinstance(part, FloorTolerance):
                asked[rows] = part.values(S[rows])
        return np.where(asked**2 > _before(unknown, S), asked**2, super().kept(unknown, S))

    @property
    def varies(self) -> bool:
        return self.part.varies

    @property
    def listed_at(self) -> Array | None:
        return self.part.listed_at

    def check(self, unknown: Uncertain, S: Array, inputs: Inputs) -> None:
        deviations = np.sqrt(_before(unknown, S))
        for rows, part in self._parts(S):
            if isinstance(part, FloorTolerance):
                _refuse_above(part.values(S[rows]), deviations[rows], S[rows], inputs, "the record")

    def carried_to(self, numbers: Mapping[int, int], moved: Callable[[Array], Array], several: bool) -> Tolerance:
        return RecordTolerance(self.part.carried_to(numbers, moved, several))  # type: ignore[arg-type]

    def in_units(self, units: Array, outputs: Outputs) -> RecordTolerance | None:
        part = self.part.in_units(units, outputs)
        return None if part is None else RecordTolerance(part)  # type: ignore[arg-type]

    def tabulated(self, inputs: Callable[[], Array]) -> Tolerance:
        return RecordTolerance(self.part.tabulated(inputs))  # type: ignore[arg-type]

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        if isinstance(self.part, FractionTolerance):
            kept = f"{1 - self.part.alpha:.6g} of the variance that is each record's own"
            return f"readers keep at least {kept} (alpha = {self.part.alpha:.12g}); of the function they may learn all"
        return f"of each record {self.part.in_words(outputs)}"

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "records", "of": self.part.to_tree()}

    def arrays(self) -> dict[str, Array]:
        return self.part.arrays()


@dataclass(frozen=True, eq=False)
class KernelTolerance(Tolerance):
    """Δ = H_SS for a kernel H."""

    kernel: gpytorch.kernels.Kernel
    _process: Prior | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, gpytorch.kernels.Kernel):
            raise InputError(f"KernelTolerance takes a GPyTorch kernel, not {self.kernel!r}.")
        process = Prior(kernel=self.kernel)
        object.__setattr__(self, "kernel", process.kernel)
        object.__setattr__(self, "_process", process)

    @property
    def known_between(self) -> bool:
        return True

    @property
    def kernels(self) -> tuple[gpytorch.kernels.Kernel, ...]:
        return (self.kernel,)

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        assert self._process is not None
        return self._process.covariance(S) + np.diag(self._of_records(unknown, S))

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        assert self._process is not None
        return self._process.variance(S) + self._of_records(unknown, S)

    def _of_records(self, unknown: Uncertain, S: Array) -> Array:
        """What may be learnt of each record's own part: the share that may be learnt of f there."""
        assert self._process is not None
        return _share_of_own(self._process.variance(S), unknown, S)

    def carried_to(self, numbers: Mapping[int, int], moved: Callable[[Array], Array], several: bool) -> Tolerance:
        raise InputError("a promise with a tolerance kernel cannot be carried over to a prior with other outputs.")

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        return "what readers learn stays within the given tolerance kernel"

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "kernel", "kernel": describe_kernel(self.kernel)}


@dataclass(frozen=True, eq=False)
class MatrixTolerance(Tolerance):
    """An explicit Δ for the points of a ``Points`` region, in their order."""

    delta: Array
    points: Array | None = None

    def __post_init__(self) -> None:
        try:
            delta = np.array(self.delta, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"MatrixTolerance is {str(self.delta)[:60]}; give a square matrix of numbers.") from None
        if delta.ndim == 0:
            delta = delta.reshape(1, 1)
        if delta.ndim != 2 or delta.shape[0] != delta.shape[1] or not np.all(np.isfinite(delta)):
            raise InputError(
                f"MatrixTolerance has shape {delta.shape}; give a finite square matrix, a row for each sensitive point."
            )
        if not np.allclose(delta, delta.T, rtol=1e-12, atol=0.0):
            raise InputError("MatrixTolerance is not symmetric; give (D + Dᵀ)/2.")
        delta = (delta + delta.T) / 2
        try:
            scipy.linalg.cholesky(delta, lower=True)
        except np.linalg.LinAlgError:
            raise InputError(
                f"MatrixTolerance is not positive definite (least eigenvalue {np.linalg.eigvalsh(delta)[0]:.3g}); "
                "every combination of the sensitive values needs a positive tolerance."
            ) from None
        delta.setflags(write=False)
        object.__setattr__(self, "delta", delta)

    def at(self, points: Array) -> MatrixTolerance:
        """This tolerance for the given sensitive points, one for each row of the matrix."""
        if points.shape[0] != self.delta.shape[0]:
            raise InputError(
                f"MatrixTolerance is {self.delta.shape[0]} × {self.delta.shape[0]}, but the region has "
                f"{points.shape[0]} points; use it with sf.Points and give one row for each point."
            )
        if np.unique(points, axis=0).shape[0] < points.shape[0]:
            raise InputError("region has the same point twice; with a MatrixTolerance each point must be given once.")
        return MatrixTolerance(self.delta, points)

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        rows = self._rows(S)
        return np.asarray(self.delta[np.ix_(rows, rows)] + np.diag(self.budget(unknown, S) - np.diag(self.delta)[rows]))

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        of_function = np.diag(self.delta)[self._rows(S)]
        return np.asarray(of_function + _share_of_own(of_function, unknown, S))

    def carried_to(self, numbers: Mapping[int, int], moved: Callable[[Array], Array], several: bool) -> Tolerance:
        return MatrixTolerance(self.delta, None if self.points is None else moved(self.points))

    def _rows(self, S: Array) -> list[int]:
        if self.points is None:
            raise InputError("a MatrixTolerance needs the points it is for; use it with sf.Points.")
        places = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(self.points))}
        try:
            return [places[row.tobytes()] for row in np.ascontiguousarray(S)]
        except KeyError:
            raise InputError("a MatrixTolerance says nothing about inputs other than its own points.") from None

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        return f"what readers learn of the {self.delta.shape[0]} sensitive values stays within the given matrix"

    def in_units(self, units: Array, outputs: Outputs) -> MatrixTolerance | None:
        if self.points is not None:
            scale = units[outputs.numbers(self.points)]
            return MatrixTolerance(self.delta / np.outer(scale, scale), self.points)
        return MatrixTolerance(self.delta / float(units[0]) ** 2) if len(units) == 1 else None

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "matrix"}

    def arrays(self) -> dict[str, Array]:
        return {"tolerance_matrix": self.delta}
