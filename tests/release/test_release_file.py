"""Claims about the release file: faithful, atomic, and safe to open whoever wrote it."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import random
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy

from sfumato.data.inputs import as_inputs
from sfumato.design.mechanism import protect
from sfumato.errors import FormatError
from sfumato.models.prior import Prior
from sfumato.noise.entropy import SecretKey
from sfumato.noise.noise import CorrelatedNoise
from sfumato.promise.design import Design
from sfumato.promise.findings import Finding
from sfumato.promise.tolerance import (
    FloorTolerance,
    FractionTolerance,
    KernelTolerance,
    MatrixTolerance,
    RecordTolerance,
    TabulatedFloor,
)
from sfumato.proof.certificate import Certificate
from sfumato.proof.examination import certify
from sfumato.regions import Ball, Box, Everywhere, Points
from sfumato.release import file as release_file
from sfumato.release.container import FORMAT, LARGEST_HEADER, VERSION, container, digest_of
from sfumato.release.release import Release, load, make_release
from soak.damaged_trees import damaged
from soak.older_files import as_version_5, as_version_6

KEY = SecretKey.from_unsafe_seed(3)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.uniform(0, 3, 12), "größe, cm": RNG.uniform(0, 3, 12)})
Y = RNG.normal(size=12)


def kernel_for(dimension: int, variance: float = 1.7) -> gpytorch.kernels.Kernel:
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=dimension))
    kernel.outputscale, kernel.base_kernel.lengthscale = variance, [0.3 + 0.1 * i for i in range(dimension)]
    return kernel


FINDINGS = (Finding("a-code", "low", "A text.", "A remedy."), Finding("größer", "note", "ein zweiter: größer"))


def release_for(
    region: Any = None,
    tolerance: Any = None,
    X: Any = FRAME,
    noise: Any = 0.1,
    rank: int = 3,
    cover: Any = "rows",
    weights: Any = None,
    protects: Any = "both",
) -> Release:
    inputs = as_inputs(X)
    prior = Prior(kernel=kernel_for(inputs.dimension), mean=1 / 3, noise=noise)
    region = (region or Box({"age": (0.5, 2.5)})).bind(inputs)
    sensitive = inputs.values[region.contains(inputs.values)] if region.points is None else region.points
    factor = 0.7 * np.random.default_rng(5).normal(size=(len(inputs), rank))
    tolerance = tolerance or FractionTolerance(0.4)
    noise = CorrelatedNoise(factor, 0.0 if rank else 1e-9)
    design = Design(prior, inputs, region, tolerance, cover, sensitive, noise, weights, protects=protects)
    claim = Certificate(
        promise="a promise", prior="a prior", guarantee="joint", structure="full", cover=cover, holds=True,
        evidence="proved", proved_share=1.0, joint_ratio=0.9, floor_ratio=np.inf, promised_ratio=1.1,
        worst_input=inputs.values[0], worst_std=1.0, worst_floor=float(np.float64(0.1) * 3), trace=design.noise.trace,
        trace_lower=np.nan, gap=0.0, objective="noise", explained=np.nan, explained_upper=np.nan, suppressed=0,
        spill=0.0, protects=protects,
        records=0, raw_records=0, record_noise=np.nan, record_ratio=np.nan, record_learnt=np.nan,
        record_sensitivity=np.nan, insider_ratio=np.nan, insider_group=-1, compression=0.0,
        sensitive=len(sensitive), checked=7, allowance=0.0,
        columns=inputs.names, outputs=(), findings=FINDINGS,
    )  # fmt: skip
    return make_release(design, claim, KEY, Y[: len(inputs)], output_name="income")


def encoded(release: Release) -> bytes:
    parts = (release.design, release.certificate, release.outputs, release.resolution, release.unsafe)
    return release_file.encode(release_file.Contents(*parts, release.output_name))


POINTS = FRAME.to_numpy()[:3]
CASES: dict[str, Callable[[], Release]] = {
    "fraction": release_for,
    "floor": lambda: release_for(tolerance=FloorTolerance(0.5)),
    "kernel": lambda: release_for(tolerance=KernelTolerance(kernel_for(2, 0.4))),
    "matrix": lambda: release_for(
        Points(POINTS),
        MatrixTolerance(np.diag([0.1, 0.2, 0.3])).at(np.array(POINTS, dtype=float).reshape(3, -1)),
        cover="points",
    ),
    "records": lambda: release_for(tolerance=RecordTolerance(FractionTolerance(0.4)), protects="records"),
    "floor of records": lambda: release_for(tolerance=RecordTolerance(FloorTolerance(0.2)), protects="records"),
    "varying floor of records": lambda: release_for(
        tolerance=RecordTolerance(FloorTolerance(lambda S: 0.2 + 0.1 * np.sin(S[:, 0]) ** 2)), protects="records"
    ),
    "varying floor": lambda: release_for(tolerance=FloorTolerance(lambda S: 0.2 + 0.1 * np.sin(S[:, 0]) ** 2)),
    "diagonal V": lambda: release_for(noise=np.linspace(0.1, 0.2, 12)),
    "weights": lambda: release_for(weights=np.linspace(1.0, 2.0, 12)),
    "weight matrix": lambda: release_for(weights=np.eye(12) + 0.1),
    "no noise": lambda: release_for(rank=0),
    "everywhere": lambda: release_for(Everywhere(), cover="everywhere"),
    "ball": lambda: release_for(Ball([1.5, 1.5], 1.0)),
    "union": lambda: release_for(Box({"age": (0.5, 1.0)}) | Ball([2.0, 2.0], 0.7)),
    "one unnamed column": lambda: release_for(Box(1.0, 2.0), X=np.linspace(0, 3, 12)),
}


def same(a: Release, b: Release) -> bool:
    """Equal in everything, bit for bit."""
    arrays = [(a.inputs, b.inputs), (a.outputs, b.outputs), (a.noise.factor, b.noise.factor)]
    arrays += [(a.design.sensitive, b.design.sensitive)]
    arrays += [(a.prior.noise_variance(len(a.inputs)), b.prior.noise_variance(len(b.inputs)))]
    arrays += [(np.zeros(0) if r.design.weights is None else r.design.weights for r in (a, b))]  # type: ignore[list-item]
    values = [
        (r.resolution, r.noise.shift, r.unsafe, r.output_name, r.design.inputs.columns, r.design.cover) for r in (a, b)
    ]
    return values[0] == values[1] and all(x.tobytes() == y.tobytes() and x.shape == y.shape for x, y in arrays)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orbit.sfumato"


def parts_of(raw: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Header, manifest and tensors of a good file."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    return header, json.loads(header["__metadata__"][FORMAT])["manifest"], safetensors.numpy.load(raw)


def with_header(raw: bytes, header: Any) -> bytes:
    """The file with another header and the same data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + raw[8 + int.from_bytes(raw[:8], "little") :]


