"""The same model in other units: its columns before they were moved and scaled, its outputs multiplied.

A kernel of differences has lengths in the units of its columns: where a column was divided by a, they grow by |a|. What
such a change does not keep (a linear kernel has its zero at a certain place) is refused.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel, ScaleKernel

from ..arrays import Array
from ..errors import InputError
from .kernel_kinds import COLUMN, KINDS
from .outputs import OutputsKernel, Term
from .trees import Tree, build_kernel, describe_kernel, fold


@dataclass(frozen=True)
class ColumnMap:
    """Column j of what comes out is ``(x − offsets[j]) / scales[j]``, x being column ``sources[j]`` of what goes in."""

    sources: tuple[int, ...]
    offsets: tuple[float, ...]
    scales: tuple[float, ...]

    @classmethod
    def identity(cls, columns: int) -> ColumnMap:
        return cls(tuple(range(columns)), (0.0,) * columns, (1.0,) * columns)

    @property
    def width(self) -> int:
        return len(self.sources)

    def is_identity(self, columns: int) -> bool:
        """Whether these ``columns`` columns come out as they went in."""
        return self == ColumnMap.identity(columns)

    def apply(self, X: Array) -> Array:
        return np.asarray((X[:, list(self.sources)] - np.array(self.offsets)) / np.array(self.scales))

    def then(self, later: ColumnMap) -> ColumnMap:
        """This map and ``later`` after it."""
        before = [(self.sources[j], self.offsets[j], self.scales[j]) for j in later.sources]
        offsets = tuple(o + s * offset for (_, o, s), offset in zip(before, later.offsets, strict=True))
        scales = tuple(s * scale for (_, _, s), scale in zip(before, later.scales, strict=True))
        return ColumnMap(tuple(source for source, _, _ in before), offsets, scales)


@dataclass(frozen=True)
class Units:
    """Inputs are seen as ``columns`` says, and outputs as ``(y − shift) / factor``."""

    columns: ColumnMap
    shift: float = 0.0
    factor: float = 1.0

    @property
    def same_inputs(self) -> bool:
        """Whether inputs are seen as they are."""
        return self.columns.is_identity(self.columns.width)

    @property
    def same_outputs(self) -> bool:
        return (self.shift, self.factor) == (0.0, 1.0)


def kernel_before(tree: Tree, scaling: ColumnMap, columns: int) -> Tree:
    """The tree of ``k(scaling.apply(x), scaling.apply(x′))`` as a kernel of x with ``columns`` columns."""

    def leaf(tree: Tree, seen: list[int]) -> Tree:
        kind = KINDS[tree["kind"]]
        before = {name: value for name, value in tree.items() if name != "active_dims"}
        if kind.name == "constant":
            return before
        sources = [scaling.sources[j] for j in seen]
        if sources != list(range(columns)):
            before["active_dims"] = sources
        offsets, signed = np.array(scaling.offsets)[seen], np.array(scaling.scales)[seen]
        scales = np.abs(signed)
        places = [parameter for parameter in kind.parameters if parameter.place]
        stretched = [parameter for parameter in kind.parameters if parameter.unit and not parameter.place]
        alike = all(COLUMN in parameter.axes for parameter in stretched) or np.ptp(scales) == 0
        if not stretched or not alike or (np.any(offsets) and not kind.stationary and not places):
            raise InputError(
                f"kernel has a {kind.name} part, which does not stay one when its columns are moved or stretched; use "
                "another kernel."
            )
        before |= {p.name: _stretched(tree[p.name], scales**p.unit) for p in stretched}
        before |= {p.name: (offsets + signed * np.asarray(tree[p.name])).tolist() for p in places}
        shared = [parameter.name for parameter in kind.parameters if parameter.may_be_shared]
        if any(isinstance(before[name], list) for name in shared):  # then all are one value a column
            before |= {name: np.broadcast_to(before[name], len(seen)).tolist() for name in shared}
        return before

    return fold(
        tree,
        range(scaling.width),
        leaf,
        lambda variance, kernel: {"kind": "scale", "variance": variance, "kernel": kernel},
        lambda kind, parts: {"kind": kind, "kernels": parts},
    )


def _stretched(values: Any, by: Array) -> Any:
    """One value a column (for each component, where there are some), or one value where all are stretched alike."""
    if isinstance(values, float) and np.all(by == by[0]):
        return values * float(by[0])
    return (np.asarray(values) * by).tolist()


def mean_before(tree: Tree, scaling: ColumnMap, columns: int) -> Tree:
    """The tree of ``m(scaling.apply(x))`` as a mean of x with ``columns`` columns."""
    if tree["kind"] == "polynomial":
        return _polynomial_before(tree, scaling, columns)
    if tree["kind"] != "linear":
        return tree
    slopes = np.array(tree["weights"]) / np.array(scaling.scales)
    weights = np.zeros(columns)
    weights[list(scaling.sources)] = slopes
    bias = float(tree.get("bias", 0.0) - slopes @ np.array(scaling.offsets))
    return {"kind": "linear", "weights": weights.tolist(), "bias": bias}


def _polynomial_before(tree: Tree, scaling: ColumnMap, columns: int) -> Tree:
    given, sources = np.array(tree["coefficients"]), list(scaling.sources)
    offsets, scales = np.array(scaling.offsets), np.array(scaling.scales)
    coefficients, centre, width = np.zeros((columns, given.shape[1])), np.zeros(columns), np.ones(columns)
    # where a column was turned around, odd powers change their sign
    coefficients[sources] = given * np.sign(scales)[:, None] ** np.arange(1, given.shape[1] + 1)
    centre[sources] = offsets + scales * np.array(tree["centre"])
    width[sources] = np.abs(scales) * np.array(tree["width"])
    lists = {"coefficients": coefficients, "centre": centre, "width": width}
    return {**tree, **{name: values.tolist() for name, values in lists.items()}}


def multiplied_mean(tree: Tree, factor: float, shift: float) -> Tree:
    """The tree of ``factor · m + shift``."""
    if tree["kind"] == "linear":
        weights = [factor * weight for weight in tree["weights"]]
        return {"kind": "linear", "weights": weights, "bias": shift + factor * tree.get("bias", 0.0)}
    if tree["kind"] == "polynomial":
        coefficients = (factor * np.array(tree["coefficients"])).tolist()
        return {**tree, "constant": shift + factor * tree["constant"], "coefficients": coefficients}
    if tree["kind"] == "zero" and shift == 0.0:
        return tree
    return {"kind": "constant", "value": shift + factor * tree.get("value", 0.0)}


def multiplied_kernel(kernel: Kernel, factors: Sequence[float] | Array) -> Kernel:
    """The kernel of ``factors · f``, one factor for each output of f."""
    by = np.asarray(factors, dtype=np.float64)
    if np.all(by == 1.0):
        return kernel
    if isinstance(kernel, OutputsKernel):
        return OutputsKernel(
            [
                Term(term.kernel, term.entries, term.mixing * by[[output for output, _ in term.entries]][:, None])
                for term in kernel.terms
            ]
        )
    return scaled_kernel(kernel, float(by[0]) ** 2)


def scaled_kernel(kernel: Kernel, variance: float) -> Kernel:
    """``variance`` times a kernel of one output."""
    if variance == 1.0:
        return kernel
    try:
        tree: dict[str, Any] = describe_kernel(kernel)
    except InputError:  # a class of the user's own
        scaled = ScaleKernel(copy.deepcopy(kernel)).double()
        scaled.outputscale = torch.tensor(variance, dtype=torch.float64)
        return scaled
    if tree["kind"] == "scale":
        return build_kernel(tree | {"variance": tree["variance"] * variance})
    return build_kernel({"kind": "scale", "variance": variance, "kernel": tree})
