"""How long does a look at a level take (``sf.Levels``), which the studio's slider asks for, against ``sf.protect``?

Both are asked for the same new levels, in turn, of one prior, inputs and region. ``first`` is the first level, with all
that levels share. Noise and error are those of the look against what ``protect`` makes: the largest difference. Times
are of the processor, one thread, so that other work on the machine does not count.

    python -m benchmarks.studio
    python -m benchmarks.studio --rows 500 2000 --many 0
"""

from __future__ import annotations

import statistics
import warnings
from typing import Any

import numpy as np
import torch

import sfumato as sf

from .choosing import processor
from .harness import Options, run, table
from .problems import prior

#: The level that is looked at first, and those that are compared.
FIRST, ALPHAS = 0.3, (0.31, 0.1, 0.6)


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    torch.set_num_threads(1)
    found = []
    for rows in (*options.rows, *([options.many] if options.many else [])):
        for columns in options.columns if rows != options.many else [1]:
            found.append(_compared(rows, columns, 1 if rows == options.many else len(ALPHAS)))
    table(
        ["rows × inputs", "first", "a level", "protect", "ratio", "noise", "error"],
        [
            [
                f"{one['rows']:,} × {one['columns']}",
                f"{one['first']:.2f} s",
                f"{one['level']:.3f} s",
                f"{one['protect']:.2f} s",
                f"1/{one['protect'] / one['level']:.1f}",
                f"{one['noise']:.2%}",
                f"{one['error']:.2%}",
            ]
            for one in found
        ],
    )
    return {"levels": found}


def _compared(rows: int, columns: int, levels: int) -> dict[str, float]:
    """Seconds of the first look, of further ones and of ``protect``, and how far apart their numbers are."""
    X = np.random.default_rng(0).uniform(0.0, 3.0, (rows, columns))
    shared = sf.Levels(prior("matern52", 0.7), X, sf.Box([1.0] * columns, [2.0] * columns))
    first, _ = processor(lambda: shared.at(FIRST))
    looks, made, noise, error = [], [], [0.0], [0.0]
    for alpha in ALPHAS[:levels]:
        seconds, effect = processor(lambda alpha=alpha: shared.at(alpha))  # type: ignore[misc]
        looks.append(seconds)
        seconds, mechanism = processor(lambda alpha=alpha: shared.protect(alpha, progress=False))  # type: ignore[misc]
        made.append(seconds)
        truth = shared.effect_of(mechanism)
        noise.append(abs(effect.noise / truth.noise - 1.0))
        error.append(abs(effect.rmse_outside / truth.rmse_outside - 1.0))
    return {
        "rows": rows,
        "columns": columns,
        "first": first,
        "level": statistics.median(looks),
        "protect": statistics.median(made),
        "noise": max(noise),
        "error": max(error),
    }


if __name__ == "__main__":
    run(__doc__, measure, "studio", rows=[500, 2000], columns=[1, 2], many=1_000_000)
