"""Kernels and means survive the way through a file, and a hostile file gets nowhere."""

from __future__ import annotations

import contextlib
import json
import math

import gpytorch.kernels as gk
import gpytorch.means as gm
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import FormatError, InputError
from sfumato.models.kernel_terms import kernel_in_words
from sfumato.models.prior import Prior
from sfumato.models.stretch import MaternStretch, RBFStretch, RQStretch
from sfumato.models.trees import (
    KERNEL_KINDS,
    MAX_COLUMNS,
    MAX_DEPTH,
    MAX_MIXTURES,
    MAX_NODES,
    build_kernel,
    build_mean,
    describe_kernel,
    describe_mean,
)
from sfumato.models.trends import MAX_DEGREE, PolynomialMean, TrendKernel

X = np.random.default_rng(0).uniform(0.1, 3.0, (7, 3))


def _set(kernel: gk.Kernel, **values: object) -> gk.Kernel:
    kernel = kernel.double()
    for name, value in values.items():
        setattr(kernel, name, torch.as_tensor(value, dtype=torch.float64))
    return kernel


def _mixture(count: int, ard_num_dims: int = 3, **options: object) -> gk.Kernel:
    kernel = gk.SpectralMixtureKernel(num_mixtures=count, ard_num_dims=ard_num_dims, **options)
    rng = np.random.default_rng(count)
    shape = (count, 1, ard_num_dims)
    means, scales = rng.uniform(0.1, 0.9, shape), rng.uniform(0.1, 0.4, shape)
    return _set(kernel, mixture_weights=rng.uniform(0.1, 2.0, count), mixture_means=means, mixture_scales=scales)


KERNELS = {
    "rbf": lambda: _set(gk.RBFKernel(), lengthscale=0.37),
    "rbf ard": lambda: _set(gk.RBFKernel(ard_num_dims=3), lengthscale=[0.1, 1 / 3, 2e3]),
    "rbf ard of one column": lambda: _set(gk.RBFKernel(ard_num_dims=1, active_dims=(2,)), lengthscale=[0.1]),
    "matern12": lambda: _set(gk.MaternKernel(nu=0.5), lengthscale=0.37),
    "matern32 on a column": lambda: _set(gk.MaternKernel(nu=1.5, active_dims=(1,)), lengthscale=0.37),
    "matern52 ard": lambda: _set(gk.MaternKernel(nu=2.5, ard_num_dims=2, active_dims=(2, 0)), lengthscale=[0.3, 0.7]),
    "rational_quadratic": lambda: _set(gk.RQKernel(), lengthscale=0.9, alpha=1.7),
    "rbf stretch": lambda: _set(RBFStretch(ard_num_dims=3), lengthscale=[0.1, 1 / 3, 2e3]),
    "matern stretch": lambda: _set(MaternStretch(nu=1.5), lengthscale=0.4),
    "rational_quadratic stretch": lambda: _set(RQStretch(), lengthscale=0.9, alpha=1.7),
    "periodic": lambda: _set(gk.PeriodicKernel(), lengthscale=0.9, period_length=0.33),
    "periodic ard": lambda: _set(gk.PeriodicKernel(ard_num_dims=3), lengthscale=[0.9, 1, 2], period_length=[0.3, 4, 5]),
    "spectral mixture": lambda: _mixture(3),
    "spectral mixture of one wave": lambda: _mixture(1, ard_num_dims=1, active_dims=(1,)),
    "spectral mixture of two columns": lambda: _mixture(2, ard_num_dims=2, active_dims=(2, 0)),
    "linear": lambda: _set(gk.LinearKernel(), variance=0.123),
    "linear ard": lambda: _set(gk.LinearKernel(ard_num_dims=3), variance=[0.1, 0.2, 0.3]),
    "polynomial": lambda: _set(gk.PolynomialKernel(power=3), offset=0.71),
    "trend": lambda: _set(TrendKernel(power=3), centre=-1.3, width=0.7),
    "trend ard": lambda: _set(TrendKernel(2, ard_num_dims=2, active_dims=(2, 0)), centre=[1987.0, 0.0], width=[13, 2]),
    "cosine": lambda: _set(gk.CosineKernel(), period_length=1.9),
    "constant": lambda: _set(gk.ConstantKernel(), constant=3.9e-8),
    "scale": lambda: _set(gk.ScaleKernel(gk.RBFKernel(active_dims=(1,))), outputscale=3.9e-8),
    "scale with columns of its own": lambda: _set(gk.ScaleKernel(gk.RBFKernel(), active_dims=(1,)), outputscale=5.0),
    "scale of scale": lambda: _set(gk.ScaleKernel(gk.ScaleKernel(gk.RBFKernel(active_dims=(0, 2)))), outputscale=5.0),
    "sum": lambda: gk.RBFKernel(active_dims=(0,)) + gk.LinearKernel(active_dims=(1, 2)),
    "product": lambda: gk.RBFKernel(active_dims=(0,)) * gk.PeriodicKernel(active_dims=(1,)),
    "nested": lambda: gk.ScaleKernel(gk.RBFKernel() + gk.ConstantKernel() * gk.MaternKernel()) + gk.CosineKernel(),
}


