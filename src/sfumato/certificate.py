"""The certificate: proof from the published objects alone that a promise is kept.

Nothing here knows how Σ was found, and nothing is shared with the code that found it. The reader's covariance
``M = K_XX + V + Σ`` is taken from the safe side: what round-off could hide is subtracted from it before it is inverted
(never added, as a jitter would be), and bounds for the round-off of the other terms are counted against the promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.spatial import cKDTree

from .design import Design
from .inputs import Array
from .reader import Reader, needed_everywhere
from .tolerance import FloorTolerance, TabulatedFloor

#: Ratios are promised to within this much; it is far above round-off and far below anything one can see.
TOLERANCE = 1e-9

#: The check takes its inputs from this turn of the region's sequence; designs look at other turns.
FRESH_TURN = 1


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was promised, and by how much it is kept.

    Guarantee: when ``holds`` is true, a reader who knows the inputs, the prior, V, Σ and every published value keeps
    a standard deviation of at least the floor at each input for which the promise was made, and
    ``K_SX M⁻¹ K_XS ⪯ Δ`` holds at the sensitive inputs, each to within 1e-9 and with round-off counted against it.

    ================== ===================================================================================
    ``promise``        what is promised, in words, and ``prior``: to readers with which prior
    ``holds``          the promise is kept where it was made
    ``joint_ratio``    λ_max(Δ^{-1/2} K_SX M⁻¹ K_XS Δ^{-1/2}), at most 1
    ``floor_ratio``    the least std(f(s)|W) / floor(s) over the whole region: at least 1, except that
                       ``cover="rows"`` does not promise it between the rows
    ``promised_ratio`` the same over the inputs for which it was promised
    ``worst_input``    where ``floor_ratio`` is reached, with ``worst_std`` and ``worst_floor``
    ``trace``          the noise: Tr Σ
    ``trace_lower``    a lower bound for any noise that keeps the joint promise at the sensitive inputs
    ``gap``            how far at most what was minimised (Tr Σ, or Tr CΣ) is from its least value, as a share
    ``spill``          the share of the noise that falls on rows outside the region
    ``sensitive``      how many sensitive inputs carry the joint promise
    ``checked``        at how many inputs the floor was checked
    ``allowance``      the round-off that was subtracted from M
    ================== ===================================================================================
    """

    promise: str
    prior: str
    cover: str
    holds: bool
    joint_ratio: float
    floor_ratio: float
    promised_ratio: float
    worst_input: Array
    worst_std: float
    worst_floor: float
    trace: float
    trace_lower: float
    gap: float
    spill: float
    sensitive: int
    checked: int
    allowance: float
    columns: tuple[str, ...]
    notes: tuple[str, ...]

    def rows(self) -> list[tuple[str, str]]:
        """The certificate as label and value, for tables."""
        place = ", ".join(f"{name} = {value:.6g}" for name, value in zip(self.columns, self.worst_input, strict=True))
        floor = f"{self.floor_ratio:.9g} (at least 1)"
        if self.floor_ratio < 1 - TOLERANCE:
            floor = f"{self.floor_ratio:.9g}  BELOW 1" + (", not promised there" if self.holds else "")
        return [
            ("promise", self.promise),
            ("to readers with the", self.prior),
            ("holds", "yes" if self.holds else "NO"),
            ("joint ratio", f"{self.joint_ratio:.9g} (at most 1)"),
            ("floor ratio over the region", floor),
            ("worst input", place),
            ("reader's std there", f"{self.worst_std:.6g}, floor {self.worst_floor:.6g}"),
            ("trace of the noise", f"{self.trace:.6g}"),
            ("lower bound, gap", f"{self.trace_lower:.6g}, {self.gap:.2e}"),
            ("spill outside the region", f"{self.spill:.1%}"),
            ("cover", f"{self.cover}, {self.sensitive} sensitive inputs"),
            ("inputs checked", f"{self.checked:,}"),
            *(("note", note) for note in self.notes),
        ]

    def as_dict(self) -> dict[str, Any]:
        """All fields in plain Python types; what is not finite becomes None, as JSON has it."""
        plain: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and not np.isfinite(value):
                value = None
            plain[name] = list(value) if isinstance(value, tuple) else value
        return plain | {"worst_input": self.worst_input.tolist()}

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in rows)


