"""Tables in text files as people have them: separator, decimal mark, encoding, gzip and dates are found out.

Nothing is guessed where the file does not decide it: such a column stays text, and there is a ``doubt`` about it, which
says what it looks like and which option settles it. In particular ``1,234`` is never taken for 1234 or for 1.234 unless
something else in the file, or ``decimal``, says which.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import InputError
from ..machine import in_bytes
from ..text import one_line
from .columns import is_text, require_once
from .spreadsheets import unquoted, with_texts

#: Endings of text tables; any of them may have .gz behind it.
TEXT = (".csv", ".tsv", ".txt", ".tab", ".dat")

#: Separators as people call them; blank space is any number of spaces and tabs.
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", r"\s+": "space"}

#: So much of the beginning of a file decides on its separator.
HEAD = 1 << 16

#: A text table may have this many columns.
MOST_COLUMNS = 10_000

# Before 3.1 pandas reads the last digit of a number wrongly unless it is asked not to; since then it warns when asked.
_OLD = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _OLD else {}

#: What stands between groups of three digits and is never a decimal mark: spaces and apostrophes.
_SPACE = " \u00a0\u202f'\u2019"


def _number(decimal: str, group: str) -> re.Pattern[str]:
    """A number with this decimal mark, perhaps with groups of three digits. A first group is not 0: 0,123 is no 123."""
    power = r"([eE][+-]?\d+)?"
    whole = rf"(\d+|[1-9]\d{{0,2}}(?:([{_SPACE}{re.escape(group)}])\d{{3}})(?:\2\d{{3}})*)"
    mark = re.escape(decimal)
    return re.compile(rf"[+\-\u2212]?(?:{whole}({mark}\d*)?|{mark}\d+){power}")


_NUMBERS = {".": _number(".", ","), ",": _number(",", ".")}
_OTHER = {".": ",", ",": "."}

#: A decimal point that groups no digits: not three digits after it, or a 0 before it.
_POINT = re.compile(r"[+-]?(\d*\.(\d{1,2}|\d{4,})|0\.\d+|\d{4,}\.\d+)([eE][+-]?\d+)?")

#: What may as well be thousands as a decimal number.
_THREE = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}|[+-]?\d{1,3}")


@dataclass(frozen=True)
class Form:
    """How a text file is written."""

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @property
    def options(self) -> str:
        """As options of the command line; also what ``open_table`` is told in a program."""
        sep = {r"\s+": "space", "\t": "tab"}.get(self.sep, f"'{self.sep}'")
        return f"--sep {sep} --decimal {self.decimal} --encoding {self.encoding}"

    def __str__(self) -> str:
        mark = " and decimal commas" if self.decimal == "," else ""
        return f"{SEPARATORS.get(self.sep, repr(self.sep))} between columns{mark}, in {self.encoding}"


#: A number that stands where a name should.
_A_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)*([eE][-+]?\d+)?")


@dataclass(frozen=True)
class TableAsRead:
    """A table from a file; of text the ``form`` in which it was read and what it ``looks`` like, else None.

    ``notes``: of columns, what was done where that is not plain to see. ``doubts``: of columns that stayed text
    although they look like numbers or dates, why.
    """

    frame: pd.DataFrame
    form: Form | None = None
    looks: Form | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)

    @property
    def advice(self) -> str:
        """What to say where this is not the table that was expected."""
        if self.form is None or self.looks is None:
            return ""
        if self.form != self.looks:
            return f" It was read with {self.form.options}, but it looks like {self.looks}: give {self.looks.options}."
        return f" It was read with {self.form.options}."

    @property
    def names_in_doubt(self) -> str:
        """That the names of a text's columns look like its first row, where they do; 0, 1, 2 … are names."""
        names = list(map(str, self.frame.columns))
        if (
            self.form is None
            or names == [str(i) for i in range(len(names))]
            or not all(map(_A_NUMBER.fullmatch, names))
        ):
            return ""
        return (
            f"The first line was taken for the names of the columns, and has numbers only ({', '.join(names[:3])}). If "
            "the file has no names, put a line with them above its first row: else that row is lost."
        )


