"""Random problems as plain values: rows, kernels, regions and promises of all kinds, sizes and units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import sfumato as sf

from .arithmetic import Array, Tree
from .oracle import Tolerated

Random = np.random.Generator

#: What is asked of ``protect``, and how often in a hundred.
PROGRAMS = {
    "joint": 32,
    "priors": 8,
    "pointwise": 10,
    "diagonal": 8,
    "everywhere": 8,
    "insiders": 6,
    "family": 1,
    "dp": 4,
    "ledger": 6,
    "outputs": 8,
    "compressed": 9,
    "predictions": 12,
}


def chance(random: Random, share: float) -> bool:
    return bool(random.uniform() < share)


def pick(random: Random, shares: Mapping[str, float]) -> str:
    weights = np.array(list(shares.values()), dtype=float)
    return str(random.choice(list(shares), p=weights / weights.sum()))


def around(random: Random, decades: float, extreme: float = 0.08) -> float:
    """A factor within some decades of 1; seldom one far from it."""
    return float(10.0 ** random.uniform(-decades, decades) * (10.0 ** random.uniform(-4, 4)) ** chance(random, extreme))


def spread_of(X: Array) -> Array:
    """How far the rows lie apart in each column; where they do not, something like their size."""
    size = np.abs(X).max(axis=0)
    return np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), np.where(size > 0, size, 1.0))


# ---------------------------------------------------------------- kernels

LEAVES = {
    "rbf": 5.0,
    "matern": 5.0,
    "rational_quadratic": 2.0,
    "periodic": 1.0,
    "spectral_mixture": 1.0,
    "linear": 0.7,
    "polynomial": 0.5,
    "trend": 0.7,
    "cosine": 0.5,
    "stretch": 0.5,
    "constant": 0.5,
}


def drawn_kernel(random: Random, X: Array, variance: float, simple: bool = False) -> Tree:
    """The tree of a kernel over the columns of ``X``, whose values are about ``variance``."""
    spread = spread_of(X)
    first = _leaf(random, spread, np.mean(X, axis=0), {"rbf": 1, "matern": 1, "rational_quadratic": 0.4})
    kind = "one" if simple else pick(random, {"one": 6, "sum": 2, "product": 2, "any": 2})
    if kind == "any":
        first = _leaf(random, spread, np.mean(X, axis=0), LEAVES)
    if kind in ("sum", "product"):
        parts = [first, *(_leaf(random, spread, np.mean(X, axis=0), LEAVES) for _ in range(random.integers(1, 3)))]
        parts = [
            {"kind": "scale", "variance": around(random, 1), "kernel": p} if chance(random, 0.5) else p for p in parts
        ]
        first = {"kind": kind, "kernels": parts}
    return {"kind": "scale", "variance": variance, "kernel": first}


def _leaf(random: Random, spread: Array, centre: Array, shares: dict[str, float]) -> Tree:
    kind, columns = pick(random, shares), len(spread)
    tree: Tree = {}
    if columns > 1 and (chance(random, 0.25) or kind == "cosine"):
        chosen = sorted(
            random.choice(columns, size=1 if kind == "cosine" else random.integers(1, columns), replace=False)
        )
        tree["active_dims"] = [int(one) for one in chosen]
        spread, centre = spread[chosen], centre[chosen]
    unit = float(np.exp(np.mean(np.log(spread))))
    each = chance(random, 0.6) or np.ptp(np.log10(spread)) > 1
    # many lengthscales in many columns are rows that tell nothing of each other: quick, and little to see
    low = -0.8 if len(spread) == 1 else -0.3

    def length() -> Any:
        factors = [
            10.0 ** random.uniform(low, 1.2) * (10.0 ** random.uniform(-2, 3)) ** chance(random, 0.05) for _ in spread
        ]
        return [float(f * s) for f, s in zip(factors, spread)] if each else float(factors[0] * unit)

    if kind in ("linear", "polynomial"):
        tree |= {"kind": kind}
        if kind == "linear":
            return tree | {"variance": [float(around(random, 0.5) / s**2) for s in spread]}
        return tree | {"offset": around(random, 0.5), "power": int(random.integers(1, 4))}
    if kind == "trend":
        power = int(random.integers(1, 4))
        return tree | {"kind": kind, "centre": centre.tolist(), "width": spread.tolist(), "power": power}
    if kind == "constant":
        return {"kind": kind, "constant": around(random, 1)}
    if kind == "cosine":
        return tree | {"kind": kind, "period_length": float(unit * around(random, 0.6))}
    if kind == "periodic":
        waves = [float(s * around(random, 0.7)) for s in spread]
        return tree | {"kind": kind, "lengthscale": [around(random, 0.7) for _ in spread], "period_length": waves}
    if kind == "spectral_mixture":
        count = int(random.integers(1, 3))
        means = [[float(random.uniform(0, 2) / s) for s in spread] for _ in range(count)]
        scales = [[float(around(random, 0.5) / s) for s in spread] for _ in range(count)]
        weights = [around(random, 0.5) for _ in range(count)]
        return tree | {"kind": kind, "mixture_weights": weights, "mixture_means": means, "mixture_scales": scales}
    tree["lengthscale"] = length()
    radial = pick(random, {"rbf": 1, "matern": 1, "rational_quadratic": 1}) if kind == "stretch" else kind
    if radial == "matern":
        tree["nu"] = float(random.choice([0.5, 1.5, 2.5]))
    if radial == "rational_quadratic":
        tree["alpha"] = around(random, 0.7)
    return tree | {"kind": f"{radial}_stretch" if kind == "stretch" else radial}


# ---------------------------------------------------------------- regions


@dataclass(frozen=True)
class Area:
    """A region twice: as sfumato's, and as a plain tree that inputs are drawn from here."""

    tree: dict[str, Any]

    def region(self) -> Any:
        """What ``protect`` takes."""
        return _region(self.tree)

    @property
    def is_finite(self) -> bool:
        return "points" in self.tree

    @property
    def is_everywhere(self) -> bool:
        return "everywhere" in self.tree

    def holds(self, A: Array, X: Array) -> Array:
        """Which rows of ``A`` lie in it."""
        return _holds(self.tree, A, X)

    def inputs(self, random: Random, count: int, X: Array) -> Array:
        """Up to ``count`` inputs of it; columns without bounds have the combinations of rows of ``X``."""
        found = _inputs(self.tree, random, count, X)
        return found[_holds(self.tree, found, X)] if len(found) else found


