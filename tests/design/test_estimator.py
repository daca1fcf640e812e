"""The scikit-learn estimator: its contract, what it keeps, and regions in the units that people think in."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import gpytorch
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.estimator_checks import (
    check_methods_sample_order_invariance,
    check_methods_subset_invariance,
    check_pipeline_consistency,
    parametrize_with_checks,
)

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.design.estimator import PrivateGPRegressor
from sfumato.models.trees import build_kernel, describe_kernel

RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame({"AGEP": RNG.uniform(20, 95, 60), "PUMA": RNG.uniform(1000, 3000, 60)})
INCOME = pd.Series(30 + 0.3 * PEOPLE["AGEP"] + np.sin(PEOPLE["PUMA"] / 300) + RNG.normal(0, 0.5, 60), name="income")
OLD = np.asarray((PEOPLE["AGEP"] >= 75) & (PEOPLE["AGEP"] <= 100))
REGION = "75 <= AGEP <= 100"
T = np.linspace(0.0, 3.0, 31)[:, None]
Y = np.sin(2 * T[:, 0])


def line(**options):
    """An estimator that is quick to fit on one column."""
    return PrivateGPRegressor(**({"region": sf.Box(1, 2), "alpha": 0.1, "lengthscale": 0.5, "noise": 0.01} | options))


def census(**options):
    return PrivateGPRegressor(**({"region": REGION, "alpha": 0.3, "cover": "greedy"} | options))


# ---------------------------------------------------------------- the contract


@pytest.mark.filterwarnings("ignore::sfumato.errors.FitWarning")
# fits are tested below; without them the checks take half the time
@parametrize_with_checks([PrivateGPRegressor(lengthscale=1.0, noise=0.1)])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


class Repeating(PrivateGPRegressor):
    """The same estimator with a tag that lets scikit-learn ask for equal results within this process."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


@pytest.mark.parametrize(
    "check", [check_pipeline_consistency, check_methods_sample_order_invariance, check_methods_subset_invariance]
)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_that_its_tag_spares_it_pass_all_the_same(check):
    check("Repeating", Repeating())


# ---------------------------------------------------------------- what it is


def test_it_predicts_what_a_reader_of_the_release_predicts():
    model = line().fit(T, Y)
    seen = model.release_.predict([0.5, 1.5])
    mean, std = model.predict([[0.5], [1.5]], return_std=True)
    assert np.array_equal(mean, seen.mean)
    assert np.array_equal(std, seen.std)
    assert np.array_equal(model.predict([[0.5], [1.5]], return_cov=True)[1], seen.covariance())
    assert np.array_equal(model.predict([[0.5], [1.5]]), mean)
    with pytest.raises(sf.InputError, match="return_std and return_cov are both True"):
        model.predict(T, return_std=True, return_cov=True)


def test_it_promises_what_protect_promises():
    model = line().fit(T, Y)
    prior = sf.fit_prior(T, Y, lengthscale=0.5, noise=0.01, exclude=sf.Box(1, 2))
    direct = sf.protect(prior, T, sf.Box(1, 2), alpha=0.1, progress=False)
    assert describe_kernel(model.prior_.kernel) == describe_kernel(prior.kernel)
    assert model.certificate_.holds
    assert model.certificate_ is model.release_.certificate
    assert model.release_.noise.trace == pytest.approx(direct.noise.trace, rel=1e-9)
    assert model.certificate_.worst_input == pytest.approx(direct.certificate.worst_input)
    assert model.release_.certify(progress=False).holds


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"guarantee": "pointwise"}, "guarantee", "pointwise"),
        ({"protects": "records"}, "protects", "records"),
        ({"protects": "records", "insiders": [[15, 16]]}, "insider_group", 0),
        ({"structure": "diagonal"}, "structure", "diagonal"),
        ({"objective": "predictions", "serve": "x >= 2.5", "unsafe_seed": 0}, "objective", "predictions"),
        ({"alpha": None, "floor": 0.2}, "holds", True),
        ({"cover": "greedy"}, "cover", "greedy"),
        ({"method": "compressed"}, "holds", True),
        ({"kernel": "matern52", "mean": "zero"}, "holds", True),
        ({"noise": np.full(31, 0.02), "lengthscale": None}, "holds", True),
    ],
)
def test_every_setting_reaches_its_place(options, field, value):
    assert getattr(line(**options).fit(T, Y).certificate_, field) == value