@pytest.fixture(scope="module")
def good() -> bytes:
    return encoded(release_for())


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_is_what_was_written(case: str, path: Path) -> None:
    release = CASES[case]()
    release.save(path)
    again = load(path)
    assert same(release, again)
    new = release.inputs[:5] + 0.01
    np.testing.assert_array_equal(again.predict(new).mean, release.predict(new).mean)
    np.testing.assert_array_equal(again.predict(new).std, release.predict(new).std)
    np.testing.assert_array_equal(again.predict(new).covariance(), release.predict(new).covariance())
    assert again.region.to_tree() == release.region.to_tree()
    assert type(again.tolerance) is (TabulatedFloor if case == "varying floor" else type(release.tolerance))
    for name, value in vars(release.certificate).items():
        np.testing.assert_equal(getattr(again.certificate, name), value)
    second = path.with_name("second")
    again.save(second)
    assert second.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_the_certificate_follows_from_the_file_alone(case: str, path: Path) -> None:
    release = CASES[case]()
    release.save(path)
    found, expected = load(path).certify(), certify(release.design)
    if case.startswith("varying floor"):
        # The file has the floor where it was tabulated; the owner's search may also walk between these inputs.
        assert found.joint_ratio == expected.joint_ratio
        assert found.holds == expected.holds
        return
    for name, value in vars(expected).items():
        if name != "findings":
            np.testing.assert_equal(getattr(found, name), value)
    # and what the owner admits to
    assert set(expected.findings) < set(found.findings)


