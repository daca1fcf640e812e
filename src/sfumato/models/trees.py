"""Kernels and means as plain trees: dicts, lists, numbers and nothing else, so a file can hold them safely.

``describe_*`` writes the actual values (a lengthscale, not GPyTorch's raw parameter) as float64;
``build_*`` reads trees that may come from anywhere: what is not exactly as expected is a ``FormatError``.

>>> tree = {"kind": "scale", "variance": 2.0, "kernel": {"kind": "rbf", "lengthscale": 0.5}}
>>> describe_kernel(build_kernel(tree)) == tree
True
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import (
    AdditiveKernel,
    ConstantKernel,
    CosineKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import ConstantMean, LinearMean, Mean, ZeroMean

from ..arrays import Array
from ..errors import FormatError, InputError
from .functionals import MAX_POINTS, Average, Derivative, Functional, Value
from .outputs import OutputsKernel, OutputsMean, Term

# Checks for trees from files: whatever is not exactly as expected is a ``FormatError`` in one short line.


def kind_and_fields(tree: object, what: str, kinds: Sequence[str]) -> tuple[dict[str, object], str]:
    if not isinstance(tree, dict):
        raise FormatError(f"a {what} must be an object with a kind, not {short(tree)}.")
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise FormatError(f"a {what} is of the unknown kind {short(kind)}; known are {', '.join(kinds)}.")
    return tree, kind


def require_entries(
    fields: dict[str, object], kind: str, needed: Sequence[str], optional: Sequence[str] = ("active_dims",)
) -> None:
    missing = [name for name in needed if name not in fields]
    if missing:
        raise FormatError(f"the {kind} node lacks {missing[0]!r}.")
    unknown = [name for name in fields if name not in ("kind", *needed, *optional)]
    if unknown:
        raise FormatError(f"the {kind} node has the unknown entry {short(unknown[0])}.")


def finite(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        wrong(what, value, "a number")
    try:
        number = float(value)
    except OverflowError:
        wrong(what, value, "a finite number")
    if not math.isfinite(number):
        wrong(what, value, "a finite number")
    return number


def positive(value: object, what: str) -> float:
    number = finite(value, what)
    if number <= 0.0:
        wrong(what, value, "positive")
    return number


def whole(value: object, least: int, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        wrong(what, value, f"a whole number from {least} to {most}")
    return value


def choice(value: object, allowed: Sequence[float], what: str) -> float:
    number = finite(value, what)
    if number not in allowed:
        wrong(what, value, f"one of {', '.join(map(str, allowed))}")
    return number


def wrong(what: str, value: object, wanted: str) -> NoReturn:
    raise FormatError(f"{what} is {short(value)}; it must be {wanted}.")


def short(value: object) -> str:
    """A value from a file, fit for one line of an error message."""
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} with {len(value)} entries"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return "an integer of enormous size"
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


# Joint kernels and means over outputs as plain trees; how their parts are written is ``model_tree``'s business.
#
# As there, ``build_*`` reads trees that may come from anywhere: what is not exactly as expected is a ``FormatError``.

KIND = "outputs"
MAX_OUTPUTS = 64
MAX_TERMS = 64
MAX_ENTRIES = 256
MAX_RANK = 256
MAX_COLUMNS = 10_000
FUNCTIONAL_KINDS = ("value", "derivative", "average")


def is_joint(tree: object) -> bool:
    """Whether a tree says that it is of a joint kernel or a joint mean."""
    return isinstance(tree, dict) and tree.get("kind") == KIND


def describe_outputs_kernel(kernel: OutputsKernel, describe: Callable[[Kernel], dict[str, Any]]) -> dict[str, Any]:
    """The tree of ``kernel``, its parts written by ``describe``."""
    terms = [
        {
            "kernel": describe(term.kernel),
            "entries": [{"output": output, **_describe_outputs(functional)} for output, functional in term.entries],
            "mixing": term.mixing.tolist(),
        }
        for term in kernel.terms
    ]
    return {"kind": KIND, "terms": terms}


def describe_outputs_mean(mean: OutputsMean, describe: Callable[[Mean], dict[str, Any]]) -> dict[str, Any]:
    """The tree of ``mean``, its parts written by ``describe``."""
    outputs = [
        [{"functional": _describe_outputs(functional), "mean": describe(part)} for functional, part in parts]
        for parts in mean.outputs
    ]
    return {"kind": KIND, "outputs": outputs}


def _describe_outputs(functional: Functional) -> dict[str, Any]:
    if isinstance(functional, Average):
        return {"kind": "average", "points": functional.points.tolist(), "weights": functional.weights.tolist()}
    if isinstance(functional, Derivative):
        return {"kind": "derivative", "column": functional.column}
    if isinstance(functional, Value):
        return {"kind": "value"}
    raise InputError(
        f"an output is a {type(functional).__name__} of a function, which cannot be written to a file; "
        f"use the kinds {', '.join(FUNCTIONAL_KINDS)}."
    )


def build_outputs_kernel(
    tree: object, dimension: int | None, build: Callable[[object, int | None], Kernel]
) -> OutputsKernel:
    """The kernel that ``tree`` describes, for rows of ``dimension`` columns, the output's number included.

    ``build`` makes a base kernel of its tree and the number of its columns.
    """
    fields, _ = kind_and_fields(tree, "kernel", (KIND,))
    require_entries(fields, KIND, ("terms",), ())
    columns = _input_columns(dimension)
    terms = []
    for term in _items(fields["terms"], 1, MAX_TERMS, "terms of the joint kernel"):
        if not isinstance(term, dict):
            raise FormatError(f"a term of the joint kernel must be an object, not {short(term)}.")
        if set(term) != {"kernel", "entries", "mixing"}:
            raise FormatError("a term of the joint kernel must have kernel, entries and mixing, and nothing else.")
        entries = tuple(_entry(entry, columns) for entry in _items(term["entries"], 1, MAX_ENTRIES, "entries"))
        mixing = _matrix(term["mixing"], len(entries), MAX_RANK, "mixing")
        if len(mixing) != len(entries):
            raise FormatError(f"mixing has {len(mixing)} rows for {len(entries)} entries.")
        terms.append(Term(build(term["kernel"], columns), entries, mixing))
    with _refusals():
        return OutputsKernel(terms)


def build_outputs_mean(tree: object, dimension: int | None, build: Callable[[object, int | None], Mean]) -> OutputsMean:
    """The mean that ``tree`` describes, for rows of ``dimension`` columns, the output's number included."""
    fields, _ = kind_and_fields(tree, "mean", (KIND,))
    require_entries(fields, KIND, ("outputs",), ())
    columns = _input_columns(dimension)
    outputs = []
    for parts in _items(fields["outputs"], 1, MAX_OUTPUTS, "outputs of the joint mean"):
        pairs = []
        for part in _items(parts, 0, MAX_ENTRIES, "an output of the joint mean"):
            if not isinstance(part, dict) or set(part) != {"functional", "mean"}:
                raise FormatError("a part of the joint mean must have functional and mean, and nothing else.")
            pairs.append((_functional(part["functional"], columns, ()), build(part["mean"], columns)))
        outputs.append(pairs)
    with _refusals():
        return OutputsMean(outputs)


