"""What comes of one trial, and which trials there are."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import SfumatoError


@dataclass(frozen=True)
class Outcome:
    """What was counted in a trial; ``broken`` is a sentence where a claim was not true, ``case`` is plain JSON."""

    kind: str
    counts: dict[str, int]
    broken: str | None = None
    case: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A kind of trial: a ``module`` with ``trial(random, folder)``; ``share`` is how often it comes.

    A trial that takes longer than ``seconds`` is broken.
    """

    name: str
    share: int
    seconds: float
    module: str = ""

    def trial(self, random: np.random.Generator, folder: Path) -> Outcome:
        found: Outcome = import_module(self.module or f"soak.{self.name}").trial(random, folder)
        return found


#: Shares follow the target of a long run.
KINDS = {
    one.name: one
    for one in [
        Kind("problems", share=100, seconds=120.0),
        Kind("kills", share=2, seconds=60.0),
        Kind("mutations", share=5, seconds=240.0),
        Kind("names", share=1, seconds=60.0),
    ]
}


@dataclass(frozen=True)
class Task:
    """Trial number ``number`` of a kind, under a seed: it can be run again alone."""

    kind: Kind
    number: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.kind.name}-{self.number}"

    def random(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(self.kind.name.encode()), self.number])


def tasks(kinds: Sequence[Kind], seed: int) -> Iterator[Task]:
    """All trials of a seed without end, the kinds in turn by their shares."""
    credit, numbers = [0] * len(kinds), [0] * len(kinds)
    while True:
        credit = [have + kind.share for have, kind in zip(credit, kinds)]
        which = credit.index(max(credit))
        credit[which] -= sum(kind.share for kind in kinds)
        yield Task(kinds[which], numbers[which], seed)
        numbers[which] += 1


def reason(error: SfumatoError) -> str:
    """A short key for a refusal: the same for the same message with other names and numbers."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]", "…", str(error).splitlines()[0])
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    text = re.sub(r"[-+±]?\d[\d,.]*(e[-+]?\d+)?%?", "#", text)
    return f"refused: {' '.join(re.split(r'[;:.,(]|, which| has .* ≤', text)[0].split())[:80]}"
