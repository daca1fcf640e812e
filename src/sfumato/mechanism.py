"""``protect``: from a prior, inputs, a region and a tolerance to a mechanism that can release outputs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, get_args

import numpy as np

from .certificate import Certificate, examine
from .design import Design, Guarantee, Structure
from .entropy import SecretKey
from .errors import GuaranteeWarning, InputError
from .inputs import Array, as_inputs
from .noise import Noise
from .prior import Prior
from .problem import Method, Problem
from .progress import progress as show_progress
from .protect_arguments import (
    check_choice,
    check_prior,
    check_program,
    check_tolerance,
    checked_weights,
    chosen_tolerance,
    other_priors,
)
from .reader import TOLERANCE
from .regions import Everywhere, Region
from .release import Release, make_release, release_digest
from .search import AskedCover, Margins, Proposal, Say, propose
from .tolerance import Tolerance

#: How often a search is only told where it fell short, before it also has to keep more back.
PATIENT = 4

#: A pointwise design for a region is not compared with the joint one if there are more rows and the gap is smaller.
FEW_ROWS, WORTH_COMPARING = 500, 2e-4


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A way to publish outputs with noise, its certificate, and a secret key that nobody sees.

    Guarantee: nothing in a mechanism depends on y, and everything in it but the key may be published. The noise of a
    release is a function of the key and of (design, y): the same y gets the same noise, so draws cannot be averaged.
    """

    design: Design
    certificate: Certificate
    _key: SecretKey = field(repr=False)
    _released: set[bytes] = field(default_factory=set, repr=False)

    @property
    def noise(self) -> Noise:
        """Σ, as ``.factor``, ``.covariance()``, ``.variance()`` and ``.trace``."""
        return self.design.noise

    @property
    def prior(self) -> Prior:
        return self.design.prior

    @property
    def inputs(self) -> Array:
        return self.design.inputs.values

    @property
    def region(self) -> Region:
        return self.design.region

    @property
    def tolerance(self) -> Tolerance:
        return self.design.tolerance

    @property
    def sensitive(self) -> Array:
        """S₀: the sensitive inputs for which the joint promise is made."""
        return self.design.sensitive

    def release(
        self, y: Any, *, output_name: str = "y", resolution: float | None = None, unsafe_seed: int | None = None
    ) -> Release:
        """Blur ``y``, one value for each input, and give back what may be published.

        Guarantee: raises ``GuaranteeError`` and gives nothing back when the certificate does not hold. Calling it again
        with the same ``y`` gives the same release; with another one a ``GuaranteeWarning``, because releases of almost
        the same values can be averaged. ``unsafe_seed`` is for experiments: the noise can be rebuilt by anyone who
        guesses it, and the release is marked.
        """
        release = make_release(
            self.design,
            self.certificate,
            self._key,
            y,
            output_name=output_name,
            resolution=resolution,
            unsafe_seed=unsafe_seed,
        )
        if unsafe_seed is None:
            known, digest = len(self._released), release_digest(self.design, y)
            self._released.add(digest)
            if 0 < known < len(self._released):
                warnings.warn(
                    f"this mechanism has now released {known + 1} different sets of values; publish one of them only: "
                    "the noise of releases that are almost the same averages out",
                    GuaranteeWarning,
                    stacklevel=2,
                )
        return release

    def __copy__(self) -> Mechanism:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Mechanism:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Mechanism holds a secret key and cannot be pickled; save what it releases instead: "
            "mechanism.release(y).save(path)."
        )

    def __str__(self) -> str:
        kind = f"correlated noise of rank {self.noise.rank}"
        if self.design.structure == "diagonal":
            kind = f"independent noise on {self.noise.rank} of them"
        title = f"Mechanism for {len(self.design.inputs)} rows: {self.design.guarantee} guarantee, {kind}"
        return f"{title}\n{self.certificate}"

    def __repr__(self) -> str:
        state = "holds" if self.certificate.holds else "FAILS"
        return f"<Mechanism for {len(self.design.inputs)} rows, {self.certificate.cover} cover, certificate {state}>"


