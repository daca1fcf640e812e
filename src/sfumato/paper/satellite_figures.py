"""The paper's figures of the satellite study, from what the study computed: predictions, averages and errors."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..inputs import Array
from ..plots import BAND, FLOOR, PUBLISHED, READER, TRUTH
from ..rivals.baselines import dropout, unsecured
from .satellite import STATES
from .satellite_models import hidden
from .satellite_panels import (
    DASHES,
    DROPOUT,
    LABELS,
    STATIONARY,
    draw_truth,
    name_panels,
    one_legend,
    one_scale,
    sheet,
    times_to_show,
    truth_at,
)
from .satellite_releases import Cell, Cover, naive_fit
from .satellite_rival_figures import draw_dp, draw_zero_mean_noise, draw_zero_mean_predictions
from .satellite_study import ALPHAS, StudyResult
from .satellite_trajectory import draw_trajectory

REPLICATIONS = 100
PERCENTILES = (2.0, 98.0)
LOWEST = 1e-6
"""The bottom of the axes of errors, in prior variances."""


def draw_all(result: StudyResult) -> dict[str, Figure]:
    """Every figure of the study by name; releases are those of the first cover and, where one is shown, of seed 0."""
    cover = result.covers[0]
    figures = {"trajectory": draw_trajectory()}
    figures |= {f"privacy-aware-alpha-{alpha:g}": draw_privacy_aware(result, alpha, cover) for alpha in ALPHAS}
    figures["averages"] = draw_averages(result, cover)
    figures["mse"] = draw_mse(result, cover)
    figures["dp"] = draw_dp(result)
    figures["zero-mean-noise"] = draw_zero_mean_noise(result)
    figures["zero-mean-predictions"] = draw_zero_mean_predictions(result)
    return figures


def draw_privacy_aware(result: StudyResult, alpha: float, cover: Cover) -> Figure:
    """One release of each output: what is published, what readers conclude, and how well they can know it."""
    figure, (above, below) = sheet(2, len(STATES), 15.0, 6.4)
    at = times_to_show(result)
    truth = truth_at(at)
    for number, state in enumerate(STATES):
        cell = result.cells[state, alpha, cover]
        _draw_values(above[number], result, cell, at, truth[state])
        _draw_knowledge(below[number], cell, at)
        above[number].set_title(LABELS[state], fontsize=10)
        below[number].set_xlabel("t (orbits)")
    above[0].set_ylabel("value")
    below[0].set_ylabel("standard deviation")
    one_legend(figure, above[0], 8)
    below[0].legend(*_without_region(below[0]), frameon=False, fontsize=8.5, loc="upper left")
    figure.suptitle(f"privacy-aware release, α = {alpha:g} ({_settings(result)})", fontsize=11)
    return figure


def _without_region(ax: Axes) -> tuple[list[Artist], list[str]]:
    handles, labels = ax.get_legend_handles_labels()
    return handles[1:], labels[1:]


def _draw_values(ax: Axes, result: StudyResult, cell: Cell, at: Array, truth: Array) -> None:
    rows, y = result.truth["t"].to_numpy(), result.truth[cell.state].to_numpy()
    mean, std = cell.means_at(at)[0], cell.std_at(at)
    ax.fill_between(at, mean - BAND * std, mean + BAND * std, color=READER, alpha=0.22, linewidth=0, label="95 % band")
    ax.plot(at, mean, color=READER, linewidth=1.6, label="reader's mean")
    kept = dropout(result.models[cell.state].dropout, rows, y, hidden(rows)).mean_at(at)
    ax.plot(at, kept, color=DROPOUT, linewidth=2.0, linestyle=DASHES["dropout"], label="Dropout")
    naive = naive_fit(result.settings)(rows, cell.published[:1]).means_at(at)[0]
    ax.plot(at, naive, color=STATIONARY, linewidth=1.4, linestyle=DASHES["stationary"], label="Stationary")
    draw_truth(ax, at, truth)
    ax.plot(rows, cell.published[0], "o", color=PUBLISHED, markersize=2.8, label="published")


def _draw_knowledge(ax: Axes, cell: Cell, at: Array) -> None:
    prior, tolerance = cell.mechanism.prior, cell.mechanism.tolerance
    inside = at[hidden(at)]
    floor = tolerance.floor(prior, inside[:, None])
    ax.plot(at, np.sqrt(prior.variance(at)), color="0.45", linewidth=1.0, linestyle=":", label="knows only the prior")
    ax.plot(at, cell.std_at(at), color=READER, linewidth=1.6, label="reader")
    ax.plot(inside, floor, color=FLOOR, linewidth=2.4, linestyle=(0, (2, 1)), label="promised floor", zorder=4)
    ax.fill_between(inside, 0.0, floor, color=FLOOR, alpha=0.25, linewidth=0)
    ax.set_ylim(0.0, 1.45 * float(np.sqrt(prior.variance(at[:1])[0])))


def draw_averages(result: StudyResult, cover: Cover) -> Figure:
    """The mean of the readers' means over releases, with the band that holds 96 % of them."""
    figure, panels = sheet(len(STATES), len(ALPHAS), 13.0, 10.0)
    at = times_to_show(result)
    truth = truth_at(at)
    shown = min(result.seeds, REPLICATIONS)
    for row, state in zip(panels, STATES, strict=True):
        for ax, alpha in zip(row, ALPHAS, strict=True):
            means = result.cells[state, alpha, cover].means_at(at)[:shown]
            low, high = np.percentile(means, PERCENTILES, axis=0)
            ax.fill_between(at, low, high, color=READER, alpha=0.22, linewidth=0, label="96 % of the readers' means")
            ax.plot(at, means.mean(axis=0), color=READER, linewidth=1.6, label="average of the readers' means")
            ax.plot(at, _bare(result, state, at), color=FLOOR, linewidth=2.6, alpha=0.55, label="same GP without noise")
            draw_truth(ax, at, truth[state])
        one_scale(row)
    name_panels(panels, [f"α = {alpha:g}" for alpha in ALPHAS])
    one_legend(figure, panels[0][0], 5)
    figure.suptitle(f"averages over {shown} releases ({_settings(result)})", fontsize=11)
    return figure


