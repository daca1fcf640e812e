"""The ledger: several releases of one secret keep one promise together, and what is left of it (MATH.md 8)."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from ..arrays import Array
from ..design import (
    FELL_BACK,
    Acceptance,
    AskedCover,
    AskedEvidence,
    Mechanism,
    NoCover,
    as_asked,
    asked_problem,
    certified_design,
    check_choice,
    check_memory,
    exact_plan,
)
from ..errors import BudgetError, FormatError, GuaranteeWarning, InputError
from ..linalg import as_array
from ..models import JointPrior, Prior
from ..noise import SecretKey, no_noise
from ..progress import AskedProgress
from ..progress import progress as show_progress
from ..promise import Finding, Revealed, interpretations, warn_of
from ..proof import Certificate, Effort, cost_of_check, one_by_one
from ..regions import Region
from ..release import Release, digest_outputs, noise_in_words, suppressed_in_words, why_not
from ..text import counted, shown, shown_lines
from ..views import pictures
from .chained_file import Chain, ChainedFile
from .past import LEAST_LEFT, Published, most_used
from .problem import NextRelease
from .promises import Promise, about_all, as_proved_as, promises_of, promises_of_all
from .record import Records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How much of what is left a release uses if nothing else is said: half, so that something always is.
SHARE = 0.5

#: How far the predictions of one more release may be from the best, as a share of what they add to those before it.
GAP = 1e-3

#: At how many inputs of a region it is computed what releases have used.
PROBES = 400


@dataclass(frozen=True, eq=False)
class Ledger:
    """An append-only file of what each release of one secret revealed, and designs that take all of it into account.

    Guarantee: for every promise that was ever made in this ledger, all releases that it has recorded keep it together,
    exactly (no loose bound), as long as every release of the secret goes through it. A release is in the file, on
    the disk, before ``release(y)`` gives it back: one that was interrupted counts as published, never as free. The file
    holds no y, no published value and no key. Its lines are chained by hashes. A whole last line counts however it
    ends; what else is at the end counts for nothing and is told (``torn``; ``protect`` and ``record`` warn).

    A promise that was made stays: a later release with a larger alpha does not loosen it.

    >>> import os, tempfile, numpy as np, gpytorch, sfumato as sf
    >>> prior = sf.Prior(gpytorch.kernels.RBFKernel(), noise=0.01)
    >>> t = np.linspace(0.0, 3.0, 16)
    >>> ledger = sf.Ledger(os.path.join(tempfile.mkdtemp(), "orbit.ledger"))
    >>> for y in (np.sin(t), np.sin(t)):
    ...     release = ledger.protect(prior, t, sf.Box(1.0, 2.0), alpha=0.5, share=0.4, progress=False).release(y)
    >>> len(ledger), ledger.certificate(sf.Box(1.0, 2.0)).holds, ledger.remaining(sf.Box(1.0, 2.0)).left > 0.3
    (2, True, True)
    """

    path: str | os.PathLike[str]
    _records: Records = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise InputError(f"path is {self.path!r}; give the name of the ledger's file.")
        # wherever the program goes, the ledger stays
        object.__setattr__(self, "path", os.path.abspath(self.path))
        object.__setattr__(self, "_records", Records(ChainedFile(self.path)))
        self.chain()

    def chain(self) -> Chain:
        """The file, checked line by line; ``FormatError`` where it was changed, or lost lines that were read before."""
        return self._records.chain()

    def verify(self, head: str | None = None) -> Chain:
        """Check every line, and that an earlier ``head`` that was kept elsewhere is among their hashes."""
        chain = self._records.chain(head)
        self._records.revealed(chain)
        return chain

    @property
    def head(self) -> str:
        """The hash of the last line. Kept elsewhere, it shows whether lines were taken away later on."""
        return self.chain().head

    @property
    def torn(self) -> bool:
        """Whether something at the end is no release, as an interrupted write leaves it; the next line marks it."""
        return self.chain().torn is not None

    @property
    def releases(self) -> tuple[Revealed, ...]:
        """What each recorded release revealed, the first one first."""
        return self._records.revealed(self.chain())

    def __len__(self) -> int:
        return len(self.chain().entries)

    def protect(
        self,
        prior: Prior | JointPrior,
        X: Any,
        region: Region | Mapping[str, Region | None],
        alpha: float | Mapping[str, float] | None = None,
        *,
        share: float = SHARE,
        output_name: str = "y",
        remeasured: bool = False,
        cover: AskedCover = "auto",
        evidence: AskedEvidence = "best",
        findings: Sequence[Finding] = (),
        accept: Sequence[str] = (),
        progress: AskedProgress = True,
        **how: Any,
    ) -> Mechanism:
        """The least noise such that this release and all recorded ones together keep the promise.

        With ``objective="predictions"``, the noise with the best predictions from this release (what earlier ones tell
        is known already), where all readers of the ledger see the data alike; else the least noise, and a finding.

        ``alpha`` (or ``floor``, ``tolerance``) is the promise for everything that is published together; earlier
        promises of the ledger are kept as well. This release may use ``share`` of what they have left. Rows at
        inputs that were released before are taken for the same measurements, with the same error: the same records.
        ``remeasured=True`` says that they were measured anew. ``how`` are the other arguments of ``sf.protect``. With
        ``evidence="proved"`` all of these promises have to be proved, for who reads all releases.

        Guarantee: as for ``sf.protect``, for all releases of the ledger together (``certificate.holds``). The
        release is recorded before ``mechanism.release(y)`` gives it back. ``BudgetError`` where nothing is left.
        """
        check_choice("cover", cover, get_args(AskedCover))
        check_choice("evidence", evidence, get_args(AskedEvidence))
        _check_arguments(share, how)
        acceptance = Acceptance.asked(findings, accept)
        asked = asked_problem(prior, X, region, alpha, **how)
        if asked.insiders is not None:
            raise InputError(
                "insiders is given, but a ledger promises to readers without rows of their own; leave it out."
            )
        if asked.families:
            raise InputError(
                "prior is a family, and what several releases tell its readers is not composed; give a sf.Prior, and "
                "priors=[family.member(...), …]."
            )
        plan = exact_plan(asked.size)
        check_memory(plan)
        asked = replace(asked, plan=replace(plan, gap=GAP))
        if not asked.inputs.outputs.numbered and (not isinstance(output_name, str) or not output_name):
            raise InputError(f"output_name is {output_name!r}; give the name of what is released.")
        chain = self.chain()
        self._tell(chain)
        revealed = self._records.revealed(chain)
        with show_progress(progress) as step:
            step.stage("what is left")
            try:
                problem = NextRelease.of(asked, cover, output_name, bool(remeasured), revealed, share)
                problem.check_budget()
                if asked.serves is not None and not problem.readers_see_alike:
                    asked = replace(asked, serves=None)
                    problem = NextRelease.of(asked, cover, output_name, bool(remeasured), revealed, share)
                effort = Effort(done=step.update)
                design, certificate = certified_design(
                    problem.in_units(),
                    cover,
                    lambda one, needed, quick: problem.examine(one, needed, replace(effort, quick=quick)),
                    step.stage,
                    insist=evidence == "proved",
                )
                if certificate.holds or not revealed:
                    insist = functools.partial(problem.examine, design, None, replace(effort, insist=True))
                    certificate = as_asked(evidence, certificate, insist, step.stage)
            except NoCover as error:
                raise BudgetError(
                    f"too little is left to be divided further: {error} {problem.left_in_words()} Publish nothing more "
                    "about it, or make a weaker promise from the start."
                ) from error
            except np.linalg.LinAlgError as error:
                raise BudgetError(
                    "nothing is left of some combination of the sensitive values, or they tell almost the same: "
                    f"{error}. Publish nothing more about it."
                ) from error
        if not certificate.holds and revealed:
            raise BudgetError(
                f"too little is left for another release: {problem.left_in_words()} No noise was found that keeps the "
                f"promise of all together (joint ratio {certificate.joint_ratio:.6g}, floor ratio "
                f"{certificate.promised_ratio:.6g}). Publish nothing more about it."
            )
        certificate = certificate.with_findings(*one_by_one(asked.prior, asked.inputs, output_name, revealed))
        if how.get("objective") == "predictions" and design.serves is None:
            why = "priors" if asked.others else "releases"
            certificate = certificate.with_findings(FELL_BACK[why if asked.serves is None else "search"])
        warn_of(acceptance.in_full(certificate))
        certificate = acceptance.joins(certificate, design)
        following = Revealed(design, output_name, bool(remeasured))
        name = None if asked.inputs.outputs.numbered else output_name
        recorder = functools.partial(self._commit, made=following, head=chain.head)
        return Mechanism(
            design,
            certificate,
            SecretKey.fresh(),
            plan,
            _recorder=recorder,
            _output_name=name,
            _acceptance=acceptance,
        )

    def record(self, release: Release, *, remeasured: bool = False) -> Certificate:
        """Write down what a release revealed that was made elsewhere; its promise binds from now on.

        A release that is recorded already is not counted again. One that breaks a promise is recorded all the same,
        because it is published, with a ``GuaranteeWarning``. What comes back is the certificate of its promise for all
        releases together.
        """
        if not isinstance(release, Release):
            raise InputError(f"release is {release!r}; give what mechanism.release(y) or sf.load(path) gave.")
        design = release.design
        if release.unsafe:
            # anyone can take its noise off
            design = replace(design, noise=no_noise(len(design.inputs)), structure="full", weights=None, witness=None)
        made = Revealed(design, release.output_name, bool(remeasured))
        keys = {one.key for one in promises_of(made, 0)}  # refuses what cannot be composed, before it is written down
        cost_of_check(design).require(None)  # what nobody can check would stop every later check
        self._tell(self.chain())
        self._commit(release, made, None)
        certificate = self._worst([promise for promise in self.promises() if promise.key in keys])
        releases = self.releases
        for promise in self.promises():
            kept = promise.kept_by(releases).certificate()
            if not kept.holds:
                warnings.warn(
                    f"with this release a promise is broken: {kept.promise}. Readers get to {kept.floor_ratio:.4g} of "
                    "the floor; nothing more can be published about it",
                    GuaranteeWarning,
                    stacklevel=2,
                )
        return certificate

    def _tell(self, chain: Chain) -> None:
        """Warn of what is unusual about the file, on behalf of the method that calls."""
        for remark in chain.remarks:
            warnings.warn(f"the ledger {str(self.path)!r}: {remark}", GuaranteeWarning, stacklevel=3)

    def promises(self, region: Any = None) -> list[Promise]:
        """Every promise that was made, once; with ``region``, those about it."""
        made = promises_of_all(self.releases)
        return made if region is None else [promise for promise in made if promise.is_about(region)]

    def certificate(self, region: Any = None) -> Certificate:
        """Whether all recorded releases together keep what was promised about ``region`` (left out: anything)."""
        return self._worst(self._promises_about(region))

    def remaining(self, region: Any = None) -> Remaining:
        """What is left of the promises about ``region`` (left out: of all): in words, numbers and a picture."""
        releases = self.releases
        return Remaining(tuple(budget_of(promise, releases) for promise in self._promises_about(region)))

    def _promises_about(self, region: Any) -> list[Promise]:
        found = self.promises(region)
        if not found:
            if not self.promises():
                raise InputError(f"the ledger {str(self.path)!r} has no releases yet; protect and release first.")
            known = "; ".join(dict.fromkeys(promise.region_in_words for promise in self.promises()))
            raise InputError(
                f"region is {region!r}, about which the ledger has no promise; it has some about: {known}."
            )
        return found

    def _worst(self, promises: Sequence[Promise]) -> Certificate:
        releases = self.releases
        results = [promise.kept_by(releases).certificate() for promise in promises]
        worst = min(results, key=lambda one: (one.holds, one.promised_ratio, -one.joint_ratio))
        return as_proved_as(worst, results).with_findings(about_all(len(releases)))

    def _commit(self, release: Release, made: Revealed, head: str | None) -> None:
        """Append ``made``; where the ledger has moved on from ``head``, only if all promises are kept with it."""

        def check(chain: Chain) -> None:
            if head in (None, chain.head):
                return
            if not chain.has(head):
                raise FormatError(f"{self.path} is no longer the ledger that this release was designed with.")
            together = (*self._records.revealed(chain), made)
            for promise in promises_of_all(together):
                certificate = promise.kept_by(together).certificate()
                if not certificate.holds:
                    raise BudgetError(
                        "the ledger has other releases than when this one was designed, and together they would break "
                        f"a promise; protect again. {why_not(certificate)}"
                    )

        self._records.append(made, digest_outputs(np.asarray(release.outputs)), check)

    def __str__(self) -> str:
        chain = self.chain()
        lines = [f"Ledger {str(self.path)!r}: {counted(len(chain.entries), 'release')}, head {chain.head[:16]}…"]
        for entry, one in zip(chain.entries, self._records.revealed(chain), strict=True):
            outputs = ", ".join(one.outputs)
            blur = ", ".join((f"{noise_in_words(one.design)} a row", *suppressed_in_words(one.design)))
            lines.append(
                f"  {entry.number}  {entry.body['record']['when']}  {outputs}: {len(one.design.inputs)} rows, noise "
                f"{blur}; {promises_of(one, 0)[0].region_in_words}: "
                f"{one.design.tolerance.in_words(one.design.inputs.outputs.names)} (protects {one.design.protects})"
            )
        return shown_lines([*lines, *(f"  {remark}" for remark in chain.remarks)])


def _check_arguments(share: Any, how: dict[str, Any]) -> None:
    number = isinstance(share, (int, float, np.number)) and not isinstance(share, bool)
    if not number or not 0.0 < share <= 1.0:
        raise InputError(
            f"share is {share!r}; give how much of what is left this release may use, above 0 and at most 1."
        )
    if how.pop("insiders", None) is not None:
        raise InputError("insiders is given, but what they learn of several releases is not composed; leave it out.")
    for name in ("device", "engine", "accuracy"):
        if how.pop(name, None) is not None:
            raise InputError(f"{name} is given, but releases of a ledger are designed on this machine; leave it out.")
    if (method := how.pop("method", "auto")) not in ("auto", "eigh"):
        raise InputError(f'method is {method!r}; releases of a ledger are exact: use "auto" or "eigh".')


@dataclass(frozen=True, eq=False)
class PromiseBudget:
    """What is left of one promise.

    ``history`` is the largest share of its tolerance that was used after each release of the ledger, of any value and,
    where promised, any weighted average.
    """

    promise: Promise
    certificate: Certificate
    history: tuple[float, ...]

    @property
    def left(self) -> float:
        """What is left, as a share of the tolerance: 1 before the first release, at most 0 when it is used up."""
        return 1.0 - (self.history[-1] if self.history else 0.0)

    def __str__(self) -> str:
        certificate = self.certificate
        if self.left <= LEAST_LEFT:
            state = "NOTHING IS LEFT" if certificate.holds else "THE PROMISE IS BROKEN"
        else:
            state = f"{self.left:.1%} of the tolerance is left"
        what, of_records = "the record" if certificate.protects == "records" else "f", ""
        if certificate.protects == "both" and np.isfinite(certificate.record_ratio):
            of_records = f" Of the best-known record they keep {certificate.record_ratio:.4g} times its floor."
        return shown(
            f"{state} after {counted(len(self.history), 'release')}: {certificate.promise}. Readers are closest to "
            f"their floor at {certificate.worst_place}, where they know {what} to within ±{certificate.worst_std:.6g} "
            f"and the floor is ±{certificate.worst_floor:.6g}.{of_records} What that rests on: "
            f"{certificate.evidence_in_words}."
        )


@dataclass(frozen=True, eq=False)
class Remaining:
    """What is left of every promise that a ledger holds about a region."""

    promises: tuple[PromiseBudget, ...]

    @property
    def left(self) -> float:
        """The least that is left of any of them, as a share of its tolerance."""
        return min(one.left for one in self.promises)

    @property
    def used(self) -> float:
        """The most that was used of any of them, as a share of its tolerance."""
        return 1.0 - self.left

    @property
    def holds(self) -> bool:
        """Whether all of them are kept."""
        return all(one.certificate.holds for one in self.promises)

    def as_dict(self) -> dict[str, Any]:
        """Numbers in plain Python types."""
        return {
            "left": self.left,
            "holds": self.holds,
            "promises": [
                {
                    "promise": one.certificate.promise,
                    "left": one.left,
                    "history": list(one.history),
                    "certificate": one.certificate.as_dict(),
                }
                for one in self.promises
            ],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """How much was used after each release."""
        axes: Axes = pictures().plot_history(self, ax=ax)
        return axes

    def __str__(self) -> str:
        return "\n".join(str(one) for one in self.promises)


def budget_of(promise: Promise, releases: Sequence[Revealed]) -> PromiseBudget:
    """What ``releases`` have left of ``promise``."""
    certificate = promise.kept_by(releases).certificate()
    region = promise.design.region
    points = region.points if region.points is not None else region.probes(PROBES, promise.design.inputs, batch=0)
    points = np.vstack([points, certificate.worst_input[None]])
    histories = [_history(promise, reading, points) for reading in interpretations(releases)]
    return PromiseBudget(promise, certificate, max(histories, key=lambda history: history[-1]))


def _history(promise: Promise, releases: Sequence[Revealed], points: Array) -> tuple[float, ...]:
    """The share of the tolerance that was used after each release, at ``points``, of records and of any average."""
    design, prior = promise.design, promise.prior
    points = points if design.protects_function else points[:0]
    history = []
    for count in range(1, len(releases) + 1):
        try:
            published = Published.by(prior, promise.layout, releases[:count])
        except BudgetError:
            # some of it has no noise at all
            history.append(np.inf)
            continue
        composed, values = published.composition, published.values(releases, promise.by)
        places, together = values.places(points), values.places(design.sensitive)
        if not len(composed) or not len(places):
            history.append(0.0)
            continue

        def about(S: Array) -> Array:
            return published.whitened(as_array(values.with_data(composed.inputs, S)))  # noqa: B023

        used = float(np.max(np.sum(about(places) ** 2, axis=0) / design.tolerance.budget(values, places)))
        if design.guarantee == "joint" and len(together):
            used = max(used, most_used(about(together), design.tolerance.matrix(values, together)))
        history.append(used)
    return tuple(history)
