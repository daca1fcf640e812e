"""Time against the number of rows, for a full eigenproblem, the subspace method and compression: a log-log plot.

    python -m benchmarks.scaling [--out docs/images/performance.png]

Draws what ``benchmarks.subspace`` and ``benchmarks.compressed`` have measured and written down; run these first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .harness import RESULTS, parsed

COLOURS = {"eigh": "#b5651d", "subspace": "#6b4c9a", "compressed": "#1b7f79", "limit": "#999999"}

#: What each panel is called, by the device that it was measured on.
PANELS = {"cpu": "2 cores of a server CPU", "cuda": "one H200 GPU"}


def read(name: str) -> dict[str, Any]:
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise SystemExit(
            f"{path.name} is not there; run python -m benchmarks.subspace and benchmarks.compressed first."
        )
    return dict(json.loads(path.read_text()))


def draw(axes: Any, subspace: dict[str, Any], compressed: dict[str, Any], title: str) -> None:
    table = [row for row in subspace["table"] if row["problem"] == "plane"]
    eigh = [(row["rows"], row["seconds"]["eigh"]) for row in table if row["seconds"]["eigh"]]
    ours = [(row["rows"], row["seconds"]["method"]) for row in table]
    limit = [(row["rows"], row["seconds"]["cholesky"]) for row in table]
    main_case = [row for row in compressed["results"] if (row["kernel"], row["dimension"]) == ("rbf", 2)]
    small = [(row["rows"], row["design_seconds"] + row["noise_seconds"]) for row in main_case]
    rates = [(row["rows"], row["rows"] * 2.25 * row["centres"] ** 2 / (1e9 * row["rate_gflops"])) for row in main_case]
    for points, key, label, style in (
        (eigh, "eigh", "eigh of B", "o-"),
        (ours, "subspace", "subspace, exact (gap 1e-8)", "o-"),
        (small, "compressed", "compressed (gap 1e-6)", "o-"),
        (limit, "limit", "limits: one Cholesky; n p² at the product rate", "--"),
        (rates, "limit", None, "--"),
    ):
        if points:
            x, y = np.array(points, dtype=float).T
            axes.loglog(x, y, style, color=COLOURS[key], label=label, markersize=4)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("rows")
    axes.set_ylabel("seconds")
    axes.grid(True, which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    options = parsed(__doc__, out="docs/images/performance.png")
    measured = [device for device in PANELS if (RESULTS / f"compressed-{device}.json").is_file()]
    shown = measured or ["cpu"]
    figure = Figure(figsize=(4.8 * len(shown), 3.8), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, device in zip(panels, shown, strict=True):
        draw(panel, read(f"subspace-{device}"), read(f"compressed-{device}"), PANELS[device])
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=2)
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=160)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