def draw_mse(result: StudyResult, cover: Cover) -> Figure:
    """How far readers' means are from those of the same process without noise: squares, on a logarithmic axis."""
    figure, panels = sheet(len(STATES), len(ALPHAS), 13.0, 10.0)
    at = times_to_show(result)
    shown = min(result.seeds, REPLICATIONS)
    for row, state in zip(panels, STATES, strict=True):
        scale = float(result.models[state].owner.variance(at[:1])[0])
        bare = _bare(result, state, at)
        for ax, alpha in zip(row, ALPHAS, strict=True):
            squares = (result.cells[state, alpha, cover].means_at(at)[:shown] - bare) ** 2
            # 0 has no place on a logarithmic axis
            low, high = np.maximum(np.percentile(squares, PERCENTILES, axis=0), LOWEST * scale / 100)
            ax.fill_between(at, low, high, color=READER, alpha=0.22, linewidth=0, label="96 % of the releases")
            mean = np.maximum(squares.mean(axis=0), LOWEST * scale / 100)
            ax.plot(at, mean, color=READER, linewidth=1.6, label="mean over the releases")
            ax.axhline(scale, color=TRUTH, linewidth=1.0, linestyle=":", label="prior variance")
            ax.set_yscale("log")
            ax.set_ylim(LOWEST * scale, 30.0 * scale)
    name_panels(panels, [f"α = {alpha:g}" for alpha in ALPHAS])
    one_legend(figure, panels[0][0], 4)
    figure.suptitle(
        f"squared difference from the mean of the same GP without noise, {shown} releases ({_settings(result)})",
        fontsize=11,
    )
    return figure


def _bare(result: StudyResult, state: str, at: Array) -> Array:
    rows, y = result.truth["t"].to_numpy(), result.truth[state].to_numpy()
    return unsecured(result.models[state].owner, rows, y).mean_at(at)


def _settings(result: StudyResult) -> str:
    return "as the text says" if result.settings == "paper" else "as the scripts did, at the 61 rows"
