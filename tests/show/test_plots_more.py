"""Maps, slices, covariances and paths show what the release says, on the axes they are given, or refuse in words."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sfumato as sf
from drawn import legend_of, line_of
from kernels import matern, rbf
from sfumato import plots
from sfumato.plots import (
    plot_covariance,
    plot_floor_along,
    plot_history,
    plot_noise_map,
    plot_partial,
    plot_slices,
    plot_std_map,
    plot_trajectory,
)

T = np.linspace(0.0, 3.0, 25)
RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame({"age": RNG.uniform(20, 90, 60), "place": RNG.uniform(0, 10, 60)})
VALUES = 0.4 * PEOPLE["age"].to_numpy() + np.sin(PEOPLE["place"].to_numpy())


@pytest.fixture(scope="module")
def mechanism() -> sf.Mechanism:
    prior = sf.Prior(matern([20.0, 4.0], 100.0), mean=25.0, noise=4.0)
    return sf.protect(prior, PEOPLE, sf.Box({"age": (60, 80), "place": (3, 7)}), alpha=0.4, progress=False)


@pytest.fixture(scope="module")
def release(mechanism: sf.Mechanism) -> sf.Release:
    return mechanism.release(VALUES, output_name="income")


@pytest.fixture(scope="module")
def line() -> sf.Release:
    made = sf.protect(
        sf.Prior(matern(0.4), noise=0.01), pd.DataFrame({"t": T}), sf.Box({"t": (1, 2)}), 0.5, progress=False
    )
    return made.release(np.sin(T), output_name="r")


@pytest.fixture(scope="module")
def path() -> sf.Release:
    joint = sf.JointPrior.coregionalised(sf.Prior(rbf(0.5), noise=0.01), [[1.0, 0.6], [0.6, 1.0]], ["r", "theta"])
    made = sf.protect(joint, pd.DataFrame({"t": T}), sf.Box({"t": (1, 2)}), 0.5, progress=False)
    return made.release({"r": np.cos(T), "theta": np.sin(T)}, unsafe_seed=1)


def _colour_label(ax: Axes) -> str:
    return next(child for child in ax.child_axes).get_ylabel()


def test_std_map_shows_what_readers_know(release: sf.Release) -> None:
    given = Figure().subplots()
    ax = plot_std_map(release, ax=given)
    assert ax is given
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "place")
    assert _colour_label(ax) == "reader's std of income"
    assert legend_of(ax) == ["row of the data", "region: 60 ≤ age ≤ 80 and 3 ≤ place ≤ 7"]
    drawn = ax.collections[0]
    grid = np.stack(np.meshgrid(np.linspace(20, 90, 41), np.linspace(0, 10, 41)), axis=-1).reshape(-1, 2)
    low, high = drawn.get_clim()
    assert low == 0.0
    assert high == pytest.approx(release.predict(grid).std.max(), rel=0.02)
    assert _colour_label(plot_std_map(release, label="std (1000 $)")) == "std (1000 $)"


def test_region_is_outlined_at_its_borders(release: sf.Release) -> None:
    ax = plot_std_map(release)
    border = np.vstack([path.vertices for path in ax.collections[-1].get_paths()])
    np.testing.assert_allclose(border.min(axis=0), [60, 3], atol=0.2)
    np.testing.assert_allclose(border.max(axis=0), [80, 7], atol=0.2)


def test_noise_map_shows_the_noise_of_each_row(mechanism: sf.Mechanism, release: sf.Release) -> None:
    for source in (mechanism, release):
        ax = plot_noise_map(source)
        drawn = ax.collections[0]
        np.testing.assert_allclose(np.sort(np.asarray(drawn.get_array())), np.sort(np.sqrt(release.noise.variance())))
        assert len(drawn.get_offsets()) == 60
    assert _colour_label(ax) == "std of the noise on income"


def test_points_are_crosses_on_a_map() -> None:
    prior = sf.Prior(matern([20.0, 4.0]), noise=0.1)
    made = sf.protect(prior, PEOPLE, sf.Points([[50.0, 5.0]]), alpha=0.5, progress=False).release(VALUES)
    ax = plot_std_map(made)
    assert any(one.get_marker() == "X" and one.get_xdata()[0] == 50.0 for one in ax.get_lines())


def test_covariance_is_ordered_and_centred(line: sf.Release, mechanism: sf.Mechanism) -> None:
    shuffled = RNG.permutation(25)
    prior = sf.Prior(matern(0.4), noise=0.01)
    made = sf.protect(prior, pd.DataFrame({"t": T[shuffled]}), sf.Box({"t": (1, 2)}), 0.5, progress=False)
    shown = np.asarray(plot_covariance(made).images[0].get_array())
    np.testing.assert_allclose(shown, line.noise.covariance(), atol=1e-6)
    given = Figure().subplots()
    ax = plot_covariance(line, ax=given)
    assert ax is given
    low, high = ax.images[0].get_clim()
    assert low == -high
    assert ax.get_xlabel() == "rows, by t"
    assert _colour_label(ax) == "covariance of the noise on r"
    assert legend_of(ax) == ["region: 1 ≤ t ≤ 2"]
    assert plot_covariance(mechanism, by="place").get_ylabel() == "rows, by place"
    with pytest.raises(sf.InputError, match="column is 'size'; choose one of 'age', 'place'"):
        plot_covariance(mechanism, by="size")


def test_covariance_of_several_outputs_names_them(path: sf.Release) -> None:
    ax = plot_covariance(path)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["r", "theta"]


def test_floor_along_a_column_through_the_worst_input(release: sf.Release) -> None:
    given = Figure().subplots()
    ax = plot_floor_along(release, "age", ax=given)
    assert ax is given
    reader, floor = line_of(ax, "reader's standard deviation"), line_of(ax, "promised floor")
    worst = release.certificate.worst_input
    points = np.column_stack([reader[:, 0], np.full(len(reader), worst[1])])
    np.testing.assert_allclose(reader[:, 1], release.predict(points).std)
    inside = np.isfinite(floor[:, 1])
    assert np.all(reader[inside, 1] >= floor[inside, 1] * (1 - 1e-6))
    np.testing.assert_allclose(floor[inside, 1], 10 * np.sqrt(0.6))
    assert line_of(ax, "worst input")[0, 0] == worst[0]
    assert ax.get_xlabel() == f"age (place = {worst[1]:.4g})"
    assert ax.get_ylabel() == "std of income"


@pytest.mark.parametrize("at", [[70.0, 1.0], {"place": 1.0, "age": 70.0}, pd.Series({"place": 1.0, "age": 70.0})])
def test_floor_along_a_column_through_any_input(release: sf.Release, at: object) -> None:
    ax = plot_floor_along(release, 1, at=at)
    assert ax.get_xlabel() == "place (age = 70)"
    assert not [text for text in legend_of(ax) if text.startswith("worst input")]


def test_slices_have_one_panel_a_column(release: sf.Release) -> None:
    panels = plot_slices(release)
    assert [ax.get_xlabel() for ax in panels] == ["age", "place"]
    assert panels[0].get_ylim() == panels[1].get_ylim()
    mean = line_of(panels[1], "reader's mean")
    worst = release.certificate.worst_input
    np.testing.assert_allclose(
        mean[:, 1], release.predict(np.column_stack([np.full(len(mean), worst[0]), mean[:, 0]])).mean
    )
    (legend,) = panels[0].figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert {"reader's mean", "reader's 95 % band"} <= set(texts)
    assert any(text.startswith("input in common: age = ") for text in texts)
    given = Figure().subplots(2)
    assert plot_slices(release, ax=given, at=[30.0, 2.0]) == list(given)
    assert plot_slices(release, columns=["place"])[0].get_xlabel() == "place"
    with pytest.raises(sf.InputError, match="ax has 2 axes, but there are 1 columns"):
        plot_slices(release, columns=["age"], ax=given)
    with pytest.raises(sf.InputError, match="columns is 'age'; give a list"):
        plot_slices(release, columns="age")


def test_partial_dependence_is_the_mean_over_the_rows(release: sf.Release) -> None:
    ax = plot_partial(release, "age")
    mean = line_of(ax, "average of the reader's means")
    points = PEOPLE.assign(age=mean[10, 0])
    seen = release.predict(points)
    assert mean[10, 1] == pytest.approx(seen.mean.mean())
    band = ax.collections[0].get_paths()[0].vertices
    here = band[np.isclose(band[:, 0], mean[10, 0]), 1]
    std = np.sqrt(seen.covariance().mean())
    assert np.ptp(here) == pytest.approx(2 * plots.BAND * std, rel=1e-6)
    assert "middle 80 % of the rows' means" in legend_of(ax)
    assert ax.get_ylabel() == "average of income"


def test_one_input_has_a_partial_dependence_too(line: sf.Release) -> None:
    mean = line_of(plot_partial(line, "t"), "average of the reader's means")
    np.testing.assert_allclose(mean[:, 1], line.predict(mean[:, 0]).mean)


def test_path_of_a_joint_release_has_its_covariance(path: sf.Release) -> None:
    given = Figure().subplots()
    ax = plot_trajectory(path, "r", "theta", truth=(np.cos(T), np.sin(T)), ax=given)
    assert ax is given
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("r", "theta")
    assert {"reader's path in the region", "95 % of the reader", "published", "truth (the owner's)"} <= set(
        legend_of(ax)
    )
    # the first ellipse, at t = 0, against the reader's covariance of both outputs there
    shape = ax.collections[0].get_paths()[0].vertices[:49]
    rows = len(path.design.inputs)
    blur = path.noise.covariance() + np.diag(path.prior.noise_variance(rows) + path.steps**2 / 12)
    reader = path.prior.condition(path.design.inputs, path.outputs, blur)
    covariance = reader.covariance([[0.0, 0.0], [0.0, 1.0]])
    centred = shape - [path.predict([0.0], "r").mean[0], path.predict([0.0], "theta").mean[0]]
    reach = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(covariance), centred)
    np.testing.assert_allclose(reach, -2 * np.log(0.05), rtol=1e-6)


def test_path_of_a_pair_in_polar_coordinates(line: sf.Release) -> None:
    frame = pd.DataFrame({"t": T})
    angle = sf.protect(sf.Prior(matern(0.4), noise=0.01), frame, sf.Box({"t": (1, 2)}), 0.5, progress=False).release(T)
    ax = plot_trajectory((line, angle), polar=True, labels=("r (km)", "θ (rad)"))
    assert ax.name == "polar"
    assert ax.get_legend().get_title().get_text() == "radius: r (km); angle: θ (rad)"
    with pytest.raises(sf.InputError, match="polar is True, but ax is not polar"):
        plot_trajectory((line, angle), polar=True, ax=Figure().subplots())


def test_wrong_dimensions_are_refused_in_words(line: sf.Release, release: sf.Release, path: sf.Release) -> None:
    with pytest.raises(sf.InputError, match=r"has 1 input \(t\); a map is for two. Use plot_release"):
        plot_std_map(line)
    with pytest.raises(sf.InputError, match="a map is for two"):
        plot_noise_map(line)
    with pytest.raises(sf.InputError, match=r"has 2 inputs \(age, place\); a path runs over one"):
        plot_trajectory((release, release))
    with pytest.raises(sf.InputError, match="about 'r' alone, and a path has two outputs"):
        plot_trajectory(line)
    with pytest.raises(sf.InputError, match="choose two of 'r', 'theta'"):
        plot_trajectory(path, "r", "r")
    with pytest.raises(sf.InputError, match="column is 'height'; choose one of 'age', 'place'"):
        plot_floor_along(release, "height")
    with pytest.raises(sf.InputError, match="of is 'wage', but this release is about 'income'"):
        plot_partial(release, "age", of="wage")
    with pytest.raises(sf.InputError, match="of is missing, and there are 2 outputs; choose one of 'r', 'theta'"):
        plot_floor_along(path, "t")
    with pytest.raises(sf.InputError, match="release is a Mechanism"):
        plot_std_map(sf.protect(sf.Prior(matern(0.4), noise=0.1), T, sf.Points([[0.5]]), 0.5))  # type: ignore[arg-type]
    with pytest.raises(sf.InputError, match="at has 1 feature"):
        plot_floor_along(release, "age", at=[70.0])


def test_each_of_several_outputs_can_be_drawn(path: sf.Release) -> None:
    ax = plot_floor_along(path, "t", of="theta")
    assert ax.get_ylabel() == "std of theta"
    assert np.any(np.isfinite(line_of(ax, "promised floor")[:, 1]))
    assert plot_slices(path, of="r")[0].get_ylabel() == "r"


def test_all_pictures_are_found_in_one_place() -> None:
    assert {name for name in plots.__all__ if name.startswith("plot_")} == {
        name for name in dir(plots) if name.startswith("plot_") and callable(getattr(plots, name))
    }
    assert plot_history is plots.plot_history


def test_pyplot_is_never_imported(release: sf.Release) -> None:
    already = "matplotlib.pyplot" in sys.modules
    plot_std_map(release)
    plot_slices(release)
    assert ("matplotlib.pyplot" in sys.modules) == already