def _input_columns(dimension: int | None) -> int | None:
    if dimension is not None and dimension < 2:
        raise FormatError(f"a joint model needs an input and the number of an output, but there is {dimension} column.")
    return None if dimension is None else dimension - 1


def _entry(tree: object, columns: int | None) -> tuple[int, Functional]:
    functional = _functional(tree, columns, ("output",))
    assert isinstance(tree, dict)
    return whole(tree["output"], 0, MAX_OUTPUTS - 1, "output of an entry"), functional


def _functional(tree: object, columns: int | None, also: tuple[str, ...]) -> Functional:
    fields, kind = kind_and_fields(tree, "functional", FUNCTIONAL_KINDS)
    if kind == "value":
        require_entries(fields, kind, also, ())
        return Value()
    if kind == "derivative":
        require_entries(fields, kind, (*also, "column"), ())
        most = MAX_COLUMNS if columns is None else columns - 1
        return Derivative(whole(fields["column"], 0, most, "column of the derivative"))
    require_entries(fields, kind, (*also, "points", "weights"), ())
    points = _matrix(fields["points"], MAX_POINTS, MAX_COLUMNS, "points of the average")
    if columns is not None and points.shape[1] != columns:
        raise FormatError(f"points of the average have {points.shape[1]} column(s), but the inputs have {columns}.")
    what = "weights of the average"
    weights = [finite(weight, what) for weight in _items(fields["weights"], 1, MAX_POINTS, what)]
    if len(weights) != len(points):
        raise FormatError(f"weights of the average has {len(weights)} entries for {len(points)} points.")
    with _refusals():
        return Average(points, weights)


