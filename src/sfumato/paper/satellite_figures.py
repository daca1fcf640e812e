"""The paper's figures of the satellite study, from what the study computed: orbit, predictions, averages and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..arrays import Array, Mask
from ..data import ORBIT_RADIUS, SENSITIVE, STATES, simulate
from ..evaluate import dropout
from ..show import (
    BAND,
    DASHED,
    FLOOR,
    ORANGE,
    PUBLISHED,
    PURPLE,
    READER,
    REGION,
    TRUTH,
    draw_band,
    draw_floor,
    draw_prior,
    draw_reader,
    legend_of_figure,
    plain_axes,
    value_axes,
)
from .satellite_study import TIMES, Cell, MeanChoice, StudyResult, cloaked, draws, hidden, naive_fit
from .study import ALPHAS, DELTA, EPSILONS

LABELS = {
    "r": "$r$ (Earth radii)",
    "r_dot": r"$\dot{r}$ (Earth radii an orbit)",
    "theta": r"$\theta$ (radians)",
    "theta_dot": r"$\dot{\theta}$ (radians an orbit)",
}

#: Points of a curve where the kernel knows something between the rows.
GRID_POINTS = 601

#: How much the orbit's deviation from the circle is enlarged: the real one is thinner than any line.
EXAGGERATION = 200

MEANS: dict[MeanChoice, str] = {"constant": "mean estimated", "zero": "zero mean"}

#: The α of the paper's figure without a mean.
ABLATED = 0.5

#: Releases that are averaged over, the band that is shown of them, and what it is called.
REPLICATIONS, PERCENTILES = 100, (2.0, 98.0)

#: The bottom of the axes of errors, in prior variances.
LOWEST = 1e-6


def draw_all(result: StudyResult) -> dict[str, Figure]:
    """Every figure of the study by name; releases are those of the first cover and, where one is shown, of seed 0."""
    figures = {"trajectory": draw_trajectory()}
    figures |= {f"privacy-aware-alpha-{alpha:g}": draw_privacy_aware(result, alpha) for alpha in ALPHAS}
    figures |= {"averages": draw_averages(result), "mse": draw_mse(result), "dp": draw_dp(result)}
    return figures | draw_zero_mean(result)


def draw_zero_mean(result: StudyResult) -> dict[str, Figure]:
    """The two figures that compare a mean that is estimated with zero in its place."""
    noise, predictions = draw_zero_mean_noise(result), draw_zero_mean_predictions(result)
    return {"zero-mean-noise": noise, "zero-mean-predictions": predictions}


def dress(ax: Axes) -> Axes:
    """Shade the private orbit and take away what is not needed."""
    ax.axvspan(*SENSITIVE, color=REGION, linewidth=0, zorder=0, label="private orbit")
    value_axes(ax)
    ax.tick_params(labelsize=8.5)
    return ax


def legend_below(figure: Figure, ax: Axes, columns: int) -> None:
    """One legend below all panels, from the labels of ``ax``."""
    legend_of_figure(figure, [ax], "lower center", columns, handlelength=2.6)


def _sheet(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[list[Axes]]]:
    """A figure of ``rows`` × ``columns`` panels over the same times."""
    figure = Figure(figsize=(width, height), layout="constrained")
    made = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for ax in made[-1]:
        ax.set_xlabel("t (orbits)")
    return figure, [[dress(ax) for ax in row] for row in made]


def _states_and_levels(
    levels: Sequence[float], name: str, draw: Callable[[Axes, str, float], None], title: str, columns: int
) -> Figure:
    """A panel for each state and level; ``draw`` fills it."""
    figure, panels = _sheet(len(STATES), len(levels), 13.0, 10.0)
    for row, state in zip(panels, STATES, strict=True):
        for ax, level in zip(row, levels, strict=True):
            draw(ax, state, level)
        # that levels differ is what the panels of a row show
        limits = np.array([ax.get_ylim() for ax in row])
        for ax in row:
            ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        row[0].set_ylabel(LABELS[state], fontsize=9.5)
    for ax, level in zip(panels[0], levels, strict=True):
        ax.set_title(name.format(level), fontsize=10)
    legend_below(figure, panels[0][0], columns)
    figure.suptitle(title, fontsize=11)
    return figure


def _times(result: StudyResult) -> Array:
    """A dense grid; with the authors' kernel, which knows nothing between its rows, the rows alone."""
    return np.union1d(np.linspace(0.0, 3.0, GRID_POINTS), TIMES) if result.settings == "paper" else TIMES


def _draw_truth(ax: Axes, state: str, at: Array) -> None:
    ax.plot(at, simulate(at)[state].to_numpy(), color=TRUTH, linewidth=1.2, linestyle=DASHED, label="truth", zorder=4)


