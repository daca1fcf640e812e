"""Pictures that values can be asked for. How they look is up to ``show``, a room above all values.

The package itself, the one place that knows every room, says where pictures come from; so no value imports its own
picture, and imports between rooms go one way.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

_source: list[Callable[[], ModuleType]] = []


def pictures_come_from(source: Callable[[], ModuleType]) -> None:
    """Say which module draws; it is asked for when the first picture is."""
    _source[:] = [source]


def pictures() -> ModuleType:
    """The module that draws."""
    return _source[0]()