def _same_covariance(first: gk.Kernel, second: gk.Kernel) -> None:
    a, b = Prior(kernel=first), Prior(kernel=second)
    for left, right in [
        (a.covariance(X), b.covariance(X)),
        (a.covariance(X, X[:3] + 0.1), b.covariance(X, X[:3] + 0.1)),
        (a.variance(X), b.variance(X)),
    ]:
        np.testing.assert_allclose(left, right, rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS.keys())
def test_every_kind_survives_the_round_trip(make):
    kernel = make()
    before = {name: value.clone() for name, value in kernel.state_dict().items()}
    tree = describe_kernel(kernel)
    text = json.dumps(tree, allow_nan=False)
    built = build_kernel(json.loads(text), dimension=3)
    assert all(p.dtype == torch.float64 and not p.requires_grad for p in built.parameters())
    assert describe_kernel(built) == tree
    _same_covariance(kernel, built)
    assert all(torch.equal(before[name], value) for name, value in kernel.state_dict().items())


def test_every_kind_is_tried():
    kinds: set[str] = set()

    def collect(tree):
        kinds.add(tree["kind"])
        for part in [*tree.get("kernels", []), *([tree["kernel"]] if "kernel" in tree else [])]:
            collect(part)

    for make in KERNELS.values():
        collect(describe_kernel(make()))
    assert kinds == set(KERNEL_KINDS)


POSITIVE = st.floats(min_value=1e-3, max_value=1e3)
ANY_POSITIVE = st.floats(min_value=5e-324, max_value=1.7e308)


def _columns(width: int):
    return st.lists(st.integers(0, width - 1), min_size=1, max_size=width, unique=True)


@st.composite
def trees(draw, width=3, depth=3):
    kind = draw(st.sampled_from(KERNEL_KINDS))
    if depth == 0 and kind in ("sum", "product", "scale"):
        kind = "rbf"
    tree: dict = {"kind": kind}
    # A scale kernel takes over the columns of what it scales, so only that one may choose.
    if kind != "scale" and draw(st.booleans()):
        tree["active_dims"] = draw(_columns(width))
        width = len(tree["active_dims"])
    ard = draw(st.booleans())
    column = st.lists(POSITIVE, min_size=width, max_size=width) if ard else POSITIVE
    if kind.startswith(("rbf", "matern", "rational_quadratic", "periodic")):
        tree["lengthscale"] = draw(column)
    if kind.startswith("matern"):
        tree["nu"] = draw(st.sampled_from([0.5, 1.5, 2.5]))
    if kind.startswith("rational_quadratic"):
        tree["alpha"] = draw(POSITIVE)
    if kind == "periodic":
        tree["period_length"] = draw(column)
    if kind == "spectral_mixture":
        count = draw(st.integers(1, 3))
        for name, numbers in (("means", st.just(0.0) | POSITIVE), ("scales", POSITIVE)):
            row = st.lists(numbers, min_size=width, max_size=width)
            tree[f"mixture_{name}"] = draw(st.lists(row, min_size=count, max_size=count))
        tree["mixture_weights"] = draw(st.lists(POSITIVE, min_size=count, max_size=count))
    if kind == "linear":
        tree["variance"] = draw(column)
    if kind == "polynomial":
        tree["power"], tree["offset"] = draw(st.integers(1, 4)), draw(POSITIVE)
    if kind == "trend":
        tree["power"], tree["width"] = draw(st.integers(1, 4)), draw(column)
        tree["centre"] = np.negative(tree["width"]).tolist()
    if kind == "cosine":
        tree["period_length"] = draw(POSITIVE)
    if kind == "constant":
        tree["constant"] = draw(POSITIVE)
    if kind == "scale":
        tree["variance"] = draw(POSITIVE)
        tree["kernel"] = draw(trees(width, depth - 1))
    if kind in ("sum", "product"):
        tree["kernels"] = draw(st.lists(trees(width, depth - 1), min_size=1, max_size=3))
    return tree