def certify(design: Design) -> Certificate:
    """Check the promise of ``design`` from its published objects alone."""
    reader = Reader(design)
    joint_ratio = reader.joint_ratio()
    points = check_inputs(design)
    ratios = reader.floor_ratios(points)
    if _may_wander(design):
        extra = _walk_downhill(design, points, ratios, reader.floor_ratios)
        if extra.shape[0]:
            points = np.vstack([points, extra])
            ratios = np.concatenate([ratios, reader.floor_ratios(extra)])
    worst = int(np.argmin(ratios))
    promised_ratio = float(ratios[worst])
    if design.cover == "rows":
        rows = design.rows_inside()
        promised_ratio = float(np.min(reader.floor_ratios(rows))) if len(rows) else 0.0
    trace, lower, gap = _optimality(design, reader.data_covariance)
    floor = float(design.tolerance.floor(design.prior, points[worst : worst + 1])[0])
    return Certificate(
        promise=_promise_in_words(design),
        prior=str(design.prior),
        cover=design.cover,
        holds=bool(joint_ratio <= 1 + TOLERANCE and promised_ratio >= 1 - TOLERANCE and _table_is_dense(design)),
        joint_ratio=joint_ratio,
        floor_ratio=float(ratios[worst]),
        promised_ratio=promised_ratio,
        worst_input=np.array(points[worst]),
        worst_std=floor * float(ratios[worst]) if floor > 0 else float(reader.deviations(points[worst : worst + 1])[0]),
        worst_floor=floor,
        trace=trace,
        trace_lower=lower,
        gap=gap,
        spill=_spill(design),
        sensitive=len(design.inputs) if design.cover == "everywhere" else int(design.sensitive.shape[0]),
        checked=int(points.shape[0]),
        allowance=reader.allowance,
        columns=design.inputs.names,
        notes=_notes(design, reader, float(ratios[worst]), points[worst], int(np.sum(np.isinf(ratios)))),
    )


def check_inputs(design: Design) -> Array:
    """The inputs at which the floor is checked before the search for the worst one."""
    return design.tolerance.inputs if isinstance(design.tolerance, TabulatedFloor) else _dense_inputs(design)


