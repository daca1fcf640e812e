"""``protect``: from a prior, inputs, a region and a tolerance to a mechanism that can release outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, get_args

import numpy as np

from .certificate import Certificate, examine
from .design import Design, Guarantee, Structure
from .entropy import SecretKey
from .errors import GuaranteeWarning, InputError
from .inputs import Array, Inputs, as_inputs
from .noise import Noise
from .prior import Prior
from .problem import Method, Problem
from .progress import progress as show_progress
from .reader import TOLERANCE
from .regions import Everywhere, Region
from .release import Release, make_release, release_digest
from .release_file import MOST_PRIORS, SMALLEST_WEIGHT
from .search import AskedCover, Margins, Proposal, Say, propose
from .tolerance import FloorTolerance, FractionTolerance, MatrixTolerance, Tolerance

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
    _check_choice("guarantee", guarantee, get_args(Guarantee))
    _check_choice("structure", structure, get_args(Structure))
    _check_choice("method", method, get_args(Method))
    _check_choice("cover", cover, get_args(AskedCover))
    if not isinstance(prior, Prior):
        raise InputError(f"prior is {prior!r}; give a sf.Prior, for example from sf.fit_prior(X, y).")
    others = _others(prior, priors)
    if not isinstance(region, Region):
        raise InputError(
            f"region is {region!r}; give a region such as sf.Box(1, 2), or sf.parse_region('1 <= t <= 2', columns)."
        )
    inputs = as_inputs(X)
    bound = region.bind(inputs)
    chosen = _tolerance(alpha, floor, tolerance, bound)
    for one in (prior, *others):
        _check_prior(one, inputs)
    chosen_weights = _weights(weights, len(inputs))
    problem = Problem(prior, inputs, bound, chosen, chosen_weights, guarantee, structure, others, method)
    _check_program(problem)
    _check_tolerance(problem)
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


def _tolerance(alpha: Any, floor: Any, tolerance: Any, region: Region) -> Tolerance:
    given = [
        name for name, value in (("alpha", alpha), ("floor", floor), ("tolerance", tolerance)) if value is not None
    ]
    if len(given) != 1:
        said = "none of them" if not given else " and ".join(given)
        raise InputError(f"give exactly one of alpha, floor and tolerance; {said} was given.")
    if alpha is not None:
        return FractionTolerance(alpha)
    if floor is not None:
        return FloorTolerance(floor)
    if not isinstance(tolerance, Tolerance):
        raise InputError(f"tolerance is {tolerance!r}; give sf.KernelTolerance(H) or sf.MatrixTolerance(D).")
    if not isinstance(tolerance, MatrixTolerance):
        return tolerance
    if region.points is None:
        raise InputError(
            "tolerance is a MatrixTolerance, which has a row for each sensitive point; use it with sf.Points."
        )
    return tolerance.at(region.points)


def _others(prior: Prior, priors: Any) -> tuple[Prior, ...]:
    """The priors that readers may hold besides ``prior``."""
    if isinstance(priors, Prior) or not isinstance(priors, Iterable):
        raise InputError(
            f"priors is a {type(priors).__name__}; give a list of sf.Prior that readers may hold besides the first one."
        )
    others = tuple(priors)
    for one in others:
        if not isinstance(one, Prior):
            raise InputError(f"priors has a {type(one).__name__} in it; give a list of sf.Prior.")
    if len(others) >= MOST_PRIORS:
        raise InputError(f"priors has {len(others)} entries; give fewer than {MOST_PRIORS}.")
    return tuple(one for one in others if one is not prior)


def _check_program(problem: Problem) -> None:
    """Refuse combinations that mean nothing."""
    if problem.method != "auto" and not (problem.joint and problem.structure == "full" and not problem.others):
        raise InputError(
            f"method is {problem.method!r}, which computes the positive part of the joint program; leave it out with "
            'guarantee="pointwise", structure="diagonal" or priors=[…].'
        )
    if isinstance(problem.region, Everywhere) and not problem.joint:
        raise InputError(
            'guarantee is "pointwise" and region is sf.Everywhere(), where nobody can look at every input; use '
            'guarantee="joint", which promises it everywhere by a formula, or bound the region.'
        )


def _check_tolerance(problem: Problem) -> None:
    region, tolerance, inputs = problem.region, problem.tolerance, problem.inputs
    for audience in problem.audiences:
        if isinstance(region, Everywhere) and isinstance(tolerance, FloorTolerance):
            variance = audience.prior.variance(inputs)
            if callable(tolerance.value):
                raise InputError("region is sf.Everywhere(); give alpha or one floor for it, or bound the region.")
            if np.ptp(variance) > 1e-9 * variance.max():
                raise InputError(
                    "region is sf.Everywhere() and the prior variance differs from input to input, so one floor has no "
                    "single meaning; give alpha, or bound the region."
                )
        look = region.points if region.points is not None else region.candidates(512, inputs, turn=0)
        tolerance.check(audience.prior, look, inputs.names)


def _check_prior(prior: Prior, inputs: Inputs) -> None:
    prior.noise_variance(len(inputs))
    try:
        values = np.concatenate([prior.covariance(inputs.values[:2]).ravel(), prior.mean_at(inputs.values[:2])])
    except (InputError, RuntimeError, IndexError) as error:
        raise InputError(
            f"prior does not fit X, which has {inputs.dimension} feature(s) ({', '.join(inputs.names)}): {error}"
        ) from error
    variance = prior.variance(inputs)
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(variance)) and np.all(variance > 0)):
        raise InputError(
            "prior has a variance that is zero, negative or not finite at some row of X; check the kernel's parameters."
        )


def _weights(weights: Any, rows: int) -> Array | None:
    if weights is None:
        return None
    try:
        values = np.array(np.real(weights) if np.iscomplexobj(weights) else weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights is {str(weights)[:60]!r}; give one positive number a row.") from None
    if np.iscomplexobj(np.asarray(weights)) or (values.ndim == 2 and not np.all(np.isfinite(values))):
        raise InputError("weights has complex, infinite or missing entries; give positive, finite numbers.")
    if values.shape == (rows,):
        wrong = values[~((values >= SMALLEST_WEIGHT) & (values <= 1 / SMALLEST_WEIGHT))]
        if wrong.size:
            raise InputError(
                f"weights has the value {wrong[0]}; give one positive number a row, between {SMALLEST_WEIGHT:g} and "
                f"{1 / SMALLEST_WEIGHT:g}."
            )
    elif values.shape == (rows, rows):
        if not np.allclose(values, values.T, rtol=1e-12, atol=0.0):
            raise InputError("weights is a matrix that is not symmetric; give (C + Cᵀ)/2.")
        least = float(np.linalg.eigvalsh(values)[0])
        if not least > 0:
            raise InputError(
                f"weights is a matrix that is not positive definite (least eigenvalue {least:.3g}); give one that is, "
                "or one positive number a row."
            )
    else:
        raise InputError(f"weights has shape {values.shape}; give {rows} positive numbers or a {rows} × {rows} matrix.")
    values.setflags(write=False)
    return values


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} is {value!r}; choose one of {', '.join(map(repr, allowed))}.")
