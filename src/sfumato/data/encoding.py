"""How the input columns of a table become columns of numbers, and back: numbers, dates and times, categories.

A number is itself (yes and no are 1 and 0). A date is how long it is after 1970-01-01, in one unit for the column. A
text or category column becomes one column of 0 and 1 for each level, named ``species=Adelie``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from ..arrays import Array, Mask
from ..errors import FormatError, InputError
from ..text import close_match, number_text, some_of, span_text
from ..tree_checks import items, node, text, texts
from .columns import is_text, require_columns, require_numbers, require_once

Kind: TypeAlias = Literal["number", "date", "category"]
Finest: TypeAlias = Literal["us", "m", "D"]

#: The units of dates, in microseconds.
UNITS = {"days": 86_400_000_000, "hours": 3_600_000_000, "seconds": 1_000_000}

_ONE = np.timedelta64(1, "us")

#: Dates that are all within so many hours are told in hours, within one hour in seconds, and others in days.
_HOURS = 48

#: A category may have this many levels; and a text column with a level of its own for each row, in more rows than
#: this, is taken for an identifier.
MOST_LEVELS, _FEW_ROWS = 50, 12

#: Files may have this many columns, and names and levels of this many characters.
_MOST_COLUMNS, _LONGEST = 10_000, 1000

_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?")
_ISO_ZONED = re.compile(_ISO.pattern + r"(?:Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True)
class Column:
    """One input column of a table: its kind, with the ``unit`` of dates or the ``levels`` of a category.

    ``utc`` says of dates that they had a time zone; they are told in UTC.
    """

    name: str
    kind: Kind = "number"
    unit: str = ""
    utc: bool = False
    levels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns of numbers."""
        return tuple(f"{self.name}={level}" for level in self.levels) if self.kind == "category" else (self.name,)

    def encode(self, values: pd.Series[Any], title: str, written: str) -> Array:
        """The columns of numbers; ``title`` is what a message calls the column, ``written`` how a program has it."""
        if self.kind == "number":
            require_numbers(values.dtype, title, written)
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))[:, None]
        if self.kind == "date":
            moments = _moments(values, title, self)
            _refuse_missing(np.isnat(moments), title)
            return from_moments(moments, self.unit)[:, None]
        labels = _labels(values)
        _refuse_missing(np.array([label is None for label in labels], dtype=np.bool_), title)
        unknown = next((label for label in labels if label not in self.levels), None)
        if unknown is not None:
            raise InputError(
                f"{title} has the value {unknown[:60]!r}, which the model does not know; it knows "
                f"{some_of(self.levels, 20)}.{close_match(unknown, self.levels)} Leave these rows out, or fit again "
                "with rows that have it."
            )
        places = {level: place for place, level in enumerate(self.levels)}
        return np.eye(len(self.levels))[[places[str(label)] for label in labels]]

    def decode(self, values: Array) -> Any:
        """The column as people have it, from its columns of numbers."""
        if self.kind == "date":
            return pd.Series(to_moments(values[:, 0], self.unit)).dt.tz_localize("UTC" if self.utc else None)
        if self.kind == "category":
            return pd.Categorical.from_codes(values.argmax(axis=1), categories=pd.Index(self.levels))
        return values[:, 0]

    def value_in_words(self, values: Array, digits: int = 6, finest: Finest = "us") -> str | None:
        """One value for people, "1985-01-01" or "Adelie"; None where numbers between 0 and 1 are no level."""
        if self.kind == "date":
            return self.date_in_words(float(values[0]), finest)
        if self.kind == "number":
            return f"{values[0]:.{digits}g}"
        near = np.eye(len(self.levels))[int(values.argmax())]
        return self.levels[int(values.argmax())] if np.allclose(values, near, atol=1e-4) else None

    def date_in_words(self, value: float, finest: Finest = "us") -> str:
        """A date, to the minute ("m") or day ("D") where no more matters and its unit is days."""
        if not abs(value) * UNITS[self.unit] < 2.0**60:
            return f"{value:g} {self.unit}"
        moment = to_moments(np.array([value]), self.unit)[0]
        if self.unit == "days":
            half = np.timedelta64({"D": 43_200, "m": 30, "us": 0}[finest], "s")
            moment = (moment + half).astype(f"datetime64[{finest}]")
        return moment_text(moment) + (" UTC" if self.utc else "")

    @property
    def in_words(self) -> str:
        """What became of the column."""
        if self.kind == "date":
            return f"{self.name}: {self.unit} since 1970-01-01{' in UTC' if self.utc else ''}"
        if self.kind == "category":
            return f"{self.name}: 0 or 1 for each of {some_of(self.levels, 8)}"
        return f"{self.name}: a number"


