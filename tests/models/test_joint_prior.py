"""Joint priors: what users write, the process that it means, and what they are told when it is wrong."""

from __future__ import annotations

import pickle

import gpytorch
import mpmath
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oracles
import sfumato as sf
from kernel_oracles import jet50
from kernels import matern, rbf
from sfumato.models.trees import build_kernel, build_mean, describe_kernel, describe_mean

T = np.linspace(0.0, 3.0, 9)
RBF_TREE = {"kind": "scale", "variance": 2.5, "kernel": {"kind": "rbf", "lengthscale": 0.37}}
PRIOR = sf.Prior(build_kernel(RBF_TREE), mean=1.5, noise=0.04)


def at(x, output):
    x = np.asarray(x, dtype=float).reshape(len(x), -1)
    return np.column_stack([x, np.full(len(x), float(output))])


# ---------------------------------------------------------------- functionals of one function


def test_a_position_and_its_velocity_are_one_process():
    joint = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "rdot": sf.Derivative("t")})
    K = joint.prior_on(("t",)).covariance(np.vstack([at(T, 0), at(T, 1)]))
    t = T[:, None]
    blocks = [[jet50(RBF_TREE, t, t, left, right) for right in (None, 0)] for left in (None, 0)]
    expected = np.block(blocks)
    assert np.abs(K - expected).max() <= 1e-12 * np.abs(expected).max()
    with mpmath.workdps(50):
        # by hand: Cov(r(s), r′(t)) = −∂k/∂s = (s − t)/ℓ² k(s, t)
        gap, scale = mpmath.mpf(float(T[3])) - mpmath.mpf(float(T[1])), mpmath.mpf(0.37)
        by_hand = float(gap / scale**2 * mpmath.mpf(2.5) * mpmath.exp(-((gap / scale) ** 2) / 2))
    assert K[3, 9 + 1] == pytest.approx(by_hand, rel=1e-13)


def test_a_derivative_has_slope_means_and_an_average_averaged_ones():
    mean = gpytorch.means.LinearMean(2)
    mean.initialize(weights=torch.tensor([[2.0], [-1.0]]), bias=torch.tensor([0.5]))
    functionals = {"f": sf.Value(), "slope": sf.Derivative("v"), "mid": sf.Average([[0.0, 0.0], [2.0, 4.0]])}
    prior = sf.JointPrior.of(sf.Prior(rbf([0.5, 1.0]), mean), functionals).prior_on(("u", "v"))
    rows = [[1.0, 2.0, 0.0], [1.0, 2.0, 1.0], [9.0, 9.0, 2.0]]
    assert prior.mean_at(rows) == pytest.approx([0.5, -1.0, 0.5], abs=1e-13)


def test_what_follows_from_one_of_several_outputs_is_the_same_process_as_from_the_functions_they_mix():
    B = np.array([[2.0, -1.1], [-1.1, 3.0]])
    mixed = sf.JointPrior.coregionalised(PRIOR, B, ("a", "b"), mean={"a": 1.0, "b": 2.0})
    more = mixed.with_related(
        {"slope": ("b", sf.Derivative("t")), "mid": ("a", sf.Average([0.5, 1.0]))}, {"slope": 0.3}
    )
    assert more.outputs == ("a", "b", "slope", "mid")
    assert more.noise == (0.04, 0.04, 0.3, 0.0)
    K = more.prior_on(("t",)).covariance(np.vstack([at(T, number) for number in range(4)]))
    t, points = T[:, None], np.array([[0.5], [1.0]])
    plain, left, slopes = (jet50(RBF_TREE, t, t, *which) for which in ((None, None), (None, 0), (0, 0)))
    n = len(T)
    np.testing.assert_allclose(K[:n, 2 * n : 3 * n], B[0, 1] * left, atol=1e-11)
    np.testing.assert_allclose(K[2 * n : 3 * n, 2 * n : 3 * n], B[1, 1] * slopes, atol=1e-10)
    np.testing.assert_allclose(K[:n, n : 2 * n], B[0, 1] * plain, atol=1e-12)
    middle = jet50(RBF_TREE, t, points, None, None).mean(axis=1)
    np.testing.assert_allclose(K[n : 2 * n, 3 * n], B[0, 1] * middle, atol=1e-12)
    assert more.prior_on(("t",)).mean_at([[1.0, 2.0], [1.0, 3.0]]) == pytest.approx([0.0, 1.0])
    with pytest.raises(sf.InputError, match="follows from another output itself"):
        more.with_related({"x": ("slope", sf.Derivative("t"))})


