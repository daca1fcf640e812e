"""A small file takes no memory and no hours without a sentence, whatever a reader does with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
import sfumato.machine
import sfumato.models.prior
import sfumato.models.smoothness
import sfumato.promise.design
import sfumato.proof.cost
import sfumato.proof.examination
import sfumato.release.predictions
from kernels import rbf
from sfumato.models import build_kernel
from sfumato.models.smoothness import along_column
from sfumato.promise import Insiders
from sfumato.release.container import container, read_container
from sfumato.release.predictions import CompressedPosterior

Parts = tuple[dict[str, Any], dict[str, Any]]

RBF = {"kind": "rbf", "lengthscale": 1.0}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Parts]:
    """Manifest and arrays of small releases, which are edited."""
    folder, X, prior = tmp_path_factory.mktemp("honest"), np.linspace(0.0, 3.0, 12), sf.Prior(rbf(0.7), noise=0.01)
    kinds: dict[str, dict[str, Any]] = {"full": {}, "diagonal": {"structure": "diagonal"}}
    found = {}
    for name, options in kinds.items():
        mechanism = sf.protect(prior, X, sf.Box(1, 2), alpha=0.3, progress=False, **options)
        mechanism.release(3.0 * np.sin(2.0 * X)).save(folder / name)
        manifest, tensors = read_container(folder / name, lambda version, manifest, shapes: manifest)
        found[name] = manifest, {key: array for key, array in tensors.items() if not key.startswith("witness")}
    return found


def many_rows(parts: Parts, rows: int) -> Parts:
    manifest, tensors = parts
    more = {"inputs": np.linspace(0.0, 3.0, rows)[:, None], "outputs": np.zeros(rows)}
    if "noise_diagonal" in tensors:
        more["noise_diagonal"] = np.full(rows, 0.1)
    else:
        more["noise_factor"] = np.full((rows, 1), 0.1)
    return manifest, tensors | more


def many_sensitive(parts: Parts, count: int) -> Parts:
    manifest, tensors = parts
    return manifest | {"promised": count}, tensors | {"sensitive": np.linspace(1.0, 2.0, count)[:, None]}


def with_kernel(parts: Parts, kernel: dict[str, Any]) -> Parts:
    manifest, tensors = parts
    return manifest | {"prior": manifest["prior"] | {"kernel": kernel}}, tensors


def with_priors(parts: Parts, count: int) -> Parts:
    manifest, tensors = parts
    return manifest | {"others": [manifest["prior"]] * (count - 1)}, tensors


def with_points(parts: Parts, count: int) -> Parts:
    region = {"kind": "points", "columns": None, "points": np.linspace(1.0, 2.0, count)[:, None].tolist()}
    manifest, tensors = many_sensitive(parts, 1)
    return manifest | {"region": region, "cover": "points", "guarantee": "pointwise"}, tensors


#: Files of at most 2 MB, made of honest ones, that nobody can check with a gibibyte.
HOSTILE: dict[str, Callable[[dict[str, Parts]], Parts]] = {
    "60,000 rows, each with noise": lambda honest: many_rows(honest["diagonal"], 60_000),
    "60,000 rows, noise of one source": lambda honest: many_rows(honest["full"], 60_000),
    "30,000 sensitive inputs": lambda honest: many_sensitive(honest["full"], 30_000),
    "30,000 points, one by one": lambda honest: with_points(honest["diagonal"], 30_000),
    "64 readers of 6,000 rows": lambda honest: with_priors(many_rows(honest["diagonal"], 6000), 64),
}

#: All that a reader does with a file, in a process that may take 1.25 gibibytes more than it has. Every public name of
#: a release is among it. What it prints is: file, deed, seconds, outcome.
WALK = """
import resource, sys, time, warnings
import matplotlib; matplotlib.use("Agg")
import numpy as np, sfumato as sf
from sfumato import plots
from sfumato.errors import SfumatoError
warnings.simplefilter("ignore")
files = sys.argv[1:]

