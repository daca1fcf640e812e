"""Least noise for any demands: pointwise promises, several priors, or both (MATH.md, section 5).

Three ideas make it small. Only some of the columns u of pointwise demands bind: solve for those, look which of the
others are broken, add them. For the columns at hand, noise ``P T Pᵀ`` with ``range(P) ⊇ range(U)`` meets the demands
*exactly* if T meets small ones (central_path.py), so P only has to be rich enough: it starts as the range of U and
grows by ``A F``, as in Krylov methods, because the optimal F solves ``A F + F·diag(t) = U·(…)``. And the small program
is convex, and a few Newton steps a round are enough.

Whatever happens in between, the noise that is returned meets every demand in float64, and the bound is proved by the
witness that comes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ..arrays import Array, Index
from ..linalg import Weighting, one_thread, solve_lower
from .central_path import InteriorSolution, Slack, SmallDemand, least_trace
from .demand import Demand, inner, lower_bound, root_of, times


class View:
    """One demand seen through ``A = L Lᵀ``.

    With ``Σ = F Fᵀ``, ``G = L⁻¹F`` and ``W = L⁻¹U`` what is learnt is ``φ = WᵀW − WᵀG (I + GᵀG)⁻¹ GᵀW``, or its
    diagonal where the demand is pointwise.
    """

    def __init__(self, demand: Demand, lower: Array) -> None:
        self.covariance, self.joint = demand.covariance, demand.joint
        self.lower, self.root = lower, np.array(demand.root, order="C")
        self.white = solve_lower(lower, self.root)
        self.bare = inner(self.white, self.white, self.joint)

    def whiten(self, block: Array) -> Array:
        return solve_lower(self.lower, np.ascontiguousarray(block))

    def learnt(self, spread: Array) -> Array:
        """φ, for ``spread`` = G."""
        lower = np.linalg.cholesky(np.eye(spread.shape[1]) + spread.T @ spread)
        half = scipy.linalg.solve_triangular(lower, spread.T @ self.white, lower=True, check_finite=False)
        return np.asarray(self.bare - inner(half, half, self.joint))

    def learnt_with(self, learnt: Array, spread: Array, column: Array) -> Array:
        """φ once the noise has one more column c: with ``y = L⁻¹c`` = ``column``, less by a matrix of rank one."""
        gram = np.eye(spread.shape[1]) + spread.T @ spread
        left = column - spread @ scipy.linalg.solve(gram, spread.T @ column, assume_a="pos", check_finite=False)
        met = self.white.T @ left
        change = (np.outer(met, met) if self.joint else met**2) / (1.0 + column @ left)
        return np.asarray(learnt - change)

    def worst(self, learnt: Array) -> tuple[float, Array, int]:
        """The largest φ, the combination of columns of U that has it, and its number (−1 for a mixture)."""
        if self.joint:
            # all eigenpairs: where many are close to 1, a solver for the largest alone may find none
            values, vectors = np.linalg.eigh(learnt)
            return float(values[-1]), self.root @ vectors[:, -1], -1
        number = int(np.argmax(learnt))
        return float(learnt[number]), self.root[:, number], number


#: Noise is scaled by at most this factor to meet its demands.
MOST_SCALED = 2.0


@one_thread()
def scaled_to_meet(views: Sequence[View], spreads: Sequence[Array]) -> float | None:
    """The least c ≤ ``MOST_SCALED`` such that c·Σ meets all demands, c − 1 to within a few percent; None if none does.

    With ``GᵀG = E diag(g) Eᵀ`` and ``X = Eᵀ GᵀW`` what is learnt is ``WᵀW − Xᵀ diag(c / (1 + c g)) X``.
    """
    parts = []
    for view, spread in zip(views, spreads, strict=True):
        values, vectors = np.linalg.eigh(spread.T @ spread)
        parts.append((view, np.maximum(values, 0.0)[:, None], vectors.T @ (spread.T @ view.white)))

    def meets(scale: float) -> bool:
        for view, values, met in parts:
            share = scale / (1.0 + scale * values)
            less = met.T @ (share * met) if view.joint else np.sum(share * met**2, axis=0)
            if view.worst(view.bare - less)[0] > 1.0:
                return False
        return True

    if meets(1.0):
        return 1.0
    low, high = 1e-16, 1e-12
    while not meets(1.0 + high):
        low, high = high, 8.0 * high
        if 1.0 + high > MOST_SCALED:
            return None
    while high > 1.05 * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if meets(1.0 + middle) else (middle, high)
    return 1.0 + high


@one_thread()
def mended(views: Sequence[View], factor: Array, margin: float) -> tuple[Array, list[set[int]]]:
    """``F`` with columns added until each φ is below 1 − margin/2, and the columns of U that were taken for it.

    Noise ``c u uᵀ`` brings ``φ = uᵀM⁻¹u`` down to ``φ/(1 + cφ)``; with ``c = 1/(1 − margin) − 1/φ`` that is 1 − margin.
    The worst column goes first: what it adds covers its neighbours too.
    """
    taken: list[set[int]] = [set() for _ in views]
    spreads = [view.whiten(factor) for view in views]
    learnt = [view.learnt(spread) for view, spread in zip(views, spreads, strict=True)]
    columns = sum(view.root.shape[1] for view in views)
    for count in range(50 * columns):
        found = [view.worst(each) for view, each in zip(views, learnt, strict=True)]
        which = max(range(len(views)), key=lambda j: found[j][0])
        value, direction, number = found[which]
        if value <= 1.0 - margin / 2:
            break
        # a small margin may drown in round-off: after each time round all columns it is doubled
        wanted = min(0.5, margin * 2.0 ** (count // columns))
        column = np.sqrt(1.0 / (1.0 - wanted) - 1.0 / value) * direction[:, None]
        if number >= 0:
            taken[which].add(number)
        factor = np.hstack([factor, column])
        for j, view in enumerate(views):
            white = view.whiten(column)
            learnt[j] = view.learnt_with(learnt[j], spreads[j], white[:, 0])
            spreads[j] = np.hstack([spreads[j], white])
    return factor, taken


#: A direction is new if at least this share of it lies outside P.
LEAST_NEW_SHARE = 1e-10


class Subspace:
    """P with orthonormal columns, and ``L⁻¹P`` for each view: what makes a demand about ``Σ = P T Pᵀ`` one about T."""

    def __init__(self, views: Sequence[View], rows: int, whole: bool) -> None:
        self.views = views
        self.columns = np.eye(rows) if whole else np.zeros((rows, 0))
        self.white = [view.whiten(self.columns) for view in views]

    @property
    def size(self) -> int:
        return int(self.columns.shape[1])

    def grow(self, block: Array) -> Array:
        """P takes in the columns of ``block``; returns the directions that were new."""
        none = block[:, :0]
        if self.size == self.columns.shape[0] or not block.shape[1]:
            return none
        fresh = self._outside(block / np.maximum(np.linalg.norm(block, axis=0), np.finfo(float).tiny))
        frame, triangle, _ = scipy.linalg.qr(fresh, mode="economic", pivoting=True, check_finite=False)
        fresh = frame[:, np.abs(np.diag(triangle)) > LEAST_NEW_SHARE]
        if not fresh.shape[1]:
            return none
        fresh = np.linalg.qr(self._outside(fresh))[0]
        self.columns = np.hstack([self.columns, fresh])
        self.white = [np.hstack([old, view.whiten(fresh)]) for old, view in zip(self.white, self.views, strict=True)]
        return np.asarray(fresh)

    def _outside(self, block: Array) -> Array:
        for _ in range(2):
            block = block - self.columns @ (self.columns.T @ block)
        return block

    def compress(self, work: Sequence[Index]) -> tuple[list[SmallDemand], list[Array]]:
        """The demands on T for the columns ``work`` of each U, and Z of ``L⁻¹P = Z R`` for each view."""
        small, frames = [], []
        for view, white, index in zip(self.views, self.white, work, strict=True):
            frame, whitener = np.linalg.qr(white)
            frames.append(frame)
            small.append(SmallDemand(whitener, frame.T @ view.white[:, index], view.joint))
        return small, frames


#: More rounds than any problem has needed.
MOST_ROUNDS = 30

#: The search is over after this many rounds in a row that did not bring the gap down by a tenth.
MOST_IDLE_ROUNDS = 6

#: Up to this many rows one thread is faster than several.
ROWS_FOR_ONE_THREAD = 300

#: Up to this many rows the whole space is as fast as a subspace.
ROWS_FOR_WHOLE_SPACE = 48

#: Eigenvalues of T below this many τ are the barrier's, not the noise's.
NEGLIGIBLE = 20.0

#: Directions of U below this share of the largest are its round-off.
SMALLEST = 1e-15

#: Columns u with ``uᵀA⁻¹u ≤ 1 − SURELY_MET`` are met by any noise, also after round-off.
SURELY_MET = 1e-6


@dataclass(frozen=True, eq=False)
class CorrelatedSolution:
    """Noise ``Σ = F Fᵀ`` that meets all demands, and a witness: what it proves, ``Tr CΣ`` cannot be less than.

    ``witness`` has one matrix for each demand, as ``Demand.value`` takes it; together they have ``Σ Λ ⪯ C``.
    """

    factor: Array
    witness: tuple[Array, ...]


def correlated_noise(
    demands: Sequence[Demand],
    weights: Array | None = None,
    accuracy: float = 1e-5,
    start: Array | None = None,
    say: Callable[[str], None] | None = None,
) -> CorrelatedSolution:
    """The least ``Tr CΣ`` over all ``Σ ⪰ 0`` that meet every one of ``demands``.

    ``weights`` is C: None for the identity, a positive diagonal, or a positive definite matrix. ``start`` is the factor
    of noise for a similar problem, to start from. The search ends when ``Tr CΣ`` and its lower bound differ by no more
    than ``accuracy``, as a share of ``Tr CΣ``, or when float64 goes no further. ``say`` hears of each round.

    Guarantee: ``demand.ratio(F Fᵀ) ≤ 1`` for each demand, whether or not ``accuracy`` was reached.

    >>> import numpy as np
    >>> two = Demand(np.eye(2), np.diag([2.0, 3.0]), joint=False)
    >>> solution = correlated_noise([two])
    >>> round(float(np.sum(solution.factor**2)), 3), round(lower_bound([two], solution.witness), 3)
    (11.0, 11.0)
    """
    weighting = Weighting(weights)
    covariances = {id(demand.covariance): demand.covariance for demand in demands}
    turned = {key: weighting.both(covariance) for key, covariance in covariances.items()}
    plain = [Demand(turned[id(d.covariance)], weighting.forward(d.root), d.joint) for d in demands]
    search = _Search(plain)
    with one_thread(when=search.rows <= ROWS_FOR_ONE_THREAD):
        search.run(accuracy, None if start is None else weighting.forward(start), say)
    return CorrelatedSolution(
        factor=_checked(demands, weighting, search),
        witness=tuple(weighting.forward(part) for part in search.full_witness()),
    )


def _checked(demands: Sequence[Demand], weighting: Weighting, search: _Search) -> Array:
    """The factor that was found, with as much more as round-off in the demands' own check asks for."""
    found = search.factor
    for attempt in range(40):
        factor = weighting.backward(found)
        noise = factor @ factor.T
        if all(demand.ratio(noise) <= 1.0 for demand in demands):
            return factor
        more = 2.0 ** (attempt - 50)
        found = np.sqrt(1.0 + more) * found
        found = mended(search.views, found, more)[0] if search.views else found
    raise np.linalg.LinAlgError("a demand's covariance is too close to singular for its noise to be checked in float64")