def _draw_dropout(ax: Axes, result: StudyResult, state: str, at: Array) -> None:
    kept = dropout(result.models[state].dropout, TIMES, result.truth[state].to_numpy(), hidden(TIMES)).mean_at(at)
    ax.plot(at, kept, color=PURPLE, linewidth=2.0, linestyle=(0, (1, 1)), label="Dropout")


def _draw_release(ax: Axes, cell: Cell, at: Array) -> None:
    """The first release: what readers make of it, and what was published."""
    draw_reader(ax, at, cell.means_at(at)[0], cell.std_at(at), band="95 % band")
    ax.plot(TIMES, cell.published[0], "o", color=PUBLISHED, markersize=2.8, label="published")


def _how(result: StudyResult) -> str:
    return "as the text says" if result.settings == "paper" else "as the scripts did, at the 61 rows"


def draw_trajectory() -> Figure:
    """The paper's Figure 2: four states over three orbits, the second one private, and the orbits seen from above."""
    figure = Figure(figsize=(12.0, 6.6), layout="constrained")
    grid = figure.add_gridspec(4, 2, width_ratios=(1.25, 1.0))
    panels = [dress(figure.add_subplot(grid[row, 0])) for row in range(4)]
    orbit = simulate(np.arange(1201) / 400)
    at = orbit["t"].to_numpy()
    private = hidden(at)
    for ax, state in zip(panels, STATES, strict=True):
        values = orbit[state].to_numpy()
        ax.plot(at, values, color=TRUTH, linewidth=1.5)
        ax.plot(at[private], values[private], color=PUBLISHED, linewidth=2.4)
        ax.set_ylabel(LABELS[state].replace(" (", "\n("), fontsize=9)
        ax.tick_params(labelbottom=ax is panels[-1])
    panels[-1].set_xlabel("t (orbits)")
    figure.align_ylabels(panels)
    above = figure.add_subplot(grid[:, 1], projection="polar")
    _draw_orbit(above, orbit["r"].to_numpy(), orbit["theta"].to_numpy(), private)
    return figure


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


def draw_privacy_aware(result: StudyResult, alpha: float) -> Figure:
    """One release of each output: what is published, what readers conclude, and how well they can know it."""
    figure, (above, below) = _sheet(2, len(STATES), 15.0, 6.4)
    at = _times(result)
    for state, values, knowledge in zip(STATES, above, below, strict=True):
        cell = result.cells[state, alpha, result.covers[0]]
        _draw_release(values, cell, at)
        _draw_dropout(values, result, state, at)
        naive = naive_fit(result.settings)(TIMES, cell.published[:1]).means_at(at)[0]
        values.plot(at, naive, color=ORANGE, linewidth=1.4, linestyle=(0, (5, 1.5, 1, 1.5)), label="Stationary")
        _draw_truth(values, state, at)
        _draw_knowledge(knowledge, cell, at)
        values.set_title(LABELS[state], fontsize=10)
    above[0].set_ylabel("value")
    below[0].set_ylabel("standard deviation")
    legend_below(figure, above[0], 8)
    handles, labels = below[0].get_legend_handles_labels()
    # without the private orbit, which the other legend has
    below[0].legend(handles[1:], labels[1:], frameon=False, fontsize=8.5, loc="upper left")
    figure.suptitle(f"privacy-aware release, α = {alpha:g} ({_how(result)})", fontsize=11)
    return figure


def _draw_knowledge(ax: Axes, cell: Cell, at: Array) -> None:
    prior, inside = cell.mechanism.prior, at[hidden(at)]
    std = np.sqrt(prior.variance(at))
    draw_prior(ax, at, std)
    ax.plot(at, cell.std_at(at), color=READER, linewidth=1.6, label="reader")
    draw_floor(ax, inside, cell.mechanism.tolerance.floor(prior, inside[:, None]))
    ax.set_ylim(0.0, 1.45 * float(std[0]))


def draw_averages(result: StudyResult) -> Figure:
    """The mean of the readers' means over releases, with the band that holds 96 % of them."""
    at, shown = _times(result), min(result.seeds, REPLICATIONS)

    def draw(ax: Axes, state: str, alpha: float) -> None:
        means = result.cells[state, alpha, result.covers[0]].means_at(at)[:shown]
        low, high = np.percentile(means, PERCENTILES, axis=0)
        draw_band(ax, at, low, high, "96 % of the readers' means")
        ax.plot(at, means.mean(axis=0), color=READER, linewidth=1.6, label="average of the readers' means")
        ax.plot(at, _bare(result, state, at), color=FLOOR, linewidth=2.6, alpha=0.55, label="same GP without noise")
        _draw_truth(ax, state, at)

    return _states_and_levels(ALPHAS, "α = {:g}", draw, f"averages over {shown} releases ({_how(result)})", 5)


