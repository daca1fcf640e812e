"""DataFrames in, DataFrames out: names and labels stay where they belong, and mixed-up rows are noticed."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs, as_outputs
from sfumato.data.tables import in_row_order

RNG = np.random.default_rng(2)
NAMES = [f"person {k}" for k in range(20)]
X = pd.DataFrame({"age": RNG.uniform(20, 90, 20), "place": RNG.uniform(0, 10, 20)}, index=NAMES)
Y = pd.Series(30 + 0.4 * X["age"] + np.sin(X["place"]), name="income")
PRIOR = sf.Prior(kernel=matern([15.0, 3.0], 100.0), mean=50.0, noise=1.0)
REGION = sf.Box({"age": (60, 80), "place": (2, 6)})
SHUFFLED = Y.sample(frac=1.0, random_state=1)


def protected(inputs=X, **options):
    return sf.protect(PRIOR, inputs, REGION, alpha=0.5, progress=False, **options)


MECHANISM = protected()
RELEASE = MECHANISM.release(Y, output_name="income")


# ---------------------------------------------------------------- labels of rows


def test_values_find_their_rows_by_label():
    again = MECHANISM.release(SHUFFLED, output_name="income")
    np.testing.assert_array_equal(again.outputs, RELEASE.outputs)
    np.testing.assert_array_equal(MECHANISM.release(Y.to_numpy()).outputs, RELEASE.outputs)
    np.testing.assert_array_equal(MECHANISM.release(SHUFFLED.to_frame()).outputs, RELEASE.outputs)


def test_values_of_other_rows_are_refused():
    other = Y.rename({"person 3": "person 99"})
    with pytest.raises(sf.InputError, match=r"y has 1 row label\(s\) that X does not have, the first 'person 99'"):
        MECHANISM.release(other)
    twice = SHUFFLED.rename({"person 3": "person 4"})
    with pytest.raises(sf.InputError, match=r"some of them more than once.*y\.to_numpy\(\)"):
        MECHANISM.release(twice)
    with pytest.raises(sf.InputError, match="y has 19 values, but X has 20 rows"):
        MECHANISM.release(Y[:-1])


def test_a_shuffled_table_beside_values_without_labels_is_refused():
    """X.sample(frac=1) keeps the labels of its rows; which value belongs to which row is then anyone's guess."""
    table = X.reset_index(drop=True).sample(frac=1.0, random_state=3)
    values = Y.reset_index(drop=True)
    mechanism = protected(table)
    with pytest.raises(sf.InputError, match=r"same row labels in different orders.*y\.loc\[X\.index\].*y\.to_numpy"):
        mechanism.release(values)
    with pytest.raises(sf.InputError, match="those of X are just 0, 1, 2"):
        protected(X.reset_index(drop=True)).release(values.sample(frac=1.0, random_state=3))
    by_label = mechanism.release(values.loc[table.index])
    np.testing.assert_array_equal(mechanism.release(values.loc[table.index].to_numpy()).outputs, by_label.outputs)


@pytest.mark.parametrize(
    ("index", "labels"),
    [
        (None, NAMES),
        (pd.RangeIndex(20), NAMES),
        (pd.Index(NAMES), None),
        (pd.Index(NAMES), range(20)),
        (pd.Index([7] * 20), [7] * 20),
        (pd.date_range("2024-01-01", periods=20), pd.date_range("2024-01-01", periods=20)),
    ],
    ids=["no labels", "plain beside names", "no series", "names beside plain", "repeated", "dates"],
)
def test_what_is_not_labelled_twice_is_taken_as_it_stands(index, labels):
    given = np.arange(20.0) if labels is None else pd.Series(np.arange(20.0), index=labels)
    np.testing.assert_array_equal(np.asarray(in_row_order(given, index, "y")), np.arange(20.0))


def test_labels_of_several_levels_work_too():
    index = pd.MultiIndex.from_product([["a", "b"], range(3)])
    values = pd.Series(np.arange(6.0), index=index)
    np.testing.assert_array_equal(in_row_order(values.iloc[::-1], index, "y"), np.arange(6.0))


def test_fitting_and_conditioning_go_by_label_too():
    straight = sf.fit_prior(X, Y, lengthscale=[15.0, 3.0], noise=1.0, mean="zero")
    mixed = sf.fit_prior(X, SHUFFLED, lengthscale=[15.0, 3.0], noise=1.0, mean="zero")
    np.testing.assert_array_equal(straight.covariance(X), mixed.covariance(X))
    np.testing.assert_array_equal(PRIOR.condition(X, SHUFFLED).mean_at(X), PRIOR.condition(X, Y).mean_at(X))
    with pytest.raises(sf.InputError, match="w has 1 row label"):
        PRIOR.condition(X, Y.rename({"person 3": "no one"}))