class _Search:
    """The best noise and the best witness so far, for demands with C = I."""

    def __init__(self, demands: Sequence[Demand]) -> None:
        self.demands = demands
        self.views: list[View] = []
        #: for each view the number of its demand, and the columns of it that may ever bind: any noise meets the others
        self.kept: list[tuple[int, Index]] = []
        lowers: dict[int, Array] = {}
        for number, demand in enumerate(demands):
            key = id(demand.covariance)
            if key not in lowers:
                lowers[key] = scipy.linalg.cholesky(demand.covariance, lower=True, check_finite=False)
            view = View(replace(demand, root=_thin(demand.root)) if demand.joint else demand, lowers[key])
            binding = np.arange(view.root.shape[1])
            if not demand.joint:
                binding = np.flatnonzero(view.bare > 1.0 - SURELY_MET)
                view = View(replace(demand, root=demand.root[:, binding]), lowers[key])
            if binding.size and view.worst(view.bare)[0] > 1.0 - SURELY_MET:
                self.views.append(view)
                self.kept.append((number, binding))
        self.rows = demands[0].root.shape[0] if demands else 0
        self.factor = np.zeros((self.rows, 0))
        self.trace, self.lower = np.inf, 0.0
        self.witness: list[Array] = [np.zeros((self.rows, 0)) for _ in self.views]
        self.proved: list[Index] = [np.arange(0) for _ in self.views]

    @property
    def gap(self) -> float:
        return 1.0 - self.lower / self.trace

    def full_witness(self) -> list[Array]:
        """The witness for the demands as they were given."""
        full = [np.zeros((self.rows, 0 if demand.joint else demand.root.shape[1])) for demand in self.demands]
        for (number, index), view, columns, part in zip(self.kept, self.views, self.proved, self.witness, strict=True):
            if view.joint:
                full[number] = part
            else:
                full[number][:, index[columns]] = part
        return full

    def run(self, accuracy: float, start: Array | None, say: Callable[[str], None] | None) -> None:
        """Round after round: solve for the columns at hand in P, see what that proves and breaks, take in more."""
        if all(view.worst(view.bare)[0] <= 1.0 for view in self.views):
            return
        given, margin = (self.factor, 0.2) if start is None else (start, 0.02)
        factor, taken = mended(self.views, given, margin)
        self.factor, self.trace = factor, float(np.sum(factor**2))
        work = [_working(view, columns, start) for view, columns in zip(self.views, taken, strict=True)]
        space = Subspace(self.views, self.rows, self.rows <= ROWS_FOR_WHOLE_SPACE)
        space.grow(np.hstack([given, *self._roots(work)]))
        tolerance, lift, level, idle = max(margin / 4, accuracy / 3), margin / 2, None, 0
        for number in range(MOST_ROUNDS):
            small, frames = space.compress(work)
            inner = space.columns.T @ factor
            first = inner @ inner.T + lift * float(np.sum(inner**2)) / space.size * np.eye(space.size)
            try:
                with one_thread():
                    solution = least_trace(small, first, tolerance, level)
            except np.linalg.LinAlgError:
                return
            before = self.gap
            leading = self._prove(small, frames, solution, work)
            self._keep(space, solution, accuracy)
            if say is not None:
                count = sum(index.size for index in work)
                say(f"round {number + 1}: {count} inequalities in {space.size} dimensions, gap {self.gap:.1e}")
            idle = idle + 1 if self.gap > 0.9 * before else 0
            if self.gap <= accuracy or idle == MOST_IDLE_ROUNDS:
                return
            raw = space.columns @ (solution.basis * np.sqrt(solution.values))
            factor, taken = mended(self.views, raw, min(0.2, self.gap))
            fresh = [self._broken(j, raw, work[j], taken[j]) for j in range(len(work))]
            before = space.size
            # as long as it is the missing columns that cost, richer noise for the present ones does not help
            if self.trace - float(np.sum(solution.values)) < 0.5 * (self.trace - self.lower):
                self._enrich(space, solution, 1 + idle)
                if space.size == before:
                    space.grow(leading)
            space.grow(np.hstack(self._roots(fresh)))
            same = space.size == before and not any(index.size for index in fresh)
            if same and tolerance <= accuracy / 3:
                return
            work = [np.concatenate([old, new]) for old, new in zip(work, fresh, strict=True)]
            tolerance = max(accuracy / 3, (min(tolerance, self.gap) if same else self.gap) / 10)
            lift = 0.3 * self.gap
            level = self.gap * self.trace / (space.size + sum(index.size for index in work))

    def _roots(self, work: Sequence[Index]) -> list[Array]:
        return [view.root[:, index] for view, index in zip(self.views, work, strict=True)]

    def _broken(self, number: int, factor: Array, work: Index, taken: set[int]) -> Index:
        """Columns of a pointwise demand to take in: those that were mended, and the worst of those that are broken."""
        view = self.views[number]
        if view.joint:
            return np.arange(0)
        learnt = view.learnt(view.whiten(factor))
        learnt[work] = 0.0
        worst = np.argsort(-learnt)[: max(10, work.size // 2)]
        return np.setdiff1d(np.union1d(worst[learnt[worst] > 1.0], sorted(taken)).astype(np.intp), work)

    def _enrich(self, space: Subspace, solution: InteriorSolution, depth: int) -> None:
        """P takes in A F, for each covariance A, then A times what was new in that, until that is a fair amount."""
        block = space.columns @ solution.basis[:, solution.values > NEGLIGIBLE * solution.level]
        covariances = {id(view.covariance): view.covariance for view in self.views}
        enough = space.size + depth * (4 + space.size // 8)
        while block.shape[1] and space.size < enough:
            block = space.grow(np.hstack([covariance @ block for covariance in covariances.values()]))

    def _keep(self, space: Subspace, solution: InteriorSolution, accuracy: float) -> None:
        """Remember the noise if it is the least so far, or good enough without what the barrier of T ⪰ 0 adds."""
        for least in (NEGLIGIBLE * solution.level, 0.2 * NEGLIGIBLE * solution.level, 0.0):
            chosen = solution.values > least
            inner = solution.basis[:, chosen] * np.sqrt(solution.values[chosen])
            scale = scaled_to_meet(self.views, [white @ inner for white in space.white])
            raw = space.columns @ inner
            options = [] if scale is None else [np.sqrt(scale) * raw]
            if scale != 1.0:
                options.append(mended(self.views, raw, 1e-9)[0])
            factor = min(options, key=lambda option: float(np.sum(option**2)))
            trace = float(np.sum(factor**2))
            enough = self.lower >= (1.0 - accuracy) * trace
            if enough or trace < self.trace:
                self.factor, self.trace = factor, trace
            if enough:
                return

    def _prove(
        self, small: Sequence[SmallDemand], frames: Sequence[Array], solution: InteriorSolution, work: Sequence[Index]
    ) -> Array:
        """Remember the witness if it proves the most so far; returns the leading eigenvectors of its Λ.

        The witness is ``M⁻¹U z^{1/2}`` with ``M⁻¹U = L⁻ᵀ Z (I + R T Rᵀ)⁻¹Û``, its singular values cut down to 1.
        """
        factor = solution.basis * np.sqrt(solution.values)
        parts = []
        for view, demand, z, frame in zip(self.views, small, solution.multipliers, frames, strict=True):
            at = Slack(demand, factor)
            seen = scipy.linalg.solve_triangular(at.lower, at.explained, lower=True, trans="T", check_finite=False)
            seen = frame @ times(seen, root_of(z))
            parts.append(scipy.linalg.solve_triangular(view.lower, seen, lower=True, trans="T", check_finite=False))
        together = np.hstack(parts)
        values, vectors = scipy.linalg.eigh(together.T @ together, check_finite=False)
        clip = (vectors / np.sqrt(np.maximum(values, 1.0))) @ vectors.T
        witness = np.split(together @ clip, np.cumsum([part.shape[1] for part in parts])[:-1], axis=1)
        found = zip(self.views, self._roots(work), strict=True)
        demands = [Demand(view.covariance, root, view.joint) for view, root in found]
        lower = lower_bound(demands, witness)
        if lower > self.lower:
            self.lower, self.witness, self.proved = lower, witness, list(work)
        chosen = values > 0.3
        return np.asarray(together @ (vectors[:, chosen] / np.sqrt(values[chosen])))


def _working(view: View, taken: set[int], start: Array | None) -> Index:
    """The columns to begin with: all of a joint demand, of a pointwise one those that were mended or bind already."""
    if view.joint:
        return np.arange(view.root.shape[1])
    learnt = view.bare if start is None else view.learnt(view.whiten(start))
    close = 1.0 if start is None else 0.995
    binding = set(np.flatnonzero(learnt >= close * np.max(learnt)).tolist())
    return np.array(sorted(taken | binding), dtype=np.intp)


def _thin(root: Array) -> Array:
    """A matrix with the same ``U Uᵀ`` and no more columns than its rank."""
    vectors, values, _ = scipy.linalg.svd(root, full_matrices=False, check_finite=False)
    keep = values > SMALLEST * np.max(values, initial=0.0)
    return np.asarray(vectors[:, keep] * values[keep])
