"""What an output is of a function f: its value, a derivative, or an average of values at fixed points.

All of them are linear in f, so any number of them together with f are one Gaussian process. A new one is
one more class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, LinearMean, Mean, ZeroMean

from ..arrays import Array
from ..data import Encoding, as_inputs, as_outputs
from ..errors import InputError
from .kernel_values import require_derivative
from .trends import PolynomialMean

#: An average of more points than this is refused: every covariance with it costs one kernel value a point.
MAX_POINTS = 4096


@dataclass(frozen=True)
class Side:
    """A functional at some rows: kernel values are taken there, in this derivative, and averaged if weighted."""

    rows: torch.Tensor
    column: int | None = None
    weights: torch.Tensor | None = None


class Functional(ABC):
    """A linear functional L: from a function to a function (``takes_input``) or to a number."""

    @property
    @abstractmethod
    def takes_input(self) -> bool:
        """Whether L f still depends on an input x."""

    @abstractmethod
    def on(self, names: Sequence[str]) -> Functional:
        """The same for inputs with these columns: every column is a number, every integral a sum."""

    @abstractmethod
    def words(self, names: Sequence[str] = (), function: str = "f") -> str:
        """In words, for a function of this name."""

    @abstractmethod
    def at(self, x: torch.Tensor) -> Side:
        """L f at the rows of ``x``, once columns are numbers."""

    @abstractmethod
    def of_mean(self, mean: Mean, x: torch.Tensor) -> torch.Tensor:
        """L applied to ``mean``, at the rows of ``x`` or one number for all of them."""

    @property
    def place(self) -> Array | None:
        """The x by which a number goes that belongs to no input of its own."""
        return None

    def plain(self) -> Functional:
        """The same as a value, a derivative or an average."""
        return self

    def require_kernel(self, kernel: Kernel) -> None:
        """Raise unless L can be applied to functions with this kernel."""
        return

    def require_mean(self, mean: Mean) -> None:
        """Raise unless L can be applied to this mean."""
        return


@dataclass(frozen=True)
class Value(Functional):
    """The function itself: ``f(x)``."""

    takes_input = True

    def on(self, names: Sequence[str]) -> Functional:
        return self

    def words(self, names: Sequence[str] = (), function: str = "f") -> str:
        return function

    def at(self, x: torch.Tensor) -> Side:
        return Side(x)

    def of_mean(self, mean: Mean, x: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = mean(x)
        return values


@dataclass(frozen=True)
class Derivative(Functional):
    """The first partial derivative ``∂f/∂x_column``; ``column`` is a number, a name, or None for the only one.

    >>> Derivative("t").resolved(["s", "t"])
    1
    """

    column: int | str | None = None

    takes_input = True

    def __post_init__(self) -> None:
        column: Any = self.column
        if isinstance(column, np.integer):
            object.__setattr__(self, "column", int(column))
        elif column is not None and (isinstance(column, bool) or not isinstance(column, (int, str))):
            raise InputError(f"column is {column!r}; give the number or the name of a column, or leave it out.")

    def resolved(self, names: Sequence[str]) -> int:
        """The number of the column among ``names``."""
        known = f"the columns are {', '.join(names)}"
        if self.column is None:
            if len(names) != 1:
                raise InputError(f"column is left out of Derivative, but {known}; give one of them.")
            return 0
        if isinstance(self.column, str):
            if self.column not in names:
                raise InputError(f"column is {self.column!r}, but {known}; give one of them.")
            return list(names).index(self.column)
        if not 0 <= self.column < len(names):
            raise InputError(f"column is {self.column}, but {known}; give a number from 0 to {len(names) - 1}.")
        return self.column

    def on(self, names: Sequence[str]) -> Functional:
        return Derivative(self.resolved(names))

    def words(self, names: Sequence[str] = (), function: str = "f") -> str:
        if isinstance(self.column, int):
            return f"d{function}/d{names[self.column] if self.column < len(names) else f'x{self.column}'}"
        return f"d{function}/d{self.column or (names[0] if len(names) == 1 else 'x')}"

    def at(self, x: torch.Tensor) -> Side:
        return Side(x, column=self._number())

    def of_mean(self, mean: Mean, x: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = x.new_zeros(())
        if type(mean) is PolynomialMean:
            return mean.slope(x, self._number())
        return mean.weights.reshape(-1)[self._number()] if type(mean) is LinearMean else value

    def require_kernel(self, kernel: Kernel) -> None:
        require_derivative(kernel, self._number())

    def require_mean(self, mean: Mean) -> None:
        if type(mean) not in (ZeroMean, ConstantMean, LinearMean, PolynomialMean):
            raise InputError(
                f"mean is of class {type(mean).__name__}, whose derivative is not known here; "
                "use a zero, constant, linear or polynomial mean."
            )
        columns = {LinearMean: "weights", PolynomialMean: "centre"}.get(type(mean))
        if columns is not None and self._number() >= getattr(mean, columns).numel():
            raise InputError(
                f"column is {self.column}, but the mean is made for {getattr(mean, columns).numel()} column(s); "
                "give a mean that is made for each column."
            )

    def _number(self) -> int:
        if not isinstance(self.column, int):
            raise InputError(f"column is {self.column!r}; give the number of a column: use on(names) first.")
        return self.column


@dataclass(frozen=True, eq=False)
class Average(Functional):
    """``Σ_j weights_j f(points_j)``: a number that belongs to no input of its own.

    ``points`` are one row for each point (an array, a list or a DataFrame); ``weights`` are 1/m each if left out,
    and may be any numbers, so that differences of values are averages too.

    >>> Average([0.0, 1.0, 5.0]).place
    array([2.])
    """

    points: Any
    weights: Any = None
    columns: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    encoding: Encoding | None = field(default=None, init=False, repr=False)

    takes_input = False

    def __post_init__(self) -> None:
        rows = as_inputs(self.points, "points")
        if len(rows) > MAX_POINTS:
            raise InputError(f"points has {len(rows)} rows; give at most {MAX_POINTS}, for example a sample of them.")
        even = np.full(len(rows), 1.0 / len(rows))
        weights = even if self.weights is None else as_outputs(self.weights, len(rows), "weights")
        if not np.any(weights):
            raise InputError("weights are all 0, and so is the average; give at least one that is not.")
        weights.setflags(write=False)
        object.__setattr__(self, "points", rows.values)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "columns", rows.columns)
        object.__setattr__(self, "encoding", rows.encoding)

    @property
    def place(self) -> Array:
        """Where the quantity is said to be: the centroid of its points by the size of their weights."""
        shares = np.abs(self.weights) / np.max(np.abs(self.weights))
        # from the first point on: the mean of points far from the origin is not to leave their midst by round-off
        origin = self.points[0]
        return np.asarray(origin + (shares / shares.sum()) @ (self.points - origin))

    def on(self, names: Sequence[str]) -> Functional:
        points = self.points
        if self.encoding is not None:
            points = _with_levels(self.points, self.encoding, names)
            return Average(points, self.weights)
        if points.shape[1] != len(names):
            raise InputError(
                f"points has {points.shape[1]} column(s), but the inputs have {len(names)} ({', '.join(names)}); "
                "give points with the same columns."
            )
        if self.columns is not None:
            missing = [name for name in names if name not in self.columns]
            if missing:
                raise InputError(
                    f"points has no column {missing[0]!r}; it has {', '.join(self.columns)}. The inputs have "
                    f"{', '.join(names)}: give points with the same columns, or as an array in their order."
                )
            points = points[:, [self.columns.index(name) for name in names]]
        return Average(points, self.weights)

    def words(self, names: Sequence[str] = (), function: str = "f") -> str:
        count = f"{len(self.points)} point{'s' if len(self.points) > 1 else ''}"
        even = np.all(self.weights == 1.0 / len(self.weights))
        return f"average of {function} over {count}" if even else f"weighted sum of {function} over {count}"

    def at(self, x: torch.Tensor) -> Side:
        return Side(torch.tensor(self.points).to(x), weights=torch.tensor(self.weights).to(x))

    def of_mean(self, mean: Mean, x: torch.Tensor) -> torch.Tensor:
        side = self.at(x)
        value: torch.Tensor = mean(side.rows) @ side.weights
        return value


@dataclass(frozen=True, eq=False)
class Integral(Functional):
    """``∫ f`` over the box from ``lower`` to ``upper``, by a Gauss–Legendre rule with ``nodes`` nodes a column.

    It becomes an ``Average`` with those nodes and weights; the weights add up to the volume of the box.

    **Guarantee**: what is promised of this output is promised of that sum, not of the integral that it stands for. For
    kernels whose lengthscales are no shorter than a few gaps between nodes the two agree to many digits.

    >>> Integral(0.0, 2.0, nodes=3).average.weights.round(4)
    array([0.5556, 0.8889, 0.5556])
    """

    lower: Any
    upper: Any
    nodes: int = 32

    takes_input = False

    def __post_init__(self) -> None:
        lower, upper = as_inputs(self.lower, "lower").values.ravel(), as_inputs(self.upper, "upper").values.ravel()
        if lower.shape != upper.shape:
            raise InputError(f"lower has {lower.size} number(s) and upper has {upper.size}; give one a column in both.")
        if not np.all(lower < upper):
            raise InputError(f"lower is {lower.tolist()} and upper is {upper.tolist()}; lower must be below upper.")
        if isinstance(self.nodes, bool) or not isinstance(self.nodes, (int, np.integer)) or self.nodes < 1:
            raise InputError(f"nodes is {self.nodes!r}; give a whole number, 1 or more.")
        if int(self.nodes) ** lower.size > MAX_POINTS:
            most = int(MAX_POINTS ** (1.0 / lower.size) + 1e-9)
            remedy = f"give at most {most}" if most > 1 else "use Average with points of your own"
            raise InputError(
                f"nodes is {self.nodes} in each of {lower.size} column(s): more than {MAX_POINTS} in all; {remedy}."
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "nodes", int(self.nodes))

    @property
    def average(self) -> Average:
        """The sum that stands for the integral."""
        places, shares = np.polynomial.legendre.leggauss(self.nodes)
        half = (self.upper - self.lower) / 2.0
        grids = np.meshgrid(*[low + h * (places + 1.0) for low, h in zip(self.lower, half)], indexing="ij")
        weights = np.meshgrid(*[h * shares for h in half], indexing="ij")
        return Average(np.stack([grid.ravel() for grid in grids], axis=1), np.prod(weights, axis=0).ravel())

    @property
    def place(self) -> Array:
        """Where the quantity is said to be: the middle of the box."""
        return self.average.place

    def on(self, names: Sequence[str]) -> Functional:
        return self.average.on(names)

    def words(self, names: Sequence[str] = (), function: str = "f") -> str:
        box = " × ".join(f"[{low:g}, {high:g}]" for low, high in zip(self.lower, self.upper))
        return f"integral of {function} over {box}"

    def plain(self) -> Functional:
        return self.average

    def at(self, x: torch.Tensor) -> Side:
        return self.average.at(x)

    def of_mean(self, mean: Mean, x: torch.Tensor) -> torch.Tensor:
        return self.average.of_mean(mean, x)


def _with_levels(points: Array, encoding: Encoding, names: Sequence[str]) -> Array:
    """Points of a table over the columns ``names``, which may have levels that no point has."""
    categories = tuple(f"{column.name}=" for column in encoding.columns if column.kind == "category")
    missing = [name for name in names if name not in encoding.names and not name.startswith(categories or ("=",))]
    unknown = [name for name in encoding.names if name not in names]
    if missing or unknown:
        raise InputError(
            f"points has the columns {', '.join(encoding.names)}, but the inputs have {', '.join(names)}; give points "
            "with the same columns, and with levels that the inputs have."
        )
    known = {name: points[:, place] for place, name in enumerate(encoding.names)}
    return np.column_stack([known.get(name, np.zeros(len(points))) for name in names])