def deeds(release, path):
    asked = np.zeros((5, release.inputs.shape[1]))
    truth = np.zeros(len(release.outputs))
    found = {name: lambda name=name: getattr(release, name) for name in dir(type(release)) if name[0] != "_"}
    found |= {
        "predict": lambda: release.predict(asked),
        "covariance": lambda: release.predict(np.zeros((40_000, 1))).covariance(),
        "certify": lambda: release.certify(progress=False),
        "to_sklearn": release.to_sklearn,
        "to_gpytorch": release.to_gpytorch,
        "save": lambda: release.save(path + ".again"),
        "to_frame": release.to_frame,
        "to_csv": lambda: release.to_csv(path + ".csv"),
        "to_parquet": lambda: release.to_parquet(path + ".parquet"),
        "rows_of": lambda: release.rows_of("y"),
        "shown": lambda: (str(release), repr(release), release._repr_html_(), str(release.certificate)),
        "report": lambda: sf.report(release, path + ".html"),
        "audit": lambda: sf.audit(release, truth, progress=False),
        "record": lambda: sf.Ledger(path + ".ledger").record(release),
    }
    for name in ("release", "floor", "covariance", "cells", "noise_map"):
        found["plot_" + name] = lambda name=name: getattr(plots, "plot_" + name)(release)
    return found

def done(deed):
    start = time.process_time()
    try:
        deed()
        told = "done"
    except SfumatoError as error:
        told = f"{type(error).__name__}: {error}"
    except Exception as error:
        told = f"BROKEN {type(error).__name__}: {error}"
    return time.process_time() - start, " ".join(told.split())

taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 5 * (1 << 28),) * 2)
for path in files:
    release = sf.load(path)
    for name, deed in deeds(release, path).items():
        seconds, told = done(deed)
        print(path, name, f"{seconds:.2f}", told, sep="\\t", flush=True)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a process are those of Linux")
def test_no_small_file_takes_memory_without_a_sentence(tmp_path: Path, honest: dict[str, Parts]) -> None:
    for name, edit in HOSTILE.items():
        (tmp_path / name).write_bytes(container(*edit(honest)))
        assert (tmp_path / name).stat().st_size < 2 << 20
    files = [str(tmp_path / name) for name in HOSTILE]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run(
        [sys.executable, "-c", WALK, *files], capture_output=True, text=True, env=environment, check=False
    )
    assert child.returncode == 0, child.stderr[-2000:]
    told = [line.split("\t") for line in child.stdout.splitlines()]
    outcome = {(Path(path).name, deed): words for path, deed, _, words in told}
    assert {name for name, _ in outcome} == set(HOSTILE)
    assert not {key: words for key, words in outcome.items() if words.startswith("BROKEN")}
    assert not [line for line in told if float(line[2]) > 5.0]
    for name, deed in outcome:
        of_rows = "60,000" in name and deed in ("predict", "to_sklearn", "to_gpytorch")
        if of_rows or deed in ("certify", "report", "record"):
            words = outcome[name, deed]
            assert "needs about" in words, (name, deed, words)
            assert "are free" in words
        if deed == "record":
            assert not Path(tmp_path / f"{name}.ledger").exists()


def opened(path: Path, parts: Parts) -> sf.Release:
    path.write_bytes(container(*parts))
    return sf.load(path)