def _items(values: object, least: int, most: int, what: str) -> list[object]:
    if not isinstance(values, list):
        raise FormatError(f"{what} must be a list, not {short(values)}.")
    if not least <= len(values) <= most:
        raise FormatError(f"{what} has {len(values)} entries; from {least} to {most} are allowed.")
    return values


def _matrix(values: object, most_rows: int, most_columns: int, what: str) -> Array:
    rows = [_items(row, 1, most_columns, f"a row of {what}") for row in _items(values, 1, most_rows, what)]
    if len({len(row) for row in rows}) != 1:
        raise FormatError(f"{what} has rows of different lengths.")
    return np.array([[finite(value, what) for value in row] for row in rows], dtype=np.float64)


@contextmanager
def _refusals() -> Iterator[None]:
    """What our own classes refuse is, in a file, damage."""
    try:
        yield
    except InputError as error:
        raise FormatError(f"the joint model is wrong: {error}") from None


MAX_DEPTH = 16
MAX_NODES = 1_000
MAX_POWER = 100
# GPyTorch walks through a kernel of depth D about 2^D times; a file must not be able to keep us busy.
MAX_WALKS = 2 ** (MAX_DEPTH + 1)
SMOOTHNESS = (0.5, 1.5, 2.5)


@dataclass(frozen=True)
class _Leaf:
    """A kernel without parts: its class, and which of its parameters are one number and which may be one a column."""

    kernel: type[Kernel]
    name: str
    numbers: tuple[str, ...] = ()
    per_column: tuple[str, ...] = ()


LEAVES = {
    "rbf": _Leaf(RBFKernel, "RBF", per_column=("lengthscale",)),
    "matern": _Leaf(MaternKernel, "Matérn", per_column=("lengthscale",)),
    "rational_quadratic": _Leaf(RQKernel, "rational quadratic", numbers=("alpha",), per_column=("lengthscale",)),
    "periodic": _Leaf(PeriodicKernel, "periodic", per_column=("lengthscale", "period_length")),
    "linear": _Leaf(LinearKernel, "linear", per_column=("variance",)),
    "polynomial": _Leaf(PolynomialKernel, "polynomial", numbers=("offset",)),
    "cosine": _Leaf(CosineKernel, "cosine", numbers=("period_length",)),
    "constant": _Leaf(ConstantKernel, "constant", numbers=("constant",)),
}
_EXTRA = {"matern": ("nu",), "polynomial": ("power",)}
COMPOSITES: dict[str, type[Kernel]] = {"sum": AdditiveKernel, "product": ProductKernel}
_KIND_OF: dict[type[Any], str] = {leaf.kernel: kind for kind, leaf in LEAVES.items()}
_KIND_OF |= {ScaleKernel: "scale", **{kernel: kind for kind, kernel in COMPOSITES.items()}}
KERNEL_KINDS = tuple(_KIND_OF.values())
MEAN_KINDS = ("zero", "constant", "linear")

