"""What it costs to keep the promise to whoever holds any one row: time and noise, beside the same promise to outsiders.

    python -m benchmarks.insiders [--rows 1000] [--repeat 1] [--only function]

Rows are uniform in the unit square, the region is a corner with 15 % of them, the kernel an RBF; for each of the three
promises α = 0.3. ``times`` and ``noise`` are ratios to the same design without insiders, measured in turn in one run;
``outsider's`` is what the worst single row would learn from that one, as a share of what its owner may.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.promise import Insiders
from sfumato.proof import groups_told

from .harness import Options, in_turn, medians, run, table
from .problems import ALPHA, box, prior, rows

#: Time with insiders over the time without: at most, and what we aim at.
BAR, AIM = 10.0, 3.0


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    found, lines = {}, []
    problem = (prior(), rows(options.rows), box())
    for protects in ("function", "both", "records"):
        if options.only not in ("", protects):
            continue

        def design(insiders: str | None, protects: Any = protects) -> sf.Mechanism:
            return sf.protect(*problem, alpha=ALPHA, protects=protects, insiders=insiders, progress=False)

        actions = {"without": lambda design=design: design(None), "with": lambda design=design: design("rows")}
        times, made = in_turn(actions, options.repeat, warm_up=False)
        seconds, plain = medians(times), made["without"].design
        told = groups_told(replace(plain, insiders=Insiders(options.rows)))
        found[protects] = {
            "seconds": seconds,
            "times": seconds["with"] / seconds["without"],
            "noise": made["with"].noise.trace / made["without"].noise.trace,
            "insider_ratio_without": float(np.max(told)),
            "insider_ratio": made["with"].certificate.insider_ratio,
            "holds": made["with"].certificate.holds,
        }
        one = found[protects]
        lines.append([protects, f"{one['times']:.2f}", f"{one['noise']:.3f}", f"{one['insider_ratio_without']:.3g}"])
        lines[-1] += [f"{one['insider_ratio']:.6f}", one["holds"], BAR]
        print(*lines[-1], f"({seconds['without']:.1f} s, {seconds['with']:.1f} s)", flush=True)
    table(["promise", "times", "noise", "outsider's", "insider ratio", "holds", "bar"], lines)
    return {"promises": found, "bar": BAR, "aim": AIM}


if __name__ == "__main__":
    run(__doc__, measure, "insiders", rows=1000, repeat=1, only="")