def test_a_file_that_nobody_can_check_is_not_certified(
    tmp_path: Path, honest: dict[str, Parts], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = opened(tmp_path / "file", honest["full"])
    assert release.certify(progress=False).holds
    monkeypatch.setattr(sfumato.machine, "free_memory", lambda device: 1000.0)
    for use in (release.certify, release.to_gpytorch, release.to_sklearn, lambda: release.predict([[0.5]])):
        with pytest.raises(sf.InputError, match=r"needs about .* of memory, but 0\.00095 MiB are free; "):
            use()


class BegunError(Exception):
    """Work that should not have begun."""


def begun(*_: Any, **__: Any) -> Any:
    raise BegunError


def test_hours_are_told_before_they_begin(
    tmp_path: Path, honest: dict[str, Parts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sfumato.machine, "free_memory", lambda device: 1e15)
    monkeypatch.setattr(sfumato.proof.cost, "product_rate", lambda device=None: 1e11)
    monkeypatch.setattr(sfumato.proof.examination, "ExactKnowledge", begun)
    release = opened(tmp_path / "many", with_priors(many_rows(honest["diagonal"], 5000), 64))
    with pytest.warns(sf.LongWorkWarning, match=r"checking 5,000 rows .* for 64 readers takes about"):  # noqa: SIM117
        with pytest.raises(BegunError):
            release.certify(progress=False)
    count = 256
    listed = {"mixture_weights": [1.0] * count, "mixture_means": [[0.1]] * count, "mixture_scales": [[0.1]] * count}
    manifest, tensors = with_kernel(honest["diagonal"], {"kind": "spectral_mixture"} | listed)
    prior = opened(tmp_path / "slow", (manifest, tensors)).prior
    monkeypatch.setattr(sfumato.models.prior, "_noise_matrix", begun)
    with pytest.warns(sf.LongWorkWarning, match=r"the exact posterior given 20,000 rows takes about .* (min|h) on"):  # noqa: SIM117
        with pytest.raises(BegunError):
            prior.condition(np.linspace(0, 3, 20_000), np.zeros(20_000), 0.1)


SUMS = {"kind": "product", "kernels": [{"kind": "sum", "kernels": [RBF, RBF]}] * 60}


def test_kernels_of_many_parts_are_refused(tmp_path: Path, honest: dict[str, Parts]) -> None:
    for kernel in ({"kind": "sum", "kernels": [RBF] * 600}, {"kind": "product", "kernels": [SUMS] * 3}):
        with pytest.raises(sf.FormatError, match=r"the file's kernels have [0-9]+ parts; at most 512 are read"):
            opened(tmp_path / "parts", with_kernel(honest["full"], kernel))
    manifest, tensors = honest["full"]
    shared = manifest["prior"] | {"kernel": {"kind": "sum", "kernels": [RBF] * 9}}
    with pytest.raises(sf.FormatError, match="at most 512 are read"):
        opened(tmp_path / "shared", (manifest | {"others": [shared] * 63}, tensors))


def test_products_of_sums_are_multiplied_out_once_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    known = sfumato.models.smoothness.kernel_terms
    monkeypatch.setattr(sfumato.models.smoothness, "kernel_terms", lambda *given: calls.append(1) or known(*given))
    # 60 sums of two are 2^60 products; a sum of products of few of them would be 4 times 256
    few = {"kind": "product", "kernels": SUMS["kernels"][:8]}
    for tree in (SUMS, {"kind": "sum", "kernels": [few] * 4}):
        prior = sf.Prior(build_kernel(tree, 1))
        calls.clear()
        for _ in range(5):
            assert along_column(prior.kernel, 0, None, np.zeros(1), np.ones(1)) is None
        assert len(calls) == 1


def test_members_of_families_are_counted_before_they_are_made(
    tmp_path: Path, honest: dict[str, Parts], monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, tensors = honest["full"]
    family = {"prior": manifest["prior"], "cells": 48, "lengthscale": [0.9, 1.1], "variance": [1, 1], "noise": [1, 1]}
    monkeypatch.setattr(sfumato.promise.design, "members_of", begun)
    many = manifest | {"families": [family] * 64, "binding": []}
    with pytest.raises(sf.FormatError, match="stand for the file's families; at most 512 of"):
        opened(tmp_path / "many", (many, tensors))
    parts = family["prior"] | {"kernel": {"kind": "product", "kernels": [RBF] * 60}}
    large = manifest | {"families": [family | {"cells": 40, "prior": parts}], "binding": []}
    with pytest.raises(sf.FormatError, match="of 20,000 parts are read"):
        opened(tmp_path / "large", (large, tensors))


def test_many_groups_of_insiders_are_found_in_one_pass() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.permutation(np.repeat(np.arange(60_000), 2))
    members = np.stack([numbers, rng.integers(0, 500, len(numbers))], axis=1).astype(np.float64)
    start = time.process_time()
    groups = Insiders(500, members).groups
    assert time.process_time() - start < 1.0
    assert len(groups) == 60_000
    for number in (0, 17, 59_999):
        assert np.array_equal(groups[number], members[numbers == number, 1])
    assert Insiders(5, np.zeros((0, 2))).groups == ()


def test_a_kernel_that_overflows_at_some_row_is_refused(tmp_path: Path, honest: dict[str, Parts]) -> None:
    steep = {"kind": "product", "kernels": [{"kind": "polynomial", "offset": 1.0, "power": 100}] * 5}
    with pytest.raises(sf.FormatError, match="variances at its inputs that are infinite"):
        opened(tmp_path / "steep", with_kernel(honest["full"], steep))


def test_inputs_of_many_columns_are_refused(tmp_path: Path, honest: dict[str, Parts]) -> None:
    manifest, tensors = honest["full"]
    wide = {"inputs": np.zeros((12, 10_001)), "sensitive": np.ones((3, 10_001))}
    with pytest.raises(sf.FormatError, match="inputs have 10,001 columns; at most 10,000 are read"):
        opened(tmp_path / "wide", (manifest, tensors | wide))


def test_averages_of_many_points_are_refused() -> None:
    points = {"points": [[0.1]] * 4096, "weights": [1.0] * 4096}
    entries = [{"kind": "average", "output": 0, **points}] * 5
    tree = {"kind": "outputs", "terms": [{"kernel": RBF, "entries": entries, "mixing": [[1.0]] * 5}]}
    with pytest.raises(sf.FormatError, match="the averages have too many points"):
        build_kernel(tree, 2)


def test_compressed_releases_predict_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.linspace(0.0, 3.0, 60)
    mechanism = sf.protect(
        sf.Prior(rbf(0.7), noise=0.1), X, sf.Box(1, 2), alpha=0.3, method="compressed", progress=False
    )
    release, asked = mechanism.release(3.0 * np.sin(2.0 * X)), np.linspace(0.0, 3.0, 500)
    whole, sizes, block = release.predict(asked), [], CompressedPosterior._block
    monkeypatch.setattr(sfumato.release.predictions, "_BLOCK", 1)
    monkeypatch.setattr(
        CompressedPosterior, "_block", lambda self, points: sizes.append(len(points)) or block(self, points)
    )
    parts = release.predict(asked)
    assert max(sizes) <= 128
    for name in ("mean", "std", "std_lower"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks of memory are read as Linux has them")
@pytest.mark.parametrize("deed", ["predict", "to_sklearn", "to_gpytorch", "certify"])
def test_estimates_are_no_less_than_what_is_taken_and_not_much_more(
    tmp_path: Path, honest: dict[str, Parts], deed: str
) -> None:
    manifest, tensors = many_rows(honest["diagonal"], 3000)
    (tmp_path / "warm").write_bytes(container(*honest["diagonal"]))
    (tmp_path / "file").write_bytes(container(manifest, tensors | {"noise_diagonal": np.full(3000, 1e4)}))
    code = """
import sys, torch, warnings; warnings.simplefilter("ignore")
import sfumato as sf, sfumato.machine as machine, sfumato.models.prior as prior, sfumato.proof.cost as cost
warm, path, deed = sys.argv[1:]
estimates = []
prior.require_memory = cost.require_memory = lambda needed, *_: estimates.append(needed)
do = {"predict": lambda one: one.predict(one.inputs[:2000]), "certify": lambda one: one.certify(progress=False)}
asked = torch.zeros(2, 1, dtype=torch.float64)
do["to_gpytorch"] = lambda one: one.to_gpytorch().eval()(asked).variance
do = do.get(deed, lambda one: getattr(one, deed)())
do(sf.load(warm))
release = sf.load(path)
def memory(of):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(of)) * 1024.0
estimates.clear()
open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
do(release)
print(memory("VmHWM") - before, max(estimates))
"""
    files = [str(tmp_path / name) for name in ("warm", "file")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run(
        [sys.executable, "-c", code, *files, deed], capture_output=True, text=True, env=environment, check=True
    )
    taken, estimate = map(float, child.stdout.split())
    assert taken < estimate < 2.5 * taken
