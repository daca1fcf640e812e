"""The floor over a whole region, proved (docs/proof.md has the theorem).

All centred Gaussian variables form a Hilbert space. What a release W explains of one, ``std(E[·|W])``, is a seminorm
that is never more than the prior's ``std(·)``, and so is what it leaves, ``std(·|W)``. With p the polynomial of a patch
and ρ the prior's bound for std(f − p) (grids.py), at every input s of the patch

    √explained(f(s)) ≤ √explained(p(s)) + ρ   and   std(f(s)|W) ≥ std(p(s)|W) − ρ.

What is explained of p(s) is a polynomial in s, bounded on cells (cells.py). Patches that are not proved are divided
into patches with a smaller ρ, unless the floor is seen to be broken: such an input is a counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..arrays import UNIT, Array, Index, Mask
from ..linalg import lebesgue
from ..promise import Design
from ..regions import Boxes
from .cells import Cells, first_cells, offset_cells, prove_cells, round_off
from .grids import MOST_COLUMNS, Grid, Interpolation, inside_boxes, nodes_of
from .knowledge import Knowledge, Told
from .roundoff import KERNEL_VALUES

#: How close p is to f, as shares of the smaller of the floor and the root of what may be explained: what is not proved
#: with the first is tried with the next.
CLOSENESS = (0.05, 0.01, 2e-3, 4e-4, 8e-5)

#: How many numbers of L⁻¹K are made at a time, and how many Bernstein coefficients.
NUMBERS_AT_ONCE, COEFFICIENTS_AT_ONCE = 20_000_000, 8_000_000

#: A patch has at most this many nodes, and a region at most this many boxes to begin with.
MOST_NODES, MOST_BOXES = 4096, 200_000

#: A proof may solve with M for as many columns as it has rows, this often; and for at least as many columns. Where
#: nothing but a proof will do, it may take this many times as much.
MOST_SOLVES, LEAST_SOLVES, INSISTENCE = 100, 500_000, 10


#: Why a part of a region is not proved: inputs fall short, the floor or the kernel is not known between inputs, too
#: many columns vary, it would take too long, or M is singular.
Reason: TypeAlias = Literal["short", "floor", "kernel", "columns", "work", "singular"]


@dataclass(frozen=True)
class Effort:
    """How hard a proof is tried: whether it may ``insist``, and take long. ``done`` is told how much is decided."""

    insist: bool = False
    done: Callable[[float], None] = lambda share: None


@dataclass(frozen=True, eq=False)
class Pieces:
    """Boxes of a region with the share of it that each is."""

    boxes: Boxes
    shares: Array

    def __len__(self) -> int:
        return len(self.shares)

    def __getitem__(self, keep: Mask | Index | slice) -> Pieces:
        return Pieces(self.boxes[keep], self.shares[keep])

    @classmethod
    def joined(cls, lists: Sequence[Pieces]) -> Pieces:
        lower = np.vstack([one.boxes.lower for one in lists])
        upper = np.vstack([one.boxes.upper for one in lists])
        return cls(Boxes(lower, upper), np.concatenate([one.shares for one in lists]))

    @property
    def is_points(self) -> bool:
        """Whether each box is a single input."""
        return not np.any(self.boxes.upper > self.boxes.lower)


@dataclass(frozen=True, eq=False)
class Looked:
    """Some patches with one grid (None: single inputs), and what was found out about them.

    ``places`` are the worst inputs that were seen in each, ``learnt`` what is explained there as a share of what may
    be, ``most`` the same from above. What is not ``proved`` is among patches that were looked at later, or left open.
    """

    patches: Boxes
    grid: Grid | None
    proved: Mask
    places: Array
    learnt: Array
    most: Array


@dataclass(frozen=True, eq=False)
class Proof:
    """What could be proved of the floor over a region.

    Guarantee: at every input of the region that lies in none of the boxes ``open`` the reader's standard deviation is
    at least the floor, round-off counted. ``short`` are inputs where it is less, or where so little is left that
    nothing was proved, with ``learnt``: what is explained there as a share of what may be. ``looked`` are the patches,
    in the order in which they were looked at. ``nodes`` says how many inputs were solved for, ``reasons`` why a part
    is open.
    """

    open: Pieces
    short: Array
    learnt: Array
    looked: tuple[Looked, ...]
    nodes: int
    reasons: tuple[Reason, ...] = ()

    @property
    def share(self) -> float:
        """How much of the region is proved."""
        # what is open may be too small to be seen in a sum
        return min(max(0.0, float(1.0 - np.sum(self.open.shares))), 1.0 - UNIT) if len(self.open) else 1.0

    def worst(self, count: int) -> Array:
        """Up to ``count`` of the inputs that were seen, the worst of all patches."""
        if not self.looked:
            return self.short[:count]
        places = np.vstack([one.places for one in self.looked])
        order = np.argsort(-np.concatenate([one.learnt for one in self.looked]), kind="stable")[:count]
        return np.asarray(np.vstack([places[order], self.short[:count]]))


def pieces_of(design: Design) -> Pieces | None:
    """The boxes of the region; None where there are too many."""
    boxes = design.region.boxes(design.inputs, MOST_BOXES)
    return None if boxes is None else Pieces(boxes, np.full(len(boxes), 1.0 / len(boxes)))


@dataclass(frozen=True, eq=False)
class _Patches:
    """Some patches of congruent boxes, with what is known at their nodes."""

    pieces: Pieces
    grid: Grid
    told: Told


@dataclass(frozen=True, eq=False)
class _Seen:
    """What was seen of some patches: whether they are proved, their worst inputs and what is learnt there.

    ``least`` and ``most`` bound the share of what may be explained that is explained there, ``learnt`` is between them.
    """

    pieces: Pieces
    proved: Mask
    places: Array
    least: Array
    learnt: Array
    most: Array


@dataclass(frozen=True, eq=False)
class _Live:
    """Pieces that are not proved yet, with the worst input of each that was seen and the most that is explained there.

    That is 0 where nothing was seen yet.
    """

    pieces: Pieces
    places: Array
    most: Array

    @classmethod
    def of(cls, pieces: Pieces) -> _Live:
        return cls(pieces, pieces.boxes.lower, np.zeros(len(pieces)))

    def __getitem__(self, keep: Index) -> _Live:
        return _Live(self.pieces[keep], self.places[keep], self.most[keep])


class Prover:
    """Proves the floor of a design over the pieces of its region, for one reader."""

    def __init__(self, design: Design, knowledge: Knowledge, effort: Effort | None = None) -> None:
        self.design, self.knowledge, self.effort = design, knowledge, effort or Effort()
        numbered, others = design.inputs.outputs.numbered, design.tolerance.kernels
        self.interpolation = Interpolation(knowledge.reader.prior, numbered, others)
        self.nodes_left = max(MOST_SOLVES * knowledge.size, LEAST_SOLVES) * (INSISTENCE if self.effort.insist else 1)
        self.nodes = 0
        self.decided = 0.0
        self.open: list[Pieces] = []
        self.short: list[tuple[Array, Array]] = []
        self.looked: list[Looked] = []
        self.reasons: list[Reason] = []

    def prove(self, pieces: Pieces) -> Proof:
        """What can be proved of ``pieces``."""
        live = [_Live.of(pieces)]
        if self.knowledge.is_singular:
            self._leave(pieces, "singular")
            live = []
        for level, closeness in enumerate(CLOSENESS):
            last = level == len(CLOSENESS) - 1
            live = [
                kept
                for group in _congruent(live, self.interpolation.numbered)
                for kept in (
                    self._at_points(group.pieces) if group.pieces.is_points else self._at(group, closeness, last)
                )
            ]
        nothing = np.zeros((0, self.design.inputs.dimension))
        return Proof(
            Pieces.joined([pieces[:0], *self.open]),
            np.vstack([nothing, *(places for places, _ in self.short)]),
            np.concatenate([np.zeros(0), *(learnt for _, learnt in self.short)]),
            tuple(self.looked),
            self.nodes,
            tuple(dict.fromkeys(self.reasons)),
        )

    def _leave(self, pieces: Pieces, reason: Reason) -> None:
        self.open.append(pieces)
        self.reasons.append(reason)

    def _at_points(self, points: Pieces) -> list[_Live]:
        """Boxes of one input each: nothing lies between."""
        places = points.boxes.lower
        kept, learnt = self.knowledge.floor_ratios(places) >= 1.0, self.knowledge.learnt(places)
        self.looked.append(Looked(points.boxes, None, kept, places, learnt, learnt))
        failed = np.flatnonzero(~kept)
        if failed.size:
            self._leave(points[failed], "short")
            self.short.append((places[failed], learnt[failed]))
        return []

    def _at(self, live: _Live, closeness: float, last: bool) -> list[_Live]:
        """Proves what can be proved of congruent boxes with a polynomial this close to f; what is to be tried again."""
        group = live.pieces
        scale = self._scale(group.boxes)
        grid = None if scale is None else self.interpolation.grid(group.boxes, closeness * scale, self.knowledge.size)
        if scale is None or grid is None or grid.patch_size > MOST_NODES:
            self._leave(group, "floor" if scale is None else self._no_grid(group.boxes) if grid is None else "columns")
            return []
        group, grid = self._small_enough(group, grid, closeness * scale)
        wanted = len(group) * grid.size
        if wanted > self.nodes_left:
            self._leave(live.pieces, "work")
            self.short.append((live.places[live.most > 0.0], live.most[live.most > 0.0]))
            return []
        self.nodes += wanted
        self.nodes_left -= wanted
        again: list[_Live] = []
        for patches in self._patches(group, grid):
            seen = self._look(patches)
            self.looked.append(Looked(seen.pieces.boxes, grid, seen.proved, seen.places, seen.learnt, seen.most))
            ends = ~seen.proved & ((seen.least > 1.0) | last)
            self.decided += float(np.sum(seen.pieces.shares[seen.proved | ends]))
            self.effort.done(self.decided)
            if np.any(ends):
                end = np.flatnonzero(ends)
                self._leave(seen.pieces[end], "short")
                # a polynomial that is not close yet says where, but not how far
                places, told = seen.places[end], seen.most[end]
                broken = np.flatnonzero(seen.least[end] > 1.0)
                if broken.size:
                    told[broken] = self.knowledge.learnt(places[broken])
                self.short.append((places, told))
            rest = np.flatnonzero(~seen.proved & ~ends)
            if rest.size:
                again.append(_Live(seen.pieces[rest], seen.places[rest], seen.most[rest]))
        return again

    def _no_grid(self, boxes: Boxes) -> Reason:
        """Why there is no grid for ``boxes``."""
        columns = np.flatnonzero(np.any(boxes.upper > boxes.lower, axis=0))
        if self.interpolation.variance_degrees(boxes, columns) is None:
            return "kernel"
        return "columns" if columns.size > MOST_COLUMNS else "work"

    def _scale(self, boxes: Boxes) -> float | None:
        """The least of the floors and the roots of what may be explained; None where the floor is not known between."""
        if not self.design.tolerance.known_between or len(self.knowledge.reader.past.about(boxes.lower[:1])):
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
            halves = Boxes(np.vstack([group.boxes.lower, lower]), np.vstack([upper, group.boxes.upper]))
            group = Pieces(halves, np.tile(group.shares / 2.0, 2))
            smaller = self.interpolation.grid(group.boxes, closeness, self.knowledge.size)
            assert smaller is not None
            grid = smaller
        return group, grid

    def _patches(self, group: Pieces, grid: Grid) -> Iterator[_Patches]:
        """The patches of the boxes, as many at a time as fit."""
        members = grid.members()
        cells = grid.patches * int(np.prod([4 * (2 * axis.degree + 1) for axis in grid.axes]))
        step = min(NUMBERS_AT_ONCE // (grid.size * self.knowledge.size), COEFFICIENTS_AT_ONCE // cells)
        for start in range(0, len(group), max(1, step)):
            part = group[start : start + max(1, step)]
            told = self.knowledge.explained(grid.nodes(part.boxes), members)
            shares = np.repeat(part.shares / grid.patches, grid.patches)
            yield _Patches(Pieces(grid.split(part.boxes), shares), grid, told)

    def _look(self, patches: _Patches) -> _Seen:
        """What is proved of some patches; those that the region does not reach into count as nothing."""
        pieces, grid, told, region = patches.pieces, patches.grid, patches.told, self.design.region
        whole = bool(np.all(region.holds(pieces.boxes.lower, pieces.boxes.upper)))
        if not whole:
            met = np.flatnonzero(region.meets(pieces.boxes.lower, pieces.boxes.upper))
            pieces, told = pieces[met], told._replace(blocks=told.blocks[met])
        if not len(pieces):
            nothing = np.zeros(0)
            return _Seen(pieces, np.zeros(0, dtype=np.bool_), pieces.boxes.lower, nothing, nothing, nothing)
        gap = self._gap(pieces.boxes, grid, told)
        shape = (None, None) if whole else (region.contains, region.meets)
        found = prove_cells(gap.cells, gap.least, pieces.boxes, grid.columns, *shape)
        seen = [gap.explained(found.spare + gap.least, wrong) / gap.budget for wrong in (-gap.error, 0.0, gap.error)]
        return _Seen(pieces, found.proved, found.places, seen[0], seen[1], seen[2])

    def _gap(self, boxes: Boxes, grid: Grid, told: Told) -> _Gap:
        """The polynomial that must be large enough on each patch."""
        unknown, tolerance = self.knowledge.unknown, self.design.tolerance
        degrees = self.interpolation.variance_degrees(boxes, grid.columns)
        assert degrees is not None
        points = inside_boxes(boxes, grid.columns, nodes_of(degrees))
        flat = points.reshape(-1, points.shape[-1])
        budget = tolerance.budget(unknown, flat).reshape(points.shape[:2])
        rest = unknown.variance(flat).reshape(points.shape[:2]) - budget
        by_rest = bool(np.min(rest) < np.min(budget))
        blocks = told.blocks if told.is_left else -told.blocks
        if by_rest != told.is_left:
            prior = self._prior_blocks(boxes, grid)
            blocks = blocks + (prior if by_rest else -prior)
        cells = first_cells(blocks, grid)
        asked = offset_cells(rest if by_rest else budget, degrees, grid)
        aim = np.sqrt(np.maximum(asked.reshape(len(boxes), -1).max(axis=1), 0.0))
        size = float(np.max(budget + rest)) * float(np.prod([lebesgue(degree) for degree in degrees]))
        error, wrong = grid.error + grid.misplaced, grid.amplification * (told.slack + 2.0 * grid.misplaced)
        rounding = round_off(grid, told.rounding + KERNEL_VALUES * UNIT, degrees) * size
        if by_rest:
            # the explained variance of p is at most its variance
            lost = 2.0 * wrong * (np.sqrt(size) + error) + wrong**2
            least = 2.0 * error * aim + error**2 + lost + rounding
        else:
            error += wrong
            least = 2.0 * error * aim + rounding
        more = -asked if by_rest else asked
        middle = points.shape[1] // 2
        return _Gap(
            Cells(cells.coefficients + more, cells.patch, cells.first, cells.last),
            least,
            error,
            by_rest,
            budget[:, middle],
            rest[:, middle],
        )

    def _prior_blocks(self, boxes: Boxes, grid: Grid) -> Array:
        """The prior covariance of the nodes of each patch; a stationary kernel has the same for all."""
        shares = grid.patch_nodes()
        stationary = self.interpolation.is_stationary(boxes, grid.columns)
        nodes = inside_boxes(boxes[:1] if stationary else boxes, grid.columns, shares)
        return np.stack([self.knowledge.unknown.covariance(own) for own in nodes])


@dataclass(frozen=True, eq=False)
class _Gap:
    """What must be large enough on each patch: a polynomial g, at least ``least`` on ``cells``.

    With b(s) what may be explained and τ(s) the floor, ``b(s) − explained(p(s)) ≥ 2ρ√b`` is enough, and so is
    ``Var(p(s)|W) − τ(s)² ≥ 2ρτ + ρ²`` (``by_rest``), the better one where more than half of the variance may be learnt.
    ``error`` is ρ with what round-off adds to it, ``budget`` and ``rest`` are b and τ² in the middle.
    """

    cells: Cells
    least: Array
    error: float
    by_rest: bool
    budget: Array
    rest: Array

    def explained(self, value: Array, error: float) -> Array:
        """What is explained of f where g has this ``value``, if p is wrong by ``error``."""
        if self.by_rest:
            left = np.sqrt(np.maximum(value + self.rest, 0.0))
            return np.asarray(self.budget + self.rest - np.maximum(left - error, 0.0) ** 2)
        told = np.sqrt(np.maximum(self.budget - value, 0.0))
        return np.asarray(np.maximum(told + error, 0.0) ** 2)


def _congruent(live: Sequence[_Live], numbered: bool) -> Iterator[_Live]:
    """Pieces of the same extents, about the same output, together."""
    if not live:
        return
    pieces = Pieces.joined([one.pieces for one in live])
    every = _Live(pieces, np.vstack([one.places for one in live]), np.concatenate([one.most for one in live]))
    boxes = pieces.boxes
    extents = boxes.upper - boxes.lower
    scale = np.maximum(np.max(np.abs(np.vstack([boxes.lower, boxes.upper])), axis=0), 1e-300)
    # extents that differ by a few u of their distance from 0, as MISPLACED counts it
    kinds = np.round(extents / scale, 15)
    if numbered:
        kinds[:, -1] = boxes.lower[:, -1]
    _, which = np.unique(kinds, axis=0, return_inverse=True)
    for kind in range(int(np.max(which)) + 1 if len(which) else 0):
        yield every[np.flatnonzero(which == kind)]
