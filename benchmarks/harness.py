"""What all benchmarks share: options, times that are taken in turn, the machine, and a file of results.

A benchmark is a module with a question in its docstring and a function that takes the options, prints a table and
returns its numbers; ``run`` does the rest. Every claim is a ratio of two times of one run.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

RESULTS = Path(__file__).parent / "results"

Options = argparse.Namespace


def run(doc: str | None, measure: Callable[[Options], dict[str, Any]], name: str, **defaults: Any) -> None:
    """Read the options, measure, and write ``results/NAME.json``; ``{device}`` in a name stands for the device.

    ``defaults`` has an option for each entry: a number or a text, a list of numbers, or False for a switch.
    """
    options = parsed(doc, **defaults)
    result = measure(options) | {"options": vars(options), "machine": machine()}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name.format(device=str(getattr(options, 'device', 'cpu')).split(':')[0])}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")


def parsed(doc: str | None, **defaults: Any) -> Options:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(option, action="store_true")
        elif isinstance(default, list):
            parser.add_argument(option, type=int, nargs="*", default=default)
        else:
            parser.add_argument(option, type=type(default), default=default)
    return parser.parse_args()


def timed(action: Callable[[], Any], device: str = "cpu") -> tuple[float, Any]:
    """The seconds that ``action`` takes, to the end of its work on the device, and what it returns."""
    wait = (lambda: None) if device == "cpu" else (lambda: torch.cuda.synchronize(device))
    wait()
    start = time.perf_counter()
    result = action()
    wait()
    return time.perf_counter() - start, result


def in_turn(
    actions: dict[str, Callable[[], Any]], repeat: int, warm_up: bool = True, device: str = "cpu"
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """The times of each action, one after the other in every turn, and what each returned in the last.

    On a machine whose speed varies all of them see the same weather. A first turn that is not counted warms up.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    results: dict[str, Any] = {}
    for turn in range(-1 if warm_up else 0, repeat):
        for name, action in actions.items():
            seconds, results[name] = timed(action, device)
            if turn >= 0:
                times[name].append(seconds)
    return times, results


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(taken) for name, taken in times.items()}


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print lines in columns: the first to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in [heads, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *padded]), flush=True)


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    description: dict[str, object] = {
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    if torch.cuda.is_available():
        description["gpu"] = torch.cuda.get_device_name()
        description["gpu_peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return description


def peak_memory() -> int:
    """The most memory this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
