"""The joint kernel over (input, output) rows: its blocks, its files, and what it refuses."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle

import gpytorch.kernels as gk
import gpytorch.means as gm
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato.models.outputs
from kernel_oracles import jet50
from sfumato.errors import FormatError, InputError
from sfumato.models.functionals import Average, Derivative, Integral, Value
from sfumato.models.kernel_terms import kernel_in_words
from sfumato.models.kernel_values import kernel_diagonal, kernel_matrix, require_features
from sfumato.models.outputs import OutputsKernel, OutputsMean, Term
from sfumato.models.prior import Prior
from sfumato.models.trees import build_kernel, build_mean, describe_kernel, describe_mean

RNG = np.random.default_rng(11)
RBF = {"kind": "scale", "variance": 2.0, "kernel": {"kind": "rbf", "lengthscale": [0.6, 1.3]}}
MATERN = {"kind": "matern", "nu": 2.5, "lengthscale": 0.9}
POINTS, WEIGHTS = RNG.uniform(-1, 1, (5, 2)), np.array([0.5, -0.25, 1.0, 0.0, 2.0])
MIXING = np.array([[1.0, 0.0], [0.5, -1.0], [2.0, 0.3]])
ENTRIES = ((0, Value()), (1, Derivative(1)), (2, Average(POINTS, WEIGHTS)))


def two_terms():
    """Outputs 0, 1, 2 mixed from one function; outputs 0 (again) and 3 from another."""
    other = ((0, Value()), (3, Derivative(0)))
    return OutputsKernel(
        [Term(build_kernel(RBF), ENTRIES, MIXING), Term(build_kernel(MATERN), other, np.array([[1.5], [-1.0]]))]
    )


def rows(count, outputs=4, rng=RNG):
    return np.column_stack([rng.uniform(-1, 1, (count, 2)), np.arange(count) % outputs])


def entry50(tree, first, a, second, b):
    """Cov(L f(a), M f(b)) in 50 digits, by going through the points of an average one after the other."""

    def points(part, x):
        return zip(part.points, part.weights) if isinstance(part, Average) else [(x, 1.0)]

    def column(part):
        return part.column if isinstance(part, Derivative) else None

    return sum(
        v * w * jet50(tree, [p], [q], column(first), column(second))[0, 0]
        for p, v in points(first, a)
        for q, w in points(second, b)
    )


def joint50(terms, A, B):
    total = np.zeros((len(A), len(B)))
    for tree, entries, mixing in terms:
        for i, (o, first) in enumerate(entries):
            for j, (p, second) in enumerate(entries):
                for r in np.flatnonzero(A[:, -1] == o):
                    for c in np.flatnonzero(B[:, -1] == p):
                        value = entry50(tree, first, A[r, :-1], second, B[c, :-1])
                        total[r, c] += (mixing @ mixing.T)[i, j] * value
    return total


def test_every_block_is_what_the_definition_says():
    A, B = rows(8), rows(6)
    other = ((0, Value()), (3, Derivative(0)))
    expected = joint50([(RBF, ENTRIES, MIXING), (MATERN, other, np.array([[1.5], [-1.0]]))], A, B)
    prior = Prior(two_terms())
    np.testing.assert_allclose(prior.covariance(A, B), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(prior.variance(A), np.diag(prior.covariance(A)), rtol=1e-13)


def test_an_output_may_be_a_sum_of_functionals():
    """f minus its average: two entries of one output."""
    entries = ((0, Value()), (0, Average(POINTS)), (1, Derivative(0)))
    mixing = np.array([[1.0], [-1.0], [1.0]])
    kernel, A = OutputsKernel([Term(build_kernel(RBF), entries, mixing)]), rows(6, 2)
    expected = joint50([(RBF, entries, mixing)], A, A)
    np.testing.assert_allclose(Prior(kernel).covariance(A), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(Prior(kernel).variance(A), np.diag(expected), rtol=1e-12)


def test_a_single_output_is_its_kernel_bit_for_bit():
    kernel = OutputsKernel([Term(build_kernel(RBF), ((0, Value()),), np.ones((1, 1)))])
    A, B = rows(7, 1), rows(4, 1)
    plain = Prior(build_kernel(RBF))
    assert np.array_equal(Prior(kernel).covariance(A, B), plain.covariance(A[:, :2], B[:, :2]))
    assert np.array_equal(Prior(kernel).variance(A), plain.variance(A[:, :2]))


def test_an_average_is_the_finite_sum_and_has_no_input():
    prior = Prior(build_kernel(RBF))
    joint = Prior(
        OutputsKernel([Term(build_kernel(RBF), ((0, Value()), (1, Average(POINTS, WEIGHTS))), np.ones((2, 1)))])
    )
    x = RNG.uniform(-1, 1, (3, 2))
    A = np.vstack([np.column_stack([x, np.zeros(3)]), [[0.1, 0.2, 1.0], [77.0, -5.0, 1.0]]])
    K = joint.covariance(A)
    cross = prior.covariance(x, POINTS) @ WEIGHTS
    np.testing.assert_allclose(K[:3, 3], cross, rtol=1e-13)
    np.testing.assert_allclose(K[:3, 4], cross, rtol=1e-13)
    np.testing.assert_allclose(K[3:, 3:], WEIGHTS @ prior.covariance(POINTS) @ WEIGHTS, rtol=1e-13)


def test_small_blocks_give_the_same(monkeypatch):
    A = rows(50)
    whole = Prior(two_terms()).covariance(A)
    monkeypatch.setattr(sfumato.models.outputs, "CHUNK", 12)
    np.testing.assert_allclose(Prior(two_terms()).covariance(A), whole, rtol=0, atol=1e-14 * np.abs(whole).max())


@pytest.mark.parametrize("output", [4.0, -1.0, 0.5, 1.0000001])
def test_an_output_that_is_not_there_covaries_with_nothing(output):
    A = rows(5)
    A[2, -1] = output
    K = Prior(two_terms()).covariance(A)
    assert not K[2].any()
    assert K[0].any()
    assert Prior(two_terms()).variance(A)[2] == 0.0


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 3), st.integers(1, 3), st.integers(2, 14))
def test_a_joint_covariance_is_positive_semidefinite(seed, terms, rank, count):
    rng = np.random.default_rng(seed)
    parts: list[Term] = []
    for _ in range(terms):
        choices = [Value(), Derivative(0), Derivative(1), Average(rng.normal(size=(3, 2))), Integral([0, 0], [1, 2], 3)]
        entries = tuple((int(rng.integers(4)), choices[rng.integers(5)]) for _ in range(rng.integers(1, 6)))
        kernel = build_kernel([RBF, MATERN, {"kind": "matern", "nu": 1.5, "lengthscale": 0.4}][rng.integers(3)])
        parts.append(Term(kernel, entries, rng.normal(size=(len(entries), rank))))
    prior, A = Prior(OutputsKernel(parts)), rows(count, 4, rng)
    K = prior.covariance(A)
    assert K.shape == (count, count)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-10 * max(values[-1], 1e-300)
    np.testing.assert_allclose(prior.variance(A), np.diag(K), rtol=0, atol=1e-12 * max(np.abs(K).max(), 1e-300))


def test_the_kernel_says_which_outputs_know_of_each_other():
    kernel = two_terms()
    assert kernel.count == 4
    expected = np.ones((4, 4), dtype=bool)
    expected[3, 1:3] = expected[1:3, 3] = False
    assert np.array_equal(kernel.related, expected)
    apart = OutputsKernel([Term(build_kernel(RBF), ((0, Value()), (1, Value())), np.eye(2))])
    assert np.array_equal(apart.related, np.eye(2, dtype=bool))


def test_only_averages_have_a_place():
    kernel = OutputsKernel([Term(build_kernel(RBF), (*ENTRIES, (3, Integral([0, 0], [2, 4], 4))), np.ones((4, 1)))])
    assert [kernel.takes_input(o) for o in range(4)] == [True, True, False, False]
    shares = np.abs(WEIGHTS) / np.abs(WEIGHTS).sum()
    np.testing.assert_allclose(kernel.place(2), shares @ POINTS, rtol=1e-13)
    np.testing.assert_allclose(kernel.place(3), [1.0, 2.0], rtol=1e-13)
    with pytest.raises(InputError, match="output 0 has no place"):
        kernel.place(0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))], ids=["deepcopy", "pickle"])
def test_copies_are_the_same_kernel(copied):
    A = rows(9)
    kernel = two_terms()
    before = Prior(kernel).covariance(A)
    twin = copied(kernel)
    assert np.array_equal(Prior(twin).covariance(A), before)
    assert np.array_equal(copied(Prior(kernel)).covariance(A), before)
    assert np.array_equal(twin.related, kernel.related)


def test_a_copy_for_another_device_computes_the_same():
    A = rows(9)
    prior = Prior(two_terms())
    x = torch.from_numpy(A)
    for device in ["cpu:0", *(["cuda"] if torch.cuda.is_available() else [])]:
        kernel = prior.kernel_on(device)
        assert kernel is not prior.kernel
        block = kernel_matrix(kernel, x.to(device), x.to(device)).cpu().numpy()
        np.testing.assert_allclose(block, prior.covariance(A), rtol=0, atol=1e-13 * np.abs(block).max())
        assert kernel_diagonal(kernel, x.to(device)).shape == (9,)


def test_the_callers_kernel_is_neither_changed_nor_followed():
    base = gk.RBFKernel()
    base.lengthscale = 0.5
    kernel = OutputsKernel([Term(base, ((0, Value()), (1, Derivative(0))), np.ones((2, 1)))])
    A = rows(4, 2)[:, 1:]
    before = Prior(kernel).covariance(A)
    base.lengthscale = 5.0
    assert next(base.parameters()).dtype == torch.float32
    assert np.array_equal(Prior(kernel).covariance(A), before)


def test_parts_are_checked_with_one_column_fewer():
    kernel = two_terms()
    require_features(kernel, 3)
    with pytest.raises(InputError, match=r"2 lengthscales, but the inputs have 3 feature"):
        require_features(kernel, 4)
    with pytest.raises(InputError, match="2 lengthscales, but the inputs have 1 feature"):
        Prior(kernel).covariance(np.zeros((3, 2)))
    with pytest.raises(InputError, match="of which the kernel needs 1 for itself"):
        require_features(kernel, 1)
    with pytest.raises(InputError, match=r"looks at column 1, but the inputs have 1 feature"):
        require_features(OutputsKernel([Term(gk.RBFKernel(active_dims=[1]), ((0, Value()),), np.ones((1, 1)))]), 2)
    plain = OutputsKernel([Term(gk.RBFKernel(), ((0, Average(POINTS)),), np.ones((1, 1)))])
    with pytest.raises(InputError, match="rows have 4 columns, but the kernel averages over points with 2"):
        Prior(plain).covariance(np.zeros((2, 4)))
    with pytest.raises(InputError, match="column is 5"):
        Prior(OutputsKernel([Term(gk.RBFKernel(), ((0, Derivative(5)),), np.ones((1, 1)))])).variance(np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ([], "terms is empty"),
        ([Term(gk.RBFKernel(), (), np.ones((0, 1)))], "entries of a term are empty"),
        ([Term(gk.RBFKernel(), ((0, Value()),), np.ones((2, 1)))], r"mixing has shape \(2, 1\) for 1 entries"),
        ([Term(gk.RBFKernel(), ((0, Value()),), np.array([[np.nan]]))], "finite numbers"),
        ([Term(gk.RBFKernel(), ((0, Value()),), np.array([[1e200]]))], "squares are not finite"),
        ([Term(gk.RBFKernel(), ((-1, Value()),), np.ones((1, 1)))], "output is -1"),
        ([Term(gk.RBFKernel(), ((0, Derivative("t")),), np.ones((1, 1)))], "column is 't'; give the number"),
        ([Term(gk.MaternKernel(nu=0.5), ((0, Derivative(0)),), np.ones((1, 1)))], "nu=0.5"),
        (
            [Term(gk.RBFKernel(), ((0, Average([[0.0]])), (1, Average([[0.0, 1.0]]))), np.ones((2, 1)))],
            "1 and 2 columns",
        ),
    ],
)
def test_wrong_terms_are_refused(terms, words):
    with pytest.raises(InputError, match=words):
        OutputsKernel(terms)


def test_a_joint_kernel_is_no_part_of_another():
    with pytest.raises(InputError, match="itself a kernel of several outputs"):
        OutputsKernel([Term(gk.ScaleKernel(two_terms()), ((0, Value()),), np.ones((1, 1)))])
    with pytest.raises(InputError, match="class OutputsKernel"):
        describe_kernel(gk.ScaleKernel(two_terms()))


# ---------------------------------------------------------------- means


def line():
    mean = gm.LinearMean(2).double()
    mean.weights.data = torch.tensor([[2.0], [-3.0]], dtype=torch.float64)
    mean.bias.data = torch.tensor([0.5], dtype=torch.float64)
    return mean


def constant(value):
    mean = gm.ConstantMean().double()
    mean.constant = torch.tensor(value, dtype=torch.float64)
    return mean


def joint_mean():
    return OutputsMean(
        [
            [(Value(), line()), (Value(), constant(10.0))],
            [(Derivative(1), line()), (Derivative(0), constant(7.0)), (Derivative(0), gm.ZeroMean())],
            [(Average(POINTS, WEIGHTS), line())],
            [],
        ]
    )


def test_means_are_functionals_of_means():
    A = rows(8)
    expected = np.zeros(8)
    expected[A[:, 2] == 0] = (A[:, :2] @ [2.0, -3.0] + 10.5)[A[:, 2] == 0]
    expected[A[:, 2] == 1] = -3.0
    expected[A[:, 2] == 2] = WEIGHTS @ (POINTS @ [2.0, -3.0] + 0.5)
    prior = Prior(two_terms(), joint_mean())
    np.testing.assert_allclose(prior.mean_at(A), expected, rtol=1e-13)
    assert np.array_equal(pickle.loads(pickle.dumps(prior)).mean_at(A), prior.mean_at(A))


def test_a_mean_without_a_known_derivative_is_refused():
    class Odd(gm.ConstantMean):
        pass

    OutputsMean([[(Value(), Odd())]])
    with pytest.raises(InputError, match="class Odd, whose derivative is not known"):
        OutputsMean([[(Derivative(0), Odd())]])
    with pytest.raises(InputError, match=r"column is 2, but the mean is made for 2 column"):
        OutputsMean([[(Derivative(2), line())]])
    with pytest.raises(InputError, match="column is None"):
        OutputsMean([[(Derivative(), line())]])


# ---------------------------------------------------------------- files


def test_trees_survive_the_round_trip_bit_for_bit():
    A = rows(9)
    kernel, mean = two_terms(), joint_mean()
    tree = json.loads(json.dumps(describe_kernel(kernel), allow_nan=False))
    built = build_kernel(tree, dimension=3)
    assert describe_kernel(built) == tree
    assert [set(term) for term in tree["terms"]] == [{"kernel", "entries", "mixing"}] * 2
    assert np.array_equal(Prior(built).covariance(A), Prior(kernel).covariance(A))
    assert all(not p.requires_grad for p in built.parameters())
    leaves = json.loads(json.dumps(describe_mean(mean), allow_nan=False))
    twin = build_mean(leaves, dimension=3)
    assert describe_mean(twin) == leaves
    assert np.array_equal(Prior(built, twin).mean_at(A), Prior(kernel, mean).mean_at(A))


def test_an_integral_is_written_as_the_sum_that_it_became():
    kernel = OutputsKernel([Term(gk.RBFKernel(), ((0, Integral(0.0, 2.0, nodes=3)),), np.ones((1, 1)))])
    entry = describe_kernel(kernel)["terms"][0]["entries"][0]
    assert entry["kind"] == "average"
    assert sum(entry["weights"]) == pytest.approx(2.0, rel=1e-15)


PLAIN = {"kind": "rbf", "lengthscale": 1.0}
VALUE = {"output": 0, "kind": "value"}
AVERAGE = {"output": 0, "kind": "average", "points": [[0.0], [1.0]], "weights": [0.5, 0.5]}


def joint(*entries, kernel=PLAIN, mixing=None, **more):
    mixing = [[1.0]] * len(entries) if mixing is None else mixing
    return {"kind": "outputs", "terms": [{"kernel": kernel, "entries": list(entries), "mixing": mixing, **more}]}


GOOD = joint(VALUE, {"output": 1, "kind": "derivative", "column": 0}, {**AVERAGE, "output": 2})
BAD_KERNELS = {
    "no terms": {"kind": "outputs"},
    "empty terms": {"kind": "outputs", "terms": []},
    "terms an object": {"kind": "outputs", "terms": {}},
    "too many terms": {"kind": "outputs", "terms": GOOD["terms"] * 65},
    "more": {**GOOD, "more": 1},
    "active_dims": {**GOOD, "active_dims": [0]},
    "term a list": {"kind": "outputs", "terms": [[]]},
    "term with more": joint(VALUE, more=1),
    "term without mixing": {"kind": "outputs", "terms": [{"kernel": PLAIN, "entries": [VALUE]}]},
    "no entries": joint(),
    "too many entries": joint(*[VALUE] * 257),
    "entry a list": joint([]),
    "unknown kind": joint({"output": 0, "kind": "integral"}),
    "no output": joint({"kind": "value"}),
    "output 64": joint({"output": 64, "kind": "value"}),
    "output -1": joint({"output": -1, "kind": "value"}),
    "output float": joint({"output": 0.0, "kind": "value"}),
    "output true": joint({"output": True, "kind": "value"}),
    "value with column": joint({**VALUE, "column": 0}),
    "no column": joint({"output": 0, "kind": "derivative"}),
    "column of the output": joint({"output": 0, "kind": "derivative", "column": 1}),
    "column name": joint({"output": 0, "kind": "derivative", "column": "x"}),
    "column null": joint({"output": 0, "kind": "derivative", "column": None}),
    "rough derivative": joint(
        {"output": 0, "kind": "derivative", "column": 0}, kernel={"kind": "matern", "nu": 0.5, "lengthscale": 1.0}
    ),
    "no points": joint({**AVERAGE, "points": []}),
    "points flat": joint({**AVERAGE, "points": [0.0, 1.0]}),
    "points ragged": joint({**AVERAGE, "points": [[0.0], [1.0, 2.0]]}),
    "points of two columns": joint({**AVERAGE, "points": [[0.0, 1.0], [1.0, 2.0]]}),
    "points nan": joint({**AVERAGE, "points": [[0.0], [math.nan]]}),
    "points text": joint({**AVERAGE, "points": [["0"], ["1"]]}),
    "too many points": joint({**AVERAGE, "points": [[0.0]] * 4097, "weights": [1.0] * 4097}),
    "weights infinite": joint({**AVERAGE, "weights": [1.0, math.inf]}),
    "weights few": joint({**AVERAGE, "weights": [1.0]}),
    "weights zero": joint({**AVERAGE, "weights": [0.0, 0.0]}),
    "weights null": joint({**AVERAGE, "weights": None}),
    "mixing few": joint(VALUE, VALUE, mixing=[[1.0]]),
    "mixing many": joint(VALUE, mixing=[[1.0], [1.0]]),
    "mixing flat": joint(VALUE, mixing=[1.0]),
    "mixing empty": joint(VALUE, mixing=[[]]),
    "mixing wide": joint(VALUE, mixing=[[1.0] * 257]),
    "mixing nan": joint(VALUE, mixing=[[math.nan]]),
    "mixing overflows": joint(VALUE, mixing=[[1e200]]),
    "mixing huge integer": joint(VALUE, mixing=[[10**400]]),
    "kernel in a kernel": joint(VALUE, kernel=GOOD),
    "kernel wrong": joint(VALUE, kernel={"kind": "rbf"}),
    "kernel for two columns": joint(VALUE, kernel={"kind": "rbf", "lengthscale": [1.0, 1.0]}),
    "kernel on the output": joint(VALUE, kernel={**PLAIN, "active_dims": [1]}),
    "nested": {"kind": "scale", "variance": 1.0, "kernel": GOOD},
    "summed": {"kind": "sum", "kernels": [PLAIN, GOOD]},
    "too many parts": {
        "kind": "outputs",
        "terms": joint(VALUE, kernel={"kind": "sum", "kernels": [PLAIN] * 100})["terms"] * 11,
    },
}


@pytest.mark.parametrize("tree", BAD_KERNELS.values(), ids=BAD_KERNELS.keys())
def test_a_damaged_joint_kernel_is_a_format_error(tree):
    assert build_kernel(GOOD, dimension=2) is not None
    with pytest.raises(FormatError) as caught:
        build_kernel(tree, dimension=2)
    assert len(str(caught.value)) < 400


def test_a_joint_kernel_needs_an_input_and_an_output():
    with pytest.raises(FormatError, match="number of an output"):
        build_kernel(GOOD, dimension=1)
    with pytest.raises(FormatError, match="number of an output"):
        build_mean({"kind": "outputs", "outputs": [[]]}, dimension=1)


def test_limits_themselves_are_allowed():
    term = GOOD["terms"][0]
    assert len(build_kernel({"kind": "outputs", "terms": [term] * 64}).terms) == 64
    build_kernel(joint(*[{"output": 63, "kind": "value"}] * 256, mixing=[[1.0] * 256] * 256))
    build_kernel(joint({**AVERAGE, "points": [[0.0]] * 4096, "weights": [1.0] * 4096}))
    build_kernel(GOOD)


ZERO = {"functional": {"kind": "value"}, "mean": {"kind": "zero"}}


@pytest.mark.parametrize(
    "tree",
    [
        {"kind": "outputs"},
        {"kind": "outputs", "outputs": []},
        {"kind": "outputs", "outputs": [ZERO]},
        {"kind": "outputs", "outputs": [[ZERO]], "terms": []},
        {"kind": "outputs", "outputs": [[ZERO]] * 65},
        {"kind": "outputs", "outputs": [[ZERO] * 257]},
        {"kind": "outputs", "outputs": [[{**ZERO, "more": 1}]]},
        {"kind": "outputs", "outputs": [[{"functional": {"kind": "value"}}]]},
        {"kind": "outputs", "outputs": [[{**ZERO, "functional": VALUE}]]},
        {"kind": "outputs", "outputs": [[{**ZERO, "mean": {"kind": "outputs", "outputs": [[ZERO]]}}]]},
        {"kind": "outputs", "outputs": [[{**ZERO, "mean": {"kind": "linear", "weights": [1.0, 1.0]}}]]},
        {"kind": "outputs", "outputs": [[{**ZERO, "functional": {"kind": "derivative", "column": 1}}]]},
    ],
    ids=lambda tree: str(tree)[:60],
)
def test_a_damaged_joint_mean_is_a_format_error(tree):
    build_mean({"kind": "outputs", "outputs": [[ZERO], []]}, dimension=2)
    with pytest.raises(FormatError):
        build_mean(tree, dimension=2)


def test_a_derivative_of_a_mean_with_too_few_weights_is_a_format_error():
    part = {"functional": {"kind": "derivative", "column": 3}, "mean": {"kind": "linear", "weights": [1.0]}}
    with pytest.raises(FormatError, match="made for 1 column"):
        build_mean({"kind": "outputs", "outputs": [[part]]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 300) | st.floats() | st.sampled_from(["value", "rbf", "average"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "output", "kernel", "entries", "mixing", "points", "weights", "mean"]), inner
        )
    ),
    max_leaves=8,
)
PLACES = ["terms", "entries", "mixing", "kernel", "points", "weights", "output", "kind"]


@settings(max_examples=200)
@given(JSON, st.sampled_from(PLACES))
def test_any_json_gives_a_joint_kernel_or_a_format_error(junk, place):
    tree = copy.deepcopy(GOOD)
    term, entry = tree["terms"][0], tree["terms"][0]["entries"][2]
    target = tree if place == "terms" else term if place in term else entry
    target[place] = junk
    for build, candidate in [(build_kernel, tree), (build_mean, {"kind": "outputs", "outputs": junk})]:
        with contextlib.suppress(FormatError):
            build(candidate, 2)


def test_words_name_outputs_functionals_and_columns():
    kernel = build_kernel(joint(VALUE, {"output": 1, "kind": "derivative", "column": 0}, {**AVERAGE, "output": 2}))
    expected = (
        "over 3 outputs: (output 0: f; output 1: df/dt; output 2: average of f over 2 points) of RBF, lengthscale 1 (t)"
    )
    assert kernel_in_words(kernel, ["t", "output"]) == expected
    assert "output 1: df/dx0; " in kernel_in_words(kernel, ())
    assert " plus (output 0: f; output 3: df/dx0, mixed by the covariance [[2.25, -1.5], [-1.5, 1]]) of Matérn 5/2" in (
        kernel_in_words(two_terms(), ())
    )