def test_any_safetensors_reader_opens_the_file(path: Path) -> None:
    release = release_for(rank=0)
    release.save(path)
    tensors = safetensors.numpy.load_file(path)
    assert tensors["noise_factor"].shape == (12, 0)
    np.testing.assert_array_equal(tensors["outputs"], release.outputs)
    with safetensors.safe_open(path, "np") as file:
        about = file.metadata()
    manifest = json.loads(about[FORMAT], parse_constant=pytest.fail)["manifest"]
    assert manifest["columns"] == ["age", "größe, cm"]
    assert set(manifest["versions"]) == {"sfumato", "torch", "gpytorch", "numpy"}


def test_the_file_holds_no_secret(good: bytes) -> None:
    assert Y.tobytes() not in good
    assert not any(float(value).hex() in good.decode("latin-1") or repr(float(value)).encode() in good for value in Y)


def refused(raw: bytes, path: Path, original: Release | None = None) -> str:
    """Open ``raw``: the message of its FormatError, or "" where it is the very same release."""
    path.write_bytes(raw)
    started = time.perf_counter()
    try:
        again = load(path)
    except FormatError as error:
        message = str(error)
        assert message
    else:
        assert original is not None
        assert same(original, again)
        message = ""
    assert time.perf_counter() - started < 5.0
    return message


class Bomb:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return os.mkdir, (str(self.marker),)


def test_foreign_files_are_refused_and_not_run(path: Path, good: bytes) -> None:
    marker = path.with_name("marker")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data.pkl", pickle.dumps(Bomb(marker)))
    bomb = pickle.dumps(Bomb(marker))
    other = safetensors.numpy.save({"a": np.ones(3)}, metadata={"format": "pt"})
    header, _, _ = parts_of(good)
    header["__metadata__"][FORMAT] = bomb.decode("latin-1")
    for raw in (
        b"", b"{}", b"x,y\n1,2\n" * 9, b"\x00" * 100, b"\xff" * 100, bomb, bomb * 9, archive.getvalue(), other,
        len(bomb).to_bytes(8, "little") + bomb, b"#!/bin/sh\nmkdir " + bytes(marker), good[8:], good * 2,
        b"\x02" + bytes(7) + b"{}", b"\x02" + bytes(7) + b"[]", with_header(good, header), b"\xef\xbb\xbf" + good,
    ):  # fmt: skip
        assert refused(raw, path)
    assert "not a sfumato release" in refused(other, path)
    assert not marker.exists()


def test_another_version_is_named(path: Path, good: bytes) -> None:
    _, manifest, tensors = parts_of(good)
    assert f"'99', but this sfumato reads versions '4', '5', '6', '7', '8', '{VERSION}'" in refused(
        (container(manifest, tensors, version="99")), path
    )


def test_a_file_of_version_4_opens_and_what_a_ledger_noted_in_it_still_counts(path: Path, good: bytes) -> None:
    _, manifest, tensors = parts_of(good)
    manifest = as_version_5(manifest)
    del manifest["certificate"]["findings"]
    manifest["certificate"]["notes"] = ["rows were weighted", "PROTECTED ONE BY ONE: the ledger has releases of 'r'"]
    text = json.dumps(manifest)
    about = {"digest": digest_of("4", text, tensors), "format": FORMAT, "manifest": text, "version": "4"}
    path.write_bytes(safetensors.numpy.save(tensors, metadata=about))
    claimed = load(path).certificate
    assert [(one.code, one.severity) for one in claimed.findings] == [
        ("noted-by-version-4", "note"),
        ("protected-one-by-one", "high"),
    ]
    found = load(path).certify(progress=False)
    assert "protected-one-by-one" in [one.code for one in found.findings]
    assert "noted-by-version-4" not in [one.code for one in found.findings]


def test_a_file_of_version_5_promises_what_it_lists_and_claims_no_proof(path: Path, good: bytes) -> None:
    _, manifest, tensors = parts_of(good)
    path.write_bytes(container(as_version_5(manifest), tensors, version="5"))
    release = load(path)
    assert (release.certificate.evidence, release.certificate.proved_share) == ("searched", 0.0)
    assert release.design.promised == len(release.design.sensitive) == len(tensors["sensitive"])
    assert "not that of its version" in refused(container(manifest, tensors, version="5"), path)
    assert "lacks 'promised'" in refused(container(as_version_5(manifest), tensors, version="6"), path)


