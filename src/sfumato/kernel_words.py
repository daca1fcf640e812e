"""Kernels in words, for certificates and reports.

>>> from sfumato.model_tree import build_kernel
>>> tree = {"kind": "scale", "variance": 2.0, "kernel": {"kind": "rbf", "lengthscale": 0.5}}
>>> kernel_in_words(build_kernel(tree), ["t"])
'RBF, lengthscale 0.5 (t); variance 2'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpytorch.kernels import Kernel

from .errors import InputError
from .model_tree import COMPOSITES, LEAVES, describe_kernel


def kernel_in_words(kernel: Kernel, names: Sequence[str]) -> str:
    """A line for people: kind, lengthscales by column name, variance."""
    try:
        tree = describe_kernel(kernel)
    except InputError:
        return type(kernel).__name__
    return _words(tree, list(range(len(names))), lambda i: names[i] if i < len(names) else f"column {i}")


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


def _listed(items: list[str], most: int) -> str:
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")
