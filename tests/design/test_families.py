"""Promises to families of priors, checked for random members in 50 digits, and by broken variants."""

from __future__ import annotations

import functools
from dataclasses import replace

import mpmath
import numpy as np
import pytest

import sfumato as sf
from kernel_oracles import kernel50
from kernels import matern, rbf
from oracles import DIGITS, exact, explained_variances50
from sfumato.models import FamilyMember, build_kernel, describe_kernel
from sfumato.noise import IndependentNoise
from sfumato.promise import FloorTolerance
from sfumato.proof import certify
from sfumato.release.container import container, read_container

GRID = np.linspace(0.0, 3.0, 19)
REGION = sf.Box(1.0, 2.0)
RANGES = {"lengthscale": (0.7, 1.6), "variance": (0.7, 1.4), "noise": (0.5, 1.5)}
KERNELS = {
    "rbf": rbf(0.4, 2.0),
    "matern52": matern(0.5, 2.0, nu=2.5),
    "matern12": matern(0.6, 2.0, nu=0.5),
    "season": build_kernel(
        {
            "kind": "sum",
            "kernels": [
                {"kind": "scale", "variance": 1.5, "kernel": {"kind": "matern", "nu": 1.5, "lengthscale": 0.5}},
                {
                    "kind": "product",
                    "kernels": [
                        {"kind": "periodic", "lengthscale": 2.0, "period_length": 0.7},
                        {"kind": "rbf", "lengthscale": 2.0},
                    ],
                },
            ],
        }
    ),
}


@functools.cache
def for_family(name, **promise):
    return sf.protect(sf.Prior(KERNELS[name], noise=0.05).family(**RANGES), GRID, REGION, **promise)


def left_50(member, mechanism, points, records=()):
    """What a reader with the prior ``member`` does not know of f at ``points`` and of ``records``, in 50 digits."""
    tree, X = describe_kernel(member.kernel), mechanism.inputs

    def block(A, B):
        rows, columns = ([[mpmath.mpf(v)] for v in np.ravel(part).tolist()] for part in (A, B))
        return mpmath.matrix([[kernel50(tree, a, b) for b in columns] for a in rows])

    with mpmath.workdps(DIGITS):
        V, M = (
            mpmath.mpf(float(member.noise)),
            block(X, X) + exact(mechanism.noise.factor) * exact(mechanism.noise.factor).T,
        )
        for i in range(M.rows):
            M[i, i] += V + mpmath.mpf(float(mechanism.noise.shift))
        of_f = [kernel50(tree, [mpmath.mpf(p)], [mpmath.mpf(p)]) for p in np.ravel(points).tolist()]
        of_f = np.array(of_f, dtype=object) - explained_variances50(M, block(X, points))
        cross = block(X, X[list(records)]) if len(records) else None
        for place, row in enumerate(records):
            cross[row, place] += V
        if cross is None:
            return of_f.astype(float), np.zeros(0)
        own = [kernel50(tree, [mpmath.mpf(0)], [mpmath.mpf(0)]) + V for _ in records]
        return of_f.astype(float), (np.array(own, dtype=object) - explained_variances50(M, cross)).astype(float)


def random_member(family, rng):
    """Often at the ends of the ranges, where promises are closest to being broken."""
    factors = {
        name: float(np.clip(rng.uniform(low - 0.3, high + 0.3), low, high)) for name, (low, high) in RANGES.items()
    }
    return family.member(**factors)


@pytest.mark.filterwarnings("ignore:Each value is protected by itself")
@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("rbf", {"alpha": 0.3}),
        ("season", {"floor": 0.9}),
        pytest.param("matern52", {"alpha": 0.3, "guarantee": "pointwise"}, marks=pytest.mark.slow),
        pytest.param("matern12", {"alpha": 0.3}, marks=pytest.mark.slow),
        pytest.param("rbf", {"floor": 0.9}, marks=pytest.mark.slow),
        pytest.param("season", {"alpha": 0.3}, marks=pytest.mark.slow),
        pytest.param("matern12", {"alpha": 0.3, "structure": "diagonal"}, marks=pytest.mark.slow),
    ],
)
def test_no_member_of_a_family_comes_below_the_floor_in_50_digits(name, promise):
    rng = np.random.default_rng(len(name))
    mechanism = for_family(name, **promise)
    (family,), certificate = mechanism.design.families, mechanism.certificate
    assert certificate.holds
    assert certificate.evidence == "proved"
    inside = np.flatnonzero((GRID >= 1.0) & (GRID <= 2.0))[::3]
    for _ in range(3):
        member = random_member(family, rng)
        points = rng.uniform(1.0, 2.0, size=5)
        of_f, of_records = left_50(member, mechanism, points, inside)
        variance = member.variance([[0.0]])[0]
        asked = 0.81 if "floor" in promise else 0.7 * variance
        asked_of_records = 0.81 if "floor" in promise else 0.7 * (variance + member.noise)
        assert np.min(of_f) >= asked * (1 - 1e-9)
        assert np.min(of_records) >= asked_of_records * (1 - 1e-9)


