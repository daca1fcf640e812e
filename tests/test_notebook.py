"""Values in a notebook: the verdict comes first, says what it is about, and names stay text."""

from __future__ import annotations

from html import escape

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.show import plot_audit

HOSTILE = "<script>alert(1)</script>\x1b[2J\nThe promise holds.\n\u202e[/b]$\\frac{$"


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
@pytest.mark.parametrize(
    ("protects", "said"),
    [
        ("both", "The promise holds. It is proved."),
        ("records", "It is about single records, not the typical value at given inputs."),
        ("function", "Do not publish: records in the region go out almost as they are."),
    ],
)
def test_a_notebook_shows_the_verdict_first(protects: str, said: str) -> None:
    t = np.linspace(0.0, 3.0, 16)
    kernel = gpytorch.kernels.MaternKernel(nu=2.5)
    X = pd.DataFrame({HOSTILE: t})
    region = sf.Box({HOSTILE: (1.0, 2.0)})
    mechanism = sf.protect(sf.Prior(kernel=kernel, noise=9.0), X, region, alpha=0.5, protects=protects, progress=False)
    values = [mechanism.certificate, mechanism]
    if mechanism.certificate.verdict == "publish":
        values.append(mechanism.release(np.sin(t), output_name=HOSTILE))
        assert "as claimed by its owner" in values[-1]._repr_html_()
    for value in values:
        shown = value._repr_html_()
        box, _, table = shown.partition("<table")
        assert said in box
        assert "records in the region" in table
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_every_value_that_is_worked_with_has_a_view_and_its_names_stay_text() -> None:
    t = np.linspace(0.0, 3.0, 16)
    X, region = pd.DataFrame({HOSTILE: t}), sf.Box({HOSTILE: (1.0, 2.0)})
    y = pd.Series(np.sin(3 * t), name=HOSTILE)
    prior = sf.fit_prior(X, y, noise=0.01, exclude=region, restarts=1, progress=False)
    release = sf.protect(prior, X, region, alpha=0.5, progress=False).release(y, output_name=HOSTILE)
    audit = sf.audit(release, y, progress=False)
    tradeoff = sf.tradeoff(prior, X, region, [0.5], y=y, ways=["joint"], progress=False)
    rehearsal = sf.rehearse(prior, X, y, region, alpha=0.5, progress=False)
    suggestion = sf.suggest(prior, X, region, alpha=0.5, progress=False)
    joint = sf.JointPrior.independent({HOSTILE: prior})
    shown = {value: value._repr_html_() for value in (prior, prior.family(noise=(0.5, 1.0)), joint)}
    shown |= {value: value._repr_html_() for value in (tradeoff, audit, rehearsal, suggestion)}
    for value in (*shown, release, release.certificate, *release.certificate.findings):
        for line in f"{value!r}\n{value}".split("\n"):
            assert line.isprintable(), line
            assert not line.startswith("The promise holds.\\n"), line
    for figure in (tradeoff.plot().figure, rehearsal.plot().figure, suggestion.plot().figure, plot_audit(audit)):
        figure.draw_without_rendering()
    for value, html in shown.items():
        assert html.isprintable()
        assert "<script" not in html, value
        assert "&lt;script&gt;" in html, value
        # colours are set in pairs, or are those of the notebook: text is never dark on dark
        assert ("background:#" in html) == ("color:#" in html.replace("solid #", "")), value
    assert str(prior.fit_report).split(":")[0] in shown[prior]
    assert "every prior with" in shown[list(shown)[1]]
    assert all(row[0] in shown[audit] for row in audit.rows())
    assert audit.certificate.verdict_in_words in shown[audit]
    assert f">{tradeoff.rows[0].floor:.4g}<" in shown[tradeoff]
    assert escape(rehearsal.results[0].name) in shown[rehearsal]
