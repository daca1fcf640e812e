"""Kernels and means as plain trees: objects, lists, numbers and nothing else, so a file can hold them safely.

``describe_*`` writes the actual values (a lengthscale, not GPyTorch's raw parameter) as float64;
``build_*`` reads trees that may come from anywhere: what is not exactly as expected is a ``FormatError``.

>>> tree = {"kind": "scale", "variance": 2.0, "kernel": {"kind": "rbf", "lengthscale": 0.5}}
>>> describe_kernel(build_kernel(tree)) == tree
True
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import AdditiveKernel, Kernel, ProductKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean, Mean, ZeroMean

from ..errors import FormatError, InputError
from ..regions import MOST_OUTPUTS
from ..tree_checks import fields, items, kind_of, matrix, node, number, positive, whole
from .functionals import MAX_POINTS, Average, Derivative, Functional, Value
from .kernel_kinds import COLUMN, COUNTS, KINDS, Parameter, kind_of_kernel
from .outputs import OutputsKernel, OutputsMean, Term
from .trends import MAX_DEGREE, PolynomialMean

Tree = dict[str, Any]
Found = TypeVar("Found")

MAX_DEPTH = 16
MAX_NODES = 1_000
MAX_COLUMNS = 10_000
#: Values and derivatives go through the components of a spectral mixture one by one.
MAX_MIXTURES = 256
#: GPyTorch walks through a kernel of depth D about 2^D times; a file must not be able to keep us busy.
MAX_WALKS = 2 ** (MAX_DEPTH + 1)
MAX_TERMS = 64
#: A covariance of two averages has a value for each pair of their points: a few seconds for so many.
MAX_PAIRS = 2**28
MAX_ENTRIES = 256
MAX_RANK = 256

#: The kind of kernels and means of several outputs.
SEVERAL = "outputs"
COMPOSITES: dict[str, type[Kernel]] = {"sum": AdditiveKernel, "product": ProductKernel}
_ENTRIES = {name: kind.entries for name, kind in KINDS.items()}
_ENTRIES |= {"scale": ("variance", "kernel"), "sum": ("kernels",), "product": ("kernels",)}
KERNEL_KINDS = tuple(_ENTRIES)


def fold(
    tree: Tree,
    columns: Sequence[int],
    leaf: Callable[[Tree, list[int]], Found],
    scale: Callable[[float, Found], Found],
    join: Callable[[str, list[Found]], Found],
) -> Found:
    """A value for a tree, made from its leaves up.

    ``leaf`` is handed a kernel without parts and the ``columns`` that it looks at (those beyond the given ones keep
    their places), ``scale`` a variance and what was found for the kernel that it scales, ``join`` "sum" or "product"
    and what was found for its parts.
    """
    seen = list(columns)
    if "active_dims" in tree:
        seen = [seen[place] if place < len(seen) else place for place in tree["active_dims"]]
    if tree["kind"] == "scale":
        return scale(tree["variance"], fold(tree["kernel"], seen, leaf, scale, join))
    if tree["kind"] in COMPOSITES:
        return join(tree["kind"], [fold(part, seen, leaf, scale, join) for part in tree["kernels"]])
    return leaf(tree, seen)


# ---------------------------------------------------------------- describing kernels


def describe_kernel(kernel: Kernel) -> Tree:
    """The tree of ``kernel``; ``InputError`` where a file cannot hold it."""
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {kernel!r}, not a GPyTorch kernel.")
    kernel = copy.deepcopy(kernel).double().requires_grad_(False)
    tree = _describe_several(kernel) if type(kernel) is OutputsKernel else _describe(kernel, 1)
    try:
        build_kernel(tree)
    except FormatError as error:
        raise InputError(f"kernel cannot be written to a file: {error}") from None
    return tree


def _describe(kernel: Kernel, depth: int) -> Tree:
    if depth > MAX_DEPTH:
        raise InputError(f"kernel is nested more than {MAX_DEPTH} deep; write it as flat sums and products.")
    columns, below = _columns_of(kernel), None
    composite = next((name for name, known in COMPOSITES.items() if type(kernel) is known), None)
    if composite is not None:
        tree: Tree = {"kind": composite, "kernels": [_describe(part, depth + 1) for part in kernel.kernels]}
    elif type(kernel) is ScaleKernel:
        _single(kernel.outputscale.shape)
        base = kernel.base_kernel
        tree = {"kind": "scale", "variance": float(kernel.outputscale), "kernel": _describe(base, depth + 1)}
        # GPyTorch's ScaleKernel takes over the columns of its base: they are written once, at the base.
        below = _columns_of(base)
        if below is not None and below != columns:
            raise InputError(
                f"kernel is a ScaleKernel on the columns {columns} of a kernel on the columns {below}; "
                "set active_dims before the kernel is scaled."
            )
    else:
        tree = _describe_leaf(kernel)
    if columns is not None and below is None:
        tree["active_dims"] = columns
    return tree


def _describe_leaf(kernel: Kernel) -> Tree:
    kind = kind_of_kernel(kernel)
    if kind is None:
        raise InputError(
            f"kernel has a part of class {type(kernel).__name__}, which cannot be written to a file; "
            f"use the kinds {', '.join(KERNEL_KINDS)}, or make a release that you do not save."
        )
    _single(kernel.batch_shape)
    tree: Tree = {"kind": kind.name}
    for name, check in kind.settings.items():
        value = getattr(kernel, name)
        try:
            tree[name] = check(int(value) if float(value).is_integer() else float(value), name)
        except FormatError as error:
            raise InputError(f"kernel has a {kind.title} part that a file cannot hold: {error}") from None
    for parameter in kind.parameters:
        shared = parameter.may_be_shared and kernel.ard_num_dims is None
        shape = [] if shared else [getattr(kernel, COUNTS[axis]) for axis in parameter.axes]
        tree[parameter.name] = getattr(kernel, parameter.name).reshape(shape).tolist()
    return tree


def _columns_of(kernel: Kernel) -> list[int] | None:
    return None if kernel.active_dims is None else [int(i) for i in kernel.active_dims]


def _single(batch_shape: torch.Size) -> None:
    if batch_shape:
        raise InputError(f"kernel has a batch shape {tuple(batch_shape)}; give one kernel, not a batch.")


# ---------------------------------------------------------------- building kernels


def build_kernel(tree: object, dimension: int | None = None) -> Kernel:
    """The float64 kernel that ``tree`` describes, able to read inputs of ``dimension`` columns if that is given.

    A kernel of several outputs is allowed here, but not inside another kernel; one of its columns is the output's.

    Guarantee: whatever ``tree`` is, either a kernel comes back whose parameters are the numbers in it,
    bit for bit, or ``FormatError`` is raised.
    """
    builder = _Builder()
    kernel = _build_several(tree, dimension, builder) if _is_several(tree) else builder.build(tree, dimension, 1)
    kernel.requires_grad_(False)
    return kernel


class _Builder:
    """Builds kernels, counting their nodes and what they cost together."""

    def __init__(self) -> None:
        self.nodes = 0
        self.walks = 0

    def build(self, tree: object, columns: int | None, depth: int) -> Kernel:
        """The kernel of ``tree``, which is handed ``columns`` columns (unknown: None)."""
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise FormatError(f"the kernel is nested more than {MAX_DEPTH} deep.")
        self.walks += 2 ** (depth - 1)
        if self.nodes > MAX_NODES or self.walks > MAX_WALKS:
            raise FormatError(f"the kernel has too many parts ({self.nodes} so far, this one {depth} deep).")
        kind = kind_of(tree, "kernel", KERNEL_KINDS)
        entries = fields(tree, f"{kind} node", ("kind", *_ENTRIES[kind]), ("active_dims",))
        active = _active_dims(entries, columns)
        columns = columns if active is None else len(active)
        if kind in COMPOSITES:
            parts = items(entries["kernels"], f"kernels of the {kind} kernel", least=1)
            kernel = COMPOSITES[kind](*[self.build(part, columns, depth + 1) for part in parts])
        elif kind == "scale":
            kernel = self._build_scale(entries, columns, depth)
        else:
            kernel = _build_leaf(kind, entries, columns)
        if active is not None:
            kernel.active_dims = torch.tensor(active, dtype=torch.long, device="cpu")
        return kernel

    def _build_scale(self, entries: dict[str, object], columns: int | None, depth: int) -> Kernel:
        variance = positive(entries["variance"], "the variance of the scale kernel")
        base = self.build(entries["kernel"], columns, depth + 1)
        if "active_dims" in entries and base.active_dims is not None:
            raise FormatError("a scale kernel and the kernel in it both have active_dims; only one of them may.")
        # Without a transform the parameter is the value itself, so nothing is lost in a round trip.
        kernel = ScaleKernel(base, outputscale_constraint=_as_is()).double()
        kernel.outputscale = _tensor([variance])[0]
        return kernel


def _build_leaf(name: str, entries: dict[str, object], columns: int | None) -> Kernel:
    kind = KINDS[name]
    constrained = [parameter.name for parameter in kind.parameters if kind.constrained]
    options: dict[str, Any] = {f"{name}_constraint": _as_is() for name in constrained}
    for setting, check in kind.settings.items():
        options[setting] = check(entries[setting], f"{setting} of the {name} kernel")
    counts: dict[str, int | None] = {}
    values = {}
    for parameter in kind.parameters:
        given, what = entries[parameter.name], f"{parameter.name} of the {name} kernel"
        if parameter.may_be_shared and not isinstance(given, list):
            _require_count(counts, COLUMN, None, what)
            values[parameter.name] = [parameter.check(given, what)]
        else:
            values[parameter.name] = _numbers(given, what, parameter, parameter.axes, counts, columns)
    options |= {COUNTS[axis]: count for axis, count in counts.items() if count is not None}
    kernel = kind.kernel(**options).double()
    for key, numbers in values.items():
        setattr(kernel, key, _tensor(numbers).reshape(getattr(kernel, key).shape))
    return kernel


def _numbers(
    given: object,
    what: str,
    parameter: Parameter,
    axes: tuple[str, ...],
    counts: dict[str, int | None],
    columns: int | None,
) -> list[float]:
    """The numbers of a parameter that is listed over ``axes``, the last one first to change."""
    if not axes:
        return [parameter.check(given, what)]
    axis, *rest = axes
    if axis == COLUMN:
        listed = _one_a_column(given, what, columns, broadcast=parameter.may_be_shared)
    else:
        listed = items(given, what, 1, MAX_MIXTURES)
    _require_count(counts, axis, len(listed), what)
    return [value for entry in listed for value in _numbers(entry, what, parameter, tuple(rest), counts, columns)]


def _require_count(counts: dict[str, int | None], axis: str, count: int | None, what: str) -> None:
    """All parameters of a kernel must have as many entries along an axis (None: one number for all columns)."""
    known = counts.setdefault(axis, count)
    if known != count:
        said = ["one number for all" if n is None else f"{n} entries" for n in (count, known)]
        raise FormatError(f"{what} has {said[0]} ({axis}), where another parameter has {said[1]}.")


def _one_a_column(values: object, what: str, columns: int | None, broadcast: bool) -> list[object]:
    listed = items(values, what, 1, MAX_COLUMNS)
    if columns is not None and len(listed) != columns and not (broadcast and len(listed) == 1):
        raise FormatError(f"{what} has {len(listed)} entries for {columns} column(s).")
    return listed


def _active_dims(entries: dict[str, object], columns: int | None) -> list[int] | None:
    if "active_dims" not in entries:
        return None
    most = MAX_COLUMNS if columns is None else columns - 1
    return [whole(i, "active_dims", 0, most) for i in items(entries["active_dims"], "active_dims", 1, MAX_COLUMNS)]


def _as_is() -> Positive:
    return Positive(transform=None, inv_transform=None)


def _tensor(numbers: list[float]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64, device="cpu")


# ---------------------------------------------------------------- means


@dataclass(frozen=True)
class _MeanKind:
    mean: type[Mean]
    describe: Callable[[Any], Tree]
    build: Callable[[dict[str, object], int | None], Mean]
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def _constant_mean(entries: dict[str, object], dimension: int | None) -> Mean:
    mean = ConstantMean().double()
    mean.constant = _tensor([number(entries["value"], "value of the constant mean")])[0]
    return mean


def _describe_linear_mean(mean: Any) -> Tree:
    tree: Tree = {"weights": [float(w) for w in mean.weights.reshape(-1)]}
    return tree if mean.bias is None else tree | {"bias": float(mean.bias)}


def _linear_mean(entries: dict[str, object], dimension: int | None) -> Mean:
    what = "weights of the linear mean"
    weights = [number(w, what) for w in _one_a_column(entries["weights"], what, dimension, broadcast=False)]
    # GPyTorch draws random weights first; the caller's random numbers must not notice.
    with torch.random.fork_rng(devices=[]):
        mean = LinearMean(len(weights), bias="bias" in entries).double()
    mean.weights.data = _tensor(weights).reshape(-1, 1)
    if "bias" in entries:
        mean.bias.data = _tensor([number(entries["bias"], "bias of the linear mean")])
    return mean


def _describe_polynomial_mean(mean: Any) -> Tree:
    lists = {name: getattr(mean, name).tolist() for name in ("coefficients", "centre", "width")}
    return {"constant": float(mean.constant), **lists}


def _polynomial_mean(entries: dict[str, object], dimension: int | None) -> Mean:
    what = "the polynomial mean"
    coefficients = matrix(entries["coefficients"], f"coefficients of {what}", MAX_COLUMNS, MAX_DEGREE)
    columns = len(_one_a_column(entries["coefficients"], f"coefficients of {what}", dimension, broadcast=False))
    listed = {name: _one_a_column(entries[name], f"{name} of {what}", columns, False) for name in ("centre", "width")}
    return PolynomialMean(
        number(entries["constant"], f"constant of {what}"),
        coefficients,
        [number(value, f"centre of {what}") for value in listed["centre"]],
        [positive(value, f"width of {what}") for value in listed["width"]],
    )


_MEANS = {
    "zero": _MeanKind(ZeroMean, lambda _: {}, lambda *_: ZeroMean()),
    "constant": _MeanKind(ConstantMean, lambda mean: {"value": float(mean.constant)}, _constant_mean, ("value",)),
    "linear": _MeanKind(LinearMean, _describe_linear_mean, _linear_mean, ("weights",), ("bias",)),
    "polynomial": _MeanKind(
        PolynomialMean,
        _describe_polynomial_mean,
        _polynomial_mean,
        ("constant", "coefficients", "centre", "width"),
    ),
}


def describe_mean(mean: Mean) -> Tree:
    """The tree of ``mean``; ``InputError`` where a file cannot hold it."""
    if isinstance(mean, Mean):
        mean = copy.deepcopy(mean).double().requires_grad_(False)
        if getattr(mean, "batch_shape", None) or any(p.dim() > 2 for p in mean.parameters()):
            raise InputError("mean has a batch shape; give one mean, not a batch.")
    kind = next((name for name, known in _MEANS.items() if type(mean) is known.mean), None)
    if type(mean) is OutputsMean:
        tree = _describe_several_means(mean)
    elif kind is not None:
        tree = {"kind": kind, **_MEANS[kind].describe(mean)}
    else:
        raise InputError(
            f"mean is of class {type(mean).__name__}, which cannot be written to a file; "
            f"use the kinds {', '.join(_MEANS)}, or make a release that you do not save."
        )
    try:
        build_mean(tree)
    except FormatError as error:
        raise InputError(f"mean cannot be written to a file: {error}") from None
    return tree


def build_mean(tree: object, dimension: int | None = None) -> Mean:
    """The float64 mean that ``tree`` describes; anything else in ``tree`` is a ``FormatError``."""
    mean = _build_several_means(tree, dimension) if _is_several(tree) else _build_mean(tree, dimension)
    mean.requires_grad_(False)
    return mean


def _build_mean(tree: object, dimension: int | None) -> Mean:
    name = kind_of(tree, "mean", _MEANS)
    kind = _MEANS[name]
    return kind.build(fields(tree, f"{name} node", ("kind", *kind.needed), kind.optional), dimension)


# ---------------------------------------------------------------- several outputs


def _is_several(tree: object) -> bool:
    return isinstance(tree, dict) and tree.get("kind") == SEVERAL


def _describe_several(kernel: OutputsKernel) -> Tree:
    terms = [
        {
            "kernel": _describe(term.kernel, 2),
            "entries": [{"output": output, **_describe_functional(functional)} for output, functional in term.entries],
            "mixing": term.mixing.tolist(),
        }
        for term in kernel.terms
    ]
    return {"kind": SEVERAL, "terms": terms}


def _build_several(tree: object, dimension: int | None, builder: _Builder) -> Kernel:
    """``dimension`` counts the column of the output's number; ``builder`` is one for all parts."""
    entries, columns = fields(tree, "kernel of several outputs", ("kind", "terms")), _input_columns(dimension)
    terms, averaged = [], 0
    for part in items(entries["terms"], "terms of the kernel", 1, MAX_TERMS):
        term = fields(part, "term of the kernel", ("kernel", "entries", "mixing"))
        pairs = tuple(_entry(entry, columns) for entry in items(term["entries"], "entries", 1, MAX_ENTRIES))
        averaged += sum(len(one.points) for _, one in pairs if isinstance(one, Average)) ** 2
        if averaged > MAX_PAIRS:
            raise FormatError(f"the averages have too many points: more than {MAX_PAIRS:,} pairs of them.")
        mixing = np.array(matrix(term["mixing"], "mixing", len(pairs), MAX_RANK))
        if len(mixing) != len(pairs):
            raise FormatError(f"mixing has {len(mixing)} rows for {len(pairs)} entries.")
        terms.append(Term(builder.build(term["kernel"], columns, 2), pairs, mixing))
    with _refusals():
        return OutputsKernel(terms)