def test_a_ledger_goes_by_label_too(tmp_path):
    ledger = sf.Ledger(tmp_path / "people.ledger")
    mechanism = ledger.protect(PRIOR, X, REGION, alpha=0.5, share=0.5, progress=False)
    with pytest.raises(sf.InputError, match="row label"):
        mechanism.release(Y.rename({"person 3": "person 99"}))


def test_related_outputs_go_by_label_too():
    t = pd.DataFrame({"t": np.linspace(0, 3, 15)}, index=[f"day {k}" for k in range(15)])
    joint = sf.JointPrior.of(sf.Prior(rbf(0.4, 1.5), noise=0.05), {"r": sf.Value(), "v": sf.Derivative("t")})
    mechanism = sf.protect(joint, t, {"r": sf.Box(1.0, 2.0)}, alpha=0.3, progress=False)
    values = pd.DataFrame({"r": np.sin(t["t"]), "v": np.cos(t["t"])})
    straight = mechanism.release(values, unsafe_seed=1)
    mixed = mechanism.release(values.iloc[::-1], unsafe_seed=1)
    np.testing.assert_array_equal(straight.outputs, mixed.outputs)
    with pytest.raises(sf.InputError, match=r"y\['r'\] has 1 row label"):
        mechanism.release(values.rename({"day 3": "night"}), unsafe_seed=1)
    asked = pd.DataFrame({"t": [0.5, 2.5]}, index=["early", "late"])
    assert list(straight.predict(asked, output="v").to_frame().index) == ["early", "late"]
    wide = straight.to_frame(index=t.index)
    assert list(wide.columns) == ["t", "r", "v"]
    np.testing.assert_array_equal(wide[["r", "v"]].to_numpy().T.ravel(), straight.outputs)


def test_outputs_released_at_other_inputs_have_rows_of_their_own():
    joint = sf.JointPrior.of(sf.Prior(rbf(0.4, 1.5), noise=0.05), {"r": sf.Value(), "v": sf.Derivative("t")})
    at = {"r": pd.DataFrame({"t": [0.0, 1.0, 1.0, 2.0]}), "v": pd.DataFrame({"t": [1.0, 3.0]})}
    release = sf.protect(joint, at, {"r": sf.Box(1.0, 2.0)}, alpha=0.3, progress=False).release(
        {"r": [0.0, 1.0, 2.0, 3.0], "v": [4.0, 5.0]}
    )
    wide = release.to_frame()
    assert wide["t"].tolist() == [0.0, 1.0, 1.0, 2.0, 3.0]
    np.testing.assert_array_equal(wide["r"].dropna(), release.outputs[:4])
    assert wide["v"].isna().tolist() == [True, False, True, True, False]
    np.testing.assert_array_equal(wide["v"].dropna(), release.outputs[4:])


def test_labels_change_neither_the_design_nor_the_noise():
    plain = protected(X.reset_index(drop=True))
    assert plain.design.digest() == MECHANISM.design.digest()
    assert RELEASE.design.digest() == MECHANISM.design.digest()


def test_a_release_holds_no_labels(tmp_path):
    """They may be names, and nobody said that they may be published."""
    RELEASE.save(tmp_path / "people.sfumato")
    assert RELEASE.design.inputs.index is None
    assert MECHANISM.design.inputs.index is not None
    for raw in (pickle.dumps(RELEASE), (tmp_path / "people.sfumato").read_bytes()):
        assert b"person" not in raw


# ---------------------------------------------------------------- tables out


def test_a_release_is_a_table_and_takes_labels_back():
    table = RELEASE.to_frame()
    assert list(table.columns) == ["age", "place", "income"]
    assert table.index.equals(pd.RangeIndex(20))
    labelled = RELEASE.to_frame(index=X.index)
    assert labelled.index.equals(X.index)
    pd.testing.assert_frame_equal(labelled[["age", "place"]], X)
    np.testing.assert_array_equal(labelled["income"], RELEASE.outputs)
    with pytest.raises(sf.InputError, match="index has 3 labels, but the release has 20 rows"):
        RELEASE.to_frame(index=["a", "b", "c"])


