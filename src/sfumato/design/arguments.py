"""What ``protect`` is given, checked before any work: every message names the argument, the value and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import numpy as np
import torch
from gpytorch.kernels import CosineKernel

from ..arrays import Array, frozen
from ..data import Inputs, MemoryInputs, Outputs, StoredInputs, as_inputs, in_row_order, stacked_inputs
from ..errors import InputError
from ..models import JointPrior, Prior, PriorFamily
from ..promise import (
    FloorTolerance,
    FractionTolerance,
    Guarantee,
    MatrixTolerance,
    Objective,
    OutputTolerance,
    Protects,
    Reader,
    RecordTolerance,
    Structure,
    Tolerance,
    as_insiders,
)
from ..regions import Everywhere, OutputRegion, Points, Region
from ..release import MOST_PRIORS
from .acceptance import Acceptance
from .evidence import AskedEvidence
from .families import check_families
from .insiders import check_insiders
from .plan import Asked, Method
from .problem import Problem, no_rows_inside
from .sensitive import AskedCover
from .serving import can_serve, check_objective, check_unknown, positive_numbers, served_inputs

#: At how many inputs of a region it is looked how much may be learnt.
LOOKS = 512


def _joint_task(
    joint: JointPrior, X: Any, region: Any, released: Any, others: Sequence[JointPrior]
) -> tuple[Prior, tuple[Prior, ...], Inputs, Region]:
    """Prior, other priors, released rows and sensitive region of several outputs, as if they were one.

    A pair of an input and an output is a row with the output's number in the last column; from there on nothing is
    special. ``X`` is common to all outputs or a dict with those of each; ``region`` likewise.
    """
    for other in others:
        if other.outputs != joint.outputs:
            raise InputError(
                f"priors has a JointPrior that is not about the outputs {', '.join(joint.outputs)}; give JointPriors "
                "with the same outputs in the same order."
            )
    inputs = _inputs(joint, X, _released(joint, X, released))
    names, about = inputs.plain.names, inputs.outputs.numbers(inputs.values)
    priors = []
    for one in (joint, *others):
        noise = np.array([one.noise_of(name) for name in one.outputs])[about]
        level = float(noise[0]) if np.ptp(noise) == 0 else noise
        priors.append(replace(one.prior_on(names), noise=level, encoding=inputs.encoding))
    return priors[0], tuple(priors[1:]), inputs, _region(joint, region, names)


def _released(joint: JointPrior, X: Any, released: Any) -> tuple[str, ...]:
    outputs = Outputs.several(joint.outputs)
    if isinstance(X, Mapping):
        given = tuple(X)
        for name in given:
            outputs.number(name, "X")
        if released is not None and set(released) != set(given):
            raise InputError(
                f"released is {tuple(released)!r}, but X has inputs for {given!r}; give the same, or leave it out."
            )
        if not given:
            raise InputError("X is empty; give inputs for each output that is released.")
        return given
    if released is None:
        return tuple(name for name in joint.outputs if joint.takes_input(name))
    chosen = (released,) if isinstance(released, str) else tuple(released)
    if not chosen or len({outputs.number(name, "released") for name in chosen}) < len(chosen):
        raise InputError(f"released is {chosen!r}; name each output that is to be published once.")
    return chosen


def _inputs(joint: JointPrior, X: Any, released: Sequence[str], argument: str = "X") -> Inputs:
    given = X if isinstance(X, Mapping) else dict.fromkeys(released, X)
    rows: dict[str, Inputs] = {}
    for name in filter(joint.takes_input, released):
        if given[name] is None:
            raise InputError(f"{argument} has no inputs for {name!r}, which is a function of them.")
        first = next(iter(rows.values()), None)
        encoding = joint.encoding if first is None else first.encoding
        called = f"{argument}[{name!r}]" if isinstance(X, Mapping) else argument
        rows[name] = as_inputs(given[name], called, encoding=encoding)
    common = next(iter(rows.values()), None)
    names, columns = (None, None) if common is None else (common.names, common.columns)
    for name in released:
        if name not in rows:
            encoding = None if common is None else common.encoding
            rows[name] = MemoryInputs(np.array(joint.place_of(name, names))[None], columns, encoding=encoding)
    return stacked_inputs({name: rows[name] for name in released}, Outputs.several(joint.outputs))


def _region(joint: JointPrior, region: Any, names: tuple[str, ...], argument: str = "region") -> Region:
    if isinstance(region, (Everywhere, OutputRegion)):
        return region
    if isinstance(region, Region):
        region = {name: region for name in joint.outputs if joint.takes_input(name)}
    if not isinstance(region, Mapping) or not region:
        raise InputError(
            f"region is {region!r}; give a region for all outputs, or a dict with one for each sensitive output, such "
            f"as {{{joint.outputs[0]!r}: sf.Box(1, 2)}}."
        )
    parts: dict[int, Region] = {}
    outputs = Outputs.several(joint.outputs)
    for name, part in region.items():
        number = outputs.number(name, argument)
        if not joint.takes_input(name):
            if part is not None and not isinstance(part, Everywhere):
                raise InputError(
                    f"{argument} has {part!r} for {name!r}, which is one quantity and has no inputs; give None for it."
                )
            part = Points(np.array(joint.place_of(name, names))[None])
        elif not isinstance(part, Region):
            raise InputError(f"{argument} has {part!r} for {name!r}; give a region such as sf.Box(1, 2).")
        elif isinstance(part, Everywhere):
            raise InputError(
                f"{argument} has sf.Everywhere() for {name!r}; bound it, or give sf.Everywhere() for all outputs "
                "together."
            )
        parts[number] = part
    return OutputRegion(parts)


def _stacked_serve(joint: JointPrior, inputs: Inputs, serve: Any) -> Inputs | Region:
    """What is to stay useful of several outputs: a region or inputs for all that are released, or a dict of them."""
    given = serve if isinstance(serve, Mapping) else dict.fromkeys(inputs.present, serve)
    if not given:
        raise InputError(
            "serve is {}; give inputs or a region for all outputs, a dict with one for each output that is to stay "
            "useful, or leave it out."
        )
    for name in given:
        Outputs.several(joint.outputs).number(name, "serve")
    if all(isinstance(one, Region) for one in given.values()):
        return _region(joint, serve, inputs.plain.names, "serve")
    return _inputs(joint, serve, tuple(given), "serve")


def _tolerance_by_output(
    joint: JointPrior, prior: Prior, inputs: Inputs, region: Region, alpha: Any, floor: Any, of_function: bool
) -> Tolerance | None:
    """The tolerance where each sensitive output has its own: a dict of them, or a floor, whose meaning is its own.

    None where there is one ``alpha`` for all, or none was given. ``region`` is bound to ``inputs``. Where nothing is
    promised about f, its outputs have nothing in common.
    """
    numbers = region.sensitive if isinstance(region, OutputRegion) else range(len(joint.outputs))
    names = [joint.outputs[number] for number in numbers]
    word, given = ("alpha", alpha) if alpha is not None else ("floor", floor)
    if floor is not None and not isinstance(floor, Mapping):
        given = dict.fromkeys(names, floor)
    if not isinstance(given, Mapping):
        return None
    for name in given:
        Outputs.several(names).number(name, word)
    missing = [name for name in names if name not in given]
    if missing:
        raise InputError(f"{word} has no value for {missing[0]!r}, which is sensitive; give one for each of {names}.")
    if any(callable(value) for value in given.values()):
        raise InputError(f"{word} has a function for an output; give a number for each output.")
    make = FractionTolerance if word == "alpha" else FloorTolerance
    parts = tuple((number, make(given[joint.outputs[number]])) for number in numbers)
    if not of_function:
        return OutputTolerance(parts, 1.0)
    look = _look(region, inputs)
    for number, part in parts:
        # first, so that a floor above the prior's own spread is named as such
        part.check(prior, look[look[:, -1] == number], inputs)
    return OutputTolerance.of(parts, prior, look)


def asked_problem(
    prior: Any,
    X: Any,
    region: Any,
    alpha: Any = None,
    *,
    floor: Any = None,
    tolerance: Any = None,
    released: Any = None,
    guarantee: Guarantee = "joint",
    structure: Structure = "full",
    protects: Protects = "both",
    insiders: Any = None,
    priors: Any = (),
    weights: Any = None,
    objective: Objective = "noise",
    serve: Any = None,
) -> Problem:
    """The problem that ``protect`` is to solve, with everything checked.

    It ``serves`` nothing where the best predictions were asked for readers with several priors, or for many insiders:
    the least noise is taken then.
    """
    _check_words(protects, guarantee, structure)
    check_objective(objective, structure, serve)
    families = tuple(dict.fromkeys(one for one in (prior, *_listed(priors)) if isinstance(one, PriorFamily)))
    prior = prior.prior if isinstance(prior, PriorFamily) else prior
    priors = tuple(one for one in _listed(priors) if not isinstance(one, PriorFamily)) if families else priors
    if isinstance(prior, JointPrior):
        if families:
            raise InputError("priors has a family of priors for one output, but prior is a sf.JointPrior.")
        joint = prior
        prior, others, inputs, region = _joint_task(joint, X, region, released, _others(prior, priors))
    else:
        if not isinstance(prior, Prior):
            raise InputError(f"prior is {prior!r}; give a sf.Prior, for example from sf.fit_prior(X, y).")
        if released is not None or isinstance(region, Mapping) or isinstance(X, Mapping):
            raise InputError(
                "released, or a dict of inputs or regions, is for several outputs that are one process; give a "
                "sf.JointPrior, which says how they belong together."
            )
        joint, others, inputs = None, _others(prior, priors), as_inputs(X, encoding=prior.encoding)
        if inputs.encoding is not None:
            known = [
                one if one.encoding is not None else replace(one, encoding=inputs.encoding) for one in (prior, *others)
            ]
            prior, others = known[0], tuple(known[1:])
    if not isinstance(region, Region):
        raise InputError(
            f"region is {region!r}; give a region such as sf.Box(1, 2), or sf.parse_region('1 <= t <= 2', columns)."
        )
    bound = region.bind(inputs)
    ways = {"alpha": alpha, "floor": floor, "tolerance": tolerance}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        said = f"{' and '.join(given)} were" if given else "none of them was"
        raise InputError(f"give exactly one of alpha, floor and tolerance; {said} given.")
    chosen = None
    if joint is not None and tolerance is None:
        chosen = _tolerance_by_output(joint, prior, inputs, bound, alpha, floor, protects != "records")
    chosen = chosen or _chosen_tolerance(alpha, floor, tolerance, bound)
    for one in (prior, *others):
        check_prior(one, inputs)
    serves, cost = None, None
    if objective == "noise":
        cost = _checked_weights(in_row_order(weights, inputs.index, "weights"), len(inputs))
    else:
        stacked = None if joint is None else partial(_stacked_serve, joint, inputs)
        serves = served_inputs(serve, weights, inputs, bound, stacked)
        check_unknown(serves, prior)
    if protects == "records":
        chosen = _record_tolerance(chosen)
    if families and isinstance(inputs, StoredInputs):
        raise InputError("prior is a family, but X is read part after part; a family needs all rows in memory.")
    if insiders is not None and isinstance(inputs, StoredInputs):
        raise InputError("insiders is given, but X is read part after part; insiders need all rows in memory.")
    groups = as_insiders(insiders, len(inputs))
    problem = Problem(
        prior,
        inputs,
        bound,
        chosen,
        cost,
        guarantee,
        structure,
        others,
        protects=protects,
        insiders=groups,
        families=families,
        serves=serves,
    )
    if not can_serve(1 + len(others) + len(families), groups, 0 if groups is None else len(problem.records)):
        problem = replace(problem, serves=None)
    if isinstance(bound, Everywhere) and not problem.joint:
        raise InputError(
            'guarantee is "pointwise" and region is sf.Everywhere(), where nobody can look at every input; use '
            'guarantee="joint", which promises it everywhere by a formula, or bound the region.'
        )
    _check_tolerance(problem)
    check_insiders(problem)
    return check_families(problem, _look(bound, inputs.sample)) if families else problem


def _chosen_tolerance(alpha: Any, floor: Any, tolerance: Any, region: Region) -> Tolerance:
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


def _listed(priors: Any) -> tuple[Any, ...]:
    return tuple(priors) if isinstance(priors, Iterable) else ()


def _others(prior: Prior | JointPrior, priors: Any) -> tuple[Any, ...]:
    """The priors that readers may hold besides ``prior``: of its kind, and not too many."""
    kind = type(prior).__name__
    if isinstance(priors, (Prior, JointPrior)) or not isinstance(priors, Iterable):
        raise InputError(
            f"priors is a {type(priors).__name__}; give a list of sf.{kind} that readers may hold besides."
        )
    others = tuple(priors)
    for one in others:
        if not isinstance(one, type(prior)):
            raise InputError(f"priors has a {type(one).__name__} in it; give a list of sf.{kind}.")
    if len(others) >= MOST_PRIORS:
        raise InputError(f"priors has {len(others)} entries; give fewer than {MOST_PRIORS}.")
    return tuple(one for one in others if one is not prior)


def _record_tolerance(tolerance: Tolerance) -> RecordTolerance:
    if not isinstance(tolerance, (FractionTolerance, FloorTolerance, OutputTolerance)):
        raise InputError(
            f'protects is "records", but tolerance is a {type(tolerance).__name__}, which is about the function; give '
            'alpha or floor, or protects="both".'
        )
    return RecordTolerance(tolerance)


def _check_records(problem: Problem) -> None:
    """Refuse a promise about records where there are none, or none with a part of its own."""
    if problem.protects != "records" or isinstance(problem.inputs, StoredInputs):
        return
    if not np.any(problem.region.contains(problem.inputs.values)):
        raise no_rows_inside(problem)
    if not len(problem.records):
        raise InputError(
            'protects is "records", but the prior says that records have nothing of their own (noise is 0), so that '
            "nothing would be promised; give the prior the variance of what is each record's own (noise), or "
            'protects="function".'
        )
    for prior in problem.priors:
        values = Reader(prior).values(problem.inputs, problem.records)
        problem.tolerance.check(values, values.places(problem.inputs.values[:0]), problem.inputs)


def _check_tolerance(problem: Problem) -> None:
    region, tolerance, inputs = problem.region, problem.tolerance, problem.inputs
    _check_records(problem)
    if problem.protects == "records":
        return
    for prior in problem.priors:
        if isinstance(region, Everywhere) and isinstance(tolerance, FloorTolerance):
            variance = prior.variance(inputs)
            if callable(tolerance.value):
                raise InputError("region is sf.Everywhere(); give alpha or one floor for it, or bound the region.")
            if np.ptp(variance) > 1e-9 * variance.max():
                raise InputError(
                    "region is sf.Everywhere() and the prior variance differs from input to input, so one floor has no "
                    "single meaning; give alpha, or bound the region."
                )
        tolerance.check(prior, _look(region, inputs.sample), inputs)


def _look(region: Region, inputs: Inputs) -> Array:
    return region.points if region.points is not None else region.probes(LOOKS, inputs, batch=0)


def check_prior(prior: Prior, inputs: Inputs) -> None:
    if not isinstance(prior.noise, float):
        prior.noise_variance(len(inputs))
    sample = inputs.sample
    try:
        values = np.concatenate([prior.covariance(sample.values[:2]).ravel(), prior.mean_at(sample.values[:2])])
    except (InputError, RuntimeError, IndexError) as error:
        raise InputError(
            f"prior does not fit X, which has {inputs.dimension} feature(s) ({', '.join(inputs.names)}): {error}"
        ) from error
    for part in prior.kernel.modules():
        wide = isinstance(part, CosineKernel) and (part.active_dims is None or part.active_dims.numel() > 1)
        if wide and inputs.features > 1:
            raise InputError(
                "prior has a CosineKernel over several columns, which is no covariance; give it one column "
                "(active_dims), or multiply one for each."
            )
    variance = prior.variance(sample)
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(variance)) and np.all(variance > 0)):
        raise InputError(
            "prior has a variance that is zero, negative or not finite at some row of X; check the kernel's parameters."
        )


def _checked_weights(weights: Any, rows: int) -> Array | None:
    if weights is None:
        return None
    try:
        values = np.array(np.real(weights), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights is {str(weights)[:60]!r}; give one positive number a row.") from None
    if np.iscomplexobj(np.asarray(weights)) or (values.ndim == 2 and not np.all(np.isfinite(values))):
        raise InputError("weights has complex, infinite or missing entries; give positive, finite numbers.")
    if values.shape == (rows,):
        return positive_numbers(values, rows, "row")
    if values.shape == (rows, rows):
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
    return frozen(values)


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} is {value!r}; choose one of {', '.join(map(repr, allowed))}.")


def check_settings(
    *,
    alpha: Any = None,
    floor: Any = None,
    protects: Any = "both",
    guarantee: Any = "joint",
    structure: Any = "full",
    objective: Any = "noise",
    serve: Any = None,
    cover: Any = "auto",
    evidence: Any = "best",
    method: Any = "auto",
    accuracy: Any = None,
    device: Any = None,
    accept: Any = (),
) -> None:
    """Refuse, before a prior is fitted, what ``protect`` refuses under every prior."""
    _check_words(protects, guarantee, structure)
    check_objective(objective, structure, serve)
    check_choice("cover", cover, get_args(AskedCover))
    asked_work(method, accuracy, device, None, evidence)
    Acceptance.asked((), accept)
    for given, kind in ((alpha, FractionTolerance), (floor, FloorTolerance)):
        for value in given.values() if isinstance(given, Mapping) else [given]:
            if value is not None:
                kind(value)


def _check_words(protects: Any, guarantee: Any, structure: Any) -> None:
    check_choice("protects", protects, get_args(Protects))
    check_choice("guarantee", guarantee, get_args(Guarantee))
    check_choice("structure", structure, get_args(Structure))


def asked_work(method: Any, accuracy: Any, device: Any, engine: Any, evidence: Any) -> Asked:
    """How it is to be worked out; refuses an accuracy that is none and a device that is not there."""
    check_choice("method", method, get_args(Method))
    check_choice("evidence", evidence, get_args(AskedEvidence))
    if accuracy is not None and not (isinstance(accuracy, (int, float)) and 0.0 < accuracy < 1.0):  # True is 1
        raise InputError(f"accuracy is {accuracy!r}; give a share between 0 and 1, such as 1e-6, or leave it out.")
    if device is not None:
        try:
            kind = torch.device(device).type
        except (RuntimeError, TypeError):
            kind = ""
        if kind not in ("cpu", "cuda"):
            raise InputError(f'device is {device!r}; give "cpu" or "cuda", or leave it out.')
        if kind == "cuda" and not torch.cuda.is_available():
            raise InputError(f'device is {device!r}, but PyTorch finds no GPU on this machine; give "cpu".')
    if engine is not None and method not in ("auto", "compressed"):
        raise InputError(
            f'engine is given, but method is {method!r}, which works on this machine only; use method="compressed".'
        )
    return Asked(method, accuracy, device, evidence)
