"""A path in the plane: two outputs over one input, with the reader's uncertainty as ellipses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ..arrays import Array, Mask
from ..errors import InputError
from ..release import Prediction, Release
from .style import DASHED, PUBLISHED, READER, SMALL, TRUTH, new_axes, plain_axes
from .view import View

#: Points of a path, ellipses along it, and points on each of them.
STEPS, ELLIPSES, ROUND = 601, 37, 49

#: Two outputs are within this many standard deviations of their mean with a chance of 95 %.
PLANE = float(np.sqrt(-2.0 * np.log(0.05)))


def plot_trajectory(
    release: Release | Sequence[Release],
    x: str | None = None,
    y: str | None = None,
    polar: bool = False,
    truth: tuple[Any, Any] | None = None,
    ax: Axes | None = None,
    labels: tuple[str, str] | None = None,
) -> Axes:
    """The reader's path of output ``x`` against output ``y``, with ellipses that hold 95 %.

    ``release`` is one release of both outputs, whose covariance the ellipses then show, or a pair of releases, which
    are taken for independent. With ``polar``, x is a radius and y an angle in radians. ``truth`` are the true values of
    both, along the path: only the owner has them. ``labels`` name the axes, with units.
    """
    first, second = _both(release, x, y)
    times = np.linspace(*_common_span(first, second), STEPS)[:, None]
    path = np.column_stack([first.predict(times).mean, second.predict(times).mean])
    inside = first.view.inside(times) | second.view.inside(times)
    ax = new_axes(ax, 5.6, 5.2, "polar" if polar else None)
    if polar != (ax.name == "polar"):
        raise InputError(f"polar is {polar}, but ax is {'' if ax.name == 'polar' else 'not '}polar; make them agree.")
    chosen = np.unique(np.linspace(0, STEPS - 1, ELLIPSES).astype(np.intp))
    shapes = _ellipses(path[chosen], _covariances(first, second, times[chosen]))
    for mask, colour in ((~inside, READER), (inside, PUBLISHED)):
        own = [_in_plane(shape, polar) for shape, here in zip(shapes, mask[chosen], strict=True) if here]
        ax.add_collection(PolyCollection(own, facecolors=colour, alpha=0.06, edgecolors="none", zorder=2))
        ax.add_collection(PolyCollection(own, facecolors="none", alpha=0.5, edgecolors=colour, linewidths=0.6))
        line = np.where(mask[:, None], path, np.nan)
        ax.plot(*_in_plane(line, polar).T, color=colour, linewidth=1.7, zorder=3)
    reached = [*shapes, path, _draw_published(ax, first, second, polar)]
    if truth is not None:
        known = np.column_stack([np.asarray(values, dtype=np.float64).reshape(-1) for values in truth])
        ax.plot(*_in_plane(known, polar).T, color=TRUTH, linewidth=1.2, linestyle=DASHED, zorder=4)
        reached.append(known)
    _finish(ax, labels or (first.view.name, second.view.name), polar, np.vstack(reached))
    _legend(ax, inside, truth is not None)
    return ax


@dataclass(frozen=True, eq=False)
class _Coordinate:
    """One output of a release, over one input."""

    release: Release
    view: View

    @classmethod
    def of(cls, release: Release, name: str | None) -> _Coordinate:
        view = View.of_release(release, name)
        view.check_inputs(1, "a path runs over one, such as time", "plot_slices")
        return cls(release, view)

    def predict(self, times: Array) -> Prediction:
        return self.release.predict(times, self.view.of)


def _both(release: Any, x: str | None, y: str | None) -> tuple[_Coordinate, _Coordinate]:
    if isinstance(release, Release):
        outputs = release.design.inputs.outputs
        if not outputs.numbered:
            raise InputError(
                f"the release is about {release.output_name!r} alone, and a path has two outputs; give a release of a "
                "JointPrior, or a pair of releases."
            )
        if (x is None) != (y is None):
            raise InputError(f"x is {x!r} and y is {y!r}; give both, or neither.")
        names = (x, y) if x is not None else outputs.names[:2]
        if len(names) < 2 or names[0] == names[1]:
            raise InputError(f"x and y are {names}; choose two of {', '.join(map(repr, outputs))}.")
        return _Coordinate.of(release, names[0]), _Coordinate.of(release, names[1])
    pair = list(release) if isinstance(release, Sequence) else [release]
    if len(pair) != 2 or not all(isinstance(one, Release) for one in pair):
        raise InputError("release is neither one of several outputs nor a pair of releases; give one of these.")
    named = [name if one.design.inputs.outputs.numbered else None for one, name in zip(pair, (x, y), strict=True)]
    return _Coordinate.of(pair[0], named[0]), _Coordinate.of(pair[1], named[1])


def _common_span(first: _Coordinate, second: _Coordinate) -> tuple[float, float]:
    spans = [first.view.span(0), second.view.span(0)]
    low, high = max(span[0] for span in spans), min(span[1] for span in spans)
    if low >= high:
        raise InputError(f"the two releases have no inputs in common: {spans[0]} and {spans[1]}.")
    return low, high


def _covariances(first: _Coordinate, second: _Coordinate, times: Array) -> Array:
    """The 2 × 2 covariance of both outputs at each time, as the reader has it."""
    result = np.zeros((len(times), 2, 2))
    result[:, 0, 0] = first.predict(times).std ** 2
    result[:, 1, 1] = second.predict(times).std ** 2
    release = first.release
    if release is second.release:
        rows = len(release.design.inputs)
        blur = release.noise.covariance()
        blur[np.diag_indices(rows)] += release.prior.noise_variance(rows) + release.steps**2 / 12
        reader = release.prior.condition(release.design.inputs, release.outputs, blur)
        across = np.diag(reader.covariance(first.view.about(times), second.view.about(times)))
        result[:, 0, 1] = result[:, 1, 0] = across
    return result


def _ellipses(centres: Array, covariances: Array) -> list[Array]:
    turns = np.linspace(0.0, 2 * np.pi, ROUND)
    circle = PLANE * np.stack([np.cos(turns), np.sin(turns)])
    values, vectors = np.linalg.eigh(covariances)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return [centre + (root @ circle).T for centre, root in zip(centres, roots, strict=True)]


def _in_plane(points: Array, polar: bool) -> Array:
    """Polar axes take the angle first."""
    return points[:, ::-1] if polar else points


def _draw_published(ax: Axes, first: _Coordinate, second: _Coordinate, polar: bool) -> Array:
    """Values that were published of both outputs at the same input."""
    at, values = first.release.rows_of(first.view.name)
    others = dict(zip(*(part.ravel().tolist() for part in second.release.rows_of(second.view.name)), strict=True))
    pairs = [(value, others[time]) for time, value in zip(at.ravel().tolist(), values, strict=True) if time in others]
    if pairs:
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.2, "markeredgewidth": 0.5}
        shown = _in_plane(np.array(pairs), polar)
        ax.plot(*shown.T, color="0.35", markeredgecolor="white", zorder=5, **style)
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def _finish(ax: Axes, labels: tuple[str, str], polar: bool, reached: Array) -> None:
    across, up = labels
    low, high = np.nanmin(reached, axis=0), np.nanmax(reached, axis=0)
    margin = 0.05 * (high - low)
    if not polar:
        ax.set(xlabel=across, ylabel=up, xlim=(low[0] - margin[0], high[0] + margin[0]))
        ax.set_ylim(low[1] - margin[1], high[1] + margin[1])
        plain_axes(ax, "both")
        ax.ticklabel_format(useOffset=False)
        return
    # a ring: what matters is how the radius differs, not how large it is
    ax.set_ylim(low[0] - margin[0], high[0] + margin[0])
    if low[0] > 0.5 * high[0]:
        ax.set_rorigin(low[0] - 1.6 * (high[0] - low[0]))  # type: ignore[attr-defined]
    # radii one above the other, on white: anywhere else they would lie on top of each other
    ax.set_rlabel_position(90.0)  # type: ignore[attr-defined]
    ticks = [tick for tick in MaxNLocator(3).tick_values(low[0], high[0]) if low[0] <= tick <= high[0]]
    ax.set_yticks(ticks, [f"{tick:.6g}" for tick in ticks])
    for text in ax.get_yticklabels():
        text.set(backgroundcolor="white", fontsize=SMALL - 1, ha="center", va="center", zorder=9)
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.grid(True, color="0.88", linewidth=0.6)
    ax.set_title(f"radius: {across}; angle: {up}", fontsize=10, loc="left")


def _legend(ax: Axes, inside: Mask, truth: bool) -> None:
    handles: list[Any] = [Line2D([], [], color=READER, linewidth=1.7, label="reader's path")]
    if inside.any():
        handles.append(Line2D([], [], color=PUBLISHED, linewidth=1.7, label="reader's path in the region"))
    handles.append(Patch(facecolor="0.85", edgecolor="0.6", label="95 % of the reader"))
    handles.append(Line2D([], [], color="0.35", marker="o", markersize=3.6, linestyle="none", label="published"))
    if truth:
        handles.append(Line2D([], [], color=TRUTH, linewidth=1.2, linestyle=DASHED, label="truth (the owner's)"))
    how: dict[str, Any] = {"ncol": 3, "frameon": False, "fontsize": SMALL}
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.1), **how)