@settings(max_examples=60, deadline=None)
@given(trees())
def test_random_compositions_survive_the_round_trip(tree):
    kernel = build_kernel(tree, dimension=3)
    assert describe_kernel(kernel) == tree
    _same_covariance(kernel, build_kernel(json.loads(json.dumps(describe_kernel(kernel)))))
    assert kernel_in_words(kernel, ["a", "b", "c"])


@settings(max_examples=100, deadline=None)
@given(ANY_POSITIVE, ANY_POSITIVE)
def test_values_are_kept_to_the_last_bit(lengthscale, variance):
    tree = {"kind": "scale", "variance": variance, "kernel": {"kind": "rbf", "lengthscale": lengthscale}}
    kernel = build_kernel(tree)
    assert float(kernel.outputscale) == variance
    assert float(kernel.base_kernel.lengthscale) == lengthscale
    assert json.loads(json.dumps(describe_kernel(kernel))) == tree


def test_trees_of_gpytorch_kernels_hold_their_actual_values():
    kernel = _set(gk.ScaleKernel(gk.RBFKernel(ard_num_dims=2)), outputscale=2.5).requires_grad_(False)
    kernel.base_kernel.lengthscale = torch.tensor([[0.5, 4.0]], dtype=torch.float64)
    tree = describe_kernel(kernel)
    assert tree["variance"] == float(kernel.outputscale) == pytest.approx(2.5, rel=1e-15)
    assert tree["kernel"]["lengthscale"] == kernel.base_kernel.lengthscale[0].tolist()


RBF = {"kind": "rbf", "lengthscale": 1.0}


def _deep(levels: int, tree: dict = RBF):
    for _ in range(levels - 1):
        tree = {"kind": "scale", "variance": 1.0, "kernel": tree}
    return tree


WAVES = {
    "kind": "spectral_mixture",
    "mixture_weights": [1.0, 2.0],
    "mixture_means": [[0.5, 0.0], [0.1, 0.2]],
    "mixture_scales": [[0.5, 0.1], [0.1, 0.2]],
}

