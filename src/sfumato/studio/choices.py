"""Everything the owner chose, as one value: it can be saved to a small file, opened, and turned into programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from ..cli import Fit
from ..errors import FormatError, InputError
from ..promise import Objective
from ..text import plain
from ..tree_checks import fields as checked_fields
from ..tree_checks import items, number, text, whole
from .publication import plain_name

Source = Literal["file", "upload", "demo", "notebook"]
Level = Literal["alpha", "floor"]

#: The name of the entry that makes a JSON text a file of choices, and its version.
MARK, VERSION = "sfumato-studio", 1

#: The choices that say how the prior is found.
OF_FIT = tuple(field.name for field in fields(Fit))

#: No file of choices is longer, no text in it, and no list.
MOST_CHARACTERS, LONGEST, MOST_ITEMS = 1_000_000, 10_000, 1000


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What is protected, where, how well and under which prior; the words are those of ``sfumato protect``.

    ``data`` is the path or the name of a file, or the name of a demo. Of ``regions``, texts that ``sf.parse_region``
    reads, all are meant. ``insiders`` are "rows" or a column of labels. ``value`` is that of α or of the floor, as
    ``level`` says.
    """

    data: str = ""
    source: Source = "file"
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    drop_missing: bool = False
    inputs: tuple[str, ...] = ()
    output: str = ""
    kernel: str = "matern52"
    lengthscale: float | None = None
    mean: str = "constant"
    coefficients: str = "published"
    noise: str = "learn"
    fit_outside: bool = True
    fit_rows: int | None = None
    regions: tuple[str, ...] = ()
    protects: Literal["both", "function", "records"] = "both"
    insiders: str | None = None
    level: Level = "alpha"
    value: float = 0.1
    objective: Objective = "noise"
    accept: tuple[str, ...] = ()
    ledger: str | None = None
    share: float | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """``alpha`` or ``floor``, as ``sf.protect`` takes it."""
        return {self.level: self.value}

    @property
    def fit(self) -> Fit:
        """How the prior is found, as ``sfumato protect`` is told."""
        return Fit(**{name: getattr(self, name) for name in OF_FIT})

    @property
    def is_rehearsed(self) -> bool:
        """Where only records are promised readers may know the function, and α says nothing of it to try."""
        return self.protects != "records" or self.level == "floor"

    def to_json(self) -> str:
        """The text of a file that ``from_json`` reads."""
        return json.dumps({MARK: VERSION, **plain(asdict(self))}, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, content: str | bytes) -> Choices:
        """What a file of choices says; a ``FormatError`` for anything else.

        >>> Choices.from_json(Choices(data="orbit.csv", inputs=("t",)).to_json()).inputs
        ('t',)
        """
        try:
            content = content if isinstance(content, str) else content.decode()
        except UnicodeDecodeError:
            raise FormatError("this is no file of choices (it is no text); save one in the studio.") from None
        if len(content) > MOST_CHARACTERS:
            raise FormatError(
                f"a file of choices has at most {MOST_CHARACTERS:,} characters; this has {len(content):,}."
            )
        try:
            tree = json.loads(content)
        except (ValueError, RecursionError):
            raise FormatError("this is no file of choices (it is no JSON); save one in the studio.") from None
        names = [field.name for field in fields(cls)]
        given = checked_fields(tree, "file of choices", (MARK,), names)
        if given[MARK] != VERSION or isinstance(given[MARK], bool):
            raise FormatError(f"these choices are of version {str(given[MARK])[:20]}; this sfumato reads {VERSION}.")
        return cls(**{name: _READERS[name](given[name], name) for name in names if name in given})

    def changed(self, **changes: Any) -> Choices:
        """These choices with others, each checked by itself."""
        for name, value in changes.items():
            if name not in _READERS:
                raise InputError(f"{name!r} is no choice; choose one of {', '.join(_READERS)}.")
            tree = list(value) if isinstance(value, tuple) else value
            try:
                changes[name] = _READERS[name](tree, name)
            except FormatError as error:
                raise InputError(str(error)) from None
        return replace(self, **changes)


def _text(value: object, name: str, shortest: int = 0) -> str:
    found = text(value, name, LONGEST, shortest)
    try:
        found.encode()
    except UnicodeEncodeError:  # half of a character, which JSON can hold and no file
        raise FormatError(f"{name} has half a character in it; it must be text.") from None
    return found


def _some_text(value: object, name: str) -> str | None:
    return None if value is None else _text(value, name, 1)


def _texts(values: object, name: str) -> tuple[str, ...]:
    return tuple(_text(value, name, 1) for value in items(values, name, most=MOST_ITEMS))


def _ledger(value: object, name: str) -> str | None:
    """A ledger lies in the folder that the studio was started in, as all that it writes."""
    if value is None:
        return None
    try:
        return plain_name(_text(value, name), "ledger")
    except InputError as error:
        raise FormatError(str(error)) from None


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise FormatError(f"{name} must be true or false.")
    return value


def _one_of(*allowed: str) -> Any:
    def read(value: object, name: str) -> str:
        if value not in allowed:
            raise FormatError(f"{name} must be one of {', '.join(allowed)}.")
        return str(value)

    return read


def _lengthscale(value: object, name: str) -> float | None:
    return None if value is None else _above_zero(value, name)


def _above_zero(value: object, name: str) -> float:
    found = number(value, name)
    if found <= 0.0:
        raise FormatError(f"{name} is {found:g}; it must be above 0.")
    return found


def _share(value: object, name: str) -> float | None:
    if value is None:
        return None
    found = _above_zero(value, name)
    if found > 1.0:
        raise FormatError(f"{name} is {found:g}; it must be at most 1.")
    return found


def _rows(value: object, name: str) -> int | None:
    return None if value is None else whole(value, name, 2, 10**12)


_READERS: dict[str, Any] = {
    "data": _text,
    "source": _one_of(*get_args(Source)),
    "sep": _some_text,
    "decimal": _some_text,
    "encoding": _some_text,
    "drop_missing": _flag,
    "inputs": _texts,
    "output": _text,
    "kernel": _text,
    "lengthscale": _lengthscale,
    "mean": _text,
    "coefficients": _one_of("published", "integrated"),
    "noise": _text,
    "fit_outside": _flag,
    "fit_rows": _rows,
    "regions": _texts,
    "protects": _one_of("both", "function", "records"),
    "insiders": _some_text,
    "level": _one_of(*get_args(Level)),
    "value": _above_zero,
    "objective": _one_of(*get_args(Objective)),
    "accept": _texts,
    "ledger": _ledger,
    "share": _share,
}
