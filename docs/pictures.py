"""Make the pictures of the documentation again: ``python docs/pictures.py``, or some of them by name."""

from __future__ import annotations

import sys
from pathlib import Path

import gpytorch
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

import sfumato as sf
from sfumato.plots import plot_cells, plot_noise_map, plot_rehearsal, plot_std_map, plot_suggestion, plot_tradeoff

IMAGES = Path(__file__).parent / "images"


def matern(lengthscales: list[float], std: float) -> gpytorch.kernels.Kernel:
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=len(lengthscales)))
    kernel = kernel.double()
    kernel.outputscale, kernel.base_kernel.lengthscale = std**2, torch.tensor([lengthscales])
    return kernel


def tradeoff_of_incomes() -> Figure:
    """Incomes over age, those of the oldest protected: what each level costs elsewhere."""
    ages = pd.DataFrame({"age": np.arange(20.0, 91.0, 0.5)})
    prior = sf.Prior(matern([5.0], 12_000.0), mean=35_000.0, noise=8_000.0**2)
    found = sf.tradeoff(prior, ages, sf.Box({"age": (75, 90)}), output="income ($)")
    print(found)
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    plot_tradeoff(found, ax=figure.subplots())
    return figure


def suggestion_for_incomes() -> Figure:
    """The same incomes: the strongest floor of each promise that costs a tenth of the accuracy, and by its noise."""
    ages = pd.DataFrame({"age": np.arange(20.0, 91.0, 0.5)})
    prior = sf.Prior(matern([5.0], 12_000.0), mean=35_000.0, noise=8_000.0**2)
    region, named = sf.Box({"age": (75, 90)}), "income ($)"
    figure = Figure(figsize=(9.8, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, asked in ((left, {"max_loss": 0.1}), (right, {"max_noise": 10_000.0})):
        found = sf.suggest(prior, ages, region, output=named, **asked)
        print(found)
        plot_suggestion(found, ax=ax)
    return figure


def maps_of_incomes() -> Figure:
    """The same over age and place: what readers know of the mean income, and how much each row is blurred."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.uniform(20, 90, 300), "place": rng.uniform(0, 10, 300)})
    income = 30 + 0.2 * people["age"] + 3 * np.sin(people["place"]) + rng.normal(0, 2, 300)
    prior = sf.Prior(matern([12.0, 2.0], 10.0), mean=45.0, noise=4.0)
    region = sf.Box({"age": (60, 80), "place": (3, 7)})
    release = sf.protect(prior, people, region, alpha=0.3).release(income, output_name="income")
    figure = Figure(figsize=(9.4, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_std_map(release, ax=left, label="reader's std of income (1000 $)")
    plot_noise_map(release, ax=right, label="std of the noise (1000 $)")
    return figure


def cells_of_regions() -> Figure:
    """The patches on which a floor is proved: along one column, and over two."""
    times = pd.DataFrame({"t": np.linspace(0, 3, 31)})
    line = sf.protect(sf.Prior(matern([0.4], 1.0), noise=0.01), times, sf.Box({"t": (1, 2)}), alpha=0.5)
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.uniform(20, 90, 120), "place": rng.uniform(0, 10, 120)})
    prior = sf.Prior(matern([15.0, 3.0], 10.0), mean=45.0, noise=4.0)
    plane = sf.protect(prior, people, sf.Box({"age": (50, 80), "place": (2, 7)}), alpha=0.4)
    figure = Figure(figsize=(9.8, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(6, 5))
    plot_cells(line, ax=left)
    plot_cells(plane, ax=right)
    return figure


def rehearsal_of_months() -> Figure:
    """A season that a prior does not know: look-alikes of a year and a half, and what a rival makes of them."""
    t = np.arange(120) / 12
    y = 5 * t + 4 * np.sin(2 * np.pi * t) + 0.5 * np.random.default_rng(0).standard_normal(120)
    months, region = pd.DataFrame({"year": t}), sf.Box({"year": (4, 5.5)})
    prior = sf.fit_prior(months, y, kernel="matern52", exclude=region)
    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    plot_rehearsal(sf.rehearse(prior, months, y, region, alpha=0.3, advise=False), ax=figure.subplots())
    return figure


def two_objectives() -> Figure:
    """One promise, kept by the least noise and by the noise with the best predictions outside (docs/choosing.md)."""
    t = np.linspace(0, 3, 61)
    y = 20 + 5 * np.sin(2 * t) + np.random.default_rng(0).normal(0, 0.2, t.size)
    region, fine = sf.Box(1, 2), np.linspace(0, 3, 301)
    prior = sf.fit_prior(t, y, kernel="matern52", lengthscale=0.3, noise=0.04, exclude=region)
    figure = Figure(figsize=(7.6, 5.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for objective, words, colour in (
        ("noise", "least noise", "#d95f02"),
        ("predictions", "best predictions", "#1f6fb2"),
    ):
        release = sf.protect(prior, t, region, alpha=0.1, objective=objective).release(y, unsafe_seed=1)
        above.plot(fine, release.predict(fine).std, color=colour, label=words)
        below.plot(t, release.outputs, "o", markersize=3.6, color=colour, label=f"published: {words}")
    floor = np.sqrt(0.9 * prior.variance(fine))
    hidden = (fine >= 1) & (fine <= 2)
    above.plot(
        fine[hidden], floor[hidden], color="#1b9e77", linewidth=2.2, linestyle=(0, (2, 1)), label="promised floor"
    )
    below.plot(t, y, color="black", linewidth=1.0, linestyle="--", label="truth")
    for panel, name in ((above, "reader's std of f"), (below, "y")):
        panel.axvspan(1, 2, color="0.92", zorder=0)
        panel.set_ylabel(name)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=9, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    above.set_ylim(bottom=0.0)
    below.set_xlabel("t")
    return figure


def main() -> None:
    pictures = {
        "tradeoff": tradeoff_of_incomes,
        "suggestion": suggestion_for_incomes,
        "maps": maps_of_incomes,
        "cells": cells_of_regions,
        "rehearsal": rehearsal_of_months,
        "objectives": two_objectives,
    }
    for name in sys.argv[1:] or pictures:
        figure = pictures[name]()
        path = IMAGES / f"{name}.png"
        figure.savefig(path, dpi=100)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
