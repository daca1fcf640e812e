"""The cells of a region: the patches on which its floor is proved, and how much room readers leave above it.

The picture proves the floor again from the published design, and shows what it did. Patches that were divided are
covered by those that they were divided into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..arrays import Array, Index, Mask, evenly
from ..design import Mechanism
from ..errors import InputError
from ..linalg import interpolation_nodes
from ..proof import Effort, Knowledge, Looked, Proof, Prover, knowledge_of, pieces_of
from ..release import Release
from ..text import counted, listed
from .view import (
    FINE_STEPS,
    PUBLISHED,
    READER,
    SEQUENTIAL,
    SKY,
    TITLED,
    View,
    colour_bar,
    draw_floor,
    legend_above,
    name_axes,
    new_axes,
    show_dates,
    shows_names,
    title_over,
    value_axes,
)

#: Inches of the picture of two columns, with its colour bar.
_WIDTH, _HEIGHT = 6.0, 4.9

#: Rows and sensitive inputs that are drawn at most; nodes and edges of patches are drawn if there are no more.
MOST_POINTS, MOST_NODES, MOST_EDGES = 2000, 200, 4000

#: Colours go from the floor to this multiple of it at least and at most: whoever is further away is far away.
NEAR, FAR = 1.001, 2.0

#: Inputs on each side of the grid that the border of a region is drawn on.
FINE_SIDE = 401

#: How strong the colours of bars are: of what p may be wrong by, and of what is left then.
_LIGHT, _DARK = 0.3, 0.5

_HATCHED: dict[str, Any] = {"facecolor": "none", "edgecolor": PUBLISHED, "hatch": "////", "linewidth": 0.0}
_NODE: dict[str, Any] = {"marker": "o", "markersize": 3.4, "markeredgecolor": "white", "markeredgewidth": 0.5}
_NODE |= {"color": READER, "zorder": 5}
_ROW: dict[str, Any] = {"marker": "o", "markersize": 2.8, "color": "white", "zorder": 4}
_ROW |= {"markeredgecolor": "black", "markeredgewidth": 0.4}
_SENSITIVE: dict[str, Any] = {"marker": "X", "markersize": 6.0, "color": PUBLISHED, "zorder": 5}
_SENSITIVE |= {"markeredgecolor": "black", "markeredgewidth": 0.5}


@shows_names
def plot_cells(
    source: Mechanism | Release,
    columns: Sequence[str | int] | None = None,
    at: Any = None,
    ax: Axes | None = None,
    of: str | None = None,
    label: str | None = None,
    region_label: str | None = None,
    prior: int = 0,
) -> Axes:
    """The patches on which the floor is proved, along one column of the region or over two.

    Along one column: the reader's standard deviation above the floor, the nodes of each patch, and its least value on
    each. Bars are light at the top by ρ, all that the polynomial may be wrong by there. Over two columns: patches in
    colours that say how close readers come to the floor. What is not proved is hatched.

    ``columns`` are the one or two that are drawn (left out: the first two in which the region has an extent), through
    the input ``at`` (left out: the worst of the region) where there are others. ``of`` is the output, where there are
    several, ``prior`` the number of the reader's prior, where there are several. ``label`` names the axis of standard
    deviations, or the colours; ``region_label`` is what the legend calls the region. The proof is made again for what
    is drawn, for readers of this release alone.
    """
    if not isinstance(source, (Mechanism, Release)):
        raise InputError(f"source is a {type(source).__name__}; give a mechanism or a release.")
    view = View(source.design, of, region_label)
    places = _columns(view, columns)
    through = view.place(at, source.certificate.worst_input)
    proved = _Proved.of(view, places, through, prior, Effort(insist=source.certificate.evidence == "proved"))
    if len(places) == 1:
        return _along_one(proved, new_axes(ax), label)
    return _over_two(proved, new_axes(ax, _WIDTH, _HEIGHT), label)


def _columns(view: View, columns: Sequence[str | int] | None) -> list[int]:
    """The columns to draw, after a check that there is something to prove between inputs."""
    design = view.design
    if design.region.points is not None or design.cover in ("rows", "everywhere"):
        made = {"rows": "at the rows only", "everywhere": "by a formula"}.get(design.cover, "at single inputs")
        others = "plot_floor" if len(view.names) == 1 else "plot_floor_along"
        raise InputError(f"the promise is made {made}, so it has no cells; draw {others}.")
    varies = np.flatnonzero(design.region.varying_columns(design.inputs.dimension))
    moving = [int(place) for place in varies if place < len(view.names)]
    if columns is None:
        return moving[:2]
    if isinstance(columns, str) or not 1 <= len(columns) <= 2:
        raise InputError(f"columns is {columns!r}; give a list of one or two columns, such as [{view.names[0]!r}].")
    places = [view.column(column) for column in columns]
    still = [view.names[place] for place in places if place not in moving]
    if still or len(set(places)) < len(places):
        raise InputError(
            f"columns is {columns!r}; give different columns in which the region has an extent: "
            f"{listed([view.names[place] for place in moving])}."
        )
    return places


@dataclass(frozen=True, eq=False)
class _Proved:
    """A proof of that part of a region that a picture shows: ``places`` are its columns, ``through`` the others.

    ``total`` is the share of the region that it is.
    """

    view: View
    places: list[int]
    through: Array
    knowledge: Knowledge
    proof: Proof
    prior: int
    total: float

    @classmethod
    def of(cls, view: View, places: list[int], through: Array, prior: int, effort: Effort) -> _Proved:
        readers = knowledge_of(view.design)
        if isinstance(prior, bool) or not isinstance(prior, int) or not 0 <= prior < len(readers):
            raise InputError(f"prior is {prior!r}; give a number from 0 to {len(readers) - 1}.")
        pieces = pieces_of(view.design)
        if pieces is None:
            raise InputError("the region has too many combinations for a picture of its cells; draw plot_floor_along.")
        row = view.about(through[None])[0]
        kept = np.flatnonzero(_holding(pieces.boxes.lower, pieces.boxes.upper, row, places))
        if not kept.size:
            where = view.in_words(through)
            raise InputError(f"at is {where}, where the region has no part; give an input of the region.")
        proof = Prover(view.design, readers[prior], effort).prove(pieces[kept])
        return cls(view, places, row, readers[prior], proof, prior, float(np.sum(pieces.shares[kept])))

    def shown(self, looked: Looked) -> Index:
        """Which of the patches the picture cuts."""
        return np.flatnonzero(_holding(looked.patches.lower, looked.patches.upper, self.through, self.places))

    @cached_property
    def open(self) -> Index:
        """Which of the boxes that are not proved the picture cuts."""
        boxes = self.proof.open.boxes
        return np.flatnonzero(_holding(boxes.lower, boxes.upper, self.through, self.places))

    def open_sides(self) -> tuple[Array, Array]:
        """Their sides in the columns that are drawn."""
        boxes = self.proof.open.boxes[self.open]
        return boxes.lower[:, self.places], boxes.upper[:, self.places]

    @property
    def fixed(self) -> list[int]:
        """The columns that are not drawn."""
        return [place for place in range(len(self.view.names)) if place not in self.places]

    def points(self, values: Array) -> Array:
        """Those of ``values``, some of many, that are like the picture in columns where the region has no extent."""
        varies = self.view.design.region.varying_columns(self.view.design.inputs.dimension)
        same = [place for place in self.fixed if not varies[place]]
        own = values[np.all(values[:, same] == self.through[same], axis=1)]
        return np.asarray(own[evenly(len(own), MOST_POINTS)] if len(own) else own)

    def in_words(self) -> list[str]:
        """What was done, and which part of the region is shown."""
        patches = sum(len(one.patches) for one in self.proof.looked)
        kept = self.total - float(np.sum(self.proof.open.shares))
        found = "all of this is proved" if not len(self.proof.open) else f"{kept / self.total:.1%} of this is proved"
        parts = [f"{found}: {patches:,} patch{'' if patches == 1 else 'es'}, {counted(self.proof.nodes, 'node')}"]
        if len(self.view.design.priors) > 1:
            parts[0] += f"; readers with prior {self.prior}"
        if self.fixed:
            parts.append(f"where {self.view.in_words(self.through, self.places)}")
        return parts


def _holding(lower: Array, upper: Array, row: Array, places: list[int]) -> Mask:
    """Which boxes hold ``row`` in all columns but ``places``."""
    inside = (lower <= row) & (row <= upper)
    inside[:, places] = True
    return np.asarray(np.all(inside, axis=1), dtype=np.bool_)


def _along_one(proved: _Proved, ax: Axes, label: str | None) -> Axes:
    view, place = proved.view, proved.places[0]
    points = _line(proved, place)
    std, floor = proved.knowledge.deviations(points), proved.knowledge.floors(points)
    ax.plot(points[:, place], std, color=READER, linewidth=1.6, label="reader's standard deviation", zorder=3)
    draw_floor(ax, points[:, place], floor)
    _draw_room(ax, proved, place, points[:, place], std, floor)
    _draw_nodes(ax, proved, place)
    for lower, upper in zip(*proved.open_sides(), strict=True):
        ax.axvspan(lower[0], upper[0], zorder=0, **_HATCHED)
    bottom, top = float(np.min(floor)), float(np.max(std))
    spare = (top - bottom) or top
    ax.set_ylim(max(0.0, bottom - 0.3 * spare), top + 0.1 * spare)
    name_axes(ax, view.names[place], label or f"std of {view.name}")
    value_axes(ax)
    show_dates(ax.xaxis, view.dates(place))
    bar = Patch(facecolor=SKY, alpha=_DARK, label="patch (light: ρ)")
    return _finish(ax, proved, [*ax.get_legend_handles_labels()[0], _handle(_NODE, "node"), bar])


def _line(proved: _Proved, place: int) -> Array:
    """Inputs of the region all along a column."""
    boxes = [*(one.patches for one in proved.proof.looked), proved.proof.open.boxes]
    low = min(float(one.lower[:, place].min()) for one in boxes if len(one))
    high = max(float(one.upper[:, place].max()) for one in boxes if len(one))
    points = np.tile(proved.through, (FINE_STEPS, 1))
    points[:, place] = np.linspace(low, high, FINE_STEPS)
    return np.asarray(points[proved.view.design.region.contains(points)])


def _draw_room(ax: Axes, proved: _Proved, place: int, line: Array, std: Array, floor: Array) -> None:
    """On each patch, or what was not divided of it: from the floor to the least std there, in light what ρ takes."""
    found = [(one, own) for one in proved.proof.looked if one.grid is not None and len(own := proved.shown(one))]
    if not found:
        return
    left = np.concatenate([one.patches.lower[own, place] for one, own in found])
    right = np.concatenate([one.patches.upper[own, place] for one, own in found])
    errors = np.concatenate([np.full(len(own), one.grid.error) for one, own in found if one.grid is not None])
    ends = np.unique(np.concatenate([left, right]))
    # patches that were looked at later lie over earlier ones
    owner = np.full(len(ends) - 1, -1)
    for number, (first, last) in enumerate(zip(np.searchsorted(ends, left), np.searchsorted(ends, right), strict=True)):
        owner[first:last] = number
    starts = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    stops = np.append(starts[1:], len(owner))
    kept = owner[starts] >= 0
    low, high, rho = ends[starts][kept], ends[stops][kept], errors[owner[starts][kept]]
    known = np.interp(np.append(low, high), line, std)
    seen = np.minimum(known[: len(low)], known[len(low) :])
    inside = np.clip(np.searchsorted(high, line), 0, len(high) - 1)
    np.minimum.at(seen, inside, np.where((line >= low[inside]) & (line <= high[inside]), std, np.inf))
    bottom = np.interp((low + high) / 2.0, line, floor)
    least = np.maximum(seen - rho, bottom)
    whole = _rectangles(np.column_stack([low, bottom]), np.column_stack([high, np.maximum(seen, bottom)]))
    sure = _rectangles(np.column_stack([low, bottom]), np.column_stack([high, least]))
    for corners, light in ((whole, _LIGHT), (sure, _DARK)):
        shape = PolyCollection(corners, facecolors=SKY, alpha=light, edgecolors="none", zorder=1)
        ax.add_collection(shape, autolim=False)
    ax.add_collection(PolyCollection(whole, facecolors="none", edgecolors="0.4", linewidths=0.6), autolim=False)


def _draw_nodes(ax: Axes, proved: _Proved, place: int) -> None:
    """The nodes of all patches, on the reader's curve, if these are not too many."""
    found = []
    for looked in proved.proof.looked:
        own = proved.shown(looked)
        if looked.grid is None or not own.size:
            continue
        axis = looked.grid.axes[looked.grid.columns.tolist().index(place)]
        shares = (interpolation_nodes(axis.degree) + 1.0) / 2.0
        left, right = looked.patches.lower[own, place], looked.patches.upper[own, place]
        found.append((left[:, None] * (1.0 - shares) + right[:, None] * shares).ravel())
    nodes = np.unique(np.concatenate([np.zeros(0), *found]))
    if 0 < len(nodes) <= MOST_NODES:
        rows = np.tile(proved.through, (len(nodes), 1))
        rows[:, place] = nodes
        ax.plot(nodes, proved.knowledge.deviations(rows), linestyle="none", **_NODE)


