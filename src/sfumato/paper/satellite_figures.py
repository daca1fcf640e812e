"""The paper's figures of the satellite study, from what the study computed: predictions, averages and errors."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from ..arrays import Array, Mask
from ..data import ORBIT_RADIUS, SENSITIVE, STATES, simulate
from ..evaluate import dropout, unsecured
from ..show import BAND, FLOOR, PUBLISHED, READER, REGION, TRUTH
from .satellite_study import (
    ALPHAS,
    DELTA,
    EPSILONS,
    Cell,
    Cover,
    MeanChoice,
    StudyResult,
    cloaked,
    draws,
    hidden,
    naive_fit,
)

# What the figures of the satellite have in common: names with units, colours, the private orbit in grey.

LABELS = {
    "r": "$r$ (Earth radii)",
    "r_dot": r"$\dot{r}$ (Earth radii an orbit)",
    "theta": r"$\theta$ (radians)",
    "theta_dot": r"$\dot{\theta}$ (radians an orbit)",
}
# Two more of Okabe and Ito's colours; every line has a dash pattern of its own as well.
DROPOUT = "#CC79A7"
STATIONARY = "#E69F00"
DASHES = {"truth": (0, (4, 1.5)), "dropout": (0, (1, 1)), "stationary": (0, (5, 1.5, 1, 1.5))}

GRID_POINTS = 601


def times_to_show(result: StudyResult) -> Array:
    """A dense grid; with the authors' kernel, which knows nothing between its rows, the rows alone."""
    rows: Array = result.truth["t"].to_numpy()
    return np.union1d(np.linspace(0.0, 3.0, GRID_POINTS), rows) if result.settings == "paper" else rows


def truth_at(at: Array) -> dict[str, Array]:
    """The states of the satellite at the times ``at``."""
    orbit = simulate(at)
    return {state: orbit[state].to_numpy() for state in STATES}


def sheet(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[list[Axes]]]:
    """A figure of ``rows`` × ``columns`` panels over the same times."""
    figure = Figure(figsize=(width, height), layout="constrained")
    made = figure.subplots(rows, columns, sharex=True, squeeze=False)
    return figure, [[dress(ax) for ax in row] for row in made]


def dress(ax: Axes) -> Axes:
    """Shade the private orbit and take away what is not needed."""
    ax.axvspan(*SENSITIVE, color=REGION, linewidth=0, zorder=0, label="private orbit")
    ax.margins(x=0.015)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    # 1.0525 can be read; 5e-4 + 1.052 cannot
    ax.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
    ax.grid(True, axis="y", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8.5)
    return ax


def draw_truth(ax: Axes, at: Array, values: Array) -> None:
    ax.plot(at, values, color=TRUTH, linewidth=1.2, linestyle=DASHES["truth"], label="truth", zorder=4)


def one_legend(figure: Figure, ax: Axes, columns: int) -> None:
    """One legend below all panels, from the labels of ``ax``."""
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(
        once.values(),
        once.keys(),
        loc="outside lower center",
        ncol=columns,
        frameon=False,
        fontsize=9,
        handlelength=2.6,
    )


def one_scale(row: list[Axes]) -> None:
    """The same limits for the panels of a row: that levels differ is what they show."""
    limits = [ax.get_ylim() for ax in row]
    for ax in row:
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def name_panels(panels: list[list[Axes]], titles: list[str]) -> None:
    """Levels above the columns, outputs beside the rows, times below."""
    for ax, title in zip(panels[0], titles, strict=True):
        ax.set_title(title, fontsize=10)
    for row, state in zip(panels, STATES, strict=True):
        row[0].set_ylabel(LABELS[state], fontsize=9.5)
    for ax in panels[-1]:
        ax.set_xlabel("t (orbits)")


# The paper's Figure 2: the four states of the satellite over time, and its orbit in the plane.

EXAGGERATION = 200
"""How much the orbit's deviation from the circle is enlarged: the real one is thinner than any line."""


def draw_trajectory() -> Figure:
    """Four states over three orbits, with the second one marked as private; and the orbits as seen from above."""
    figure = Figure(figsize=(12.0, 6.6), layout="constrained")
    grid = figure.add_gridspec(4, 2, width_ratios=(1.25, 1.0))
    panels = [figure.add_subplot(grid[row, 0]) for row in range(4)]
    orbit = simulate(np.arange(1201) / 400)
    at = orbit["t"].to_numpy()
    private = (at >= SENSITIVE[0]) & (at <= SENSITIVE[1])
    for ax, state in zip(panels, STATES, strict=True):
        _draw_state(dress(ax), at, orbit[state].to_numpy(), private, LABELS[state])
    panels[-1].set_xlabel("t (orbits)")
    for ax in panels[:-1]:
        ax.tick_params(labelbottom=False)
    figure.align_ylabels(panels)
    _draw_orbit(
        figure.add_subplot(grid[:, 1], projection="polar"), orbit["r"].to_numpy(), orbit["theta"].to_numpy(), private
    )
    return figure


def _draw_state(ax: Axes, at: Array, values: Array, private: Mask, label: str) -> None:
    ax.plot(at, values, color=TRUTH, linewidth=1.5)
    ax.plot(at[private], values[private], color=PUBLISHED, linewidth=2.4)
    ax.set_ylabel(label.replace(" (", "\n("), fontsize=9)


def _draw_orbit(ax: Axes, r: Array, theta: Array, private: Mask) -> None:
    circle = r[0]
    enlarged = circle + EXAGGERATION * (r - circle)
    turns = np.linspace(0.0, 2 * np.pi, 361)
    ax.fill_between(turns, 0.0, 0.25, color="0.8", linewidth=0)
    ax.plot(turns, np.full_like(turns, circle), color="0.45", linewidth=1.0, linestyle=":", label="circle")
    ax.plot(theta[private], enlarged[private], color=PUBLISHED, linewidth=4.0, label="second orbit: private")
    # the three orbits lie on top of each other; a break keeps the first from being joined to the third
    others = np.where(private, np.nan, enlarged)
    ax.plot(theta, others, color=TRUTH, linewidth=1.2, linestyle=(0, (5, 2)), label="first and third orbit")
    ax.annotate("Earth\n(not to scale)", (0.0, 0.0), ha="center", va="center", fontsize=9)
    ax.set_yticks([])
    ax.set_title(
        f"the orbit from above; its distance from the circle\n({ORBIT_RADIUS:,.0f} km) is drawn {EXAGGERATION} times "
        "too large",
        fontsize=10,
    )
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, -0.16), ncol=2, frameon=False, fontsize=9)


# Two more figures of the satellite study: differential privacy, and what happens when no mean is estimated.

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
            made = cloaked(result.settings, result.models[state], rows, at, epsilon)
            drawn, std = made.draw(y, unsafe_seed=number), made.std()
            low, high = drawn - BAND * std, drawn + BAND * std
            ax.fill_between(at, low, high, color=READER, alpha=0.22, linewidth=0, label="95 % band")
            ax.plot(at, drawn, color=READER, linewidth=1.4, label="DP-Cloaking, one draw")
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