BAD_KERNELS = {
    "not an object": 3,
    "a list": [RBF],
    "nothing": None,
    "no kind": {"lengthscale": 1.0},
    "unknown kind": {"kind": "os.system"},
    "kind that is a list": {"kind": ["rbf"]},
    "missing value": {"kind": "rbf"},
    "unknown entry": {**RBF, "covar_dist": 1},
    "entry with an odd key": {**RBF, 3: 1},
    "text": {"kind": "rbf", "lengthscale": "1.0"},
    "true": {"kind": "rbf", "lengthscale": True},
    "null": {"kind": "rbf", "lengthscale": None},
    "zero": {"kind": "rbf", "lengthscale": 0.0},
    "negative": {"kind": "rbf", "lengthscale": -1.0},
    "nan": {"kind": "rbf", "lengthscale": math.nan},
    "infinite": {"kind": "rbf", "lengthscale": math.inf},
    "huge integer": {"kind": "rbf", "lengthscale": 10**400},
    "integer too long to print": {"kind": "rbf", "lengthscale": 10**5000},
    "nested list": {"kind": "rbf", "lengthscale": [[1.0]]},
    "empty list": {"kind": "rbf", "lengthscale": []},
    "long list": {"kind": "rbf", "lengthscale": [1.0] * (MAX_COLUMNS + 1)},
    "nan in a list": {"kind": "rbf", "lengthscale": [1.0, math.nan]},
    "nu": {"kind": "matern", "nu": 1.0, "lengthscale": 1.0},
    "power zero": {"kind": "polynomial", "power": 0, "offset": 1.0},
    "power half": {"kind": "polynomial", "power": 0.5, "offset": 1.0},
    "power huge": {"kind": "polynomial", "power": 10**9, "offset": 1.0},
    "mixed ard": {"kind": "periodic", "lengthscale": [1.0, 1.0], "period_length": 1.0},
    "unequal ard": {"kind": "periodic", "lengthscale": [1.0, 1.0], "period_length": [1.0]},
    "no waves": {**WAVES, "mixture_weights": [], "mixture_means": [], "mixture_scales": []},
    "one number for all waves": {**WAVES, "mixture_weights": 1.0},
    "fewer weights than waves": {**WAVES, "mixture_weights": [1.0]},
    "more weights than waves": {**WAVES, "mixture_weights": [1.0] * 3},
    "waves of different columns": {**WAVES, "mixture_means": [[0.5], [0.1, 0.2]]},
    "fewer scales than means": {**WAVES, "mixture_scales": [[0.5], [0.1]]},
    "waves without columns": {**WAVES, "mixture_scales": [0.5, 0.1]},
    "waves too deep": {**WAVES, "mixture_scales": [[[0.5], 0.1], [0.1, 0.2]]},
    "no weight": {**WAVES, "mixture_weights": [1.0, 0.0]},
    "negative frequency": {**WAVES, "mixture_means": [[0.5, -0.1], [0.1, 0.2]]},
    "wave of no width": {**WAVES, "mixture_scales": [[0.5, 0.1], [0.0, 0.2]]},
    "infinite frequency": {**WAVES, "mixture_means": [[0.5, math.inf], [0.1, 0.2]]},
    "too many waves": {
        "kind": "spectral_mixture",
        "mixture_weights": [1.0] * (MAX_MIXTURES + 1),
        "mixture_means": [[0.5]] * (MAX_MIXTURES + 1),
        "mixture_scales": [[0.5]] * (MAX_MIXTURES + 1),
    },
    "waves that do not match their columns": {**WAVES, "active_dims": [0, 1, 2]},
    "negative column": {**RBF, "active_dims": [-1]},
    "column too high": {**RBF, "active_dims": [MAX_COLUMNS + 1]},
    "column that is true": {**RBF, "active_dims": [True]},
    "column that is a float": {**RBF, "active_dims": [0.0]},
    "no columns": {**RBF, "active_dims": []},
    "columns null": {**RBF, "active_dims": None},
    "ard that does not match its columns": {"kind": "rbf", "lengthscale": [1.0, 1.0, 1.0], "active_dims": [0, 1]},
    "column that the sum drops": {"kind": "sum", "active_dims": [4], "kernels": [{**RBF, "active_dims": [1]}]},
    "empty sum": {"kind": "sum", "kernels": []},
    "sum of an object": {"kind": "sum", "kernels": {}},
    "scale without kernel": {"kind": "scale", "variance": 1.0},
    "columns twice": {"kind": "scale", "variance": 1.0, "active_dims": [0], "kernel": {**RBF, "active_dims": [0]}},
    "too deep": _deep(MAX_DEPTH + 1),
    "far too deep": _deep(5000),
    "too many, deep down": _deep(MAX_DEPTH - 1, {"kind": "sum", "kernels": [RBF] * 500}),
    "too many": {"kind": "sum", "kernels": [RBF] * MAX_NODES},
}


@pytest.mark.parametrize("tree", BAD_KERNELS.values(), ids=BAD_KERNELS.keys())
def test_a_damaged_kernel_is_a_format_error(tree):
    with pytest.raises(FormatError) as caught:
        build_kernel(tree)
    assert len(str(caught.value)) < 400