def test_one_output_by_itself_has_a_prior_over_the_inputs():
    mixed = sf.JointPrior.coregionalised(PRIOR, [[2.0, -1.1], [-1.1, 3.0]], ("a", "b"), mean={"b": 2.0})
    both = sf.JointPrior.independent(mixed, {"c": sf.Prior(rbf(0.3), 0.5, 0.7)})
    both = both.with_related({"slope": ("b", sf.Derivative("t"))})
    whole = both.prior_on(("t",))
    for number, name in enumerate("abc"):
        alone = both.prior_of(name)
        np.testing.assert_allclose(alone.covariance(T), whole.covariance(at(T, number)), atol=1e-12)
        np.testing.assert_allclose(alone.mean_at(T), whole.mean_at(at(T, number)))
        assert alone.noise == both.noise_of(name)
    assert both.prior_of("slope") is None


def test_an_integral_is_the_limit_of_averages():
    """∫₀¹ k(x, z) dz of an RBF is an error function."""
    joint = sf.JointPrior.of(sf.Prior(rbf(0.4)), {"f": sf.Value(), "total": sf.Integral(0.0, 1.0)})
    K = joint.prior_on(("x",)).covariance([[0.3, 0.0], [0.5, 1.0]])
    with mpmath.workdps(30):
        exact = mpmath.quad(lambda z: mpmath.exp(-(((z - mpmath.mpf(0.3)) / mpmath.mpf(0.4)) ** 2) / 2), [0, 0.5, 1])
    assert K[0, 1] == pytest.approx(float(exact), rel=1e-12)
    assert joint.place_of("total") == pytest.approx([0.5], rel=1e-14)


@given(st.integers(1, 3), st.integers(1, 7))
def test_weights_of_an_integral_add_up_to_the_volume(columns, nodes):
    lower, upper = np.arange(columns) - 0.5, np.arange(columns) * 2.0 + 1.0
    average = sf.Integral(lower, upper, nodes).average
    assert average.points.shape == (nodes**columns, columns)
    assert average.weights.sum() == pytest.approx(np.prod(upper - lower), rel=1e-13)
    assert np.all((average.points > lower) & (average.points < upper))
    # exact for products of polynomials up to this degree
    degree = 2 * nodes - 1
    exact = np.prod((upper ** (degree + 1) - lower ** (degree + 1)) / (degree + 1))
    assert average.weights @ np.prod(average.points**degree, axis=1) == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_the_noise_of_a_value_is_the_priors_and_others_have_none():
    functionals = {"r": sf.Value(), "rdot": sf.Derivative(), "again": sf.Value(), "all": sf.Average(T)}
    joint = sf.JointPrior.of(PRIOR, functionals, noise={"again": 0.5})
    assert [joint.noise_of(name) for name in joint.outputs] == [0.04, 0.0, 0.5, 0.0]
    assert joint.prior_on(("t",)).noise == 0.0
    rough = sf.Prior(rbf(0.3), noise=[0.1, 0.2])
    with pytest.raises(sf.InputError, match=r"noise of the prior has 2 values.*give one number, or noise="):
        sf.JointPrior.of(rough, {"r": sf.Value()})
    assert sf.JointPrior.of(rough, {"r": sf.Value()}, noise={"r": 1.0}).noise_of("r") == 1.0
    assert sf.JointPrior.of(rough, {"rdot": sf.Derivative()}).noise_of("rdot") == 0.0


