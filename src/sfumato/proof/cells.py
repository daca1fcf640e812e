"""Cells: a polynomial on patches, bounded by its Bernstein coefficients on ever smaller parts.

What is explained of a polynomial p(s) whose values at nodes have the explained covariance C is ``w(s)ᵀ C w(s)``, with
the weights w(s) of the nodes: a polynomial in s. On a *cell*, a part of the patch, it lies between its Bernstein
coefficients. Cells that are not proved are halved, which needs no further solve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..arrays import UNIT, Array, Index, Mask
from ..linalg import BernsteinMaps, halves, pairs, quadratic, values_to_bernstein
from ..regions import Boxes
from .grids import Grid

#: Cells are halved up to this often; one that is not proved then is so close to its floor that a smaller ρ is needed.
MOST_HALVINGS = 24

#: Where the border of a region cuts cells, no side of one is so much shorter than another: a sliver's corners may all
#: lie outside while the region passes between them.
MOST_UNEVEN = 4.0

#: Once an input is seen to be too low its patch's cells are halved this often for each column that varies, unless more
#: than this share of the patch is not proved.
HALVINGS_A_COLUMN, WORTH_LOCATING = 2, 0.5

#: A patch with more cells than this that are not proved yet, and four times as many as at first, needs a smaller ρ.
MOST_CELLS = 64


@dataclass(frozen=True, eq=False)
class Cells:
    """Bernstein coefficients of g on cells, and where the cells are: ``patch`` numbers, ``first`` and ``last`` ends.

    Ends are shares of the patch's extent in each column that varies.
    """

    coefficients: Array
    patch: Index
    first: Array
    last: Array

    def where(self, keep: Mask | Index) -> Cells:
        return Cells(self.coefficients[keep], self.patch[keep], self.first[keep], self.last[keep])

    def __len__(self) -> int:
        return len(self.patch)

    def halved(self, evenly: bool) -> Cells:
        """Each cell in two, along the column in which g varies most; ``evenly``: so that none becomes a sliver."""
        columns = self.first.shape[1]
        if not len(self):
            return self
        spread = np.stack(
            [
                np.max(np.abs(np.diff(self.coefficients, axis=1 + column)).reshape(len(self), -1), axis=1)
                for column in range(columns)
            ],
            axis=1,
        )
        if evenly:
            extent = self.last - self.first
            spread[extent * MOST_UNEVEN <= np.max(extent, axis=1, keepdims=True)] = -1.0
        along = np.argmax(spread, axis=1)
        parts = []
        for column in range(columns):
            own = self.where(np.flatnonzero(along == column))
            if not len(own):
                continue
            low, high = halves(own.coefficients, 1 + column)
            middle = 0.5 * (own.first[:, column] + own.last[:, column])
            last, first = own.last.copy(), own.first.copy()
            last[:, column], first[:, column] = middle, middle
            parts += [Cells(low, own.patch, own.first, last), Cells(high, own.patch, first, own.last)]
        return Cells(
            np.concatenate([part.coefficients for part in parts]),
            np.concatenate([part.patch for part in parts]),
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.last for part in parts]),
        )

    def corners(self) -> tuple[Array, Array]:
        """The values of g at the corners (cells × corners), and the corners as shares (cells × corners × columns)."""
        columns = self.first.shape[1]
        values, places = [], []
        for corner in product((0, -1), repeat=columns):
            place: tuple[slice | int, ...] = (slice(None), *corner)
            values.append(self.coefficients[place])
            places.append(np.where(np.array(corner) == 0, self.first, self.last))
        return np.stack(values, axis=1), np.stack(places, axis=1)


def first_cells(blocks: Array, grid: Grid) -> Cells:
    """Bernstein coefficients of ``w(s)ᵀ C w(s)`` for the matrices C of some patches (patches × nodes × nodes)."""
    return _as_cells(_mapped(_folded(blocks, grid), [maps.flat for maps in _block_maps(grid)]), grid)


def _block_maps(grid: Grid) -> list[BernsteinMaps]:
    each = zip(grid.axes, grid.parts, grid.orders, strict=True)
    return [quadratic(axis.degree, own, order) for axis, own, order in each]


def _folded(blocks: Array, grid: Grid) -> Array:
    """Entries that belong to the same products of weights, added up: a pair of nodes for each column."""
    shape = [axis.degree + 1 for axis in grid.axes]
    values = blocks.reshape(len(blocks), *shape, *shape)
    for place, axis in enumerate(grid.axes):
        # columns before this one are folded; its two axes come first, and then go where the first was
        turned = np.moveaxis(values, (1 + place, 1 + len(shape)), (0, 1))
        found = np.empty((len(pairs(axis.degree)[0]), *turned.shape[2:]))
        for own, i, j in zip(found, *pairs(axis.degree), strict=True):
            own[...] = turned[i, j]
            if i < j:
                own += turned[j, i]
        values = np.moveaxis(found, 0, 1 + place)
    return values


def offset_cells(values: Array, grid: Grid) -> Array:
    """Coefficients, to be added to those of ``first_cells``, of polynomials with given values (patches × nodes).

    They are of the degrees that variances have, and so are the nodes.
    """
    parts, patches = grid.parts, len(values)
    if not any(grid.variance):
        return np.repeat(values, int(np.prod(parts)), axis=0).reshape(-1, *([1] * len(parts)))
    values = values.reshape(patches, *(degree + 1 for degree in grid.variance))
    return _as_cells(_mapped(values, [maps.flat for maps in _offset_maps(grid)]), grid).coefficients


def _offset_maps(grid: Grid) -> list[BernsteinMaps]:
    each = zip(grid.variance, grid.parts, grid.orders, strict=True)
    return [values_to_bernstein(degree, own, order) for degree, own, order in each]


def _mapped(values: Array, maps: Sequence[Array]) -> Array:
    """Each axis of ``values`` but the first, mapped."""
    for place, one in enumerate(maps):
        values = np.moveaxis(np.tensordot(values, one, axes=(1 + place, 1)), -1, 1 + place)
    return values


def round_off(grid: Grid, entries: float) -> float:
    """How wrong coefficients, offsets among them, may be anywhere on cells, as a share of the largest variance.

    ``entries`` is the round-off of the numbers that they come from.
    """
    # sums over the entries of C, column after column; then means of neighbours, at every halving
    summed = sum(max(axis.degree + 1, order) ** 2 for axis, order in zip(grid.axes, grid.variance, strict=True)) * UNIT
    rounding = entries + summed + MOST_HALVINGS * max(grid.orders) * UNIT
    total = _amplified(_block_maps(grid), rounding)
    return total + (_amplified(_offset_maps(grid), rounding) if any(grid.variance) else entries)


def _amplified(maps: Sequence[BernsteinMaps], rounding: float) -> float:
    growth = float(np.prod([one.growth for one in maps]))
    return growth * (rounding + sum(one.rounding for one in maps))


def _as_cells(values: Array, grid: Grid) -> Cells:
    """Coefficients that are ordered by patch and, for each column, by part and number: as cells."""
    parts, patches = grid.parts, len(values)
    sizes = [order + 1 for order in grid.orders]
    split = values.reshape(patches, *(size for pair in zip(parts, sizes, strict=True) for size in pair))
    count = len(parts)
    order = [0, *(1 + 2 * i for i in range(count)), *(2 + 2 * i for i in range(count))]
    coefficients = np.ascontiguousarray(split.transpose(order)).reshape(-1, *sizes)
    corner = np.stack(np.meshgrid(*(np.arange(own) for own in parts), indexing="ij"), axis=-1).reshape(-1, count)
    first, last = corner / np.array(parts), (corner + 1) / np.array(parts)
    return Cells(
        coefficients,
        np.repeat(np.arange(patches), len(corner)),
        np.tile(first, (patches, 1)),
        np.tile(last, (patches, 1)),
    )


@dataclass(frozen=True, eq=False)
class Found:
    """What was found out about some patches: which are proved, and the worst input of each with its ``g − least``.

    What is not proved of a patch lies between ``first`` and ``last``, shares of its extent in the columns that vary.
    """

    proved: Mask
    places: Array
    spare: Array
    first: Array
    last: Array


def prove_cells(
    cells: Cells,
    least: Array,
    patches: Boxes,
    columns: Index,
    contains: Callable[[Array], Mask] | None,
    meets: Callable[[Array, Array], Mask] | None,
) -> Found:
    """Which patches have ``g(s) ≥ least`` at every input of the region in them.

    ``contains`` and ``meets`` are those of the region, or None where the patches lie wholly in it.
    """
    count, moving = len(patches), len(columns)
    spare, places = np.full(count, np.inf), 0.5 * (patches.lower + patches.upper)
    first, last = np.full((count, moving), np.inf), np.full((count, moving), -np.inf)
    tries = np.full(count, MOST_HALVINGS)
    live, most = cells, max(MOST_CELLS, 4 * len(cells) // max(count, 1))
    while len(live):
        wanted = least[live.patch]
        flat = live.coefficients.reshape(len(live), -1)
        values, shares = live.corners()
        corner_spare = values - wanted[:, None]
        # what is no number is not proved
        open_ = ~(flat.min(axis=1) >= wanted)
        if contains is not None:
            look = np.flatnonzero(open_ | (np.min(corner_spare, axis=1) < spare[live.patch]))
            points = _places(patches, live.patch[look], shares[look], columns)
            inside = contains(points.reshape(-1, points.shape[-1])).reshape(points.shape[:2])
            corner_spare[look] = np.where(inside, corner_spare[look], np.inf)
        _keep_worst(live.patch, corner_spare, shares, patches, columns, spare, places)
        if meets is not None:
            look = np.flatnonzero(open_)
            ends = _places(patches, live.patch[look], np.stack([live.first[look], live.last[look]], axis=1), columns)
            open_[look] = meets(ends[:, 0], ends[:, 1])
        # a patch with an input below is not proved: a few more halvings say where that is, if it is not everywhere
        below = live.patch[np.any(corner_spare < 0.0, axis=1)]
        volume = np.bincount(live.patch, np.prod(live.last - live.first, axis=1) * open_, minlength=count)
        few = np.where(volume > WORTH_LOCATING, 0, HALVINGS_A_COLUMN * moving)
        tries[below] = np.minimum(tries[below], few[below])
        tries[np.unique(live.patch)] -= 1
        crowded = np.bincount(live.patch[open_], minlength=count) > most
        ends_here = (tries < 0)[live.patch] | crowded[live.patch] | (flat.max(axis=1) < wanted)
        end = np.flatnonzero(open_ & ends_here)
        np.minimum.at(first, live.patch[end], live.first[end])
        np.maximum.at(last, live.patch[end], live.last[end])
        live = live.where(np.flatnonzero(open_ & ~ends_here)).halved(evenly=meets is not None)
    return Found(np.all(first > last, axis=1), places, spare, first, last)


def _places(patches: Boxes, patch: Index, shares: Array, columns: Index) -> Array:
    """Inputs at these shares (cells × places × columns) of their patches."""
    low, high = patches.lower[patch], patches.upper[patch]
    points = np.repeat(low[:, None, :], shares.shape[1], axis=1)
    points[:, :, columns] = low[:, None, columns] * (1.0 - shares) + high[:, None, columns] * shares
    return points


def _keep_worst(
    patch: Index, spare: Array, shares: Array, patches: Boxes, columns: Index, least: Array, places: Array
) -> None:
    """Note the corner with the least to spare of each patch, where it is worse than what is known."""
    corner = np.argmin(spare, axis=1)
    worst = spare[np.arange(len(patch)), corner]
    order = np.lexsort((worst, patch))
    first = order[np.unique(patch[order], return_index=True)[1]]
    better = first[worst[first] < least[patch[first]]]
    least[patch[better]] = worst[better]
    where = shares[better, corner[better]][:, None, :]
    places[patch[better]] = _places(patches, patch[better], where, columns)[:, 0]