def _dense_inputs(design: Design) -> Array:
    """The points of a finite region; else a dense set of the region and the inputs of it next to the rows."""
    if design.region.points is not None:
        return design.region.points
    count = 4001 if design.inputs.dimension == 1 else int(np.clip(2_500_000 // len(design.inputs), 2048, 8192))
    dense = design.region.candidates(count, design.inputs, turn=FRESH_TURN)
    return np.vstack([dense, design.rows_in_reach()])


def _may_wander(design: Design) -> bool:
    return design.region.points is None and not isinstance(design.tolerance, TabulatedFloor)


def _walk_downhill(
    design: Design, points: Array, ratios: Array, ratios_at: Callable[[Array], Array], walkers: int = 16
) -> Array:
    """Walk from the worst inputs to worse ones inside the region, with shrinking steps; the places visited."""
    moving = np.flatnonzero(design.region.moves(design.inputs.dimension))
    spread = np.ptp(points[:, moving], axis=0) if moving.size else np.zeros(0)
    moving, spread = moving[spread > 0], spread[spread > 0]
    if moving.size == 0:
        return points[:0]
    # half of the walkers start from the very worst inputs, the others from places spread over the worst quarter
    order = np.argsort(ratios, kind="stable")
    quarter = order[: max(1, len(order) // 4)]
    half = walkers // 2
    here = points[np.unique(np.concatenate([order[:half], quarter[:: -(-len(quarter) // half)]]))]
    step = np.tile(np.maximum(spread / points.shape[0] ** (1 / moving.size), 0.02 * spread), (len(here), 1))
    best = ratios_at(here)
    for _ in range(20):
        trial = np.repeat(here[:, None, :], 2 * moving.size, axis=1)
        for k, column in enumerate(moving):
            trial[:, 2 * k, column] += step[:, k]
            trial[:, 2 * k + 1, column] -= step[:, k]
        flat = design.region.project(trial.reshape(-1, trial.shape[2]), design.inputs)
        inside = design.region.contains(flat)
        values = np.full(flat.shape[0], np.inf)
        if np.any(inside):
            values[inside] = ratios_at(flat[inside])
        table = values.reshape(len(here), -1)
        choice = np.argmin(table, axis=1)
        found = table[np.arange(len(here)), choice]
        better = found < best
        here = np.where(better[:, None], flat.reshape(len(here), -1, flat.shape[1])[np.arange(len(here)), choice], here)
        best = np.where(better, found, best)
        step[~better] *= 0.35
    return np.asarray(here)


def _optimality(design: Design, data_covariance: Array) -> tuple[float, float, float]:
    """The trace, a lower bound for every noise that keeps the joint promise, and the gap of what was minimised.

    For any P with orthonormal columns ``Tr Σ ≥ Tr PᵀΣP ≥ Tr (Pᵀ B P)⁺`` whenever ``Σ ⪰ B`` and ``Σ ⪰ 0``.
    """
    trace = design.noise.trace
    if not np.any(design.noise.factor):
        return trace, 0.0, 0.0 if trace == 0 else 1.0
    lower = _lower_bound(design, data_covariance, design.noise.factor, None)
    if design.weights is None:
        return trace, lower, max(0.0, 1.0 - lower / trace)
    scaled, scale = _weighted(design.weights, design.noise.factor)
    objective = float(np.sum(scaled**2)) + design.noise.shift * float(
        np.sum(design.weights) if design.weights.ndim == 1 else np.trace(design.weights)
    )
    return trace, lower, max(0.0, 1.0 - _lower_bound(design, data_covariance, scaled, scale) / objective)


def _weighted(weights: Array, factor: Array) -> tuple[Array, Callable[[Array], Array]]:
    """C^{1/2} F, and multiplication by C^{1/2}."""
    if weights.ndim == 1:
        root = np.sqrt(weights)[:, None]
        return root * factor, lambda block: root * block
    values, vectors = scipy.linalg.eigh(weights)
    full = (vectors * np.sqrt(values)) @ vectors.T
    return full @ factor, lambda block: np.asarray(full @ block)


def _lower_bound(
    design: Design, data_covariance: Array, factor: Array, scale: Callable[[Array], Array] | None
) -> float:
    basis, _ = scipy.linalg.qr(factor, mode="economic", check_finite=False)
    directions = basis if scale is None else scale(basis)
    prior, inputs = design.prior, design.inputs
    if design.cover == "everywhere":
        required = directions.T @ (needed_everywhere(design) @ directions)
    elif design.sensitive.shape[0] == 0:
        return 0.0
    else:
        seen = prior.covariance(design.sensitive, inputs) @ directions
        delta = design.tolerance.matrix(prior, design.sensitive)
        try:
            required = seen.T @ scipy.linalg.solve(delta, seen, assume_a="pos", check_finite=False)
        except np.linalg.LinAlgError:
            return 0.0
    there = directions.T @ (data_covariance @ directions)
    reduced = required - there
    return float(np.sum(np.maximum(scipy.linalg.eigvalsh((reduced + reduced.T) / 2), 0.0)))


def _spill(design: Design) -> float:
    variance = design.noise.variance()
    total = float(np.sum(variance))
    inside = design.region.contains(design.inputs.values)
    return float(np.sum(variance[~inside])) / total if total > 0 else 0.0


def _promise_in_words(design: Design) -> str:
    names = design.inputs.names
    where = design.region.in_words(names)
    free = _free_columns(design)
    if free:
        where += f" ({', '.join(free)} as observed together in the data)"
    place = {
        "rows": f"at any row of the data with {where}",
        "points": f"at any of {where}",
        "everywhere": "at any input",
    }.get(design.cover, f"at any input with {where}")
    return (
        f"no reader can know f(s) better than the floor {place}, "
        f"nor any weighted average of f at the sensitive inputs: {design.tolerance.in_words()}"
    )


def _free_columns(design: Design) -> list[str]:
    """The columns that the region leaves to the combinations that rows of the data have."""
    if design.region.points is not None or design.cover in ("rows", "everywhere"):
        return []
    dimension = design.inputs.dimension
    lower, upper = design.region.limits(dimension)
    kept = np.isinf(lower) & np.isinf(upper) & ~design.region.moves(dimension)
    return [name for name, free in zip(design.inputs.names, kept, strict=True) if free]


def _notes(design: Design, reader: Reader, floor_ratio: float, worst: Array, bare: int) -> tuple[str, ...]:
    notes = []
    place = ", ".join(f"{name} = {value:.6g}" for name, value in zip(design.inputs.names, worst, strict=True))
    if design.cover == "rows" and floor_ratio < 1 - TOLERANCE:
        notes.append(
            f"ONLY THE ROWS ARE PROTECTED: between them, at {place}, readers get {100 * (1 - floor_ratio):.2g} % "
            'below the floor; use cover="auto" to protect the whole region'
        )
    if bare:
        notes.append(
            f"NO FLOOR AT {bare} OF THE CHECKED INPUTS: there the tolerance is as large as the prior variance, so a "
            "release may tell everything"
        )
    if reader.lower is None:
        notes.append(
            "the covariance of the published values is singular to working precision, so nothing can be certified"
        )
    if design.noise.shift > 0:
        notes.append(
            f"the data's covariance is singular to working precision; every row also carries independent noise of "
            f"standard deviation {np.sqrt(design.noise.shift):.1e}"
        )
    promised = design.rows_inside() if design.cover == "rows" else design.region.points
    if promised is not None and 0 < len(design.sensitive) < len(promised):
        notes.append(
            f"the joint promise is made for {len(design.sensitive)} of the {len(promised)} inputs; they determine the "
            f"others to within {reader.undetermined(promised):.1e} of their standard deviation"
        )
    if isinstance(design.tolerance, FloorTolerance) and callable(design.tolerance.value):
        notes.append("the floor varies over the region and was looked at only where it was checked")
    if isinstance(design.tolerance, TabulatedFloor):
        notes.append("the floor varies over the region and was checked at the inputs listed in the file")
        if not _table_is_dense(design):
            notes.append("THE FILE GIVES THE FLOOR AT SOME INPUTS OF THE REGION ONLY, so the promise cannot be checked")
    return tuple(notes)


def _table_is_dense(design: Design) -> bool:
    """Whether a floor that came as a table is given wherever it has to be checked."""
    if not isinstance(design.tolerance, TabulatedFloor):
        return True
    wanted = _dense_inputs(design)
    scale = np.maximum(np.ptp(wanted, axis=0), np.finfo(float).tiny)
    distance, _ = cKDTree(design.tolerance.inputs / scale).query(wanted / scale)
    return bool(np.max(distance) <= 1e-6)