def test_predictions_keep_the_labels_of_what_was_asked():
    asked = X.sample(5, random_state=0)[["place", "age"]]
    seen = RELEASE.predict(asked)
    table = seen.to_frame()
    assert list(table.columns) == ["mean", "std"]
    assert table.index.equals(asked.index)
    np.testing.assert_array_equal(table["mean"], RELEASE.predict(asked[["age", "place"]].to_numpy()).mean)
    joined = asked.join(table)
    assert joined["std"].notna().all()
    assert RELEASE.predict(asked.to_numpy()).to_frame().index.equals(pd.RangeIndex(5))
    assert RELEASE.predict(asked.to_numpy()).index is None
    assert "person" not in repr(seen)


def test_compressed_predictions_have_both_bounds_and_labels():
    t = np.linspace(0, 3, 40)
    prior = sf.Prior(kernel=rbf(0.4, 1.5), noise=0.05)
    release = sf.protect(prior, t, sf.Box(1, 2), alpha=0.3, method="compressed", progress=False).release(np.sin(t))
    table = release.predict(pd.Series([0.5, 1.5], index=["out", "in"], name="t")).to_frame()
    assert list(table.columns) == ["mean", "std", "std_lower"]
    assert list(table.index) == ["out", "in"]
    assert (table["std_lower"] <= table["std"]).all()


def test_csv_and_parquet_hold_the_published_numbers_exactly(tmp_path):
    RELEASE.to_csv(tmp_path / "people.csv")
    RELEASE.to_parquet(str(tmp_path / "people.parquet"))
    from_csv = pd.read_csv(tmp_path / "people.csv", float_precision="round_trip")
    pd.testing.assert_frame_equal(from_csv, RELEASE.to_frame(), check_exact=True)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "people.parquet"), RELEASE.to_frame(), check_exact=True)
    assert b"person" not in (tmp_path / "people.csv").read_bytes() + (tmp_path / "people.parquet").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_interrupted_table_leaves_the_old_file(kind, tmp_path, monkeypatch):
    path = tmp_path / f"people.{kind}"
    path.write_bytes(b"the old file")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(sf.ResourceError, match=r"cannot be written: .*No space left on device"):
        getattr(RELEASE, f"to_{kind}")(path)
    assert path.read_bytes() == b"the old file"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("method", "name", "words"),
    [
        ("to_csv", "people.parquet", r"ends in \.csv"),
        ("to_csv", "people", r"ends in \.csv"),
        ("to_parquet", "people.csv", r"ends in \.parquet or \.pq"),
        ("to_csv", "nowhere/people.csv", "in a folder that is there"),
    ],
)
def test_a_wrong_path_is_named(method, name, words, tmp_path):
    with pytest.raises(sf.InputError, match=words):
        getattr(RELEASE, method)(tmp_path / name)
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------- types of columns


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1", "2"], ("numbers as text", "X['c'].astype(float)", "astype('category')")),
        (["Rome", None], ("1 value(s) that are missing", "row 1")),
        (pd.to_datetime(["2024-01-01", None]), ("1 value(s) that are missing", "row 1")),
        (np.array([1, "2"], dtype=object), ("mixes", "int, str", "X['c'].astype(float)")),
        (pd.to_timedelta([1, 2], unit="D"), ("durations", "X['c'] / pd.Timedelta(days=1)")),
        (np.array([1 + 2j, 3.0]), ("real and the imaginary part",)),
        (pd.interval_range(0, 2), ("not numeric",)),
    ],
    ids=["numbers as text", "no text", "no date", "mixed", "durations", "complex", "intervals"],
)  # fmt: skip
def test_columns_that_are_no_numbers_are_refused_with_advice(values, words):
    table = pd.DataFrame({"t": [0.0, 1.0]})
    table["c"] = values
    with pytest.raises(sf.InputError) as caught:
        as_inputs(table)
    assert all(word in str(caught.value) for word in ("X column 'c'", *words)), str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical([1, 2]),
        pd.to_datetime(["2024-01-01", "2024-01-02"]),
        pd.to_timedelta([1, 2], unit="D"),
        pd.array(["1", "2"], dtype="string"),
        np.array([1 + 2j, 3.0]),
    ],
    ids=["category", "dates", "durations", "text", "complex"],
)
def test_outputs_that_are_no_numbers_are_refused_with_advice(values):
    with pytest.raises(sf.InputError, match=r"^y is not numeric \(dtype .*\); "):
        as_outputs(pd.Series(values), 2)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "float32", "bool", "Int64", "Float32", "boolean", "int64[pyarrow]", "bool[pyarrow]"]
)
def test_integers_booleans_and_nullable_columns_are_numbers(dtype):
    column = pd.Series([0, 1, 1], dtype=dtype)
    assert as_inputs(pd.DataFrame({"a": column, "b": 0.5})).values.tolist() == [[0.0, 0.5], [1.0, 0.5], [1.0, 0.5]]
    assert as_outputs(column, 3).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]"])