def protect(
    prior: Prior,
    X: Any,
    region: Region,
    alpha: float | None = None,
    *,
    floor: Any = None,
    tolerance: Tolerance | None = None,
    guarantee: Guarantee = "joint",
    structure: Structure = "full",
    cover: AskedCover = "auto",
    priors: Sequence[Prior] = (),
    weights: Any = None,
    method: Method = "auto",
    progress: bool = True,
) -> Mechanism:
    """The least noise on outputs at ``X`` such that nobody learns f in ``region`` better than allowed.

    Give one of ``alpha`` (the fraction of the prior variance that may be learnt), ``floor`` (the standard deviation
    that every reader must keep, in the units of y, or a function of the inputs) and ``tolerance``.

    Guarantee (``certificate.holds``): for every reader who knows ``X``, the prior, V, Σ and the published outputs,
    ``std(f(s)|W) ≥ floor(s)`` at every input s of the region. ``guarantee="joint"`` promises ``K_SX M⁻¹ K_XS ⪯ Δ`` at
    the sensitive inputs as well, so that no weighted average of their values is known better than allowed either;
    ``guarantee="pointwise"`` promises each value by itself, with less noise. With ``priors`` all of that is promised to
    readers who hold any of these priors too.

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
    ``structure="diagonal"`` blurs every row by itself, which needs more noise. ``weights`` (one positive number a row,
    or a positive definite matrix C) asks for the least Tr CΣ. ``method`` says how the positive part of the joint
    program is computed: "eigh", or "sign" (matrix sign iterations, to compare with).

    >>> import numpy as np, gpytorch, sfumato as sf
    >>> kernel = gpytorch.kernels.RBFKernel().double()
    >>> kernel.lengthscale = 20 ** -0.5
    >>> example = sf.protect(sf.Prior(kernel=kernel), np.arange(1, 10) / 10, sf.Points([[0.5]]), alpha=0.5)
    >>> round(example.noise.trace, 4)
    3.5456
    """
    check_choice("guarantee", guarantee, get_args(Guarantee))
    check_choice("structure", structure, get_args(Structure))
    check_choice("method", method, get_args(Method))
    check_choice("cover", cover, get_args(AskedCover))
    if not isinstance(prior, Prior):
        raise InputError(f"prior is {prior!r}; give a sf.Prior, for example from sf.fit_prior(X, y).")
    others = other_priors(prior, priors)
    if not isinstance(region, Region):
        raise InputError(
            f"region is {region!r}; give a region such as sf.Box(1, 2), or sf.parse_region('1 <= t <= 2', columns)."
        )
    inputs = as_inputs(X)
    bound = region.bind(inputs)
    chosen = chosen_tolerance(alpha, floor, tolerance, bound)
    for one in (prior, *others):
        check_prior(one, inputs)
    chosen_weights = checked_weights(weights, len(inputs))
    problem = Problem(prior, inputs, bound, chosen, chosen_weights, guarantee, structure, others, method)
    check_program(problem)
    check_tolerance(problem)
    with show_progress(progress) as step:
        try:
            design, certificate = _design(problem, cover, step.stage)
            if not problem.joint:
                design, certificate = _no_more_than_joint(problem, cover, design, certificate, step.stage)
        except np.linalg.LinAlgError as error:
            raise InputError(
                "tolerance cannot be inverted at the sensitive inputs (they tell almost the same under it); give fewer "
                f"of them, or a rougher tolerance kernel: {error}."
            ) from error
    for note in certificate.notes:
        # what a person must not overlook is in capitals
        if certificate.holds and note.startswith(("ONLY", "NO FLOOR")):
            warnings.warn(note, GuaranteeWarning, stacklevel=2)
    return Mechanism(design, certificate, SecretKey.fresh())


def _design(problem: Problem, cover: AskedCover, say: Say) -> tuple[Design, Certificate]:
    """Propose and certify; what round-off or a fresh look finds is answered with larger margins."""
    margins = Margins()
    proposal: Proposal | None = None
    short = problem.inputs.values[:0]
    for attempt in range(8):
        # even turns only: the certificate looks at turn 1, which a design never sees
        proposal = _propose(problem, cover, margins, proposal, 100 * attempt, say, short)
        design = Design(
            problem.prior,
            problem.inputs,
            problem.region,
            problem.tolerance,
            proposal.cover,
            proposal.sensitive,
            proposal.noise,
            problem.weights,
            problem.guarantee,
            problem.structure,
            problem.others,
            proposal.solution.witness,
        )
        say("checking the promise")
        certificate, found = examine(design)
        if certificate.holds:
            break
        # what was found is looked at from now on; only if that does not help is more kept back
        margins = _wider(margins, certificate, patient=len(found) > 0 and attempt < PATIENT)
        short = np.vstack([short, found])
    return design, certificate


def _no_more_than_joint(
    problem: Problem, cover: AskedCover, design: Design, certificate: Certificate, say: Say
) -> tuple[Design, Certificate]:
    """The noise of the joint promise instead, if it is less: it keeps the pointwise one too.

    The least pointwise noise is never more than the least joint one, but what is found is only nearly the least.
    """
    quick = problem.region.points is not None or cover == "rows" or len(problem.inputs) <= FEW_ROWS
    if certificate.holds and not quick and certificate.gap <= WORTH_COMPARING:
        return design, certificate
    say("comparing with the joint promise")
    try:
        joint, _ = _design(replace(problem, guarantee="joint"), cover, say)
    except (InputError, np.linalg.LinAlgError):
        return design, certificate
    if certificate.holds and problem.objective(joint.noise) >= problem.objective(design.noise):
        return design, certificate
    other = replace(design, noise=joint.noise)
    checked, _ = examine(other)
    return (other, checked) if checked.holds else (design, certificate)


def _wider(margins: Margins, certificate: Certificate, patient: bool) -> Margins:
    above, below = certificate.joint_ratio - 1.0, 1.0 - certificate.promised_ratio
    if certificate.guarantee == "pointwise":
        above = 0.0
    if not np.isfinite(above):
        return replace(margins, independent=min(100.0 * margins.independent, 1e-2))
    if above > TOLERANCE:
        margins = replace(margins, joint=min(max(4.0 * margins.joint, margins.joint + 1.5 * above), 0.5))
    if below > TOLERANCE and not patient:
        margins = replace(margins, floor=min(max(4.0 * margins.floor, margins.floor + 4.0 * below, 1e-9), 0.5))
    return margins


def _propose(
    problem: Problem, cover: AskedCover, margins: Margins, last: Proposal | None, turn: int, say: Say, short: Array
) -> Proposal:
    if not isinstance(problem.region, Everywhere):
        return propose(problem, cover, margins, last, turn, say, short)
    say("noise for every input")
    solution = problem.solve_everywhere(1.0 - margins.joint - margins.floor)
    return Proposal("everywhere", problem.inputs.values[:0], solution)
