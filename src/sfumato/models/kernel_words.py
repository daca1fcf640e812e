"""Kernels in words, for certificates and reports.

>>> from sfumato.models import build_kernel
>>> tree = {"kind": "scale", "variance": 2.0, "kernel": {"kind": "rbf", "lengthscale": 0.5}}
>>> kernel_in_words(build_kernel(tree), ["t"])
'RBF, lengthscale 0.5 (t); variance 2'
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gpytorch.kernels import Kernel

from ..arrays import Array
from ..errors import InputError
from .kernel_kinds import KINDS
from .outputs import OutputsKernel
from .trees import Tree, describe_kernel, fold

#: The most columns or outputs that are listed by name, and the most rows of a covariance that is written out.
_MOST_LISTED, _MOST_ROWS = 8, 4


def kernel_in_words(kernel: Kernel, names: Sequence[str], outputs: Sequence[str] | None = None) -> str:
    """A line for people: kind, lengthscales by column name, variance.

    For a kernel of several ``outputs`` the last of ``names`` is that of the column with the output's number.
    """
    if type(kernel) is OutputsKernel:
        return _several_in_words(kernel, names[:-1], outputs)
    try:
        tree = describe_kernel(kernel)
    except InputError:
        return type(kernel).__name__

    def leaf(tree: Tree, columns: list[int]) -> str:
        return _leaf_in_words(tree, [names[i] if i < len(names) else f"column {i}" for i in columns])

    return fold(
        tree,
        range(len(names)),
        leaf,
        lambda variance, words: f"{words}; variance {variance:.4g}",
        lambda kind, parts: f"{kind} of " + " and ".join(f"({part})" for part in parts),
    )


def mixing_in_words(mixing: Array) -> str:
    """How entries of one term are related, after a comma; nothing where all are of one function."""
    if np.all(mixing == 1.0) and mixing.shape[1] == 1:
        return ""
    if len(mixing) > _MOST_ROWS:
        return f", mixed by a {len(mixing)} × {len(mixing)} covariance"
    rows = [", ".join(f"{value:.4g}" for value in row) for row in mixing @ mixing.T]
    return f", mixed by the covariance [{', '.join(f'[{row}]' for row in rows)}]"


def _several_in_words(kernel: OutputsKernel, names: Sequence[str], outputs: Sequence[str] | None) -> str:
    called = outputs or [f"output {number}" for number in range(kernel.count)]
    parts = []
    for term in kernel.terms:
        entries = [f"{called[output]}: {functional.words(names)}" for output, functional in term.entries]
        mixed = f"{_listed(entries, '; ')}{mixing_in_words(term.mixing)}"
        parts.append(f"({mixed}) of {kernel_in_words(term.kernel, names)}")
    counted = f"{kernel.count} output{'s' if kernel.count > 1 else ''}"
    return f"over {counted}: " + " plus ".join(parts)


def _leaf_in_words(tree: Tree, names: list[str]) -> str:
    kind = KINDS[tree["kind"]]
    title = kind.title
    if "nu" in tree:
        title += f" {round(2 * tree['nu'])}/2"
    if "power" in tree:
        title += f" of degree {tree['power']}"
    parts = [_per_column(key.replace("_length", ""), tree[key], names) for key in kind.per_column]
    parts += [f"{key.replace('_length', '')} {tree[key]:.4g}" for key in kind.numbers]
    # a constant kernel has the name of its only number
    return ", ".join(parts if kind.name in kind.numbers else [title, *parts])


def _per_column(key: str, value: float | list[float], names: list[str]) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, list):
        return f"{key} {value:.4g}" + (f" ({_listed(names)})" if names else "")
    labels = names if len(names) == len(value) else [f"column {i}" for i in range(len(value))]
    return f"{key}s " + _listed([f"{v:.4g} ({label})" for v, label in zip(value, labels, strict=True)])


def _listed(items: list[str], between: str = ", ") -> str:
    rest = len(items) - _MOST_LISTED
    return between.join(items[:_MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")
