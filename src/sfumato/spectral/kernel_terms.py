"""A kernel as a sum of products of simple kernels, written so that two kernels can be compared.

``K = Σ_t a_t Π_l k_{t,l}`` with positive numbers a and leaves k: RBF, Matérn, periodic, linear and so on. Scales and
constants go into a, products of sums are multiplied out, and products of RBFs are one RBF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError
from ..model_tree import LEAVES

#: Kernels that depend on the distance |(x − x′)/ℓ| only, over all their columns.
RADIAL = ("rbf", "matern", "rational_quadratic")
#: Numbers that differ by less are equal: GPyTorch's raw parameters come back with round-off.
RELATIVE = 1.0e-12
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

    def in_words(self) -> str:
        nu = f" {fraction(self.numbers[0])}" if self.kind == "matern" else ""
        return f"{LEAVES[self.kind].name}{nu}"


@dataclass(frozen=True)
class Term:
    """``weight`` times the product of ``leaves``, which are in a fixed order."""

    weight: float
    leaves: tuple[Leaf, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(sorted({c for leaf in self.leaves for c in leaf.columns}))

    def equals(self, other: Term) -> bool:
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


def kernel_terms(tree: dict[str, Any], columns: Sequence[int]) -> list[Term]:
    """The terms of the kernel that ``tree`` (see ``describe_kernel``) describes, on these columns of the inputs."""
    merged: list[Term] = []
    for term in _expand(tree, columns):
        for i, known in enumerate(merged):
            if known.equals(term):
                merged[i] = replace(known, weight=known.weight + term.weight)
                break
        else:
            merged.append(term)
    return merged


def proportion(kernel: Sequence[Term], other: Sequence[Term]) -> float | None:
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


def _expand(tree: dict[str, Any], columns: Sequence[int]) -> list[Term]:
    if "active_dims" in tree:
        columns = [columns[i] for i in tree["active_dims"]]
    kind = tree["kind"]
    if kind == "scale":
        return [replace(t, weight=t.weight * tree["variance"]) for t in _expand(tree["kernel"], columns)]
    if kind == "sum":
        return [term for part in tree["kernels"] for term in _expand(part, columns)]
    if kind == "product":
        product = [Term(1.0, ())]
        for part in tree["kernels"]:
            factors = _expand(part, columns)
            if len(product) * len(factors) > MOST_TERMS:
                raise InputError(
                    f"kernel is a product of sums with more than {MOST_TERMS} terms when multiplied out; "
                    "use fewer sums inside products."
                )
            product = [_times(a, b) for a in product for b in factors]
        return product
    if kind == "constant":
        return [Term(tree["constant"], ())]
    return [Term(1.0, (_leaf(tree, columns),))]


def _leaf(tree: dict[str, Any], columns: Sequence[int]) -> Leaf:
    per_column = LEAVES[tree["kind"]].per_column
    spread = [np.broadcast_to(np.asarray(tree[key], dtype=float).ravel(), len(columns)) for key in per_column]
    rows = [tuple(float(values[i]) for values in spread) for i in range(len(columns))]
    numbers = tuple(float(tree[k]) for k in sorted(tree) if k not in ("kind", "active_dims", *per_column))
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


def _times(a: Term, b: Term) -> Term:
    leaves = [*a.leaves, *b.leaves]
    smooth = [pair for leaf in leaves if leaf.kind == "rbf" for pair in zip(leaf.columns, leaf.lengthscales)]
    others = [leaf for leaf in leaves if leaf.kind != "rbf"]
    others += [_radial("rbf", smooth)] if smooth else []
    others.sort(key=lambda leaf: (leaf.kind, leaf.columns, leaf.numbers, leaf.rows))
    return Term(a.weight * b.weight, tuple(others))
