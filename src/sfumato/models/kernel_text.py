"""Kernels as people write them: ``"rbf + periodic(period=1) * rbf"``.

A text becomes names with columns and given values (``Named``), joined by sums and products (``Joined``). Each term of a
sum has a variance of its own, a product has one: what stands in brackets inside a product is relative to its first
term.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..text import close_match, listed, number_text
from .kernel_kinds import KINDS
from .trees import Tree
from .trends import DEGREES, places_of

#: The longest text, far beyond any kernel that can be fitted, and how deep sums and products may lie in each other.
LONGEST, DEEPEST = 2_000, 6

Found = TypeVar("Found")


@dataclass(frozen=True)
class Name:
    """A kernel that has a name: its tree without parameters, and what may be given in brackets for which of them."""

    tree: Tree
    arguments: dict[str, str]


_SCALE = {"lengthscale": "lengthscale"}
NAMES = {
    "rbf": Name({"kind": "rbf"}, _SCALE),
    "matern12": Name({"kind": "matern", "nu": 0.5}, _SCALE),
    "matern32": Name({"kind": "matern", "nu": 1.5}, _SCALE),
    "matern52": Name({"kind": "matern", "nu": 2.5}, _SCALE),
    "rq": Name({"kind": "rational_quadratic"}, {**_SCALE, "alpha": "alpha"}),
    "periodic": Name({"kind": "periodic"}, {"period": "period_length", **_SCALE}),
    **{name: Name({"kind": "trend", "power": degree}, {"centre": "centre"}) for name, degree in DEGREES.items()},
}
ALLOWED = (
    f'one of {", ".join(NAMES)}, and sums, products and brackets of them, such as "rbf + periodic(period=1) * rbf"'
)


@dataclass(frozen=True, eq=False)
class Named:
    """A kernel with a name, on these columns.

    Parameters that are ``given`` are not fitted, nor are those that ``follow`` from the rows.
    """

    name: str
    columns: tuple[int, ...]
    given: dict[str, Any] = field(default_factory=dict)
    follow: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return str(NAMES[self.name].tree["kind"])

    @property
    def fixed(self) -> dict[str, Any]:
        return {**self.follow, **self.given}

    @property
    def free(self) -> list[str]:
        """The parameters that are to be fitted."""
        return [parameter.name for parameter in KINDS[self.kind].parameters if parameter.name not in self.fixed]


@dataclass(frozen=True, eq=False)
class Joined:
    """A sum or a product of at least two parts, none of them of its own kind."""

    kind: Literal["sum", "product"]
    parts: tuple[Named | Joined, ...]


KernelText = Named | Joined


def parse_kernel(text: str, names: Sequence[str], owners: Sequence[str] = ()) -> KernelText:
    """What ``text`` says about inputs whose columns have these ``names``; ``InputError`` where it says nothing.

    ``owners`` are the columns of a table that columns came from: the name of a category stands for all its levels.
    """
    if len(text) > LONGEST:
        raise InputError(f"kernel is a text of {len(text)} characters; give {ALLOWED}.")
    try:
        found = _Reading(text, names, owners or names).read(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"kernel is {text!r}, which cannot be read; give {ALLOWED}.") from None
    if _depth(found) > DEEPEST:
        raise InputError(f"kernel is {text!r}, with brackets more than {DEEPEST} deep; multiply some of them out.")
    return found


def _depth(text: KernelText) -> int:
    return 0 if isinstance(text, Named) else 1 + max(_depth(part) for part in text.parts)


def named_parts(text: KernelText) -> list[Named]:
    """The kernels with names in ``text``, from left to right."""
    return [text] if isinstance(text, Named) else [part for inner in text.parts for part in named_parts(inner)]


def assemble(
    text: KernelText,
    leaf: Callable[[Named], Found],
    scale: Callable[[Found, KernelText, bool], Found],
    join: Callable[[str, list[Found]], Found],
) -> Found:
    """A value for ``text``, made from its names up.

    ``scale`` gives a part its variance: it is handed what was found for the part, the part, and whether its variance
    is relative, inside a product.
    """

    def term(part: KernelText, relative: bool) -> Found:
        if isinstance(part, Joined) and part.kind == "sum":
            return total(part, relative)
        return scale(bare(part), part, relative)

    def total(part: Joined, relative: bool) -> Found:
        first, *others = part.parts
        begun = bare(first) if relative else term(first, False)
        return join("sum", [begun, *(term(other, relative) for other in others)])

    def bare(part: KernelText) -> Found:
        if isinstance(part, Named):
            return leaf(part)
        if part.kind == "sum":
            return total(part, True)
        return join("product", [bare(factor) for factor in part.parts])

    return term(text, False)


def in_text(text: KernelText, names: Sequence[str]) -> str:
    """``text`` as it can be written again.

    >>> in_text(parse_kernel("rbf+(rbf+linear)*periodic(period=12,column=month)", ["year", "month"]), ["year", "month"])
    'rbf + (rbf + linear) * periodic(period=12, column=month)'
    """
    if isinstance(text, Named):
        given = [
            (key, text.given[parameter])
            for key, parameter in NAMES[text.name].arguments.items()
            if parameter in text.given
        ]
        said = [f"{key}={_number_in_text(value)}" for key, value in given]
        if text.columns != tuple(range(len(names))):
            columns = [_column_in_text(names[column]) for column in text.columns]
            said.append(f"column={columns[0]}" if len(columns) == 1 else f"column=[{', '.join(columns)}]")
        return f"{text.name}({', '.join(said)})" if said else text.name
    if text.kind == "sum":
        return " + ".join(in_text(part, names) for part in text.parts)
    inner = [in_text(part, names) for part in text.parts]
    brackets = [isinstance(part, Joined) for part in text.parts]
    return " * ".join(f"({one})" if around else one for one, around in zip(inner, brackets, strict=True))


def _number_in_text(value: Any) -> str:
    values = np.atleast_1d(value).tolist()
    return number_text(values[0]) if len(set(values)) == 1 else f"[{', '.join(map(number_text, values))}]"


def _column_in_text(name: str) -> str:
    return name if name.isidentifier() else repr(name)


@dataclass(frozen=True)
class _Reading:
    text: str
    names: Sequence[str]
    owners: Sequence[str]

    def wrong(self, message: str) -> InputError:
        return InputError(f"kernel is {self.text!r}: {message}")

    def said(self, node: ast.AST) -> str:
        return repr(ast.unparse(node))

    def read(self, node: ast.expr) -> KernelText:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            parts = [self.read(node.left), self.read(node.right)]
            return _joined("sum" if isinstance(node.op, ast.Add) else "product", parts)
        if isinstance(node, ast.Name):
            return self.named(node.id, [])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.args and node.func.id in NAMES:
                first = next(iter(NAMES[node.func.id].arguments))
                raise self.wrong(
                    f"{self.said(node)} has a value without a name; write for example "
                    f"{node.func.id}({first}={ast.unparse(node.args[0])})."
                )
            return self.named(node.func.id, node.keywords)
        raise self.wrong(f"{self.said(node)} is no kernel; give {ALLOWED}.")

    def named(self, name: str, keywords: list[ast.keyword]) -> Named:
        if name == self.text.strip() and name not in NAMES:
            raise InputError(f"kernel is {name!r}; give {ALLOWED}, or a GPyTorch kernel.{close_match(name, NAMES)}")
        if name not in NAMES:
            raise self.wrong(f"{name!r} is no kernel that is known.{close_match(name, NAMES)} Give {ALLOWED}.")
        arguments = NAMES[name].arguments
        columns, given = tuple(range(len(self.names))), {}
        for keyword in keywords:
            if keyword.arg == "column":
                columns = self.columns(keyword.value)
            elif keyword.arg not in arguments:
                known = ", ".join((*arguments, "column"))
                said = "**" if keyword.arg is None else keyword.arg
                raise self.wrong(f"{name} has no {said!r}; in its brackets it may have {known}.")
        for argument, node in ((keyword.arg, keyword.value) for keyword in keywords):
            if argument in arguments:
                given[arguments[argument]] = self.values(f"{argument} of {name}", node, columns, argument)
        if name == "periodic" and len(columns) > 1:
            shown = _column_in_text(self.names[columns[0]])
            raise self.wrong(
                f"periodic needs one column, and {len(columns)} are there ({listed(self.names, 8)}); write for example "
                f"periodic(column={shown})."
            )
        return Named(name, columns, given)

    def columns(self, node: ast.expr) -> tuple[int, ...]:
        entries = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
        found = tuple(column for entry in entries for column in self.column(entry))
        if not found or len(set(found)) < len(found):
            raise self.wrong(f"column is {self.said(node)}; give different columns, at least one.")
        return found

    def column(self, node: ast.expr) -> list[int]:
        what = node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
        if isinstance(what, str) and what in (*self.names, *self.owners):
            called = self.names if what in self.names else self.owners
            return [place for place, name in enumerate(called) if name == what]
        if isinstance(what, int) and not isinstance(what, bool) and 0 <= what < len(self.names):
            return [what]
        known = list(dict.fromkeys(self.owners))
        raise self.wrong(
            f"column is {self.said(node)}, but the columns are {listed(known, 8)}; give one of these names "
            f"(in quotes where it has blanks), or a number from 0 to {len(self.names) - 1}."
        )

    def values(self, what: str, node: ast.expr, columns: tuple[int, ...], argument: str) -> Any:
        """A number, or one for each column."""
        if isinstance(node, (ast.List, ast.Tuple)) and argument != "alpha":
            listed_values = [self.number(what, entry, argument) for entry in node.elts]
            owners = list(dict.fromkeys(self.owners[column] for column in columns))
            if len(listed_values) == len(owners):  # one for all levels of a category
                listed_values = [listed_values[owners.index(self.owners[column])] for column in columns]
            if len(listed_values) != len(columns):
                raise self.wrong(
                    f"{what} is {self.said(node)}, {len(listed_values)} values for {len(columns)} column(s); give one "
                    "number, or one for each column."
                )
            return np.array(listed_values)
        value = self.number(what, node, argument)
        return value if argument == "alpha" else np.full(len(columns), value)

    def number(self, what: str, node: ast.expr, argument: str) -> float:
        value = _value(node)
        if value is None or not math.isfinite(value) or (argument != "centre" and value <= 0.0):
            kind = "a number" if argument == "centre" else "a positive number"
            units = "" if argument == "alpha" else ", in the units of X"
            raise self.wrong(f"{what} is {self.said(node)}; give {kind}{units}.")
        return value


def _value(node: ast.expr) -> float | None:
    """A number, a fraction or a product of numbers, such as 1/12; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
        left, right = _value(node.left), _value(node.right)
        if left is None or right is None or (isinstance(node.op, ast.Div) and right == 0.0):
            return None
        return left * right if isinstance(node.op, ast.Mult) else left / right
    return None


def _joined(kind: Literal["sum", "product"], parts: list[KernelText]) -> Joined:
    """A flat sum or product."""
    flat = [
        inner for part in parts for inner in (part.parts if isinstance(part, Joined) and part.kind == kind else (part,))
    ]
    return Joined(kind, tuple(flat))


def with_trend_places(text: KernelText, X: Array) -> KernelText:
    """``text`` with the centre and the width of each trend: the middle of the rows and half their range."""
    if isinstance(text, Joined):
        return Joined(text.kind, tuple(with_trend_places(part, X) for part in text.parts))
    if text.kind != "trend":
        return text
    seen = X[:, list(text.columns)]
    return replace(text, follow=places_of(seen))
