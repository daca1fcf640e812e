"""The audit as a whole, its picture, and its use on releases of every kind."""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import sfumato as sf
from drawn import legends_are_whole
from kernels import matern, rbf
from sfumato.evaluate.audits import AUDIT_HEADER, Audit, called, findings_on
from sfumato.evaluate.predictors import rivals
from sfumato.evaluate.statistical_attacks import fits_a_model, models_to_try
from sfumato.evaluate.target import CHANCE, chances, target_for
from sfumato.files import OWNER_ONLY
from sfumato.noise.noise import no_noise
from sfumato.show.comparisons import plot_audit

T = np.linspace(0.0, 3.0, 31)
Y = np.round(2.0 + np.sin(2 * T), 1)
PRIOR = sf.Prior(matern(0.4), mean=2.0, noise=0.01)


@pytest.fixture(scope="module")
def release() -> sf.Release:
    return sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3, progress=False).release(Y)


@pytest.fixture(scope="module")
def found(release: sf.Release) -> Audit:
    return sf.audit(release, Y, progress=False)


@pytest.fixture(scope="module")
def broken(release: sf.Release) -> Audit:
    design = dataclasses.replace(release.design, noise=no_noise(31))
    return sf.audit(dataclasses.replace(release, design=design, outputs=Y), Y, progress=False)


def names(audit: Audit, covered: bool) -> list[str]:
    return [outcome.name for outcome in audit.outcomes if outcome.covered is covered]


def test_everyone_tries(found: Audit, release: sf.Release) -> None:
    assert names(found, True) == [
        "Bayes reader",
        *(called(rival) for rival in rivals(T[:, None], release.outputs, np.eye(len(T)))),
        "low bits",
        "guesses the seed",
        "records: reader",
    ]
    assert names(found, False) == [
        "averages 20 releases",
        "knows of smaller errors V",
        "lengthscale × 0.5",
        "lengthscale × 2",
        "lengthscale × 3",
        "knows the grid of y",
        "knows nearby values",
        "holds 1 row",
        "holds 2 rows",
        "holds 5 rows",
        "records: holds 1 row",
        "records: holds 2 rows",
        "records: holds 5 rows",
    ]
    assert [skipped.name for skipped in found.skipped] == ["looks between the rows"]


def test_a_kept_promise_is_reported_as_kept(found: Audit) -> None:
    assert found.holds
    assert all(outcome.ratio >= 1 - 1e-9 for outcome in found.outcomes if outcome.covered)
    assert {outcome.name for outcome in found.below} >= {"averages 20 releases", "holds 5 rows"}
    assert found.sentence.startswith("The promise is kept")


def test_a_broken_promise_is_reported_as_broken(broken: Audit) -> None:
    assert not broken.holds
    assert broken.verdict == "do not publish"
    assert broken.findings[0].code == "audit-breaks-promise"
    assert broken.sentence.startswith("THE PROMISE IS BROKEN by adversaries that it covers: Bayes reader")
    assert all(outcome.severity == "critical" for outcome in broken.outcomes if outcome.covered and outcome.beaten)


YEARS = np.arange(0.0, 12.0, 1 / 8)
SEASONS = 340 + 1.3 * YEARS + 0.03 * YEARS**2 - 1e-3 * YEARS**3 + 3 * np.sin(2 * np.pi * YEARS)
SEASONS += 0.8 * np.cos(4 * np.pi * YEARS) + 0.2 * np.random.default_rng(0).standard_normal(len(YEARS))


