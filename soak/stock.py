"""Small real releases of every kind, as files: what the soak mutates and shows. Each is made once in a process."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.numpy

import sfumato as sf
from sfumato.models import build_kernel
from sfumato.release.container import FORMAT, VERSION, container, digest_of, read_container

from .older_files import as_version_5, as_version_6, as_version_8

#: Files that earlier versions wrote.
FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "version_4"

Made = Callable[[], sf.Release]

LINE = np.linspace(0.0, 3.0, 12)
SQUARE = np.random.default_rng(2).uniform(0.0, 3.0, (14, 2))
RBF = {"kind": "scale", "variance": 1.3, "kernel": {"kind": "rbf", "lengthscale": 0.5}}
MATERN = {"kind": "matern", "nu": 2.5, "lengthscale": 0.8}


@cache
def scratch() -> Path:
    """A folder of this process, for what its trials share."""
    return Path(tempfile.mkdtemp(prefix="sfumato-soak-"))


def prior(tree: dict[str, Any] = RBF, noise: Any = 0.05) -> sf.Prior:
    return sf.Prior(build_kernel(tree), mean=0.2, noise=noise)


def _release(
    X: Any = LINE, region: Any = None, believed: Any = None, y: Any = None, alpha: float | None = 0.4, **options: Any
) -> sf.Release:
    region = sf.Box(1.0, 2.0) if region is None else region
    if "floor" in options or "tolerance" in options:
        alpha = None
    mechanism = sf.protect(believed or prior(), X, region, alpha, progress=False, **options)
    values = np.sin(np.arange(float(len(X)))) if y is None else y
    return mechanism.release(values)


def _several() -> sf.Release:
    functionals = {"r": sf.Value(), "v": sf.Derivative("t")}
    joint = sf.JointPrior.of(prior(noise=0.1), functionals)
    frame = pd.DataFrame({"t": np.linspace(0.0, 3.0, 8)})
    values = {"r": np.sin(frame["t"]), "v": np.cos(frame["t"])}
    return _release(dict.fromkeys(values, frame), {name: sf.Box(1.0, 2.0) for name in values}, joint, values)


def _table() -> sf.Release:
    """Dates, categories and numbers."""
    days = pd.date_range("2020-01-01", periods=12, freq="7D")
    frame = pd.DataFrame({"day": days, "kind": ["a", "b", "c"] * 4, "size [m]": np.linspace(0.0, 2.0, 12)})
    believed = sf.fit_prior(frame, np.sin(LINE), lengthscale=[30.0, 1.0, 1.0, 1.0, 1.0], noise=0.1, progress=False)
    return _release(frame, sf.Box({"size [m]": (0.5, 1.5)}), believed, cover="rows")


_POINTS = sf.Points([[1.1], [1.5], [1.9]])

#: All programs, noises, promises, readers and columns.
KINDS: dict[str, Made] = {
    "joint": _release,
    "square": lambda: _release(SQUARE, sf.Box([1.0, 1.0], [1.8, 1.8]), prior(MATERN)),
    "function": lambda: _release(protects="function"),
    "records": lambda: _release(protects="records"),
    "floor": lambda: _release(floor=0.7),
    "floor of records": lambda: _release(floor=0.1, protects="records"),
    "varying floor": lambda: _release(floor=lambda S: 0.6 + 0.1 * np.sin(S[:, 0]) ** 2),
    "tolerance kernel": lambda: _release(tolerance=sf.KernelTolerance(build_kernel({**RBF, "variance": 0.5}))),
    "tolerance matrix": lambda: _release(region=_POINTS, tolerance=sf.MatrixTolerance(np.diag([0.2, 0.3, 0.4]))),
    "points": lambda: _release(region=_POINTS),
    "pointwise": lambda: _release(guarantee="pointwise"),
    "independent": lambda: _release(structure="diagonal"),
    "rows": lambda: _release(cover="rows"),
    "everywhere": lambda: _release(region=sf.Everywhere()),
    "two priors": lambda: _release(priors=[prior(MATERN, 0.1)]),
    "family": lambda: _release(believed=prior().family(lengthscale=(0.8, 1.25), noise=(0.5, 1.0))),
    "insiders": lambda: _release(insiders="rows"),
    "groups": lambda: _release(insiders=[[0, 1], [4, 5, 6]]),
    "compressed": lambda: _release(method="compressed"),
    "errors": lambda: _release(believed=prior(noise=np.linspace(0.02, 0.2, 12))),
    "weights": lambda: _release(weights=np.linspace(1.0, 2.0, 12)),
    "union": lambda: _release(SQUARE, sf.Box([1.0, 1.0], [1.5, 1.5]) | sf.Ball([2.0, 2.0], 0.5), prior(MATERN)),
    "sum of kernels": lambda: _release(
        believed=prior(
            {"kind": "sum", "kernels": [RBF, {"kind": "periodic", "period_length": 1.0, "lengthscale": 1.0}]}
        )
    ),
    "several outputs": _several,
    "table": _table,
}


@cache
def parts_of(kind: str) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Version, manifest and arrays of the release of this kind, or of a file that an earlier version wrote."""
    if kind in KINDS:
        path = scratch() / f"{kind}.sfumato"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KINDS[kind]().save(path)
    else:
        path = FIXTURES / kind  # a file of the folder, or one of a release in a folder
    seen: list[str] = []

    def look(version: str, manifest: dict[str, Any], shapes: Any) -> dict[str, Any]:
        seen.append(version)
        return manifest

    manifest, tensors = read_container(path, look)
    return seen[0], manifest, tensors


def older(kind: str) -> list[tuple[str, dict[str, Any]]]:
    """The version and the manifest of a release, and of the same in the versions before where they could say it."""
    version, manifest, _ = parts_of(kind)
    found = [(version, manifest)]
    if version == VERSION:
        found.append(("8", as_version_8(manifest)))
    if version == VERSION and "encoding" not in manifest and "families" not in manifest:
        found.append(("7", as_version_8(manifest)))
        if manifest["protects"] == "function" and manifest["insiders"] is None:
            found += [("6", as_version_6(manifest)), ("5", as_version_5(manifest))]
    return found


def encoded(version: str, manifest: dict[str, Any], tensors: dict[str, np.ndarray]) -> bytes:
    """A file with a digest that is right."""
    if version != "4":
        return container(manifest, tensors, version)
    text = json.dumps(manifest, sort_keys=True, allow_nan=False)
    stored = {name: np.ascontiguousarray(array, dtype="<f8") for name, array in tensors.items()}
    about = {"format": FORMAT, "version": version, "manifest": text, "digest": digest_of(version, text, stored)}
    raw: bytes = safetensors.numpy.save(stored, metadata=about)
    return raw