def test_columns_are_found_by_name_number_or_because_there_is_only_one():
    def column(functional, names):
        return sf.JointPrior.of(PRIOR, {"d": functional}).prior_on(names).kernel.entries[0][0][1].column

    assert column(sf.Derivative(), ("t",)) == 0
    assert column(sf.Derivative("v"), ("u", "v")) == 1
    assert column(sf.Derivative(np.int64(1)), ("u", "v")) == 1
    for functional, words in [
        (sf.Derivative(), r"column is left out.*the columns are u, v; give one"),
        (sf.Derivative("w"), "column is 'w', but the columns are u, v"),
        (sf.Derivative(2), r"column is 2, but the columns are u, v; give a number from 0 to 1"),
        (sf.Derivative(-1), "column is -1"),
        (sf.Average([0.0, 1.0]), r"points has 1 column\(s\), but the inputs have 2 \(u, v\)"),
        (sf.Average(pd.DataFrame({"u": [0.0], "w": [1.0]})), "points has no column 'v'; it has u, w"),
    ]:
        with pytest.raises(sf.InputError, match=words):
            column(functional, ("u", "v"))


def test_points_of_a_frame_are_put_into_the_order_of_the_inputs():
    frame = pd.DataFrame({"v": [1.0, 2.0], "u": [3.0, 4.0]})
    kernel = sf.JointPrior.of(PRIOR, {"m": sf.Average(frame)}).prior_on(("u", "v")).kernel
    assert kernel.entries[0][0][1].points.tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert sf.JointPrior.of(PRIOR, {"m": sf.Average(frame)}).place_of("m", ("u", "v")).tolist() == [3.5, 1.5]
    assert kernel.place(0).tolist() == [3.5, 1.5]


def test_only_averages_have_a_place():
    joint = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "m": sf.Average([0.0, 1.0, 4.0], [1.0, 0.0, -3.0])})
    assert joint.takes_input("r")
    assert not joint.takes_input("m")
    assert joint.place_of("m") == pytest.approx([3.0])
    with pytest.raises(sf.InputError, match="output is 'r', which takes an input"):
        joint.place_of("r")
    with pytest.raises(sf.InputError, match="output is 'x', but the outputs are r, m"):
        joint.noise_of("x")
    far = sf.Average(1.7e9 + np.array([0.0, 0.25, 0.5]))
    assert far.place.tolist() == [1.7e9 + 0.25]


# ---------------------------------------------------------------- independent outputs


def test_independent_outputs_covary_with_nothing_but_themselves():
    other = sf.Prior(matern(0.8, 0.5), mean=-2.0, noise=0.01)
    motion = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "rdot": sf.Derivative()})
    joint = sf.JointPrior.independent(motion, {"theta": other, "phi": PRIOR})
    assert joint.outputs == ("r", "rdot", "theta", "phi")
    prior = joint.prior_on(("t",))
    K = prior.covariance(np.vstack([at(T, o) for o in range(4)]))
    blocks = K.reshape(4, 9, 4, 9).swapaxes(1, 2)
    alone = motion.prior_on(("t",)).covariance(np.vstack([at(T, 0), at(T, 1)]))
    assert np.array_equal(K[:18, :18], alone)
    assert np.array_equal(blocks[2, 2], other.covariance(T))
    assert np.array_equal(blocks[3, 3], PRIOR.covariance(T))
    assert not K[:18, 18:].any()
    assert not blocks[2, 3].any()
    expected = np.eye(4, dtype=bool)
    expected[:2, :2] = True
    assert np.array_equal(prior.kernel.related, expected)
    assert prior.mean_at([[1.0, o] for o in range(4)]).tolist() == [1.5, 0.0, -2.0, 1.5]
    assert [joint.noise_of(name) for name in joint.outputs] == [0.04, 0.0, 0.01, 0.04]


# ---------------------------------------------------------------- coregionalised outputs


def test_coregionalised_outputs_are_gpytorchs_multitask_kernel():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        kernel = gpytorch.kernels.MultitaskKernel(rbf([0.5, 0.8], 1.3), num_tasks=3, rank=2).double()
    X = np.random.default_rng(0).uniform(0, 2, (6, 2))
    with torch.no_grad():
        expected = kernel(torch.from_numpy(X)).to_dense().numpy().reshape(6, 3, 6, 3).transpose(1, 0, 3, 2)
        B = kernel.task_covar_module._eval_covar_matrix().numpy()
    rows = np.vstack([at(X, o) for o in range(3)])
    direct = sf.JointPrior.from_multitask(kernel, ("a", "b", "c")).prior_on(("u", "v")).covariance(rows)
    np.testing.assert_allclose(direct, expected.reshape(18, 18), rtol=1e-10, atol=1e-10)
    given_B = sf.JointPrior.coregionalised(sf.Prior(rbf([0.5, 0.8], 1.3)), B, ("a", "b", "c"))
    np.testing.assert_allclose(given_B.prior_on(("u", "v")).covariance(rows), direct, rtol=0, atol=1e-13 * B.max())
    exact = np.kron(B, oracles.rbf(X, X, np.array([0.5, 0.8]), 1.3))
    np.testing.assert_allclose(direct, exact, rtol=0, atol=1e-12 * B.max())


