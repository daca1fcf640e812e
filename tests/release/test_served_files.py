"""Files of releases with the best predictions: read again as they were, and never believed where they are edited."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from command_line import run
from kernels import matern
from sfumato.release import design_tree
from sfumato.release.container import container, read_container

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")

X = np.linspace(0.0, 1.0, 24)
Parts = tuple[dict[str, Any], dict[str, Any]]


def protected(**how: Any) -> sf.Mechanism:
    prior = sf.Prior(matern(0.15, nu=2.5), noise=0.01)
    return sf.protect(prior, X, sf.Box(0.4, 0.6), alpha=0.2, objective="predictions", progress=False, **how)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Release, Path]:
    """A release and its file."""
    path = tmp_path_factory.mktemp("served") / "made.sfumato"
    release = protected().release(np.sin(9 * X), unsafe_seed=1)
    release.save(path)
    return release, path


@pytest.fixture(scope="module")
def parts(made: tuple[sf.Release, Path]) -> Parts:
    return read_container(made[1], lambda version, manifest, shapes: manifest)


def edited(path: Path, manifest: dict[str, Any], tensors: dict[str, Any]) -> sf.Release:
    path.write_bytes(container(manifest, tensors))
    return sf.load(path)


def test_a_file_has_all_that_a_release_has(made: tuple[sf.Release, Path]) -> None:
    release, path = made
    again = sf.load(path)
    assert again.design.objective == "predictions"
    assert again.design.serves is not None
    assert release.design.serves is not None
    np.testing.assert_array_equal(again.design.serves.places, release.design.serves.places)
    np.testing.assert_array_equal(again.noise.suppressed, release.noise.suppressed)
    np.testing.assert_array_equal(again.predict(X).std, release.predict(X).std)
    found, told = again.certify(progress=False), release.certificate
    assert (found.holds, found.objective) == (True, "predictions")
    for name in ("explained", "explained_upper", "gap"):
        assert getattr(found, name) == pytest.approx(getattr(told, name), abs=1e-9)
    assert found.explained_upper < 1.0
    assert not {one.code for one in found.findings} & {"shows-what-is-suppressed", "claims-better-predictions"}


def test_the_command_predicts_from_such_a_file(made: tuple[sf.Release, Path], tmp_path: Path) -> None:
    release, path = made
    (tmp_path / "asked.csv").write_text("x\n0.1\n0.5\n")
    result = run("predict", path, tmp_path / "asked.csv", "--out", tmp_path / "told.csv")
    assert result.exit_code == 0, result.output
    told = np.loadtxt(tmp_path / "told.csv", delimiter=",", skiprows=1)
    expected = release.predict([0.1, 0.5])
    np.testing.assert_allclose(told[:, -2:], np.column_stack([expected.mean, expected.std]), rtol=1e-12)


def doubled(tensors: dict[str, Any]) -> dict[str, Any]:
    suppressed = tensors["noise_suppressed"]
    return {"noise_suppressed": np.hstack([suppressed, suppressed[:, :1]])}


WRONG: dict[str, Any] = {
    "the same combination twice": doubled,
    "nearly the same": lambda t: {
        "noise_suppressed": np.hstack([t["noise_suppressed"], t["noise_suppressed"][:, :1] + 1e-6])
    },
    "no combination": lambda t: {"noise_suppressed": 0.0 * t["noise_suppressed"]},
    "combinations of no size": lambda t: {"noise_suppressed": 1e-200 * t["noise_suppressed"]},
    "huge combinations": lambda t: {"noise_suppressed": 1e140 * t["noise_suppressed"]},
    "more combinations than rows": lambda t: {"noise_suppressed": 1e3 * np.eye(24, 30)},
    "combinations of fewer rows": lambda t: {"noise_suppressed": t["noise_suppressed"][1:]},
    "combinations in one column": lambda t: {"noise_suppressed": t["noise_suppressed"][:, 0]},
    "no served inputs": lambda t: {"served": t["served"][:0], "served_weights": t["served_weights"][:0]},
    "served inputs of two columns": lambda t: {"served": np.hstack([t["served"], t["served"]])},
    "served inputs as a number": lambda t: {"served": np.array(1.0)},
    "weights of fewer inputs": lambda t: {"served_weights": t["served_weights"][1:]},
    "a weight of zero": lambda t: {"served_weights": 0.0 * t["served_weights"]},
    "a negative weight": lambda t: {"served_weights": -t["served_weights"]},
    "an infinite weight": lambda t: {"served_weights": 1e200 * t["served_weights"]},
    "weights of rows": lambda t: {"weights": np.ones(24)},
    "a second witness": lambda t: {"witness_1": t["witness"]},
}


@pytest.mark.parametrize("what", WRONG)
def test_parts_that_do_not_fit_are_a_format_error(tmp_path: Path, parts: Parts, what: str) -> None:
    manifest, tensors = parts
    with pytest.raises(sf.FormatError):
        edited(tmp_path / "wrong", manifest, tensors | WRONG[what](tensors))


def test_so_are_parts_that_are_missing_or_of_another_structure(
    tmp_path: Path, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, tensors = parts
    without = {name: array for name, array in tensors.items() if name != "served_weights"}
    diagonal = {name: array for name, array in tensors.items() if name != "noise_factor"} | {
        "noise_diagonal": np.ones(24)
    }
    alone = {name: array for name, array in diagonal.items() if not name.startswith("served") and name != "witness"}
    for what, arrays in (({}, without), ({"structure": "diagonal"}, diagonal), ({"structure": "diagonal"}, alone)):
        with pytest.raises(sf.FormatError):
            edited(tmp_path / "wrong", manifest | what, arrays)
    with pytest.raises(sf.FormatError, match="do not go with it"):
        edited(
            tmp_path / "priors", manifest | {"others": [manifest["prior"]]}, tensors | {"witness_1": tensors["witness"]}
        )
    monkeypatch.setattr(design_tree, "MOST_SERVED", 5)
    with pytest.raises(sf.FormatError, match="1 to 5 are read"):
        edited(tmp_path / "many", manifest, tensors)


BELIEVED_BY_NOBODY: dict[str, Any] = {
    "another witness": lambda t: {"witness": t["witness"][::-1] * 0.7},
    "a witness of zeros": lambda t: {"witness": 0.0 * t["witness"]},
    "a huge witness": lambda t: {"witness": 1e140 * t["witness"]},
    "a witness of fewer values": lambda t: {"witness": t["witness"][1:]},
    "a witness of more values": lambda t: {"witness": np.vstack([t["witness"], t["witness"]])},
    "a witness with many columns": lambda t: {"witness": np.ones((len(t["witness"]), 1000))},
    "an overflowing witness": lambda t: {"witness": np.full_like(t["witness"], 9e149)},
    "other served inputs": lambda t: {"served": 0.5 + 0.0 * t["served"]},
    "far served inputs": lambda t: {"served": 1e100 + 0.0 * t["served"]},
    "one combination less": lambda t: {"noise_suppressed": t["noise_suppressed"][:, 1:]},
    "less of them": lambda t: {"noise_suppressed": 1e-3 * t["noise_suppressed"]},
}


@pytest.mark.parametrize("what", BELIEVED_BY_NOBODY)
def test_what_is_edited_is_certified_as_it_deserves(
    tmp_path: Path, made: tuple[sf.Release, Path], parts: Parts, what: str
) -> None:
    manifest, tensors = parts
    found = edited(tmp_path / "edited", manifest, tensors | BELIEVED_BY_NOBODY[what](tensors)).certify(progress=False)
    told = made[0].certificate
    if "witness" in what:
        # no witness proves a bound below what readers explain, and less is never proved
        assert found.explained == pytest.approx(told.explained, abs=1e-9)
        assert told.explained <= found.explained_upper <= 1.0
        assert found.gap > told.gap
        assert "claims-better-predictions" in {one.code for one in found.findings}
    if what == "one combination less":
        assert not found.holds
        # more than any noise that keeps the promise could leave them is no gap of 0
        assert found.explained > told.explained_upper
        assert np.isnan(found.gap)
    if what == "less of them":
        # how much of it stands for "nothing is published" changes nothing
        assert found.holds
        assert found.explained == pytest.approx(told.explained, abs=1e-9)
    assert found.explained <= found.explained_upper + 1e-9 or not found.holds


@pytest.mark.parametrize("objective", ["predictions", "noise"])
def test_inputs_of_which_nothing_is_promised_prove_no_bound(tmp_path: Path, objective: str) -> None:
    """A file that names inputs between the rows, and has the noise for them, promises the rows alone."""
    prior, rows = sf.Prior(matern(0.4, nu=2.5), noise=0.01), np.linspace(0.0, 2.9, 10)
    how: dict[str, Any] = {"alpha": 0.2, "protects": "function", "guarantee": "pointwise", "progress": False}
    how["objective"] = objective
    honest = sf.protect(prior, rows, sf.Box(1.0, 2.0), cover="rows", **how)
    named = np.vstack([honest.design.sensitive, np.linspace(1.05, 1.95, 12)[:, None]])
    serve = {} if honest.design.serves is None else {"serve": honest.design.serves.places}
    stricter = sf.protect(prior, rows, sf.Points(named), **how, **serve)
    taken = {name: getattr(stricter.design, name) for name in ("noise", "sensitive", "witness")}
    release = stricter.release(np.sin(rows), unsafe_seed=1)
    forged = replace(
        release,
        design=replace(honest.design, **taken),
        certificate=replace(stricter.certificate, cover="rows"),
        unsafe=False,
    )
    forged.save(tmp_path / "forged")
    found = sf.load(tmp_path / "forged").certify(progress=False)
    assert found.holds
    if objective == "predictions":
        assert found.explained < 0.99 * honest.certificate.explained <= found.explained_upper
    else:
        assert found.trace_lower <= honest.certificate.trace < 0.99 * found.trace


def test_a_pointwise_witness_is_one_column(tmp_path: Path) -> None:
    release = protected(guarantee="pointwise").release(np.sin(9 * X), unsafe_seed=1)
    release.save(tmp_path / "single")
    manifest, tensors = read_container(tmp_path / "single", lambda version, manifest, shapes: manifest)
    told = sf.load(tmp_path / "single").certify(progress=False)
    assert told.explained <= told.explained_upper < 0.999
    assert tensors["witness"].shape[1] == 1
    for wrong in (np.hstack([tensors["witness"]] * 2), tensors["witness"].T):
        found = edited(tmp_path / "wrong", manifest, tensors | {"witness": wrong}).certify(progress=False)
        assert found.explained_upper > told.explained_upper


def test_served_inputs_of_outputs_that_are_not_there_are_refused(tmp_path: Path) -> None:
    base = sf.Prior(matern(0.15, nu=2.5), noise=0.01)
    prior = sf.JointPrior.coregionalised(base, [[1.0, 0.8], [0.8, 1.0]], ("a", "b"))
    rows = {"a": X[::2], "b": X[::2]}
    mechanism = sf.protect(
        prior, rows, {"a": sf.Box(0.4, 0.6)}, alpha=0.2, objective="predictions", protects="function", progress=False
    )
    mechanism.release({"a": X[::2], "b": X[::2]}, unsafe_seed=1).save(tmp_path / "two")
    manifest, tensors = read_container(tmp_path / "two", lambda version, manifest, shapes: manifest)
    wrong = tensors["served"] + np.array([0.0, 5.0])
    with pytest.raises(sf.FormatError, match="outputs that it does not name"):
        edited(tmp_path / "wrong", manifest, tensors | {"served": wrong})