def test_records_are_promised_to_all_noises_of_a_family():
    family = sf.Prior(KERNELS["matern52"], noise=0.5).family(noise=(0.4, 2.0))
    mechanism = sf.protect(family, GRID, REGION, alpha=0.4, protects="records")
    inside = np.flatnonzero((GRID >= 1.0) & (GRID <= 2.0))
    for factor in (0.4, 0.9, 2.0):
        member = family.member(noise=factor)
        _, left = left_50(member, mechanism, [1.5], inside[::4])
        assert np.min(left) >= 0.6 * member.noise * (1 - 1e-9)


def test_a_file_carries_its_families_and_is_certified_from_them(tmp_path):
    release = for_family("rbf", alpha=0.3).release(np.sin(GRID))
    release.save(tmp_path / "family.sfumato")
    loaded = sf.load(tmp_path / "family.sfumato")
    assert [one.lengthscale for one in loaded.design.families] == [RANGES["lengthscale"]]
    found = loaded.certify()
    assert found.evidence == "proved"
    assert found.floor_ratio == pytest.approx(release.certificate.floor_ratio, rel=1e-9)
    assert "all lengthscales × 0.7 to 1.6" in str(found)


def test_a_witness_about_other_values_is_refused(tmp_path):
    for_family("rbf", alpha=0.3).release(np.sin(GRID)).save(path := tmp_path / "family.sfumato")
    manifest, tensors = read_container(path, lambda version, manifest, shapes: manifest)
    more = np.vstack([tensors["sensitive"], [[1.5]]])
    path.write_bytes(container(manifest | {"promised": len(more)}, tensors | {"sensitive": more}))
    with pytest.raises(sf.FormatError, match="witness is about other sensitive values"):
        sf.load(path)


def test_noise_for_the_prior_alone_is_found_out():
    """Broken variants: the family is claimed, and the noise is that of the prior, or cells are too large."""
    prior = sf.Prior(KERNELS["rbf"], noise=0.05)
    alone = sf.protect(prior, GRID, REGION, alpha=0.3).design
    family = for_family("rbf", alpha=0.3).design
    assert not certify(replace(alone, families=family.families)).holds
    coarse = replace(family, families=tuple(replace(one, cells=1) for one in family.families), binding=(), witness=None)
    assert not certify(coarse).holds
    # one that forgets that members have a larger variance than the process that stands for them
    cheated = [FamilyMember(one.kernel, one.mean, one.noise) for one in family.members]
    forgetful = replace(family, binding=(), witness=None)
    forgetful.__dict__["members"] = tuple(cheated)
    assert certify(forgetful).floor_ratio > certify(replace(family, binding=(), witness=None)).floor_ratio


def test_kernels_that_are_only_tried_say_so():
    class Own(type(rbf(0.4).base_kernel)):
        pass

    kernel = rbf(0.4, 2.0)
    kernel.base_kernel.__class__ = Own
    with pytest.warns(sf.GuaranteeWarning, match="looked at for some lengthscales only"):
        certificate = sf.protect(
            sf.Prior(kernel, noise=0.05).family(lengthscale=(0.8, 1.2)), GRID, sf.Points([[1.5]]), alpha=0.3
        ).certificate
    assert certificate.evidence == "searched"
    assert certificate.verdict == "publish with care"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengthscale": (0.01, 100.0), "columns": 6}, "takes [0-9]+ priors to cover in 6 column"),
        ({"variance": (0.1, 1.0), "floor": 0.6}, "the prior itself already knows f"),
        ({"region": sf.Everywhere()}, "bound the region"),
        ({"insiders": "rows"}, "insiders is given with a family"),
        ({"method": "compressed"}, "knows no families"),
    ],
)
def test_what_cannot_be_promised_to_a_family_is_refused(change, message):
    columns = change.pop("columns", 1)
    ranges = {name: change.pop(name) for name in RANGES if name in change} or {"lengthscale": (0.5, 2.0)}
    X = np.random.default_rng(0).uniform(0, 3, size=(20, columns))
    region = change.pop("region", sf.Box([1.0] * columns, [2.0] * columns))
    how = {"alpha": 0.05} if "floor" not in change else {}
    with pytest.raises(sf.InputError, match=message):
        sf.protect(sf.Prior(rbf(0.4), noise=0.1).family(**ranges), X, region, **how, **change)