def test_a_file_of_version_6_promises_the_function_and_says_nothing_of_records(path: Path, good: bytes) -> None:
    _, manifest, tensors = parts_of(good)
    path.write_bytes(container(as_version_6(manifest), tensors, version="6"))
    release = load(path)
    assert (release.design.protects, release.certificate.protects) == ("function", "function")
    assert np.isnan(release.certificate.record_ratio)
    assert "not that of its version" in refused(container(manifest, tensors, version="6"), path)
    assert "lacks" in refused(container(as_version_6(manifest), tensors), path)


def test_every_truncation_is_refused(path: Path, good: bytes) -> None:
    for length in {*range(40), *range(40, len(good), 37), len(good) - 1}:
        assert refused(good[:length], path)
    assert "truncated" in refused(good[:-1], path)
    assert "truncated" in refused(good[:500], path)


def test_random_damage_is_refused(path: Path, good: bytes) -> None:
    rng = random.Random(7)
    original = release_for()
    header_end = 8 + int.from_bytes(good[:8], "little")
    for _ in range(2100):
        raw = bytearray(good)
        place = rng.randrange(header_end) if rng.random() < 0.5 else rng.randrange(len(raw))
        kind = rng.randrange(5)
        if kind == 0:
            raw[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            raw[place:place] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 2:
            del raw[place : place + rng.randrange(1, 9)]
        elif kind == 3:
            other = rng.randrange(len(raw))
            raw[place], raw[other] = raw[other], raw[place]
        else:
            raw[place : place + 4] = rng.choice([b"1e99", b'"\\u0', b"null", b"-1.0", b"true", b"[[[[", bytes(4)])
        refused(bytes(raw), path, original)


@pytest.mark.parametrize("length", [0, 1, 7, LARGEST_HEADER, LARGEST_HEADER + 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_giant_header_length_is_refused_before_it_is_read(length: int, path: Path, good: bytes) -> None:
    assert refused(length.to_bytes(8, "little") + good[8:], path)


def test_json_bombs_are_refused(path: Path, good: bytes) -> None:
    header, _, _ = parts_of(good)
    for text in ("[" * 100_000, '{"a":' * 100_000, "9" * 1_000_000, '{"a": 1, "a": 2}', "1e999", "NaN", "-Infinity"):
        assert refused(with_header(good, text.encode()), path)
        assert refused(with_header(good, b'{"x": ' + text.encode() + b"}"), path)
        bad = copy.deepcopy(header)
        for about in (text, '{"digest": "", "manifest": ' + text + ', "version": "5"}'):
            bad["__metadata__"][FORMAT] = about
            assert refused(with_header(good, bad), path)
    assert refused(with_header(good, b'{"x": [' + b"[]," * 300_000 + b"[]]}"), path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dtype", "F32"), ("dtype", "f64"), ("dtype", None), ("dtype", ["F64"]), ("shape", []), ("shape", [12]),
        ("shape", [12, -2]), ("shape", [12.0, 2]), ("shape", [True, 2]), ("shape", [2, 12]), ("shape", [24, 1]),
        ("shape", [2**62, 2**62]), ("shape", [2**40, 0]), ("shape", "12"), ("shape", {"0": 12}), ("shape", [12, 2, 1]),
        ("data_offsets", [0, 0]), ("data_offsets", [8, 200]), ("data_offsets", [192, 0]), ("data_offsets", [-8, 184]),
        ("data_offsets", [0, 2**60]), ("data_offsets", [0, 192, 384]), ("data_offsets", None),
    ],
)  # fmt: skip
def test_wrong_types_shapes_and_places_are_refused(key: str, value: Any, path: Path, good: bytes) -> None:
    header, _, tensors = parts_of(good)
    assert header["inputs"] == {"dtype": "F64", "shape": [12, 2], "data_offsets": [0, 192]}
    for name in tensors:
        bad = copy.deepcopy(header)
        if bad[name].get(key) != value:
            bad[name][key] = value
            assert refused(with_header(good, bad), path)


def test_overlapping_missing_and_unknown_arrays_are_refused(path: Path, good: bytes) -> None:
    header, manifest, tensors = parts_of(good)
    bad = copy.deepcopy(header)
    bad["outputs"]["data_offsets"] = [0, 96]
    assert "offset" in refused(with_header(good, bad), path).lower()
    for name in tensors:
        rest = {key: value for key, value in tensors.items() if key != name}
        assert refused(container(manifest, rest), path)
    assert refused(container(manifest, {**tensors, "pickle": np.ones(3)}), path)
    assert refused(container(manifest, {**tensors, "weights": -np.ones(12)}), path)
    assert refused(container(manifest, {**tensors, "noise_variance": np.ones(12)}), path)


def test_claimed_sizes_far_beyond_the_file_take_no_memory(path: Path) -> None:
    huge = {"dtype": "F64", "shape": [2**36, 2], "data_offsets": [0, 2**40]}
    about = {FORMAT: json.dumps({"version": VERSION, "manifest": {}, "digest": "0" * 64})}
    text = json.dumps({"__metadata__": about, "inputs": huge}).encode()
    raw = len(text).to_bytes(8, "little") + text
    assert "truncated" in refused(raw, path)
    path.write_bytes(raw)
    os.truncate(path, len(raw) + 2**40)
    with pytest.raises(FormatError):
        load(path)


@pytest.mark.parametrize("name", ["inputs", "outputs", "noise_factor", "sensitive"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_values_that_are_not_finite_are_refused(name: str, value: float, path: Path, good: bytes) -> None:
    _, manifest, tensors = parts_of(good)
    tensors[name] = tensors[name].copy()
    tensors[name].flat[1] = value
    assert "NaN or infinite" in refused(container(manifest, tensors), path)


def test_an_edit_without_a_new_digest_is_found(path: Path, good: bytes) -> None:
    assert "digest" in refused(good[:-1] + bytes([good[-1] ^ 1]), path)
    assert refused(good.replace(b"0.4", b"0.9", 1), path)


@pytest.mark.parametrize("case", ["fraction", "kernel", "matrix", "varying floor", "diagonal V", "union"])
def test_a_clever_forger_gets_a_format_error_or_a_release_that_works(case: str, path: Path) -> None:
    raw = encoded(CASES[case]())
    _, manifest, tensors = parts_of(raw)
    rng = random.Random(case)
    opened = 0
    for _ in range(200):
        forged, arrays = damaged(manifest, rng), dict(tensors)
        if rng.random() < 0.3:
            name = rng.choice(list(arrays))
            old = arrays[name]
            arrays[name] = rng.choice([-old, old[:0], old[:-1], np.full(old.shape, 1e300), old.T])
        path.write_bytes(container(forged, arrays))
        try:
            release = load(path)
        except FormatError:
            continue
        opened += 1
        assert all([str(release), repr(release), str(release.certificate), len(release.to_frame())])
    assert 0 < opened < 200


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("resolution", 0.0), ("resolution", -1), ("shift", -1e-9), ("noise_variance", -1.0), ("noise_variance", "0.1"),
        ("cover", "half"), ("columns", ["age"]), ("columns", ["age", "age"]), ("columns", ["a", 1]), ("unsafe", 1),
        ("columns", ["a", "b" * 5000]), ("output_name", ""), ("output_name", None), ("kernel", {"kind": "magic"}),
        ("mean", {"kind": "linear", "weights": [1.0, 2.0, 3.0]}), ("tolerance", {"kind": "fraction", "alpha": 1.0}),
        ("tolerance", {"kind": "fraction", "alpha": 0}), ("tolerance", {"kind": "fraction", "alpha": True}),
        ("tolerance", {"kind": "fraction", "alpha": 0.4, "more": 1}), ("tolerance", {"kind": "matrix"}),
        ("tolerance", {"kind": "floor", "value": -1}), ("tolerance", {"kind": "table"}), ("tolerance", {"kind": 7}),
        ("region", {"kind": "box", "columns": ["height"], "lower": [0], "upper": [1], "free": "rows"}),
        ("region", {"kind": "ball", "centre": [0.0], "radius": 1.0}), ("certificate", {}), ("versions", {"torch": 2}),
        ("kernel", {"kind": "rbf", "lengthscale": [1.0, 1.0, 1.0]}), ("certificate", None), ("versions", []),
        ("timestamp", 1),
    ],
)  # fmt: skip
def test_impossible_claims_are_refused_even_with_a_right_digest(key: str, value: Any, path: Path, good: bytes) -> None:
    _, manifest, tensors = parts_of(good)
    manifest[key] = value
    assert refused(container(manifest, tensors), path)


def forged(raw: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """The file with its manifest and arrays changed, and a digest that fits."""
    _, manifest, tensors = parts_of(raw)
    tensors = {name: np.array(value) for name, value in tensors.items()}
    change(manifest, tensors)
    return container(manifest, tensors)


@pytest.fixture(scope="module")
def pointwise() -> bytes:
    prior, region = Prior(kernel=kernel_for(1), noise=0.1), Points([[1.0], [2.0]])
    x = np.linspace(0, 3, 12)
    mechanism = protect(prior, x, region, 0.3, guarantee="pointwise", structure="diagonal", progress=False)
    return encoded(mechanism.release(Y))


FORGERIES: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "single values everywhere": lambda m, t: m.update(region={"kind": "everywhere"}, cover="everywhere"),
    "negative variances": lambda m, t: t.update(noise_diagonal=-t["noise_diagonal"]),
    "a shift beside variances": lambda m, t: m.update(shift=1.0),
    "no variances": lambda m, t: t.pop("noise_diagonal"),
    "correlated noise without a factor": lambda m, t: m.update(structure="full"),
    "an unknown guarantee": lambda m, t: m.update(guarantee="mostly"),
    "an unknown structure": lambda m, t: m.update(structure=["full"]),
    "a witness of other columns": lambda m, t: t.update(witness=t["witness"][:, :1]),
    "a witness of other rows": lambda m, t: t.update(witness=t["witness"][1:]),
    "tiny weights": lambda m, t: t.update(weights=np.full(12, 1e-320)),
    "other priors that are none": lambda m, t: m.update(others=[{"kernel": 1}]),
    "far too many priors": lambda m, t: m.update(others=[m["prior"]] * 1000),
    "priors that are no list": lambda m, t: m.update(others=None),
    "an unknown protection": lambda m, t: m.update(protects="people"),
    "records where there are none": lambda m, t: m.update(protects="records", cover="rows"),
    "records at points": lambda m, t: m.update(protects="records"),
    "a matrix of records": lambda m, t: m.update(tolerance={"kind": "records", "of": {"kind": "matrix"}}),
    "insiders that are none": lambda m, t: m.update(designed_for=[[0, 0]]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_programs_are_refused(name: str, path: Path, pointwise: bytes) -> None:
    assert refused(forged(pointwise, FORGERIES[name]), path)


def certified(raw: bytes, path: Path) -> Certificate:
    path.write_bytes(raw)
    return load(path).certify()


def test_what_a_file_claims_about_its_program_changes_nothing_but_the_words(path: Path, pointwise: bytes) -> None:
    honest = certified(pointwise, path)
    assert honest.holds
    assert honest.gap <= 1e-6
    joint = certified(forged(pointwise, lambda m, t: m.update(guarantee="joint")), path)
    assert not joint.holds
    nonsense = certified(forged(pointwise, lambda m, t: t.update(witness=1e9 * t["witness"][::-1])), path)
    assert nonsense.holds
    assert nonsense.gap >= honest.gap
    nothing = certified(forged(pointwise, lambda m, t: t.update(witness=0.0 * t["witness"])), path)
    assert nothing.gap == 1.0
    less = certified(forged(pointwise, lambda m, t: t.update(noise_diagonal=0.9 * t["noise_diagonal"])), path)
    assert not less.holds
    named = certified(forged(pointwise, lambda m, t: t.update(sensitive=np.repeat(t["sensitive"][:1], 2, 0))), path)
    assert named.joint_ratio == pytest.approx(honest.joint_ratio, rel=1e-6)
    wrong = forged(pointwise, lambda m, t: m["others"].append({**m["prior"], "noise_variance": 1e-6}))
    with_more = forged(wrong, lambda m, t: t.update(witness_1=t["witness"]))
    assert not certified(with_more, path).holds
