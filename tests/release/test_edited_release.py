"""A proved file that was edited certifies nothing that it does not keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpytorch.kernels import MaternKernel

import sfumato as sf
from command_line import run
from kernels import rbf
from sfumato.release.container import container, read_container
from soak.older_files import as_version_5

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 3.0, (60, 2))


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and arrays of a release whose promise is proved over a square."""
    kernel = MaternKernel(nu=2.5).double()
    kernel.lengthscale = 0.6
    mechanism = sf.protect(sf.Prior(kernel, noise=0.01), X, sf.Box([1, 1], [2, 2]), alpha=0.3, progress=False)
    assert mechanism.certificate.evidence == "proved"
    path = tmp_path_factory.mktemp("proved") / "proved.sfumato"
    mechanism.release(np.sin(X[:, 0])).save(path)
    return read_container(path, lambda version, manifest, shapes: manifest)


def certified(path: Path, manifest: dict[str, Any], tensors: dict[str, Any]) -> sf.Certificate:
    """What ``certify`` says of the file after its owner, or somebody else, has made it anew."""
    path.write_bytes(container(manifest, tensors))
    return sf.load(path).certify(progress=False)


def high(certificate: sf.Certificate) -> set[str]:
    return {one.code for one in certificate.findings if one.severity == "high"}


def test_the_file_alone_proves_the_promise_again(tmp_path: Path, proved: Any) -> None:
    found = certified(tmp_path / "same", *proved)
    assert (found.holds, found.evidence, found.proved_share, found.verdict) == (True, "proved", 1.0, "publish")


@pytest.mark.parametrize("share", [0.99, 0.9])
def test_less_noise_is_found_out(tmp_path: Path, proved: Any, share: float) -> None:
    manifest, tensors = proved
    less = tensors | {"noise_factor": tensors["noise_factor"] * np.sqrt(share)}
    found = certified(tmp_path / "less", manifest, less)
    assert not found.holds
    assert high(found) >= {"does-not-hold", "claims-more-than-proved"}


def test_a_promise_about_the_function_is_none_about_records(tmp_path: Path) -> None:
    prior = sf.Prior(rbf(0.5), noise=0.5)
    mechanism = sf.protect(prior, np.linspace(0, 3, 31), sf.Box(1, 2), alpha=0.3, protects="function")
    mechanism.release(np.zeros(31)).save(tmp_path / "function")
    manifest, tensors = read_container(tmp_path / "function", lambda version, manifest, shapes: manifest)
    found = certified(tmp_path / "both", manifest | {"protects": "both"}, tensors)
    assert not found.holds
    assert found.record_ratio < 1
    assert high(found) >= {"does-not-hold", "claims-more-than-proved"}


