"""A kernel as a sum of products of simple kernels, so that two kernels can be compared; and a kernel in words.

``K = Σ_t a_t Π_l k_{t,l}`` with positive numbers a and leaves k: RBF, Matérn, periodic, linear and so on. Scales and
constants go into a, products of sums are multiplied out, and products of RBFs are one RBF. Kernels of a class that
cannot be described so may compute anything: they are the same function only where class and contents are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel, ScaleKernel

from ..arrays import Array
from ..data import Encoding
from ..errors import InputError
from ..text import listed
from .kernel_kinds import COLUMN, KINDS, Parameter
from .outputs import OutputsKernel
from .trees import Tree, describe_kernel, fold

#: Kernels that depend on the distance |(x − x′)/ℓ| only, over all their columns.
RADIAL = ("rbf", "matern", "rational_quadratic")
#: Numbers that differ by less are equal: GPyTorch's raw parameters come back with round-off.
RELATIVE = 1.0e-12
#: Products of sums are multiplied out up to this many terms.
MOST_TERMS = 256


@dataclass(frozen=True)
class Leaf:
    """One kernel without parts: ``rows`` has what belongs to each of its columns, ``numbers`` the rest."""

    kind: str
    columns: tuple[int, ...]
    rows: tuple[tuple[float, ...], ...]
    numbers: tuple[float, ...] = ()

    @property
    def lengthscales(self) -> tuple[float, ...]:
        """One for each column (radial kernels only)."""
        return tuple(row[0] for row in self.rows)

    def on(self, columns: Sequence[int]) -> Leaf:
        """An RBF kernel is a product over its columns: the factor on some of them."""
        kept = [(c, row) for c, row in zip(self.columns, self.rows, strict=True) if c in columns]
        return replace(self, columns=tuple(c for c, _ in kept), rows=tuple(row for _, row in kept))

    def equals(self, other: Leaf) -> bool:
        return (self.kind, self.columns) == (other.kind, other.columns) and np.allclose(
            [*np.ravel(self.rows), *self.numbers], [*np.ravel(other.rows), *other.numbers], rtol=RELATIVE, atol=0.0
        )

    @property
    def stationary(self) -> bool:
        return KINDS[self.kind].stationary

    def in_words(self) -> str:
        nu = f" {fraction(self.numbers[0])}" if self.kind == "matern" else ""
        return f"{KINDS[self.kind].title}{nu}"


@dataclass(frozen=True)
class ProductTerm:
    """``weight`` times the product of ``leaves``, which are in a fixed order."""

    weight: float
    leaves: tuple[Leaf, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(sorted({c for leaf in self.leaves for c in leaf.columns}))

    def equals(self, other: ProductTerm) -> bool:
        """Whether they agree up to their weights."""
        return len(self.leaves) == len(other.leaves) and all(
            a.equals(b) for a, b in zip(self.leaves, other.leaves, strict=True)
        )

    def tree(self) -> dict[str, Any]:
        """The term as a tree for ``build_kernel`` (radial leaves only)."""
        leaves: list[dict[str, Any]] = []
        for leaf in self.leaves:
            shape = {"matern": "nu", "rational_quadratic": "alpha"}.get(leaf.kind)
            own = {} if shape is None else {shape: leaf.numbers[0]}
            scales = {"lengthscale": list(leaf.lengthscales), "active_dims": list(leaf.columns)}
            leaves.append({"kind": leaf.kind, **scales, **own})
        if not leaves:
            return {"kind": "constant", "constant": self.weight}
        return {"kind": "scale", "variance": self.weight, "kernel": {"kind": "product", "kernels": leaves}}


def kernel_terms(tree: dict[str, Any], columns: Sequence[int]) -> list[ProductTerm]:
    """The terms of the kernel that ``tree`` (see ``describe_kernel``) describes, on these columns of the inputs."""
    merged: list[ProductTerm] = []
    for term in _expand(tree, columns):
        for i, known in enumerate(merged):
            if known.equals(term):
                merged[i] = replace(known, weight=known.weight + term.weight)
                break
        else:
            merged.append(term)
    return merged


def proportion(kernel: Sequence[ProductTerm], other: Sequence[ProductTerm]) -> float | None:
    """α with ``other = α · kernel``; None where there is no such number."""
    if len(kernel) != len(other):
        return None
    ratios = []
    for term in kernel:
        same = [candidate for candidate in other if candidate.equals(term)]
        if len(same) != 1:
            return None
        ratios.append(same[0].weight / term.weight)
    return ratios[0] if np.allclose(ratios, ratios[0], rtol=RELATIVE, atol=0.0) else None


def fraction(nu: float) -> str:
    """A half-integer as people write it.

    >>> fraction(2.5), fraction(1.0)
    ('5/2', '1')
    """
    return f"{nu:g}" if float(nu).is_integer() else f"{round(2 * nu)}/2"


def _expand(tree: dict[str, Any], columns: Sequence[int]) -> list[ProductTerm]:
    if "active_dims" in tree:
        columns = [columns[i] for i in tree["active_dims"]]
    kind = tree["kind"]
    if kind == "scale":
        return [replace(t, weight=t.weight * tree["variance"]) for t in _expand(tree["kernel"], columns)]
    if kind == "sum":
        terms: list[ProductTerm] = []
        for part in tree["kernels"]:
            terms += _expand(part, columns)
            _require_few(len(terms))
        return terms
    if kind == "product":
        product = [ProductTerm(1.0, ())]
        for part in tree["kernels"]:
            factors = _expand(part, columns)
            _require_few(len(product) * len(factors))
            product = [_times(a, b) for a in product for b in factors]
        return product
    if kind == "constant":
        return [ProductTerm(tree["constant"], ())]
    if kind == "spectral_mixture":
        return [_mixture(tree, columns)]
    return [ProductTerm(1.0, (_leaf(tree, columns),))]


def _require_few(terms: int) -> None:
    if terms > MOST_TERMS:
        raise InputError(
            f"kernel has more than {MOST_TERMS} terms when multiplied out; use fewer parts, and fewer sums in products."
        )


def _mixture(tree: dict[str, Any], columns: Sequence[int]) -> ProductTerm:
    """A spectral mixture with weights that sum to one, its columns and components in a fixed order.

    It is a product over its columns of sums, so a factor of the weights counts once for each column.
    """
    order = np.argsort(columns, kind="stable")
    weights, means, scales = (np.array(tree[f"mixture_{key}"]) for key in ("weights", "means", "scales"))
    means, scales, total = means[:, order], scales[:, order], float(weights.sum())
    sorting = np.lexsort((weights, *scales.T, *means.T))
    rows = np.hstack([means[sorting].T, scales[sorting].T])
    leaf = Leaf(
        "spectral_mixture",
        tuple(int(columns[i]) for i in order),
        tuple(tuple(row) for row in rows.tolist()),
        tuple((weights[sorting] / total).tolist()),
    )
    return ProductTerm(total ** len(columns), (leaf,))


def _leaf(tree: dict[str, Any], columns: Sequence[int]) -> Leaf:
    spread = {
        parameter.name: np.broadcast_to(np.asarray(tree[parameter.name], dtype=float).ravel(), len(columns))
        for parameter in KINDS[tree["kind"]].parameters
        if parameter.may_be_shared
    }
    rows = [tuple(float(values[i]) for values in spread.values()) for i in range(len(columns))]
    numbers = tuple(float(tree[k]) for k in sorted(tree) if k not in ("kind", "active_dims", *spread))
    ordered = sorted(zip(columns, rows, strict=True))
    if tree["kind"] in RADIAL:
        return _radial(tree["kind"], [(c, row[0]) for c, row in ordered], numbers)
    return Leaf(tree["kind"], tuple(c for c, _ in ordered), tuple(row for _, row in ordered), numbers)


def _radial(kind: str, lengthscales: list[tuple[int, float]], numbers: tuple[float, ...] = ()) -> Leaf:
    """One radial kernel; a column that comes twice counts with the sum of its 1/ℓ²."""
    by_column: dict[int, list[float]] = {}
    for column, lengthscale in sorted(lengthscales):
        by_column.setdefault(column, []).append(lengthscale)
    rows = tuple((v[0] if len(v) == 1 else float(np.sum(np.array(v) ** -2.0) ** -0.5),) for v in by_column.values())
    return Leaf(kind, tuple(by_column), rows, numbers)


def _times(a: ProductTerm, b: ProductTerm) -> ProductTerm:
    leaves = [*a.leaves, *b.leaves]
    smooth = [pair for leaf in leaves if leaf.kind == "rbf" for pair in zip(leaf.columns, leaf.lengthscales)]
    others = [leaf for leaf in leaves if leaf.kind != "rbf"]
    others += [_radial("rbf", smooth)] if smooth else []
    others.sort(key=lambda leaf: (leaf.kind, leaf.columns, leaf.numbers, leaf.rows))
    return ProductTerm(a.weight * b.weight, tuple(others))


#: What torch and GPyTorch keep in every module for their own book-keeping; none of it is part of the function.
_BOOKS = frozenset(vars(torch.nn.Module())) | frozenset(vars(Kernel()))
_CONTENTS = frozenset({"_parameters", "_buffers", "_modules", "ard_num_dims"})


def scale_between(kernel: Kernel, other: Kernel) -> float | None:
    """α with ``other = α · kernel``, where both are scaled versions of the same kernel; None where they are not."""
    (first, base), (second, other_base) = _unscaled(kernel), _unscaled(other)
    return second / first if _identical(base, other_base) else None


def _unscaled(kernel: Kernel) -> tuple[float, Kernel]:
    scale = 1.0
    while type(kernel) is ScaleKernel and kernel.outputscale.numel() == 1:
        scale, kernel = scale * float(kernel.outputscale), kernel.base_kernel
    return scale, kernel


def _identical(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and bool(torch.equal(a, b))
    if isinstance(a, torch.nn.Module):
        return _identical(_contents(a), _contents(b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_identical(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_identical, a, b))
    return isinstance(a, (bool, int, float, str, bytes, torch.Size)) and a == b


def _contents(module: torch.nn.Module) -> dict[str, Any]:
    # in which order attributes were set does not matter
    return dict(sorted((k, v) for k, v in vars(module).items() if k in _CONTENTS or k not in _BOOKS))


#: The most columns or outputs that are listed by name, and the most rows of a covariance that is written out.
_MOST_LISTED, _MOST_ROWS = 8, 4


def kernel_in_words(
    kernel: Kernel, names: Sequence[str], outputs: Sequence[str] | None = None, encoding: Encoding | None = None
) -> str:
    """A line for certificates and reports: kind, lengthscales by column name, variance.

    For a kernel of several ``outputs`` the last of ``names`` is that of the column with the output's number. With an
    ``encoding`` the columns are those of a table: dates have a unit, and the levels of a category are told together.

    >>> from sfumato.models import build_kernel
    >>> tree = {"kind": "scale", "variance": 2.0, "kernel": {"kind": "rbf", "lengthscale": 0.5}}
    >>> kernel_in_words(build_kernel(tree), ["t"])
    'RBF, lengthscale 0.5 (t); variance 2'
    """
    if type(kernel) is OutputsKernel:
        return _several_in_words(kernel, names[:-1], outputs, encoding)
    try:
        tree = describe_kernel(kernel)
    except InputError:
        return type(kernel).__name__

    def leaf(tree: Tree, columns: list[int]) -> str:
        return _leaf_in_words(tree, [names[i] if i < len(names) else f"column {i}" for i in columns], encoding)

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


def _several_in_words(
    kernel: OutputsKernel, names: Sequence[str], outputs: Sequence[str] | None, encoding: Encoding | None
) -> str:
    called = outputs or [f"output {number}" for number in range(kernel.count)]
    parts = []
    for term in kernel.terms:
        entries = [f"{called[output]}: {functional.words(names)}" for output, functional in term.entries]
        mixed = f"{listed(entries, _MOST_LISTED, '; ')}{mixing_in_words(term.mixing)}"
        parts.append(f"({mixed}) of {kernel_in_words(term.kernel, names, encoding=encoding)}")
    counted = f"{kernel.count} output{'s' if kernel.count > 1 else ''}"
    return f"over {counted}: " + " plus ".join(parts)


def _leaf_in_words(tree: Tree, names: list[str], encoding: Encoding | None) -> str:
    kind = KINDS[tree["kind"]]
    title = kind.title
    if "nu" in tree:
        title += f" {round(2 * tree['nu'])}/2"
    if "power" in tree:
        title += f" of degree {tree['power']}"
    parts = [_parameter_in_words(parameter, tree[parameter.name], names, encoding) for parameter in kind.parameters]
    # a constant kernel has the name of its only number
    return ", ".join(parts if kind.name in kind.entries else [title, *parts])


def _parameter_in_words(parameter: Parameter, value: Any, names: list[str], encoding: Encoding | None) -> str:
    key = parameter.name.replace("_length", "").replace("mixture_", "")
    if not parameter.axes:
        return f"{key} {value:.4g}"
    if parameter.may_be_shared:
        if encoding is not None and parameter.unit in (0, 1):
            return _per_source(parameter, key, value, names, encoding)
        return _per_column(key, value, names)
    if COLUMN not in parameter.axes:
        return f"{key} {_components(value)}"
    by_column = list(zip(*value, strict=True))
    labelled = zip(by_column, _labels(names, len(by_column)), strict=True)
    return f"{key} " + listed([f"{_components(numbers)} ({label})" for numbers, label in labelled], _MOST_LISTED)


def _components(numbers: Sequence[float]) -> str:
    return listed([f"{number:.4g}" for number in numbers], _MOST_LISTED, " + ")


def _per_column(key: str, value: float | list[float], names: list[str]) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, list):
        return f"{key} {value:.4g}" + (f" ({listed(names, _MOST_LISTED)})" if names else "")
    labelled = zip(value, _labels(names, len(value)), strict=True)
    return f"{key}s " + listed([f"{v:.4g} ({label})" for v, label in labelled], _MOST_LISTED)


def _per_source(
    parameter: Parameter, key: str, value: float | list[float], names: list[str], encoding: Encoding
) -> str:
    """One number for each column of a table: "92 days (date)", "1.2 to 3 (levels of species)"."""
    values = value if isinstance(value, list) and len(value) == len(names) else [np.ravel(value)[0]] * len(names)
    by_name, parts = dict(zip(names, values, strict=True)), []
    for column in encoding.columns:
        own = sorted(by_name[name] for name in column.names if name in by_name)
        if not own:
            continue
        if column.kind == "category":
            numbers = f"{own[0]:.4g}" if own[0] == own[-1] else f"{own[0]:.3g} to {own[-1]:.3g}"
            parts.append(f"{numbers} (levels of {column.name})")
        elif column.kind == "date" and parameter.place:
            parts.append(f"{column.date_in_words(own[0], 'm')} ({column.name})")
        elif column.kind == "date" and parameter.unit:
            years = f" ≈ {own[0] / 365.2425:.3g} years" if column.unit == "days" and own[0] > 730.0 else ""
            parts.append(f"{own[0]:.4g} {column.unit}{years} ({column.name})")
        else:
            parts.append(f"{own[0]:.4g} ({column.name})")
    return f"{key}{'s' if len(parts) > 1 else ''} " + listed(parts, _MOST_LISTED)


def _labels(names: list[str], count: int) -> list[str]:
    return names if len(names) == count else [f"column {i}" for i in range(count)]