def _entry(tree: object, columns: int | None) -> tuple[int, Functional]:
    kind = kind_of(tree, "functional", _FUNCTIONALS)
    functional = dict(fields(tree, f"{kind} node", ("kind", "output", *_FUNCTIONALS[kind].entries)))
    return whole(functional.pop("output"), "output of an entry", 0, MOST_OUTPUTS - 1), _functional(functional, columns)


def _describe_several_means(mean: OutputsMean) -> Tree:
    outputs = [
        [{"functional": _describe_functional(functional), "mean": describe_mean(part)} for functional, part in parts]
        for parts in mean.outputs
    ]
    return {"kind": SEVERAL, "outputs": outputs}


def _build_several_means(tree: object, dimension: int | None) -> Mean:
    entries, columns = fields(tree, "mean of several outputs", ("kind", "outputs")), _input_columns(dimension)
    outputs = []
    for parts in items(entries["outputs"], "outputs of the mean", 1, MOST_OUTPUTS):
        pairs = []
        for tree_of_part in items(parts, "an output of the mean", 0, MAX_ENTRIES):
            part = fields(tree_of_part, "part of the mean", ("functional", "mean"))
            pairs.append((_functional(part["functional"], columns), _build_mean(part["mean"], columns)))
        outputs.append(pairs)
    with _refusals():
        return OutputsMean(outputs)


