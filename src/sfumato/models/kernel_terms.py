"""A kernel as a sum of products of simple kernels, written so that two kernels can be compared.

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

from ..errors import InputError
from .kernel_kinds import KINDS

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
        return [term for part in tree["kernels"] for term in _expand(part, columns)]
    if kind == "product":
        product = [ProductTerm(1.0, ())]
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
        return [ProductTerm(tree["constant"], ())]
    return [ProductTerm(1.0, (_leaf(tree, columns),))]


def _leaf(tree: dict[str, Any], columns: Sequence[int]) -> Leaf:
    per_column = KINDS[tree["kind"]].per_column
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
