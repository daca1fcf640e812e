"""Every picture fits its page: nothing is cut, no legend hides what it explains, slivers and far values can be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.legend import Legend

import sfumato as sf
from drawn import legend_of, line_of
from kernels import matern
from sfumato import plots
from sfumato.evaluate import Audit, Outcome
from sfumato.show import plot_audit

LONG = "mean_daily_temperature_in_the_shade_at_two_metres_above_the_ground [$ and °C $]"
LONGER = "number_of_vehicles_registered_in_the_municipality_per_thousand_inhabitants"
RNG = np.random.default_rng(3)


def line(column: str, output: str, region: sf.Region, noise: float = 0.01, alpha: float = 0.5) -> sf.Release:
    t = np.linspace(0.0, 30.0, 61)
    made = sf.protect(sf.Prior(matern(3.0), noise=noise), pd.DataFrame({column: t}), region, alpha, progress=False)
    return made.release(np.sin(t / 4) + np.sqrt(noise) * RNG.standard_normal(61), output_name=output)


def plane(first: str, second: str, high: float) -> sf.Release:
    X = pd.DataFrame({first: RNG.uniform(0, 100, 40), second: RNG.uniform(0, 10, 40)})
    region = sf.Box({first: (50.0, high), second: (4.0, 6.0)})
    prior = sf.Prior(matern([30.0, 4.0]), noise=0.01)
    return sf.protect(prior, X, region, 0.5, progress=False).release(np.sin(X[first] / 20), output_name=LONGER)


def several() -> sf.Release:
    names = [f"reading number {number} of the satellite" for number in range(5)]
    joint = sf.JointPrior.coregionalised(sf.Prior(matern(0.5), noise=0.01), 0.5 * np.eye(5) + 0.5, names)
    t = np.linspace(0.0, 3.0, 9)
    made = sf.protect(joint, pd.DataFrame({"t": t}), sf.Box({"t": (1, 2)}), 0.5, progress=False)
    return made.release(dict(zip(names, RNG.standard_normal((5, 9)), strict=True)))


THREE = sf.Box({"t": (3.0, 6.0)}) | sf.Box({"t": (12.0, 15.0)}) | sf.Box({"t": (20.0, 24.0)})
RELEASES: dict[str, Callable[[], sf.Release]] = {
    "a sliver": lambda: line("t", "r", sf.Box({"t": (14.0, 14.9)})),
    "three parts": lambda: line("t", "r", THREE),
    "huge noise": lambda: line("t", "r", sf.Box({"t": (10.0, 20.0)}), noise=1e-5, alpha=0.001),
    "long names": lambda: line(LONG, LONGER, sf.Box({LONG: (10.0, 20.0)})),
    "two long names": lambda: plane(LONG, LONGER, 80.0),
    "a sliver of a map": lambda: plane("age", "place", 52.0),
    "many outputs": several,
}


def pictures(case: str, release: sf.Release) -> dict[str, Any]:
    """All that can be drawn of a release, or of cases like others what differs."""
    outputs = release.design.inputs.outputs
    of = outputs.names[1] if outputs.numbered else None
    truth = (np.linspace(0.0, 3.0, 9), np.zeros(9))
    if case in ("three parts", "huge noise"):
        return {"both": plots.plot_both(release, truth)}
    if outputs.numbered:
        path = plots.plot_trajectory(release, outputs.names[0], outputs.names[1])
        return {"path": path, "covariance": plots.plot_covariance(release), "both": plots.plot_both(release, of=of)}
    drawn: dict[str, Any] = {
        "along": plots.plot_floor_along(release, 0),
        "slices": plots.plot_slices(release)[0],
        "covariance": plots.plot_covariance(release),
        "cells": plots.plot_cells(release),
    }
    if release.design.inputs.features == 1:
        drawn |= {"both": plots.plot_both(release, truth, title="A title")}
        drawn |= {"partial": plots.plot_partial(release, 0), "release": plots.plot_release(release)}
    else:
        drawn |= {"map": plots.plot_std_map(release), "noise": plots.plot_noise_map(release)}
    return drawn


def check(figure: Figure) -> None:
    """All that is drawn is on the page; legends hide no axes, no name and no other legend; ticks can be told apart."""
    figure.draw_without_rendering()
    drawn, page = figure.get_tightbbox(), figure.get_size_inches()
    assert np.all(drawn.min >= -0.01), drawn
    assert np.all(drawn.max <= page + 0.01), drawn
    legends = [one.get_window_extent().padded(-1.0) for one in figure.findobj(Legend)]
    for ax in figure.axes:
        inside = ax.patch.get_window_extent()
        assert min(inside.width, inside.height) > 60, "no room is left for the picture"
        names = [one.get_window_extent() for one in (ax.xaxis.label, ax.yaxis.label) if one.get_text()]
        others = [one for one in legends if one is not ax.get_legend()]
        for box in legends:
            assert not any(box.overlaps(one) for one in (inside, *names)), ax.get_xlabel()
            assert sum(box.overlaps(one) for one in others) == 1
        low, high = sorted(ax.get_xlim())
        ticks = [tick for place, tick in zip(ax.get_xticks(), ax.get_xticklabels()) if low <= place <= high]
        boxes = sorted((one.get_window_extent() for one in ticks if one.get_text()), key=lambda one: one.x0)
        assert all(left.x1 <= right.x0 + 1.0 for left, right in pairwise(boxes)), ax.get_xlabel()


@pytest.mark.parametrize("case", RELEASES)
def test_nothing_is_cut_and_no_legend_hides_what_it_explains(case: str) -> None:
    for name, drawn in pictures(case, RELEASES[case]()).items():
        try:
            check(drawn if isinstance(drawn, Figure) else drawn.figure)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def test_a_sliver_is_enlarged_beside_the_whole() -> None:
    release = RELEASES["a sliver"]()
    whole, beside = plots.plot_floor(release).figure.axes
    assert whole.get_xlim()[1] > 29
    assert 13 < beside.get_xlim()[0] < 14 < 14.9 < beside.get_xlim()[1] < 16
    reader = line_of(beside, "reader's standard deviation")
    np.testing.assert_allclose(reader[:, 1], release.predict(reader[:, 0]).std)
    assert len(reader) > 100
    assert len(plots.plot_floor(RELEASES["three parts"]()).figure.axes) == 1
    bare = Figure().subplots()
    assert plots.plot_floor(release, ax=bare).figure.axes == [bare]  # no layout would make room


def test_dates_are_dates_on_every_axis_and_in_every_word() -> None:
    days = pd.date_range("1980-01-01", "1990-01-01", freq="MS")
    X = pd.DataFrame({"date": days, "site": np.where(np.arange(len(days)) % 2, "north", "south")})
    kernel = matern([300.0, 1.0, 1.0])
    region = sf.Box({"date": ("1985-01-01", "1985-07-01"), "site": "north"})
    release = sf.protect(sf.Prior(kernel, noise=0.01), X, region, 0.5, progress=False).release(np.zeros(len(days)))
    ax = plots.plot_floor_along(release, "date")
    check(ax.figure)
    for panel, some in ((ax, "1984"), (ax.figure.axes[1], "Apr")):
        assert some in [tick.get_text() for tick in panel.get_xticklabels()]
    assert ax.get_xlabel() == "date (site = north)"
    assert "region: 1985-01-01 ≤ date ≤ 1985-07-01 and site = north" in " ".join(legend_of(ax)).replace("\n", " ")
    assert [one.get_xlabel() for one in plots.plot_slices(release)] == ["date"]
    assert [tick.get_text() for tick in plots.plot_covariance(release).get_yticklabels()][1] == "1982-01-01"
    only = sf.protect(sf.Prior(matern(300.0), noise=0.01), X[["date"]], sf.Box({"date": ("1985-01-01", None)}), 0.5)
    truth = line_of(plots.plot_release(only.release(np.zeros(len(days))), (days, np.ones(len(days)))), "truth")
    np.testing.assert_array_equal(truth[:2, 0], [3652, 3683])  # days from 1970 to 1980-01-01 and to 1980-02-01
    hour = pd.DataFrame({"when": pd.date_range("1980-01-01", periods=60, freq="min")})
    region = sf.Box({"when": ("1980-01-01T00:20", "1980-01-01T00:40")})
    minutes = plots.plot_floor(sf.protect(sf.Prior(matern(300.0), noise=0.01), hour, region, 0.5).release(np.zeros(60)))
    check(minutes.figure)
    assert [tick.get_text() for tick in minutes.get_xticklabels()][:3] == ["00:00", "00:10", "00:20"]


def test_values_beyond_the_scale_are_marked_and_counted() -> None:
    release = RELEASES["huge noise"]()
    ax = plots.plot_release(release)
    low, high = ax.get_ylim()
    beyond = int(np.sum((release.outputs < low) | (release.outputs > high)))
    assert beyond > 0
    assert f"published (▴▾ {beyond} beyond the scale)" in legend_of(ax)
    marks = [one for one in ax.get_lines() if one.get_marker() in "^v"]
    assert sum(len(one.get_xdata()) for one in marks) == beyond
    np.testing.assert_array_equal(line_of(ax, "published")[:, 1], release.outputs)
    band = release.predict(np.linspace(0, 30, 99))
    assert low <= np.min(band.mean - plots.BAND * band.std)
    assert np.max(band.mean + plots.BAND * band.std) <= high


def test_comparisons_fit_too(tmp_path: Path) -> None:
    X, region = pd.DataFrame({LONG: np.linspace(0.0, 30.0, 31)}), sf.Box({LONG: (10.0, 12.0)})
    y, prior = pd.Series(np.sin(X[LONG] / 4), name=LONGER), sf.Prior(matern(3.0), noise=0.01)
    ledger = sf.Ledger(tmp_path / "a.ledger")
    made = ledger.protect(prior, X, region, alpha=0.5, share=0.5, progress=False)
    ledger.record(made.release(y))
    check(plots.plot_history(ledger.remaining(region)).figure)
    check(plots.plot_tradeoff(sf.tradeoff(prior, X, region, [0.3, 0.6], y=y, ways=["joint", "dropout"])).figure)
    check(plots.plot_suggestion(sf.suggest(prior, X, region, alpha=0.5, output=LONGER)).figure)
    far = Outcome("a reader", 1.0, 1.0, 1.0, 1.0, 1.0, True, False, False, "none", "")
    near = replace(far, name="one who holds rows", rmse=1e-6, covered=False)
    figure = plot_audit(Audit(LONGER, 1, (far, near), (), made.certificate))
    check(figure)
    assert "further left than the scale (1)" in [text.get_text() for text in figure.legends[0].get_texts()]
    check(plots.plot_rehearsal(sf.rehearse(prior, X, y, region, alpha=0.5, advise=False)).figure)