@dataclass(frozen=True)
class Encoding:
    """The input columns of a table, in their order; at least one of them is not just numbers."""

    columns: tuple[Column, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the columns of the table."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return tuple(name for column in self.columns for name in column.names)

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where the columns of numbers of each column are."""
        ends = np.cumsum([0, *(len(column.names) for column in self.columns)]).tolist()
        return tuple(slice(start, stop) for start, stop in pairwise(ends))

    @property
    def parts(self) -> tuple[tuple[Column, slice], ...]:
        """Each column, and where its columns of numbers are."""
        return tuple(zip(self.columns, self.places, strict=True))

    @classmethod
    def of(cls, frame: pd.DataFrame, name: str) -> Encoding | None:
        """How the columns of ``frame`` become numbers; None where all of them are."""
        found = cls(tuple(as_column(str(c), frame[c], name) for c in frame))
        if all(column.kind == "number" for column in found.columns):
            return None
        require_once(name, found.names)
        return found

    def encode(self, frame: pd.DataFrame, name: str) -> Array:
        """The rows of ``frame`` in numbers, its columns found by their names."""
        columns = [str(c) for c in frame.columns]
        require_columns(name, self.sources, columns)
        table = frame.set_axis(columns, axis=1)
        blocks = [
            column.encode(table[column.name], f"{name} column {column.name!r}", f"{name}[{column.name!r}]")
            for column in self.columns
        ]
        return np.hstack(blocks)

    def decode(self, values: Array) -> pd.DataFrame:
        """The table again, from rows of numbers."""
        return pd.DataFrame({column.name: column.decode(values[:, place]) for column, place in self.parts})

    def of_number(self, place: int) -> Column:
        """The column of the table that a column of numbers came from."""
        return next(c for c, at in self.parts if place < at.stop)

    def column(self, name: str) -> tuple[Column, slice] | None:
        """The column of the table with this name, and where its numbers are."""
        return next(((c, at) for c, at in self.parts if c.name == name), None)

    def place_in_words(self, row: Array, digits: int = 6, finest: Finest = "us") -> list[str]:
        """One row for people: "date = 1985-01-01", "species = Adelie"."""
        said = []
        for column, place in self.parts:
            value = column.value_in_words(row[place], digits, finest)
            if value is not None:
                said.append(f"{column.name} = {value}")
            else:
                said += [f"{name} = {share:.{digits}g}" for name, share in zip(column.names, row[place], strict=True)]
        return said

    def ranges_in_words(self, lower: Array, upper: Array, asked: Mask | None = None) -> list[str]:
        """What rows between these ends have in each column that is ``asked`` for: "1958-03-29 ≤ date ≤ 2001-12-29"."""
        said = []
        for column, place in self.parts:
            low, high = lower[place], upper[place]
            if asked is not None and not asked[place].any():
                continue
            if column.kind == "category":
                there = [level for level, most in zip(column.levels, high, strict=True) if most > 0.0]
                said.append(
                    f"{column.name} = {there[0]}" if len(there) == 1 else f"{column.name} in ({', '.join(there)})"
                )
            else:
                texts = [
                    column.date_in_words(float(v), "m") if column.kind == "date" else f"{v:.6g}"
                    for v in (low[0], high[0])
                ]
                said.append(span_text(column.name, *texts))
        return said

    @property
    def in_words(self) -> str:
        """What became of the columns that are not just numbers."""
        return "; ".join(column.in_words for column in self.columns if column.kind != "number")

    def to_tree(self) -> list[dict[str, Any]]:
        """This encoding as plain JSON values."""
        trees = []
        for column in self.columns:
            tree: dict[str, Any] = {"kind": column.kind, "name": column.name}
            if column.kind == "date":
                tree |= {"unit": column.unit, "utc": column.utc}
            if column.kind == "category":
                tree |= {"levels": list(column.levels)}
            trees.append(tree)
        return trees

    @classmethod
    def from_tree(cls, tree: object) -> Encoding:
        """What ``to_tree`` wrote; anything else raises ``FormatError``."""
        entries: dict[str, tuple[str, ...]] = {"number": ("name",), "date": ("name", "unit", "utc")}
        entries["category"] = ("name", "levels")
        columns = []
        for one in items(tree, "the encoding", 1, _MOST_COLUMNS):
            kind, parts = node(one, "column", entries)
            name = text(parts["name"], "the name of a column", _LONGEST)
            if kind == "category":
                items(parts["levels"], "the levels of a column", 1, MOST_LEVELS)
                levels = texts(parts["levels"], "the levels of a column", _LONGEST, distinct=True)
                columns.append(Column(name, "category", levels=levels))
            elif kind == "date":
                if parts["unit"] not in UNITS or not isinstance(parts["utc"], bool):
                    raise FormatError(f"the column {name[:60]!r} has dates in a unit that is not known.")
                columns.append(Column(name, "date", str(parts["unit"]), parts["utc"]))
            else:
                columns.append(Column(name))
        found = cls(tuple(columns))
        if len(set(found.names)) < len(found.names) or len(set(found.sources)) < len(found.sources):
            raise FormatError("the encoding names a column twice.")
        if all(column.kind == "number" for column in found.columns):
            raise FormatError("the encoding has numbers alone, which need none.")
        return found

    def fits(self, values: Array) -> bool:
        """Whether rows of numbers can be those of a table: a category has one level, or an average of several."""
        if values.shape[1] != len(self.names):
            return False
        shares = [values[:, place] for column, place in self.parts if column.kind == "category"]
        return all(np.all(one >= 0.0) and np.allclose(one.sum(axis=1), 1.0, rtol=1e-6) for one in shares)


def as_moment(value: Any, what: str, *, last: bool = False) -> np.datetime64 | None:
    """A date or time, such as "1985-01-01" or a Timestamp, to the microsecond; None where it is none.

    Of a month or another period it is the first moment, or the ``last``; a day is its first.
    """
    if isinstance(value, str):
        text = value.strip()
        if not _ISO.fullmatch(text):
            return None
        try:
            return np.datetime64(text.replace(" ", "T"), "us")
        except ValueError:
            raise InputError(f"{what} is {value!r}, which is no date; give one such as 1985-01-31.") from None
    if not isinstance(value, (np.datetime64, pd.Timestamp, pd.Period)) and not hasattr(value, "isoformat"):
        return None
    if isinstance(value, np.datetime64) and np.datetime_data(value)[0] in "YMW" and not np.isnat(value):
        first, after = (one.astype("datetime64[us]") for one in (value, value + 1))
        return np.datetime64(after - _ONE if last else first)
    try:
        stamp: Any = pd.Timestamp(value) if not isinstance(value, pd.Period) else value.to_timestamp()
    except (TypeError, ValueError):
        return None  # a time of the day, for example
    if stamp is pd.NaT:
        raise InputError(f"{what} is no date; give one such as 1985-01-31, or None for an open side.")
    if isinstance(value, pd.Period) and last:
        stamp = (value + 1).to_timestamp() - pd.Timedelta(1, "us")
    if stamp.tzinfo is not None:
        raise InputError(f"{what} is {value}, with a time zone; give it in UTC and without one.")
    moment: np.datetime64 = stamp.to_datetime64().astype("datetime64[us]")
    return moment


def end_of_day(moment: np.datetime64) -> np.datetime64:
    """The last moment of the day that begins then; a moment within a day is itself."""
    day = moment.astype("datetime64[D]")
    return np.datetime64((day + 1).astype("datetime64[us]") - _ONE) if day == moment else moment


def from_moments(moments: Any, unit: str) -> Array:
    """How long moments are after 1970-01-01, in ``unit``."""
    whole, rest = np.divmod(np.asarray(moments).astype("datetime64[us]").astype(np.int64), UNITS[unit])
    return np.asarray(whole + rest / UNITS[unit], dtype=np.float64)


def to_moments(values: Array, unit: str) -> Any:
    """The moments that are ``values`` of the unit after 1970-01-01, to the microsecond."""
    whole = np.floor(values)
    rest = np.rint((values - whole) * UNITS[unit]).astype(np.int64)
    return (whole.astype(np.int64) * UNITS[unit] + rest).astype("datetime64[us]")


def moment_text(moment: np.datetime64) -> str:
    """
    >>> moment_text(np.datetime64("1985-01-01", "us")), moment_text(np.datetime64("1985-01-01T12:30", "us"))
    ('1985-01-01', '1985-01-01T12:30')
    """
    text = str(moment.astype("datetime64[us]"))
    for ending in (".000000", ":00", "T00:00"):
        if not text.endswith(ending):
            break
        text = text[: -len(ending)]
    return text


def as_column(name: str, values: Any, table: str) -> Column:
    """What kind of column this is; refuses what cannot be meant."""
    title, written = f"{table} column {name!r}", f"{table}[{name!r}]"
    kind = _kind(values, title, written)
    if kind == "number":
        return Column(name)
    if kind == "date":
        column = Column(name, "date", "days", utc=_is_zoned(values))
        moments = _moments(values, title, column)
        if len(moments) == 0 or np.isnat(moments).any():
            return column
        span = (moments.max() - moments.min()).astype(np.int64)
        unit = "days" if span == 0 or span > _HOURS * UNITS["hours"] else "hours"
        unit = "seconds" if 0 < span <= UNITS["hours"] else unit
        return replace(column, unit=unit)
    known, rows = pd.factorize(values)[1], len(values)
    if len(known) == rows > _FEW_ROWS:
        raise InputError(
            f"{title} has another text in each of its {rows} rows: it names the rows, and tells nothing of others. "
            "Leave it out of the inputs."
        )
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = [_label(level) for level in values.cat.categories]
    else:
        levels = sorted({_label(level) for level in known})
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"{title} has {len(levels)} different texts ({some_of(levels, 4)}); at most {MOST_LEVELS} can be levels "
            "of a category. Group them into fewer, or leave the column out."
        )
    return Column(name, "category", levels=tuple(levels))


def _kind(values: pd.Series[Any], title: str, written: str) -> Kind:
    types, dtype = pd.api.types, values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "category"
    if isinstance(dtype, pd.PeriodDtype) or types.is_datetime64_any_dtype(dtype):
        return "date"
    if not is_text(dtype):
        require_numbers(dtype, title, written)
        return "number"
    there = values.dropna()
    inferred = types.infer_dtype(there, skipna=True)
    if inferred in ("datetime", "datetime64", "date", "period"):
        return "date"
    if inferred != "string":
        if inferred.startswith("mixed"):
            kinds = sorted({type(value).__name__ for value in there.iloc[:10_000]})
            raise InputError(
                f"{title} mixes values of the types {', '.join(kinds)}; make them one: {written}.astype(float) for "
                f"numbers, {written}.astype(str) for names."
            )
        require_numbers(dtype, title, written)
    few = there.iloc[:1000].astype(str)  # one that is none is found here, as a rule
    if len(few) and _are_dates(few) and _are_dates(there.drop_duplicates().astype(str)):
        return "date"
    if len(few) and _are_numbers(few) and _are_numbers(there.astype(str)):
        raise InputError(
            f"{title} holds numbers as text, such as {few.iloc[0]!r}; say what they are: {written}.astype(float) for "
            f"numbers, {written}.astype('category') for names."
        )
    return "category"


def _are_dates(texts: pd.Series[str]) -> bool:
    return all(_ISO_ZONED.fullmatch(text.strip()) is not None for text in texts)


def _are_numbers(texts: pd.Series[str]) -> bool:
    return bool(pd.to_numeric(texts, errors="coerce").notna().all())


def _is_zoned(values: pd.Series[Any]) -> bool:
    if isinstance(values.dtype, pd.PeriodDtype):
        return False
    there = values.dropna()
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return getattr(there.dt, "tz", None) is not None
    first = there.iloc[0] if len(there) else None
    if isinstance(first, str):
        return not _ISO.fullmatch(first.strip()) and _ISO_ZONED.fullmatch(first.strip()) is not None
    return getattr(first, "tzinfo", None) is not None


def _moments(values: pd.Series[Any], title: str, column: Column) -> Any:
    """The dates of a column as datetime64, NaT where one is missing."""
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    types = pd.api.types
    if types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        raise InputError(f"{title} holds numbers, but the model was made for dates; give dates.")
    if _is_zoned(values) != column.utc:
        said = ("without a time zone", "with one") if column.utc else ("with a time zone", "without one")
        raise InputError(f"{title} has dates {said[0]}, but the model was made for dates {said[1]}; give these.")
    try:
        found: Any = pd.to_datetime(values, utc=column.utc, format=_format_of(values))
    except (ValueError, TypeError) as error:
        raise InputError(f"{title} cannot be read as dates: {' '.join(str(error).split())[:200]}") from None
    return (found.dt.tz_localize(None) if column.utc else found).to_numpy(dtype="datetime64[us]")


def _format_of(values: pd.Series[Any]) -> str | None:
    text = pd.api.types.infer_dtype(values, skipna=True) == "string"
    return "ISO8601" if text else None


def _labels(values: pd.Series[Any]) -> list[str | None]:
    """The levels that rows have, as text; None where one is missing."""
    codes, known = pd.factorize(values)
    words = [_label(value) for value in known]
    return [words[code] if code >= 0 else None for code in codes]


def _label(value: Any) -> str:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
    return number_text(float(value)) if number else str(value)


def _refuse_missing(missing: Any, title: str) -> None:
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"{title} has {int(missing.sum())} value(s) that are missing, the first in row {first}; drop or fill these "
            "rows first."
        )