def table_stem(path: PurePath) -> str:
    """The name of a table without its ending, and without .gz.

    >>> table_stem(PurePath("data/orbit.csv.gz")), table_stem(PurePath("orbit.parquet"))
    ('orbit', 'orbit')
    """
    return PurePath(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def is_text_table(path: Path) -> bool:
    """Whether the name of a file says that it is a text table."""
    endings = [ending.lower() for ending in path.suffixes]
    return bool(endings) and (endings[-1] in TEXT or (endings[-1] == ".gz" and endings[-2:-1] != [".tar"]))


def as_separator(text: str) -> str:
    """What ``sep`` says: one character, or one of the words comma, semicolon, tab, pipe and space."""
    words = {word: sep for sep, word in SEPARATORS.items()} | {"\\t": "\t", " ": r"\s+", "whitespace": r"\s+"}
    found = words.get(text, text)
    if found not in SEPARATORS and (len(found) != 1 or found.isalnum() or found in "\"'.+-\n\r"):
        raise InputError(f"sep is {text!r}; give comma, semicolon, tab, pipe, space or another single character.")
    return found


def read_text_table(
    path: Path,
    content: bytes,
    most: float,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> TableAsRead:
    """The table in the ``content`` of a text file, of at most so many bytes; what is None is found out."""
    given = _given(sep, decimal, encoding)
    raw = _unpacked(content, path, most)
    looks = Form(encoding=_encoding(raw, path))
    text = _head(raw, given.get("encoding", looks.encoding), path)
    first = text.split("\n", 1)[0].strip().lower()
    skipped = int(first.startswith("sep=") and len(first) == 5)  # a line that Excel writes and reads
    records = _Records.of(text.split("\n", 1)[1] if skipped else text, len(raw) > HEAD)
    looks = replace(looks, sep=first[4] if skipped else _separator(records, path, "sep" in given))
    looks = replace(looks, decimal="," if _commas(records.fields(looks.sep)) else ".")
    form = replace(looks, **{"decimal": "."} | given)
    _check_header(raw, form, skipped, path)
    _check_width(records, form.sep, looks, path)
    frame = _parsed(raw, form, skipped, path)
    if "decimal" not in given:
        if any(_kind(values) == "," for _, values in _texts(frame)):
            form = replace(form, decimal=",")
            frame = _parsed(raw, form, skipped, path)
        elif form.sep == ";" and not (suspects := _only_threes(frame)).empty:
            frame = _with_texts(frame, _parsed(raw, form, skipped, path, dtype=str), suspects)
    sure = "decimal" in given or form.decimal == "," or _has_points(frame, records)
    notes: dict[str, str] = {}
    doubts: dict[str, str] = {}
    for name, values in _texts(frame):
        read = _as_numbers(values, form.decimal, sure) or _as_dates(values)
        if read.known is not None:
            frame[name] = frame[name].map(read.known).astype(read.dtype)
        if read.note:
            notes[name] = read.note
        if read.doubt:
            row = 0 if read.odd is None else int((frame[name] == read.odd).to_numpy().argmax()) + 1
            doubts[name] = read.doubt + (f" (row {row}, counted from 1 below the header)" if row else "")
    for name in map(str, frame.select_dtypes("integer")):
        if (days := _as_days(frame[name])) is not None:
            notes[name] = f"{frame[name].iloc[0]} is read as the date {days.iloc[0].date()}."
            frame[name] = days
    if form.sep == looks.sep and not doubts:
        looks = replace(looks, decimal=form.decimal)
    return TableAsRead(frame, form, looks, notes, doubts)


def _given(sep: str | None, decimal: str | None, encoding: str | None) -> dict[str, Any]:
    """What was asked for, checked."""
    given: dict[str, Any] = {}
    if sep is not None:
        given["sep"] = as_separator(sep)
    if decimal is not None:
        if decimal not in _OTHER:
            raise InputError(f"decimal is {decimal!r}; give '.' or ','.")
        given["decimal"] = decimal
    if encoding is not None:
        given["encoding"] = _text_encoding(encoding)
    if given.get("sep") == given.get("decimal") and sep is not None:
        raise InputError(f"sep and decimal are both {decimal!r}; give them different values.")
    return given


def _text_encoding(word: str) -> str:
    """The name of an encoding of text; what unpacks bytes, such as zlib, is none."""
    try:
        name = codecs.lookup(word).name
        with contextlib.suppress(UnicodeError):
            b"a".decode(name)
    except (LookupError, ValueError):
        raise InputError(f"encoding is {word[:60]!r}; give one such as utf-8, utf-16 or cp1252.") from None
    return name


# ------------------------------------------------------------------------------------------ the bytes of a file


def _unpacked(raw: bytes, path: Path, most: float) -> bytes:
    """The bytes of a text file, unpacked where they are packed; a small file may hold more than any memory."""
    if raw[:2] == b"\x1f\x8b":
        parts, size = [], 0
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
                while part := file.read(1 << 20):
                    parts.append(part)
                    size += len(part)
                    if size > most:
                        raise InputError(
                            f"{path} holds more than {in_bytes(most)} when it is unpacked; give fewer rows, or write "
                            "it as Parquet."
                        )
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path} is a damaged gzip file: {one_line(error)}; get it again.") from error
        raw = b"".join(parts)
    kinds = {b"PK\x03\x04": "a zip archive or an Excel workbook", b"\xd0\xcf\x11\xe0": "an old Excel workbook"}
    for begin, kind in {**kinds, b"PAR1": "a Parquet file", b"%PDF": "a PDF file"}.items():
        if raw.startswith(begin):
            raise InputError(f"{path} is {kind}, not a text table; save it as CSV, or as .parquet.")
    if not raw.strip(b"\xef\xbb\xbf\xff\xfe\x00\r\n\t "):
        raise InputError(f"{path} cannot be read as a table: it is empty.")
    return raw


_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def _encoding(raw: bytes, path: Path) -> str:
    """UTF-8 or UTF-16 where the bytes are that; else Windows-1252, or Latin-1 where bytes are that only."""
    for mark, name in _MARKS.items():
        if raw.startswith(mark):
            return name
    zeros = [raw[place:HEAD:2].count(0) * 4 > len(raw[:HEAD]) for place in (0, 1)]  # of letters as two bytes, one is 0
    if any(zeros):
        return "utf-16-be" if zeros[0] else "utf-16-le"
    if b"\x00" in raw:
        raise InputError(f"{path} is not a text table: it has zero bytes in it; save the table as CSV, or as .parquet.")
    for name in ("utf-8", "cp1252"):
        try:
            raw.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def _head(raw: bytes, encoding: str, path: Path) -> str:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(raw[:HEAD])
        if encoding not in ("utf-8", "cp1252", "latin-1"):
            raw.decode(encoding)
    except (UnicodeError, LookupError) as error:
        raise InputError(f"{path} cannot be read in {encoding}: {one_line(error)}; give another --encoding.") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _check_header(raw: bytes, form: Form, skipped: int, path: Path) -> None:
    """Refuse a header with more columns than anybody has, before each of them takes memory."""
    lines = io.BytesIO(raw)
    for _ in range(skipped):
        lines.readline()
    header = lines.readline().partition(b"\r")[0]
    mark = " " if form.sep == r"\s+" else form.sep
    columns = header.count(mark.encode()) + 1
    if columns > MOST_COLUMNS:
        raise InputError(
            f"{path} has {columns:,} columns by its first line with --sep {SEPARATORS.get(form.sep, form.sep)}; at "
            f"most {MOST_COLUMNS:,} are read. See that rows are lines, or leave columns out."
        )


# ------------------------------------------------------------------------------------------ the separator


@dataclass(frozen=True)
class _Records:
    """The first lines of a table, and their fields by each separator."""

    text: str
    cut: bool

    @classmethod
    def of(cls, text: str, cut: bool) -> _Records:
        return cls(text.lstrip("\ufeff").lstrip("\n"), cut)

    def fields(self, sep: str) -> list[list[str]]:
        """The fields of each record; the last record, which may be cut off, is left out."""
        if sep == r"\s+":
            lines = [line.strip().replace("\t", " ") for line in self.text.split("\n")]
            read = list(csv.reader(lines, delimiter=" ", skipinitialspace=True))
        else:
            read = list(csv.reader(io.StringIO(self.text), delimiter=sep, skipinitialspace=True))
        if self.cut and len(read) > 2:
            read.pop()
        return [fields for fields in read if any(cell.strip() for cell in fields)]


def _separator(records: _Records, path: Path, told: bool) -> str:
    """What cuts all lines into equally many fields, two or more, that look like numbers, dates and plain words.

    Blank space counts only where nothing else does; a file with none of them has one column.
    """
    found: dict[str, float] = {}
    for sep in SEPARATORS:
        if sep == r"\s+" and found:
            break
        try:
            read = records.fields(sep)
        except csv.Error:
            continue
        if read and len(read[0]) > 1 and all(len(fields) == len(read[0]) for fields in read):
            # names of columns, such as "height, cm", say less than what stands below them
            found[sep] = float(np.mean([_clean(cell, sep) for fields in read[1:] or read for cell in fields]))
    best = [sep for sep, share in found.items() if share == max(found.values())]
    if len(best) > 1 and not told:
        names = " and ".join(SEPARATORS[sep] for sep in best)
        raise InputError(
            f"{path} can be read with {names} between columns; say which with --sep {SEPARATORS[best[0]]}."
        )
    return best[0] if best else _most(records)


def _clean(cell: str, sep: str) -> bool:
    """Whether a field looks like one: a number, or words without another separator."""
    cell = cell.strip()
    return any(number.fullmatch(cell) for number in _NUMBERS.values()) or not any(
        other in cell for other in SEPARATORS if other != sep
    )


def _most(records: _Records) -> str:
    """For one column what does not stand in it, for lines of different lengths what stands in the header."""
    header, _, rows = records.text.partition("\n")
    marks = [sep for sep in SEPARATORS if sep != r"\s+"]
    if not any(mark in header for mark in marks):
        return next((mark for mark in marks if mark not in rows), ",")
    return max(marks, key=header.count)


def _check_width(records: _Records, sep: str, looks: Form, path: Path) -> None:
    """Refuse rows with more fields than the header, whose first ones pandas would take for labels."""
    try:
        read = records.fields(sep)
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as a table: {one_line(error)}.") from error
    for number, fields in enumerate(read[1:]):
        if len(fields) > len(read[0]):
            like = ""
            if sep == "," and len(fields) > 1 and all(cell.strip().lstrip("-+").isdigit() for cell in fields):
                like = " It looks like decimal commas between commas, which nobody can tell apart: write it with ';'."
            elif sep != looks.sep:
                like = f" It looks like {looks}: give {looks.options}."
            raise InputError(
                f"{path}, row {number + 1} (counted from 1 below the header): {len(fields)} fields, but the header has "
                f"{len(read[0])} with --sep {SEPARATORS.get(sep, sep)}.{like or ' Give each column a name.'}"
            )


def _parsed(raw: bytes, form: Form, skipped: int, path: Path, dtype: Any = None) -> pd.DataFrame:
    how: dict[str, Any] = {"sep": form.sep, "encoding": form.encoding, "skipinitialspace": True, "skiprows": skipped}
    try:
        # pandas would rename a second column t to t.1 without a word
        header = pd.read_csv(io.BytesIO(raw), header=None, nrows=1, dtype=str, **how).iloc[0].tolist()
        exact = {} if dtype is not None else _EXACT
        table: pd.DataFrame = pd.read_csv(
            io.BytesIO(raw), decimal=form.decimal, low_memory=False, dtype=dtype, **how, **exact
        )
    except (ValueError, OSError, UnicodeError) as error:
        raise InputError(f"{path} cannot be read as a table: {one_line(error)}") from error
    require_once(path, [unquoted(str(name).strip()) for name in header if not pd.isna(name)])
    if not isinstance(table.index, pd.RangeIndex):
        raise InputError(f"{path} has rows with more fields than the header; give each column a name.")
    return with_texts(table, unquoted).rename(columns=lambda name: unquoted(str(name).strip()))


# ------------------------------------------------------------------------------------------ the columns


def _texts(frame: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """The columns that are text, and what stands in each of them, once."""
    found = []
    for name in frame:
        if is_text(frame[name].dtype):
            values = [value for value in frame[name].dropna().unique() if isinstance(value, str)]
            if values:
                found.append((str(name), [value.strip() for value in values]))
    return found


def _value(text: str, decimal: str) -> float:
    for mark in (*_SPACE, _OTHER[decimal]):
        text = text.replace(mark, "")
    return float(text.replace(decimal, ".").replace("\u2212", "-"))


def _kind(values: Sequence[str]) -> str | None:
    """Which decimal mark values have that are all numbers: "." or ","; "both" if either would do, and "same" if they
    are then the same numbers. None where some are no numbers."""
    marks = [mark for mark, number in _NUMBERS.items() if all(number.fullmatch(value) for value in values)]
    if len(marks) < 2:
        return marks[0] if marks else None
    same = all(_value(value, ".") == _value(value, ",") for value in values)
    return "same" if same else "both"


def _commas(records: Sequence[Sequence[str]]) -> bool:
    """Whether some column of the first lines has decimal commas."""
    columns = ([cell.strip() for cell in column if cell.strip()] for column in zip(*records[1:], strict=False))
    return any(column and _kind(column) == "," for column in columns)


def _only_threes(frame: pd.DataFrame) -> pd.Index[Any]:
    """The columns of numbers that may be thousands with a point, in a table where no number is surely none."""
    decimals = frame.select_dtypes("float")
    decimals = decimals.loc[:, [not np.array_equal(v.dropna(), np.round(v.dropna())) for _, v in decimals.items()]]
    three = [
        name
        for name, values in decimals.items()
        if np.all(np.abs(values.dropna()) >= 1) and np.allclose(values.dropna() * 1000 % 1, 0, atol=1e-6)
    ]
    return decimals.columns if len(three) == decimals.shape[1] else decimals.columns[:0]


def _with_texts(frame: pd.DataFrame, texts: pd.DataFrame, names: pd.Index[Any]) -> pd.DataFrame:
    """``frame``; if all values of these columns have exactly three digits behind a point, they are as text."""
    for name in names:
        values = texts[name].dropna().str.strip()
        if not all(_THREE.fullmatch(value) for value in values):
            return frame
    return frame.assign(**{str(name): texts[name] for name in names})


def _has_points(frame: pd.DataFrame, records: _Records) -> bool:
    """Whether some number of the table surely has a decimal point."""
    decimals = [values.dropna() for _, values in frame.select_dtypes("float").items()]
    if any(np.any((np.abs(v) < 1) & (v != 0)) or not np.allclose(v * 1000 % 1, 0, atol=1e-6) for v in decimals):
        return True
    return any(_POINT.fullmatch(cell.strip()) for cell in re.split(r"[;,|\t\n\"]", records.text))


class _Read(NamedTuple):
    """What the texts of a column are ``known`` to be, if they are; else why not, where one may wonder, and the ``odd``
    text that is to blame."""

    known: dict[str, Any] | None = None
    dtype: Any = "float64"
    note: str = ""
    doubt: str = ""
    odd: str | None = None


def _one_is_odd(texts: Sequence[str], plain: Sequence[bool], what: str, most: float, least: int) -> _Read | None:
    """So many texts are of a kind that one which is not is a mistake: it would make a category of all of them."""
    if sum(plain) < max(least, most * len(texts)) or all(plain):
        return None
    odd, like = texts[plain.index(False)], texts[plain.index(True)].strip()
    remedy = "mend it, or leave the cell empty where the value is missing"
    return _Read(doubt=f"{odd.strip()!r} is no {what}, though others are, such as {like!r}; {remedy}", odd=odd)


def _as_numbers(texts: Sequence[str], decimal: str, sure: bool) -> _Read | None:
    """Texts as numbers; ``sure`` if the decimal mark of the table is known. None where they are something else."""
    kind, other = _kind([text.strip() for text in texts]), _OTHER[decimal]
    if kind is None:
        numbers = [bool(_NUMBERS[decimal].fullmatch(text.strip())) for text in texts]
        return _one_is_odd(texts, numbers, "number", 0.9, 9)  # classes may be 1, 2, 3 and crew
    grouped = [text for text in texts if set(text.strip()) & {*_SPACE, other}]
    example = grouped[0].strip() if grouped else texts[0].strip()
    if kind == other:
        word = {".": "decimal points", ",": "decimal commas"}
        doubt = f"{example!r} looks like {word[other]}, but the table has {word[decimal]}; give --decimal '{other}'"
        return _Read(doubt=doubt)
    if kind == "both" and not sure:
        readings = " or ".join(f"{_value(example, mark):.10g}" for mark in (decimal, other))
        return _Read(doubt=f"{example!r} may be {readings}; give --decimal '.' or --decimal ','")
    note = f"{example!r} is read as {_value(example, decimal):.10g}." if grouped else ""
    return _Read({text: _value(text.strip(), decimal) for text in texts}, note=note)


# ------------------------------------------------------------------------------------------ dates

_TIME = (
    r"(?:[T ] *(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d{1,9})?))? *(?P<half>[AaPp]\.?[Mm]\.?)?"
    r" *(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_NAME = rf"(?P<name>{'|'.join(word for month in _MONTHS for word in (month, month[:3]))})"
_DATES = tuple(
    re.compile(form + _TIME, re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
        r"(?P<year>\d{4})-(?P<month>\d{2})",
        r"(?P<first>\d{1,2})(?P<mark>[-/.])(?P<then>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})",
        rf"(?P<day>\d{{1,2}})[- .]{{1,2}}{_NAME}[-., ]{{1,2}}(?P<year>\d{{4}})",
        rf"{_NAME}[. ]{{1,2}}(?:(?P<day>\d{{1,2}}),? )?(?P<year>\d{{4}})",
    )
)


def _as_dates(texts: Sequence[str]) -> _Read:
    """Texts as dates; in 03/04/2005 the column itself must say which is the month, in 03.04.2005 it is the second."""
    matches = [next((found for one in _DATES if (found := one.fullmatch(text.strip()))), None) for text in texts]
    dates = [found.groupdict() for found in matches if found is not None]
    if not dates or len(dates) < len(texts):
        return _one_is_odd(texts, [found is not None for found in matches], "date", 0.5, 1) or _Read()
    example = texts[0].strip()
    if any(len(date["year"]) == 2 for date in dates):
        return _Read(doubt=f"{example!r} has a year of two digits; write it with four, best as in 2005-12-31")
    parts = [(int(date["first"]), int(date["then"])) for date in dates if date.get("first") and date["mark"] != "."]
    day_first, month_first = any(one > 12 for one, _ in parts), any(two > 12 for _, two in parts)
    if parts and day_first == month_first:
        why = "days and months change places" if day_first else "no value says which is the month"
        return _Read(doubt=f"{example!r} is not clear: {why}; write dates as in 2005-12-31")
    zones = {bool(date["zone"]) for date in dates}
    if len(zones) > 1:
        return _Read(doubt="some times have a zone and others not; give all of them one, or none")
    try:
        known = {text: _date(date, day_first) for text, date in zip(texts, dates, strict=True)}
    except ValueError as error:
        return _Read(doubt=f"it looks like dates, but {error}; mend it")
    return _Read(known, "datetime64[us]", "times are read in UTC." if zones == {True} else "")


def _as_days(values: pd.Series[Any]) -> pd.Series[Any] | None:
    """Whole numbers such as 20051231 as dates, where all of several are dates of a few centuries; else None."""
    if values.nunique() < 3 or values.min() < 1700_01_01 or values.max() > 2200_12_31:
        return None
    days = pd.to_datetime(values.astype(str), format="%Y%m%d", errors="coerce")
    return None if days.isna().any() else days.astype("datetime64[us]")


def _date(date: Mapping[str, str | None], day_first: bool) -> np.datetime64:
    """What stands in a text, in UTC where it has a zone."""
    first, then, name = date.get("first"), date.get("then"), date.get("name")
    month, day = date.get("month"), date.get("day") or "1"
    if first and then:
        day, month = (first, then) if day_first or date["mark"] == "." else (then, first)
    if name:
        month = str([word[:3] for word in _MONTHS].index(name[:3].lower()) + 1)
    hour, minute, second = (date[part] or "00" for part in ("hour", "minute", "second"))
    if date["half"]:
        if not 1 <= int(hour) <= 12:
            raise ValueError(f"{hour}:{minute} {date['half']} is no time")
        hour = str(int(hour) % 12 + 12 * (date["half"][0] in "pP"))
    whole, _, part = second.partition(".")
    written = f"{date['year']}-{int(month or 0):02d}-{int(day):02d}"
    try:
        at = np.datetime64(f"{written}T{int(hour):02d}:{minute}:{int(whole):02d}.{part[:6] or 0}", "us")
    except ValueError:
        raise ValueError(f"there is no {written} {hour}:{minute}:{second}") from None
    zone = date["zone"]
    if zone and zone not in ("Z", "UTC"):
        shift = int(zone[1:3]) * 60 + int(zone[-2:])
        at -= np.timedelta64(shift if zone[0] == "+" else -shift, "m")
    return at
