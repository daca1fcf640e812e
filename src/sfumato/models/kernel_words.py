"""Kernels in words, for certificates and reports.

>>> from sfumato.model_tree import build_kernel
>>> tree = {"kind": "scale", "variance": 2.0, "kernel": {"kind": "rbf", "lengthscale": 0.5}}
>>> kernel_in_words(build_kernel(tree), ["t"])
'RBF, lengthscale 0.5 (t); variance 2'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel

from ..arrays import Array
from ..errors import InputError
from .outputs import OutputsKernel
from .trees import COMPOSITES, LEAVES, describe_kernel


def kernel_in_words(kernel: Kernel, names: Sequence[str], outputs: Sequence[str] | None = None) -> str:
    """A line for people: kind, lengthscales by column name, variance.

    For a joint kernel over ``outputs`` the last of ``names`` is that of the column with the output's number.
    """
    if type(kernel) is OutputsKernel:
        return _joint_words(kernel, names[:-1], outputs)
    try:
        tree = describe_kernel(kernel)
    except InputError:
        return type(kernel).__name__
    return _words(tree, list(range(len(names))), lambda i: names[i] if i < len(names) else f"column {i}")


def mixing_in_words(mixing: Array, most: int = 4) -> str:
    """How entries of one term hang together, after a comma; nothing where all are of one function."""
    if np.all(mixing == 1.0) and mixing.shape[1] == 1:
        return ""
    if len(mixing) > most:
        return f", mixed by a {len(mixing)} × {len(mixing)} covariance"
    rows = [", ".join(f"{value:.4g}" for value in row) for row in mixing @ mixing.T]
    return f", mixed by the covariance [{', '.join(f'[{row}]' for row in rows)}]"


def _joint_words(kernel: OutputsKernel, names: Sequence[str], outputs: Sequence[str] | None) -> str:
    called = outputs or [f"output {number}" for number in range(kernel.count)]
    parts = []
    for term in kernel.terms:
        entries = [f"{called[output]}: {functional.words(names)}" for output, functional in term.entries]
        mixed = f"{_listed(entries, 8, '; ')}{mixing_in_words(term.mixing)}"
        parts.append(f"({mixed}) of {kernel_in_words(term.kernel, names)}")
    counted = f"{kernel.count} output{'s' if kernel.count > 1 else ''}"
    return f"joint over {counted}: " + " plus ".join(parts)


def _words(tree: dict[str, Any], columns: list[int], name: Callable[[int], str]) -> str:
    if "active_dims" in tree:
        columns = [columns[i] if i < len(columns) else i for i in tree["active_dims"]]
    kind = tree["kind"]
    if kind == "scale":
        return f"{_words(tree['kernel'], columns, name)}; variance {tree['variance']:.4g}"
    if kind in COMPOSITES:
        return f"{kind} of " + " and ".join(f"({_words(part, columns, name)})" for part in tree["kernels"])
    leaf = LEAVES[kind]
    title = leaf.name
    if kind == "matern":
        title += f" {round(2 * tree['nu'])}/2"
    if kind == "polynomial":
        title += f" of degree {tree['power']}"
    parts = [title]
    for key in leaf.per_column:
        parts.append(_per_column_words(key.replace("_length", ""), tree[key], [name(i) for i in columns]))
    parts += [f"{key.replace('_length', '')} {tree[key]:.4g}" for key in leaf.numbers if key != kind]
    if kind == "constant":
        parts = [f"constant {tree['constant']:.4g}"]
    return ", ".join(parts)


def _per_column_words(key: str, value: float | list[float], names: list[str], most: int = 8) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, list):
        return f"{key} {value:.4g}" + (f" ({_listed(names, most)})" if names else "")
    labels = names if len(names) == len(value) else [f"column {i}" for i in range(len(value))]
    return f"{key}s " + _listed([f"{v:.4g} ({label})" for v, label in zip(value, labels, strict=True)], most)


def _listed(items: list[str], most: int, between: str = ", ") -> str:
    rest = len(items) - most
    return between.join(items[:most]) + (f" and {rest} more" if rest > 0 else "")
