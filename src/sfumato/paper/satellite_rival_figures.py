"""Two more figures of the satellite study: differential privacy, and what happens when no mean is estimated."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ..plots import BAND, FLOOR, PUBLISHED, READER
from ..rivals.baselines import dropout
from .satellite import STATES
from .satellite_models import MeanChoice, hidden
from .satellite_panels import (
    DASHES,
    DROPOUT,
    LABELS,
    draw_truth,
    name_panels,
    one_legend,
    one_scale,
    sheet,
    times_to_show,
    truth_at,
)
from .satellite_releases import DELTA, Cell, cloaked, draws
from .satellite_study import ALPHAS, EPSILONS, StudyResult

MEANS: tuple[MeanChoice, MeanChoice] = ("constant", "zero")
ABLATED = 0.5
"""The α of the paper's figure without a mean."""


def draw_dp(result: StudyResult) -> Figure:
    """One honest draw of DP-Cloaking at each ε, with the band of one draw."""
    figure, panels = sheet(len(STATES), len(EPSILONS), 13.0, 10.0)
    at = times_to_show(result)
    truth = truth_at(at)
    rows = result.truth["t"].to_numpy()
    for number, (line, state) in enumerate(zip(panels, STATES, strict=True)):
        y = result.truth[state].to_numpy()
        kept = dropout(result.models[state].dropout, rows, y, hidden(rows)).mean_at(at)
        for ax, epsilon in zip(line, EPSILONS, strict=True):
            drawn = cloaked(result.settings, result.models[state], rows, at, epsilon).draw(y, unsafe_seed=number)
            low, high = drawn.mean - BAND * drawn.std, drawn.mean + BAND * drawn.std
            ax.fill_between(at, low, high, color=READER, alpha=0.22, linewidth=0, label="95 % band")
            ax.plot(at, drawn.mean, color=READER, linewidth=1.4, label="DP-Cloaking, one draw")
            ax.plot(at, kept, color=DROPOUT, linewidth=2.0, linestyle=DASHES["dropout"], label="Dropout")
            draw_truth(ax, at, truth[state])
        one_scale(line)
    name_panels(panels, [f"ε = {epsilon:g}, δ = {DELTA:g}" for epsilon in EPSILONS])
    one_legend(figure, panels[0][0], 5)
    figure.suptitle(
        "DP-Cloaking: hides a change of one private output by one standard deviation of all of them", fontsize=11
    )
    return figure


def draw_zero_mean_noise(result: StudyResult) -> Figure:
    """The total noise of each output, with the mean estimated and with zero in its place."""
    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    for ax, alpha in zip(figure.subplots(1, len(ALPHAS), sharey=True), ALPHAS, strict=True):
        where = np.arange(len(STATES))
        for mean, colour, shift, hatch in zip(MEANS, (READER, PUBLISHED), (-0.19, 0.19), ("", "//"), strict=True):
            # in variances of the output, so that the four can stand side by side
            noise = [
                result.ablation[mean, state, alpha].noise.trace / float(np.var(result.truth[state])) for state in STATES
            ]
            label = "mean estimated" if mean == "constant" else "zero mean"
            bars = ax.bar(where + shift, noise, 0.36, color=colour, hatch=hatch, edgecolor="white", label=label)
            ax.bar_label(bars, [f"{value:.2g}" for value in noise], fontsize=7.5, padding=2)
        ax.set_yscale("log")
        ax.set_xticks(where, [LABELS[state].split(" (")[0] for state in STATES], fontsize=12)
        ax.set_title(f"α = {alpha:g}", fontsize=10)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    first = figure.axes[0]
    first.set_ylabel("Tr Σ / variance of the output")
    one_legend(figure, first, 2)
    return figure


def draw_zero_mean_predictions(result: StudyResult) -> Figure:
    """One release of each output at α = ½, with the mean estimated (above) and with zero in its place (below)."""
    figure, panels = sheet(2, len(STATES), 15.0, 6.4)
    at = times_to_show(result)
    truth = truth_at(at)
    rows = result.truth["t"].to_numpy()
    for line, mean in zip(panels, MEANS, strict=True):
        for ax, state in zip(line, STATES, strict=True):
            mechanism = result.ablation[mean, state, ABLATED]
            published = result.truth[state].to_numpy() + draws(mechanism.noise, state, 1)
            cell = Cell(state, ABLATED, result.covers[0], mechanism, published, 0.0)
            seen, std = cell.means_at(at)[0], cell.std_at(at)
            band = (seen - BAND * std, seen + BAND * std)
            ax.fill_between(at, *band, color=READER, alpha=0.22, linewidth=0, label="95 % band")
            ax.plot(at, seen, color=READER, linewidth=1.6, label="reader's mean")
            draw_truth(ax, at, truth[state])
            ax.plot(rows, published[0], "o", color=PUBLISHED, markersize=2.8, label="published")
            ax.plot(at, mechanism.prior.mean_at(at), color=FLOOR, linewidth=1.2, label="prior mean")
        line[0].set_ylabel("mean estimated" if mean == "constant" else "zero mean")
    for ax, state in zip(panels[0], STATES, strict=True):
        ax.set_title(LABELS[state], fontsize=10)
    for ax in panels[1]:
        ax.set_xlabel("t (orbits)")
    one_legend(figure, panels[0][0], 6)
    figure.suptitle(f"α = {ABLATED:g}, with and without an estimated mean", fontsize=11)
    return figure
