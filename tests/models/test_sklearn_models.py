"""scikit-learn's Gaussian processes as priors, and releases as scikit-learn's Gaussian processes."""

from __future__ import annotations

import warnings

import gpytorch
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

import sfumato as sf
from kernels import matern, rbf
from sfumato.models.trees import build_kernel, describe_kernel

RNG = np.random.default_rng(11)
X, A = RNG.uniform(-1, 2, (30, 2)), RNG.uniform(-1, 2, (9, 2))
Y = 3.0 + np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 4
T, S = X[:, :1], A[:, :1]


def fitted(kernel, X=X, y=Y, **options):
    options = {"alpha": 1e-3, "optimizer": None} | options
    return GaussianProcessRegressor(kernel, **options).fit(X, y)


def same(ours, theirs, relative=1e-8):
    assert np.max(np.abs(ours - theirs)) <= relative * np.max(np.abs(theirs))


LEAVES = {
    "rbf": RBF(0.7),
    "rbf, one lengthscale a column": RBF([0.7, 1.9]),
    "matern 1/2": Matern(0.7, nu=0.5),
    "matern 3/2": Matern([0.7, 2.0], nu=1.5),
    "matern 5/2": Matern(1.2, nu=2.5),
    "matern inf": Matern([0.7, 2.0], nu=np.inf),
    "rational quadratic": RationalQuadratic(0.8, alpha=1.3),
    "dot product": DotProduct(0.6),
    "dot product through 0": DotProduct(0.0, "fixed"),
    "constant": ConstantKernel(2.5),
}
BUILT = {
    "scaled": ConstantKernel(2.5) * RBF(0.7),
    "scaled twice": 2.0 * (3.0 * Matern(0.9)),
    "sum": RBF(0.7) + 0.5 * DotProduct(1.1) + 2.0 * Matern([1.0, 2.0]),
    "product": 2.0 * RBF(0.7) * (1.5 * RationalQuadratic(0.9)),
    "power": (1.7 * RBF(0.8)) ** 3,
    "power of a dot product": DotProduct(0.9) ** 2,
    "power of a dot product through 0": DotProduct(0.0, "fixed") ** 2,
    "power of a sum": (RBF(0.7) + ConstantKernel(0.5)) ** 2,
    "constants": ConstantKernel(2.0) * ConstantKernel(3.0) * RBF(1.0),
}


@pytest.mark.parametrize("kernel", [*LEAVES.values(), *BUILT.values()], ids=[*LEAVES, *BUILT])
def test_the_covariance_is_that_of_the_kernel(kernel):
    prior = sf.Prior.from_sklearn(fitted(kernel))
    same(prior.covariance(X, A), kernel(X, A))
    same(prior.covariance(A), kernel(A))
    assert prior.noise == 1e-3


@pytest.mark.parametrize(
    ("kernel", "noise"),
    [
        (RBF(0.7) + WhiteKernel(0.3), 0.3),
        (2.0 * (RBF(0.7) + WhiteKernel(0.3)), 0.6),
        (WhiteKernel(0.3) * (2.0 * RBF(0.7) + ConstantKernel(1.0)) + Matern(0.7), 0.9),
        ((RBF(0.7) + WhiteKernel(0.3)) ** 2, 0.69),
        (WhiteKernel(0.1) + WhiteKernel(0.2) + DotProduct(0.3), 0.3),
    ],
)
def test_white_noise_is_noise_wherever_it_stands(kernel, noise):
    prior = sf.Prior.from_sklearn(fitted(kernel, alpha=0.01))
    assert prior.noise == pytest.approx(noise + 0.01, rel=1e-12)
    same(prior.covariance(X) + noise * np.eye(30), kernel(X))
    same(prior.covariance(X, A), kernel(X, A))


@pytest.mark.parametrize("kernel", [ExpSineSquared(0.8, 1.3), 2.0 * ExpSineSquared(0.8, 1.3) * RBF(2.0)])
def test_periodic_kernels_on_a_line_are_read(kernel):
    same(sf.Prior.from_sklearn(fitted(kernel, T)).covariance(T, S), kernel(T, S))


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("alpha", [0.02, np.linspace(0.01, 0.2, 30)], ids=["one alpha", "one a row"])
@pytest.mark.parametrize("kernel", [2.0 * RBF([0.7, 1.2]), Matern(0.8) + WhiteKernel(0.1), DotProduct(0.4) + RBF(0.9)])
def test_conditioning_on_its_data_predicts_what_it_predicts(kernel, alpha, normalize):
    gpr = fitted(kernel, alpha=alpha, normalize_y=normalize)
    posterior = sf.Prior.from_sklearn(gpr).condition(X, Y)
    mean, covariance = gpr.predict(A, return_cov=True)
    white = 0.1 * np.var(Y) ** normalize * np.eye(9) if "White" in str(kernel) else 0.0
    same(posterior.mean_at(A), mean)
    # theirs is about a new measurement where there is white noise, ours about f
    same(posterior.covariance(A) + white, covariance)


