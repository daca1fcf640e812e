"""The outputs that rows are about: one, or several that the last column of the rows tells apart.

One output is "1 of 1". What differs is only whether rows have a column with the number of their output (``numbered``);
everything else goes over the outputs that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, Index
from ..errors import InputError

#: What the column is called that says which output a row is about.
COLUMN = "output"


@dataclass(frozen=True)
class Outputs:
    """The names of the outputs; ``numbered``: the last column of a row is the number of its output, 0, 1, …"""

    names: tuple[str, ...] = ("y",)
    numbered: bool = False

    @classmethod
    def several(cls, names: Sequence[str]) -> Outputs:
        """Outputs that are told apart by a column, as those of a JointPrior are: also where there is just one."""
        return cls(tuple(names), numbered=True)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def called(self, name: str) -> Outputs:
        """The same outputs; the one of rows without numbers goes by ``name``."""
        return self if self.numbered else Outputs((name,))

    def features(self, dimension: int) -> int:
        """How many of ``dimension`` columns are inputs."""
        return dimension - 1 if self.numbered else dimension

    def plain(self, rows: Array) -> Array:
        """The inputs of ``rows``."""
        return rows[:, :-1] if self.numbered else rows

    def numbers(self, rows: Array) -> Index:
        """Which output each of ``rows`` is about."""
        return rows[:, -1].astype(np.intp) if self.numbered else np.zeros(len(rows), dtype=np.intp)

    def rows(self, plain: Array, numbers: int | Index) -> Array:
        """Inputs as rows about the output ``numbers``: one for all of them, or one for each."""
        if not self.numbered:
            return plain
        return np.column_stack([plain, np.broadcast_to(np.asarray(numbers, dtype=np.float64), len(plain))])

    def columns(self, plain: tuple[str, ...]) -> tuple[str, ...]:
        """The names of all columns of rows whose inputs are called ``plain``."""
        if not self.numbered:
            return plain
        name = COLUMN
        while name in plain:
            name += "_"
        return (*plain, name)

    def number(self, name: Any, argument: str = "output") -> int:
        """The number of the output that a user calls ``name``; None stands for the only one."""
        if name is None and len(self) > 1:
            raise InputError(f"{argument} is missing; this is about several: choose one of {_listed(self.names)}.")
        if not self.numbered and name not in (None, *self.names):
            raise InputError(
                f"{argument} is {str(name)[:60]!r}, but this release is about {self.names[0]!r} alone; leave it out."
            )
        return 0 if name is None else self.names.index(known_output(self.names, name, argument))

    def place_in_words(self, columns: Sequence[str], row: Array, digits: int = 6) -> str:
        """One row for people: "t = 1.5", or "t = 1.5, velocity" where rows are numbered."""
        row = np.ravel(row)
        said = [f"{name} = {value:.{digits}g}" for name, value in zip(columns, row, strict=False)]
        if self.numbered and said:
            number = int(row[-1]) if np.isfinite(row[-1]) else -1
            said[-1] = self.names[number] if 0 <= number < len(self) else f"output {row[-1]:g}"
        return ", ".join(said)


#: One output, under the name that it has if nobody gives it another.
ONE_OUTPUT = Outputs()


def known_output(outputs: Sequence[str], name: Any, argument: str = "output") -> str:
    """``name``, if it is one of ``outputs``."""
    if not isinstance(name, str) or name not in outputs:
        raise InputError(f"{argument} is {str(name)[:60]!r}; choose one of {_listed(outputs)}.")
    return name


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
