"""Parts of tables, of which any columns can be read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from .engine.engine import Engine
from .engine.here import Here
from .inputs import Array
from .parts import Part
from .progress import Progress
from .row_scan import Scan
from .stored_inputs import StoredInputs


class TablePart(Part):
    """Rows of a table; ``names`` are the columns that are inputs."""

    names: tuple[str, ...]

    @abstractmethod
    def read(self, names: Sequence[str]) -> Array:
        """The columns ``names``, rows × columns: finite numbers of usual size, or an error."""

    def inputs(self) -> Array:
        return self.read(self.names)

    def column(self, name: str) -> Array:
        return np.ascontiguousarray(self.read((name,))[:, 0])


def scanned(
    parts: Sequence[TablePart], names: Sequence[str], output: str | None, step: Progress, engine: Engine | None = None
) -> StoredInputs:
    """All rows of ``parts`` as inputs, after one pass that makes sure that they and their outputs can be read."""
    total = sum(part.rows for part in parts)
    scan = Scan.of(total, output)
    step.stage("reading the rows")
    return scan.stored(parts, list((engine or Here()).each(scan, parts, step.counter(total))), tuple(names))