def test_without_any_promise_everything_is_protected_by_half():
    certificate = PrivateGPRegressor().fit(T, Y + 0.1 * np.cos(9 * T[:, 0])).certificate_
    model = PrivateGPRegressor(alpha=0.5).fit(T, Y + 0.1 * np.cos(9 * T[:, 0]))
    assert certificate.holds
    assert certificate.promise == model.certificate_.promise
    assert isinstance(model.release_.region, sf.Everywhere)


def test_a_region_without_a_promise_is_refused():
    with pytest.raises(sf.InputError, match=r"neither alpha nor floor; .* as in alpha=0.1"):
        PrivateGPRegressor(region="1 <= x <= 2").fit(T, Y)
    with pytest.raises(sf.InputError, match="give exactly one of alpha, floor"):
        line(floor=0.1).fit(T, Y)


def test_the_prior_can_be_kept_from_the_sensitive_rows():
    inside = (T[:, 0] >= 1) & (T[:, 0] <= 2)
    other = np.where(inside, Y + 5 * np.cos(9 * T[:, 0]), Y)
    outside = [line(lengthscale=None).fit(T, y).prior_ for y in (Y, other)]
    assert describe_kernel(outside[0].kernel) == describe_kernel(outside[1].kernel)
    of_all = [line(fit_outside=False).fit(T, y).prior_ for y in (Y, other)]
    assert describe_kernel(of_all[0].kernel) != describe_kernel(of_all[1].kernel)
    expected = sf.fit_prior(T, Y, noise=0.01, exclude=sf.Box(1, 2))
    assert outside[0].covariance(T) == pytest.approx(expected.covariance(T), rel=1e-9)
    assert line().fit(T, Y).certificate_.verdict == "publish"
    assert line(fit_outside=False).fit(T, Y).certificate_.verdict == "publish with care"
    everywhere = PrivateGPRegressor(alpha=0.5).fit(T, Y).certificate_
    found = next(one for one in everywhere.findings if one.code == "parameters-from-sensitive-rows")
    assert "all rows (31), because only 0 lie outside the region" in found.text
    with pytest.raises(sf.InputError, match="fit_outside is 'yes'; give True or False"):
        line(fit_outside="yes").fit(T, Y)


def test_noise_for_each_row_stays_with_its_row_when_the_prior_is_fitted_outside():
    noise = np.linspace(0.01, 0.1, 31)
    assert np.array_equal(line(noise=noise).fit(T, Y).prior_.noise, noise)


# ---------------------------------------------------------------- what it keeps


def holds(value, secret: np.ndarray) -> bool:
    """Whether the bytes of a pickle contain the numbers of ``secret``."""
    raw = pickle.dumps(value)
    return any(number.tobytes() in raw for number in secret)


def test_a_fitted_estimator_keeps_neither_the_outputs_nor_a_key():
    y = Y + RNG.normal(0, 0.1, 31)
    model = line().fit(T, y)
    assert holds(model, model.release_.outputs)
    assert not holds(model, y)
    assert model.prior_.fit_report is None
    assert b"SecretKey" not in pickle.dumps(model)
    assert set(vars(model)) - set(model.get_params()) == {"n_features_in_", "release_", "certificate_", "prior_"}
    model.predict(T)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(T), model.predict(T))


def test_fitting_again_draws_the_same_noise_so_that_it_cannot_be_averaged():
    first, second = line().fit(T, Y), clone(line()).fit(T, Y)
    assert np.array_equal(first.release_.outputs, second.release_.outputs)
    nearly = line().fit(T, Y + 1e-9)
    noises = [first.release_.outputs - Y, nearly.release_.outputs - Y]
    assert np.abs(np.corrcoef(noises)[0, 1]) < 0.99
    assert not first.release_.unsafe


@pytest.mark.slow
@pytest.mark.processes
def test_another_process_draws_other_noise_and_imports_scikit_learn_only_when_it_is_asked_for():
    code = (
        "import sys, numpy as np, sfumato as sf; sf.Prior, sf.Box(1, 2); assert 'sklearn' not in sys.modules; "
        "t = np.linspace(0, 3, 31)[:, None]; "
        "m = sf.PrivateGPRegressor(region='1 <= x <= 2', alpha=0.1, lengthscale=0.5, noise=0.01); "
        "print(m.fit(t, np.sin(2 * t[:, 0])).release_.outputs.tolist())"
    )
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    elsewhere = np.array(json.loads(told.stdout))
    assert not np.allclose(elsewhere, line().fit(T, Y).release_.outputs)


