"""The package, broken on purpose: the soak must find each of these, or it finds nothing.

Only the soak's own workers are broken so, by ``--break NAME``; nothing in the package knows of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import sfumato

if TYPE_CHECKING:
    from sfumato.noise import Noise


def break_noise() -> None:
    """``protect`` gives designs with 0.99 of their noise, under the certificate of the whole noise."""
    whole = sfumato.protect

    def protect(*arguments: Any, **options: Any) -> sfumato.Mechanism:
        made = whole(*arguments, **options)
        return replace(made, design=replace(made.design, noise=_less(made.design.noise)))

    sfumato.protect = protect


def _less(noise: Noise) -> Noise:
    from sfumato.noise import CorrelatedNoise, FunctionalNoise, IndependentNoise

    root = 0.99**0.5
    if isinstance(noise, IndependentNoise):
        return replace(noise, variances=0.99 * noise.variances)
    if isinstance(noise, FunctionalNoise):
        records = noise.records and replace(noise.records, multiple=0.99 * noise.records.multiple)
        return replace(noise, mixing=root * noise.mixing, records=records)
    assert isinstance(noise, CorrelatedNoise)
    return replace(noise, factor=root * noise.factor, shift=0.99 * noise.shift)


def break_ledger() -> None:
    """Every line of a ledger is dropped again after the release that it is about was acknowledged."""
    from sfumato.ledger.chained_file import ChainedFile

    whole = ChainedFile.update

    def update(self: ChainedFile, make: Callable[[Any], dict[str, Any]]) -> Any:
        entry = whole(self, make)
        with open(self.path, "r+b") as file:
            kept = file.read().splitlines(keepends=True)[:-1]
            file.truncate(sum(map(len, kept)))
        return entry

    ChainedFile.update = update  # type: ignore[method-assign]


def break_name() -> None:
    """Names are shown as they are."""
    import_module("sfumato.__main__")  # so that all modules are there that show anything
    from sfumato import text

    whole = text.shown
    for module in list(sys.modules.values()):
        if getattr(module, "shown", None) is whole:
            module.shown = str  # type: ignore[attr-defined]


#: What ``--break`` takes.
BREAKS: dict[str, Callable[[], None]] = {"noise": break_noise, "ledger": break_ledger, "name": break_name}
