"""Pictures show what the release says, on the axes they are given."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import sfumato as sf
from drawn import legend_of, legends_are_whole, line_of
from kernels import matern
from sfumato.plots import plot_both, plot_floor, plot_release

PRIOR = sf.Prior(matern(0.4), noise=0.01)
TIMES = np.linspace(0.0, 3.0, 25)
VALUES = np.sin(2 * TIMES)


@pytest.fixture(scope="module")
def release() -> sf.Release:
    frame = pd.DataFrame({"t": TIMES})
    return sf.protect(PRIOR, frame, sf.Box({"t": (1.0, 2.0)}), alpha=0.5, progress=False).release(
        VALUES, output_name="r"
    )


def test_release_picture_shows_the_published_points_and_the_reader(release: sf.Release) -> None:
    ax = plot_release(release, truth=(TIMES, VALUES))
    np.testing.assert_array_equal(line_of(ax, "published"), np.column_stack([TIMES, release.outputs]))
    np.testing.assert_array_equal(line_of(ax, "truth")[:, 1], VALUES)
    reader = line_of(ax, "reader's mean")
    np.testing.assert_allclose(reader[:, 1], release.predict(reader[:, 0]).mean)
    assert ax.get_xlabel() == "t"
    assert ax.get_ylabel() == "r"


def test_floor_picture_has_the_reader_above_the_floor(release: sf.Release) -> None:
    ax = plot_floor(release)
    reader, floor = line_of(ax, "reader's standard deviation"), line_of(ax, "promised floor")
    inside = np.isfinite(floor[:, 1])
    np.testing.assert_array_equal(inside, (floor[:, 0] >= 1) & (floor[:, 0] <= 2))
    assert np.all(reader[inside, 1] >= floor[inside, 1] * (1 - 1e-9))
    worst = line_of(ax, "worst input")[0]
    assert worst[0] == pytest.approx(release.certificate.worst_input[0])
    assert ax.get_ylim()[0] == 0.0


def test_pictures_go_on_the_axes_that_are_given(release: sf.Release) -> None:
    first, second = Figure().subplots(2)
    assert plot_release(release, ax=first) is first
    assert plot_floor(release, ax=second, label="σ") is second
    assert second.get_ylabel() == "σ"


def test_pyplot_is_never_imported(release: sf.Release) -> None:
    already = "matplotlib.pyplot" in sys.modules
    plot_both(release)
    assert ("matplotlib.pyplot" in sys.modules) == already


def test_figure_file_is_a_png_of_some_size(release: sf.Release, tmp_path: Path) -> None:
    path = tmp_path / "both.png"
    plot_both(release, truth=(TIMES, VALUES), output="r (m)", over="t (s)", title="r").savefig(path, dpi=100)
    raw = path.read_bytes()
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")
    assert (width, height) == (720, 620)


@pytest.mark.parametrize(
    ("region", "asked"),
    [
        (sf.Points([[0.5], [3.5]]), {"alpha": 0.5}),
        (sf.Points([[0.5]]), {"tolerance": sf.MatrixTolerance([[0.3]])}),
        (sf.Box(1.0, 2.0), {"alpha": 0.5, "cover": "rows"}),
        (sf.Box(1.0, 2.0), {"floor": lambda s: 0.3 + 0.1 * s[:, 0]}),
        (sf.Everywhere(), {"alpha": 0.5}),
        (sf.Box(0.5, 1.0) | sf.Box(2.0, 2.5), {"alpha": 0.5}),
    ],
)
def test_every_kind_of_promise_can_be_drawn(region: object, asked: dict[str, object], tmp_path: Path) -> None:
    mechanism = sf.protect(PRIOR, TIMES, region, **asked, progress=False)  # type: ignore[arg-type]
    path = tmp_path / "r.sfumato"
    mechanism.release(VALUES).save(path)
    floor = line_of(plot_floor(sf.load(path)), "promised floor")[:, 1]
    assert np.any(np.isfinite(floor))
    assert plot_both(sf.load(path)).axes[0].get_ylabel() == "y"


def test_two_inputs_are_refused() -> None:
    X = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), axis=-1).reshape(-1, 2)
    release = sf.protect(PRIOR, X, sf.Points([[0.0, 0.0]]), alpha=0.5, progress=False).release(X[:, 0])
    with pytest.raises(sf.InputError, match="has 2 inputs"):
        plot_release(release)


def test_each_of_several_outputs_can_be_drawn():
    t = np.linspace(0.0, 3.0, 13)
    joint = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "v": sf.Derivative()}, noise={"v": 0.01})
    release = sf.protect(joint, t, {"v": sf.Box(1.0, 2.0)}, alpha=0.4).release({"r": np.sin(t), "v": np.cos(t)})
    figure = plot_both(release, (t, np.cos(t)), of="v")
    assert [ax.get_ylabel() for ax in figure.axes] == ["v", "std of v"]
    shown = next(line for line in figure.axes[0].get_lines() if line.get_label() == "published")
    assert np.array_equal(shown.get_ydata(), release.rows_of("v")[1])
    assert legends_are_whole(figure)
    labels = legend_of(figure.axes[1])
    assert any("worst input" in label for label in labels)
    assert "promised floor" in labels
    # nothing is promised of r, so no floor is drawn
    other = plot_floor(release, of="r")
    assert "promised floor" not in legend_of(other)
    with pytest.raises(sf.InputError, match="choose one of 'r', 'v'"):
        plot_release(release)


def test_the_only_output_may_be_named(release: sf.Release) -> None:
    named, unnamed = (plot_floor(release, of=of) for of in (release.output_name, None))
    assert named.get_ylabel() == unnamed.get_ylabel() == f"std of {release.output_name}"
    for one, other in zip(named.get_lines(), unnamed.get_lines(), strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