def test_an_lcm_kernel_is_a_sum_of_such():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        kernel = gpytorch.kernels.LCMKernel([rbf(0.5, 1.3), matern(0.7)], num_tasks=2, rank=1).double()
    X = np.linspace(0, 2, 5)
    with torch.no_grad():
        expected = kernel(torch.from_numpy(X[:, None])).to_dense().numpy().reshape(5, 2, 5, 2).transpose(1, 0, 3, 2)
    joint = sf.JointPrior.from_multitask(kernel, ("a", "b"), mean={"b": 3.0}, noise=0.1)
    prior = joint.prior_on(("x",))
    direct = prior.covariance(np.vstack([at(X, 0), at(X, 1)]))
    np.testing.assert_allclose(direct, expected.reshape(10, 10), rtol=1e-10, atol=1e-10)
    assert prior.mean_at([[0.0, 0.0], [0.0, 1.0]]).tolist() == [0.0, 3.0]
    assert joint.noise == (0.1, 0.1)


@given(st.integers(1, 6), st.integers(0, 100))
def test_a_covariance_of_any_rank_is_kept(count, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(count, int(rng.integers(1, count + 1))))
    W[rng.random(count) < 0.2] = 0.0
    W[0, 0] = 1.0
    W[:, -1] *= 10.0 ** -int(rng.integers(6))
    B = W @ W.T
    names = tuple("abcdef"[:count])
    kernel = sf.JointPrior.coregionalised(sf.Prior(rbf(1.0)), B, names).prior_on(("x",)).kernel
    mixing = kernel.terms[0].mixing
    np.testing.assert_allclose(mixing @ mixing.T, B, rtol=0, atol=1e-13 * np.abs(B).max())


def test_outputs_that_b_keeps_apart_stay_unrelated():
    B = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 0.0, 4.0]])
    joint = sf.JointPrior.coregionalised(PRIOR, B, ("a", "b", "c"), mean={"b": -1.0}, noise={"c": 0.3})
    prior = joint.prior_on(("x",))
    assert np.array_equal(prior.kernel.related, B != 0)
    W = np.zeros((6, 6))  # two groups that a common eigendecomposition would connect by round-off
    W[::2, ::2], W[1::2, 1::2] = np.random.default_rng(0).normal(size=(2, 3, 3))
    kernel = sf.JointPrior.coregionalised(PRIOR, W @ W.T, tuple("abcdef")).prior_on(("x",)).kernel
    assert np.array_equal(kernel.related, np.kron(np.ones((3, 3)), np.eye(2)) != 0)
    assert joint.noise == (0.04, 0.04, 0.3)
    assert prior.mean_at([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]).tolist() == [1.5, -1.0, 1.5]


@pytest.mark.parametrize(
    ("B", "words"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "B has the eigenvalue -1, but a covariance"),
        ([[1.0, 0.5], [0.0, 1.0]], "B is not symmetric"),
        ([[0.0, 0.0], [0.0, 0.0]], "B is zero"),
        ([[1.0]], r"B has shape \(1, 1\); give a 2 × 2 matrix"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ("identity", "B is 'identity'"),
    ],
)
def test_b_must_be_a_covariance(B, words):
    with pytest.raises(sf.InputError, match=words):
        sf.JointPrior.coregionalised(PRIOR, B, ("a", "b"))


