"""The figures of the census study show what the study found."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.patches import Rectangle

from sfumato.paper.census_figures import draw_all, draw_cloaking, draw_errors, draw_map
from sfumato.paper.census_study import DP_ALL, DP_AVERAGED, DP_PRIVATE
from sfumato.paper.study import AWARE, EPSILONS, UNSECURED


@pytest.fixture(scope="module")
def result(census):
    return census


@pytest.fixture(scope="module")
def figures(result):
    return draw_all(result)


def bars(ax):
    return [box for box in ax.containers if isinstance(box, ErrorbarContainer)]


def test_there_is_a_figure_for_every_name_and_all_can_be_saved(figures):
    assert list(figures) == ["map", "errors", "dp"]
    for figure in figures.values():
        page = BytesIO()
        figure.savefig(page, format="png", dpi=40)
        assert page.getbuffer().nbytes > 5000


def test_every_figure_says_which_data_it_is_of(result, figures):
    for figure in figures.values():
        assert result.data.source in " ".join(figure.get_suptitle().split())


def test_the_map_has_both_covers_side_by_side_with_the_region_outlined(result, figures):
    panels = [ax for ax in figures["map"].axes if ax.get_label() != "<colorbar>"]
    assert len(panels) == 4
    for ax in panels:
        (outline,) = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
        assert (*outline.get_xy(), outline.get_width(), outline.get_height()) == (75.0, 0.0, 25.0, 2000.0)
    assert "rows as cover" in panels[0].get_title()
    assert "automatic cover" in panels[1].get_title()
    assert "most common" in panels[0].get_title()
    assert "worst input" in panels[2].get_title()


def test_the_map_shows_gaps_of_the_rows_and_none_of_the_automatic_cover(result, figures):
    data = result.data
    panels = [ax for ax in figures["map"].axes if ax.get_label() != "<colorbar>"]
    ages, areas = np.linspace(55.0, 100.0, 51), np.linspace(0.0, 3600.0, 51)
    within = (areas[:, None] <= 2000) & (ages[None, :] >= 75)
    tables = [np.asarray(ax.collections[0].get_array()).reshape(51, 51) for ax in panels]
    assert tables[2][within].min() < 0.999
    assert tables[1][within].min() >= 1 - 1e-6
    assert tables[3][within].min() >= 1 - 1e-6
    worst = result.mechanisms["rows", 0.1].certificate
    assert dict(zip(worst.columns, worst.worst_input, strict=True)).keys() == set(data.train.columns)
    assert tables[2][within].min() >= worst.floor_ratio - 1e-6


def test_the_errors_have_one_point_for_each_line_and_no_line_joins_them(result, figures):
    inside, outside = figures["errors"].axes
    for ax, of in ((inside, "rmse_inside"), (outside, "rmse_outside")):
        points = [box.lines[0].get_xydata() for box in bars(ax)]
        assert [len(point) for point in points] == [1] * len(result.lines)
        assert [point[0, 0] for point in points] == [getattr(line, of) for line in reversed(result.lines)]
        joined = [line for line in ax.lines if len(line.get_xdata()) > 1]
        assert len(joined) == 1
        bare = next(line for line in result.lines if line.method == UNSECURED)
        assert set(joined[0].get_xdata()) == {getattr(bare, of)}
    labels = [label.get_text() for label in inside.get_yticklabels()]
    assert labels[-1] == f"{AWARE}, α = 0.1, rows cover"
    assert "test rows only" in inside.get_title()


def test_the_bars_of_the_errors_are_the_spread_over_draws(result):
    _, outside = draw_errors(result).axes
    first = bars(outside)[-1]
    (segment,) = first.lines[2][0].get_segments()
    line = result.lines[0]
    assert segment[:, 0] == pytest.approx(
        [line.rmse_outside - line.rmse_outside_spread, line.rmse_outside + line.rmse_outside_spread]
    )


def test_the_private_figure_shows_every_matrix_against_epsilon(result):
    (ax,) = draw_cloaking(result).axes
    shown = {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    assert {DP_ALL, DP_AVERAGED, DP_PRIVATE} <= set(shown)
    assert len(bars(ax)) == 3 * len(EPSILONS)
    expected = [line.rmse for line in result.lines if line.method in (DP_ALL, DP_AVERAGED, DP_PRIVATE)]
    assert sorted(box.lines[0].get_ydata()[0] for box in bars(ax)) == sorted(expected)
    assert ax.get_yscale() == "log"


def test_a_map_of_one_cover_has_one_column(result):
    few = replace(result, mechanisms={key: made for key, made in result.mechanisms.items() if key[0] == "rows"})
    assert len(draw_map(few, alpha=0.5).axes) == 3