def _region(tree: dict[str, Any]) -> Any:
    if "everywhere" in tree:
        return sf.Everywhere()
    if "points" in tree:
        return sf.Points(tree["points"])
    if "ball" in tree:
        return sf.Ball(tree["ball"], tree["radius"])
    if "columns" in tree:
        return sf.Box({name: tuple(sides) for name, sides in tree["columns"].items()})
    if "box" in tree:
        return sf.Box([low for low, _ in tree["box"]], [high for _, high in tree["box"]])
    first, second = (_region(part) for part in tree["parts"])
    return first | second if tree["join"] == "or" else first & second


def _sides(tree: dict[str, Any], columns: int) -> list[tuple[float | None, float | None]]:
    if "box" in tree:
        return [tuple(one) for one in tree["box"]]
    named = {int(name[1:]): tuple(sides) for name, sides in tree["columns"].items()}
    return [named.get(column, (None, None)) for column in range(columns)]


def _holds(tree: dict[str, Any], A: Array, X: Array) -> Array:
    if "everywhere" in tree:
        return np.ones(len(A), dtype=bool)
    if "points" in tree:
        return np.array([any(np.array_equal(a, p) for p in np.array(tree["points"])) for a in A], dtype=bool)
    if "ball" in tree:
        return np.linalg.norm((A - np.array(tree["ball"])) / tree["radius"], axis=1) <= 1.0
    if "join" in tree:
        first, second = (_holds(part, A, X) for part in tree["parts"])
        return first | second if tree["join"] == "or" else first & second
    inside = np.ones(len(A), dtype=bool)
    for column, (low, high) in enumerate(_sides(tree, A.shape[1])):
        inside &= A[:, column] >= (-np.inf if low is None else low)
        inside &= A[:, column] <= (np.inf if high is None else high)
    return inside


