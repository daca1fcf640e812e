"""Any kernel, region and program: no reader comes below a floor that is called proved.

An attacker with formulas of their own (attackers.py) looks for the worst input; the region is theirs as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from attackers import Attacker, kernel_values
from sfumato.models import build_kernel

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")

#: Inputs may be far from 0, in any unit.
UNITS, ORIGINS = (1.0, 1e-8, 1e6), (0.0, 0.0, 1e4)

#: What may be said instead of a design.
REFUSED = ("the prior itself already knows", "lies wholly outside the data", "the region is empty")


@st.composite
def leaves(draw, columns: int, unit: float):
    kind = draw(st.sampled_from(["rbf", "matern", "rational_quadratic", "periodic", "linear", "polynomial", "cosine"]))
    seen = draw(st.lists(st.integers(0, columns - 1), min_size=1, max_size=columns, unique=True).map(sorted))
    lengths = [unit * draw(st.floats(0.15, 5.0)) for _ in seen]
    tree = {"kind": kind, "active_dims": seen}
    if kind == "linear":
        return {"kind": "scale", "variance": unit**-2, "kernel": {**tree, "variance": 1.0}}
    if kind == "polynomial":
        tree |= {"offset": unit**2 * draw(st.floats(0.1, 2.0)), "power": draw(st.integers(1, 3))}
        return {"kind": "scale", "variance": unit ** (-2 * tree["power"]), "kernel": tree}
    if kind == "cosine":
        return {"kind": kind, "active_dims": seen[:1], "period_length": lengths[0]}
    if kind == "periodic":
        return {**tree, "lengthscale": [draw(st.floats(0.2, 5.0)) for _ in seen], "period_length": lengths}
    own = {"matern": {"nu": draw(st.sampled_from([1.5, 2.5] if len(seen) > 1 else [0.5, 1.5, 2.5]))}}
    own["rational_quadratic"] = {"alpha": draw(st.floats(0.2, 10.0))}
    return {**tree, "lengthscale": lengths, **own.get(kind, {})}


def kernels(columns: int, unit: float):
    """Sums and products of up to three, and an RBF kernel so that the others determine nothing."""
    rest = {"kind": "rbf", "lengthscale": [0.7 * unit] * columns}
    some = st.lists(leaves(columns, unit), min_size=1, max_size=2)
    joined = st.tuples(st.sampled_from(["sum", "product"]), some).map(lambda p: {"kind": p[0], "kernels": p[1]})
    return st.one_of(
        leaves(columns, unit).map(lambda leaf: {"kind": "sum", "kernels": [leaf, rest]}),
        joined.map(lambda tree: {"kind": "product", "kernels": [tree, rest]}),
        joined.map(lambda tree: {"kind": "sum", "kernels": [tree, rest]}),
    )


@dataclass(frozen=True)
class Place:
    """A region, and the attacker's own idea of it: random inputs, and which inputs lie in it."""

    region: sf.Region
    holds: Callable[[np.ndarray], np.ndarray]
    lower: np.ndarray
    upper: np.ndarray

    def sample(self, count: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        drawn = self.lower + (self.upper - self.lower) * rng.random((20 * count, len(self.lower)))
        return drawn[self.holds(drawn)][:count]

    def into(self) -> Callable[[np.ndarray], np.ndarray]:
        """Inputs outside are moved towards one inside, and to it if that is not enough."""
        anchor = self.sample(1, 0)[0]

        def moved(S: np.ndarray) -> np.ndarray:
            S = np.clip(S, self.lower, self.upper)
            for _ in range(5):
                S = np.where(self.holds(S)[:, None], S, 0.5 * (S + anchor))
            return np.where(self.holds(S)[:, None], S, anchor)

        return moved


def box(middle, sides) -> Place:
    lower, upper = middle - sides / 2, middle + sides / 2
    return Place(sf.Box(lower, upper), lambda S: np.all((lower <= S) & (upper >= S), axis=1), lower, upper)


def ball(middle, radius) -> Place:
    inside = lambda S: np.linalg.norm(S - middle, axis=1) <= radius * (1 - 1e-9)  # noqa: E731
    return Place(sf.Ball(middle, radius), inside, middle - radius, middle + radius)


@st.composite
def places(draw, middle: np.ndarray, unit: float):
    """A box (perhaps flat), a ball, or two of them together or where they meet, around a row."""
    columns = len(middle)

    def one():
        shift = unit * np.array([draw(st.floats(-0.05, 0.05)) for _ in range(columns)])
        if draw(st.booleans()):
            return ball(middle + shift, unit * draw(st.floats(0.08, 0.2)))
        sides = unit * np.array([draw(st.floats(0.12, 0.4)) for _ in range(columns)])
        flat = draw(st.integers(-1, columns - 1)) if columns > 1 else -1
        return box(middle, np.where(np.arange(columns) == flat, 0.0, sides))

    first, how = one(), draw(st.sampled_from(["one", "one", "union", "meeting"]))
    if how == "one":
        return first
    second = one()
    low, high = np.minimum(first.lower, second.lower), np.maximum(first.upper, second.upper)
    if how == "union":
        return Place(first.region | second.region, lambda S: first.holds(S) | second.holds(S), low, high)
    low, high = np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper)
    return Place(first.region & second.region, lambda S: first.holds(S) & second.holds(S), low, high)


@st.composite
def problems(draw):
    columns, kind = draw(st.sampled_from([1, 1, 2, 2, 3])), draw(st.integers(0, 2))
    unit = UNITS[kind]
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    X = rng.random((draw(st.integers(1, 14)), columns))
    if draw(st.booleans()):  # tiny clusters
        X = X[rng.integers(0, len(X), 12)] + 10 ** rng.uniform(-4, -1) * rng.standard_normal((12, columns))
    X = unit * (X + ORIGINS[kind])
    tree = draw(kernels(columns, unit))
    size = float(np.mean(np.diagonal(kernel_values(tree, X, X))))
    V = size * 10 ** rng.uniform(-4, 1, len(X))
    place = draw(places(X[0], unit))
    share = draw(st.sampled_from([0.02, 0.3, 0.6, 0.97]))
    promise = {"alpha": share} if draw(st.booleans()) else {"floor": 0.9 * np.sqrt((1 - share) * size)}
    options = draw(
        st.sampled_from([{}, {}, {"guarantee": "pointwise"}, {"structure": "diagonal"}, {"cover": "exchange"}])
    )
    return tree, X, V, place, promise, options


def check(tree, X, V, place, promise, options):
    if not len(place.sample(1, 0)):
        return
    try:
        prior = sf.Prior(kernel=build_kernel(tree), noise=V)
        mechanism = sf.protect(prior, X, place.region, progress=False, **promise, **options)
    except sf.InputError as error:
        assert any(reason in str(error) for reason in REFUSED), error  # noqa: PT017
        return
    certificate = mechanism.certificate
    attacker = Attacker(tree, X, V, mechanism.noise.covariance(), **promise)
    starts = np.vstack([X, place.sample(400, 1)])
    worst, where = attacker.worst(starts, place.into(), walks=8, steps=25)
    assert certificate.holds
    if worst < 1.0:
        worst = attacker.ratio50(where)
    if certificate.evidence == "proved":
        assert worst >= 1.0 - 1e-9
        assert certificate.floor_ratio <= worst * 1.05


@given(problem=problems())
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
def test_no_proved_floor_is_ever_broken(problem):
    check(*problem)


@pytest.mark.slow
@given(problem=problems())
@settings(max_examples=400, suppress_health_check=list(HealthCheck))
def test_no_proved_floor_is_ever_broken_in_many_problems(problem):
    check(*problem)
