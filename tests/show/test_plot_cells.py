"""The picture of the cells shows a proof that was made again: whole, true to the readers, and honest about the rest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import sfumato as sf
from drawn import legend_of, legends_are_whole, line_of
from kernels import matern, rbf
from sfumato.plots import plot_cells

T = np.linspace(0.0, 3.0, 25)
RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame({"age": RNG.uniform(20, 90, 60), "place": RNG.uniform(0, 10, 60)})


@pytest.fixture(scope="module")
def line() -> sf.Mechanism:
    prior = sf.Prior(matern(0.4, nu=2.5), noise=0.01)
    return sf.protect(prior, pd.DataFrame({"t": T}), sf.Box({"t": (1, 2)}), 0.5, progress=False)


@pytest.fixture(scope="module")
def plane() -> sf.Mechanism:
    prior = sf.Prior(matern([20.0, 4.0], 100.0, nu=2.5), mean=25.0, noise=4.0)
    return sf.protect(prior, PEOPLE, sf.Box({"age": (60, 80), "place": (3, 7)}), alpha=0.4, progress=False)


def rectangles(ax: Axes) -> np.ndarray:
    """left, bottom, right and top of all patches that are drawn."""
    paths = [path for shown in ax.collections if type(shown) is PolyCollection for path in shown.get_paths()]
    corners = np.stack([path.vertices[:4] for path in paths])
    return np.hstack([corners.min(axis=1), corners.max(axis=1)])


def title_of(ax: Axes) -> str:
    return ax.get_legend().get_title().get_text()


def test_patches_of_a_line_cover_the_region_and_their_room_lies_under_the_reader(line: sf.Mechanism) -> None:
    given = Figure().subplots()
    ax = plot_cells(line, ax=given)
    assert ax is given
    reader, floor = line_of(ax, "reader's standard deviation"), line_of(ax, "promised floor")
    np.testing.assert_allclose(reader[:, 1], line.release(np.sin(T)).predict(reader[:, 0]).std, rtol=1e-6)
    np.testing.assert_allclose(floor[:, 1], np.sqrt(0.5))
    boxes = pd.DataFrame(rectangles(ax)).groupby(0, as_index=False).max().to_numpy()
    np.testing.assert_allclose(boxes[:, 1], np.sqrt(0.5))
    assert boxes[0, 0] == 1.0
    assert boxes[-1, 2] == 2.0
    np.testing.assert_allclose(boxes[1:, 0], boxes[:-1, 2])
    for left, bottom, right, top in boxes:
        inside = reader[(reader[:, 0] >= left) & (reader[:, 0] <= right), 1]
        assert bottom < top <= inside.min(initial=np.inf)
    assert title_of(ax).startswith("all of this is proved: ")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("t", "std of y")
    assert plot_cells(line, label="std (m)").get_ylabel() == "std (m)"


def test_nodes_lie_on_the_readers_curve(line: sf.Mechanism) -> None:
    ax = plot_cells(line)
    nodes = np.vstack([one.get_xydata() for one in ax.get_lines() if one.get_marker() == "o"])
    np.testing.assert_allclose(nodes[:, 1], line.release(np.sin(T)).predict(nodes[:, 0]).std, rtol=1e-6)
    assert {1.0, 2.0} <= set(nodes[:, 0])


def test_patches_of_a_plane_cover_the_region_in_colours_of_the_reader(plane: sf.Mechanism) -> None:
    ax = plot_cells(plane.release(PEOPLE["age"].to_numpy(), output_name="income"))
    boxes = rectangles(ax)
    places = RNG.uniform([60, 3], [80, 7], (2000, 2))
    covered = np.all((boxes[:, None, :2] <= places) & (places <= boxes[:, None, 2:]), axis=2).any(axis=0)
    assert covered.all()
    assert np.all(boxes.min(axis=0)[:2] == [60, 3])
    assert np.all(boxes.max(axis=0)[2:] == [80, 7])
    shown = [one for one in ax.collections if isinstance(one, PolyCollection) and one.get_array() is not None]
    ratios = np.concatenate([np.asarray(one.get_array()) for one in shown])
    assert ratios.min() == pytest.approx(plane.certificate.floor_ratio, abs=1e-4)
    assert ratios.min() >= 1.0
    points = {tuple(row) for one in ax.get_lines() if one.get_marker() == "X" for row in one.get_xydata()}
    assert points == {tuple(row) for row in plane.sensitive}
    border = np.vstack([path.vertices for path in ax.collections[-1].get_paths()])
    np.testing.assert_allclose(border.min(axis=0), [60, 3], atol=0.1)
    assert legend_of(ax) == ["row of the data", "sensitive input", "region: 60 ≤ age ≤ 80 and 3 ≤ place ≤ 7"]
    assert legend_of(plot_cells(plane, region_label="old people"))[-1] == "old people"


@pytest.mark.filterwarnings("ignore:The promise is searched")
def test_what_is_not_proved_is_hatched_and_said() -> None:
    # what is known of a floor that is a function ends where it was asked for
    prior = sf.Prior(matern([20.0, 4.0], 100.0, nu=2.5), mean=25.0, noise=4.0)
    region = sf.Box({"age": (60, 70), "place": (3, 5)})
    made = sf.protect(prior, PEOPLE, region, floor=lambda s: 7.0 + 0.01 * s[:, 0], progress=False)
    assert made.certificate.evidence == "searched"
    ax = plot_cells(made)
    assert "not proved" in legend_of(ax)
    assert title_of(ax).startswith("0.0% of this is proved")
    hatched = [one for one in ax.collections if one.get_hatch()]
    assert len(hatched[0].get_paths()) == 1


def test_a_slice_says_where_it_is(plane: sf.Mechanism) -> None:
    ax = plot_cells(plane, columns=["place"], at={"age": 70.0, "place": 5.0})
    assert title_of(ax).endswith("where age = 70")
    reader = line_of(ax, "reader's standard deviation")
    points = np.column_stack([np.full(len(reader), 70.0), reader[:, 0]])
    seen = plane.release(PEOPLE["age"].to_numpy(), unsafe_seed=1).predict(points).std
    np.testing.assert_allclose(reader[:, 1], seen, rtol=1e-6)


def test_of_columns_without_bounds_one_combination_is_drawn(plane: sf.Mechanism) -> None:
    prior = sf.Prior(matern([20.0, 4.0], 100.0, nu=2.5), mean=25.0, noise=4.0)
    made = sf.protect(prior, PEOPLE, sf.Box({"age": (60, 80)}), alpha=0.4, progress=False)
    ax = plot_cells(made)
    assert ax.get_xlabel() == "age"
    worst = made.certificate.worst_input[1]
    assert title_of(ax).endswith(f"where place = {worst:.4g}")
    # one combination of 60: far fewer nodes than for all
    assert len(np.unique(rectangles(ax), axis=0)) < 60
    with pytest.raises(sf.InputError, match="where the region has no part; give an input of the region"):
        plot_cells(made, at=[70.0, 5.0])


def test_one_output_of_several_and_one_prior_of_several_can_be_drawn() -> None:
    t = np.linspace(0.0, 3.0, 13)
    joint = sf.JointPrior.of(sf.Prior(rbf(0.5), noise=0.01), {"r": sf.Value(), "v": sf.Derivative()}, noise={"v": 0.01})
    made = sf.protect(joint, pd.DataFrame({"t": t}), {"v": sf.Box({"t": (1.0, 2.0)})}, alpha=0.4, progress=False)
    assert plot_cells(made, of="v").get_ylabel() == "std of v"
    with pytest.raises(sf.InputError, match="where the region has no part"):
        plot_cells(made, of="r")
    both = sf.protect(
        sf.Prior(rbf(0.5), noise=0.01), t, sf.Box(1, 2), 0.5, priors=[sf.Prior(rbf(0.7), noise=0.01)], progress=False
    )
    first, second = (line_of(plot_cells(both, prior=number), "reader's standard deviation") for number in (0, 1))
    assert not np.allclose(first, second)
    assert title_of(plot_cells(both, prior=1)).endswith("readers with prior 1")
    with pytest.raises(sf.InputError, match="prior is 2; give a number from 0 to 1"):
        plot_cells(both, prior=2)


def test_compressed_rows_have_cells_too() -> None:
    rows = np.random.default_rng(1).uniform(0.0, 3.0, (300, 1))
    prior = sf.Prior(rbf(0.5), noise=0.05)
    made = sf.protect(prior, rows, sf.Box(1, 2), 0.4, method="compressed", progress=False)
    assert title_of(plot_cells(made)).startswith("all of this is proved")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"columns": "age"}, "columns is 'age'; give a list of one or two columns, such as \\['age'\\]"),
        ({"columns": ["age", "age"]}, "give different columns in which the region has an extent: age, place"),
        ({"columns": ["size"]}, "column is 'size'; choose one of 'age', 'place'"),
    ],
)
def test_wrong_columns_are_refused(plane: sf.Mechanism, asked: dict[str, object], message: str) -> None:
    with pytest.raises(sf.InputError, match=message):
        plot_cells(plane, **asked)  # type: ignore[arg-type]


def test_promises_without_cells_are_refused(line: sf.Mechanism) -> None:
    points = sf.protect(sf.Prior(rbf(0.5), noise=0.01), T, sf.Points([[1.0]]), 0.5, progress=False)
    with pytest.raises(sf.InputError, match="made at single inputs, so it has no cells; draw plot_floor"):
        plot_cells(points)
    with pytest.raises(sf.InputError, match="source is a str; give a mechanism or a release"):
        plot_cells("release")  # type: ignore[arg-type]


def test_legends_are_never_cut(line: sf.Mechanism, plane: sf.Mechanism) -> None:
    for ax in (plot_cells(line), plot_cells(plane), plot_cells(plane, columns=["age"])):
        assert legends_are_whole(ax.figure)