def _over_two(proved: _Proved, ax: Axes, label: str | None) -> Axes:
    view, places = proved.view, proved.places
    found = [(one, own) for one in proved.proof.looked if len(own := proved.shown(one))]
    ratios = [proved.knowledge.floor_ratios(looked.places[own]) for looked, own in found]
    most = float(np.clip(np.max(np.concatenate([[1.0], *ratios])), NEAR, FAR))
    edges = 0.4 if sum(map(len, ratios)) <= MOST_EDGES else 0.0
    drawn = None
    for (looked, own), values in zip(found, ratios, strict=True):
        corners = _rectangles(looked.patches.lower[own][:, places], looked.patches.upper[own][:, places])
        how: dict[str, Any] = {"edgecolors": "white", "linewidths": edges, "zorder": 1}
        drawn = PolyCollection(corners, array=values, cmap=SEQUENTIAL, clim=(1.0, most), **how)
        ax.add_collection(drawn)
    if drawn is not None:
        more = " (or more)" if most == FAR else ""
        colour_bar(ax, drawn, label or f"least std / floor of a patch{more}")
    ax.add_collection(PolyCollection(_rectangles(*proved.open_sides()), zorder=2, **_HATCHED))
    ax.autoscale_view()
    _draw_border(ax, proved)
    for values, how in ((view.rows, _ROW), (view.sensitive, _SENSITIVE)):
        points = proved.points(values)
        ax.plot(points[:, places[0]], points[:, places[1]], linestyle="none", **how)
    name_axes(ax, view.names[places[0]], view.names[places[1]])
    show_dates(ax.xaxis, view.dates(places[0]))
    show_dates(ax.yaxis, view.dates(places[1]))
    ax.spines[:].set_visible(False)
    border = Line2D([], [], color=PUBLISHED, linewidth=1.6, label=view.region_in_words)
    return _finish(ax, proved, [_handle(_ROW, "row of the data"), _handle(_SENSITIVE, "sensitive input"), border])


