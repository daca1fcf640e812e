"""The census study: on made-up people here, and on the paper's (slow) where its file is at hand."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.data import as_inputs
from sfumato.errors import GuaranteeWarning, InputError
from sfumato.paper.census_data import paper_split, read_pums, thinned
from sfumato.paper.census_study import (
    DP_ALL,
    DP_AVERAGED,
    DP_PRIVATE,
    DP_STANDARD,
    census_study,
    exposure,
    people_of_the_region,
    quick_census_study,
    reader,
)
from sfumato.paper.study import ALPHAS, AWARE, DROPOUT, EPSILONS, NAIVE, SERVING, UNSECURED

SEEDS = 60  # as in conftest.py


@pytest.fixture(scope="session")
def authors(census):
    return census


def line(result, method, level="", cover=None):
    found = [x for x in result.lines if (x.method, x.level) == (method, level) and cover in (None, x.cover)]
    assert len(found) == 1
    return found[0]


def test_every_method_and_level_has_one_line(authors):
    keys = [(x.method, x.level, x.cover) for x in authors.lines]
    expected = {(AWARE, f"α = {a:g}", cover) for a in ALPHAS for cover in ("rows", "auto")}
    expected |= {(SERVING, f"α = {a:g}", "auto") for a in ALPHAS}
    expected |= {(NAIVE, f"α = {a:g}", "rows") for a in ALPHAS}
    expected |= {(name, f"ε = {e:g}", "") for e in EPSILONS for name in (DP_ALL, DP_PRIVATE, DP_AVERAGED, DP_STANDARD)}
    expected |= {(DROPOUT, "", ""), (UNSECURED, "", "")}
    assert len(keys) == len(set(keys))
    assert set(keys) == expected
    assert {x.seeds for x in authors.lines if x.method == NAIVE} == {2}
    assert {x.seeds for x in authors.lines if x.method == AWARE} == {SEEDS}


def test_predicting_all_draws_at_once_gives_what_single_releases_predict(people, authors):
    prior, misses = authors.models.owner, []
    how = {"protects": "function", "cover": "rows", "progress": False}
    with pytest.warns(GuaranteeWarning, match="Only the rows"):
        made = sf.protect(prior, people.train, people.region, 0.5, **how)
    for seed in range(SEEDS):
        seen = made.release(people.train_y, unsafe_seed=seed).predict(people.test)
        misses.append(seen.mean - people.test_y)
    each = np.sqrt(np.mean(np.square(misses), axis=1))
    found = line(authors, AWARE, "α = 0.5", "rows")
    assert found.rmse == pytest.approx(each.mean(), rel=1e-4)
    assert found.rmse_spread == pytest.approx(each.std(), rel=1e-3)


def test_a_run_can_be_repeated(people):
    few = thinned(people, 50)
    first, again = (census_study(few, "authors", seeds=3, covers=("rows",), naive_seeds=1) for _ in range(2))
    assert [x.rmse for x in first.lines] == [x.rmse for x in again.lines]


def test_the_automatic_cover_keeps_the_floor_in_the_whole_region_and_the_rows_need_not(authors):
    for alpha in ALPHAS:
        found = line(authors, AWARE, f"α = {alpha:g}", "auto")
        assert found.holds == "yes"
        assert found.floor_ratio >= 1 - 1e-9
    rows = {x.alpha: x for x in authors.exposures if x.cover == "rows"}
    auto = {x.alpha: x for x in authors.exposures if x.cover == "auto"}
    assert all(auto[alpha].share_below == 0.0 for alpha in ALPHAS)
    assert rows[0.1].share_below > 0.05
    assert rows[0.1].least_ratio < 0.98
    for alpha in ALPHAS:
        found = line(authors, AWARE, f"α = {alpha:g}", "rows")
        assert found.holds == ("yes" if found.floor_ratio >= 1 - 1e-9 else "at rows only")
        assert (rows[alpha].share_below > 0) <= (found.floor_ratio < 1)


def test_without_noise_more_of_the_region_is_exposed_than_with_it(authors):
    for alpha in ALPHAS:
        share = {x.method: x.share_below for x in authors.exposures if x.alpha == alpha and x.cover != "auto"}
        assert share[UNSECURED] >= share[DROPOUT] >= share[AWARE]
    assert max(x.share_below for x in authors.exposures if x.method == UNSECURED) > 0.2


def test_errors_of_one_private_draw_grow_with_privacy_and_averaging_hides_them(authors):
    bare = line(authors, UNSECURED).rmse
    for method in (DP_ALL, DP_PRIVATE):
        errors = [line(authors, method, f"ε = {e:g}").rmse for e in EPSILONS]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] > bare
    for e in EPSILONS:
        level = f"ε = {e:g}"
        one, many = line(authors, DP_PRIVATE, level), line(authors, DP_AVERAGED, level)
        # the noise of the mean of 100 draws has a tenth of the size
        assert np.sqrt(many.rmse**2 - bare**2) < 0.2 * np.sqrt(one.rmse**2 - bare**2)


def test_averaged_draws_promise_nothing_and_one_draw_of_the_method_itself_does(authors):
    for e in EPSILONS:
        level = f"ε = {e:g}"
        assert line(authors, DP_ALL, level).holds == "yes"
        assert line(authors, DP_AVERAGED, level).holds == "NO"


def test_the_maximum_of_the_likelihood_explains_more_than_the_scripts_training(people, authors):
    paper = census_study(people, "paper", seeds=5, covers=("rows",), naive_seeds=1)
    assert paper.models.nll < authors.models.nll - 0.01
    assert {x.settings for x in paper.lines} == {"paper"}
    assert not [x for x in paper.lines if x.method in (DP_PRIVATE, DP_AVERAGED)]
    assert "maximum likelihood" in paper.title
    assert "5 draws, 1 for Stationary" in paper.title


def test_dropout_learns_its_model_without_the_sensitive_rows(people, authors):
    report = authors.models.dropout.fit_report
    assert report.rows_excluded == people.train_inside.sum()
    assert authors.models.owner.fit_report.rows_excluded == 0


def test_random_people_of_the_region_lie_in_it_and_have_other_columns_that_were_observed(people):
    drawn = people_of_the_region(people, 200)
    others = ["POWPUMA", "ANC1P", "POBP"]
    assert people.region.bind(as_inputs(people.train)).contains(drawn.to_numpy()).all()
    known = {tuple(row) for row in people.train[others].to_numpy()}
    assert all(tuple(row) in known for row in drawn[others].to_numpy())
    assert len(drawn["AGEP"].unique()) == 200


def test_exposure_counts_the_inputs_below_the_floor(people, authors):
    prior, drawn = authors.models.owner, people_of_the_region(people, 200)
    rows = len(people.train)
    blurred = exposure("x", "", 0.5, reader(prior, people, 1e9 * np.eye(rows)), prior, drawn)
    assert blurred.share_below == 0.0
    assert blurred.least_ratio == pytest.approx(2**0.5, rel=1e-3)
    open_ = exposure("x", "", 0.5, reader(prior, people, np.zeros((rows, rows))), prior, drawn)
    variance = prior.condition(people.train, people.train_y).variance(drawn)
    assert open_.share_below == np.mean(variance < 0.5 * prior.variance(drawn))


@pytest.mark.parametrize(
    "wrong", [{"seeds": 0}, {"naive_seeds": 0}, {"seeds": 2.5}, {"covers": ()}, {"covers": "rows"}, {"covers": ("x",)}]
)
def test_wrong_arguments_are_named(people, wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} is"):
        census_study(people, "authors", **wrong)


def test_other_settings_are_refused(people):
    with pytest.raises(InputError, match="settings is 'mine'"):
        census_study(people, "mine")


# ---------------------------------------------------------------- the paper's people


@pytest.fixture(scope="session")
def texans(paper_data):
    return paper_split(read_pums(paper_data / "pums_ptx2023_sample_5000.csv"))


@pytest.mark.slow
def test_the_quick_study_takes_seconds(texans):
    result = quick_census_study(texans, "paper")
    assert len(result.data.train) == 400
    assert np.isfinite([x.rmse for x in result.lines]).all()


@pytest.fixture(scope="session")
def scripts(texans):
    return census_study(texans, "authors", seeds=200, covers=("rows",), naive_seeds=1)


def close(found, expected, absolute=0.0):
    """Within three standard errors and 2 % of ``expected``."""
    return abs(found.rmse - expected) <= absolute + 3 * found.rmse_spread / found.seeds**0.5 + 0.02 * expected


@pytest.mark.slow
def test_the_scripts_training_stops_where_it_did(texans, scripts):
    prior, unit = scripts.models.owner, scripts.models.unit
    assert scripts.models.nll == pytest.approx(1.713, abs=0.01)
    assert float(prior.kernel.outputscale) / unit**2 == pytest.approx(1.69, abs=0.02)
    lengths = prior.kernel.base_kernel.lengthscale.numpy().ravel() / texans.train.std(ddof=1).to_numpy()
    assert lengths == pytest.approx([0.628, 0.611, 0.597, 0.572, 0.629], abs=0.025)
    assert prior.noise / unit**2 == pytest.approx(0.2528, abs=0.01)


@pytest.mark.slow
def test_the_errors_with_the_scripts_training_are_the_known_ones(scripts):
    assert line(scripts, UNSECURED).rmse == pytest.approx(0.597, abs=0.002)
    assert line(scripts, DROPOUT).rmse == pytest.approx(0.599, abs=0.003)
    for alpha, expected in ((0.1, 0.600), (0.5, 0.602), (0.9, 0.598)):
        assert line(scripts, AWARE, f"α = {alpha:g}").rmse == pytest.approx(expected, abs=0.01)
    for epsilon, expected in ((0.3, 0.735), (0.5, 0.651), (1.0, 0.610)):
        assert close(line(scripts, DP_ALL, f"ε = {epsilon:g}"), expected)
    for epsilon, expected in ((0.3, 3.10), (0.5, 1.82), (1.0, 1.10)):
        # 40 batches only stand behind these numbers
        found = line(scripts, DP_AVERAGED, f"ε = {epsilon:g}")
        assert close(found, expected, absolute=3 * found.rmse_spread / 40**0.5)


@pytest.mark.slow
def test_the_rows_of_the_paper_leave_a_third_of_the_region_below_the_floor(scripts):
    found = line(scripts, AWARE, "α = 0.1", "rows")
    assert found.holds == "at rows only"
    assert found.floor_ratio == pytest.approx(0.5, abs=0.05)
    share = {x.alpha: x.share_below for x in scripts.exposures if x.method == AWARE}
    assert share[0.1] == pytest.approx(0.36, abs=0.03)
    assert share[0.5] == pytest.approx(0.13, abs=0.03)
    assert share[0.9] == pytest.approx(0.02, abs=0.01)


@pytest.mark.slow
def test_at_the_maximum_of_the_likelihood_the_model_is_better_and_the_automatic_cover_holds(texans):
    result = census_study(texans, "paper", seeds=50, covers=("rows", "auto"), naive_seeds=1)
    assert result.models.nll == pytest.approx(1.337, abs=0.001)
    assert line(result, UNSECURED).rmse == pytest.approx(0.563, abs=0.001)
    assert {x.holds for x in result.lines if x.cover == "auto"} == {"yes"}
    assert {x.share_below for x in result.exposures if x.cover == "auto"} == {0.0}