KINDS: dict[str, dict[str, Any]] = {
    "pointwise": {"guarantee": "pointwise"},
    "diagonal": {"structure": "diagonal"},
    "compressed": {"method": "compressed"},
    "function": {"protects": "function"},
    "records": {"protects": "records"},
    "two priors": {"priors": [sf.Prior(rbf(0.7), noise=0.01)]},
    "points": {"region": sf.Points([[1.2], [1.5]])},
    "rows": {"cover": "rows"},
    "everywhere": {"region": sf.Everywhere()},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_less_noise_of_any_kind_is_found_out(tmp_path: Path, kind: str) -> None:
    x, how = np.linspace(0.0, 3.0, 20), dict(KINDS[kind])
    region = how.pop("region", sf.Box(1, 2))
    mechanism = sf.protect(sf.Prior(rbf(0.5), noise=0.01), x, region, alpha=0.3, progress=False, **how)
    mechanism.release(x).save(tmp_path / "made")
    manifest, tensors = read_container(tmp_path / "made", lambda version, manifest, shapes: manifest)
    assert certified(tmp_path / "same", manifest, tensors).evidence == "proved"
    shares = {"noise_factor": np.sqrt(0.99), "noise_mixing": np.sqrt(0.99), "noise_diagonal": 0.99}
    less = {name: array * shares.get(name, 1.0) for name, array in tensors.items()}
    found = certified(tmp_path / "less", manifest, less)
    assert not found.holds
    assert high(found) >= {"does-not-hold", "claims-more-than-proved"}


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_a_proof_that_is_only_claimed_is_found_out(tmp_path: Path) -> None:
    x = np.linspace(0.0, 3.0, 20)
    prior = sf.Prior(MaternKernel(nu=2.5).double(), noise=0.01)
    mechanism = sf.protect(prior, x, sf.Box(1, 2), floor=lambda at: 0.7 + 0.1 * at[:, 0] / 3.0, progress=False)
    assert (mechanism.certificate.holds, mechanism.certificate.evidence) == (True, "searched")
    mechanism.release(x).save(tmp_path / "searched")
    manifest, tensors = read_container(tmp_path / "searched", lambda version, manifest, shapes: manifest)
    claim = manifest["certificate"] | {"evidence": "proved", "proved_share": 1.0, "findings": []}
    found = certified(tmp_path / "claimed", manifest | {"certificate": claim}, tensors)
    assert (found.holds, found.evidence, found.verdict) == (True, "searched", "publish with care")
    assert {one.code for one in found.findings if one.severity == "medium"} >= {"searched", "claims-a-proof"}


def test_a_larger_region_is_found_out(tmp_path: Path, proved: Any) -> None:
    manifest, tensors = proved
    larger = manifest | {"region": manifest["region"] | {"upper": [2.1, 2.0]}}
    found = certified(tmp_path / "larger", larger, tensors)
    assert not found.holds
    assert found.worst_input[0] > 2.0


@pytest.mark.parametrize("edit", ["cut", "doubled", "moved out of the region"])
def test_a_list_of_sensitive_inputs_that_was_cut_certifies_nothing(tmp_path: Path, proved: Any, edit: str) -> None:
    manifest, tensors = proved
    few, whole = tensors["sensitive"][:-1], len(tensors["sensitive"])
    instead = {"cut": few[:0], "doubled": few[:1], "moved out of the region": np.array([[50.0, 50.0]])}[edit]
    found = certified(tmp_path / "cut", manifest, tensors | {"sensitive": np.vstack([few, instead])})
    assert not found.holds
    assert found.joint_ratio == np.inf
    assert ("sensitive-inputs-missing" in high(found)) == (edit == "cut")
    assert f"at the {whole} sensitive inputs" in found.promise


def test_a_smaller_list_promises_what_it_lists_and_says_that_more_was_claimed(tmp_path: Path, proved: Any) -> None:
    manifest, tensors = proved
    few, whole = tensors["sensitive"][:-3], len(tensors["sensitive"])
    found = certified(tmp_path / "fewer", manifest | {"promised": len(few)}, tensors | {"sensitive": few})
    assert f"at the {len(few)} sensitive inputs" in found.promise
    assert high(found) == {"claims-more-inputs"}
    assert f"about {whole} sensitive inputs" in " ".join(one.text for one in found.findings)
    honest = {**manifest["certificate"], "sensitive": len(few)}
    found = certified(
        tmp_path / "honest", {**manifest, "promised": len(few), "certificate": honest}, tensors | {"sensitive": few}
    )
    assert (found.evidence, found.verdict) == ("proved", "publish")
    assert f"at the {len(few)} sensitive inputs" in found.promise


def test_a_file_that_pretends_to_be_older_hides_no_cut(tmp_path: Path, proved: Any) -> None:
    manifest, tensors = proved
    few, whole = tensors["sensitive"][:-3], len(tensors["sensitive"])
    (tmp_path / "older").write_bytes(container(as_version_5(manifest), tensors | {"sensitive": few}, version="5"))
    found = sf.load(tmp_path / "older").certify(progress=False)
    assert f"at the {len(few)} sensitive inputs" in found.promise
    assert high(found) == {"claims-more-inputs"}
    assert f"about {whole} sensitive inputs" in " ".join(one.text for one in found.findings)


def test_a_named_point_that_is_left_out_certifies_nothing(tmp_path: Path) -> None:
    kernel = MaternKernel(nu=2.5).double()
    mechanism = sf.protect(
        sf.Prior(kernel, noise=0.01), X, sf.Points([[1.0, 1.0], [2.0, 2.0]]), alpha=0.3, progress=False
    )
    assert mechanism.certificate.evidence == "proved"
    mechanism.release(X[:, 0]).save(tmp_path / "points")
    manifest, tensors = read_container(tmp_path / "points", lambda version, manifest, shapes: manifest)
    one = tensors | {"sensitive": tensors["sensitive"][:1]}
    for promised in (1, 2):
        found = certified(tmp_path / "one", manifest | {"promised": promised}, one)
        assert not found.holds
        assert "sensitive-inputs-missing" in high(found)


GROUPS = [[0, 1], [5], [7, 12]]


@pytest.fixture(scope="module")
def for_insiders(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and arrays of a release that promises records to whoever holds one of three groups of rows."""
    x, points = np.linspace(0.0, 3.0, 16), sf.Points([[1.0], [1.4], [1.7]])
    how = {"alpha": 0.3, "protects": "both", "insiders": GROUPS, "progress": False}
    mechanism = sf.protect(sf.Prior(rbf(0.5), noise=0.3), x, points, **how)
    path = tmp_path_factory.mktemp("insiders") / "groups.sfumato"
    mechanism.release(np.zeros(16)).save(path)
    return read_container(path, lambda version, manifest, shapes: manifest)


def without_witness(tensors: dict[str, Any], *others: str) -> dict[str, Any]:
    return {name: array for name, array in tensors.items() if not name.startswith("witness") and name not in others}


@pytest.mark.parametrize("row", [5, 7, 0])
def test_less_noise_on_a_record_or_on_a_row_that_is_held_is_found_out(
    tmp_path: Path, for_insiders: Any, row: int
) -> None:
    manifest, tensors = for_insiders
    assert certified(tmp_path / "same", manifest, tensors).verdict == "publish"
    factor = np.array(tensors["noise_factor"])
    factor[row] *= 0.9
    found = certified(tmp_path / "less", manifest, tensors | {"noise_factor": factor})
    assert not found.holds
    assert found.insider_ratio > 1
    assert high(found) >= {"does-not-hold", "insiders-learn-more", "claims-more-than-proved"}


def test_a_promise_to_fewer_people_or_of_less_is_another_one_and_is_said(tmp_path: Path, for_insiders: Any) -> None:
    manifest, tensors = for_insiders
    same = certified(tmp_path / "same", manifest, tensors).promise
    assert "any one of 3 groups" in same
    of_less = {**manifest, "protects": "function"}
    found = certified(tmp_path / "function", of_less, tensors)
    assert "records" not in found.promise
    assert "not any single record" in found.promise
    assert high(found) == {"claims-another-promise"}
    no_one = {**manifest, "insiders": None, "designed_for": []}
    found = certified(tmp_path / "nobody", no_one, without_witness(tensors, "insider_members"))
    assert "holds" not in found.promise
    assert np.isnan(found.insider_ratio)
    assert high(found) == {"claims-another-promise"}
    fewer = without_witness(tensors) | {"insider_members": tensors["insider_members"][:2]}
    assert "any one of 1 groups" in certified(tmp_path / "fewer", {**manifest, "designed_for": []}, fewer).promise
    more = certified(
        tmp_path / "rows",
        {**manifest, "insiders": "rows", "designed_for": []},
        without_witness(tensors, "insider_members"),
    )
    assert not more.holds
    assert "insiders-learn-more" in high(more)


@pytest.mark.parametrize(
    ("place", "value"), [((0, 1), 99.0), ((0, 1), 0.5), ((0, 1), 1.0), ((0, 0), 7.0), ((2, 0), 0.0), ((0, 0), -1.0)]
)
def test_groups_of_insiders_that_are_none_are_refused(
    tmp_path: Path, for_insiders: Any, place: tuple[int, int], value: float
) -> None:
    manifest, tensors = for_insiders
    members = np.array(tensors["insider_members"])
    members[place] = value
    with pytest.raises(sf.FormatError, match="insiders"):
        certified(tmp_path / "members", manifest, tensors | {"insider_members": members})


def test_a_witness_for_insiders_who_are_promised_nothing_is_refused(tmp_path: Path, for_insiders: Any) -> None:
    manifest, tensors = for_insiders
    assert len(manifest["designed_for"]) > 0
    fewer = tensors | {"insider_members": tensors["insider_members"][:2]}
    moved = {**manifest, "designed_for": [[0, 2] for _ in manifest["designed_for"]]}
    with pytest.raises(sf.FormatError, match="promises nothing"):
        certified(tmp_path / "witness", moved, fewer)


@pytest.mark.parametrize(
    ("guarantee", "structure", "nu", "region"),
    [
        ("pointwise", "full", 0.5, sf.Box(1.0, 2.0)),
        ("pointwise", "diagonal", 2.5, sf.Box(1.0, 2.0)),
        ("pointwise", "full", 2.5, sf.Points([[1.5]])),
        ("joint", "diagonal", 0.5, sf.Box(1.0, 2.0)),
        ("joint", "full", 1.5, sf.Everywhere()),
    ],
)
def test_a_floor_above_the_priors_deviation_is_never_certified(
    tmp_path: Path, guarantee: Any, structure: Any, nu: float, region: sf.Region
) -> None:
    t, prior, path = np.linspace(0.0, 3.0, 7), sf.Prior(MaternKernel(nu).double(), noise=0.05), tmp_path / "floor"
    how: dict[str, Any] = {"guarantee": guarantee, "structure": structure, "progress": False}
    sf.protect(prior, t, region, floor=0.3, **how).release(5.0 * np.sin(t)).save(path)
    manifest, tensors = read_container(path, lambda version, manifest, shapes: manifest)
    for floor in (1.0, 1.1, 1e5):
        manifest["tolerance"]["value"] = floor
        if guarantee == "joint" and isinstance(region, sf.Box):
            assert certified(path, manifest, tensors).verdict == "do not publish"
        else:
            with pytest.raises(sf.GuaranteeError, match="no noise keeps this promise"):
                certified(path, manifest, tensors)
    assert run("certify", path).exit_code == 1
    with pytest.raises(sf.InputError, match="floor"):
        sf.protect(prior, t, region, floor=1.1, **how)


def test_a_compressed_release_with_noise_beyond_all_digits_is_told_and_predicts_nothing(tmp_path: Path) -> None:
    t, prior, path = np.linspace(0.0, 3.0, 200), sf.Prior(rbf(0.7), noise=0.05), tmp_path / "loud"
    mechanism = sf.protect(prior, t, sf.Box(1.0, 2.0), floor=0.4, method="compressed", progress=False)
    mechanism.release(5.0 * np.sin(t)).save(path)
    manifest, tensors = read_container(path, lambda version, manifest, shapes: manifest)
    for factor in (1e9, 1e40, 1e100):
        loud = tensors | {"noise_mixing": tensors["noise_mixing"] * factor}
        assert certified(path, manifest, loud).verdict == "do not publish"
        with pytest.raises(sf.FormatError, match="lost in rounding"):
            sf.load(path).predict(t[:3])