def test_other_kernels_for_several_tasks_are_refused():
    make = gpytorch.kernels.MultitaskKernel
    for kernel, words in [
        (rbf(0.5), "class ScaleKernel; give a MultitaskKernel or an LCMKernel"),
        (make(rbf(0.5), num_tasks=3), "kernel has 3 tasks, but outputs has 2 names"),
        (make(gpytorch.kernels.RBFKernel(active_dims=[0]), num_tasks=2), r"active_dims=\[0\], which GPyTorch"),
        (make(gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(active_dims=[0])), num_tasks=2), "active_dims"),
        (make(rbf(0.5), num_tasks=2, batch_shape=torch.Size([2])), "batch shape"),
    ]:
        with pytest.raises(sf.InputError, match=words):
            sf.JointPrior.from_multitask(kernel, ("a", "b"))


# ---------------------------------------------------------------- as a prior


def test_the_prior_of_a_joint_prior_is_written_and_pickled_like_any_other():
    functionals = {"r": sf.Value(), "rdot": sf.Derivative("t"), "m": sf.Average([0.0, 1.0])}
    joint = sf.JointPrior.independent(sf.JointPrior.of(PRIOR, functionals), {"theta": sf.Prior(matern(0.5), mean=2.0)})
    rows = np.vstack([at(T, o) for o in range(4)])
    prior = joint.prior_on(("t",))
    twins = [
        sf.Prior(build_kernel(describe_kernel(prior.kernel), 2), build_mean(describe_mean(prior.mean), 2)),
        pickle.loads(pickle.dumps(prior)),
        pickle.loads(pickle.dumps(joint)).prior_on(("t",)),
    ]
    for twin in twins:
        assert np.array_equal(twin.covariance(rows), prior.covariance(rows))
        assert np.array_equal(twin.mean_at(rows), prior.mean_at(rows))
    assert str(prior).startswith("prior over 4 outputs: (output 0: f; output 1: df/dx0;")


def test_seeing_the_velocity_tells_of_the_position():
    """The reason for all this: r given rdot and one r is known, which independent priors would not say."""
    rows = np.vstack([at(T, 1), [[0.0, 0.0]]])
    joint = sf.JointPrior.of(sf.Prior(rbf(1.0)), {"r": sf.Value(), "rdot": sf.Derivative()}).prior_on(("t",))
    known = joint.condition(rows, np.zeros(10), 1e-8).variance(at(T, 0))
    assert known.max() < 1e-2
    assert joint.variance(at(T, 0)) == pytest.approx(np.ones(9))


def test_joint_priors_say_what_they_are():
    functionals = {"r": sf.Value(), "rdot": sf.Derivative("t"), "district": sf.Average(np.arange(5.0))}
    joint = sf.JointPrior.of(PRIOR, functionals)
    assert str(joint) == (
        "r: f; rdot: df/dt; district: average of f over 5 points; where f is RBF, lengthscale 0.37; variance 2.5"
    )
    both = sf.JointPrior.independent({"a": PRIOR}, sf.JointPrior.coregionalised(PRIOR, [[4, 1], [1, 2]], ("b", "c")))
    assert str(both).startswith("a: f1; b: f2; c: f2; where f1 is RBF")
    assert str(both).endswith("mixed by the covariance [[4, 1], [1, 2]]")
    more = sf.JointPrior.of(PRIOR, {"i": sf.Integral([0, 0], [1, 2], 4), "w": sf.Average([[0, 0]], [2.0])})
    assert str(more).startswith("i: integral of f over [0, 1] × [0, 2]; w: weighted sum of f over 1 point; where")


# ---------------------------------------------------------------- wrong use