def test_missing_values_of_nullable_columns_are_named_by_row(dtype):
    column = pd.Series([0, None, 1], dtype=dtype)
    with pytest.raises(sf.InputError, match=r"y has 1 value\(s\) that are NaN or infinite, the first at row 1"):
        as_outputs(column, 3)
    with pytest.raises(sf.InputError, match=r"X has 1 value\(s\) that are NaN or infinite, the first at row 1, col"):
        as_inputs(pd.DataFrame({"a": column, "b": 0.5}))


def test_numbers_kept_as_objects_are_still_outputs():
    assert as_outputs(pd.Series([1, 2.5], dtype=object), 2).tolist() == [1.0, 2.5]


def test_the_advice_works():
    dates = pd.DataFrame({"c": pd.to_datetime(["2024-01-01", "2024-01-03"])})
    days = (dates["c"] - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1)
    assert np.diff(as_inputs(days).values[:, 0]).tolist() == [2.0]
    cities = pd.DataFrame({"city": ["Rome", "Pisa", "Rome"], "t": [0.0, 1.0, 2.0]})
    encoded = as_inputs(pd.get_dummies(cities, columns=["city"]))
    assert encoded.names == ("t", "city_Pisa", "city_Rome")
    assert encoded.values[:, 2].tolist() == [1.0, 0.0, 1.0]


def test_selected_rows_keep_their_labels():
    inputs = as_inputs(X)
    mask = np.zeros(20, dtype=bool)
    mask[[2, 5]] = True
    for keep in (mask, np.array([2, 5])):
        assert list(inputs.select(keep).index) == ["person 2", "person 5"]


def test_noise_and_weights_with_labels_go_to_their_own_rows():
    labels = [f"r{i}" for i in range(20)]
    X = pd.DataFrame({"t": np.linspace(0.0, 3.0, 20)}, index=labels)
    y = pd.Series(np.sin(X["t"]), index=labels)
    V = pd.Series(np.linspace(0.01, 1.0, 20), index=labels)
    shuffled = V.sample(frac=1.0, random_state=0)
    one, other = (sf.fit_prior(X, y, noise=noise, lengthscale=0.3) for noise in (V, shuffled))
    assert np.array_equal(one.noise, other.noise)
    with pytest.raises(sf.InputError, match="noise is a Series with row labels"):
        sf.Prior(one.kernel, noise=shuffled)
    weighted = [sf.protect(one, X, sf.Box(1.0, 2.0), alpha=0.5, weights=w).noise.trace for w in (V, shuffled)]
    assert weighted[0] == weighted[1]


def test_the_owners_checks_refuse_labels_that_a_release_does_not_have():
    labels = [f"r{i}" for i in range(12)]
    X = pd.DataFrame({"t": np.linspace(0.0, 3.0, 12)}, index=labels)
    y = pd.Series(np.sin(X["t"]), index=labels)
    prior = sf.fit_prior(X, y, noise=0.01, lengthscale=0.4)
    release = sf.protect(prior, X, sf.Box(1.0, 2.0), alpha=0.5).release(y)
    with pytest.raises(sf.InputError, match="y has row labels, and a release does not"):
        sf.audit(release, y)


def test_one_of_several_outputs_as_a_series_goes_to_its_own_rows():
    from sfumato.data.inputs import stacked_outputs

    labels = [f"r{i}" for i in range(12)]
    X = pd.DataFrame({"t": np.linspace(0.0, 3.0, 12)}, index=labels)
    y = pd.Series(np.sin(X["t"]), index=labels)
    prior = sf.fit_prior(X, y, noise=0.01, lengthscale=0.4)
    joint = sf.JointPrior.of(prior, {"r": sf.Value(), "v": sf.Derivative("t")})
    mechanism = sf.protect(joint, X, {"r": sf.Box(1.0, 2.0)}, alpha=0.5, released=["r"])
    shuffled = y.sample(frac=1.0, random_state=0)
    assert np.array_equal(stacked_outputs(mechanism.design.inputs, shuffled), y.to_numpy())