def test_a_seed_is_for_experiments_and_the_release_says_so():
    model = line(unsafe_seed=3).fit(T, Y)
    assert model.release_.unsafe
    prior = sf.fit_prior(T, Y, lengthscale=0.5, noise=0.01, exclude=sf.Box(1, 2))
    direct = sf.protect(prior, T, sf.Box(1, 2), alpha=0.1, progress=False).release(Y, unsafe_seed=3)
    assert model.release_.outputs == pytest.approx(direct.outputs, abs=1e-6)


def test_a_release_of_it_is_a_file_like_any_other(tmp_path):
    model = census().fit(PEOPLE, INCOME)
    model.release_.save(tmp_path / "income.sfumato")
    reader = sf.load(tmp_path / "income.sfumato")
    assert reader.output_name == "income"
    assert reader.columns == ("AGEP", "PUMA")
    assert reader.predict(PEOPLE[:5]).mean == pytest.approx(model.predict(PEOPLE[:5]), rel=1e-9)


# ---------------------------------------------------------------- tables and arrays


def test_names_come_from_the_table_or_from_columns():
    model = census().fit(PEOPLE, INCOME)
    assert model.feature_names_in_.tolist() == ["AGEP", "PUMA"]
    assert model.n_features_in_ == 2
    assert np.array_equal(model.release_.region.contains(PEOPLE.to_numpy()), OLD)
    named = census(columns=["AGEP", "PUMA"]).fit(PEOPLE.to_numpy(), INCOME)
    plain = census(region="75 <= x0 <= 100").fit(PEOPLE.to_numpy(), INCOME)
    for other in (named, plain):
        assert not hasattr(other, "feature_names_in_")
        assert other.certificate_.trace == pytest.approx(model.certificate_.trace, rel=1e-6)
    with pytest.raises(sf.InputError, match="columns is \\['a'\\]; give 2 names"):
        census(columns=["a"]).fit(PEOPLE, INCOME)
    with pytest.raises(sf.InputError, match="but X has names of its own \\(AGEP, PUMA\\)"):
        census(columns=["a", "b"]).fit(PEOPLE, INCOME)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(PEOPLE.rename(columns={"PUMA": "place"}))


def test_outputs_in_a_column_are_taken_with_a_warning():
    with pytest.warns(DataConversionWarning):
        model = line().fit(T, Y[:, None])
    assert np.array_equal(model.release_.outputs, line().fit(T, Y).release_.outputs)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (T, np.full(31, 4.0), "y is constant"),
        (T[:1], Y[:1], "1 sample"),
        (np.where(T == 0, np.nan, T), Y, "NaN"),
        (T, np.where(Y == 0, np.inf, Y), "infinity"),
    ],
)
def test_data_that_cannot_be_used_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        line(lengthscale=None).fit(X, y)


def test_it_says_when_it_is_not_fitted():
    with pytest.raises(NotFittedError):
        line().predict(T)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"region": 3}, "region is 3; give a region, or a text"),
        ({"region": "1 <= t <= 2"}, "unknown column 't'; known: x"),
        ({"region": "1 <= "}, "region"),
        ({"alpha": 1.5}, "alpha"),
        ({"kernel": "spline"}, "kernel is 'spline'"),
        ({"cover": "none"}, "cover"),
        ({"objective": "trace"}, "objective is 'trace'"),
        ({"serve": sf.Box(2, 3)}, 'serve is given, but objective is "noise"'),
        ({"preprocess": 3}, "preprocess is '3', not a transformer"),
        ({"preprocess": StandardScaler}, "not a transformer"),
    ],
)
def test_wrong_settings_are_named_when_it_is_fitted(options, message):
    model = line(**options)
    with pytest.raises(sf.InputError, match=message):
        model.fit(T, Y)


# ---------------------------------------------------------------- model selection


