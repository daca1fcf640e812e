"""Whatever is asked: a clear refusal, or a promise that 50-digit arithmetic confirms from the published numbers."""

from __future__ import annotations

import re

import mpmath
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from kernels import matern, rbf
from oracles import DIGITS, exact, forward50, joint_ratio50
from sfumato.promise.tolerance import FractionTolerance

KERNELS = {"rbf": rbf, "matern32": matern}

#: Why a problem may be refused; any other refusal is a bug.
REFUSALS = re.compile(
    "wholly outside the data|the prior itself already knows|no row of the data has|region is sf.Everywhere|"
    "cover is 'greedy', which would need|which computes the positive part|where nobody can look at every input|"
    "^tolerance: "
)


@st.composite
def problems(draw):
    """Priors, inputs, regions and tolerances of every kind, ordinary and odd."""
    d = draw(st.integers(1, 3))
    n = draw(st.integers(1, 10))
    grid = st.integers(-8, 8).map(lambda v: v / 4)
    X = np.array(draw(st.lists(st.lists(grid, min_size=d, max_size=d), min_size=n, max_size=n)))
    lengthscale = np.array(draw(st.lists(st.sampled_from([0.3, 1.0, 5.0]), min_size=d, max_size=d)))
    variance = draw(st.sampled_from([1e-6, 1.0, 1e4]))
    noise = draw(st.sampled_from([0.0, 1e-8, 0.1, 2.0])) * variance
    if draw(st.booleans()):
        noise = noise * np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n, max_size=n)))
    kind = draw(st.sampled_from(sorted(KERNELS)))
    centre = np.array(draw(st.lists(grid, min_size=d, max_size=d)))
    width = draw(st.sampled_from([0.0, 0.3, 1.0]))
    region = draw(
        st.sampled_from(
            [
                sf.Box(centre - width, centre + width),
                sf.Ball(centre, max(width, 0.1)),
                sf.Points(np.vstack([centre, centre + 0.25, X[:1]])),
                sf.Box(centre - width, centre + width) | sf.Points(X[:2]),
                sf.Everywhere(),
            ]
        )
    )
    tolerance = draw(
        st.sampled_from(
            [
                {"alpha": 0.05},
                {"alpha": 0.6},
                {"alpha": 0.99},
                {"floor": 0.5 * variance**0.5},
                {"floor": 2.0 * variance**0.5},
                {"floor": lambda S: (0.3 + 0.2 * np.cos(S[:, 0])) * variance**0.5},
                {"tolerance": sf.KernelTolerance(KERNELS[kind](lengthscale, 0.4 * variance))},
            ]
        )
    )
    cover = draw(st.sampled_from(["auto", "greedy", "exchange", "rows"]))
    program = draw(
        st.sampled_from(
            [
                {},
                {},
                {"method": "sign"},
                {"structure": "diagonal"},
                {"guarantee": "pointwise"},
                {"guarantee": "pointwise", "structure": "diagonal"},
                {"priors": [sf.Prior(kernel=KERNELS[kind](2.0 * lengthscale, variance), noise=noise)]},
                {"priors": [sf.Prior(kernel=KERNELS[kind](lengthscale, variance), noise=0.1 * variance)],
                 "guarantee": "pointwise"},
                {"weights": np.linspace(0.1, 3.0, n)},
            ]
        )
    )  # fmt: skip
    return kind, lengthscale, variance, noise, X, region, tolerance, cover, program


def kernel50(kind, a, b, lengthscale, variance):
    with mpmath.workdps(DIGITS):
        scales = [mpmath.mpf(float(v)) for v in np.ravel(lengthscale)]
        sigma = mpmath.mpf(float(variance))

        def entry(p, q):
            square = mpmath.fsum(
                ((mpmath.mpf(float(u)) - mpmath.mpf(float(v))) / s) ** 2 for u, v, s in zip(p, q, scales, strict=True)
            )
            if kind == "rbf":
                return sigma * mpmath.exp(-square / 2)
            root = mpmath.sqrt(3 * square)
            return sigma * (1 + root) * mpmath.exp(-root)

        return mpmath.matrix([[entry(p, q) for q in b] for p in a])


@settings(max_examples=20)
@given(problems())
def test_either_a_clear_refusal_or_a_promise_that_high_precision_confirms(problem):
    kind, lengthscale, variance, noise, X, region, tolerance, cover, program = problem
    prior = sf.Prior(kernel=KERNELS[kind](lengthscale, variance), noise=noise)
    try:
        mechanism = sf.protect(prior, X, region, cover=cover, **tolerance, **program, progress=False)
    except sf.InputError as refusal:
        if not REFUSALS.search(str(refusal)):
            raise
        return
    assert mechanism.certificate.holds
    for held in mechanism.design.priors:
        confirm(mechanism, kind, held)