# ---------------------------------------------------------------- describing


def describe_kernel(kernel: Kernel) -> dict[str, Any]:
    """The tree of ``kernel``; ``InputError`` where a file cannot hold it."""
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {kernel!r}, not a GPyTorch kernel.")
    kernel = copy.deepcopy(kernel).double().requires_grad_(False)
    if type(kernel) is OutputsKernel:
        tree = describe_outputs_kernel(kernel, lambda part: _describe(part, 2))
    else:
        tree = _describe(kernel, 1)
    try:
        build_kernel(tree)
    except FormatError as error:
        raise InputError(f"kernel cannot be written to a file: {error}") from None
    return tree


def _describe(kernel: Kernel, depth: int) -> dict[str, Any]:
    # The exact class: a subclass may compute something else under the same name.
    kind = _KIND_OF.get(type(kernel))
    if kind is None:
        raise InputError(
            f"kernel has a part of class {type(kernel).__name__}, which cannot be written to a file; "
            f"use the kinds {', '.join(KERNEL_KINDS)}, or make a release that you do not save."
        )
    if depth > MAX_DEPTH:
        raise InputError(f"kernel is nested more than {MAX_DEPTH} deep; write it as flat sums and products.")
    tree: dict[str, Any] = {"kind": kind}
    if kind in COMPOSITES:
        tree["kernels"] = [_describe(part, depth + 1) for part in kernel.kernels]
    elif kind == "scale":
        _single(kernel.outputscale.shape)
        tree["variance"] = float(kernel.outputscale)
        tree["kernel"] = _describe(kernel.base_kernel, depth + 1)
    else:
        _describe_leaf(kernel, kind, tree)
    # GPyTorch's ScaleKernel takes over the columns of its base: they are written once, at the base.
    columns, below = _columns_of(kernel), _columns_of(kernel.base_kernel) if kind == "scale" else None
    if below is not None and below != columns:
        raise InputError(
            f"kernel is a ScaleKernel on the columns {columns} of a kernel on the columns {below}; "
            "set active_dims before the kernel is scaled."
        )
    if columns is not None and below is None:
        tree["active_dims"] = columns
    return tree


def _columns_of(kernel: Kernel) -> list[int] | None:
    return None if kernel.active_dims is None else [int(i) for i in kernel.active_dims]


def _single(batch_shape: torch.Size) -> None:
    if batch_shape:
        raise InputError(f"kernel has a batch shape {tuple(batch_shape)}; give one kernel, not a batch.")


def _describe_leaf(kernel: Kernel, kind: str, tree: dict[str, Any]) -> None:
    _single(kernel.batch_shape)
    if kind == "matern":
        tree["nu"] = float(kernel.nu)
    if kind == "polynomial":
        if float(kernel.power) != int(kernel.power):
            raise InputError(f"kernel is polynomial with power {kernel.power!r}; a file holds whole powers only.")
        tree["power"] = int(kernel.power)
    for name in LEAVES[kind].numbers:
        tree[name] = float(getattr(kernel, name))
    for name in LEAVES[kind].per_column:
        values = [float(v) for v in getattr(kernel, name).reshape(-1)]
        tree[name] = values[0] if kernel.ard_num_dims is None else values