VALUE = {"r": sf.Value()}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sf.JointPrior.of(rbf(1.0), VALUE), r"prior is of class ScaleKernel; give a sf\.Prior"),
        (lambda: sf.JointPrior.of(PRIOR, {}), "functionals is {}; give a name and a functional"),
        (lambda: sf.JointPrior.of(PRIOR, [sf.Value()]), "functionals is"),
        (lambda: sf.JointPrior.of(PRIOR, {"r": sf.Value}), r"for 'r'; give sf\.Value\(\)"),
        (lambda: sf.JointPrior.of(PRIOR, {"": sf.Value()}), "the name ''"),
        (lambda: sf.JointPrior.of(PRIOR, {" ": sf.Value()}), "the name ' '"),
        (lambda: sf.JointPrior.of(PRIOR, {"a:b": sf.Value()}), "without ':' and '='"),
        (lambda: sf.JointPrior.of(PRIOR, {"a=b": sf.Value()}), "without ':' and '='"),
        (lambda: sf.JointPrior.of(PRIOR, {"a" * 101: sf.Value()}), "1 to 100 characters"),
        (lambda: sf.JointPrior.of(PRIOR, {3: sf.Value()}), "the name '3'"),
        (lambda: sf.JointPrior.of(PRIOR, {f"r{i}": sf.Value() for i in range(65)}), "65 names; give 1 to 64"),
        (lambda: sf.JointPrior.of(PRIOR, VALUE, noise={"s": 1.0}), "noise names the output 's', but the outputs are r"),
        (lambda: sf.JointPrior.of(PRIOR, VALUE, noise=0.1), "noise is 0.1; give a number for each name"),
        (lambda: sf.JointPrior.of(PRIOR, VALUE, noise={"r": -1.0}), "noise is -1.0; give a variance ≥ 0"),
        (lambda: sf.JointPrior.of(PRIOR, VALUE, noise={"r": "0.1"}), "noise is '0.1'"),
        (lambda: sf.JointPrior.independent(), "parts is empty"),
        (lambda: sf.JointPrior.independent(PRIOR), "parts has a Prior without names of outputs; give a JointPrior"),
        (lambda: sf.JointPrior.independent({"a": rbf(1.0)}), "the prior of 'a' is"),
        (lambda: sf.JointPrior.independent({"a": PRIOR}, {"a": PRIOR}), "name 'a' more than once"),
        (lambda: sf.JointPrior.coregionalised(PRIOR, np.eye(2), "ab"), "outputs is 'ab'; give a name for each"),
        (lambda: sf.JointPrior.coregionalised(PRIOR, np.eye(2), ("a", "a")), "'a' more than once"),
        (lambda: sf.JointPrior.coregionalised(PRIOR, np.eye(1), ("a",), mean={"b": 1.0}), "mean names the output 'b'"),
        (lambda: sf.JointPrior.coregionalised(PRIOR, np.eye(1), ("a",), mean={"a": "x"}), "mean is 'x'"),
        (
            lambda: sf.JointPrior.of(sf.JointPrior.of(PRIOR, VALUE).prior_on(("t",)), VALUE),
            "prior is itself over several outputs",
        ),
        (lambda: sf.Derivative(1.5), "column is 1.5; give the number or the name"),
        (lambda: sf.Derivative(True), "column is True"),
        (lambda: sf.Average([]), "points has no rows"),
        (lambda: sf.Average(np.zeros(4097)), "points has 4097 rows; give at most 4096"),
        (lambda: sf.Average([1.0, 2.0], [1.0]), "weights has 1 values"),
        (lambda: sf.Average([1.0, np.nan]), "points has 1 value"),
        (lambda: sf.Average([1.0, 2.0], [0.0, 0.0]), "weights are all 0"),
        (lambda: sf.Integral(1.0, 0.0), "lower must be below upper"),
        (lambda: sf.Integral([0.0, 0.0], 1.0), r"lower has 2 number\(s\) and upper has 1"),
        (lambda: sf.Integral(0.0, np.inf), "upper has 1 value"),
        (lambda: sf.Integral([0, 0, 0], [1, 1, 1]), "more than 4096 in all; give at most 16"),
        (lambda: sf.Integral([0] * 13, [1] * 13), "use Average with points of your own"),
        (lambda: sf.Integral(0.0, 1.0, nodes=0), "nodes is 0; give a whole number"),
    ],
)
def test_wrong_use_is_told_what_to_do(call, words):
    with pytest.raises(sf.InputError, match=words):
        call()


def test_what_only_shows_with_the_inputs_is_refused_there():
    flat = gpytorch.means.LinearMean(3)
    for joint, names, words in [
        (sf.JointPrior.of(sf.Prior(matern(0.3, nu=0.5)), {"d": sf.Derivative()}), ("t",), "nu=0.5"),
        (sf.JointPrior.of(sf.Prior(rbf([0.3, 0.4])), VALUE), ("t",), r"2 lengthscales, but the inputs have 1 feature"),
        (sf.JointPrior.of(sf.Prior(rbf(0.3), flat), VALUE), ("t",), "mean cannot be computed for the column"),
    ]:
        with pytest.raises(sf.InputError, match=words):
            joint.prior_on(names)
