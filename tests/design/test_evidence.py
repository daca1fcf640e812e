"""What a promise rests on: ``evidence="proved"`` refuses anything less, before anything is released."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpytorch.kernels import RBFKernel

import sfumato as sf
from kernels import matern, rbf
from sfumato.proof import region

T = np.linspace(0.0, 3.0, 25)
X = np.random.default_rng(0).uniform(0.0, 3.0, (8, 2))
BOX = sf.Box(1.0, 2.0)
SQUARE = sf.Box([1.0, 1.0], [2.0, 2.0])
PRIOR = sf.Prior(rbf(0.5), noise=0.01)
#: Proofs over a square take very long under it.
ROUGH = sf.Prior(matern([0.1, 0.1], nu=0.5), noise=0.01)


class Unknown(RBFKernel):
    """A kernel that nobody knows the smoothness of."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs that are out of reach are given up at once."""
    monkeypatch.setattr(region, "LEAST_WORK", 1e8)


def quietly(*given: Any, **how: Any) -> sf.Mechanism:
    return sf.protect(*given, **how, progress=False)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"guarantee": "pointwise"},
        {"structure": "diagonal"},
        {"cover": "rows"},
        {"method": "compressed"},
    ],
    ids=["joint", "pointwise", "diagonal", "rows", "compressed"],
)
@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_what_is_proved_is_given_and_says_so(asked: dict[str, Any]) -> None:
    certificate = quietly(PRIOR, T, BOX, alpha=0.3, evidence="proved", **asked).certificate
    assert (certificate.holds, certificate.evidence, certificate.proved_share) == (True, "proved", 1.0)
    assert "searched" not in {one.code for one in certificate.findings}
    assert dict(certificate.rows())["evidence"].startswith("proved")
    assert certificate.verdict_in_words.startswith("The promise holds. It is proved")


#: Promises that cannot be proved, and the words that say why.
SEARCHED = {
    "floor": ((PRIOR, T, BOX), {"floor": lambda at: 0.6 + 0.1 * at[:, 0]}, "the floor is known at some inputs only"),
    "kernel": ((sf.Prior(Unknown().double(), noise=0.01), T, BOX), {"alpha": 0.3}, "none whose smoothness is known"),
    "work": ((ROUGH, X, SQUARE), {"alpha": 0.3}, "would have taken too long"),
    "width": ((PRIOR, 1e7 * T, sf.Box(0.0, 3e7)), {"alpha": 0.3}, "would have taken too long"),
    "columns": ((PRIOR, np.tile(T[:, None], 7), sf.Box([1.0] * 7, [1.2] * 7)), {"alpha": 0.3}, "too many columns vary"),
}


@pytest.mark.parametrize("name", SEARCHED)
def test_what_is_searched_says_so_and_is_refused_where_a_proof_is_asked_for(name: str) -> None:
    given, how, why = SEARCHED[name]
    with pytest.warns(sf.errors.FindingWarning, match=f"searched, not proved.*{why}"):
        certificate = quietly(*given, **how).certificate
    assert (certificate.holds, certificate.evidence) == (True, "searched")
    assert certificate.proved_share < 1.0
    assert re.match("searched: .* of the region is proved", dict(certificate.rows())["evidence"])
    assert certificate.verdict == "publish with care"
    assert "searched, not all of it is proved" in certificate.verdict_in_words
    message = f'nothing was designed: evidence is "proved".*{why}.*evidence="best"'
    with pytest.raises(sf.GuaranteeError, match=message):
        quietly(*given, **how, evidence="proved")


