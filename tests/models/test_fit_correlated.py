"""Outputs that are merely correlated, fitted together: the likelihood and its slopes against brute force."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import torch

import sfumato as sf
from sfumato.models.fit_correlated import OutputsLogDensity


def _parts(seed: int, n: int, p: int) -> tuple[torch.Tensor, ...]:
    random = np.random.default_rng(seed)
    x = random.uniform(0.0, 3.0, n)
    W = random.normal(size=(p, p))
    found = W @ W.T, np.exp(-0.5 * (x[:, None] - x) ** 2), random.uniform(0.1, 1.0, p), random.normal(size=(n, p))
    return tuple(torch.tensor(part, requires_grad=True) for part in found)


def _brute_force(B: torch.Tensor, K: torch.Tensor, d: torch.Tensor, R: torch.Tensor) -> torch.Tensor:
    covariance = torch.kron(B, K) + torch.kron(torch.diag(d), torch.eye(len(K), dtype=torch.float64))
    return torch.distributions.MultivariateNormal(torch.zeros(R.numel(), dtype=torch.float64), covariance).log_prob(
        R.T.reshape(-1)
    )


@pytest.mark.parametrize(("n", "p"), [(7, 2), (5, 3), (4, 1)])
def test_the_likelihood_and_its_slopes_are_those_of_the_whole_covariance(n: int, p: int) -> None:
    parts = _parts(n, n, p)
    value = OutputsLogDensity.apply(*parts)
    slopes = torch.autograd.grad(value, parts)
    expected = _brute_force(*parts)
    whole = torch.autograd.grad(expected, parts)
    torch.testing.assert_close(value, expected)
    for one, other in zip(slopes, whole, strict=True):
        # B and K are symmetric: only the symmetric part of their slopes means anything
        symmetric = (one + one.T, other + other.T) if one.ndim == 2 and one.shape[0] == one.shape[1] else (one, other)
        torch.testing.assert_close(*symmetric, rtol=1e-8, atol=1e-8)


def test_the_slopes_are_finite_where_outputs_are_alike_and_unrelated() -> None:
    # B ∝ D and a singular K have eigenvalues more than once, where slopes of eigenvectors do not exist
    B, K, d = 2.0 * torch.eye(2, dtype=torch.float64), torch.ones(4, 4, dtype=torch.float64), torch.ones(2).double()
    parts = [part.requires_grad_() for part in (B, K, d, torch.randn(4, 2, dtype=torch.float64))]
    slopes = torch.autograd.grad(OutputsLogDensity.apply(*parts), parts)
    whole = torch.autograd.grad(_brute_force(*parts), parts)
    for one, other in zip(slopes, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


def _drawn(seed: int, n: int = 60) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    random = np.random.default_rng(seed)
    t = np.linspace(0.0, 12.0, n)
    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = 1.0
    f = np.linalg.cholesky(sf.Prior(kernel).covariance(t) + 1e-9 * np.eye(n)) @ random.normal(size=(n, 2))
    B = np.array([[4.0, -4.8], [-4.8, 9.0]])
    both = f @ np.linalg.cholesky(B).T + np.array([2.0, 5.0]) + random.normal(size=(n, 2)) * [0.2, 0.3]
    return t, {"infl": both[:, 0], "unemp": both[:, 1]}, B


def _log_likelihood(joint: sf.JointPrior, t: np.ndarray, outputs: dict[str, np.ndarray]) -> float:
    prior = joint.prior_on(("t",))
    rows = np.array([[x, float(number)] for number in range(len(outputs)) for x in t])
    noise = np.repeat([joint.noise_of(name) for name in outputs], len(t))
    return float(
        scipy.stats.multivariate_normal(
            prior.mean_at(rows), prior.covariance(rows) + np.diag(noise), allow_singular=True
        ).logpdf(np.concatenate(list(outputs.values())))
    )


def test_what_the_data_were_drawn_from_is_found() -> None:
    t, outputs, B = _drawn(0)
    joint = sf.fit_correlated(t, outputs)
    prior = joint.prior_on(("t",))
    found = prior.covariance([[0.0, 0.0], [0.0, 1.0]])
    assert found[0, 1] / np.sqrt(found[0, 0] * found[1, 1]) == pytest.approx(-0.8, abs=0.15)
    assert np.diag(found) == pytest.approx(np.diag(B), rel=0.6)
    assert np.sqrt(joint.noise) == pytest.approx([0.2, 0.3], rel=0.25)
    # no other values are more likely: steps in every direction from what was found lose
    best = _log_likelihood(joint, t, outputs)
    term = joint.terms[0]
    for step in (0.97, 1.03):
        kernel = gpytorch.kernels.RBFKernel().double()
        kernel.lengthscale = step * float(term.kernel.lengthscale)
        others = [
            sf.JointPrior.coregionalised(sf.Prior(kernel), found, joint.outputs, _means(joint), _noises(joint)),
            sf.JointPrior.coregionalised(
                sf.Prior(term.kernel), found * step, joint.outputs, _means(joint), _noises(joint)
            ),
            sf.JointPrior.coregionalised(
                sf.Prior(term.kernel),
                found * [[1.0, step], [step, 1.0]],
                joint.outputs,
                _means(joint),
                _noises(joint),
            ),
            sf.JointPrior.coregionalised(
                sf.Prior(term.kernel),
                found,
                joint.outputs,
                _means(joint),
                {name: value * step for name, value in _noises(joint).items()},
            ),
        ]
        for other in others:
            assert _log_likelihood(other, t, outputs) < best


def _noises(joint: sf.JointPrior) -> dict[str, float]:
    return dict(zip(joint.outputs, joint.noise, strict=True))


def _means(joint: sf.JointPrior) -> dict[str, float]:
    at = joint.prior_on(("t",)).mean_at([[0.0, float(number)] for number in range(len(joint.outputs))])
    return dict(zip(joint.outputs, at.tolist(), strict=True))


def test_units_do_not_matter() -> None:
    t, outputs, _ = _drawn(1)
    joint = sf.fit_correlated(t, outputs, kernel="matern52")
    other = sf.fit_correlated(100.0 * t, {"infl": 10.0 * outputs["infl"], "unemp": outputs["unemp"]}, "matern52")
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    factors = np.array([10.0, 10.0, 1.0])
    expected = joint.prior_on(("t",)).covariance(rows) * np.outer(factors, factors)
    np.testing.assert_allclose(other.prior_on(("t",)).covariance(rows * [100.0, 1.0]), expected, rtol=1e-3)
    np.testing.assert_allclose(np.array(other.noise), np.array(joint.noise) * [100.0, 1.0], rtol=1e-3)


def test_rows_in_the_region_have_no_part_in_it() -> None:
    t, outputs, _ = _drawn(2, 40)
    region = sf.Box(4.0, 8.0)
    inside = (t >= 4.0) & (t <= 8.0)
    changed = {name: np.where(inside, 100.0, values) for name, values in outputs.items()}
    one, other = (sf.fit_correlated(t, which, noise=0.1, exclude=region) for which in (outputs, changed))
    assert str(one) == str(other)
    assert one.noise == other.noise == (0.1, 0.1)


def test_a_kernel_of_ones_own_is_fitted_too() -> None:
    t, outputs, _ = _drawn(0, 40)
    kernel = gpytorch.kernels.RBFKernel() + gpytorch.kernels.PeriodicKernel()
    joint = sf.fit_correlated(
        t,
        outputs,
        kernel=kernel,
        mean={"infl": 2.0, "unemp": "zero"},
        noise={
            "infl": "learn",
            "unemp": 0.1,
        },
    )
    assert _means(joint) == {"infl": 2.0, "unemp": 0.0}
    assert joint.noise_of("unemp") == 0.1
    assert float(kernel.kernels[0].lengthscale.detach()) == pytest.approx(float(np.log(2.0)))  # a copy was fitted


@pytest.mark.slow
def test_kernels_as_text_and_trends_are_fitted_too() -> None:
    random, t = np.random.default_rng(3), np.arange(60) / 12.0
    season = 2.0 * np.sin(2 * np.pi * t) + 0.5 * np.cos(4 * np.pi * t)
    slow = np.linalg.cholesky(np.exp(-0.5 * (t[:, None] - t) ** 2) + 1e-9 * np.eye(60)) @ random.normal(size=60)
    infl = 3.0 + 0.7 * t + season + slow + 0.1 * random.normal(size=60)
    unemp = 9.0 - 0.5 * season - 0.5 * slow + 0.1 * random.normal(size=60)
    outputs, text = {"infl": infl, "unemp": unemp}, "rbf + periodic(period=1) * rbf"
    joint = sf.fit_correlated(t, outputs, text, {"infl": "linear", "unemp": "constant"}, restarts=2)
    prior = joint.prior_on(("t",))
    first, last = prior.mean_at([[0.0, 0.0], [5.0, 0.0]])
    assert (last - first) / 5.0 == pytest.approx(0.7, abs=0.4)
    B = prior.covariance([[0.0, 0.0], [0.0, 1.0]])
    assert B[0, 1] / np.sqrt(B[0, 0] * B[1, 1]) < -0.9
    assert np.sqrt(joint.noise) == pytest.approx([0.1, 0.1], rel=0.3)
    # more likely than outputs of which each has a prior of its own, and than without a season
    alone = {name: sf.fit_prior(t, values, text, restarts=2) for name, values in outputs.items()}
    plain = sf.fit_correlated(t, outputs, "rbf", {"infl": "linear", "unemp": "constant"})
    for other in (sf.JointPrior.independent(alone), plain):
        assert _log_likelihood(joint, t, outputs) > _log_likelihood(other, t, outputs) + 10.0


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"outputs": {"infl": [0.0, 1.0, 2.0, 4.0]}}, "at least two outputs"),
        ({"outputs": {"infl": [0.0, 1.0, 2.0, 4.0], "unemp": [1.0] * 4}}, "'unemp'.* is constant"),
        ({"kernel": "cube"}, "kernel is 'cube'"),
        ({"mean": "wavy"}, "mean of 'infl' is 'wavy'"),
        ({"noise": -1.0}, "noise of 'infl' is '-1.0'"),
        ({"noise": {"infl": 0.1}}, "noise names infl, but the outputs are infl, unemp"),
        ({"restarts": 0}, "restarts is 0"),
    ],
)
def test_what_is_wrong_is_refused_with_its_name(change: dict[str, object], parts: str) -> None:
    given = {"outputs": {"infl": [0.0, 1.0, 2.0, 4.0], "unemp": [1.0, 0.0, 3.0, 2.0]}, **change}
    with pytest.raises(sf.InputError, match=parts):
        sf.fit_correlated(np.arange(4.0), **given)
