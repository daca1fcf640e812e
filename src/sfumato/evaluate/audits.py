"""The audit: all adversaries try, and the owner sees what each of them achieves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..arrays import Array
from ..progress import progress as show_progress
from ..release import Release, digest_outputs
from .informed_readers import bayes, bayes_with, better_priors, holds_rows, knows_values, looks_between_rows
from .mechanical_attacks import averaging, grid_of, guesses_seed, joins, knows_grid, low_bits
from .refits import refit, stationary
from .target import Attempt, Outcome, Skipped, Target, judge, target_for

OWNER_ONLY = "OWNER ONLY: this uses the truth; do not publish this output."

#: What an attack gives: an attempt on the target, or on the same target judged elsewhere, or why it was not tried.
_Tried: TypeAlias = Attempt | tuple[Target, Attempt] | Skipped


@dataclass(frozen=True)
class Audit:
    """What every adversary achieved, and which could not be tried. It was made with the truth: for the owner only.

    ``holds``: no adversary that the promise covers knows f better than promised, under the owner's prior.
    ``below``: all others that got below the floor. ``digest`` is that of the published values it is about.
    """

    output: str
    judged: int
    outcomes: tuple[Outcome, ...]
    skipped: tuple[Skipped, ...]
    digest: str = ""

    @property
    def holds(self) -> bool:
        return not any(outcome.covered and outcome.beaten for outcome in self.outcomes)

    @property
    def below(self) -> tuple[Outcome, ...]:
        broken = [outcome for outcome in self.outcomes if outcome.covered and outcome.beaten]
        return tuple(outcome for outcome in self.outcomes if outcome.below and outcome not in broken)

    def rows(self) -> list[tuple[str, ...]]:
        """One line for each attack, for tables: see ``AUDIT_HEADER``."""
        return [
            (
                outcome.name,
                "yes" if outcome.covered else "no",
                f"{outcome.actual / outcome.floor:.3g}",
                f"{outcome.claimed / outcome.floor:.3g}",
                f"{outcome.rmse / outcome.floor:.3g}",
                f"{outcome.ratio:.4f}",
                outcome.severity,
            )
            for outcome in self.outcomes
        ]

    def as_dict(self) -> dict[str, Any]:
        """All of it in plain Python types."""
        return {
            "owner_only": True,
            "output": self.output,
            "judged": self.judged,
            "holds": self.holds,
            "outcomes": [outcome.as_dict() for outcome in self.outcomes],
            "skipped": [{"name": skipped.name, "why": skipped.why} for skipped in self.skipped],
        }

    def __str__(self) -> str:
        table = [AUDIT_HEADER, *self.rows()]
        widths = [max(len(line[column]) for line in table) for column in range(len(AUDIT_HEADER))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
        skipped = [f"not tried: {entry.name} ({entry.why})" for entry in self.skipped]
        title = f"Audit of {self.output!r} at {self.judged} sensitive inputs, in multiples of the floor"
        return "\n".join([OWNER_ONLY, title, *(line.rstrip() for line in lines), *skipped, self.verdict])

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        if not self.holds:
            names = ", ".join(outcome.name for outcome in self.outcomes if outcome.covered and outcome.beaten)
            return f"THE PROMISE IS BROKEN by adversaries that it covers: {names}."
        if not self.below:
            return "No adversary got below the floor."
        fit = [outcome.name for outcome in self.below if outcome.covered]
        more = [outcome.name for outcome in self.below if not outcome.covered]
        said = "The promise is kept, under its prior."
        if fit:
            said += f" The prior does not fit these data: closer to the truth than the floor came {', '.join(fit)}."
        if more:
            said += f" Not covered, and below the floor: {', '.join(more)}."
        return said


#: The columns of ``Audit.rows``; errors are in multiples of the floor, "worst" is at the worst sensitive input.
AUDIT_HEADER = ("adversary", "covered", "expected", "claimed", "here", "worst", "severity")


def audit(
    release: Release,
    y: Any,
    *,
    sensitive: Any = None,
    draws: int = 20,
    grid: float | None = None,
    physics: Callable[[Array], Any] | None = None,
    others: Sequence[Release] = (),
    progress: bool = True,
) -> Audit:
    """Attack a release with everything that is known, and compare with the truth ``y`` that only the owner has.

    ``sensitive``: where to judge (left out: up to 200 inputs of the region, at rows and between them). ``draws``: how
    many releases of the same values to average. ``grid``: the step that y is a multiple of (left out: guessed from y).
    ``physics``: a function of the inputs that a reader may know f to follow. ``others``: releases of the same values
    that are out already.

    Guarantee: adversaries that compute from the release alone are covered, whatever they compute, and stay above the
    floor while the certificate holds. The others know more; the audit says what they would achieve.

    >>> import numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 31)
    >>> prior = sf.fit_prior(t, np.sin(t), lengthscale=0.5, noise=0.01)
    >>> release = sf.protect(prior, t, sf.Box(1.0, 2.0), alpha=0.1).release(np.sin(t))
    >>> found = sf.audit(release, np.sin(t))
    >>> found.holds
    True
    """
    target = target_for(release, y, sensitive)
    step = grid_of(target.y, grid)
    attacks: list[tuple[str, Callable[[], _Tried | list[_Tried]]]] = [
        ("the Bayes reader", lambda: [bayes(target), *_other_priors(target)]),
        ("a plain stationary GP", lambda: stationary(target)),
        ("refitting everything", lambda: refit(target)),
        ("low bits", lambda: low_bits(target, step)),
        ("guessing seeds", lambda: guesses_seed(target)),
        ("looking between the rows", lambda: looks_between_rows(target)),
        ("averaging", lambda: averaging(target, draws)),
        ("other releases", lambda: [joins(target, others)] if others else []),
        ("better priors", lambda: list(better_priors(target, physics))),
        ("the grid of y", lambda: knows_grid(target, step)),
        ("known values", lambda: knows_values(target)),
        ("known rows", lambda: holds_rows(target)),
    ]
    outcomes: list[Outcome] = []
    skipped: list[Skipped] = []
    with show_progress(progress) as bar:
        for number, (name, attack) in enumerate(attacks):
            bar.stage(f"attacking: {name}")
            bar.update(number / len(attacks))
            made = attack()
            for tried in made if isinstance(made, list) else [made]:
                if isinstance(tried, Skipped):
                    skipped.append(tried)
                else:
                    where, attempt = tried if isinstance(tried, tuple) else (target, tried)
                    outcomes.append(judge(where, attempt))
    outcomes.sort(key=lambda outcome: not outcome.covered)
    digest = digest_outputs(np.asarray(release.outputs))
    return Audit(release.output_name, len(target.inputs), tuple(outcomes), tuple(skipped), digest)


def _other_priors(target: Target) -> list[_Tried]:
    return [bayes_with(target, number, prior) for number, prior in enumerate(target.design.others, start=2)]
