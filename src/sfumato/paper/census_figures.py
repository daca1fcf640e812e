"""Pictures of the census study: where readers get below the floor, and what each method costs in errors."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from ..arrays import Array
from ..design import Mechanism
from ..show import FLOOR, ORANGE, PUBLISHED, PURPLE, READER, SKY, TRUTH, plain_axes
from .census_study import (
    DP_ALL,
    DP_AVERAGED,
    DP_PRIVATE,
    DP_STANDARD,
    TRAINING,
    CensusResult,
    floor_ratios,
    reader,
)
from .study import AWARE, DELTA, DROPOUT, NAIVE, SERVING, UNSECURED, Line

#: The columns of the maps, and inputs on each side of one.
ACROSS, UP, GRID = "AGEP", "PUMA", 51

#: How far the maps go beyond S, to younger people and to higher areas, as a share of its width and height.
BEYOND = 0.8

#: Colour and marker of each method.
LOOKS = {
    AWARE: (READER, "o"),
    SERVING: ("#117733", "h"),
    NAIVE: (SKY, "s"),
    DP_ALL: (PUBLISHED, "D"),
    DP_PRIVATE: (PURPLE, "v"),
    DP_AVERAGED: (ORANGE, "^"),
    DP_STANDARD: ("#882255", "<"),
    DROPOUT: (FLOOR, "P"),
    UNSECURED: (TRUTH, "X"),
}


def draw_all(result: CensusResult) -> dict[str, Figure]:
    """Every figure of the study, by the name of its file."""
    return {
        "map": draw_map(result),
        "errors": draw_errors(result),
        "dp": draw_cloaking(result),
    }


def draw_map(result: CensusResult, alpha: float | None = None) -> Figure:
    """The reader's std over the floor, over age and area, for each cover at the strictest level (or ``alpha``).

    Upper row: people with the other columns that occur most often among the sensitive training rows. Lower row: people
    with those of the worst input that the certificate of the first cover found. Below 1 the floor is not kept.
    """
    strictest = min(level for _, level in result.mechanisms) if alpha is None else alpha
    shown = {cover: made for (cover, level), made in result.mechanisms.items() if level == strictest}
    ages, areas = _axes_of(result)
    kinds = {"most common in S": _most_common(result), "at the worst input": _worst(result, next(iter(shown.values())))}
    tables = [
        [_ratios(result, made, strictest, person, ages, areas) for made in shown.values()] for person in kinds.values()
    ]
    top = max(1.02, max(float(table.max()) for row in tables for table in row))
    least = min(0.98, min(float(table.min()) for row in tables for table in row))
    norm, colours = TwoSlopeNorm(1.0, least, top), _diverging()
    figure = Figure(figsize=(2.4 + 4.4 * len(shown), 8.8), layout="constrained")
    grid = figure.subplots(2, len(shown), sharex=True, sharey=True, squeeze=False)
    for row, (words, person) in enumerate(kinds.items()):
        others = ", ".join(f"{name} {value:g}" for name, value in person.items())
        for (cover, made), ax, table in zip(shown.items(), grid[row], tables[row], strict=True):
            image = ax.pcolormesh(ages, areas, table, cmap=colours, norm=norm, shading="nearest", rasterized=True)
            _outline(ax, result)
            if person == _worst(result, made):
                _mark_worst(ax, made)
            name = "rows as cover (the paper)" if cover == "rows" else "automatic cover"
            kept = f"least ratio {made.certificate.floor_ratio:.3f}"
            ax.set_title(f"{name}: {kept}\n{others} ({words})", fontsize=9.5)
    for ax in grid[:, 0]:
        ax.set_ylabel("area (PUMA)")
    for ax in grid[-1]:
        ax.set_xlabel("age (AGEP)")
    grid[0, 0].legend(loc="upper left", fontsize=8.5, framealpha=0.9)
    ticks = [tick for tick in MaxNLocator(5).tick_values(least, 1.0) if least <= tick < 0.97]
    bar = figure.colorbar(image, ax=grid, shrink=0.75, pad=0.02, ticks=[*ticks, 1.0, top], format="%.2f")
    bar.set_label("reader's std / floor (below 1: more is known than promised)")
    bar.ax.axhline(1.0, color=TRUTH, linewidth=1.2)
    _entitle(figure, f"What readers do not know of incomes, α = {strictest:g}", result)
    return figure


def _axes_of(result: CensusResult) -> tuple[Array, Array]:
    """Ages and areas around S: further down in age and further up in area, where most people are."""
    (young, old), (low, high) = result.data.bounds[ACROSS], result.data.bounds[UP]
    ages = np.linspace(young - BEYOND * (old - young), old, GRID)
    areas = np.linspace(low, high + BEYOND * (high - low), GRID)
    return ages, areas


def _most_common(result: CensusResult) -> dict[str, float]:
    """The other columns as they occur most often among the sensitive training rows."""
    data = result.data
    counts = data.train.loc[data.train_inside, _others(result)].value_counts(sort=True).reset_index()
    return {column: float(counts[column].iloc[0]) for column in _others(result)}


def _worst(result: CensusResult, made: Mechanism) -> dict[str, float]:
    """The other columns of the input where ``made`` keeps least of its floor."""
    found = dict(zip(made.certificate.columns, made.certificate.worst_input, strict=True))
    return {column: float(found[column]) for column in _others(result)}


def _others(result: CensusResult) -> list[str]:
    return [str(column) for column in result.data.train.columns if column not in (ACROSS, UP)]


def _ratios(
    result: CensusResult, made: Mechanism, alpha: float, person: dict[str, float], ages: Array, areas: Array
) -> Array:
    """std over floor for people with the other columns of ``person``; a row for each area, a column for each age."""
    prior, data = result.models.owner, result.data
    place = np.array(np.meshgrid(ages, areas)).reshape(2, -1).T
    at = pd.DataFrame(place, columns=[ACROSS, UP]).assign(**person)[list(data.train.columns)]
    found = floor_ratios(reader(prior, data, made.noise.covariance()), prior, alpha, at)
    return found.reshape(len(areas), len(ages))


def _outline(ax: Axes, result: CensusResult) -> None:
    data = result.data
    (young, old), (low, high) = data.bounds[ACROSS], data.bounds[UP]
    how: dict[str, Any] = {"fill": False, "edgecolor": TRUTH, "linewidth": 2.0, "zorder": 4}
    ax.add_patch(Rectangle((young, low), old - young, high - low, label="S, to be hidden", **how))
    rows = data.train[data.train_inside]
    how = {"color": TRUTH, "markersize": 4.5, "zorder": 5, "clip_on": False}
    ax.plot(rows[ACROSS], rows[UP], ".", label="training rows in S", **how)


def _mark_worst(ax: Axes, made: Mechanism) -> None:
    found = dict(zip(made.certificate.columns, made.certificate.worst_input, strict=True))
    style: dict[str, Any] = {"markersize": 11, "markeredgecolor": "white", "color": TRUTH, "clip_on": False}
    ax.plot([found[ACROSS]], [found[UP]], linestyle="none", marker="X", label="worst input", zorder=6, **style)
    ax.legend(loc="upper left", fontsize=8.5, framealpha=0.9)


def _diverging() -> LinearSegmentedColormap:
    """Orange below 1, pale blue from 1 on, with a step between them: what is kept and what is not can be told apart."""
    stops = [(0.0, PUBLISHED), (0.5, "#FCEADD"), (0.5, "#E9F3FA"), (1.0, "#8CC0E4")]
    return LinearSegmentedColormap.from_list("floor", stops)


def _entitle(figure: Figure, head: str, result: CensusResult) -> None:
    """``head``, and below it the training and the data, in as many lines as the figure needs."""
    below = textwrap.fill(f"{TRAINING[result.settings]}; {result.data.source}", int(11 * figure.get_figwidth()))
    figure.suptitle(f"{head}\n{below}", fontsize=10.5)


def draw_errors(result: CensusResult) -> Figure:
    """Errors inside and outside S for every method and level: means over draws, and bars for their spread."""
    lines = list(reversed(result.lines))
    figure = Figure(figsize=(10.5, 1.4 + 0.29 * len(lines)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    count = int(result.data.test_inside.sum())
    _draw_dots(left, lines, [(line.rmse_inside, line.rmse_inside_spread) for line in lines])
    _draw_dots(right, lines, [(line.rmse_outside, line.rmse_outside_spread) for line in lines])
    left.set_title(f"inside S ({count} test rows only)", fontsize=10)
    right.set_title(f"outside S ({len(result.data.test) - count} test rows)", fontsize=10)
    left.set_yticks(range(len(lines)), [_name(line) for line in lines], fontsize=8.5)
    _entitle(figure, "Errors of predicted incomes", result)
    return figure


def _draw_dots(ax: Axes, lines: Sequence[Line], values: Sequence[tuple[float, float]]) -> None:
    bare = next(value for line, (value, _) in zip(lines, values, strict=True) if line.method == UNSECURED)
    ax.axvline(bare, color="0.55", linestyle=":", linewidth=1.2)
    for place, (line, (value, spread)) in enumerate(zip(lines, values, strict=True)):
        if place % 2:
            ax.axhspan(place - 0.5, place + 0.5, color="0.96", linewidth=0, zorder=0)
        _draw_point(ax, line, float(place), value, spread, upright=False)
    ax.set_xscale("log")
    ax.set_xlabel("RMSE (100 000 dollars), ± spread over draws")
    _plain_numbers(ax, "x", [value + side * spread for value, spread in values for side in (-1, 0, 1)])
    ax.set_ylim(-0.6, len(lines) - 0.4)
    ax.tick_params(axis="y", length=0)
    plain_axes(ax, "both")


def draw_cloaking(result: CensusResult) -> Figure:
    """RMSE of DP-Cloaking over all test rows against ε, for each matrix, beside the methods without ε."""
    figure = Figure(figsize=(7.6, 4.8), layout="constrained")
    ax = figure.subplots()
    methods = [method for method in (DP_ALL, DP_AVERAGED, DP_PRIVATE) if _of(result, method)]
    extremes: list[float] = []
    for number, method in enumerate(methods):
        lines = _of(result, method)
        # a little apart, so that the bars of two methods do not cover each other
        shift = 1.0 + 0.02 * (number - (len(methods) - 1) / 2)
        places = [shift * _level(line) for line in lines]
        ax.plot(places, [line.rmse for line in lines], color=LOOKS[method][0], linewidth=1.2, alpha=0.6)
        for place, line in zip(places, lines, strict=True):
            _draw_point(ax, line, place, line.rmse, line.rmse_spread, label=method if line is lines[0] else None)
            extremes += [line.rmse - line.rmse_spread, line.rmse + line.rmse_spread]
    for method, style in ((UNSECURED, ":"), (DROPOUT, (0, (5, 2)))):
        value = _of(result, method)[0].rmse
        ax.axhline(value, color=LOOKS[method][0], linestyle=style, linewidth=1.3, label=f"{method}: {value:.3f}")
        extremes.append(value)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = [_level(line) for line in _of(result, DP_ALL)]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel(f"ε (δ = {DELTA:g}, sensitivity one standard deviation of income)")
    ax.set_ylabel("RMSE (100 000 dollars), ± spread over draws")
    _plain_numbers(ax, "y", extremes)
    _entitle(figure, "Differential privacy", result)
    ax.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(0.0, -0.16), ncol=2)
    plain_axes(ax, "both")
    return figure


def _draw_point(
    ax: Axes, line: Line, place: float, value: float, spread: float, upright: bool = True, label: str | None = None
) -> None:
    # the axis is logarithmic: a bar that would reach zero ends at a tenth of the value
    bar = [[min(spread, 0.9 * value)], [spread]] if spread > 0 else None
    x, y = (place, value) if upright else (value, place)
    colour, marker = LOOKS[line.method]
    how: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.5, "elinewidth": 1.6, "capsize": 2.5}
    how |= {"markersize": 8 if marker in "PXv^" else 6, "label": label, "zorder": 3, "yerr" if upright else "xerr": bar}
    ax.errorbar([x], [y], fmt=marker, color=colour, **how)


def _of(result: CensusResult, method: str) -> list[Line]:
    return [line for line in result.lines if line.method == method]


def _level(line: Line) -> float:
    return float(line.level.split("=")[1])


def _name(line: Line) -> str:
    parts = (line.method, line.level, f"{line.cover} cover" if line.cover else "")
    return ", ".join(part for part in parts if part)


def _plain_numbers(ax: Axes, side: str, values: Sequence[float]) -> None:
    """A few ticks on a logarithmic axis, written as 0.5 rather than 5·10⁻¹."""
    shown = [value for value in values if value > 0 and math.isfinite(value)]
    low, high = min(shown) / 1.06, max(shown) * 1.06
    ticks = [step * 10.0**power for power in range(-9, 10) for step in (1.0, 2.0, 5.0)]
    if high / low < 12:
        ticks += [step * 10.0**power for power in range(-9, 10) for step in (1.5, 3.0, 4.0, 7.0)]
    if high / low < 4:
        ticks = list(MaxNLocator(6).tick_values(low, high))
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks([tick for tick in sorted(ticks) if low <= tick <= high])
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
    (ax.set_xlim if side == "x" else ax.set_ylim)(low, high)
