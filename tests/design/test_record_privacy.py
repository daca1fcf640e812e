"""Independent noise on top of a design: each record is (ε, δ)-private, and the promise stays kept."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.models import build_kernel

X = np.linspace(0.0, 1.0, 24)
PRIOR = sf.Prior(kernel=build_kernel({"kind": "rbf", "lengthscale": 0.2}), noise=0.3)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize("protects", ["both", "function"])
def test_a_design_with_dp_has_the_asked_epsilon_and_keeps_its_promise(protects, structure):
    options = {"alpha": 0.4, "protects": protects, "structure": structure, "progress": False}
    bare = sf.protect(PRIOR, X, sf.Box(0.4, 0.6), **options)
    private = sf.protect(PRIOR, X, sf.Box(0.4, 0.6), dp=(2.0, 3.0, 1e-5), **options)
    inside = np.flatnonzero((X >= 0.4) & (X <= 0.6))
    inverse = np.linalg.pinv(private.noise.covariance(), rcond=1e-13)
    mu = 3.0 * np.sqrt(np.max(np.diag(inverse)[inside]))
    assert private.certificate.holds
    assert private.certificate.dp(range=3.0, delta=1e-5).mu == pytest.approx(mu, rel=1e-6)
    assert private.certificate.dp(range=3.0, delta=1e-5) <= 2.0 * (1 + 1e-9)
    assert structure == "diagonal" or np.isinf(bare.certificate.dp(range=3.0))
    assert private.noise.trace >= bare.noise.trace


def test_what_dp_means_is_checked_before_any_work():
    with pytest.raises(sf.InputError, match=r"dp is 2\.0; give"):
        sf.protect(PRIOR, X, sf.Box(0.4, 0.6), alpha=0.4, dp=2.0)
