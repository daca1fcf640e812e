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
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from ..arrays import UNIT, Array, Index, Mask
from ..linalg import lebesgue
from ..promise import Design
from ..regions import Boxes
from .cells import Cells, first_cells, offset_cells, prove_cells, round_off
from .grids import MOST_COLUMNS, Grid, Interpolation, inside_boxes, nodes_of, solve_work
from .knowledge import Knowledge, Told
from .roundoff import KERNEL_VALUES, MISPLACED

#: How close p is to f, as shares of the smaller of the floor and the root of what may be explained: what is not proved
#: with the first is tried with the next.
CLOSENESS = (0.3, 0.05, 0.01, 2e-3, 4e-4, 8e-5)

#: Where a node tells this many times what may be told, its patch is not looked at again; else for its worst input.
FAR_TOO_MUCH = 1.1

#: Parts of a patch that are not proved are taken no smaller than this share of it in each column.
LEAST_PART = 1.0 / 16.0

#: What is told may be wrong by this share of how close p is to f, where that saves work.
SPARE = 0.02

#: How many numbers of L⁻¹K, of blocks of covariances or of coefficients are made at a time: 32 megabytes.
NUMBERS_AT_ONCE = 4_000_000

#: Prior covariances of about this many nodes are made at once.
TOGETHER = 128

#: A patch has at most this many nodes, and a region at most this many boxes to begin with.
MOST_NODES, MOST_BOXES = 4096, 200_000

#: A proof may take as long as solving with M for as many columns as it has rows, this often; and at least this long, in
#: nanoseconds of one core. Where nothing but a proof will do, it may take this many times as much;
#: where one was tried in vain before, this share of it.
MOST_SOLVES, LEAST_WORK, INSISTENCE, QUICK = {"rows": 180, "sums": 20}, 3e9, 10, 0.05

#: From which work on another grid is worth thinking about, in nanoseconds.
WORTH_ANOTHER_GRID = 1e7


#: Why a part of a region is not proved: inputs fall short, the floor or the kernel is not known between inputs, too
#: many columns vary, it would take too long, or M is singular.
Reason: TypeAlias = Literal["short", "floor", "kernel", "columns", "work", "singular"]


