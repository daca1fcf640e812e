"""How long users wait to choose a level: a trade-off and a suggestion, in calls of ``protect``.

    python -m benchmarks.choosing [--rows 1500] [--columns 2] [--levels 8]

Rows are uniform in the unit cube, the region is the last fifth of the first column, Matérn 5/2, α from 0.05 to 0.9.
The trade-off compares "joint", "function", "records" and "dropout" at all levels. ``protects`` are the seconds of the
trade-off over those of one ``protect`` at α = 0.3: at most as many as there are levels is asked for. ``off`` is the
largest difference of a line's noise from that of ``protect``, at the second level, as a share. Times are of the
processor, one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import sfumato as sf

from .harness import Options, run, table
from .problems import prior

WAYS = {"joint": "both", "function": "function", "records": "records"}


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.random((options.rows, options.columns))
    of = prior("matern52", 0.3)
    region = sf.Box([0.8, *[0.0] * (options.columns - 1)], [1.0] * options.columns)
    levels = np.linspace(0.05, 0.9, options.levels).round(3).tolist()
    processor(lambda: sf.protect(of, X[:50], region, alpha=0.3, progress=False))  # starts what starts once
    one, _ = processor(lambda: sf.protect(of, X, region, alpha=0.3, progress=False))
    many, found = processor(lambda: sf.tradeoff(of, X, region, levels, ways=[*WAYS, "dropout"], progress=False))
    chosen, suggestion = processor(lambda: sf.suggest(of, X, region, max_loss=0.1, progress=False))
    again, _ = processor(lambda: sf.protect(of, X, region, alpha=0.3, progress=False))
    each = (one + again) / 2
    off = max(_off(of, X, region, line) for line in found.rows if line.way in WAYS and line.alpha == levels[1])
    rows = [
        ["one protect", f"{each:.1f}", "1", ""],
        [f"tradeoff, {options.levels} levels × 4 ways", f"{many:.1f}", f"{many / each:.1f}", f"{off:.1e}"],
        ["suggest, max_loss=0.1", f"{chosen:.1f}", f"{chosen / each:.1f}", ""],
    ]
    table([f"{options.rows} rows × {options.columns}", "seconds", "protects", "off"], rows)
    seconds = {"protect": each, "tradeoff": many, "suggest": chosen}
    return {"seconds": seconds, "ratio": many / each, "allowed": options.levels, "off": off, "call": suggestion.call}


def processor(action: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds that the processor took for ``action``, and what it returned."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def _off(of: sf.Prior, X: Any, region: sf.Region, line: Any) -> float:
    """How far a line's noise is from that of ``protect``, as a share."""
    made = sf.protect(of, X, region, alpha=line.alpha, protects=WAYS[line.way], progress=False)  # type: ignore[arg-type]
    return abs(line.noise / float(np.sqrt(made.noise.trace / len(X))) - 1.0)


if __name__ == "__main__":
    run(__doc__, measure, "choosing", rows=1500, columns=2, levels=8)
