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
import sfumato.models.smoothness
import sfumato.promise.design
import sfumato.proof.examination
from kernels import rbf
from sfumato.errors import LongWorkWarning
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
    kinds["family"] = {"priors": [prior.family(lengthscale=(0.95, 1.05))]}
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


#: Files of at most 2 MB, and what is said of them; "" where it is said by what asks for most.
HOSTILE: dict[str, Callable[[dict[str, Parts]], Parts]] = {
    "60,000 rows, each with noise": lambda honest: many_rows(honest["diagonal"], 60_000),
    "60,000 rows, noise of one source": lambda honest: many_rows(honest["full"], 60_000),
    "30,000 sensitive inputs": lambda honest: many_sensitive(honest["full"], 30_000),
    "30,000 points, one by one": lambda honest: with_points(honest["diagonal"], 30_000),
    "64 readers of 5,000 rows": lambda honest: with_priors(many_rows(honest["diagonal"], 5000), 64),
}

#: All that a reader does with a file, in a process that may take half a gibibyte more than it has. Every public name
#: of a release is among it. What it prints is: file, deed, seconds, outcome.
WALK = """
import resource, sys, time, warnings
import matplotlib; matplotlib.use("Agg")
import numpy as np, sfumato as sf
from sfumato import plots
from sfumato.errors import SfumatoError
warnings.simplefilter("ignore")
warm, *files = sys.argv[1:]

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

for deed in deeds(sf.load(warm), warm).values():  # libraries are loaded when they are first used
    done(deed)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 29),) * 2)
for path in files:
    release = sf.load(path)
    for name, deed in deeds(release, path).items():
        seconds, told = done(deed)
        print(path, name, f"{seconds:.2f}", told, sep="\\t", flush=True)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a process are those of Linux")
def test_no_small_file_takes_memory_without_a_sentence(tmp_path: Path, honest: dict[str, Parts]) -> None:
    (tmp_path / "warm").write_bytes(container(*honest["diagonal"]))
    for name, edit in HOSTILE.items():
        (tmp_path / name).write_bytes(container(*edit(honest)))
        assert (tmp_path / name).stat().st_size < 2 << 20
    files = [str(tmp_path / name) for name in ("warm", *HOSTILE)]
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
            assert "needs about" in words and "are free" in words, (name, deed, words)
        if deed == "record":
            assert not Path(tmp_path / f"{name}.ledger").exists()
