"""What is said on the page names its steps, and neither arguments nor options."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.studio.remedies import refusal, remedy
from sfumato.studio.session import Session

FOR_PROGRAMS = re.compile(r"--[a-z]|\w=|sf\.|prior\.|\(…")


@pytest.mark.parametrize(
    ("protects", "more"),
    [
        ("both", {}),
        ("function", {}),
        ("records", {}),
        ("both", {"objective": "predictions", "serve": [[2.503]]}),
        ("both", {"objective": "predictions", "insiders": [list(range(20))] * 6}),
    ],
)
def test_remedies_on_the_page_are_about_the_page(protects: str, more: dict[str, Any]) -> None:
    X, y = np.linspace(0, 3, 20)[:, None], np.sin(3.0 * np.linspace(0, 3, 20))
    prior = sf.fit_prior(X, y, kernel="rbf", noise=0.1)
    made = sf.protect(prior, X, sf.Box([1.0], [2.0]), 0.1, protects=protects, **more)
    # other values than those of the fit: for them the best predictions are worse than the least noise
    findings = (*made.certificate.findings, *made.findings_on(np.cos(3.0 * X[:, 0])))
    if "serve" in more:
        assert {"trusts-the-prior", "predictions-not-better"} <= {one.code for one in findings}
    assert any(FOR_PROGRAMS.search(one.remedy) for one in findings), "else nothing is tried"
    for one in findings:
        assert not FOR_PROGRAMS.search(remedy(one)), one.code
        assert bool(remedy(one)) == bool(one.remedy)
    if stopping := [one for one in findings if one.stops]:
        assert not FOR_PROGRAMS.search(refusal(stopping))
        assert "accept in the step Check" in refusal(stopping)


def test_missing_values_are_said_with_the_step_that_deals_with_them() -> None:
    session = Session()
    session.open_upload("x.csv", b"t,y\n1,2\n2,\n3,4\n4,5\n")
    session.choose(inputs=["t"], output="y")
    assert "leave these rows out (step Data)" in session.trouble
    assert not FOR_PROGRAMS.search(session.trouble)
