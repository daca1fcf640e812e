"""How long a design and its certificate take, beside one float64 ``eigh`` of the same size.

    python -m benchmarks.design [--rows 1325] [--repeat 5]

Both are measured in turn in one run, and the medians are compared. The problem has the size and shape of the paper's
census experiment: five inputs, a region that bounds two of them, about 2 % of the rows inside. ``rows`` is the paper's
cover; how long the whole region takes is measured by ``benchmarks.region``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import sfumato as sf

from .harness import Options, in_turn, medians, run, table
from .problems import census

BARS = {"rows": 2.5}


def measure(options: Options) -> dict[str, Any]:
    # that only rows are protected is the point of this cover
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    prior, X, region = census(options.rows)
    B = prior.covariance(X) - 0.5

    def design() -> sf.Mechanism:
        return sf.protect(prior, X, region, alpha=0.5, protects="function", cover="rows", progress=False)

    times, made = in_turn({"eigh": lambda: np.linalg.eigh(B), "rows": design}, options.repeat)
    seconds = medians(times)
    found = {}
    for cover in ("rows",):
        certificate = made[cover].certificate
        found[cover] = {
            "ratio_to_eigh": seconds[cover] / seconds["eigh"],
            "sensitive": certificate.sensitive,
            "checked": certificate.checked,
            "holds": certificate.holds,
        }
    print(f"n = {options.rows}: one float64 eigh takes {seconds['eigh']:.3f} s")
    table(
        ["cover", "design + certificate / eigh", "sensitive", "checked", "holds", "bar"],
        [
            [cover, f"{one['ratio_to_eigh']:.2f}", one["sensitive"], one["checked"], one["holds"], BARS.get(cover, "")]
            for cover, one in found.items()
        ],
    )
    return {"eigh_seconds": seconds["eigh"], "covers": found, "bars": BARS}


if __name__ == "__main__":
    run(__doc__, measure, "design", rows=1325, repeat=5)
