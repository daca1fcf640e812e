"""Boxes of a region and the grids of nodes on them: how close f is to a polynomial there, by the prior alone.

On a *patch*, a small box, f is compared with the polynomial p that agrees with it at a grid of nodes. That ρ is at
least ``std(f(s) − p(s))`` at every s of the patch follows from how smooth f is along each column
(models/smoothness.py); it does not depend on data, noise or any condition number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

import numpy as np
from gpytorch.kernels import Kernel

from ..arrays import UNIT, Array, Index
from ..linalg import interpolation_nodes, interpolation_weights, lebesgue, smooth_error
from ..models import MOST_DERIVATIVES, AlongColumn, Prior, along_column
from ..regions import Boxes
from .roundoff import KERNEL_VALUES, MISPLACED, OF_BOUNDS

#: Degrees of polynomials that are tried, by the number of columns that vary; and the highest for rough kernels.
DEGREES = {1: (1, 2, 3, 4, 6, 8), 2: (1, 2, 3, 4, 6, 8), 3: (1, 2, 3, 4, 6), 4: (1, 2, 3, 4), 5: (1, 2, 3, 4)}
FEW_DEGREES = (1, 2)
MOST_ROUGH = 3

#: The error of an interpolation along a line is looked up at this many places where a kernel is rough.
LINE_PLACES = 1001

#: About how long it takes a core to solve for a number, evaluate a kernel, add a product to a block, fold an entry of
#: it, map one to a coefficient, look at a coefficient, and for what else a patch needs, in nanoseconds: by these a grid
#: is chosen.
SOLVED_NS, KERNEL_NS, PRODUCT_NS, FOLDED_NS, MAPPED_NS, COEFFICIENT_NS, PATCH_NS = (
    0.033,
    10.0,
    0.07,
    7.0,
    0.4,
    40.0,
    1e4,
)

#: A region in more moving columns than this is not tried: a single patch would need too many nodes.
MOST_COLUMNS = 6

#: An axis with more nodes than this is not tried.
MOST_ON_A_LINE = 20_000


@dataclass(frozen=True, eq=False)
class Axis:
    """Interpolation along one column of a box: ``count`` equal patches of this degree, and the error on each.

    ``shares`` are the errors of the parts of f, as shares of their deviations, and ``misplaced`` is what rounding the
    places of nodes may change in f.
    """

    degree: int
    count: int
    error: float
    shares: Array = field(default_factory=lambda: np.zeros(0))
    misplaced: float = 0.0

    @property
    def total(self) -> int:
        """How many nodes there are in all; neighbours share those between them."""
        return self.degree * self.count + 1

    def places(self) -> Array:
        """All nodes, from 0 to 1."""
        own = (interpolation_nodes(self.degree)[:-1] + 1.0) / 2.0
        return np.append(np.add.outer(np.arange(self.count), own).ravel() / self.count, 1.0)


@dataclass(frozen=True, eq=False)
class Grid:
    """The nodes of congruent boxes: an axis for each column that varies.

    ``variance`` are the degrees of the polynomials that variances are along each of them. Where f is a sum of products
    over these columns, ``deviations`` are bounds for those of the terms. With ``by_rows`` ρ bounds what is explained of
    f − p, not its deviation.
    """

    columns: Index
    axes: tuple[Axis, ...]
    variance: tuple[int, ...]
    deviations: Array | None = None
    by_rows: bool = False

    @property
    def error(self) -> float:
        """ρ: column after column is interpolated; what was wrong before is amplified by the weights.

        For a product of functions with ``|φ_i − Iφ_i| ≤ ε_i|φ_i|`` it is at most ``Π(1 + ε_i) − 1`` of its deviation.
        """
        if self.deviations is not None:
            shares = np.sum([np.log1p(axis.shares) for axis in self.axes], axis=0)
            return float(np.linalg.norm(self.deviations * np.expm1(shares))) * (1.0 + OF_BOUNDS)
        total, amplified = 0.0, 1.0
        for axis in sorted(self.axes, key=lambda one: -one.error):
            total += amplified * axis.error
            amplified *= lebesgue(axis.degree)
        return total * (1.0 + OF_BOUNDS)

    @property
    def misplaced(self) -> float:
        """What rounding the places of nodes and patches may change in f at one of them."""
        return sum(axis.misplaced for axis in self.axes)

    @property
    def amplification(self) -> float:
        """By how much errors at the nodes may grow between them."""
        return float(np.prod([lebesgue(axis.degree) for axis in self.axes]))

    @property
    def size(self) -> int:
        """How many nodes a box has."""
        return math.prod(axis.total for axis in self.axes)

    @property
    def patches(self) -> int:
        return math.prod(axis.count for axis in self.axes)

    @property
    def _degrees(self) -> Index:
        return np.array([axis.degree for axis in self.axes])

    @property
    def parts(self) -> tuple[int, ...]:
        """Into how many cells a patch is divided at first, in each column."""
        return tuple(_parts(self._degrees).tolist())

    @property
    def orders(self) -> tuple[int, ...]:
        """The degrees of what is explained of p, and of variances, along each column."""
        return tuple(max(2 * axis.degree, order) for axis, order in zip(self.axes, self.variance, strict=True))

    @property
    def coefficients(self) -> int:
        """How many Bernstein coefficients the first cells of a patch have."""
        return math.prod(parts * (order + 1) for parts, order in zip(self.parts, self.orders, strict=True))

    def work(self, rows: int) -> float:
        """About how long the patches of a box take, in nanoseconds, where a solve has so many rows."""
        counts = np.array([axis.count for axis in self.axes])
        return float(_work(self._degrees, counts, np.array(self.variance), rows))

    @property
    def patch_size(self) -> int:
        """How many nodes a patch has."""
        return int(np.prod([axis.degree + 1 for axis in self.axes]))

    def nodes(self, boxes: Boxes) -> Array:
        """All nodes of each box: boxes × nodes × columns."""
        grid = np.stack(np.meshgrid(*(axis.places() for axis in self.axes), indexing="ij"), axis=-1)
        return inside_boxes(boxes, self.columns, grid.reshape(-1, len(self.axes)))

    def patch_nodes(self) -> Array:
        """The nodes of a patch, as shares of its extent in the columns that vary."""
        return nodes_of([axis.degree for axis in self.axes])

    def members(self) -> Index:
        """The numbers of the nodes of each patch: patches × nodes."""
        corners, inner = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
        for axis in self.axes:
            starts, own = axis.degree * np.arange(axis.count), np.arange(axis.degree + 1)
            corners = np.add.outer(corners * axis.total, starts).ravel()
            inner = np.add.outer(inner * axis.total, own).ravel()
        return np.add.outer(corners, inner)

    def split(self, boxes: Boxes, patches: slice) -> Boxes:
        """These patches of each box, boxes × patches of them in a row."""
        counts = [axis.count for axis in self.axes]
        corner = np.stack(np.meshgrid(*(np.arange(count) for count in counts), indexing="ij"), axis=-1)
        corner = corner.reshape(-1, len(counts))[patches]
        first, last = corner / counts, (corner + 1) / counts
        return Boxes(
            inside_boxes(boxes, self.columns, first).reshape(-1, boxes.lower.shape[1]),
            inside_boxes(boxes, self.columns, last).reshape(-1, boxes.lower.shape[1]),
        )


def _parts(degrees: Index) -> Index:
    """Into how many cells patches are divided at first: polynomials of high degree need more (last axis: columns)."""
    most = 4 if degrees.shape[-1] < 4 else 2
    return np.where(degrees == 1, 1, np.where(degrees < 5, 2, most))


def _work(degrees: Index, counts: Index, variance: Index, rows: int) -> Array:
    """About how long patches take, in nanoseconds, for axes of these degrees and counts (last axis: columns)."""
    entries = (degrees + 1.0) * (degrees + 2.0) / 2.0
    coefficients = _parts(degrees) * (np.maximum(2.0 * degrees, variance) + 1.0)
    # column after column, what is not mapped yet is folded
    later = np.cumprod(entries[..., ::-1], axis=-1)[..., ::-1]
    mapped = np.sum(np.cumprod(coefficients, axis=-1) * later, axis=-1)
    nodes = np.prod(degrees * counts + 1.0, axis=-1) * solve_work(rows)
    blocks = (PRODUCT_NS * rows + FOLDED_NS) * np.prod(degrees + 1.0, axis=-1) ** 2
    each = PATCH_NS + blocks + MAPPED_NS * mapped + COEFFICIENT_NS * np.prod(coefficients, axis=-1)
    return np.asarray(nodes + np.prod(counts * 1.0, axis=-1) * each)


def solve_work(rows: int) -> float:
    """About how long a kernel column and a solve for it take, in nanoseconds."""
    return rows * (SOLVED_NS * rows + KERNEL_NS)


def nodes_of(degrees: Sequence[int]) -> Array:
    """The nodes for polynomials of these degrees on a box, as shares of its extent in each column."""
    own = [(interpolation_nodes(degree) + 1.0) / 2.0 for degree in degrees]
    return np.stack(np.meshgrid(*own, indexing="ij"), axis=-1).reshape(-1, len(degrees))


def inside_boxes(boxes: Boxes, columns: Index, shares: Array) -> Array:
    """The places of each box at these shares of the way from its lower to its upper end, in the moving columns."""
    points = np.repeat(boxes.lower[:, None, :], len(shares), axis=1)
    low, high = boxes.lower[:, None, columns], boxes.upper[:, None, columns]
    # a weighted mean hits both ends exactly
    points[:, :, columns] = low * (1.0 - shares) + high * shares
    return points


class Interpolation:
    """How f of one reader is interpolated on boxes of given sizes.

    Along a line the variances under the prior and under ``others`` are polynomials too, of at most twice the degree.
    """

    def __init__(self, prior: Prior, numbered: bool, others: Sequence[Kernel] = ()) -> None:
        self.prior, self.numbered = prior, numbered
        self.kernels = (prior.kernel, *others)
        self._known: dict[tuple[int, int, bytes], AlongColumn | None] = {}
        self._rates: dict[tuple[int, int], tuple[float, float]] = {}
        self._errors: dict[tuple[int, int, float, bytes], float] = {}

    def grid(self, boxes: Boxes, closeness: float, rows: int) -> Grid | None:
        """The grid for congruent ``boxes`` with ρ at most ``closeness`` that takes the least work.

        None where the kernel is not known. ``rows`` is how many rows a solve has.
        """
        columns = np.flatnonzero(np.any(boxes.upper > boxes.lower, axis=0))
        variance = self.variance_degrees(boxes, columns)
        if columns.size > MOST_COLUMNS or variance is None:
            return None
        deviations = self._product_deviations(boxes, columns)
        tried = DEGREES.get(columns.size, FEW_DEGREES)
        best: Grid | None = None
        for most in tried if deviations is None and columns.size > 1 else tried[-1:]:
            if columns.size > 1 and not any(self._reaches(boxes, column, most) for column in columns.tolist()):
                continue  # lower degrees were tried, with more of the error for each
            amplified = lebesgue(most) if deviations is None else 1.0
            each = closeness / float(np.sum(amplified ** np.arange(columns.size)))
            degrees = [one for one in tried if one <= most]
            lines = [self._axes(boxes, column, each, degrees) for column in columns.tolist()]
            choices = list(product(*lines))
            if choices:
                sizes = np.array([[(axis.degree, axis.count) for axis in axes] for axes in choices])
                works = _work(sizes[..., 0], sizes[..., 1], np.array(variance), rows)
                grid = Grid(columns, choices[int(np.argmin(works))], variance, deviations)
                if best is None or float(np.min(works)) < best.work(rows):
                    best = grid
        return best

    def grid_between_rows(
        self, boxes: Boxes, closeness: float, rows: Array, explained: Callable[[float], float]
    ) -> Grid | None:
        """A grid for intervals of the only column that hold no row inside: covariances with rows are smooth there.

        This is so whatever f itself is. ``explained`` is how much of something is explained, by its covariance with
        each row. None where covariances are not known to be smooth.
        """
        together = Boxes(np.vstack([boxes.lower, rows]), np.vstack([boxes.upper, rows]))
        columns = np.zeros(1, dtype=np.intp)
        along, variance = self.along(together, 0), self.variance_degrees(boxes, columns)
        if along is None or variance is None:
            return None
        length = float(np.max(boxes.upper - boxes.lower))
        misplaced = along.step(MISPLACED * UNIT * float(np.max(np.abs(np.stack([boxes.lower, boxes.upper])))))
        best: Grid | None = None
        for degree in DEGREES[1]:
            bound = along.kernel_derivative(degree + 1)
            whole = explained(smooth_error(degree, length / 2.0, bound)) if np.isfinite(bound) else np.inf
            count = np.ceil((whole / closeness) ** (1.0 / (degree + 1)))
            if degree * count > MOST_ON_A_LINE:
                continue
            count = max(1, int(count))
            error = explained(smooth_error(degree, length / 2.0 / count, bound))
            axis = Axis(degree, count, error, misplaced=misplaced)
            grid = Grid(columns, (axis,), variance, by_rows=True)
            if best is None or grid.work(len(rows)) < best.work(len(rows)):
                best = grid
        return best

    def is_smooth(self, boxes: Boxes) -> bool:
        """Whether f has all derivatives that are asked for, in all columns."""
        found = [self.along(boxes, column) for column in range(boxes.lower.shape[1] - self.numbered)]
        return all(one is not None and np.isfinite(one.derivative(MOST_DERIVATIVES)) for one in found)

    def _product_deviations(self, boxes: Boxes, columns: Index) -> Array | None:
        """Those of the parts of f where all are smooth, and products over ``columns``; None else."""
        found = [self.along(boxes, int(column)) for column in columns]
        known = [one for one in found if one is not None]
        smooth = all(np.isfinite(one.derivative(MOST_DERIVATIVES)) for one in known)
        if not smooth or not all(one.is_product(columns.tolist()) for one in known):
            return None
        deviations = np.array([part.derivative(0) for part in known[0].parts])
        return deviations if np.all(deviations > 0.0) else None

    def along(self, boxes: Boxes, column: int, kernel: int = 0) -> AlongColumn | None:
        """How smooth f is along ``column`` in any of the boxes, under the prior or another of the kernels."""
        lower, upper = boxes.lower.min(axis=0), boxes.upper.max(axis=0)
        key = kernel, column, lower.tobytes() + upper.tobytes()
        if key not in self._known:
            output = int(lower[-1]) if self.numbered else None
            if self.numbered:
                lower, upper = lower[:-1], upper[:-1]
            self._known[key] = along_column(self.kernels[kernel], column, output, lower, upper)
        return self._known[key]

    def variance_degrees(self, boxes: Boxes, columns: Index) -> tuple[int, ...] | None:
        """The degrees of the polynomials that variances are along each of ``columns``; None where not known."""
        found = [[self.along(boxes, int(c), kernel) for kernel in range(len(self.kernels))] for c in columns]
        known = [[one.variance_degree for one in each if one is not None] for each in found]
        return tuple(max(each) for each in known) if all(len(one) == len(self.kernels) for one in known) else None

    def is_stationary(self, boxes: Boxes, columns: Index) -> bool:
        """Whether covariances inside a box depend on differences in these columns only, and are those of any box."""
        found = [self.along(boxes, int(column)) for column in columns]
        return all(one is not None and one.is_stationary for one in found)

    def _reaches(self, boxes: Boxes, column: int, degree: int) -> bool:
        """Whether there may be an interpolation of this degree along ``column``."""
        along = self.along(boxes, column)
        assert along is not None
        rough = degree == 1 or (degree <= MOST_ROUGH and along.is_stationary_but_for(degree))
        return rough or bool(np.isfinite(along.derivative(degree + 1)))

    def _axes(self, boxes: Boxes, column: int, error: float, degrees: Sequence[int]) -> list[Axis]:
        """Interpolations along ``column`` with at most this error, those of a higher degree with fewer patches."""
        along = self.along(boxes, column)
        assert along is not None
        length = float(np.max(boxes.upper[:, column] - boxes.lower[:, column]))
        reach = float(np.max(np.abs(np.stack([boxes.lower[:, column], boxes.upper[:, column]]))))
        found: list[Axis] = []
        for degree in degrees:
            axis = _smooth_axis(along, degree, length, error)
            if axis is None and degree <= MOST_ROUGH:
                axis = self._rough_axis(boxes, column, along, degree, length, error)
            if axis is not None and (not found or axis.count < found[-1].count):
                found.append(replace(axis, misplaced=along.step(MISPLACED * UNIT * reach)))
        return found

    def _rough_axis(
        self, boxes: Boxes, column: int, along: AlongColumn, degree: int, length: float, error: float
    ) -> Axis | None:
        """Where f has few derivatives the error is looked up: along a line it is a function of one number."""
        if not along.is_stationary_but_for(degree):
            return _chord_axis(along, length, error) if degree == 1 else None
        rate = 0.5 + sum(bool(np.isfinite(along.derivative(order))) for order in (1, 2))
        count, known = 1, self._rates.get((column, degree))
        while degree * count <= MOST_ON_A_LINE:
            if known is not None:
                half, found = known
                wanted = 0.995 * length / 2.0 / half * (found / error) ** (1.0 / rate)
                if not degree * wanted <= MOST_ON_A_LINE:  # hardly any error is allowed, and patches get too small
                    return None
                count = max(count, int(np.ceil(wanted)))
            half = length / 2.0 / count
            found = self._looked_up(boxes, column, along, degree, half)
            if found <= error:
                return Axis(degree, count, found)
            known = self._rates[column, degree] = half, found
            count = int(np.ceil(1.02 * count))
        return None

    def _looked_up(self, boxes: Boxes, column: int, along: AlongColumn, degree: int, half: float) -> float:
        """The largest ``std(f − p)`` on a line of this half-length; it is symmetric around the middle."""
        output = boxes.lower[:1, -1:] if self.numbered else boxes.lower[:0]
        key = column, degree, half, (output if along.is_stationary else boxes.lower[:1]).tobytes()
        if key not in self._errors:
            self._errors[key] = self._look_up(boxes, column, along, degree, half)
        return self._errors[key]

    def _look_up(self, boxes: Boxes, column: int, along: AlongColumn, degree: int, half: float) -> float:
        places, w = _line(degree)
        own = interpolation_nodes(degree)
        line = np.repeat(boxes.lower[:1], LINE_PLACES + degree + 1, axis=0)
        # all on one side of 0, where floats are dense
        line[:, column] = half * (np.concatenate([places, own]) + 1.0)
        cross = self.prior.covariance(line[:LINE_PLACES], line[LINE_PLACES:])
        each = self.prior.variance(line)
        between = self.prior.covariance(line[LINE_PLACES:])
        squared = each[:LINE_PLACES] - 2.0 * np.sum(w * cross, axis=1) + np.sum((w @ between) * w, axis=1)
        variance = float(np.max(each))
        rounding = KERNEL_VALUES * UNIT * (1.0 + lebesgue(degree)) ** 2 * variance
        found = float(np.sqrt(max(float(np.max(squared)), 0.0) + rounding))
        # between two of the places: f and p are compared with their chords
        step = 1.0 / (LINE_PLACES - 1)
        bend = lebesgue(degree) * degree**2 * (degree**2 - 1) / 3.0
        gap = half * step
        of_f = min(
            gap * (gap / 8.0) * along.derivative(2),  # a power would raise where it overflows
            gap / 4.0 * along.step_of_slope(gap),
            gap / 2.0 * along.derivative(1),
            along.step(gap),
        )
        return found + step**2 / 8.0 * bend * float(np.sqrt(variance)) + of_f


@lru_cache(maxsize=MOST_ROUGH)
def _line(degree: int) -> tuple[Array, Array]:
    """The places from the middle of a line to its end where errors are looked up, and the weights of nodes there."""
    places = np.linspace(0.0, 1.0, LINE_PLACES)
    return places, interpolation_weights(degree, places)


def _chord_axis(along: AlongColumn, length: float, error: float) -> Axis | None:
    """Chords of a rough f that is not the same everywhere: they are as far away as f, or its slope, may move."""

    def found(count: int) -> float:
        gap = length / count
        return min(gap / 4.0 * along.step_of_slope(gap), along.step(gap))

    count = 1
    while count <= MOST_ON_A_LINE and found(count) > error:
        count = int(np.ceil(1.1 * count))
    return Axis(1, count, found(count)) if count <= MOST_ON_A_LINE else None


def _smooth_axis(along: AlongColumn, degree: int, length: float, error: float) -> Axis | None:
    bound = along.derivative(degree + 1)
    if not np.isfinite(bound):
        return None
    most = smooth_error(degree, length / 2.0, bound)
    wanted = (most / error) ** (1.0 / (degree + 1))
    if not degree * wanted <= MOST_ON_A_LINE:
        return None
    count = max(1, int(np.ceil(wanted)))
    half = length / 2.0 / count
    each = np.array([smooth_error(degree, half, part.derivative(degree + 1)) for part in along.parts])
    whole = np.array([part.derivative(0) for part in along.parts])
    return Axis(degree, count, smooth_error(degree, half, bound), each / np.where(whole > 0.0, whole, 1.0))
