"""Whoever is wrong is told which argument, which value, and what to do instead."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from kernels import matern, rbf

T = np.linspace(0.0, 3.0, 16)
PRIOR = sf.Prior(kernel=matern(0.4, 2.25), noise=0.05)
BOX, TWO = sf.Box(1.0, 2.0), sf.Points([[1.0], [2.0]])
FRAME = pd.DataFrame({"age": np.linspace(20, 90, 16), "area": np.arange(16.0)})
FRAME_PRIOR = sf.Prior(kernel=matern([20.0, 5.0]), noise=0.1)

#: What a remedy begins with.
REMEDY = re.compile(
    r"\b(give|use|drop|check|choose|convert|encode|leave|call|ask|as in|did you mean|needs?|must|takes)\b", re.I
)


def protect(X=T, region=BOX, prior=PRIOR, **options):
    if not options.keys() & {"alpha", "floor", "tolerance"}:
        options["alpha"] = 0.3
    return sf.protect(prior, X, region, **options)


def broken(values, place, value):
    values = np.array(values, dtype=float)
    values[place] = value
    return values


def wrong(name, call, *fragments):
    return pytest.param(call, fragments, id=name)


def refused(call, fragments):
    with pytest.raises(sf.InputError) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    for fragment in fragments:
        assert fragment in message, message
    assert REMEDY.search(message), message


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        wrong("NaN", lambda: protect(X=broken(T, 3, np.nan)), "X has 1 value", "row 3"),
        wrong("inf", lambda: protect(X=broken(T, 5, -np.inf)), "X has 1 value", "row 5"),
        wrong("NaN in a frame", lambda: protect(X=FRAME.replace(90.0, np.nan), region=sf.Ball([50, 5], 5),
                                                prior=FRAME_PRIOR), "X has 1 value", "row 15, column age"),
        wrong("three axes", lambda: protect(X=np.zeros((2, 2, 2))), "X has shape (2, 2, 2)"),
        wrong("no rows", lambda: protect(X=[]), "X has no rows"),
        wrong("text", lambda: protect(X=["a", "b"]), "X holds values of type"),
        wrong("duplicate columns", lambda: protect(X=FRAME.set_axis(["age", "age"], axis=1)),
              "X has the column 'age' more than once"),
        wrong("a column of names", lambda: protect(X=FRAME.assign(who=[f"p{i}" for i in range(len(FRAME))])),
              "X column 'who'", "Leave it out"),
        wrong("None", lambda: protect(X=None), "X"),
    ],
)  # fmt: skip
def test_wrong_inputs(call, fragments):
    refused(call, fragments)


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        wrong("empty box", lambda: sf.Box(2.0, 1.0), "region is empty", "lower = 2", "upper = 1"),
        wrong("empty intersection", lambda: protect(region=sf.Box(0, 1) & sf.Box(2, 3)), "region is empty"),
        wrong("empty crossing", lambda: protect(region=sf.Box(0, 1) & sf.Ball([2.5], 0.1)), "region"),
        wrong("no points", lambda: sf.Points([]), "no rows"),
        wrong("outside the data", lambda: protect(region=sf.Box(7.0, 8.0)), "7 ≤ x ≤ 8", "outside the data",
              "0 ≤ x ≤ 3"),
        wrong("points far outside", lambda: protect(region=sf.Points([[700.0]])), "outside the data", "0 ≤ x ≤ 3"),
        wrong("unknown column", lambda: protect(X=FRAME, region=sf.Box({"agee": (70, 90)}), prior=FRAME_PRIOR),
              "'agee'", "age, area", "Did you mean 'age'?"),
        wrong("a column where there are no names", lambda: protect(region=sf.Box({"t": (1, 2)})), "'t'",
              "no column names", "DataFrame"),
        wrong("other dimension", lambda: protect(region=sf.Box([0, 0], [1, 1])), "2 feature", "X has 1"),
        wrong("points of other dimension", lambda: protect(region=sf.Points([[1.0, 2.0]])), "2 feature", "X has 1"),
        wrong("not a region", lambda: protect(region=(1.0, 2.0)), "region is (1.0, 2.0)", "sf.Box"),
        wrong("none", lambda: protect(region=None), "region is None", "sf.Box"),
        wrong("a class", lambda: protect(region=sf.Everywhere), "region is", "sf.Box"),
        wrong("NaN bound", lambda: sf.Box(np.nan, 1.0), "lower is nan"),
        wrong("negative radius", lambda: sf.Ball([0.0], -1.0), "radius is -1"),
    ],
)  # fmt: skip
def test_wrong_regions(call, fragments):
    refused(call, fragments)


@pytest.mark.parametrize(
    ("alpha", "shown"),
    [(0, "0"), (1, "1"), (-0.1, "-0.1"), (2, "2"), (np.nan, "nan"), ("x", "'x'"), (True, "True"), ([0.5], "[0.5]")],
)
def test_alpha_lies_strictly_between_zero_and_one(alpha, shown):
    refused(lambda: protect(alpha=alpha), (f"alpha is {shown}; ", "between 0 and 1"))


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        wrong("above the prior", lambda: protect(floor=2.0), "floor is 2 ", "± 1.5", "below 1.5"),
        wrong("the prior itself", lambda: protect(floor=1.5), "floor is 1.5 ", "± 1.5"),
        wrong("a function above the prior", lambda: protect(floor=lambda s: s[:, 0]), "floor is ", "± 1.5", "x = "),
        wrong("zero", lambda: protect(floor=0), "floor is 0; ", "positive"),
        wrong("negative", lambda: protect(floor=-1.0), "floor is -1.0; ", "positive"),
        wrong("NaN", lambda: protect(floor=np.nan), "floor is nan; "),
        wrong("text", lambda: protect(floor="high"), "floor is 'high'; "),
        wrong("bool", lambda: protect(floor=True), "floor is True; "),
        wrong("a function that returns too few", lambda: protect(floor=lambda s: s[:2, 0]), "floor returned"),
        wrong("a list", lambda: protect(floor=[0.5, 0.6]), "floor is [0.5, 0.6]"),
        wrong("an object", lambda: protect(floor=object()), "floor is <object"),
        wrong("a function that returns text", lambda: protect(floor=lambda s: "high"), "floor returned"),
        wrong("everywhere", lambda: protect(region=sf.Everywhere(), floor=lambda s: 0.5 + 0 * s[:, 0]),
              "region is sf.Everywhere()", "alpha"),
    ],
)  # fmt: skip
def test_wrong_floors(call, fragments):
    refused(call, fragments)


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        wrong("none", lambda: sf.protect(PRIOR, T, BOX), "exactly one of alpha, floor and tolerance", "none of them"),
        wrong("two", lambda: protect(alpha=0.3, floor=0.5), "exactly one of", "alpha and floor"),
        wrong("three", lambda: protect(alpha=0.3, floor=0.5, tolerance=sf.MatrixTolerance(1.0)), "exactly one of",
              "alpha and floor and tolerance"),
        wrong("a number", lambda: protect(tolerance=0.3), "tolerance is 0.3", "sf.KernelTolerance"),
        wrong("a kernel", lambda: protect(tolerance=rbf(0.3)), "tolerance is", "sf.KernelTolerance"),
        wrong("no kernel", lambda: sf.KernelTolerance("rbf"), "KernelTolerance takes a GPyTorch kernel, not 'rbf'"),
        wrong("a matrix for a box", lambda: protect(tolerance=sf.MatrixTolerance(np.eye(2))), "MatrixTolerance",
              "sf.Points"),
        wrong("a matrix of another size", lambda: protect(region=TWO, tolerance=sf.MatrixTolerance(np.eye(3))),
              "3 × 3", "2 points"),
        wrong("a matrix that is not definite", lambda: sf.MatrixTolerance([[1, 2], [2, 1]]), "MatrixTolerance",
              "not positive definite", "least eigenvalue -1"),
        wrong("a matrix that is not symmetric", lambda: sf.MatrixTolerance([[1.0, 0.5], [0.0, 1.0]]),
              "MatrixTolerance", "not symmetric"),
        wrong("a matrix that is not square", lambda: sf.MatrixTolerance(np.ones((2, 3))), "MatrixTolerance", "(2, 3)"),
        wrong("a matrix with NaN", lambda: sf.MatrixTolerance([[np.nan]]), "MatrixTolerance", "finite"),
        wrong("a matrix of text", lambda: sf.MatrixTolerance([["a"]]), "MatrixTolerance"),
        *(wrong(f"a narrow peak above the prior, {guarantee}",
                lambda guarantee=guarantee: protect(region=sf.Box(1.0, 2.0), guarantee=guarantee, floor=lambda s:
                                                    np.where(abs(s[:, 0] - 1.50003) < 2e-3, 2e3, 0.1)),
                "floor is 2000", "already knows") for guarantee in ("joint", "pointwise")),
        wrong("a matrix for everywhere", lambda: protect(region=sf.Everywhere(), tolerance=sf.MatrixTolerance(1.0)),
              "MatrixTolerance", "sf.Points"),
        wrong("a kernel that is too smooth for everywhere",
              lambda: protect(region=sf.Everywhere(), tolerance=sf.KernelTolerance(rbf(5.0))), "tolerance", "spectrum"),
    ],
)  # fmt: skip
def test_wrong_tolerances(call, fragments):
    refused(call, fragments)


@pytest.mark.parametrize("name", ["cover", "guarantee", "structure", "method"])
@pytest.mark.parametrize("value", ["magic", "", None, 3])
def test_unknown_choices_are_answered_with_the_known_ones(name, value):
    known = {"cover": "'exchange'", "guarantee": "'joint'", "structure": "'full'", "method": "'eigh'"}
    refused(lambda: protect(**{name: value}), (f"{name} is {value!r}; choose one of", known[name]))


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        wrong("one prior", lambda: protect(priors=PRIOR), "priors is", "list of sf.Prior"),
        wrong("a number", lambda: protect(priors=3), "priors is a int", "list of sf.Prior"),
        wrong("a kernel among them", lambda: protect(priors=[PRIOR, rbf(1.0)]), "priors has a ScaleKernel", "sf.Prior"),
        wrong("too many", lambda: protect(priors=[sf.Prior(kernel=rbf(1.0))] * 64), "priors has 64", "fewer than 64"),
        wrong("made for other rows", lambda: protect(priors=[sf.Prior(kernel=rbf(1.0), noise=[0.1, 0.2])]),
              "noise has 2 values", "16 rows"),
        wrong("made for other columns", lambda: protect(priors=[FRAME_PRIOR]), "prior does not fit X"),
        wrong("a floor that one of them does not have",
              lambda: protect(priors=[sf.Prior(kernel=rbf(1.0, 1e-4))], floor=0.1), "floor is 0.1", "already knows"),
        wrong("sign, diagonal", lambda: protect(method="sign", structure="diagonal"), "method is 'sign'", "leave"),
        wrong("eigh, pointwise", lambda: protect(method="eigh", guarantee="pointwise"), "method is 'eigh'", "leave"),
        wrong("pointwise everywhere", lambda: protect(guarantee="pointwise", region=sf.Everywhere()),
              "guarantee is \"pointwise\"", "bound the region"),
    ],
)  # fmt: skip
def test_wrong_programs(call, fragments):
    refused(call, fragments)


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        wrong("too few", lambda: protect(weights=[1.0, 2.0]), "weights has shape (2,)", "16"),
        wrong("negative", lambda: protect(weights=broken(np.ones(16), 4, -2.0)), "weights has the value", "-2"),
        wrong("zero", lambda: protect(weights=np.zeros(16)), "weights has the value", "0."),
        wrong("NaN", lambda: protect(weights=broken(np.ones(16), 4, np.nan)), "weights has the value", "nan"),
        wrong("inf", lambda: protect(weights=broken(np.ones(16), 4, np.inf)), "weights has the value", "inf"),
        wrong("an indefinite matrix", lambda: protect(weights=-np.eye(16)),
              "weights is a matrix that is not positive definite", "least eigenvalue -1"),
        wrong("text", lambda: protect(weights="heavy"), "weights"),
        wrong("an infinite matrix", lambda: protect(weights=np.diag([np.inf] * 16)), "weights", "finite"),
        wrong("a matrix with NaN", lambda: protect(weights=np.full((16, 16), np.nan)), "weights", "finite"),
        wrong("complex", lambda: protect(weights=np.full(16, 1j)), "weights", "complex"),
        wrong("far too small", lambda: protect(weights=np.full(16, 1e-300)), "weights has the value 1e-300", "between"),
        wrong("not symmetric", lambda: protect(weights=np.eye(16) + np.diag(np.ones(15) / 3, 1)), "weights"),
    ],
)  # fmt: skip
def test_wrong_weights(call, fragments):
    refused(call, fragments)


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        wrong("a kernel", lambda: protect(prior=rbf(0.3)), "prior is", "sf.Prior"),
        wrong("noise of another length", lambda: protect(prior=sf.Prior(kernel=rbf(0.3), noise=np.ones(5))),
              "noise has 5 values", "X has 16 rows"),
        wrong("negative noise", lambda: sf.Prior(kernel=rbf(0.3), noise=-0.5), "noise is -0.5"),
        wrong("noise of text", lambda: sf.Prior(kernel=rbf(0.3), noise="much"), "noise is 'much'"),
        wrong("noise of texts", lambda: sf.Prior(kernel=rbf(0.3), noise=["much"]), "noise is ['much']"),
        wrong("unknown mean", lambda: sf.Prior(kernel=rbf(0.3), mean="linear"), "mean is 'linear'"),
        wrong("unknown kernel", lambda: sf.Prior(kernel="rbf"), "kernel is 'rbf'"),
        wrong("kernel for two features on three", lambda: protect(X=np.ones((4, 3)), region=sf.Ball([1, 1, 1], 1),
                                                                  prior=sf.Prior(kernel=rbf([0.3, 0.4]))),
              "prior does not fit X", "3 feature"),
        wrong("kernel for two features on one", lambda: protect(prior=sf.Prior(kernel=rbf([0.3, 0.4]), noise=0.1)),
              "prior does not fit X", "1 feature"),
    ],
)  # fmt: skip
def test_wrong_priors(call, fragments):
    refused(call, fragments)


def test_rows_without_rows():
    refused(lambda: protect(region=sf.Box(1.01, 1.02), cover="rows"), ("cover is 'rows'", "1.01 ≤ x ≤ 1.02"))


@pytest.fixture(scope="module")
def mechanism():
    return protect()


@pytest.mark.parametrize(
    ("y", "fragments"),
    [
        (T[:-1], ("y has 15 values", "X has 16 rows")),
        (broken(T, 2, np.nan), ("y has 1 value(s)", "row 2")),
        (broken(T, 2, np.inf), ("y has 1 value(s)", "row 2")),
        (np.ones((16, 2)), ("y has shape (16, 2)",)),
        (pd.DataFrame({"a": T, "b": T}), ("y has 2 columns",)),
        (["a"] * 16, ("y holds values of type",)),
        (None, ("y has shape ()",)),
    ],
)
def test_wrong_outputs(mechanism, y, fragments):
    refused(lambda: mechanism.release(y), fragments)


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        ({"output_name": ""}, ("output_name is ''",)),
        ({"output_name": 3}, ("output_name is '3'",)),
        ({"resolution": 0.0}, ("resolution is 0.0",)),
        ({"resolution": 1e-30}, ("resolution is 1e-30",)),
        ({"unsafe_seed": 1.5}, ("unsafe_seed is 1.5",)),
    ],
)
def test_wrong_ways_to_release(mechanism, options, fragments):
    refused(lambda: mechanism.release(T, **options), fragments)


@pytest.mark.parametrize(
    ("X_new", "fragments"),
    [
        (np.ones((2, 2)), ("X_new has 2 feature", "made for 1 (x)")),
        (broken(T, 2, np.nan), ("X_new has 1 value", "row 2")),
        ([], ("X_new has no rows",)),
        ("here", ("X_new holds values of type",)),
    ],
)
def test_wrong_new_inputs(mechanism, X_new, fragments):
    release = mechanism.release(T)
    refused(lambda: release.predict(X_new), fragments)


def test_a_missing_column_of_new_inputs():
    release = protect(X=FRAME, region=sf.Box({"age": (60, 70)}), prior=FRAME_PRIOR).release(np.zeros(16))
    refused(lambda: release.predict(FRAME[["area"]]), ("X_new has no column 'age'", "area"))
    refused(lambda: release.predict(np.ones((2, 3))), ("X_new has 3 feature", "age, area"))


def test_every_input_error_is_a_value_error_and_ours():
    from sfumato.errors import SfumatoError

    assert issubclass(sf.InputError, ValueError)
    for error in (sf.InputError, sf.GuaranteeError, sf.BudgetError, sf.FormatError):
        assert issubclass(error, SfumatoError)