def test_a_proof_that_would_take_long_is_made_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior = sf.Prior(matern(0.1, nu=1.5), noise=0.01)
    plain = quietly(prior, T, BOX, alpha=0.3, evidence="proved")
    assert plain.certificate.evidence == "proved"
    # as much as a proof may take becomes as little as makes it give up
    monkeypatch.setattr(region, "MOST_SOLVES", {"rows": 0, "sums": 0})
    monkeypatch.setattr(region, "LEAST_WORK", 1.0)
    monkeypatch.setattr(region, "INSISTENCE", 1e10)
    with pytest.warns(sf.errors.FindingWarning, match=r"would have taken too long.*takes longer over it"):
        given_up = quietly(prior, T, BOX, alpha=0.3).certificate
    assert (given_up.holds, given_up.evidence) == (True, "searched")
    mechanism = quietly(prior, T, BOX, alpha=0.3, evidence="proved")
    assert mechanism.certificate.evidence == "proved"
    # who opens the file takes as long over what it claims
    mechanism.release(np.sin(T)).save(tmp_path / "r.sfumato")
    assert sf.load(tmp_path / "r.sfumato").certify(progress=False).evidence == "proved"
    monkeypatch.setattr(region, "INSISTENCE", 1)
    with pytest.raises(sf.GuaranteeError, match="would have taken too long") as refusal:
        quietly(prior, T, BOX, alpha=0.3, evidence="proved")
    assert "takes longer over it" not in str(refusal.value)


def test_other_words_are_refused() -> None:
    with pytest.raises(sf.InputError, match="evidence is 'sure'; choose one of 'best', 'proved'"):
        quietly(PRIOR, T, BOX, alpha=0.3, evidence="sure")


def test_the_estimator_passes_it_on() -> None:
    model = sf.PrivateGPRegressor(region="1 <= x <= 2", alpha=0.3, noise=0.01, lengthscale=0.5, evidence="proved")
    assert model.fit(T[:, None], np.sin(T)).certificate_.evidence == "proved"
    rough = sf.PrivateGPRegressor(
        region="1 <= x0 <= 2 and 1 <= x1 <= 2", alpha=0.3, noise=0.01, lengthscale=0.1, kernel="matern12"
    )
    with pytest.raises(sf.GuaranteeError, match='evidence is "proved"'):
        rough.set_params(evidence="proved").fit(X, np.sin(X[:, 0]))
    assert not hasattr(rough, "release_")
    with pytest.raises(sf.InputError, match="evidence is 3"):
        rough.set_params(evidence=3).fit(X, np.sin(X[:, 0]))


def test_a_ledger_passes_it_on_and_records_nothing_that_was_refused(tmp_path: Path) -> None:
    ledger = sf.Ledger(tmp_path / "orbit.ledger")
    with pytest.raises(sf.GuaranteeError, match='evidence is "proved"'):
        ledger.protect(ROUGH, X, SQUARE, alpha=0.3, evidence="proved", progress=False)
    with pytest.raises(sf.InputError, match="evidence is 'sure'"):
        ledger.protect(PRIOR, T, BOX, alpha=0.3, evidence="sure", progress=False)
    assert len(ledger) == 0
    for _ in range(2):
        mechanism = ledger.protect(PRIOR, T, BOX, alpha=0.3, share=0.4, evidence="proved", progress=False)
        assert mechanism.certificate.evidence == "proved"
        mechanism.release(np.sin(T))
    assert ledger.certificate().evidence == "proved"
    assert "proved: it is kept at every input" in str(ledger.remaining())


@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
def test_a_ledger_is_as_proved_as_the_least_of_its_promises(tmp_path: Path) -> None:
    ledger = sf.Ledger(tmp_path / "both.ledger")
    first = ledger.protect(ROUGH, X, SQUARE, alpha=0.5, share=0.4, progress=False)
    assert first.certificate.evidence == "searched"
    first.release(X[:, 0])
    # the second promise is at one point, which is proved; the first one binds this release as well
    point = sf.Points([[1.5, 1.5]])
    second = ledger.protect(ROUGH, X, point, alpha=0.5, share=0.4, progress=False)
    assert (second.certificate.holds, second.certificate.evidence) == (True, "searched")
    assert "searched" in {one.code for one in second.certificate.findings}
    assert ledger.certificate().evidence == "searched"