def test_it_is_cloned_scored_and_searched():
    model = line()
    assert clone(model).get_params()["region"] == sf.Box(1, 2)
    folds = KFold(3, shuffle=True, random_state=0)
    assert cross_val_score(model, T, Y, cv=folds).shape == (3,)
    with pytest.warns(sf.GuaranteeWarning, match="alpha was set as a search does: the weakest promise always scores"):
        grid = GridSearchCV(line(), {"alpha": [0.05, 0.9]}, cv=folds).fit(T, Y)
    # those who may learn more predict better
    assert grid.best_params_ == {"alpha": 0.9}
    assert grid.best_estimator_.certificate_.holds
    assert "90" in grid.best_estimator_.certificate_.promise or "0.9" in grid.best_estimator_.certificate_.promise


def test_a_fold_without_rows_of_the_region_says_so():
    scores = cross_val_score(line(region=sf.Points([[1.5]])), T, Y, cv=KFold(3), error_score="raise")
    assert np.all(np.isfinite(scores))


# ---------------------------------------------------------------- units: the region means what people mean

SCALERS = {
    "standard": StandardScaler(),
    "standard, mean only": StandardScaler(with_std=False),
    "standard, std only": StandardScaler(with_mean=False),
    "min and max": MinMaxScaler((-1, 1)),
    "largest": MaxAbsScaler(),
    "robust": RobustScaler(),
    "passthrough": "passthrough",
    "nothing": FunctionTransformer(),
    "a pipeline": make_pipeline(MinMaxScaler(), "passthrough", StandardScaler()),
    "by name, in another order": ColumnTransformer(
        [("p", MinMaxScaler(), ["PUMA"]), ("a", StandardScaler(), ["AGEP"])]
    ),
    "by number": ColumnTransformer([("p", MinMaxScaler(), [1]), ("a", "passthrough", [0])]),
    "by slice, mask and rest": ColumnTransformer(
        [("p", RobustScaler(), slice(1, 2)), ("none", StandardScaler(), [False, False])], remainder=StandardScaler()
    ),
    "by selector": ColumnTransformer([("p", StandardScaler(), make_column_selector("PUMA"))], remainder="passthrough"),
    "a pipeline of both": make_pipeline(
        ColumnTransformer([("p", MinMaxScaler(), ["PUMA"])], remainder="passthrough"), StandardScaler()
    ),
}


@pytest.mark.parametrize("scaler", SCALERS.values(), ids=SCALERS)
def test_behind_a_scaler_inside_it_the_region_is_in_original_units(scaler):
    scaled = np.asarray(PEOPLE) if scaler == "passthrough" else np.asarray(clone(scaler).fit_transform(PEOPLE))
    kernel = rbf(1.5 * scaled.std(axis=0), 25.0).requires_grad_(False)
    model = census(preprocess=scaler, kernel=kernel, mean=45.0, noise=0.5).fit(PEOPLE, INCOME)
    # exactly the rows that were meant, in the units that were meant
    assert np.array_equal(model.release_.region.contains(PEOPLE.to_numpy()), OLD)
    assert "75 ≤ AGEP ≤ 100" in str(model.certificate_)
    # the kernel saw scaled columns
    assert model.prior_.covariance(PEOPLE) == pytest.approx(sf.Prior(kernel).covariance(scaled), rel=1e-9, abs=1e-12)
    # and all else is as if nothing had been scaled
    direct = sf.protect(model.prior_, PEOPLE, sf.Box({"AGEP": (75, 100)}), alpha=0.3, cover="greedy", progress=False)
    assert model.certificate_.worst_input == pytest.approx(direct.certificate.worst_input)
    assert model.certificate_.worst_floor == pytest.approx(direct.certificate.worst_floor)
    assert model.certificate_.trace == pytest.approx(direct.certificate.trace, rel=1e-9)
    assert model.release_.inputs == pytest.approx(np.asarray(PEOPLE))


@pytest.mark.parametrize("scaler", [StandardScaler(), SCALERS["by name, in another order"]])
def test_a_fitted_prior_does_not_notice_the_scaler(scaler):
    scaled = census(preprocess=scaler, noise=0.5, fit_outside=True).fit(PEOPLE, INCOME)
    prior = sf.fit_prior(PEOPLE, INCOME, noise=0.5, exclude=sf.Box({"AGEP": (75, 100)}))
    direct = sf.protect(prior, PEOPLE, sf.Box({"AGEP": (75, 100)}), alpha=0.3, cover="greedy", progress=False)
    assert scaled.prior_.covariance(PEOPLE) == pytest.approx(prior.covariance(PEOPLE), rel=1e-3)
    assert scaled.certificate_.trace == pytest.approx(direct.certificate.trace, rel=1e-2)
    old = PEOPLE[OLD].to_numpy()
    floors = [r.tolerance.floor(r.prior, old) for r in (scaled.release_, direct)]
    assert floors[0] == pytest.approx(floors[1], rel=1e-3)
    assert np.all(scaled.predict(PEOPLE[OLD], return_std=True)[1] >= floors[0] * (1 - 1e-9))


