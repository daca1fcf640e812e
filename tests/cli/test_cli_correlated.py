"""``sfumato protect --correlated``: outputs that go together without one following from the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from command_line import answer, done, refused, run

ASKED = ["--region", "infl: 1979 <= year <= 1983", "--floor", "infl=1.2", "--fit-outside"]
TOGETHER = ["--correlated", "infl,unemp"]


@pytest.fixture(scope="module")
def economy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty years of two series that go together (correlation −0.86), as inflation and unemployment may."""
    random, years = np.random.default_rng(0), 1960.0 + np.arange(60)
    smooth = np.exp(-0.5 * ((years[:, None] - years) / 4.0) ** 2) + 1e-8 * np.eye(60)
    first, second = (np.linalg.cholesky(smooth) @ random.normal(size=(60, 2))).T
    infl = 4.0 + 2.0 * first + 0.3 * random.normal(size=60)
    unemp = 6.0 - 1.2 * first + 0.7 * second + 0.2 * random.normal(size=60)
    path = tmp_path_factory.mktemp("economy") / "economy.csv"
    pd.DataFrame({"year": years, "infl": infl, "unemp": unemp}).to_csv(path, index=False)
    return path


def protect(economy: Path, out: Path, *words: object) -> Any:
    both = ["--output", "infl", "--output", "unemp"]
    return run("protect", economy, "--inputs", "year", *both, *ASKED, "--no-rehearsal", "--out", out, *words)


@pytest.fixture(scope="module")
def together(economy: Path) -> Path:
    out = economy.with_name("together.sfumato")
    done(protect(economy, out, *TOGETHER))
    return out


def test_a_finding_on_series_that_go_together_has_a_way_out(economy: Path, together: Path) -> None:
    alone = protect(economy, economy.with_name("alone.sfumato"), "--json")
    found = {one["code"]: one for one in answer(alone)["certificate"]["findings"]}["outputs-go-together"]
    assert "go together (correlation -0." in found["text"]
    assert "--correlated" in found["remedy"]
    made = answer(protect(economy, economy.with_name("again.sfumato"), *TOGETHER, "--json"))
    assert made["certificate"]["verdict"] == "publish"
    assert "protected-one-by-one" not in {one["code"] for one in made["certificate"]["findings"]}


def test_what_one_tells_of_the_other_is_in_the_prior_and_in_the_noise(economy: Path, together: Path) -> None:
    release = sf.load(together)
    B = release.prior.covariance([[1980.0, 0.0], [1980.0, 1.0]])
    assert B[0, 1] / np.sqrt(B[0, 0] * B[1, 1]) == pytest.approx(-0.82, abs=0.1)
    years, _ = release.rows_of("unemp")
    inside = (np.ravel(years) >= 1979) & (np.ravel(years) <= 1983)
    noise = release.design.noise.variance()[release.design.inputs.rows_about("unemp")]
    # unemployment is no secret, but what it says of inflation is
    assert noise[inside].min() > 4 * noise[~inside].min()


def test_the_release_can_be_certified_read_and_attacked(economy: Path, together: Path) -> None:
    assert answer(run("certify", together, "--json"))["certificate"]["verdict"] == "publish"
    new = economy.with_name("new.csv")
    pd.DataFrame({"year": [1970.5, 1981.5]}).to_csv(new, index=False)
    seen = answer(run("predict", together, new, "--of", "infl", "--json"))["predictions"]
    assert seen[1]["std"] >= 1.2 > seen[0]["std"]
    attacked = run("audit", together, "--truth", economy, "--draws", 2, "--json")
    assert attacked.exit_code in (0, 1), attacked.output


def test_rows_where_one_is_secret_have_no_part_in_the_fit_of_any(economy: Path) -> None:
    table = pd.read_csv(economy)
    inside = (table["year"] >= 1979) & (table["year"] <= 1983)
    changed = economy.with_name("changed.csv")
    table.assign(unemp=np.where(inside, 50.0, table["unemp"])).to_csv(changed, index=False)
    priors = []
    for data in (economy, changed):
        out = data.with_name("fitted.sfumato")
        protect(data, out, *TOGETHER)
        priors.append(str(sf.load(out).prior))
    assert priors[0] == priors[1]


def test_a_relation_of_one_of_them_is_kept(economy: Path) -> None:
    out = economy.with_name("mean.sfumato")
    mean = ["--relation", "m = mean(infl where 1979 <= year <= 1983)", "--region", "m", "--floor", "m=0.8"]
    done(protect(economy, out, *TOGETHER, *mean))
    release = sf.load(out)
    assert release.design.inputs.outputs.names == ("infl", "unemp", "m")
    assert release.predict(None, output="m").std[0] >= 0.8


def test_a_derivative_is_not_made_harmless_by_calling_it_correlated(tmp_path: Path) -> None:
    t = np.linspace(0.0, 6.0, 40)
    data, out = tmp_path / "orbit.csv", tmp_path / "orbit.sfumato"
    pd.DataFrame({"t": t, "r": np.sin(2 * t), "v": 2 * np.cos(2 * t)}).to_csv(data, index=False)
    words = ["--inputs", "t", "--output", "r", "--output", "v", "--correlated", "r,v", "--region", "r: 2 <= t <= 3"]
    fixed = ["--lengthscale", 0.7, "--noise", 0.01, "--alpha", "r=0.5", "--fit-outside", "--no-rehearsal"]
    result = run("protect", data, *words, *fixed, "--out", out)
    refused(result, "'v' looks like the derivative of 'r', but they are taken for correlated at equal inputs", code=1)


def test_what_is_correlated_must_be_of_some_use(economy: Path) -> None:
    out = economy.with_name("refused.sfumato")
    words = ["--inputs", "year", "--output", "infl", *ASKED, *TOGETHER, "--out", out]
    refused(run("protect", economy, *words), "'unemp'", "neither released nor sensitive")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--correlated", "infl"], ["names 1 output(s)", "infl,unemp"]),
        (["--correlated", "infl,year"], ["'year'", "one of --inputs"]),
        (["--correlated", "infl,infl"], ["'infl' more than once"]),
        (["--correlated", "infl,gdp"], ["no column 'gdp'"]),
        (["--correlated", "infl,v", "--relation", "v = d(unemp)/d(year)"], ["'v' follows from another output"]),
        ([*TOGETHER, "--mean", "wavy"], ["mean", "'wavy'"]),
    ],
)
def test_what_cannot_be_meant_is_refused(economy: Path, words: list[str], parts: list[str]) -> None:
    out = economy.with_name("refused.sfumato")
    refused(protect(economy, out, *words), *parts)
    assert not out.exists()