def _inputs(tree: dict[str, Any], random: Random, count: int, X: Array) -> Array:
    columns = X.shape[1]
    if "everywhere" in tree:
        low, high = X.min(axis=0), X.max(axis=0)
        return random.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), size=(count, columns))
    if "points" in tree:
        return np.array(tree["points"])
    if "ball" in tree:
        way = random.normal(size=(count, columns))
        way /= np.linalg.norm(way, axis=1, keepdims=True)
        reach = np.minimum(random.uniform(0, 1.1, size=(count, 1)) ** (1 / columns), 1 - 1e-9)
        return np.array(tree["ball"]) + tree["radius"] * reach * way
    if "join" in tree:
        return np.vstack([_inputs(part, random, count, X) for part in tree["parts"]])
    found = X[random.integers(len(X), size=count)].copy()
    for column, (low, high) in enumerate(_sides(tree, columns)):
        if low is None and high is None:
            continue
        least, most = X[:, column].min(), X[:, column].max()
        a = min(least, high) if low is None else low
        b = max(most, low) if high is None else high
        at = random.uniform(-0.1, 1.1, size=count).clip(0.0, 1.0)  # sides and corners too
        found[:, column] = np.clip(a + at * (b - a), a, b)
    return found


def drawn_area(random: Random, X: Array, everywhere: bool = False, mostly_points: bool = False) -> Area:
    if everywhere:
        return Area({"everywhere": True})
    points = 60.0 if mostly_points else {1: 3.0, 2: 4.0, 3: 20.0, 4: 30.0}[X.shape[1]]
    kind = pick(random, {"box": 5, "columns": 2, "ball": 2, "points": points, "or": 1.0, "and": 1})
    if kind in ("or", "and"):
        parts = [_shape(random, X, pick(random, {"box": 2, "ball": 1})) for _ in range(2)]
        if kind == "and":  # around a common place, so that they meet
            parts = [_shape(random, X, "box", parts[0].get("ball")), parts[0]]
        return Area({"join": kind, "parts": parts})
    return Area(_shape(random, X, kind))


def _shape(random: Random, X: Array, kind: str, at: list[float] | None = None) -> dict[str, Any]:
    columns, spread = X.shape[1], spread_of(X)
    centre = X[random.integers(len(X))] + spread * random.normal(size=columns) * float(random.choice([0.0, 0.1, 0.5]))
    # mostly among the data, where there is something to protect
    centre = centre if chance(random, 0.05) else np.clip(centre, X.min(axis=0), X.max(axis=0))
    centre = centre if at is None else np.array(at)
    size = 0.5 * random.uniform(0.02, 0.6) / columns * spread
    if kind == "points":
        count = int(random.integers(1, 6))
        rows = X[random.integers(len(X), size=count)] + spread * random.normal(size=(count, columns)) * random.choice(
            [0, 0.1, 0.3]
        )
        if count > 1 and chance(random, 0.1):
            rows[1] = rows[0] + spread * 10.0 ** random.uniform(-6, -2)
        return {"points": np.unique(rows, axis=0).tolist()}
    if kind == "ball":
        return {"ball": centre.tolist(), "radius": float(np.exp(np.mean(np.log(size))))}
    sides: list[Any] = [[float(c - s), float(c + s)] for c, s in zip(centre, size)]
    if chance(random, 0.1):
        sides[random.integers(columns)][random.integers(2)] = None
    if chance(random, 0.05):
        column = random.integers(columns)
        sides[column] = [float(centre[column])] * 2 if columns == 1 else [None, None]
    if kind == "columns" and columns > 1:
        chosen = random.choice(columns, size=random.integers(1, columns + 1), replace=False)
        return {"columns": {f"x{column}": sides[column] for column in chosen if sides[column] != [None, None]}}
    return {"box": sides}