def test_limits_themselves_are_allowed():
    assert build_kernel(_deep(MAX_DEPTH)) is not None
    assert build_kernel({"kind": "rbf", "lengthscale": [1.0] * MAX_COLUMNS}) is not None
    assert build_kernel({"kind": "sum", "kernels": [RBF] * (MAX_NODES - 1)}) is not None
    assert build_kernel({"kind": "rbf", "lengthscale": 2}).lengthscale.item() == 2.0


@pytest.mark.parametrize(
    "tree",
    [
        {"kind": "rbf", "lengthscale": [1.0, 2.0, 3.0]},
        {**RBF, "active_dims": [2]},
        {
            "kind": "spectral_mixture",
            "mixture_weights": [1.0],
            "mixture_means": [[1.0, 2.0, 3.0]],
            "mixture_scales": [[1.0, 2.0, 3.0]],
        },
    ],
    ids=["lengthscales", "active_dims", "spectral mixture"],
)
def test_a_kernel_for_more_columns_than_there_are_is_a_format_error(tree):
    build_kernel(tree)
    build_kernel(tree, dimension=3)
    with pytest.raises(FormatError):
        build_kernel(tree, dimension=2)


ENTRIES = ["kind", "lengthscale", "variance", "kernel", "kernels", "active_dims", "nu", "power", "offset", "weights"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(KERNEL_KINDS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "lengthscale",
                    "variance",
                    "kernel",
                    "kernels",
                    "active_dims",
                    "nu",
                    "power",
                    "offset",
                    "weights",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(JSON, st.sampled_from(KERNEL_KINDS))
def test_any_json_gives_a_kernel_or_a_format_error(tree, kind):
    for candidate in (tree, {**tree, "kind": kind} if isinstance(tree, dict) else {"kind": kind, "lengthscale": tree}):
        for build in (build_kernel, build_mean):
            with contextlib.suppress(FormatError):
                build(candidate)


class _Loud(gk.RBFKernel):
    pass


@pytest.mark.parametrize(
    "kernel",
    [_Loud(), gk.ScaleKernel(_Loud()), _Loud() + gk.RBFKernel()],
    ids=["alone", "scaled", "summed"],
)
def test_an_unknown_class_is_named_with_what_is_known(kernel):
    with pytest.raises(InputError, match=r"class _Loud.*use the kinds rbf, matern"):
        describe_kernel(kernel)
    assert kernel_in_words(kernel, ["t"])


def test_a_batch_of_kernels_is_refused():
    with pytest.raises(InputError, match="batch shape"):
        describe_kernel(gk.RBFKernel(batch_shape=torch.Size([2])))
    with pytest.raises(InputError, match="batch shape"):
        describe_mean(gm.ConstantMean(batch_shape=torch.Size([2])))
    with pytest.raises(InputError, match="batch shape"):
        describe_mean(gm.LinearMean(2, batch_shape=torch.Size([2])))


def test_a_kernel_that_a_file_cannot_hold_is_refused_before_it_is_written():
    kernel = gk.RBFKernel()
    for _ in range(MAX_DEPTH):
        kernel = gk.ScaleKernel(kernel)
    with pytest.raises(InputError, match="deep"):
        describe_kernel(kernel)
    broken = gk.RBFKernel()
    broken.raw_lengthscale.data.fill_(math.nan)
    with pytest.raises(InputError, match="cannot be written"):
        describe_kernel(broken)
    with pytest.raises(InputError, match="must be a whole number"):
        describe_kernel(gk.PolynomialKernel(power=1.5))


def _linear(bias: bool) -> gm.LinearMean:
    mean = gm.LinearMean(3, bias=bias).double()
    mean.weights.data = torch.tensor([[0.1], [-1 / 3], [2e9]], dtype=torch.float64)
    return mean


def _constant() -> gm.ConstantMean:
    mean = gm.ConstantMean().double()
    mean.constant = torch.tensor(1.05247, dtype=torch.float64)
    return mean


@pytest.mark.parametrize(
    "mean",
    [
        gm.ZeroMean(),
        _constant(),
        _linear(True),
        _linear(False),
        PolynomialMean(0.1, [[1 / 3, -2.0], [0.0, 0.0], [7.0, 1e-9]], [1987.5, 0.0, -1 / 3], [13.5, 1.0, 1e-3]),
    ],
    ids=["zero", "constant", "linear", "no bias", "polynomial"],
)
def test_means_survive_the_round_trip(mean):
    tree = json.loads(json.dumps(describe_mean(mean)))
    built = build_mean(tree, dimension=3)
    assert describe_mean(built) == tree
    kernel = gk.RBFKernel()
    np.testing.assert_array_equal(Prior(kernel, mean).mean_at(X), Prior(kernel, built).mean_at(X))


POLYNOMIAL = {"kind": "polynomial", "constant": 0.0, "coefficients": [[1.0], [2.0]], "centre": [0, 1], "width": [1, 2]}


@pytest.mark.parametrize(
    "tree",
    [
        None,
        {"kind": "rbf"},
        {"kind": "zero", "value": 0.0},
        {"kind": "constant"},
        {"kind": "constant", "value": math.nan},
        {"kind": "constant", "value": 10**400},
        {"kind": "constant", "value": 1.0, "active_dims": [0]},
        {"kind": "linear", "weights": []},
        {"kind": "linear", "weights": 1.0},
        {"kind": "linear", "weights": ["a"]},
        {"kind": "linear", "weights": [1.0] * (MAX_COLUMNS + 1)},
        {"kind": "linear", "weights": [1.0], "bias": None},
        {**POLYNOMIAL, "constant": math.inf},
        {**POLYNOMIAL, "coefficients": [[1.0], [1.0, 2.0]]},
        {**POLYNOMIAL, "coefficients": [[]]},
        {**POLYNOMIAL, "coefficients": [[1.0] * (MAX_DEGREE + 1)]},
        {**POLYNOMIAL, "centre": [0.0]},
        {**POLYNOMIAL, "width": [1.0, 0.0]},
        {**POLYNOMIAL, "width": 1.0},
    ],
    ids=str,
)
def test_a_damaged_mean_is_a_format_error(tree):
    with pytest.raises(FormatError):
        build_mean(tree)


def test_a_mean_of_an_unknown_class_is_refused():
    class Odd(gm.ZeroMean):
        pass

    with pytest.raises(InputError, match=r"class Odd.*zero, constant, linear"):
        describe_mean(Odd())
    with pytest.raises(InputError, match="class int"):
        describe_mean(3)


def test_building_leaves_random_numbers_and_default_dtype_alone():
    before = torch.get_rng_state()
    build_mean({"kind": "linear", "weights": [1.0, 2.0], "bias": 0.5})
    build_kernel(_deep(3))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_default_dtype() == torch.float32


def test_words_name_the_columns():
    tree = {"kind": "scale", "variance": 3.9e-8, "kernel": {"kind": "rbf", "lengthscale": 0.05}}
    assert kernel_in_words(build_kernel(tree), ["t"]) == "RBF, lengthscale 0.05 (t); variance 3.9e-08"
    ard = {"kind": "matern", "nu": 1.5, "lengthscale": [4.0, 0.5], "active_dims": [2, 0]}
    assert kernel_in_words(build_kernel(ard), ["a", "b", "c"]) == "Matérn 3/2, lengthscales 4 (c), 0.5 (a)"
    assert kernel_in_words(build_kernel(WAVES), ["a", "b"]) == (
        "spectral mixture, weights 1 + 2, means 0.5 + 0.1 (a), 0 + 0.2 (b), scales 0.5 + 0.1 (a), 0.1 + 0.2 (b)"
    )
    both = {"kind": "sum", "kernels": [{**ard}, {"kind": "constant", "constant": 2.0}]}
    assert kernel_in_words(build_kernel(both), ["a", "b", "c"]) == (
        "sum of (Matérn 3/2, lengthscales 4 (c), 0.5 (a)) and (constant 2)"
    )
