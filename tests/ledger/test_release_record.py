"""Claims about the record of a release: it holds the design bit for bit, and nothing of the values."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import random
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest

from sfumato.data.inputs import as_inputs
from sfumato.errors import FormatError, InputError
from sfumato.ledger.chained_file import ChainedFile
from sfumato.ledger.record import decode_array, describe_record, encode_array, record_design
from sfumato.models.prior import Prior
from sfumato.noise.entropy import SecretKey
from sfumato.noise.noise import CorrelatedNoise, FunctionalNoise, IndependentNoise, no_noise
from sfumato.promise.design import Design
from sfumato.promise.tolerance import (
    FloorTolerance,
    FractionTolerance,
    KernelTolerance,
    MatrixTolerance,
    TabulatedFloor,
)
from sfumato.proof.examination import certify
from sfumato.regions import Ball, Box, Everywhere, Points
from sfumato.release.release import digest_outputs, make_release
from soak.damaged_trees import damaged

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.uniform(0, 3, 12), "größe, cm": RNG.uniform(0, 3, 12)})
POINTS = FRAME.to_numpy()[:3]
DIGEST, WHEN = "0" * 64, "2026-01-02T03:04:05+00:00"


def prior_for(noise: Any = 0.1, variance: float = 1.7, dimension: int = 2) -> Prior:
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=dimension))
    kernel.outputscale, kernel.base_kernel.lengthscale = variance, [0.3 + 0.1 * i for i in range(dimension)]
    return Prior(kernel=kernel, mean=1 / 3, noise=noise)


def design_for(region: Any = None, tolerance: Any = None, X: Any = FRAME, V: Any = 0.1, **more: Any) -> Design:
    inputs = as_inputs(X)
    region = (region or Box({"age": (0.5, 2.5)})).bind(inputs)
    parts: dict[str, Any] = {
        "cover": "rows",
        "sensitive": inputs.values[region.contains(inputs.values)] if region.points is None else region.points,
        "noise": CorrelatedNoise(0.7 * np.random.default_rng(5).normal(size=(len(inputs), 3)), 1e-9),
    } | more
    prior = prior_for(V, dimension=inputs.dimension)
    return Design(prior, inputs, region, tolerance or FractionTolerance(0.4), **parts)


def matrix_tolerance() -> MatrixTolerance:
    return MatrixTolerance(np.diag([0.1, 0.2, 0.3]) + 0.01).at(POINTS)


DIAGONAL: dict[str, Any] = {"noise": IndependentNoise(np.linspace(0, 1, 12)), "structure": "diagonal"}
CASES: dict[str, Callable[[], Design]] = {
    "fraction": design_for,
    "floor": lambda: design_for(tolerance=FloorTolerance(0.5)),
    "kernel": lambda: design_for(tolerance=KernelTolerance(prior_for(variance=0.4).kernel)),
    "matrix": lambda: design_for(Points(POINTS), matrix_tolerance(), cover="points"),
    "varying floor": lambda: design_for(tolerance=FloorTolerance(lambda S: 0.2 + 0.1 * np.sin(S[:, 0]) ** 2)),
    "diagonal V": lambda: design_for(V=np.linspace(0.1, 0.2, 12)),
    "independent noise": lambda: design_for(Points(POINTS), cover="points", guarantee="pointwise", **DIAGONAL),
    "no added noise": lambda: dataclasses.replace(design_for(), noise=no_noise(12)),
    "everywhere": lambda: design_for(Everywhere(), cover="everywhere"),
    "ball": lambda: design_for(Ball([1.5, 1.5], 1.0), cover="exchange"),
    "union": lambda: design_for(Box({"age": (0.5, 1.0)}) | Ball([2.0, 2.0], 0.7)),
    "several priors": lambda: design_for(others=(prior_for(np.linspace(0.3, 0.4, 12)), prior_for(0.2, 3.0))),
    "one unnamed column": lambda: design_for(Box(1.0, 2.0), X=np.linspace(0, 3, 12)),
    "minus zero": lambda: design_for(Box(-1.0, 2.0), X=np.array([-0.0, 0.0, 5e-324, 1.5, *range(8)])),
}


def record_for(design: Design) -> dict[str, Any]:
    return describe_record(design, name="income", outputs_digest=DIGEST, when=WHEN)


def arrays_of(design: Design) -> list[Any]:
    noise, tolerance = design.noise, design.tolerance
    found = [design.inputs.values, design.sensitive, noise.factor, noise.variance(), np.array([noise.shift])]
    found += [np.asarray(prior.noise) for prior in design.priors]
    found += [prior.covariance(design.inputs.values) for prior in design.priors]
    found += [prior.mean_at(design.inputs.values) for prior in design.priors]
    found += [tolerance.delta] if isinstance(tolerance, MatrixTolerance) else []
    return [*found, tolerance.matrix(design.prior, design.sensitive)]


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_is_what_was_recorded(case: str, tmp_path: Path) -> None:
    design = CASES[case]()
    file = ChainedFile(tmp_path / "ledger")
    file.update(lambda chain: record_for(design))
    (entry,) = file.read().entries
    again = record_design(entry.body)
    for before, after in zip(arrays_of(design), arrays_of(again), strict=True):
        assert before.shape == after.shape
        assert before.tobytes() == after.tobytes()
    for name in ("cover", "guarantee", "structure"):
        assert getattr(again, name) == getattr(design, name)
    assert again.inputs.columns == design.inputs.columns
    assert again.region.to_tree() == design.region.to_tree()
    assert type(again.noise) is type(design.noise)
    assert type(again.tolerance) is (TabulatedFloor if case == "varying floor" else type(design.tolerance))
    assert again.digest() == design.digest()
    assert record_for(again) == entry.body


def test_a_record_knows_y_by_the_digest_of_the_outputs_alone() -> None:
    design = design_for(X=np.linspace(0, 3, 12), region=Points([[1.0]]), cover="points")
    design = dataclasses.replace(design, noise=CorrelatedNoise(10 * np.eye(12)))
    certificate = certify(design)
    records = []
    for y in (np.zeros(12), 1e3 + np.arange(12.0)):
        release = make_release(design, certificate, SecretKey.from_unsafe_seed(3), y)
        digest = digest_outputs(release.outputs)
        record = describe_record(release.design, name="y", outputs_digest=digest, when=WHEN)
        text = json.dumps(record)
        assert not any(repr(float(value)) in text for value in release.outputs)
        records.append(record)
    digests = [record.pop("outputs_digest") for record in records]
    assert digests[0] != digests[1]
    assert records[0] == records[1]
    assert set(records[0]["arrays"]) == {"inputs", "noise_factor", "sensitive"}


def test_weights_and_witness_are_left_out() -> None:
    plain = design_for(guarantee="pointwise", **DIAGONAL)
    more = {"weights": np.linspace(1, 2, 12), "witness": (np.ones((12, len(plain.sensitive))),)}
    assert record_for(dataclasses.replace(plain, **more)) == record_for(plain)


def test_compressed_releases_are_refused() -> None:
    design, prior = design_for(), prior_for()
    noise = FunctionalNoise((prior,), (POINTS,), np.eye(3), design.inputs)
    with pytest.raises(InputError, match="cannot be composed exactly"):
        record_for(dataclasses.replace(design, noise=noise))


@pytest.mark.parametrize(
    ("key", "value"),
    [("name", ""), ("name", None), ("name", "x" * 1001), ("when", ""), ("when", 7), ("outputs_digest", "abc"),
     ("outputs_digest", "G" * 64), ("outputs_digest", None)],
)  # fmt: skip
def test_a_record_that_could_not_be_read_is_not_made(key: str, value: Any) -> None:
    about: dict[str, Any] = {"name": "income", "outputs_digest": DIGEST, "when": WHEN}
    with pytest.raises(InputError, match=f"cannot be recorded: its {key} is"):
        describe_record(design_for(), **(about | {key: value}))


def test_the_same_outputs_have_the_same_digest() -> None:
    assert digest_outputs(np.array([0.0, 1.0])) == digest_outputs(np.array([-0.0, 1.0]))
    assert digest_outputs(np.array([0.0, 1.0])) != digest_outputs(np.array([1.0, 0.0]))


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("array", [np.zeros((12, 0)), np.array([-0.0, 5e-324, 1e149]), RNG.normal(size=(7, 5)).T])
def test_arrays_come_back_bit_for_bit(array: Any) -> None:
    again = decode_array(json.loads(json.dumps(encode_array(array))))
    assert again.shape == array.shape
    assert again.tobytes() == np.ascontiguousarray(array).tobytes()
    assert not again.flags.writeable


def packed(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


GOOD = encode_array(np.arange(6.0).reshape(2, 3))
BAD_ARRAYS: list[Any] = [
    None, [], {}, {"shape": [2, 3]}, GOOD | {"more": 1}, GOOD | {"float64": None}, GOOD | {"float64": ""},
    GOOD | {"float64": "Zm9v"}, GOOD | {"float64": GOOD["float64"][:-4]}, GOOD | {"float64": GOOD["float64"] + "AAAA"},
    GOOD | {"float64": " " + GOOD["float64"]}, GOOD | {"float64": "ä" + GOOD["float64"]}, GOOD | {"shape": [2, 2]},
    GOOD | {"shape": [2, 4]}, GOOD | {"shape": [6, 1, 1]}, GOOD | {"shape": []}, GOOD | {"shape": 6},
    GOOD | {"shape": [6.0]}, GOOD | {"shape": [-2, -3]}, GOOD | {"shape": [True, 6]}, GOOD | {"shape": [2**40, 0]},
    GOOD | {"shape": [2**30, 2**30]}, GOOD | {"shape": [2**20, 8]}, {"shape": [1], "float64": packed(b"\0" * 9)},
    {"shape": [1], "float64": packed(b"\0" * 2**24)},
    {"shape": [2], "float64": packed(np.array([1, np.nan]).tobytes())},
    {"shape": [1], "float64": packed(np.array([np.inf]).tobytes())},
    {"shape": [1], "float64": packed(np.array([-1e200]).tobytes())},
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(BAD_ARRAYS)))
def test_damaged_arrays_are_refused(place: int) -> None:
    with pytest.raises(FormatError):
        decode_array(BAD_ARRAYS[place])
    record = record_for(design_for())
    record["arrays"]["inputs"] = BAD_ARRAYS[place]
    with pytest.raises(FormatError, match="damaged"):
        record_design(record)


def test_a_claimed_size_takes_no_memory() -> None:
    started = time.perf_counter()
    with pytest.raises(FormatError, match="too few"):
        decode_array({"shape": [2**28], "float64": packed(bytes(2**12))})
    with pytest.raises(FormatError, match="MiB"):
        decode_array({"shape": [2**30], "float64": packed(b"")})
    assert time.perf_counter() - started < 1.0


# ---------------------------------------------------------------- damaged records


@pytest.mark.parametrize(
    "case", ["fraction", "kernel", "matrix", "varying floor", "independent noise", "several priors"]
)
def test_a_damaged_record_is_a_format_error_or_a_design_that_works(case: str) -> None:
    good = record_for(CASES[case]())
    chance, opened = random.Random(case), 0
    for _ in range(200):
        record = damaged(good, chance)
        try:
            design = record_design(record)
        except FormatError:
            continue
        opened += 1
        assert len(design.digest()) == 32
    assert opened < 150


def test_every_part_is_needed_and_no_other_is_read() -> None:
    good = record_for(CASES["several priors"]())
    for part in (good, good["design"], good["arrays"]):
        for key in list(part):
            value = part.pop(key)
            with pytest.raises(FormatError):
                record_design(good)
            part[key] = value
        part["more"] = GOOD
        with pytest.raises(FormatError):
            record_design(good)
        del part["more"]
    record_design(good)
    for name in ("weights", "witness", "noise_mixing", "outputs", "y"):
        bad = copy.deepcopy(good)
        bad["arrays"][name] = encode_array(np.ones(12))
        with pytest.raises(FormatError):
            record_design(bad)


@pytest.mark.parametrize("record", [None, [], 7, {}, {"format": "sfumato ledger", "version": 1}])
def test_another_entry_is_no_record(record: Any) -> None:
    with pytest.raises(FormatError, match=r"the record (lacks|must be an object)"):
        record_design(record)


def test_another_version_is_named() -> None:
    with pytest.raises(FormatError, match="version 4, but this sfumato reads versions 1 to 3"):
        record_design(record_for(design_for()) | {"version": 4})


def test_a_record_whose_list_was_cut_does_not_have_all_that_was_promised() -> None:
    record = record_for(design_for())
    whole = record_design(record)
    arrays = record["arrays"] | {"sensitive": encode_array(whole.sensitive[:-1])}
    cut = record_design(record | {"arrays": arrays})
    assert whole.lists_all_it_promised
    assert cut.promised == len(cut.sensitive) + 1
    assert not cut.lists_all_it_promised


def test_a_record_of_version_1_promises_what_it_lists() -> None:
    record = record_for(design_for())
    old = {key: value for key, value in record["design"].items() if key != "promised"}
    design = record_design(record | {"version": 1, "design": old})
    assert design.promised == len(design.sensitive) == record["design"]["promised"]
    assert design.lists_all_it_promised


def test_records_up_to_version_2_promised_the_function() -> None:
    record = record_for(dataclasses.replace(design_for(), protects="both"))
    assert record_design(record).protects == "both"
    old = {key: value for key, value in record["design"].items() if key not in ("protects", "insiders", "designed_for")}
    assert record_design(record | {"version": 2, "design": old}).protects == "function"