def confirm(mechanism, kind, prior):
    """Check the promise to readers with ``prior`` in 50 digits, with the parameters as published."""
    kernel = prior.kernel
    lengthscale, variance = kernel.base_kernel.lengthscale.numpy(), float(kernel.outputscale)
    # what holds for all sensitive inputs together holds for any forty of them
    X, S = mechanism.inputs, mechanism.sensitive[:40]
    with mpmath.workdps(DIGITS):
        factor = exact(mechanism.noise.factor)
        M = kernel50(kind, X, X, lengthscale, variance)
        if mechanism.noise.rank:
            M = M + factor * factor.T
        for i, v in enumerate(prior.noise_variance(len(X))):
            M[i, i] += mpmath.mpf(float(v)) + mpmath.mpf(mechanism.noise.shift)
        if len(S) and mechanism.design.guarantee == "joint":
            delta = exact(mechanism.tolerance.matrix(prior, S))
            if isinstance(mechanism.tolerance, FractionTolerance):
                delta = mpmath.mpf(mechanism.tolerance.alpha) * kernel50(kind, S, S, lengthscale, variance)
            assert joint_ratio50(M, kernel50(kind, S, X, lengthscale, variance), delta) <= 1 + 2e-9
        region, points = mechanism.region, mechanism.region.points
        if mechanism.certificate.cover == "rows":
            points = mechanism.design.rows_inside()
        if points is None:
            points = region.probes(24, mechanism.design.inputs, batch=5)
        points = np.vstack(
            [points, mechanism.certificate.worst_input[None]] if points is not region.points else [points]
        )
        if mechanism.certificate.cover == "rows":
            points = points[:-1]
        lower = mpmath.cholesky(M)
        explained = forward50(lower, kernel50(kind, X, points, lengthscale, variance))
        left = mpmath.mpf(variance) - (explained**2).sum(axis=0)
        floors = mechanism.tolerance.floor(prior, points)
        assert all(float(v) >= floor**2 * (1 - 4e-9) for v, floor in zip(left, floors, strict=True))


def test_how_much_of_an_average_may_be_learnt_is_a_number_that_no_average_passes():
    """A floor that varies lets more be learnt of some averages than of any single value."""
    prior, T = sf.Prior(matern(0.4)), np.linspace(0, 3, 31)
    made = sf.protect(prior, T, sf.Box(1, 2), floor=lambda x: 0.5 + 0.1 * x[:, 0], progress=False)
    said = float(re.search(r"nor learn more than ([\d.]+) % of the variance of any", made.certificate.promise)[1])
    S, M = made.design.sensitive, prior.covariance(T) + made.noise.covariance()
    K, cross = prior.covariance(S), prior.covariance(T, S)
    learnt = np.linalg.eigvals(np.linalg.solve(K, cross.T @ np.linalg.solve(M, cross))).real.max()
    assert 0.99 * said < 100 * learnt <= said
    assert said > 100 * (1 - 0.6**2)
    noisy = sf.Prior(matern(0.4), noise=0.2)
    alone = sf.protect(noisy, T, sf.Box(1, 2), floor=0.3, protects="records", progress=False)
    assert "nor learn more than 55 % of what is the records' own in any" in alone.certificate.promise


def test_averages_are_promised_to_the_prior_itself_and_not_to_all_readers_of_a_family():
    """One of them, who expects more of the function, learns a larger share of an average."""
    prior, T = sf.Prior(rbf(1.0)), np.linspace(0, 6, 9)
    made = sf.protect(prior.family(variance=(1.0, 3.0)), T, sf.Box(2, 4), floor=0.5, progress=False)
    words = made.certificate.promise
    said = float(re.search(r"nor \(with the prior itself\) learn more than ([\d.]+) % of the variance", words)[1])
    S, learnt = made.design.sensitive, []
    for variance in (1.0, 3.0):
        K, cross = variance * prior.covariance(S), variance * prior.covariance(T, S)
        M = variance * prior.covariance(T) + made.noise.covariance()
        learnt.append(np.max(np.diag(cross.T @ np.linalg.solve(M, cross)) / np.diag(K)))
    assert 100 * learnt[0] <= said == 75 < 100 * learnt[1]