def draw_mse(result: StudyResult) -> Figure:
    """How far readers' means are from those of the same process without noise: squares, on a logarithmic axis."""
    at, shown = _times(result), min(result.seeds, REPLICATIONS)

    def draw(ax: Axes, state: str, alpha: float) -> None:
        scale = float(result.models[state].owner.variance(at[:1])[0])
        means = result.cells[state, alpha, result.covers[0]].means_at(at)[:shown]
        squares = (means - _bare(result, state, at)) ** 2
        # 0 has no place on a logarithmic axis
        low, high = np.maximum(np.percentile(squares, PERCENTILES, axis=0), LOWEST * scale / 100)
        draw_band(ax, at, low, high, "96 % of the releases")
        mean = np.maximum(squares.mean(axis=0), LOWEST * scale / 100)
        ax.plot(at, mean, color=READER, linewidth=1.6, label="mean over the releases")
        ax.axhline(scale, color=TRUTH, linewidth=1.0, linestyle=":", label="prior variance")
        ax.set_yscale("log")
        ax.set_ylim(LOWEST * scale, 30.0 * scale)

    what = "squared difference from the mean of the same GP without noise"
    return _states_and_levels(ALPHAS, "α = {:g}", draw, f"{what}, {shown} releases ({_how(result)})", 4)


def _bare(result: StudyResult, state: str, at: Array) -> Array:
    return result.models[state].owner.condition(TIMES, result.truth[state].to_numpy()).mean_at(at)


def draw_dp(result: StudyResult) -> Figure:
    """One honest draw of DP-Cloaking at each ε, with the band of one draw."""
    at = _times(result)

    def draw(ax: Axes, state: str, epsilon: float) -> None:
        made = cloaked(result.settings, result.models[state], at, epsilon)
        drawn, std = made.draw(result.truth[state].to_numpy(), unsafe_seed=STATES.index(state)), made.std()
        draw_band(ax, at, drawn - BAND * std, drawn + BAND * std, "95 % band")
        ax.plot(at, drawn, color=READER, linewidth=1.4, label="DP-Cloaking, one draw")
        _draw_dropout(ax, result, state, at)
        _draw_truth(ax, state, at)

    what = "DP-Cloaking: hides a change of one private output by one standard deviation of all of them"
    return _states_and_levels(EPSILONS, f"ε = {{:g}}, δ = {DELTA:g}", draw, what, 5)


def draw_zero_mean_noise(result: StudyResult) -> Figure:
    """The total noise of each output, with the mean estimated and with zero in its place."""
    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    panels = figure.subplots(1, len(ALPHAS), sharey=True)
    where = np.arange(len(STATES))
    looks: dict[MeanChoice, Any] = {
        "constant": {"color": READER, "hatch": ""},
        "zero": {"color": PUBLISHED, "hatch": "//"},
    }
    for ax, alpha in zip(panels, ALPHAS, strict=True):
        for (mean, look), shift in zip(looks.items(), (-0.19, 0.19), strict=True):
            # in variances of the output, so that the four can stand side by side
            traces = [result.ablation[mean, state, alpha].noise.trace for state in STATES]
            noise = [trace / float(np.var(result.truth[state])) for trace, state in zip(traces, STATES, strict=True)]
            bars = ax.bar(where + shift, noise, 0.36, edgecolor="white", label=MEANS[mean], **look)
            ax.bar_label(bars, [f"{value:.2g}" for value in noise], fontsize=7.5, padding=2)
        ax.set_yscale("log")
        ax.set_xticks(where, [LABELS[state].split(" (")[0] for state in STATES], fontsize=12)
        ax.set_title(f"α = {alpha:g}", fontsize=10)
        plain_axes(ax)
    panels[0].set_ylabel("Tr Σ / variance of the output")
    legend_below(figure, panels[0], 2)
    return figure


def draw_zero_mean_predictions(result: StudyResult) -> Figure:
    """One release of each output at α = ½, with the mean estimated (above) and with zero in its place (below)."""
    figure, panels = _sheet(2, len(STATES), 15.0, 6.4)
    at = _times(result)
    for row, (mean, words) in zip(panels, MEANS.items(), strict=True):
        for ax, state in zip(row, STATES, strict=True):
            mechanism = result.ablation[mean, state, ABLATED]
            published = result.truth[state].to_numpy() + draws(mechanism.noise, state, 1)
            _draw_release(ax, Cell(state, ABLATED, result.covers[0], mechanism, published, 0.0), at)
            _draw_truth(ax, state, at)
            ax.plot(at, mechanism.prior.mean_at(at), color=FLOOR, linewidth=1.2, label="prior mean")
        row[0].set_ylabel(words)
    for ax, state in zip(panels[0], STATES, strict=True):
        ax.set_title(LABELS[state], fontsize=10)
    legend_below(figure, panels[0][0], 6)
    figure.suptitle(f"α = {ABLATED:g}, with and without an estimated mean", fontsize=11)
    return figure
