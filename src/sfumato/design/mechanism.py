"""``protect``: from a prior, inputs, a region and a tolerance to a mechanism that can release outputs."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NoReturn, get_args

import numpy as np

from ..data import Engine, Here, StoredInputs, as_engine, is_dask_frame, rows_of_dask, stacked_outputs
from ..errors import GuaranteeError, GuaranteeWarning, InputError
from ..linalg import VERY_SMALL, few_threads
from ..models import JointPrior, Prior, PriorFamily
from ..noise import SecretKey
from ..progress import AskedProgress
from ..progress import progress as show_progress
from ..promise import Design, Finding, Guarantee, Objective, Protects, Structure, Tolerance, WithDesign, warn_of
from ..proof import Certificate, Effort, Examination, Pieces, examine, look_alike
from ..regions import Region
from ..release import FolderWriter, Release, has_release, has_run, load, make_release, refusal, release_digest
from ..text import counted
from .acceptance import Acceptance
from .arguments import asked_problem, asked_work, check_choice
from .compression import Compression, check_compressible
from .evidence import AskedEvidence, as_asked
from .families import designed_for_families
from .loop import Attempt, attempted, certified_design
from .plan import Method, Plan, decide
from .problem import Problem
from .record_privacy import asked_privacy, with_record_privacy
from .sensitive import AskedCover
from .serving import FELL_BACK
from .spread import far_from_prior, floor_above_spread
from .units import dense_rows
from .worth import ObjectivesOutside, Worth, not_worth_it


@dataclass
class ReleasedSoFar:
    """What a mechanism has released: digests of the values, or the one folder that it releases to."""

    digests: set[bytes] = field(default_factory=set)
    folder: str | None = None


@dataclass(frozen=True, eq=False)
class Mechanism(WithDesign):
    """A way to publish outputs with noise, its certificate, and a secret key that nobody sees.

    Guarantee: nothing in a mechanism depends on y, and everything in it but the key may be published. The noise of a
    release is a function of the key and of (design, y): the same y gets the same noise, so draws cannot be averaged.
    """

    design: Design
    certificate: Certificate
    _key: SecretKey = field(repr=False)
    plan: Plan = field(default_factory=Plan)
    _published: ReleasedSoFar = field(default_factory=ReleasedSoFar, repr=False)
    _engine: Engine = field(default_factory=Here, repr=False)
    _recorder: Callable[[Release], None] | None = field(default=None, repr=False)
    _output_name: str | None = field(default=None, repr=False)
    _acceptance: Acceptance = field(default_factory=Acceptance, repr=False)

    def release(
        self, y: Any, *, output_name: str | None = None, resolution: float | None = None, unsafe_seed: int | None = None
    ) -> Release:
        """Blur ``y``, one value for each input, and give back what may be published.

        Guarantee: raises ``GuaranteeError`` and gives nothing back when the verdict is "do not publish": the
        certificate does not hold, or a high finding on the design or on ``y`` was not accepted. Calling it again with
        the same ``y`` gives the same release; with another one a ``GuaranteeWarning``, because releases of almost the
        same values can be averaged. ``unsafe_seed`` is for experiments: the noise can be rebuilt by anyone who guesses
        it, and the release is marked. A mechanism of a ledger writes what it reveals into the ledger first.
        """
        if self._published.folder is not None:
            raise InputError("this mechanism has released values to a folder already; publish those, or protect again.")
        own_name = self._output_name or ", ".join(self.design.inputs.present)
        if self._recorder is not None and output_name not in (None, own_name):
            raise InputError(
                f"output_name is {output_name!r}, but the ledger was told that this is {own_name!r}; give the name to "
                "ledger.protect."
            )
        if self._recorder is not None and unsafe_seed is not None:
            raise InputError(
                "unsafe_seed is given, but a ledger counts on noise that nobody can take off; leave it out."
            )
        on_values = self.findings_on(y)
        stopping = [one for one in (*self.certificate.findings, *on_values) if one.stops]
        if unsafe_seed is None and stopping and self.certificate.holds:
            raise GuaranteeError(refusal(stopping))
        release = make_release(
            self.design,
            self.certificate,
            self._key,
            y,
            output_name=own_name if output_name is None else output_name,
            resolution=resolution,
            unsafe_seed=unsafe_seed,
            device=self.plan.device or "cpu",
        )
        warn_of(on_values)
        if self._recorder is not None:
            # before anybody sees it: what is interrupted now counts as published
            self._recorder(release)
        elif unsafe_seed is None:
            digests, digest = self._published.digests, release_digest(self.design, y)
            new = digest not in digests
            digests.add(digest)
            if new and len(digests) > 1:
                warnings.warn(
                    f"this mechanism has now released {len(digests)} different sets of values; publish one of them "
                    "only: the noise of releases that are almost the same averages out",
                    GuaranteeWarning,
                    stacklevel=2,
                )
        return release

    def worth(self, y: Any) -> Worth | None:
        """How well readers predict the served rows of ``y`` outside the region, here and with the least noise.

        Each is predicted from the others, and nothing inside is looked at; all rows outside are taken where none is
        served. None where the objective is "noise", or nothing is compared: above 2,000 rows, no row inside, several
        outputs, each value by itself, insiders, ledgers. It is for the owner: it is never part of a release.
        """
        # a release of a ledger has a share of the promise; the least noise for it is other
        if self._recorder is not None or self._objectives is None:
            return None
        return self._objectives.worth(stacked_outputs(self.design.inputs, y))

    @cached_property
    def _objectives(self) -> ObjectivesOutside | None:
        return ObjectivesOutside.of(self.design)

    def findings_on(self, y: Any) -> tuple[Finding, ...]:
        """What the values themselves show, and only their owner may know: it is never part of a release."""
        values = stacked_outputs(self.design.inputs, y)
        found = look_alike(self.design.inputs, values, self.design.prior)
        spread = (*floor_above_spread(self.design, values), *far_from_prior(self.design, values))
        own = (*spread, *not_worth_it(self.worth(y)))
        return self._acceptance.accepts((*found, *own))

    def release_to(
        self,
        folder: str | os.PathLike[str],
        output: str,
        *,
        output_name: str | None = None,
        resolution: float | None = None,
        progress: AskedProgress = True,
    ) -> Release:
        """Blur the column ``output`` of rows that are read part after part, and write the release to ``folder``.

        For inputs from ``sf.rows_of_parquet`` or ``sf.rows_of_dask``, which must have been given that column too.
        ``sf.load(folder)`` opens what is written.

        Guarantee: as for ``release``; the release appears in the folder complete or not at all. A mechanism does this
        once: noise that is drawn again for the same values averages out.
        """
        rows, target = self.design.inputs, os.path.realpath(folder)
        if not isinstance(rows, StoredInputs):
            raise InputError(
                "X of this mechanism is in memory; use release(y).save(path). Inputs from sf.rows_of_parquet or "
                "sf.rows_of_dask can be released to a folder."
            )
        task = {"mechanism": self.design.digest().hex(), "output": output, "name": output_name, "step": resolution}
        run, published = json.dumps([target, task], sort_keys=True), self._published
        again = published.folder == run and not has_release(Path(folder))
        if published.digests or (published.folder is not None and not again):
            raise InputError("this mechanism has released values already; publish those, or protect again.")
        # before anything can be seen: a run that fails is taken up in the same folder, or not at all
        published.folder = run
        # the run's own key is drawn in the folder, so that an interrupted run could be taken up; ours stays unused
        writer = FolderWriter(
            Path(folder),
            rows,
            rows.column(output),
            self._engine,
            lambda text: warnings.warn(text, GuaranteeWarning, stacklevel=4),
            output_name or output,
            resolution,
            self.plan.device or "cpu",
            progress,
        )
        try:
            writer.write(lambda: (self.design, self.certificate), task)
        except InputError:
            if not has_run(Path(folder)):  # nothing was drawn: another folder or output may be tried
                published.folder = None
            raise
        return load(folder)

    def __copy__(self) -> Mechanism:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Mechanism:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Mechanism holds a secret key and cannot be pickled; save what it releases instead: "
            "mechanism.release(y).save(path)."
        )

    @property
    def _title(self) -> str:
        kind = f"correlated noise of rank {self.noise.rank}" if self.noise.rank else "no noise"
        if self.design.structure == "diagonal":
            kind = f"independent noise on {self.noise.rank} of them"
        if suppressed := self.noise.suppressed_count:
            kind += f", {counted(suppressed, 'combination')} suppressed"
        return f"Mechanism for {len(self.design.inputs)} rows: {self.design.guarantee} guarantee, {kind}"

    def __str__(self) -> str:
        return f"{self._title}\n{self.certificate}"

    def _repr_html_(self) -> str:
        return self.certificate.as_html(self._title)

    def __repr__(self) -> str:
        state = f"holds, {self.certificate.evidence}" if self.certificate.holds else "FAILS"
        return f"<Mechanism for {len(self.design.inputs)} rows, {self.certificate.cover} cover, certificate {state}>"


def protect(
    prior: Prior | PriorFamily | JointPrior,
    X: Any,
    region: Region | Mapping[str, Region | None],
    alpha: float | Mapping[str, float] | None = None,
    *,
    floor: Any = None,
    tolerance: Tolerance | None = None,
    protects: Protects = "both",
    insiders: Any = None,
    released: Sequence[str] | None = None,
    guarantee: Guarantee = "joint",
    structure: Structure = "full",
    cover: AskedCover = "auto",
    evidence: AskedEvidence = "best",
    priors: Sequence[Prior | PriorFamily | JointPrior] = (),
    objective: Objective = "noise",
    serve: Any = None,
    weights: Any = None,
    dp: tuple[float, ...] | None = None,
    method: Method = "auto",
    accuracy: float | None = None,
    device: str | None = None,
    engine: Any = None,
    findings: Sequence[Finding] = (),
    accept: Sequence[str] = (),
    progress: AskedProgress = True,
) -> Mechanism:
    """The least noise on outputs at ``X`` that lets readers with the prior know f in ``region`` no better than allowed.

    Give one of ``alpha`` (the fraction of the prior variance that may be learnt), ``floor`` (the standard deviation
    that every reader must keep, in the units of y, or a function of the inputs) and ``tolerance``.

    Guarantee (``certificate.holds``): for every reader who knows ``X``, the prior, V, Σ and the published outputs,
    ``std(f(s)|W) ≥ floor(s)`` at every input s of the region. ``guarantee="joint"`` promises ``K_SX M⁻¹ K_XS ⪯ Δ`` at
    the sensitive inputs as well, so that no weighted average of their values is known better than allowed either;
    ``guarantee="pointwise"`` promises each value by itself, with less noise. With ``priors`` all of that is promised to
    readers who hold any of these priors too; where one of them is a family (``prior.family(lengthscale=(0.5, 2.0))``),
    to every reader of the family.

    ``protects`` says what is sensitive, and ``alpha`` is always the share of it that may be learnt:

    ============ ======================================================================================
    protects     sensitive is
    ============ ======================================================================================
    "both"       f in the region and the records of the data there, y_i = f(x_i) + e_i, and their combinations
    "function"   f in the region: the typical value at given inputs, not any single record
    "records"    each record there: readers may learn f, and keep 1 − α of V, the variance that is the record's
                 own, or the ``floor``
    ============ ======================================================================================

    ``insiders`` are readers who hold rows of the data: "rows" (any one row), one label a row (all rows with the same
    label: a household, a firm), or a list of sets of row numbers. Who holds the prior and the rows of one group then
    learns no more than the same share of what that group did not know, about f and about others' records. That needs
    noise on nearly all rows.

    ============ ======================================================================================
    cover        the floor is promised
    ============ ======================================================================================
    "auto"       everywhere in the region: greedy where that needs few points, else exchange
    "greedy"     everywhere in the region, by a cover that fills it
    "exchange"   everywhere in the region, by inputs added where the floor is not yet kept
    "rows"       at the rows of the data inside the region only, as in the paper; the certificate says
                 how far readers get below the floor between them
    ============ ======================================================================================

    A finite ``Points`` region is protected at its points, ``Everywhere`` at every input there is.

    Over a region the floor is proved at every input, wherever that is possible (``certificate.evidence`` is "proved");
    else a part of it is searched, and ``certificate.findings`` say why. ``evidence="proved"`` takes longer over a proof
    where it must, and raises ``GuaranteeError`` where there is none.

    ``structure="diagonal"`` blurs every row by itself, which needs more noise. ``weights`` (one positive number a row,
    or a positive definite matrix C) asks for the least Tr CΣ.

    ``objective`` says what the noise is the best for, at the same promise (docs/choosing.md):

    ============= =====================================================================================
    objective     the noise
    ============= =====================================================================================
    "noise"       is the least, by its trace Tr Σ (the paper's)
    "predictions" leaves readers the best predictions at the inputs ``serve`` that are to stay useful: their mean
                  posterior variance is least. It counts on the prior more, inside and outside: rehearse it first
    ============= =====================================================================================

    ``serve`` are inputs, or a region: its rows that are not private (or a spread of it, where it has no rows); left
    out, the rows outside the region. ``weights`` then has one positive number for each of them (or for each row). The
    best predictions suppress combinations of rows: those are not published, and the column shows what the rest predicts
    for them. They are the best to a share of ``accuracy`` (1e-4), but for what a proof over the region takes
    (``certificate.gap`` has both). Where readers may hold several priors, or insiders many rows, the least noise is
    taken instead, and a finding says so.

    ``dp=(epsilon, range)``, or with a delta (1e-6), adds independent noise on the records inside the region until each
    of them, in a ``range`` of values, is (ε, δ)-differentially private (``certificate.dp``).

    Several outputs that are related are one process with a ``JointPrior``. ``released`` then names the outputs
    that are published (left out: all that are functions of the inputs), at the inputs ``X`` or, with a dict, each at
    its own; ``region`` (and ``alpha``, ``floor``) may be a dict that says for each sensitive output where it is
    protected, whether it is released itself or not.

    ``method="auto"`` chooses by the number of rows, the prior and the memory that is free (docs/performance.md):

    ============ ======================================================================================
    method       the noise is
    ============ ======================================================================================
    "eigh"       the least, by a full eigenproblem of the joint program
    "subspace"   the least to a share of ``accuracy`` (1e-8), by a subspace that keeps the promise throughout
    "compressed" for any number of rows: a random function, the least to a share of ``accuracy`` (1e-6)
    "sign"       the least, by matrix sign iterations, to compare with
    ============ ======================================================================================

    ``device="cuda"`` works on a GPU. ``engine`` is a ``dask.distributed.Client`` (or its address) whose workers do
    the work on the rows; ``X`` may then be a Dask DataFrame with the inputs, or rows from ``sf.rows_of_parquet``.

    ``findings`` are what you found on your data, such as ``sf.rehearse(…).findings``. They count in the verdict; what
    they say in numbers is yours, and only their codes are published. ``accept`` names the codes of high findings in
    spite of which you publish (``accept=("prior-beaten",)``): the verdict is then "publish with care", and readers see
    what was accepted. What breaks the promise cannot be accepted.

    >>> import numpy as np, gpytorch, sfumato as sf
    >>> kernel = gpytorch.kernels.RBFKernel().double()
    >>> kernel.lengthscale = 20 ** -0.5
    >>> example = sf.protect(sf.Prior(kernel=kernel), np.arange(1, 10) / 10, sf.Points([[0.5]]), alpha=0.5)
    >>> round(example.noise.trace, 4)
    3.5456
    """
    check_choice("cover", cover, get_args(AskedCover))
    asked = asked_work(method, accuracy, device, engine, evidence)
    privacy = asked_privacy(dp)
    if privacy is not None and objective == "predictions":
        raise InputError(
            'dp is given, but objective is "predictions"; noise that is added for the one takes from the other. Leave '
            'dp out, or give objective="noise".'
        )
    acceptance = Acceptance.asked(findings, accept)
    work = as_engine(engine, asked.device)
    X = rows_of_dask(X, list(X.columns), engine=work) if is_dask_frame(X) else X
    problem = asked_problem(
        prior,
        X,
        region,
        alpha,
        floor=floor,
        tolerance=tolerance,
        released=released,
        guarantee=guarantee,
        structure=structure,
        protects=protects,
        insiders=insiders,
        priors=priors,
        weights=weights,
        objective=objective,
        serve=serve,
    )
    with show_progress(progress) as step:
        compression = cache(lambda: Compression(problem, cover, asked, work, step))
        in_memory = engine is None and not isinstance(problem.inputs, StoredInputs)
        size = replace(problem.size, in_memory=in_memory)
        try:
            plan = decide(size, asked, lambda: check_compressible(problem), lambda: compression().guess())
            step.announce(str(plan), plan.seconds)
            if plan.method == "compressed":
                if privacy is not None:
                    raise InputError('dp is given, but method is "compressed"; leave it out, or give fewer rows.')
                design, certificate = compression().design()
            else:
                effort = Effort(done=step.update)

                insist = evidence == "proved"

                def looked_at(one: Design, needed: Sequence[Pieces] | None = None, quick: bool = False) -> Examination:
                    return examine(one, plan.device, needed, replace(effort, quick=quick))

                def attempt_at(one: Problem, start: Attempt | None) -> Attempt:
                    return attempted(dense_rows(one), cover, looked_at, step.stage, insist, start)

                # on a device the large matrices are there, and those that are here are small
                on_device = few_threads() if plan.device else nullcontext()
                with few_threads(1) if len(problem.inputs) <= VERY_SMALL else on_device:
                    planned = replace(problem, plan=plan)
                    if problem.families:
                        design, certificate = designed_for_families(planned, attempt_at, looked_at, step.stage)
                    else:
                        rows = dense_rows(planned)
                        design, certificate = certified_design(rows, cover, looked_at, step.stage, insist=insist)
                    if privacy is not None:
                        design = with_record_privacy(design, *privacy)
                        certificate = looked_at(design).certificate()
                    longer = partial(examine, design, plan.device, None, replace(effort, insist=True))
                    certificate = as_asked(evidence, certificate, longer, step.stage)
        except np.linalg.LinAlgError as error:
            raise InputError(
                "tolerance cannot be inverted at the sensitive inputs (they tell almost the same under it); give fewer "
                f"of them, or a rougher tolerance kernel: {error}."
            ) from error
    if objective == "predictions" and design.serves is None:
        certificate = certificate.with_findings(FELL_BACK[_why_least(problem, design)])
    warn_of(acceptance.in_full(certificate))
    certificate = acceptance.joins(certificate, design)
    return Mechanism(design, certificate, SecretKey.fresh(), plan, _engine=work, _acceptance=acceptance)


def _why_least(problem: Problem, design: Design) -> str:
    """Why the least noise was taken where the best predictions were asked for."""
    if problem.serves is not None:
        return "records" if design.protects == "records" and design.noise.compressed else "search"
    return "priors" if design.others or design.families else "insiders"