def _rectangles(lower: Array, upper: Array) -> list[Array]:
    """The corners of boxes in the plane, in turn."""
    (left, down), (right, up) = lower.T, upper.T
    corners = np.stack([np.column_stack(one) for one in ((left, down), (right, down), (right, up), (left, up))], axis=1)
    return list(corners)


def _draw_border(ax: Axes, proved: _Proved) -> None:
    """Where the region ends, and what of the axes is to be seen: a little more than it."""
    limits = [ax.get_xlim(), ax.get_ylim()]
    sides = [np.linspace(low - 0.04 * (high - low), high + 0.04 * (high - low), FINE_SIDE) for low, high in limits]
    plane = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    rows = np.tile(proved.through, (len(plane), 1))
    rows[:, proved.places] = plane
    inside = proved.view.design.region.contains(rows).reshape(FINE_SIDE, FINE_SIDE)
    if inside.any() and not inside.all():
        ax.contour(*sides, inside.astype(float), levels=[0.5], colors=[PUBLISHED], linewidths=1.6, zorder=3)
    ax.set(xlim=(sides[0][0], sides[0][-1]), ylim=(sides[1][0], sides[1][-1]))


def _finish(ax: Axes, proved: _Proved, handles: list[Any]) -> Axes:
    """The legend, under words that say what was done and which part of the region is seen."""
    if proved.open.size:
        handles.append(Patch(label="not proved", **_HATCHED))
    legend_above(ax, handles=handles, title=title_over(ax, *proved.in_words()), **TITLED)
    return ax


def _handle(how: dict[str, Any], label: str) -> Line2D:
    return Line2D([], [], linestyle="none", label=label, **how)