def describe_mean(mean: Mean) -> dict[str, Any]:
    """The tree of ``mean``; ``InputError`` where a file cannot hold it."""
    tree: dict[str, Any]
    if isinstance(mean, Mean):
        mean = copy.deepcopy(mean).double().requires_grad_(False)
        if getattr(mean, "batch_shape", None) or any(p.dim() > 2 for p in mean.parameters()):
            raise InputError("mean has a batch shape; give one mean, not a batch.")
    if type(mean) is OutputsMean:
        tree = describe_outputs_mean(mean, describe_mean)
    elif type(mean) is ZeroMean:
        tree = {"kind": "zero"}
    elif type(mean) is ConstantMean:
        tree = {"kind": "constant", "value": float(mean.constant)}
    elif type(mean) is LinearMean:
        tree = {"kind": "linear", "weights": [float(w) for w in mean.weights.reshape(-1)]}
        if mean.bias is not None:
            tree["bias"] = float(mean.bias)
    else:
        raise InputError(
            f"mean is of class {type(mean).__name__}, which cannot be written to a file; "
            f"use the kinds {', '.join(MEAN_KINDS)}, or make a release that you do not save."
        )
    try:
        build_mean(tree)
    except FormatError as error:
        raise InputError(f"mean cannot be written to a file: {error}") from None
    return tree


# ---------------------------------------------------------------- building


def build_kernel(tree: object, dimension: int | None = None) -> Kernel:
    """The float64 kernel that ``tree`` describes, able to read inputs of ``dimension`` columns if that is given.

    A joint kernel over outputs is allowed here, but not inside another kernel; one of its columns is the output's.

    Guarantee: whatever ``tree`` is, either a kernel comes back whose parameters are the numbers in it,
    bit for bit, or ``FormatError`` is raised.
    """
    builder = _Builder(dimension)
    if is_joint(tree):
        # one builder for all parts: together they may cost no more than one kernel
        kernel = build_outputs_kernel(tree, dimension, lambda part, columns: builder.build(part, columns, 2))
    else:
        kernel = builder.build(tree, dimension, 1)
    kernel.requires_grad_(False)
    return kernel


class _Builder:
    """Builds one tree, counting its nodes and what they cost."""

    def __init__(self, dimension: int | None) -> None:
        self.dimension = dimension
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
        fields, kind = kind_and_fields(tree, "kernel", KERNEL_KINDS)
        active = _active_dims(fields, columns)
        if active is not None:
            columns = len(active)
        if kind in COMPOSITES:
            require_entries(fields, kind, ("kernels",))
            parts = fields["kernels"]
            if not isinstance(parts, list) or not parts:
                raise FormatError(f"the {kind} kernel needs a list of kernels, not {short(parts)}.")
            kernel = COMPOSITES[kind](*[self.build(part, columns, depth + 1) for part in parts])
        elif kind == "scale":
            kernel = self._build_scale(fields, columns, depth)
        else:
            kernel = _build_leaf(kind, fields, columns)
        if active is not None:
            kernel.active_dims = torch.tensor(active, dtype=torch.long, device="cpu")
        return kernel

    def _build_scale(self, fields: dict[str, object], columns: int | None, depth: int) -> Kernel:
        require_entries(fields, "scale", ("variance", "kernel"))
        variance = positive(fields["variance"], "the variance of the scale kernel")
        base = self.build(fields["kernel"], columns, depth + 1)
        if "active_dims" in fields and base.active_dims is not None:
            raise FormatError("a scale kernel and the kernel in it both have active_dims; only one of them may.")
        # Without a transform the parameter is the value itself, so nothing is lost in a round trip.
        kernel = ScaleKernel(base, outputscale_constraint=_as_is()).double()
        kernel.outputscale = _tensor([variance])[0]
        return kernel


