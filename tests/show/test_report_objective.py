"""Reports and comparisons of noise that was made for predictions: what readers lose, and what is not published."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.evaluate import compare_objectives
from sfumato.plots import plot_covariance, plot_noise_map
from sfumato.proof import certify, changes_of

X = pd.DataFrame({"t": np.linspace(0.0, 3.0, 40)})
REGION = sf.Box({"t": (1.0, 1.8)})
INSIDE = ((X["t"] >= 1.0) & (X["t"] <= 1.8)).to_numpy()
OUTSIDE = X[~INSIDE]


def prior() -> sf.Prior:
    kernel = gpytorch.kernels.MaternKernel(nu=2.5).double()
    kernel.lengthscale = 0.3
    return sf.Prior(kernel, noise=0.01)


def made(**how: Any) -> sf.Mechanism:
    return sf.protect(prior(), X, REGION, alpha=0.2, progress=False, **how)


@pytest.fixture(scope="module")
def best() -> sf.Mechanism:
    return made(objective="predictions")


def lost(noise: Any) -> float:
    """The mean variance that readers keep at the rows outside, where the prior's is 1."""
    A = prior().covariance(X.to_numpy()) + 0.01 * np.eye(len(X)) + noise
    cross = prior().covariance(X.to_numpy(), OUTSIDE.to_numpy())
    return float(1.0 - np.mean(np.sum(cross * np.linalg.solve(A, cross), axis=0)))


def test_what_readers_lose_is_compared_with_the_least_noise_and_with_none(best: sf.Mechanism) -> None:
    found = compare_objectives(best.design, best.certificate)
    assert found is not None
    assert found.least is not None
    least = lost(made().noise.covariance())
    assert found.here == pytest.approx(lost(best.noise.covariance()), abs=1e-6)
    # the closed form at the sensitive inputs is close to what a design for the region takes
    assert found.here < 0.9 * found.least
    assert 0.9 * least < found.least < 1.02 * least
    assert found.nothing == pytest.approx(lost(0.0), abs=1e-9)
    assert "instead of" in str(found)


def test_what_has_no_closed_form_is_not_compared(best: sf.Mechanism) -> None:
    assert compare_objectives(made().design, made().certificate) is None
    with pytest.warns(sf.GuaranteeWarning):
        each = made(objective="predictions", guarantee="pointwise")
    found = compare_objectives(each.design, each.certificate)
    assert found is not None
    assert found.least is None
    assert "instead of" not in str(found)


def test_the_report_says_what_is_lost_and_what_is_not_published(best: sf.Mechanism, tmp_path: Path) -> None:
    release = best.release(3 * np.sin(2 * X["t"]), output_name="height")
    text = sf.report(release, tmp_path / "report.html", progress=False).read_text(encoding="utf-8")
    said = html.unescape(re.sub(r"<[^>]*>", "", text)).replace("\u00a0", " ")
    found = compare_objectives(best.design, best.certificate)
    assert found is not None
    assert found.least is not None
    assert f"{100 * found.here:.3g} % instead of {100 * found.least:.3g} %" in said
    count = best.noise.suppressed.shape[1]
    assert count > 0
    assert f"{count} combinations of the 40 rows are not published at all" in said
    for words in ("Typical change", "Least change", "Most possible", "Trusts the prior"):
        assert words in said
    for words in ("Least possible", "Typical noise", "typical noise", "could be saved"):
        assert words not in said
    assert f"± {np.sqrt(np.mean(changes_of(best.design)[INSIDE])):.4g}" in said


def test_pictures_of_rows_show_the_change_where_combinations_are_suppressed(best: sf.Mechanism) -> None:
    (bar,) = plot_covariance(best).child_axes
    label = " ".join(bar.get_ylabel().split())
    assert f"({best.noise.suppressed_count} combinations suppressed)" in label
    rng = np.random.default_rng(0)
    plane = pd.DataFrame({"a": rng.uniform(0, 1, 30), "b": rng.uniform(0, 1, 30)})
    where = sf.Box({"a": (0.3, 0.7), "b": (0.3, 0.7)})
    two = sf.protect(prior(), plane, where, alpha=0.3, objective="predictions", progress=False)
    assert two.noise.suppressed.shape[1] > 0
    (dots,) = plot_noise_map(two).collections[:1]
    np.testing.assert_allclose(np.sort(dots.get_array()), np.sort(np.sqrt(changes_of(two.design))))


def test_predictions_that_may_be_far_from_the_best_are_a_finding(best: sf.Mechanism) -> None:
    poor = replace(best.design, witness=tuple(0.0 * part for part in best.design.witness or ()))
    found = certify(poor)
    # without a witness no noise is known to explain less than the data do
    assert found.explained_upper == pytest.approx(1.0 - lost(0.0), abs=1e-6)
    assert [one.severity for one in found.findings if one.code == "predictions-below-best"] == ["note"]
    assert not any(one.code == "predictions-below-best" for one in best.certificate.findings)