def _input_columns(dimension: int | None) -> int | None:
    if dimension is not None and dimension < 2:
        raise FormatError(f"several outputs need an input and the number of an output, not {dimension} column.")
    return None if dimension is None else dimension - 1


@dataclass(frozen=True)
class _FunctionalKind:
    functional: type[Functional]
    build: Callable[[dict[str, object], int | None], Functional]
    entries: tuple[str, ...] = ()


def _derivative(entries: dict[str, object], columns: int | None) -> Functional:
    most = MAX_COLUMNS if columns is None else columns - 1
    return Derivative(whole(entries["column"], "column of the derivative", 0, most))


def _average(entries: dict[str, object], columns: int | None) -> Functional:
    points = np.array(matrix(entries["points"], "points of the average", MAX_POINTS, MAX_COLUMNS))
    if columns is not None and points.shape[1] != columns:
        raise FormatError(f"points of the average have {points.shape[1]} column(s), but the inputs have {columns}.")
    what = "weights of the average"
    weights = [number(weight, what) for weight in items(entries["weights"], what, 1, MAX_POINTS)]
    if len(weights) != len(points):
        raise FormatError(f"{what} has {len(weights)} entries for {len(points)} points.")
    with _refusals():
        return Average(points, weights)


_FUNCTIONALS = {
    "value": _FunctionalKind(Value, lambda *_: Value()),
    "derivative": _FunctionalKind(Derivative, _derivative, ("column",)),
    "average": _FunctionalKind(Average, _average, ("points", "weights")),
}


def _describe_functional(functional: Functional) -> Tree:
    for name, kind in _FUNCTIONALS.items():
        if type(functional) is kind.functional:
            return {"kind": name} | {entry: np.asarray(getattr(functional, entry)).tolist() for entry in kind.entries}
    raise InputError(
        f"an output is a {type(functional).__name__} of a function, which cannot be written to a file; "
        f"use the kinds {', '.join(_FUNCTIONALS)}."
    )


def _functional(tree: object, columns: int | None) -> Functional:
    kind, entries = node(tree, "functional", {name: known.entries for name, known in _FUNCTIONALS.items()})
    return _FUNCTIONALS[kind].build(entries, columns)


@contextmanager
def _refusals() -> Iterator[None]:
    """What our own classes refuse is, in a file, damage."""
    try:
        yield
    except InputError as error:
        raise FormatError(f"the model of several outputs is wrong: {error}") from None