def test_a_lengthscale_is_in_scaled_units_and_the_release_in_original_ones():
    model = census(preprocess=StandardScaler(), lengthscale=[0.5, 2.0], noise=0.5).fit(PEOPLE, INCOME)
    given = describe_kernel(model.prior_.kernel)["kernel"]["lengthscale"]
    assert given == pytest.approx([0.5 * PEOPLE["AGEP"].std(ddof=0), 2.0 * PEOPLE["PUMA"].std(ddof=0)])


def test_a_column_that_is_dropped_has_no_say():
    only = ColumnTransformer([("a", StandardScaler(), ["AGEP"])])
    model = census(preprocess=only, lengthscale=0.8, noise=0.5).fit(PEOPLE, INCOME)
    moved = PEOPLE.assign(PUMA=PEOPLE["PUMA"] + 500)
    assert model.predict(moved) == pytest.approx(model.predict(PEOPLE), rel=1e-12)
    with pytest.raises(sf.InputError, match="which leaves no column"):
        census(preprocess=ColumnTransformer([("a", "drop", ["AGEP"])])).fit(PEOPLE, INCOME)


def test_every_stationary_kernel_and_every_mean_is_brought_back_to_original_units():
    tree = {
        "kind": "sum",
        "kernels": [
            {"kind": "scale", "variance": 3.0, "kernel": {"kind": "rbf", "lengthscale": 0.5, "active_dims": [1]}},
            {"kind": "rational_quadratic", "alpha": 1.1, "lengthscale": [0.4, 2.0]},
            {"kind": "periodic", "lengthscale": 0.7, "period_length": 1.5, "active_dims": [0]},
            {"kind": "cosine", "period_length": 2.5, "active_dims": [1]},
            {
                "kind": "product",
                "active_dims": [1, 0],
                "kernels": [
                    {"kind": "matern", "nu": 1.5, "lengthscale": [0.6, 1.4]},
                    {"kind": "constant", "constant": 2.0},
                    {"kind": "rbf", "lengthscale": 0.9, "active_dims": [1]},
                ],
            },
        ],
    }
    kernel, mean = build_kernel(tree), gpytorch.means.LinearMean(2).double().requires_grad_(False)
    scaler = SCALERS["by name, in another order"]
    model = census(preprocess=scaler, kernel=kernel, mean=mean, noise=0.5).fit(PEOPLE, INCOME)
    scaled, plain = clone(scaler).fit_transform(PEOPLE), sf.Prior(kernel, mean)
    assert model.prior_.covariance(PEOPLE) == pytest.approx(plain.covariance(scaled), rel=1e-9, abs=1e-12)
    assert model.prior_.mean_at(PEOPLE) == pytest.approx(plain.mean_at(scaled), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PCA(2), r"the part PCA\(n_components=2\), which does not map each column by a line of its own"),
        (QuantileTransformer(n_quantiles=10), "QuantileTransformer"),
        (FunctionTransformer(np.log), "FunctionTransformer"),
        (MinMaxScaler(clip=True), r"MinMaxScaler\(clip=True\)"),
        (make_pipeline(StandardScaler(), PCA(2)), "PCA"),
        (ColumnTransformer([("p", OneHotEncoder(sparse_output=False), ["PUMA"])]), "OneHotEncoder"),
        (
            ColumnTransformer([("a", StandardScaler(), ["AGEP"]), ("b", MinMaxScaler(), ["AGEP"])]),
            "the column 'AGEP' more than once",
        ),
    ],
)
def test_a_transformer_that_does_more_than_scaling_is_refused_by_name(step, message):
    with pytest.raises(sf.InputError, match=message):
        census(preprocess=step).fit(PEOPLE, INCOME)


def test_a_scaler_that_computes_something_else_is_refused():
    class Folded(Pipeline):
        def transform(self, X):
            return np.abs(super().transform(X))

    with pytest.raises(sf.InputError, match="which does more to the columns than scaling them"):
        census(preprocess=Folded([("s", StandardScaler())])).fit(PEOPLE, INCOME)