def test_a_textbook_regression_closer_than_half_the_floor_is_a_reason_not_to_publish() -> None:
    """A cubic with yearly harmonics, hidden by a plain Matérn prior: the promise holds under the prior, and is void."""
    hidden = sf.Box(5.0, 7.0)
    prior = sf.fit_prior(YEARS, SEASONS, kernel="matern52", exclude=hidden, progress=False)
    release = sf.protect(prior, YEARS, hidden, alpha=0.3, progress=False).release(SEASONS)
    assert release.certificate.verdict == "publish"
    found = sf.audit(release, SEASONS, progress=False)
    assert found.holds
    (textbook,) = [one for one in found.outcomes if one.name == "polynomial + season, knows Σ"]
    assert textbook.rmse < 0.1 * textbook.floor
    assert textbook.ratio >= 1 - 1e-6  # all of that is the prior's fault
    assert (textbook.closer, textbook.severity) == (True, "high")
    first = found.findings[0]
    assert (first.code, first.severity) == ("prior-beaten", "high")
    assert textbook.name in first.text
    assert found.verdict == found.certificate.verdict == "do not publish"
    assert "other models come much closer" in str(found).splitlines()[-1]
    # what the owner accepts of it, now or when the release was made
    accepted = release.certificate.with_findings(dataclasses.replace(first, accepted=True))
    for known in (dataclasses.replace(found, accepted=(first.code,)), dataclasses.replace(found, claimed=accepted)):
        assert known.verdict == "publish with care"
        assert known.findings[0].accepted


def test_being_close_by_chance_is_not_held_against_a_prior(release: sf.Release) -> None:
    """Under the right prior the chance is uniform, for any estimates that are made of the release alone.

    60 truths from what the Bayes reader believes: 1.2 are called surprising on average, and 8 with a probability below
    1e-4.
    """
    target = target_for(release, Y)
    models = [fits_a_model(target, rival) for rival in models_to_try(target)[:4]]
    assert len(models) == 4
    # possible values of y, given what is published
    prior, rng = target.prior, np.random.default_rng(3)
    total = prior.covariance(T) + 0.01 * np.eye(len(T))
    gain = total @ np.linalg.inv(total + target.noise)
    root = np.linalg.cholesky(total - gain @ total + 1e-10 * np.eye(len(T)))
    alarms = 0
    for _ in range(60):
        y = 2.0 + gain @ (target.published - 2.0) + root @ rng.standard_normal(len(T))
        alarms += bool(np.any(chances(dataclasses.replace(target, y=y), models) <= CHANCE))
    assert alarms < 8


def test_closeness_that_may_be_chance_is_a_question_to_the_owner(found: Audit) -> None:
    reader = found.outcomes[0]
    for rmse, codes in ((0.4, ["close-by-chance"]), (0.6, [])):
        near = dataclasses.replace(reader, rmse=rmse * reader.floor)
        assert [one.code for one in findings_on([near])] == codes
    surely = dataclasses.replace(reader, name="a textbook", rmse=0.4 * reader.floor, closer=True)
    assert [one.code for one in findings_on([near, surely])] == ["prior-beaten"]
    assert "sfumato rehearse" in next(findings_on([surely])).remedy
    grid = dataclasses.replace(surely, name="knows the grid of y")
    (rounded,) = findings_on([grid])  # no prior that a rehearsal names helps against it
    assert (rounded.code, "rehearse" in rounded.remedy, "diagonal" in rounded.remedy) == (
        "values-on-a-grid",
        False,
        True,
    )
    doubtful = dataclasses.replace(surely, rmse=0.6 * reader.floor)
    assert [one.code for one in findings_on([doubtful])] == ["prior-doubtful"]


def test_tables_texts_and_dictionaries(found: Audit) -> None:
    text = str(found)
    assert text.startswith(OWNER_ONLY)
    assert "not tried: looks between the rows" in text
    assert all(len(row) == len(AUDIT_HEADER) for row in found.rows())
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["owner_only"] is True
    assert plain["holds"] is True
    first = plain["outcomes"][0]
    assert set(first) >= {"name", "rmse", "claimed", "actual", "floor", "ratio", "covered", "severity", "words"}
    assert all(outcome.words.endswith(".") for outcome in found.outcomes)


def test_only_what_was_found_can_be_accepted(release: sf.Release) -> None:
    with pytest.raises(sf.InputError, match="'raw-records', which was not found here"):
        sf.audit(release, Y, sensitive=[1.5], accept=["raw-records"], progress=False)
    with pytest.raises(sf.InputError, match="can never be accepted"):
        sf.audit(release, Y, accept=["audit-breaks-promise"])


