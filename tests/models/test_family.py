"""Families of priors: the processes below all members, against brute force and spectral densities."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from gpytorch.kernels import RBFKernel, ScaleKernel
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from kernel_oracles import kernel50
from sfumato.models import along_column, build_kernel, describe_kernel
from sfumato.models.stretch import stretch_derivatives

RBF = {"kind": "rbf", "lengthscale": 0.7}
MATERN = {"kind": "matern", "nu": 1.5, "lengthscale": 0.9}
PERIODIC = {"kind": "periodic", "lengthscale": 1.3, "period_length": 0.8}
TREES = [
    RBF,
    *({"kind": "matern", "nu": nu, "lengthscale": 0.5} for nu in (0.5, 1.5, 2.5)),
    {"kind": "rational_quadratic", "alpha": 0.8, "lengthscale": 0.6},
    {"kind": "sum", "kernels": [RBF, {"kind": "product", "kernels": [PERIODIC, MATERN]}]},
    {"kind": "product", "kernels": [RBF, MATERN]},
    {
        "kind": "sum",
        "kernels": [{"kind": "linear", "variance": 0.4}, {"kind": "scale", "variance": 2.0, "kernel": RBF}],
    },
]
ON_SOME_COLUMNS = {
    "kind": "sum",
    "kernels": [
        {**RBF, "active_dims": [0]},
        {**MATERN, "active_dims": [0, 1, 2]},
        {"kind": "constant", "constant": 0.2},
    ],
}


def known(prior, X, s, noise):
    """Var(f(s)|W), by the textbook formula."""
    K, k = prior.covariance(X) + noise, prior.covariance(X, s)
    return float(prior.variance(s)[0] - (k.T @ np.linalg.solve(K, k))[0, 0])


@settings(max_examples=30, deadline=None)
@given(
    tree=st.sampled_from([*TREES, ON_SOME_COLUMNS]),
    low=st.floats(0.2, 1.0),
    ratio=st.floats(1.01, 6.0),
    cells=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_whoever_believes_in_a_member_knows_no_more_than_the_processes_below(tree, low, ratio, cells, seed):
    rng = np.random.default_rng(seed)
    columns = 3 if tree is ON_SOME_COLUMNS else int(rng.integers(1, 3))
    prior = sf.Prior(build_kernel(tree, columns))
    family = sf.PriorFamily(prior, lengthscale=(low, low * ratio), cells=cells)
    X, s = rng.normal(size=(9, columns)) * rng.choice([0.3, 1.0]), rng.normal(size=(1, columns)) * 0.3
    root = rng.normal(size=(9, 9)) * 10 ** rng.uniform(-3, 0)
    noise = root @ root.T + 10 ** rng.uniform(-5, 0) * np.eye(9)
    below = [known(one, X, s, noise) for one in family.members(columns, [(1.0, 1.0)])]
    assert len(below) == cells + 1
    for factor in np.geomspace(low, low * ratio, 7):
        member = family.member(lengthscale=min(max(float(factor), low), low * ratio))
        assert known(member, X, s, noise) >= min(below) * (1 - 1e-9)


def test_the_process_below_is_lost_little_where_cells_are_small():
    family = sf.PriorFamily(sf.Prior(build_kernel(RBF)), lengthscale=(0.5, 2.0), cells=8)
    kept = [1.0 / one.stands_for for one in family.members(1, [(1.0, 1.0)])]
    step = np.log(4.0) / 8
    assert kept[0] == 1.0
    assert np.allclose(kept[1:], 1.0 - 1.5 * step**2, atol=2 * step**3)
    assert min(kept) > np.exp(-step)  # the plain bound (ℓ/ℓ₂)^d


@pytest.mark.parametrize("tree", [t for t in TREES if "nu" in t or t["kind"] in ("rbf", "rational_quadratic")])
def test_a_stretch_is_minus_the_slope_in_the_lengthscale(tree):
    with mpmath.workdps(50):
        stretch = build_kernel({**tree, "kind": f"{tree['kind']}_stretch"}, 2)
        a, b = [mpmath.mpf("0.3"), mpmath.mpf("-0.2")], [mpmath.mpf("0.1"), mpmath.mpf("0.5")]

        def at(log_scale):
            return kernel50({**tree, "lengthscale": mpmath.mpf(tree["lengthscale"]) * mpmath.exp(log_scale)}, a, b)

        expected = at(0) - mpmath.diff(at, 0) / 2
    found = sf.Prior(stretch).covariance([[0.3, -0.2]], [[0.1, 0.5]])[0, 0]
    assert found == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize(("nu", "orders"), [(0.5, 1), (1.5, 2), (2.5, 3)])
def test_what_is_said_of_the_smoothness_of_a_stretch_is_true(nu, orders):
    tree = {"kind": "matern_stretch", "nu": nu, "lengthscale": 0.5}
    prior = sf.Prior(build_kernel(tree))
    along = along_column(prior.kernel, 0, None, np.zeros(1), np.ones(1))

    def value(z):
        shape = {0.5: 1 - z, 1.5: 1 + z - z**2, 2.5: 1 + z - z**3 / 3}[nu]
        return shape * mpmath.exp(-z)

    frequency = mpmath.sqrt(2 * nu) / mpmath.mpf("0.5")
    # std(f^(j))² is the 2j-th derivative of the covariance at 0, up to the sign
    for order in range(orders):
        exact = mpmath.diff(lambda r: value(frequency * r), mpmath.mpf(0), 2 * order, direction=1)
        assert along.derivative(order) ** 2 == pytest.approx(abs(float(exact)), rel=1e-6)
    assert not np.isfinite(along.derivative(orders))
    # nothing between 0 and far away is larger than the bounds
    bounds = stretch_derivatives(nu, float(frequency), 6)
    for order in range(6):
        places = mpmath.linspace("0.01", "4", 25)
        largest = max(abs(mpmath.diff(lambda r: value(frequency * r), r, order)) for r in places)
        assert float(largest) <= bounds[order]
    x = np.linspace(0.0, 1.0, 201)[:, None]
    moved = 2.0 * (prior.variance(x[:1])[0] - prior.covariance(x[:1], x)[0])
    assert all(
        np.sqrt(max(step, 0.0)) <= along.step(float(gap)) + 1e-9 for gap, step in zip(x[:, 0], moved, strict=True)
    )


def test_kernels_that_are_not_known_are_tried_at_some_members_only():
    class Own(RBFKernel):
        pass

    family = sf.Prior(ScaleKernel(Own())).family(lengthscale=(0.5, 2.0))
    assert not family.is_proved
    lengthscales = [float(one.kernel.base_kernel.lengthscale) for one in family.members(1, [(1.0, 1.0)])]
    assert np.allclose(lengthscales, lengthscales[4] * np.geomspace(2.0, 0.5, 9))


def test_periods_and_what_else_is_fixed_stay_as_they_are():
    tree = TREES[5]
    member = sf.Prior(build_kernel(tree)).family(lengthscale=(0.5, 2.0)).member(lengthscale=2.0)
    found = describe_kernel(member.kernel)["kernels"]
    assert found[0]["lengthscale"] == pytest.approx(1.4)
    assert found[1]["kernels"][0] == PERIODIC
    assert found[1]["kernels"][1]["lengthscale"] == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"lengthscale": (2.0, 0.5)}, r"lengthscale is \(2.0, 0.5\)"),
        ({"noise": 2.0}, "noise is 2.0; give the least and the largest factor"),
        ({"variance": (0.0, 1.0)}, "variance is"),
    ],
)
def test_ranges_are_checked(ranges, message):
    with pytest.raises(sf.InputError, match=message):
        sf.Prior(build_kernel(RBF)).family(**ranges)


def test_a_kernel_without_lengthscales_has_none_to_vary():
    with pytest.raises(sf.InputError, match="no lengthscale"):
        sf.Prior(build_kernel({"kind": "linear", "variance": 1.0})).family(lengthscale=(0.5, 2.0))


@pytest.mark.parametrize(
    "tree",
    [
        {"kind": "rbf_stretch", "lengthscale": 0.5},
        {"kind": "matern_stretch", "nu": 1.5, "lengthscale": 0.5},
        {"kind": "sum", "kernels": [RBF, {"kind": "rational_quadratic_stretch", "alpha": 1.0, "lengthscale": 0.5}]},
    ],
)
def test_nothing_is_proved_of_a_family_of_stretches(tree):
    """Their lengthscales vary too, and no process below is known: a file may name such kernels."""
    assert not sf.Prior(build_kernel(tree, 1)).family(lengthscale=(0.5, 2.0)).is_proved
    assert sf.Prior(build_kernel(tree, 1)).family(variance=(0.5, 2.0)).is_proved