@pytest.mark.parametrize("kind", ["linear", "polynomial"])
def test_kernels_that_see_more_than_differences_go_without_a_scaler(kind):
    own = {"variance": 1.0} if kind == "linear" else {"offset": 1.0, "power": 2}
    kernel = (matern([0.5, 0.5]) + build_kernel({"kind": kind, **own})).requires_grad_(False)
    with pytest.raises(sf.InputError, match=f"kernel has a {kind} part.*leave preprocess out"):
        census(preprocess=StandardScaler(), kernel=kernel, noise=0.5).fit(PEOPLE, INCOME)


def test_the_scaler_that_was_given_is_not_touched():
    scaler = StandardScaler()
    census(preprocess=scaler, lengthscale=1.5, noise=0.5).fit(PEOPLE, INCOME)
    assert not hasattr(scaler, "mean_")


# ---------------------------------------------------------------- units: misuse is loud


def test_a_region_in_original_units_behind_a_scaler_is_refused_with_the_remedy():
    remedy = "give it as preprocess="
    scaled = Pipeline([("scale", StandardScaler()), ("gp", census())])
    with pytest.raises(sf.InputError, match=f"(?s)unknown column 'AGEP'.*{remedy}"):
        scaled.fit(PEOPLE, INCOME)
    with pytest.raises(sf.InputError, match=f"lies wholly outside the data.*{remedy}"):
        clone(scaled).set_output(transform="pandas").fit(PEOPLE, INCOME)
    columns = ColumnTransformer([("a", MinMaxScaler(), ["AGEP"])], remainder=MinMaxScaler())
    with pytest.raises(sf.InputError, match=f"lies wholly outside the data.*{remedy}"):
        make_pipeline(columns, census(region=sf.Box([75, None], [100, None]))).fit(PEOPLE, INCOME)


@pytest.mark.parametrize("scaler", [StandardScaler(), RobustScaler()])
def test_a_region_in_standardised_units_is_pointed_out(scaler):
    model = make_pipeline(scaler, census(region="x0 >= 0.5", lengthscale=1.5, noise=0.5))
    with pytest.warns(sf.GuaranteeWarning, match=r"region .* is read in standardised units.*preprocess="):
        model.fit(PEOPLE, INCOME)


def test_the_remedy_works_in_a_pipeline():
    model = Pipeline([("gp", census(preprocess=StandardScaler(), lengthscale=1.5, noise=0.5))])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sf.GuaranteeWarning)
        model.fit(PEOPLE, INCOME)
    assert np.array_equal(model["gp"].release_.region.contains(as_inputs(PEOPLE).values), OLD)
    search = GridSearchCV(model, {"gp__preprocess": [StandardScaler(), MinMaxScaler()]}, cv=2)
    assert search.fit(PEOPLE, INCOME).best_estimator_["gp"].certificate_.holds


def test_values_are_never_put_on_other_rows_than_their_own():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.uniform(20, 90, 40)})
    income = pd.Series(np.where(frame["age"] >= 75, 500.0, 30.0), name="income")
    model = sf.PrivateGPRegressor(region="75 <= age <= 90", floor=20.0, noise=1.0, lengthscale=5.0, fit_outside=False)
    with pytest.raises(sf.InputError, match="same row labels in different orders"):
        model.fit(frame.sort_values("age"), income)
    labels = [f"p{i}" for i in range(40)]
    named, shuffled = frame.set_axis(labels), income.set_axis(labels).sample(frac=1.0, random_state=1)
    one, other = model.fit(named, shuffled).release_, model.fit(named, income.set_axis(labels)).release_
    assert np.array_equal(one.outputs, other.outputs)
    with pytest.raises(sf.InputError, match="some row labels in common"):
        model.fit(frame.iloc[1:], income.iloc[:-1])


def test_other_values_for_the_same_rows_are_warned_of():
    t = np.linspace(0.0, 3.0, 17)[:, None] + 0.123
    model = sf.PrivateGPRegressor(region=sf.Box(1.0, 2.0), alpha=0.5, noise=0.01, lengthscale=0.5)
    model.fit(t, np.sin(t[:, 0]))
    model.fit(t, np.sin(t[:, 0]))
    with pytest.warns(sf.GuaranteeWarning, match="publish one of the releases only"):
        model.fit(t, np.sin(t[:, 0]) + 1e-12)
