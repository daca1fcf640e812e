"""The floor over a whole region, proved (docs/proof.md has the theorem).

All centred Gaussian variables form a Hilbert space. What a release W explains of one, ``std(E[·|W])``, is a seminorm that
is never more than the prior's ``std(·)``, and so is what it leaves, ``std(·|W)``. With p the polynomial of a patch and ρ
the prior's bound for std(f − p) (grids.py), at every input s of the patch

    √explained(f(s)) ≤ √explained(p(s)) + ρ   and   std(f(s)|W) ≥ std(p(s)|W) − ρ.

What is explained of p(s) is a polynomial in s, bounded on cells (cells.py). Patches that are not proved are divided into
patches with a smaller ρ, unless the floor is seen to be broken: such an input is a counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import UNIT, Array, Index, Mask
from ..linalg import interpolation_nodes
from ..promise import Design
from .cells import Cells, Found, first_cells, growth, polynomial_cells, prove_cells
from .grids import Boxed, Grid, Interpolation, inside_boxes
from .knowledge import Knowledge

#: How close p is to f, as shares of the smaller of the floor and the root of what may be explained: what is not proved
#: with the first is tried with the next.
CLOSENESS = (0.05, 0.01, 2e-3, 4e-4, 8e-5)

#: How many numbers of L⁻¹K are made at a time, and how many Bernstein coefficients.
NUMBERS_AT_ONCE, COEFFICIENTS_AT_ONCE = 20_000_000, 8_000_000

#: A patch has at most this many nodes, and a region at most this many boxes to begin with.
MOST_NODES, MOST_BOXES = 4096, 200_000

#: A proof may solve with M for as many columns as it has rows, this often; and for at least as many columns.
MOST_SOLVES, LEAST_SOLVES = 100, 200_000


@dataclass(frozen=True, eq=False)
class Pieces:
    """Boxes of a region with the share of it that each is."""

    boxes: Boxed
    shares: Array

    def __len__(self) -> int:
        return len(self.shares)

    def where(self, keep: Mask | Index) -> Pieces:
        return Pieces(self.boxes.where(keep), self.shares[keep])

    def joined(self, other: Pieces) -> Pieces:
        lower = np.vstack([self.boxes.lower, other.boxes.lower])
        upper = np.vstack([self.boxes.upper, other.boxes.upper])
        return Pieces(Boxed(lower, upper), np.concatenate([self.shares, other.shares]))


@dataclass(frozen=True, eq=False)
class Proof:
    """What could be proved of the floor over a region.

    Guarantee: at every input of the region that lies in none of the boxes ``open`` the reader's standard deviation is at
    least the floor. ``short`` are inputs where it seems to be less, or where so little is left that nothing was proved,
    with ``learnt``: what is explained there, from above, as a share of what may be. ``patches`` and ``nodes`` say how
    much was looked at.
    """

    open: Pieces
    short: Array
    learnt: Array
    places: Array
    patches: Boxed
    nodes: int
    reasons: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """How much of the region is proved."""
        return float(1.0 - np.sum(self.open.shares)) if len(self.open) else 1.0


def pieces_of(design: Design) -> Pieces | None:
    """The boxes of the region; None where there are too many."""
    lower, upper = design.region.boxes(design.inputs)
    if len(lower) > MOST_BOXES:
        return None
    return Pieces(Boxed(lower, upper), np.full(len(lower), 1.0 / len(lower)))


@dataclass(frozen=True, eq=False)
class _Patches:
    """Some patches of congruent boxes, with what is known at their nodes."""

    boxes: Boxed
    shares: Array
    grid: Grid
    blocks: Array
    slack: float
    rounding: float


class Prover:
    """Proves the floor of a design over the pieces of its region, for one reader."""

    def __init__(self, design: Design, knowledge: Knowledge) -> None:
        self.design, self.knowledge = design, knowledge
        self.interpolation = Interpolation(knowledge.reader.prior, design.inputs.outputs.numbered)
        self.solves = 0
        self.most_solves = max(MOST_SOLVES * knowledge.size, LEAST_SOLVES)

    def prove(self, pieces: Pieces) -> Proof:
        """What can be proved of ``pieces``."""
        dimension = self.design.inputs.dimension
        empty = Pieces(Boxed(np.zeros((0, dimension)), np.zeros((0, dimension))), np.zeros(0))
        open_, short, learnt, places, looked, reasons = empty, [], [], [], [], []
        live = [pieces]
        for level, closeness in enumerate(CLOSENESS):
            coming: list[Pieces] = []
            for group in _congruent(live, self.interpolation.numbered):
                if not np.any(group.boxes.upper > group.boxes.lower):
                    ratios = self.knowledge.floor_ratios(group.boxes.lower)
                    failed = np.flatnonzero(ratios < 1.0)
                    places.append(group.boxes.lower)
                    open_ = open_.joined(group.where(failed))
                    short.append(group.boxes.lower[failed])
                    learnt.append(self.knowledge.learnt(group.boxes.lower[failed]))
                    continue
                scale = self._scale(group.boxes)
                grid = None if scale is None else self.interpolation.grid(group.boxes, closeness * scale)
                if grid is None or grid.patch_size > MOST_NODES:
                    open_, reasons = open_.joined(group), [*reasons, "unknown" if grid is None else "columns"]
                    continue
                group, grid = self._small_enough(group, grid, closeness * scale)
                wanted = len(group) * grid.size
                if self.solves + wanted > self.most_solves:
                    open_, reasons = open_.joined(group), [*reasons, "work"]
                    continue
                self.solves += wanted
                for part in self._parts(group, grid):
                    found, ratios, patches = self._looked_at(part)
                    looked.append(patches.boxes)
                    places.append(found.places)
                    failed = np.flatnonzero(~found.proved)
                    beyond = ratios.lower[failed] > 1.0
                    last = level == len(CLOSENESS) - 1
                    keep = failed[~beyond] if not last else failed[:0]
                    if keep.size:
                        coming.append(patches.where(keep))
                    end = failed if last else failed[beyond]
                    if end.size:
                        open_ = open_.joined(patches.where(end))
                        short.append(found.places[end])
                        learnt.append(ratios.upper[end])
            live = coming
        nothing = np.zeros((0, dimension))
        every = Boxed(
            np.vstack([nothing, *(one.lower for one in looked)]), np.vstack([nothing, *(one.upper for one in looked)])
        )
        return Proof(
            open_,
            np.vstack([nothing, *short]),
            np.concatenate([np.zeros(0), *learnt]),
            np.vstack([nothing, *places]),
            every,
            self.solves,
            tuple(dict.fromkeys(reasons)),
        )

    def _scale(self, boxes: Boxed) -> float | None:
        """The least of the floors and the roots of what may be explained; None where the floor is not known between."""
        if not self.design.tolerance.known_between:
            return None
        points = np.unique(np.vstack([boxes.lower[:512], boxes.upper[:512]]), axis=0)
        budget = self.design.tolerance.budget(self.knowledge.unknown, points)
        rest = self.knowledge.unknown.variance(points) - budget
        return float(np.sqrt(max(min(float(np.min(budget)), float(np.min(rest))), np.finfo(float).tiny)))

    def _small_enough(self, group: Pieces, grid: Grid, closeness: float) -> tuple[Pieces, Grid]:
        """Boxes whose nodes can be worked on together."""
        most = max(NUMBERS_AT_ONCE // self.knowledge.size, grid.patch_size)
        while grid.size > most:
            axis = int(np.argmax([one.count for one in grid.axes]))
            if grid.axes[axis].count == 1:
                break
            column = int(grid.columns[axis])
            middle = 0.5 * (group.boxes.lower[:, column] + group.boxes.upper[:, column])
            upper, lower = group.boxes.upper.copy(), group.boxes.lower.copy()
            upper[:, column] = lower[:, column] = middle
            halves = Boxed(np.vstack([group.boxes.lower, lower]), np.vstack([upper, group.boxes.upper]))
            group = Pieces(halves, np.tile(group.shares / 2.0, 2))
            smaller = self.interpolation.grid(group.boxes, closeness)
            assert smaller is not None
            grid = smaller
        return group, grid

    def _parts(self, group: Pieces, grid: Grid) -> Iterator[_Patches]:
        """The patches of the boxes, as many at a time as fit."""
        members = grid.members()
        cells = grid.patches * int(np.prod([4 * (2 * axis.degree + 1) for axis in grid.axes]))
        most = min(NUMBERS_AT_ONCE // (grid.size * self.knowledge.size), COEFFICIENTS_AT_ONCE // max(cells, 1))
        step = max(1, most)
        for start in range(0, len(group), step):
            part = group.where(np.arange(start, min(len(group), start + step)))
            told = self.knowledge.explained(grid.nodes(part.boxes), members)
            patches = grid.split(part.boxes)
            yield _Patches(
                patches,
                np.repeat(part.shares / grid.patches, grid.patches),
                grid,
                told.blocks,
                told.slack,
                told.rounding,
            )

    def _looked_at(self, patches: _Patches) -> tuple[Found, _Ratios, Pieces]:
        """What is proved of some patches; those that the region does not reach into count as nothing."""
        pieces, grid, blocks = Pieces(patches.boxes, patches.shares), patches.grid, patches.blocks
        region = self.design.region
        within = region.contains_boxes(patches.boxes.lower, patches.boxes.upper)
        if not np.all(within):
            met = region.meets(patches.boxes.lower, patches.boxes.upper)
            keep = np.flatnonzero(met)
            pieces, blocks, within = pieces.where(keep), blocks[keep], within[keep]
        error = grid.error + grid.amplification * patches.slack
        by_rest, cells, aim, budget, rest, size = self._gaps(pieces.boxes, grid, blocks)
        least = 2.0 * error * aim + error**2 + growth(grid) * patches.rounding * size
        inside = bool(np.all(within))
        found = prove_cells(
            cells,
            least,
            pieces.boxes,
            grid.columns,
            None if inside else region.contains,
            None if inside else region.meets,
        )
        value = found.spare + least
        if by_rest:
            left = np.sqrt(np.maximum(value + rest, 0.0))
            upper = (budget + rest - np.maximum(left - error, 0.0) ** 2) / budget
            lower = (budget + rest - (left + error) ** 2) / budget
        else:
            told = np.sqrt(np.maximum(budget - value, 0.0))
            upper, lower = (told + error) ** 2 / budget, np.maximum(told - error, 0.0) ** 2 / budget
        return found, _Ratios(lower, upper), pieces

    def _gaps(
        self, boxes: Boxed, grid: Grid, blocks: Array
    ) -> tuple[bool, Cells, Array, Array, Array, float]:
        """The polynomial that must be large enough on each patch, and the numbers that say how large."""
        unknown, tolerance = self.knowledge.unknown, self.design.tolerance
        kernels = (self.knowledge.reader.prior.kernel, *tolerance.kernels)
        degree = max(self.interpolation.variance_degree(kernel, boxes, grid.columns) for kernel in kernels)
        centres = 0.5 * (boxes.lower + boxes.upper)
        if degree == 0:
            points = centres[:, None, :]
        else:
            fine = np.stack(
                np.meshgrid(*((interpolation_nodes(2 * axis.degree) + 1.0) / 2.0 for axis in grid.axes), indexing="ij"),
                axis=-1,
            ).reshape(-1, len(grid.axes))
            points = inside_boxes(boxes, grid.columns, fine)
        flat = points.reshape(-1, points.shape[-1])
        budget = tolerance.budget(unknown, flat).reshape(points.shape[:2])
        rest = unknown.variance(flat).reshape(points.shape[:2]) - budget
        by_rest = bool(np.min(rest) < np.min(budget))
        size = float(np.max(budget) + np.max(rest))
        cells = first_cells(self._prior_blocks(boxes, grid) - blocks if by_rest else -blocks, grid)
        offset = -rest if by_rest else budget
        if degree == 0:
            shift = offset[cells.patch].reshape(-1, *([1] * (cells.coefficients.ndim - 1)))
            cells = Cells(cells.coefficients + shift, cells.patch, cells.first, cells.last)
        else:
            more = polynomial_cells(offset, grid)
            cells = Cells(cells.coefficients + more.coefficients, cells.patch, cells.first, cells.last)
        aim = np.sqrt(np.max(rest if by_rest else budget, axis=1))
        middle = 0 if degree == 0 else points.shape[1] // 2
        return by_rest, cells, aim, budget[:, middle], rest[:, middle], size

    def _prior_blocks(self, boxes: Boxed, grid: Grid) -> Array:
        """The prior covariance of the nodes of each patch; a stationary kernel has the same for all."""
        shares = grid.patch_nodes()
        stationary = self.interpolation.is_stationary(boxes, grid.columns)
        nodes = inside_boxes(boxes.where(np.arange(1)) if stationary else boxes, grid.columns, shares)
        return np.stack([self.knowledge.unknown.covariance(own) for own in nodes])


@dataclass(frozen=True, eq=False)
class _Ratios:
    """What is explained as a share of what may be, at the worst input found of each patch, from both sides."""

    lower: Array
    upper: Array


def _congruent(pieces: Sequence[Pieces], numbered: bool) -> Iterator[Pieces]:
    """Pieces of the same extents, about the same output, together."""
    if not pieces:
        return
    every = pieces[0]
    for one in pieces[1:]:
        every = every.joined(one)
    extents = every.boxes.upper - every.boxes.lower
    scale = np.maximum(np.max(np.abs(np.vstack([every.boxes.lower, every.boxes.upper])), axis=0), 1e-300)
    kinds = np.round(extents / scale, 12)
    if numbered:
        kinds[:, -1] = every.boxes.lower[:, -1]
    _, which = np.unique(kinds, axis=0, return_inverse=True)
    for kind in range(int(np.max(which)) + 1 if len(which) else 0):
        yield every.where(np.flatnonzero(which == kind))