def test_arguments_reach_the_attacks(release: sf.Release) -> None:
    again = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3, progress=False).release(Y)
    made = sf.audit(
        release,
        Y,
        sensitive=[1.2, 1.5],
        draws=3,
        grid=0.1,
        physics=lambda X: 2.0 + np.sin(2 * X[:, 0]),
        others=[again],
        progress=False,
    )
    assert made.judged == 2
    assert {"averages 3 releases", "joins 2 releases", "knows the physics"} <= set(names(made, False))


X2 = np.column_stack([np.repeat(np.linspace(0.0, 1.0, 12), 3), np.tile([0.0, 1.0, 2.0], 12)])
Y2 = np.sin(3 * X2[:, 0]) + 0.3 * X2[:, 1]


@pytest.mark.parametrize(
    ("region", "how"),
    [
        (sf.Box([0.4, None], [0.7, None]), {"alpha": 0.3}),
        (sf.Box([0.4, None], [0.7, None]), {"alpha": 0.3, "method": "compressed", "protects": "function"}),
        (sf.Box([0.4, None], [0.7, None]), {"alpha": 0.3, "structure": "diagonal"}),
        (sf.Box([0.4, None], [0.7, None]), {"alpha": 0.3, "guarantee": "pointwise"}),
        (sf.Points([[0.5, 1.0]]), {"floor": 0.5, "priors": [sf.Prior(matern([0.6, 2.0]), noise=0.01)]}),
        (sf.Everywhere(), {"alpha": 0.5}),
    ],
)
def test_every_kind_of_release_with_a_column_of_few_values(region: Any, how: Any) -> None:
    """The second column is a number of an output, or a category: nothing may crash on it."""
    prior = sf.Prior(rbf([0.3, 2.0]), noise=0.01)
    made = sf.audit(sf.protect(prior, X2, region, progress=False, **how).release(Y2), Y2, progress=False)
    assert made.holds
    assert len(made.outcomes) + len(made.skipped) >= 14
    if "priors" in how:
        assert "Bayes reader, prior 2" in names(made, True)


def test_several_outputs_that_are_one_process() -> None:
    """A function and its slope: each is a row with a number in the last column, and values are given by name."""
    joint = sf.JointPrior.of(
        sf.Prior(rbf(0.5)), {"r": sf.Value(), "v": sf.Derivative("t")}, noise={"r": 1e-3, "v": 1e-3}
    )
    values = {"r": np.sin(2 * T), "v": 2 * np.cos(2 * T)}
    mechanism = sf.protect(joint, pd.DataFrame({"t": T}), {"r": sf.Box({"t": (1.0, 2.0)})}, alpha=0.3, progress=False)
    made = sf.audit(mechanism.release(values), values, progress=False)
    assert made.holds
    assert "averages 20 releases" in {outcome.name for outcome in made.below}


def test_rows_cover_is_judged_where_it_promises() -> None:
    with pytest.warns(sf.GuaranteeWarning, match="Only the rows"):
        mechanism = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3, cover="rows", progress=False)
    made = sf.audit(mechanism.release(Y), Y, progress=False)
    assert made.holds
    assert made.judged == 11
    assert "looks between the rows" in names(made, False)


