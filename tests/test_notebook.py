"""Values in a notebook: the verdict comes first, says what it is about, and names stay text."""

from __future__ import annotations

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf

HOSTILE = "<script>alert(1)</script>"


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
