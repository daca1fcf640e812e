"""``sfumato protect`` for several outputs: relations, quantities that are never released, promises by output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from command_line import answer, done, refused, run
from sfumato.data.inputs import Outputs
from sfumato.data.tables import open_table
from sfumato.proof import region

Run = Callable[..., Any]
DERIVATIVE = ["--output", "r", "--output", "v", "--relation", "v = d(r)/d(t)"]
MEAN = ["--relation", "m = mean(r where 1 <= t <= 2)"]
INSIDE = ["--region", "1 <= t <= 2"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    t = np.linspace(0.0, 3.0, 25)
    path = tmp_path / "orbit.csv"
    table = pd.DataFrame({"t": t, "r": np.sin(2 * t), "v": 2 * np.cos(2 * t), "s": np.cos(3 * t), "w": 1.0 + t})
    table.to_csv(path, index=False)
    return path


@pytest.fixture
def protect(data: Path) -> Run:
    """``protect`` with what all tests have in common: no fit takes long."""

    def call(*words: object) -> Any:
        out = data.parent / "orbit.sfumato"
        fixed = ["--lengthscale", 0.5, "--noise", 0.01, "--no-rehearsal", "--replace"]
        return run("protect", data, "--inputs", "t", *fixed, "--out", out, *words)

    return call


@pytest.fixture
def out(data: Path) -> Path:
    return data.parent / "orbit.sfumato"


def test_what_is_not_proved_is_not_written_where_a_proof_is_asked_for(
    protect: Run, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a kernel this rough is out of reach over two columns, and is given up soon
    monkeypatch.setattr(region, "LEAST_WORK", 1e8)
    searched = ["--output", "r", "--inputs", "w", "--region", "t <= 1 and w <= 3", "--kernel", "matern12"]
    searched += ["--lengthscale", "0.01"]
    refused(
        protect(*searched, "--alpha", 0.3, "--evidence", "proved"),
        'evidence is "proved"',
        "of the region is proved",
        "The reason:",
        code=1,
    )
    assert not out.exists()
    refused(protect("--output", "r", *INSIDE, "--alpha", 0.3, "--evidence", "sure"), "evidence is 'sure'", code=2)
    assert not out.exists()
    result = done(protect(*searched, "--alpha", 0.3))
    for shown in (result.stdout, done(run("certify", out)).stdout):
        assert "searched:" in shown
        assert "The promise holds. It is searched, not all of it is proved. Publish with care." in shown
    proved = done(protect("--output", "r", *INSIDE, "--alpha", 0.3, "--fit-outside", "--evidence", "proved"))
    for shown in (proved.stdout, done(run("certify", out)).stdout):
        assert "proved: it is kept at every input" in shown
        assert "The promise holds. It is proved." in shown
    found = answer(run("certify", out, "--json"))["certificate"]
    assert (found["evidence"], found["proved_share"]) == ("proved", 1.0)


def test_a_function_and_its_derivative_are_released_together(protect: Run, data: Path, out: Path) -> None:
    public = data.parent / "public.csv"
    result = done(protect(*DERIVATIVE, *INSIDE, "--alpha", 0.3, "--csv", public))
    assert "r, v, protected where r: 1 ≤ t ≤ 2; v: 1 ≤ t ≤ 2" in result.stdout
    assert "The promise holds." in result.stdout
    release = sf.load(out)
    assert release.design.inputs.outputs.names == ("r", "v")
    assert len(release.inputs) == 50
    frame = open_table(public).frame  # a column for each output, as in the table that was protected
    assert list(frame) == ["t", "r", "v"]
    np.testing.assert_array_equal(frame[["r", "v"]].to_numpy().T.ravel(), release.outputs)
    assert "The promise holds." in done(run("certify", out)).stdout


def test_protect_certify_and_report_give_one_verdict(protect: Run, out: Path) -> None:
    # two outputs of which one is the derivative of the other, protected as if they were independent
    asked = ["--output", "r", "--output", "v", *INSIDE, "--alpha", 0.5, "--kernel", "rbf"]
    refused(protect(*asked), "'r' and 'v' are protected one by one", "--accept protected-one-by-one", code=1)
    assert not out.exists()
    made = done(protect(*asked, "--accept", "protected-one-by-one"))
    again, page = done(run("certify", out)), done(run("report", out, "--out", out.with_name("page.html")))
    shown = [" ".join(result.stdout.split()) for result in (made, again, page)]
    assert all("Publish with care: accepted protected-one-by-one." in one for one in shown)
    assert all("protected one by one" in one for one in shown[:2])


@pytest.mark.parametrize("outputs", [["--output", "r"], DERIVATIVE], ids=["one output", "several outputs"])
def test_a_model_that_was_learnt_from_sensitive_rows_asks_for_care(protect: Run, out: Path, outputs: list[str]) -> None:
    asked = [*outputs, *INSIDE, "--alpha", 0.5, "--json"]
    for words, verdict in (([*asked, "--fit-all"], "publish with care"), (asked, "publish")):
        assert answer(protect(*words))["certificate"]["verdict"] == verdict
        assert answer(run("certify", out, "--json"))["certificate"]["verdict"] == verdict


def test_a_quantity_that_is_never_released_is_protected_all_the_same(protect: Run, out: Path) -> None:
    common = ["--output", "r", *INSIDE, "--guarantee", "pointwise", "--json"]
    plain = answer(protect(*common, "--alpha", 0.5))
    options = [*common, *MEAN, "--region", "m", "--alpha", "r=0.5", "--alpha", "m=0.05"]
    made = answer(protect(*options))
    assert made["outputs"] == ["r"]
    assert made["rows"] == 25
    assert made["certificate"]["trace"] > plain["certificate"]["trace"]
    release = sf.load(out)
    assert release.design.inputs.outputs.names == ("r", "m")
    assert set(release.inputs[:, -1]) == {0.0}
    before = np.sqrt(release.prior.variance(np.array([[1.5, 1.0]]))[0])
    asked = answer(run("predict", out, "--of", "m", "--json"))
    assert asked["output"] == "m"
    assert asked["rows"] == 1
    assert asked["predictions"][0]["std"] >= np.sqrt(0.95) * before * (1 - 1e-9)


def test_an_integral_and_a_mean_over_all_rows_are_quantities_too(protect: Run, out: Path) -> None:
    relations = ["--relation", "q = integral(r from 1 to 2)", "--relation", "m = mean(r)"]
    done(protect("--output", "r", *relations, "--region", "q", "--region", "m", "--alpha", 0.2))
    release = sf.load(out)
    assert release.design.inputs.outputs.names == ("r", "q", "m")
    assert "integral" not in release.certificate.promise  # only sums and their points are in a file
    assert release.certificate.holds


def test_outputs_without_a_relation_have_priors_of_their_own(protect: Run, out: Path) -> None:
    options = ["--output", "r", "--output", "s", "--region", "r: t <= 1", "--region", "s: t >= 2"]
    # their priors look as if one was the derivative of the other
    done(protect(*options, "--floor", "r=0.2", "--floor", "s=0.3", "--accept", "protected-one-by-one"))
    release = sf.load(out)
    variance = release.prior.variance(np.array([[0.5, 0.0], [0.5, 1.0]]))
    assert variance[0] != pytest.approx(variance[1], rel=1e-3)
    assert release.prior.covariance(np.array([[0.5, 0.0]]), np.array([[0.5, 1.0]]))[0, 0] == 0.0
    assert release.predict([0.5], output="r").std[0] >= 0.2 * (1 - 1e-9)
    assert release.predict([2.5], output="s").std[0] >= 0.3 * (1 - 1e-9)


def test_regions_of_one_output_add_up(protect: Run, out: Path) -> None:
    done(protect("--output", "r", "--region", "t <= 0.5", "--region", "r: t >= 2.5", "--alpha", 0.5))
    release = sf.load(out)
    assert not release.design.inputs.outputs.numbered
    assert release.region.contains(np.array([[0.25], [1.5], [2.75]])).tolist() == [True, False, True]


def test_one_output_named_is_as_if_it_were_not(protect: Run, out: Path) -> None:
    done(protect("--output", "r", "--region", "r: 1 <= t <= 2", "--alpha", "r=0.5"))
    release = sf.load(out)
    assert (release.design.inputs.outputs, release.output_name) == (Outputs(("r",)), "r")


def test_the_noise_of_a_derivative_is_none_if_it_is_not_said(protect: Run, out: Path) -> None:
    seen = []
    for words in ([], ["--output-noise", "v=0.04"], ["--output-noise", "v=0.04", "--output-noise", "r=0.09"]):
        done(protect(*DERIVATIVE, *INSIDE, "--alpha", 0.3, *words))
        release = sf.load(out)
        noise = release.prior.noise_variance(50)
        seen.append((noise[0], noise[-1]))
    assert seen == [(0.01, 0.0), (0.01, 0.04), (0.09, 0.04)]


def test_the_prior_of_a_group_is_fitted_outside_of_all_that_is_sensitive_in_it(
    protect: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato import models

    reports = []
    honest = models.fit_prior

    def watched(*args: Any, **kwargs: Any) -> sf.Prior:
        prior = honest(*args, **kwargs)
        reports.append(prior.fit_report.rows_excluded)
        return prior

    monkeypatch.setattr(models, "fit_prior", watched)
    options = [*DERIVATIVE, "--output", "s", "--region", "v: 1 <= t <= 2", "--region", "s: t <= 0.5", "--alpha", 0.5]
    mean = ["--relation", "m = mean(r where t >= 2.5)", "--region", "m"]
    assert protect(*options, *mean).exit_code == 1
    assert reports == [9 + 5, 5]
    # no row is outside of a mean over all rows: the prior tells a little of it, and that is said
    whole = done(protect("--output", "r", "--relation", "m = mean(r)", "--region", "m", "--alpha", 0.5))
    assert reports[-1] == 0
    assert "because too few are outside" in " ".join(whole.stdout.split())
    assert "learnt from all rows" in whole.stdout


def test_weights_count_for_the_rows_of_every_output(protect: Run, out: Path) -> None:
    done(protect(*DERIVATIVE, *INSIDE, "--alpha", 0.5, "--weights", "w"))
    assert sf.load(out).design.weights is not None
    refused(protect(*DERIVATIVE, *INSIDE, "--alpha", 0.5, "--weights", "v"), "--weights 'v'")


def test_a_base_may_be_fitted_without_being_released(protect: Run, data: Path, out: Path) -> None:
    done(protect("--output", "v", "--relation", "v = d(r)/d(t)", "--region", "r: 1 <= t <= 2", "--alpha", 0.3))
    release = sf.load(out)
    assert release.design.inputs.outputs.names == ("r", "v")
    assert set(release.inputs[:, -1]) == {1.0}
    new = data.parent / "new.csv"
    new.write_text("t,other\n1.5,x\n")
    table = done(run("predict", out, new, "--of", "r")).stdout.splitlines()
    assert table[0] == "t,mean,std"


def test_predict_asks_which_output_is_meant(protect: Run, data: Path, out: Path) -> None:
    done(protect(*DERIVATIVE, *MEAN, *INSIDE, "--region", "m", "--alpha", 0.5))
    new = data.parent / "new.csv"
    new.write_text("t\n0.5\n1.5\n")
    refused(run("predict", out, new), "--of is missing", "'r', 'v', 'm'")
    refused(run("predict", out, new, "--of", "x"), "--of is 'x'", "'r', 'v', 'm'")
    refused(run("predict", out, new, "--of", "m"), "'m' is one quantity", "leave")
    refused(run("predict", out, "--of", "v"), "NEW is missing", "t")
    seen = answer(run("predict", out, new, "--of", "v", "--json"))
    assert seen["output"] == "v"
    expected = sf.load(out).predict([0.5, 1.5], output="v")
    np.testing.assert_allclose([row["std"] for row in seen["predictions"]], expected.std)


def test_predict_of_a_plain_release_takes_its_own_name_only(protect: Run, data: Path, out: Path) -> None:
    done(protect("--output", "r", *INSIDE, "--alpha", 0.5))
    new = data.parent / "new.csv"
    new.write_text("t\n0.5\n")
    done(run("predict", out, new, "--of", "r"))
    refused(run("predict", out, new, "--of", "v"), "--of is 'v'", "about 'r' alone")
    refused(run("predict", out), "NEW is missing")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--output", "r", "--output", "r", *INSIDE, "--alpha", 1], ["--output 'r'", "more than once"]),
        (["--output", "r", "--relation", "t = d(r)/d(t)", *INSIDE, "--alpha", 0.1], ["'t'", "one of --inputs"]),
        (["--output", "r", "--relation", "v = d r", *INSIDE, "--alpha", 0.1], ["expected `(`", "v = d r"]),
        ([*DERIVATIVE, "--relation", "v = mean(r)", *INSIDE, "--alpha", 0.1], ["'v' on the left more than once"]),
        ([*DERIVATIVE, "--relation", "a = d(v)/d(t)", *INSIDE, "--alpha", 0.1], ["'v' follows from another"]),
        (["--output", "r", "--output", "v", "--relation", "v = mean(r)", *INSIDE, "--alpha", 0.1], ["is one number"]),
        ([*DERIVATIVE, *MEAN, *INSIDE, "--alpha", 0.1], ["'m' is neither released nor sensitive", '"m"']),
        (["--output", "r", "--relation", "v = d(r)/d(t)", "--region", "r: t <= 1", "--alpha", 0.1], ['"v: …"']),
        (["--output", "r", "--relation", "v = d(u)/d(t)", *INSIDE, "--alpha", 0.1], ["no column 'u'"]),
        (["--output", "r", "--relation", "v = d(r)/d(s)", *INSIDE, "--alpha", 0.1], ["'s' is not an input"]),
        ([*DERIVATIVE, "--region", "w: 1 <= t <= 2", "--alpha", 0.1], ["--region names the output 'w'", "'r', 'v'"]),
        ([*DERIVATIVE, "--region", "v", "--alpha", 0.1], ["does not say where 'v'", '"v: 1 <= t <= 2"']),
        ([*DERIVATIVE, *MEAN, "--region", "m: t <= 1", "--alpha", 0.1], ["'m' is one number", "--region 'm'"]),
        ([*DERIVATIVE, "--region", "v: 1 <= t <=", "--alpha", 0.1], ["the region text is wrong"]),
        ([*DERIVATIVE, *INSIDE, "--alpha", "v=0.1"], ["--alpha says nothing of 'r'"]),
        (
            [*DERIVATIVE, "--region", "v: t <= 1", "--alpha", "r=0.1"],
            ["'r' has no region", '--region "r: …"'],
        ),
        ([*DERIVATIVE, *INSIDE, "--alpha", "u=0.1"], ["--alpha names the output 'u'"]),
        ([*DERIVATIVE, *INSIDE, "--alpha", "v=little"], ["--alpha is 'v=little'", "give a number"]),
        ([*DERIVATIVE, *INSIDE, "--alpha", "v=0.1", "--alpha", "v=0.2"], ["'v' has a number already"]),
        ([*DERIVATIVE, *INSIDE, "--alpha", 0.1, "--alpha", "v=0.2"], ["--alpha is 0.1", "'v' has one of its own"]),
        ([*DERIVATIVE, *INSIDE, "--alpha", 0.1, "--floor", "v=0.2"], ["--alpha and --floor: both"]),
        ([*DERIVATIVE, *INSIDE, "--alpha", 0.1, "--output-noise", "0.1"], ["--output-noise is 0.1", "v=0.01"]),
        (
            [*DERIVATIVE, *MEAN, *INSIDE, "--region", "m", "--alpha", 0.1, "--output-noise", "m=1"],
            ["names 'm'", "no noise"],
        ),
        (["--output", "r", *INSIDE, "--alpha", 0.1, "--output-noise", "r=1"], ["--output-noise is for several"]),
        ([*DERIVATIVE, *INSIDE, "--alpha", 0.1, "--kernel", "matern12"], ["v"]),
        (["--output", "r", *INSIDE, "--alpha", 0.1, "--share", 0.5], ["--share", "--ledger FILE"]),
        (["--output", "r", *INSIDE, "--alpha", 0.1, "--remeasured"], ["--remeasured", "--ledger FILE"]),
    ],
)
def test_wrong_use_is_refused_with_the_option_and_the_remedy(
    protect: Run, out: Path, words: list[object], parts: list[str]
) -> None:
    refused(protect(*words), *parts)
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--output", "v"], "--output more than once"),
        (["--relation", "m = mean(r)"], "--relation"),
        (["--region", "t >= 2"], "--region more than once"),
        (["--ledger", "orbit.ledger"], "--ledger"),
    ],
)
def test_several_outputs_and_ledgers_are_for_tables_in_memory(data: Path, words: list[object], option: str) -> None:
    pytest.importorskip("pyarrow")
    table = data.with_suffix(".parquet")
    pd.read_csv(data).to_parquet(table)
    common = ["protect", table, "--no-rehearsal", "--inputs", "t", "--output", "r", *INSIDE, "--alpha", 0.5, "--out"]
    refused(run(*common, f"{data.parent}/release/", *words), f"{option} is for tables that fit in memory")
    assert not (data.parent / "release").exists()