# ---------------------------------------------------------------- whole problems


@dataclass(frozen=True)
class Drawn:
    """A problem: everything that ``protect`` is asked, as plain values."""

    program: str
    X: Array
    tree: Tree
    noise: float | list[float]
    area: Area
    tolerated: Tolerated
    protects: Any
    others: tuple[tuple[Tree, float], ...]
    options: dict[str, Any]
    y_factor: float
    mean: float

    @property
    def case(self) -> dict[str, Any]:
        """It as JSON has it."""
        asked = {
            k: (v.tolist() if isinstance(v, np.ndarray) else v)
            for k, v in vars(self.tolerated).items()
            if v is not None
        }
        return {
            "program": self.program,
            "X": self.X.tolist(),
            "kernel": self.tree,
            "noise": self.noise,
            "mean": self.mean,
            "region": self.area.tree,
            "promise": asked,
            "protects": self.protects,
            "others": [list(one) for one in self.others],
            "options": {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in self.options.items()},
        }


def drawn_problem(random: Random) -> Drawn:
    program = pick(random, PROGRAMS)
    # proofs over several columns take seconds, so most problems are small
    columns = int(random.choice([1, 2, 3, 4], p=[0.62, 0.26, 0.08, 0.04]))
    X = _rows(random, columns, many=program == "compressed" and chance(random, 0.1))
    variance = float(10.0 ** random.uniform(-18, 18)) if chance(random, 0.3) else around(random, 2)
    everywhere = program == "everywhere"
    tree = drawn_kernel(
        random, X, variance, simple=program in ("family", "everywhere", "outputs") or chance(random, 0.3)
    )
    area = drawn_area(
        random,
        X,
        everywhere,
        mostly_points=program in ("pointwise", "insiders", "family", "predictions") and columns > 1,
    )
    noise = _noise(random, len(X), variance, program)
    protects = pick(random, {"both": 3, "function": 3, "records": 2})
    alone = noise == 0.0 or not np.any(area.holds(X, X))
    if protects == "records" and alone and chance(random, 0.9):
        protects = "function"
    options: dict[str, Any] = {}
    others: tuple[tuple[Tree, float], ...] = ()
    if program == "priors":
        more = range(random.integers(1, 3))
        others = tuple(
            (drawn_kernel(random, X, variance * around(random, 0.3), True), variance * around(random, 1.5) / 30)
            for _ in more
        )
    if program == "pointwise":
        options["guarantee"] = "pointwise"
    if program == "diagonal":
        options["structure"] = "diagonal"
        if chance(random, 0.3):
            options["guarantee"] = "pointwise"
    if program == "insiders":
        rows = np.arange(len(X))
        options["insiders"] = (
            "rows" if chance(random, 0.5) else [[int(r) for r in rows[k::3]] for k in range(3) if len(rows[k::3])]
        )
        if chance(random, 0.2):
            options["guarantee"] = "pointwise"
    if program == "predictions":
        options["objective"] = "predictions"
        kind = pick(random, {"joint": 5, "pointwise": 2, "insiders": 1, "compressed": 2})
        halves = [[*range(side, len(X), 2)] for side in (0, 1)]
        more: dict[str, dict[str, Any]] = {"pointwise": {"guarantee": kind}, "insiders": {"insiders": halves}}
        options |= more.get(kind, {}) if len(X) > 1 else {}
        if kind == "compressed":
            options["method"] = kind
        if chance(random, 0.3):
            options["serve"] = X[random.integers(len(X), size=2)] + 0.05 * spread_of(X)
    if program == "family":
        options["family"] = {"lengthscale": [float(random.uniform(0.6, 1)), float(random.uniform(1, 1.6))]}
        if chance(random, 0.5):
            options["family"] |= {"variance": [0.7, 1.5], "noise": [0.5, 1.0]}
    if program == "dp":
        options["dp"] = (float(around(random, 0.7)), float(np.sqrt(variance) * around(random, 0.5)))
    if program == "compressed":
        options["method"] = "compressed"
    elif program == "joint" and chance(random, 0.3):
        options["method"] = str(random.choice(["eigh", "subspace", "sign"]))
    if program not in ("ledger", "family", "compressed", "predictions") and chance(random, 0.06):
        options["weights"] = np.array([around(random, 1) for _ in X])
    if not area.is_finite and not everywhere:
        if chance(random, 0.2):
            options["cover"] = str(random.choice(["rows", "greedy", "exchange"]))
        if chance(random, 0.03):
            options["evidence"] = "proved"
    return Drawn(
        program,
        X,
        tree,
        noise,
        area,
        _tolerated(random, X, tree, variance, area, protects),
        protects,
        others,
        options,
        float(10.0 ** random.uniform(2, 12)) if chance(random, 0.02) else 1.0,
        float(np.sqrt(variance) * random.normal() * 10.0 ** random.uniform(0, 3)) if chance(random, 0.3) else 0.0,
    )