def _build_leaf(kind: str, fields: dict[str, object], columns: int | None) -> Kernel:
    leaf = LEAVES[kind]
    require_entries(fields, kind, (*leaf.numbers, *leaf.per_column, *_EXTRA.get(kind, ())))
    values = {name: [positive(fields[name], f"{name} of the {kind} kernel")] for name in leaf.numbers}
    options: dict[str, Any] = {f"{name}_constraint": _as_is() for name in (*leaf.numbers, *leaf.per_column)}
    for name in leaf.per_column:
        given = fields[name]
        if isinstance(given, list):
            values[name] = _positives(given, f"{name} of the {kind} kernel", columns)
            if options.setdefault("ard_num_dims", len(given)) != len(given):
                raise FormatError(f"the {kind} kernel has {len(given)} values of {name}, not one for each column.")
        else:
            values[name] = [positive(given, f"{name} of the {kind} kernel")]
    if any(isinstance(fields[name], list) != ("ard_num_dims" in options) for name in leaf.per_column):
        raise FormatError(f"the {kind} kernel must have one value a column for all of {', '.join(leaf.per_column)}.")
    if kind == "matern":
        options["nu"] = choice(fields["nu"], SMOOTHNESS, "nu of the matern kernel")
    if kind == "polynomial":
        options["power"] = whole(fields["power"], 1, MAX_POWER, "power of the polynomial kernel")
    kernel = leaf.kernel(**options).double()
    for name, numbers in values.items():
        shape = getattr(kernel, name).shape
        setattr(kernel, name, _tensor(numbers).reshape(shape))
    return kernel


def build_mean(tree: object, dimension: int | None = None) -> Mean:
    """The float64 mean that ``tree`` describes; anything else in ``tree`` is a ``FormatError``."""
    if is_joint(tree):
        return build_outputs_mean(tree, dimension, _build_mean).requires_grad_(False)
    return _build_mean(tree, dimension)


def _build_mean(tree: object, dimension: int | None) -> Mean:
    fields, kind = kind_and_fields(tree, "mean", MEAN_KINDS)
    mean: Mean
    if kind == "zero":
        require_entries(fields, kind, (), ())
        mean = ZeroMean()
    elif kind == "constant":
        require_entries(fields, kind, ("value",), ())
        mean = ConstantMean().double()
        mean.constant = _tensor([finite(fields["value"], "value of the constant mean")])[0]
    else:
        require_entries(fields, kind, ("weights",), ("bias",))
        weights = fields["weights"]
        if not isinstance(weights, list):
            raise FormatError(f"weights of the linear mean must be a list, not {short(weights)}.")
        _count(weights, "weights of the linear mean", dimension, broadcast=False)
        numbers = [finite(w, "weights of the linear mean") for w in weights]
        # GPyTorch draws random weights first; the caller's random numbers must not notice.
        with torch.random.fork_rng(devices=[]):
            mean = LinearMean(len(numbers), bias="bias" in fields).double()
        mean.weights.data = _tensor(numbers).reshape(-1, 1)
        if "bias" in fields:
            mean.bias.data = _tensor([finite(fields["bias"], "bias of the linear mean")])
    mean.requires_grad_(False)
    return mean


def _as_is() -> Positive:
    return Positive(transform=None, inv_transform=None)


def _tensor(numbers: list[float]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64, device="cpu")


# ---------------------------------------------------------------- checking


def _positives(values: list[object], what: str, columns: int | None) -> list[float]:
    _count(values, what, columns, broadcast=True)
    return [positive(value, what) for value in values]


def _count(values: list[object], what: str, columns: int | None, broadcast: bool) -> None:
    if not 1 <= len(values) <= MAX_COLUMNS:
        raise FormatError(f"{what} has {len(values)} entries; from 1 to {MAX_COLUMNS} are allowed.")
    if columns is not None and len(values) != columns and not (broadcast and len(values) == 1):
        raise FormatError(f"{what} has {len(values)} entries for {columns} column(s).")


def _active_dims(fields: dict[str, object], columns: int | None) -> list[int] | None:
    if "active_dims" not in fields:
        return None
    given = fields["active_dims"]
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_COLUMNS:
        wrong("active_dims", given, f"a list of 1 to {MAX_COLUMNS} column numbers")
    most = MAX_COLUMNS if columns is None else columns - 1
    return [whole(index, 0, most, "active_dims") for index in given]