def test_a_regressor_that_was_optimised_is_read_where_it_ended():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gpr = fitted(1.0 * RBF([1.0, 1.0]) + WhiteKernel(0.1), optimizer="fmin_l_bfgs_b", normalize_y=True)
    prior = sf.Prior.from_sklearn(gpr)
    same(prior.condition(X, Y).mean_at(A), gpr.predict(A))
    assert sf.protect(prior, X, sf.Box([0, 0], [1, 1]), alpha=0.3, progress=False).certificate.holds


def test_a_default_kernel_is_read():
    gpr = GaussianProcessRegressor(optimizer=None, alpha=0.1).fit(X, Y)
    same(sf.Prior.from_sklearn(gpr).condition(X, Y).mean_at(A), gpr.predict(A))


LENGTHS = st.floats(0.3, 5.0)
ATOMS = st.one_of(
    st.builds(RBF, LENGTHS),
    st.builds(lambda a, b: RBF([a, b]), LENGTHS, LENGTHS),
    st.builds(lambda a, nu: Matern(a, nu=nu), LENGTHS, st.sampled_from([0.5, 1.5, 2.5])),
    st.builds(RationalQuadratic, LENGTHS, LENGTHS),
    st.builds(DotProduct, LENGTHS),
    st.builds(ConstantKernel, LENGTHS),
)
TREES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, power: a**power, inner, st.integers(1, 3)),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_any_sum_product_and_power_is_read(kernel):
    gpr = fitted(ConstantKernel(1.0) * RBF(1.0))
    gpr.kernel_ = kernel  # the data do not matter here, and fitting could fail
    same(sf.Prior.from_sklearn(gpr).covariance(X, A), kernel(X, A))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Matern(0.8, nu=0.7), r"Matern\(length_scale=0.8, nu=0.7\), which sfumato does not have; it has RBF"),
        (RBF(0.7) + PairwiseKernel(), r"PairwiseKernel.*sfumato does not have"),
        (RBF(0.7) ** 1.5, r"a power of 1.5; use whole powers"),
        (ExpSineSquared(), "on 2 columns, where it is no covariance; fit it to one column"),
        (WhiteKernel(0.3) * DotProduct(0.3) + RBF(), "multiplies white noise by .* add WhiteKernel instead"),
        (WhiteKernel(0.3), "white noise alone"),
    ],
)
def test_a_kernel_that_is_not_ours_is_refused_by_name(kernel, message):
    gpr = fitted(RBF(1.0))
    gpr.kernel_ = kernel
    with pytest.raises(sf.InputError, match=message):
        sf.Prior.from_sklearn(gpr)


def test_compound_kernels_are_refused():
    gpr = fitted(RBF(1.0))
    gpr.kernel_ = CompoundKernel([RBF(1.0), RBF(2.0)])
    with pytest.raises(sf.InputError, match="which sfumato does not have"):
        sf.Prior.from_sklearn(gpr)


def test_only_a_fitted_regressor_of_one_output_is_read():
    with pytest.raises(sf.InputError, match="gpr is 'rbf', not a scikit-learn GaussianProcessRegressor"):
        sf.Prior.from_sklearn("rbf")
    with pytest.raises(sf.InputError, match=r"gpr is not fitted.*call gpr.fit"):
        sf.Prior.from_sklearn(GaussianProcessRegressor())
    with pytest.raises(sf.InputError, match="2 outputs at once; fit one regressor for each"):
        sf.Prior.from_sklearn(fitted(RBF(1.0), y=np.c_[Y, Y]))


# ---------------------------------------------------------------- releases for readers with scikit-learn


def release(kernel, X=X, region=None, mean=3.0, noise=0.02, **options):
    region = sf.Box({"x0": (0, 1)}) if region is None else region
    prior = sf.Prior(kernel=kernel, mean=mean, noise=noise)
    options = {"alpha": 0.3, "cover": "rows", "progress": False} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        return sf.protect(prior, X, region, **options).release(Y)


READ_BACK = {
    "rbf": rbf([0.7, 1.2], 2.0),
    "matern": matern([0.7, 1.2], 2.0, 0.5),
    "one lengthscale": build_kernel({"kind": "matern", "nu": 2.5, "lengthscale": 0.8}),
    "rational quadratic": build_kernel({"kind": "rational_quadratic", "alpha": 1.2, "lengthscale": 0.8}),
    "sum": rbf([0.7, 1.2], 2.0) + build_kernel({"kind": "linear", "variance": 0.4}),
    "product": rbf([0.7, 1.2]) * build_kernel({"kind": "polynomial", "offset": 0.5, "power": 2}),
    "some columns": build_kernel({"kind": "rbf", "lengthscale": 0.4, "active_dims": [1]})
    + build_kernel({"kind": "matern", "nu": 1.5, "lengthscale": 0.9, "active_dims": [0]}),
    "constant": rbf([0.7, 1.2]) + build_kernel({"kind": "constant", "constant": 0.3}),
}


