"""Numbers in a file that no arithmetic can work with are told in a sentence, and NumPy does not warn of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from kernels import rbf
from sfumato.release.container import container, read_container

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")

X = np.linspace(0.0, 3.0, 12)
TINY = {"prior": {"kernel": {"kind": "rbf", "lengthscale": 1e-120}}}


def edited(path: Path, edit: Any) -> sf.Release:
    """A release whose file was edited, and given a digest that is right."""
    mechanism = sf.protect(sf.Prior(rbf(0.5), noise=0.05), X, sf.Box(1, 2), alpha=0.4, progress=False)
    mechanism.release(np.sin(X)).save(path)
    manifest, tensors = read_container(path, lambda version, manifest, shapes: manifest)
    edit(manifest, tensors)
    path.write_bytes(container(manifest, tensors))
    return sf.load(path)


@pytest.mark.parametrize("lengthscale", [1e-150, 1e150])
def test_extreme_lengthscales_are_certified_as_they_deserve(tmp_path: Path, lengthscale: float) -> None:
    def scaled(manifest: Any, tensors: Any) -> None:
        manifest["prior"]["kernel"]["kernel"]["lengthscale"] = lengthscale

    release = edited(tmp_path / "scaled", scaled)
    # warnings are errors here; the noise was made for rows that tell of each other, neither of nothing nor of all
    assert not release.certify(progress=False).holds


@pytest.mark.parametrize("edit", [{"region": {"lower": [-1e150]}}, {"region": {"upper": [1e300]}}, TINY])
def test_a_ledger_with_numbers_that_cannot_be_worked_with_says_so(tmp_path: Path, edit: dict[str, Any]) -> None:
    ledger = sf.Ledger(tmp_path / "ledger")
    prior = sf.Prior(rbf(0.5), noise=0.05)
    ledger.protect(prior, X, sf.Box(1, 2), alpha=0.4, progress=False).release(np.sin(X))
    entry = ledger.chain().entries[0].body
    design = {name: part | edit[name] if name in edit else part for name, part in entry["record"]["design"].items()}
    forged = sf.Ledger(tmp_path / "forged")
    forged._records.file.update(lambda chain: entry | {"record": entry["record"] | {"design": design}})
    assert not forged.certificate().holds