def test_a_ledger_refuses_families(tmp_path):
    family = sf.Prior(rbf(0.4), noise=0.1).family(lengthscale=(0.8, 1.2))
    with pytest.raises(sf.InputError, match="prior is a family"):
        sf.Ledger(tmp_path / "a.ledger").protect(family, GRID, REGION, alpha=0.3)


def test_many_records_are_promised_to_a_family_by_noise_on_noise():
    """The joint promise about many records is met first; the lower bound leaves records out, and is still one."""
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(0.0, 3.0, 140))
    family = sf.Prior(matern(0.5, 1.0, nu=2.5), noise=0.1).family(noise=(0.6, 1.0))
    mechanism = sf.protect(family, X, REGION, alpha=0.3)
    assert len(mechanism.design.records) > 40
    certificate = mechanism.certificate
    assert certificate.evidence == "proved"
    assert 0.0 < certificate.gap < 0.2
    for factor in (0.6, 0.8, 1.0):
        member = family.member(noise=factor)
        M = member.covariance(X) + mechanism.noise.covariance() + member.noise * np.eye(len(X))
        S = rng.uniform(1.0, 2.0, 50)
        cross = member.covariance(X, S)
        assert np.min(1.0 - np.sum(cross * np.linalg.solve(M, cross), axis=0)) >= 0.7 * (1 - 1e-9)


@pytest.mark.filterwarnings("ignore:Each value is protected by itself")
@pytest.mark.parametrize("guarantee", ["joint", "pointwise"])
@pytest.mark.parametrize("protects", ["function", "both"])
def test_a_floor_above_what_members_know_beforehand_is_not_kept(guarantee, protects):
    """Where nothing is learnt of f, a file could claim any floor for readers who knew f better beforehand."""
    prior, X = sf.Prior(rbf(0.2, 1.0), noise=0.01), np.r_[np.linspace(0, 1, 6), np.linspace(40, 41, 6)]
    region = sf.Points([[20.0], [20.5]])
    design = sf.protect(prior, X, region, floor=0.9, guarantee=guarantee, protects=protects).design
    assert certify(design).holds
    assert not certify(replace(design, families=(prior.family(variance=(0.25, 1.0)),))).holds
    wide = replace(prior.family(lengthscale=(0.1, 1.0)), cells=1)
    assert not certify(replace(design, families=(wide,))).holds
    certificate = certify(replace(design, tolerance=FloorTolerance(100.0)))
    assert not certificate.holds
    assert certificate.worst_floor == 100.0


def test_a_floor_for_records_above_what_members_know_beforehand_is_not_kept():
    prior = sf.Prior(rbf(0.2, 1.0), noise=1.0)
    design = sf.protect(prior, GRID, REGION, floor=0.9, protects="records").design
    loud = replace(design, noise=IndependentNoise(np.full(len(GRID), 1e12)), structure="diagonal")
    assert certify(loud).holds
    assert not certify(replace(loud, families=(prior.family(variance=(0.01, 1.0), noise=(0.01, 1.0)),))).holds


def test_records_where_f_is_known_beforehand_count():
    """At 0 a linear function is 0, and the record there is its error alone."""
    prior = sf.Prior(build_kernel({"kind": "linear", "variance": 1.0}, 1), noise=0.0625)
    X = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    design = sf.protect(sf.Prior(rbf(0.3, 1.0), noise=0.0625), X, sf.Box(-0.6, 0.6), floor=0.125, protects="records")
    noise = IndependentNoise(np.array([9.0, 9.0, 1e-4, 9.0, 9.0]))
    found = certify(replace(design.design, prior=prior, noise=noise, structure="diagonal", guarantee="pointwise"))
    assert not found.holds
    assert found.record_ratio < 0.1
