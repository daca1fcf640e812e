"""Files that the version before the redesign wrote still open, certify and predict what they did."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf

FILES = Path(__file__).parents[1] / "fixtures" / "version_4"
EXPECTED: dict[str, Any] = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
RELEASES = [name for name in EXPECTED if not name.endswith(".ledger")]
LEDGERS = [name for name in EXPECTED if name.endswith(".ledger")]

#: Where predictions are asked for.
PLACES: dict[str, Any] = {
    "regions.sfumato": pd.DataFrame({"age": [30.0, 80.0], "place": [1.0, 2.0]}),
    "folder": pd.DataFrame({"a": [0.5, 2.0]}),
    "single.sfumato": pd.DataFrame({"t": [0.5, 1.5, 2.7]}),
}


#: What was the least of many inputs then is now the least that a proof looked at: these shares need not agree better.
SEEN = {"floor_ratio": 5e-3, "promised_ratio": 5e-3}


def close(found: Any, expected: Any, rtol: float = 1e-6) -> bool:
    return np.allclose(np.asarray(found, dtype=float), np.array(expected, dtype=float), rtol=rtol, equal_nan=True)


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_opens_certifies_and_predicts_as_before(name: str, tmp_path: Path) -> None:
    if name == "folder":
        pytest.importorskip("pyarrow")
    release, expected = sf.load(FILES / name), EXPECTED[name]
    assert (release.output_name, release.unsafe) == (expected["output_name"], expected["unsafe"])
    assert np.asarray(release.outputs)[:8].tolist() == expected["outputs"]
    certificate = release.certify(progress=False)
    assert certificate.holds
    for part, value in expected["certificate"].items():
        assert close(getattr(certificate, part), value, SEEN.get(part, 1e-6)), part
    for output, value in expected["predictions"].items():
        # m is an average, which has no inputs
        places = None if output == "m" else PLACES.get(name, [0.5, 1.5, 2.7])
        seen = release.predict(places, output=None if output == "f" else output)
        assert all(close(getattr(seen, part), value[part]) for part in value)
    if name != "folder":
        release.save(tmp_path / "again")
        again = sf.load(tmp_path / "again")
        assert again.design.digest() == release.design.digest()
        assert again.outputs.tobytes() == release.outputs.tobytes()


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_opens_knows_its_head_and_goes_on(name: str, tmp_path: Path) -> None:
    shutil.copy(FILES / name, tmp_path / name)
    ledger, expected = sf.Ledger(tmp_path / name), EXPECTED[name]
    assert (len(ledger), ledger.torn, ledger.head) == (expected["releases"], expected["torn"], expected["head"])
    left = ledger.remaining()
    assert close([left.left, *left.promises[0].history], [expected["left"], *expected["history"]])
    certificate = ledger.certificate()
    assert close(certificate.joint_ratio, expected["joint_ratio"])
    assert close(certificate.floor_ratio, expected["floor_ratio"], SEEN["floor_ratio"])
    last = ledger.releases[-1]
    prior, rows = last.design.prior, last.design.inputs.values[:, 0]
    asked = {"alpha": 0.5, "share": 0.4, "output_name": "r", "protects": "function", "progress": False}
    ledger.protect(prior, rows, sf.Box(1, 2), **asked).release(rows)
    assert len(ledger.verify(expected["head"]).entries) == expected["releases"] + 1
    assert not ledger.torn