@pytest.mark.parametrize("kernel", READ_BACK.values(), ids=READ_BACK)
def test_a_plain_regressor_predicts_what_the_release_predicts(kernel):
    told = release(kernel)
    gpr, seen = told.to_sklearn(), told.predict(A)
    assert type(gpr) is GaussianProcessRegressor
    mean, std = gpr.predict(A, return_std=True)
    same(mean, seen.mean)
    same(std, seen.std)
    same(gpr.predict(A, return_cov=True)[1], seen.covariance())
    assert np.array_equal(gpr.X_train_, told.inputs)
    assert gpr.y_train_ + 3.0 == pytest.approx(np.asarray(told.outputs), rel=1e-14)
    assert gpr.kernel_.n_dims == 0  # nothing to optimise


def test_a_periodic_kernel_on_a_line_is_given_back():
    kernel = build_kernel({"kind": "periodic", "lengthscale": 0.6, "period_length": 1.3})
    told = release(kernel, T, sf.Box(0, 1), noise=0.1)
    same(told.to_sklearn().predict(S, return_cov=True)[1], told.predict(S).covariance())


def test_independent_noise_is_given_back_too():
    told = release(rbf([0.7, 1.2]), structure="diagonal")
    same(told.to_sklearn().predict(A), told.predict(A).mean)


def test_the_names_of_the_columns_are_given_back():
    told = release(rbf([0.7, 1.2]), pd.DataFrame(X, columns=["age", "place"]), sf.Box({"age": (0, 1)}))
    gpr = told.to_sklearn()
    assert gpr.feature_names_in_.tolist() == ["age", "place"]
    same(gpr.predict(pd.DataFrame(A, columns=["age", "place"])), told.predict(A).mean)


def test_a_release_survives_the_way_there_and_back():
    told = release(rbf([0.7, 1.2], 2.0))
    prior = sf.Prior.from_sklearn(told.to_sklearn())
    assert describe_kernel(prior.kernel) == describe_kernel(told.prior.kernel)
    assert prior.mean_at(A[:1])[0] == 3.0


def test_the_likelihood_is_that_of_the_published_values():
    gpr = release(rbf([0.7, 1.2], 2.0)).to_sklearn()
    total = gpr.L_ @ gpr.L_.T
    expected = -0.5 * (
        gpr.y_train_ @ np.linalg.solve(total, gpr.y_train_) + np.linalg.slogdet(2 * np.pi * total).logabsdet
    )
    assert gpr.log_marginal_likelihood_value_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (build_kernel({"kind": "cosine", "period_length": 3.0, "active_dims": [0]}), "a cosine part on some columns"),
        (
            build_kernel({"kind": "rational_quadratic", "alpha": 1.0, "lengthscale": [0.5, 1.0]}),
            "rational_quadratic part with one lengthscale a column",
        ),
        (build_kernel({"kind": "linear", "variance": [0.5, 1.0]}), "linear part with one variance a column"),
        (
            build_kernel({"kind": "linear", "variance": 1.0, "active_dims": [1]}) + rbf([0.7, 1.2]),
            "a linear part on some columns only",
        ),
    ],
)
def test_what_scikit_learn_lacks_is_refused(kernel, message):
    told = release(kernel + rbf([0.5, 0.5]), noise=0.1)
    with pytest.raises(sf.InputError, match=f"{message}.*use release.predict instead"):
        told.to_sklearn()


@pytest.mark.filterwarnings("ignore:the covariance of the 60 observed values is singular:RuntimeWarning")
def test_values_that_determine_each_other_are_refused():
    posterior = sf.Prior(kernel=rbf([0.7, 1.2])).condition(np.vstack([X, X]), np.r_[Y, Y], 0.0)
    with pytest.raises(sf.InputError, match=r"singular to working precision.*use release.predict instead"):
        posterior.to_sklearn()


def test_means_that_are_not_constant_and_compressed_releases_are_refused():
    with pytest.raises(sf.InputError, match=r"LinearMean, which scikit-learn lacks; use release.predict"):
        release(rbf([0.7, 1.2]), mean=gpytorch.means.LinearMean(2)).to_sklearn()
    compressed = release(rbf([0.7, 1.2]), method="compressed", cover="auto")
    with pytest.raises(sf.InputError, match="this release is compressed"):
        compressed.to_sklearn()