def test_many_rows_are_refused(release: sf.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.evaluate.target.MOST_ROWS", 30)
    with pytest.raises(sf.InputError, match=r"release has 31 rows; .* up to 30 rows"):
        sf.audit(release, Y)


def test_a_release_that_promises_no_floor_is_refused() -> None:
    tolerance = sf.KernelTolerance(matern(0.4, 2.0))
    with pytest.warns(sf.GuaranteeWarning, match="no floor"):
        wide = sf.protect(PRIOR, T, sf.Points([[1.5]]), tolerance=tolerance, progress=False)
    with pytest.raises(sf.InputError, match="promises no floor"):
        sf.audit(wide.release(Y, unsafe_seed=1), Y)


# ---------------------------------------------------------------- the picture


def test_the_picture_has_a_line_for_everyone_and_the_floor_at_one(found: Audit) -> None:
    figure = plot_audit(found)
    (ax,) = figure.axes
    assert legends_are_whole(figure)
    assert [label.get_text() for label in ax.get_yticklabels()] == names(found, True) + names(found, False)
    assert "multiples of the promised floor" in ax.get_xlabel()
    assert OWNER_ONLY in ax.get_title(loc="left")
    floor = [line for line in ax.get_lines() if list(np.ravel(line.get_xdata())) == [1.0, 1.0]]
    assert len(floor) == 1
    left, right = ax.get_xlim()
    assert left < 1.0 < right
    drawn = np.concatenate([np.ravel(line.get_xdata()).astype(float) for line in ax.get_lines()])
    for outcome in found.outcomes:
        assert np.any(np.isclose(drawn, outcome.actual / outcome.floor))
    bold = {label.get_text() for label in ax.get_yticklabels() if label.get_fontweight() == "bold"}
    assert bold == {outcome.name for outcome in found.outcomes if outcome.below}


def test_the_picture_goes_on_given_axes_and_to_a_file(broken: Audit, tmp_path: Any) -> None:
    already = "matplotlib.pyplot" in sys.modules
    figure = Figure(layout="constrained")
    assert plot_audit(broken, ax=figure.subplots()) is figure
    figure.savefig(tmp_path / "audit.png")
    assert (tmp_path / "audit.png").read_bytes().startswith(b"\x89PNG")
    assert ("matplotlib.pyplot" in sys.modules) == already


def test_readers_of_a_family_are_covered(release_of_family):
    found = sf.audit(release_of_family, np.sin(3 * release_of_family.inputs[:, 0]), draws=2, progress=False)
    readers = [one for one in found.outcomes if one.name.startswith("family reader")]
    assert [one.covered for one in readers] == [True, True]
    assert min(one.ratio for one in readers) >= 1 - 1e-9


@pytest.fixture(scope="module")
def release_of_family():
    t = np.linspace(0.0, 3.0, 25)
    family = sf.Prior(rbf(0.5), noise=0.01).family(lengthscale=(0.8, 1.3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        return sf.protect(family, t, sf.Box(1.0, 2.0), alpha=0.4, progress=False).release(np.sin(3 * t))


@pytest.mark.slow
def test_after_the_advice_of_a_rehearsal_no_rival_comes_near_the_floor_in_twenty_releases():
    """CO₂-like: a bent trend, a season with a harmonic, weather. Errors are pooled: one release may be lucky."""
    rng = np.random.default_rng(1)
    t = np.arange(12 * 15) / 12 + 1974
    u, weather = t - 1974, np.convolve(rng.standard_normal(len(t) + 6), np.ones(6) / 6, "same")[: len(t)]
    y = 330 + 1.4 * u + 0.012 * u**2 + 2.8 * np.sin(2 * np.pi * t) + 0.8 * np.cos(4 * np.pi * t) + 0.3 * weather
    region = sf.Box(1980, 1982)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prior = sf.fit_prior(t, y, kernel="matern52", exclude=region)
        advised = sf.rehearse(prior, t, y, region, alpha=0.3, progress=False).advised
        prior = sf.fit_prior(t, y, kernel=advised.kernel, mean=advised.mean, exclude=region)
        errors: dict[str, list[float]] = {}
        for _ in range(20):
            release = sf.protect(prior, t, region, alpha=0.3, progress=False).release(y)
            for one in sf.audit(release, y, draws=1, progress=False).outcomes:
                if one.covered:
                    errors.setdefault(one.name, []).append(one.rmse / one.floor)
    assert len(errors) > 15
    assert {
        name: error for name, all_of in errors.items() if (error := np.sqrt(np.mean(np.square(all_of)))) < 0.9
    } == {}