def _rows(random: Random, columns: int, many: bool) -> Array:
    count = (
        int(random.integers(60, 200))
        if many
        else int(random.integers(1, 9))
        if chance(random, 0.8)
        else int(random.integers(9, 21))
    )
    scale = 10.0 ** random.uniform(-9, 9, size=columns) if chance(random, 0.3) else np.ones(columns)
    kind = pick(random, {"uniform": 3, "grid": 2, "normal": 1, "whole": 1})
    if kind == "grid":
        steps = max(1, round(count ** (1 / columns)))
        sides = np.meshgrid(*[np.linspace(0.0, 1.0, steps)] * columns)
        X = np.stack([side.ravel() for side in sides], axis=1)
    elif kind == "whole":
        X = random.integers(0, 5, size=(count, columns)).astype(float)
    else:
        X = random.uniform(size=(count, columns)) if kind == "uniform" else random.normal(size=(count, columns))
    if len(X) > 1 and chance(random, 0.3):
        X[random.integers(len(X), size=2)] = X[random.integers(len(X))]
    if chance(random, 0.1):
        X = X + 10.0 ** random.uniform(0, 5, size=columns)
    return X * scale


def _noise(random: Random, rows: int, variance: float, program: str) -> float | list[float]:
    if chance(random, 0.2) and program not in ("compressed", "dp"):
        return 0.0
    level = variance * 10.0 ** random.uniform(-8, 1.5)
    if chance(random, 0.15) and program not in ("ledger", "outputs"):
        return [float(level * 10.0 ** random.uniform(-1, 1)) for _ in range(rows)]
    return float(level)


def _tolerated(random: Random, X: Array, tree: Tree, variance: float, area: Area, protects: str) -> Tolerated:
    records = protects == "records"
    kind = pick(random, {"alpha": 6, "floor": 3, "tree": 0.6, "matrix": 0.6})
    alpha = float(random.uniform(0.02, 0.98)) if chance(random, 0.85) else float(10.0 ** random.uniform(-5, -2))
    if kind == "floor":
        return Tolerated(floor=float(np.sqrt(variance) * random.uniform(0.05, 0.98)), records=records)
    if kind == "tree" and not records and not area.is_everywhere:
        return Tolerated(tree={"kind": "scale", "variance": alpha, "kernel": tree})
    if kind == "matrix" and not records and area.is_finite:
        points = np.array(area.tree["points"])
        skew = random.normal(size=(len(points), len(points)))
        matrix = variance * alpha * (0.5 * np.eye(len(points)) + 0.5 * skew @ skew.T / len(points))
        return Tolerated(matrix=(matrix + matrix.T) / 2, points=points)
    return Tolerated(alpha=alpha, records=records)