@dataclass(frozen=True)
class Effort:
    """How hard a proof is tried: whether it may ``insist``, and take long, or must be ``quick``.

    ``done`` is told how much is decided.
    """

    insist: bool = False
    quick: bool = False
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
    be. What is not ``proved``, or a part of it, is among patches that were looked at later, or left open.
    """

    patches: Boxes
    grid: Grid | None
    proved: Mask
    places: Array
    learnt: Array


@dataclass(frozen=True, eq=False)
class Proof:
    """What could be proved of the floor over a region.

    Guarantee: at every input of the region that lies in none of the boxes ``open`` the reader's standard deviation is
    at least the floor, round-off counted. ``short`` are inputs where it is less, or where so little is left that
    nothing was proved, with ``learnt``: what is explained there as a share of what may be. ``looked`` are the patches,
    in the order in which they were looked at. ``nodes`` says how many inputs were solved for, ``close`` are the boxes
    that the first polynomials did not prove, and ``reasons`` say why a part is open.
    """

    open: Pieces
    short: Array
    learnt: Array
    looked: tuple[Looked, ...]
    nodes: int
    close: Pieces
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
class _Seen:
    """What was seen of some patches: whether they are proved, their worst inputs and what is learnt there.

    ``least`` bounds the share of what may be explained that is explained there from below, ``learnt`` is about it.
    What is not proved lies between ``first`` and ``last``, shares of a patch's extent.
    """

    live: _Live
    proved: Mask
    least: Array
    learnt: Array
    first: Array
    last: Array


@dataclass(frozen=True, eq=False)
class _Live:
    """Pieces that are not proved yet, the numbers of the boxes that they are parts of, and what was seen of them.

    ``places`` are the worst inputs, and ``most`` the most that is explained there: 0 where nothing was seen yet.
    """

    pieces: Pieces
    numbers: Index
    places: Array
    most: Array

    @classmethod
    def of(cls, pieces: Pieces) -> _Live:
        return cls(pieces, np.arange(len(pieces)), pieces.boxes.lower, np.zeros(len(pieces)))

    @classmethod
    def joined(cls, lists: Sequence[_Live]) -> _Live:
        return cls(
            Pieces.joined([one.pieces for one in lists]),
            np.concatenate([one.numbers for one in lists]),
            np.vstack([one.places for one in lists]),
            np.concatenate([one.most for one in lists]),
        )

    def __getitem__(self, keep: Mask | Index | slice) -> _Live:
        return _Live(self.pieces[keep], self.numbers[keep], self.places[keep], self.most[keep])

    def __len__(self) -> int:
        return len(self.pieces)

    def halved(self, column: int) -> _Live:
        """Each piece in two."""
        lower, upper = self.pieces.boxes.lower, self.pieces.boxes.upper
        middle = 0.5 * (lower[:, column] + upper[:, column])
        inner_upper, inner_lower = upper.copy(), lower.copy()
        inner_upper[:, column] = inner_lower[:, column] = middle
        both = _Live.joined([self, self])
        boxes = Boxes(np.vstack([lower, inner_lower]), np.vstack([inner_upper, upper]))
        return replace(both, pieces=Pieces(boxes, both.pieces.shares / 2.0))

    def split(self, grid: Grid, patches: slice) -> _Live:
        """These patches of each piece."""
        count = len(range(*patches.indices(grid.patches)))
        pieces = Pieces(grid.split(self.pieces.boxes, patches), np.repeat(self.pieces.shares / grid.patches, count))
        numbers, most = np.repeat(self.numbers, count), np.repeat(self.most, count)
        return _Live(pieces, numbers, np.repeat(self.places, count, axis=0), most)

    def within(self, columns: Index, first: Array, last: Array) -> _Live:
        """The part of each piece between these shares of its extent, or a little more: sizes are halves of halves."""
        sizes = np.clip(2.0 ** np.ceil(np.log2(np.maximum(last - first, LEAST_PART))), 0.0, 1.0)
        start = np.clip(first, 0.0, 1.0 - sizes)
        lower, upper = self.pieces.boxes.lower.copy(), self.pieces.boxes.upper.copy()
        low, high = lower[:, columns], upper[:, columns]
        lower[:, columns] = low * (1.0 - start) + high * start
        upper[:, columns] = low * (1.0 - start - sizes) + high * (start + sizes)
        shares = self.pieces.shares * np.prod(sizes, axis=1)
        return replace(self, pieces=Pieces(Boxes(lower, upper), shares))


@dataclass(frozen=True, eq=False)
class _Task:
    """Pieces and the grid for them; without a grid they are single inputs."""

    live: _Live
    grid: Grid | None
    closeness: float


class Prover:
    """Proves the floor of a design over the pieces of its region, for one reader."""

    def __init__(self, design: Design, knowledge: Knowledge, effort: Effort | None = None) -> None:
        self.design, self.knowledge, self.effort = design, knowledge, effort or Effort()
        numbered, others = design.inputs.outputs.numbered, design.tolerance.kernels
        self.interpolation = Interpolation(knowledge.reader.prior, numbered, others)
        most = MOST_SOLVES["sums" if design.noise.compressed else "rows"] * knowledge.size
        self.work_left = max(most * solve_work(knowledge.size), LEAST_WORK)
        self.work_left *= INSISTENCE if self.effort.insist else QUICK if self.effort.quick else 1.0
        self.nodes = 0
        self.decided = 0.0
        self.open: list[Pieces] = []
        self.short: list[tuple[Array, Array]] = []
        self.looked: list[Looked] = []
        self.reasons: list[Reason] = []

    def prove(self, pieces: Pieces, levels: Sequence[float] = CLOSENESS) -> Proof:
        """What can be proved of ``pieces`` with polynomials that are ever closer to f."""
        pieces = self._between_rows(pieces)
        live = _Live.of(pieces)
        self.broken = np.zeros(len(pieces), dtype=np.bool_)
        if self.knowledge.is_singular:
            self._leave(pieces, "singular")
            live = live[:0]
        for level, closeness in enumerate(levels):
            tasks = []
            for task in self._tasks(live, closeness):
                if isinstance(task, _Task):
                    tasks.append(task)
                else:
                    self._leave(task[0].pieces, task[1])
            if level:
                tasks = self._fewer(tasks, pieces, closeness)
            left = [live[:0]]
            for task in tasks:
                left += self._at(task, last=closeness == levels[-1])
            live = _Live.joined(left)
            if level == 0:
                close = Pieces.joined([live.pieces, *self.open])
        nothing = np.zeros((0, self.design.inputs.dimension))
        return Proof(
            Pieces.joined([pieces[:0], *self.open]),
            np.vstack([nothing, *(places for places, _ in self.short)]),
            np.concatenate([np.zeros(0), *(learnt for _, learnt in self.short)]),
            tuple(self.looked),
            self.nodes,
            close,
            tuple(dict.fromkeys(self.reasons)),
        )

    def _leave(self, pieces: Pieces, reason: Reason) -> None:
        self.open.append(pieces)
        self.reasons.append(reason)

    def _between_rows(self, pieces: Pieces) -> Pieces:
        """Pieces that hold no row of the data inside, where f is rough and there is one column."""
        rough = self.design.inputs.dimension == 1 and not self.knowledge.is_singular
        rough = rough and len(pieces) > 0 and not self.interpolation.is_smooth(pieces.boxes)
        self.cut = rough and np.isfinite(self.knowledge.most_told(1.0))
        if not self.cut:
            return pieces
        rows, found = np.unique(self.design.inputs.values[:, 0]), [pieces[:0]]
        for (low,), (high,), share in zip(pieces.boxes.lower, pieces.boxes.upper, pieces.shares, strict=True):
            ends = np.concatenate([[low], rows[(rows > low) & (rows < high)], [high]])[:, None]
            sizes = np.ones(1) if low == high else np.diff(ends[:, 0]) / (high - low)
            found.append(Pieces(Boxes(ends[:-1], ends[1:]), share * sizes))
        return Pieces.joined(found)

    def _tasks(self, live: _Live, closeness: float) -> Iterator[_Task | tuple[_Live, Reason]]:
        """Pieces of one kind together, with their grids, or why they have none."""
        if self.cut:
            rest = [live[:0]]
            for group in _of_about_one_size(live):
                grid = self._grid_between_rows(group.pieces.boxes, closeness)
                if grid is None:
                    rest.append(group)
                else:
                    yield _Task(group, grid, 0.0)
            live = _Live.joined(rest)
        for group in _congruent(live, self.interpolation.numbered):
            boxes = group.pieces.boxes
            scale = None if group.pieces.is_points else self._scale(boxes)
            if group.pieces.is_points:
                yield _Task(group, None, 0.0)
            elif scale is None:
                yield group, "floor"
            else:
                grid = self.interpolation.grid(boxes, closeness * scale, self.knowledge.size)
                if grid is None or grid.patch_size > MOST_NODES:
                    yield group, self._no_grid(boxes) if grid is None else "columns"
                else:
                    yield _Task(group, grid, closeness * scale)

    def _grid_between_rows(self, boxes: Boxes, closeness: float) -> Grid | None:
        scale = self._scale(boxes) if np.any(boxes.upper > boxes.lower) else None
        if scale is None:
            return None
        # here p must be close to f in what is explained alone, also where little is to be left
        variance = float(np.max(self.knowledge.unknown.variance(boxes.lower)))
        wanted = closeness * scale * min(1.0, scale / np.sqrt(variance))
        rows = self.design.inputs.values
        return self.interpolation.grid_between_rows(boxes, wanted, rows, self.knowledge.most_told)

    def _fewer(self, tasks: list[_Task], whole: Pieces, closeness: float) -> list[_Task]:
        """The same, with whole boxes where these take less work than what is left of them."""
        rows, cost = self.knowledge.size, np.zeros(len(whole))
        for task in tasks:
            np.add.at(cost, task.live.numbers, 0.0 if task.grid is None else task.grid.work(rows))
        # what is left of a box with a counterexample only serves to find others
        costly = np.flatnonzero((cost > WORTH_ANOTHER_GRID) & ~self.broken)
        taken, found = np.zeros(len(whole), dtype=np.bool_), []
        for other in self._tasks(_Live.of(whole)[costly], closeness):
            if isinstance(other, _Task) and other.grid is not None:
                cheaper = np.flatnonzero(other.grid.work(rows) < cost[other.live.numbers])
                if cheaper.size:
                    found.append(replace(other, live=other.live[cheaper]))
                    taken[found[-1].live.numbers] = True
        rest = [replace(task, live=task.live[~taken[task.live.numbers]]) for task in tasks]
        return [*found, *(task for task in rest if len(task.live))]

    def _at_points(self, live: _Live) -> None:
        """Boxes of one input each: nothing lies between."""
        points = live.pieces[np.flatnonzero(self.design.region.contains(live.pieces.boxes.lower))]
        places = points.boxes.lower
        kept, learnt = self.knowledge.floor_ratios(places) >= 1.0, self.knowledge.learnt(places)
        self.looked.append(Looked(points.boxes, None, kept, places, learnt))
        failed = np.flatnonzero(~kept)
        if failed.size:
            self._leave(points[failed], "short")
            self.short.append((places[failed], learnt[failed]))

    def _at(self, task: _Task, last: bool) -> list[_Live]:
        """Proves what can be proved of congruent boxes with a polynomial this close to f; what is to be tried again."""
        if task.grid is None:
            self._at_points(task.live)
            return []
        live, grid = self._small_enough(task.live, task.grid, task.closeness)
        live = self._affordable(live, grid)
        self.work_left -= len(live) * grid.work(self.knowledge.size)
        self.nodes += len(live) * grid.size
        again: list[_Live] = []
        for patches, blocks, told in self._patches(live, grid):
            seen = self._look(patches, grid, blocks, told)
            found = seen.live
            self.looked.append(Looked(found.pieces.boxes, grid, seen.proved, found.places, seen.learnt))
            ends = ~seen.proved & ((seen.least > 1.0) | last)
            if np.any(ends):
                end = np.flatnonzero(ends)
                self._leave(found[end].within(grid.columns, seen.first[end], seen.last[end]).pieces, "short")
                self.broken[found.numbers[end]] = True
                # a polynomial that is not close yet says where, but not how far
                end = end[self.design.region.contains(found.places[end])]
                places, learnt = found.places[end], found.most[end]
                below = np.flatnonzero(seen.least[end] > 1.0)
                if below.size:
                    learnt[below] = self.knowledge.learnt(places[below])
                self.short.append((places, learnt))
            left = np.flatnonzero(~seen.proved & ~ends)
            again.append(found[left].within(grid.columns, seen.first[left], seen.last[left]))
            self.decided += float(np.sum(found.pieces.shares) - np.sum(again[-1].pieces.shares))
            self.effort.done(min(self.decided, 1.0))
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
        variance = self.knowledge.unknown.variance(points)
        # no grid is closer than round-off, as would be asked for where a floor is above the prior's deviation
        least = max(UNIT**2 * float(np.max(variance)), np.finfo(float).tiny)
        return float(np.sqrt(max(min(float(np.min(budget)), float(np.min(variance - budget))), least)))

    def _affordable(self, live: _Live, grid: Grid, least: int = 0) -> _Live:
        """The pieces for which there is work left, but at least so many; the others stay open."""
        most = max(int(self.work_left / grid.work(self.knowledge.size)), least)
        if most < len(live):
            rest, live = live[most:], live[:most]
            self._leave(rest.pieces, "work")
            seen_before = rest.most > 0.0
            self.short.append((rest.places[seen_before], rest.most[seen_before]))
        return live

    def _small_enough(self, live: _Live, grid: Grid, closeness: float) -> tuple[_Live, Grid]:
        """Boxes whose nodes can be worked on together."""
        most = max(NUMBERS_AT_ONCE // self.knowledge.size, grid.patch_size)
        while grid.size > most:
            axis = int(np.argmax([one.count for one in grid.axes]))
            if grid.axes[axis].count == 1 or grid.by_rows:
                break
            live = live.halved(int(grid.columns[axis]))
            smaller = self.interpolation.grid(live.pieces.boxes, closeness, self.knowledge.size)
            assert smaller is not None
            # a box that is far too large would become millions of them
            live, grid = self._affordable(live, smaller, least=1), smaller
        return live, grid

    def _patches(self, live: _Live, grid: Grid) -> Iterator[tuple[_Live, Array, Told]]:
        """The patches of the pieces, as many at a time as fit, with the covariances of their nodes."""
        members = grid.members()
        each = max(grid.coefficients, grid.patch_size**2, grid.patch_size * self.knowledge.size)
        together = max(1, min(len(live), NUMBERS_AT_ONCE // (grid.size * self.knowledge.size)))
        together = max(1, min(together, NUMBERS_AT_ONCE // (each * grid.patches)))
        step = max(1, NUMBERS_AT_ONCE // (each * together))
        if not len(live):
            return
        place, unknown = live.pieces.boxes.lower[:1], self.knowledge.unknown
        left = 1.0 - self.design.tolerance.budget(unknown, place) / unknown.variance(place)
        # where little is to be left of a variance, what is told of all of it must be known better
        spare = SPARE * grid.error / grid.amplification * float(np.sqrt(np.maximum(left, 0.0))[0])
        for start in range(0, len(live), together):
            part = live[start : start + together]
            self.effort.done(min(self.decided, 1.0))
            told = self.knowledge.told(grid.nodes(part.pieces.boxes), spare)
            for first in range(0, grid.patches, step):
                own = slice(first, first + step)
                yield part.split(grid, own), told.blocks(members[own]), told

    def _look(self, live: _Live, grid: Grid, blocks: Array, told: Told) -> _Seen:
        """What is proved of some patches; those that the region does not reach into count as nothing."""
        region, boxes = self.design.region, live.pieces.boxes
        whole = bool(np.all(region.holds(boxes.lower, boxes.upper)))
        if not whole:
            met = np.flatnonzero(region.meets(boxes.lower, boxes.upper))
            live, blocks, boxes = live[met], blocks[met], boxes[met]
        if not len(live):
            nothing = np.zeros((0, len(grid.columns)))
            return _Seen(live, np.zeros(0, dtype=np.bool_), np.zeros(0), np.zeros(0), nothing, nothing)
        gap = self._gap(boxes, grid, blocks, told)
        shape = (None, None) if whole else (region.contains, region.meets)
        found = prove_cells(gap.cells, gap.least, boxes, grid.columns, *shape)
        places, spare = found.places, found.spare
        unseen = np.flatnonzero(np.isinf(spare))
        if unseen.size:
            # no corner of any cell lies in the region
            places[unseen] = region.project(places[unseen], self.design.representatives)
            spare[unseen] = 0.0
        least, learnt, most = (
            gap.explained(spare + gap.least, wrong) / gap.budget for wrong in (-gap.error, 0.0, gap.error)
        )
        at, there = self._at_nodes(grid, blocks, told, boxes)
        broken = np.flatnonzero((there > np.maximum(least, FAR_TOO_MUCH)) & region.contains(at))
        places[broken] = at[broken]
        least[broken] = learnt[broken] = most[broken] = there[broken]
        seen = replace(live, places=places, most=most)
        return _Seen(seen, found.proved, least, learnt, found.first, found.last)

    def _at_nodes(self, grid: Grid, blocks: Array, told: Told, boxes: Boxes) -> tuple[Array, Array]:
        """The node of each patch at which the most is explained, and at least which share that is of what may be.

        f is p at the nodes, and no ρ is between them.
        """
        values = np.diagonal(blocks, axis1=1, axis2=2)
        best = np.argmin(values, axis=1) if told.is_left else np.argmax(values, axis=1)
        value = values[np.arange(len(boxes)), best]
        nodes = inside_boxes(boxes, grid.columns, grid.patch_nodes())[np.arange(len(boxes)), best]
        explained = self.knowledge.unknown.variance(nodes) - value if told.is_left else value
        least = np.maximum(np.sqrt(np.maximum(explained, 0.0)) - told.slack, 0.0) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            return nodes, least / self.design.tolerance.budget(self.knowledge.unknown, nodes)

    def _gap(self, boxes: Boxes, grid: Grid, blocks: Array, told: Told) -> _Gap:
        """The polynomial that must be large enough on each patch."""
        unknown, tolerance = self.knowledge.unknown, self.design.tolerance
        points = inside_boxes(boxes, grid.columns, nodes_of(grid.variance))
        flat = points.reshape(-1, points.shape[-1])
        # a polynomial, also at nodes outside the region where there is less than the floor asks for
        rest = tolerance.kept(unknown, flat).reshape(points.shape[:2])
        budget = unknown.variance(flat).reshape(points.shape[:2]) - rest
        by_rest = bool(np.min(rest) < np.min(budget)) and not grid.by_rows
        # what is left, or what is explained with a minus
        values = blocks if told.is_left else -blocks
        if told.is_left != by_rest:
            prior = self._prior_blocks(boxes, grid)
            values = values + prior if by_rest else values - prior
        cells = first_cells(values, grid)
        asked = offset_cells(rest if by_rest else budget, grid)
        aim = np.sqrt(np.maximum(asked.reshape(len(boxes), -1).max(axis=1), 0.0))
        size = float(np.max(budget + rest)) * float(np.prod([lebesgue(order) for order in grid.variance]))
        error, wrong = grid.error + grid.misplaced, grid.amplification * (told.slack + 2.0 * grid.misplaced)
        rounding = round_off(grid, told.rounding + KERNEL_VALUES * UNIT) * size
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
            np.maximum(budget[:, middle], UNIT * (budget + rest)[:, middle]),
            rest[:, middle],
        )

    def _prior_blocks(self, boxes: Boxes, grid: Grid) -> Array:
        """The prior covariance of the nodes of each patch; a stationary kernel has the same for patches of one size."""
        shares = grid.patch_nodes()
        reach = np.max(np.abs(np.vstack([boxes.lower, boxes.upper])), axis=0)
        differ = np.ptp(boxes.upper - boxes.lower, axis=0) > MISPLACED * UNIT * reach
        stationary = not np.any(differ) and self.interpolation.is_stationary(boxes, grid.columns)
        nodes = inside_boxes(boxes[:1] if stationary else boxes, grid.columns, shares)
        count, each = nodes.shape[:2]
        found = np.empty((count, each, each))
        # a few patches at once: what is not needed between them costs less than asking for each
        step = max(1, TOGETHER // each)
        for start in range(0, count, step):
            own = nodes[start : start + step]
            block = self.knowledge.unknown.covariance(own.reshape(-1, own.shape[-1]))
            block = block.reshape(len(own), each, len(own), each)
            found[start : start + step] = block[np.arange(len(own)), :, np.arange(len(own)), :]
        return found


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


def _of_about_one_size(live: _Live) -> Iterator[_Live]:
    """Intervals of one column whose lengths differ by a factor of two at most; single inputs together."""
    lengths = (live.pieces.boxes.upper - live.pieces.boxes.lower)[:, 0]
    kinds = np.where(lengths > 0.0, np.ceil(np.log2(np.where(lengths > 0.0, lengths, 1.0))), -np.inf)
    for kind in np.unique(kinds):
        yield live[np.flatnonzero(kinds == kind)]


def _congruent(live: _Live, numbered: bool) -> Iterator[_Live]:
    """Pieces of the same extents, about the same output, together."""
    if not len(live):
        return
    boxes = live.pieces.boxes
    extents = boxes.upper - boxes.lower
    scale = np.maximum(np.max(np.abs(np.vstack([boxes.lower, boxes.upper])), axis=0), 1e-300)
    # extents that differ by a few u of their distance from 0, as MISPLACED counts it
    kinds = np.round(extents / scale, 15)
    if numbered:
        kinds[:, -1] = boxes.lower[:, -1]
    _, which = np.unique(kinds, axis=0, return_inverse=True)
    for kind in range(int(np.max(which)) + 1):
        yield live[np.flatnonzero(which == kind)]
