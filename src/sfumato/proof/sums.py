"""Any number of rows with functional noise, through a few p × p sums over them (MATH.md, section 6.3).

``f = φᵀu + g``: features φ around p centres (features.py), and a rest g that is given to the reader. With g known, the
data tell of u what p *virtual rows* tell: the least squares coefficients, u plus noise of covariance ``(ΦᵀV⁻¹Φ)⁻¹``.
Noise ``Z = Φ c ω`` adds ``c cᵀ`` to that. So designs and certificates work on p virtual rows, however many real ones
there are, and every variance here is a lower bound of the true one. Round-off counts against the promise
(roundoff.py): the information that the rows have is raised by what it may have taken from it, and the prior variance of
u is lowered.

**Records.** Where records are promised too, those inside the region carry independent noise of variance D > V. Readers
are given more than they see: e + Z₁ with Var Z₁ = D − V, and f(X) + Z + Z₂ with Var Z₂ = V in place of the errors. Of e
they learn the share V/D; what is left of their share a of it, ``s = (a − V/D) V``, is to spare. A combination of f(S)
and records, ``cᵀu + bᵀg + bᵀe`` with ``c = Φ_Sᵀα + Φ_Rᵀb``, then keeps what it must if what is told of cᵀu is at most
``α|c|² + bᵀDiag(s)b`` less ``(1 − α) bᵀG_RR b``, G = K − ΦΦᵀ. Of all b with the same Φ_Rᵀb the least bᵀDiag(s)b
is what p values tell with the information ``Φ_RᵀDiag(s)⁻¹Φ_R``: one more sum. G_RR is bounded by a multiple of Diag(s),
the sum of the norms of its diagonal blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array
from ..data import Done, Engine, Inputs, Part, StoredColumn, Totals
from ..errors import InputError
from ..linalg import add_gram, side_by_side, solve_lower
from ..machine import free_memory
from ..models import Prior, kernel_matrix
from ..noise import FunctionalNoise, RecordNoise
from ..promise import Design, FunctionAndRecords, Reader, Tolerance, noise_columns, records_at
from .features import ROWS_ON_CPU, Features
from .roundoff import GRAM, KERNEL_VALUES, SUMMED

#: The share of a GPU's free memory that one block of rows may take: some parts are worked on at a time, each with two.
SHARE_OF_MEMORY = 0.02

#: A variance that is negative by more than this share of itself does not come from round-off.
NOT_A_COVARIANCE = 1e-4

#: So many records are compared with each other, to bound what the features leave out of their combinations.
RECORDS_AT_ONCE = 512

#: What is to spare counts in so many steps: blocks of records differ with the parts that rows come in, and the noise
#: must not.
STEPS_OF_SPARE = 16

#: Of functions of one size, what rows show of one beside the others below this share (of variances) is as good as none.
#: Below the second share a reader is taken to be shown it, whatever the values have in its place.
SEEN, SURELY_SEEN = 1e-14, 1e-10

#: Records are promised jointly where the share of f that may be learnt differs by no more than this between them.
SAME_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class RecordSums:
    """The work on the records of a part: what is needed to promise them together with f.

    ``noise`` is what they carry each by itself, ``tolerance`` how much of them may be learnt, and ``shares`` how much
    of f, for each prior.
    """

    noise: RecordNoise
    tolerance: Tolerance
    shares: tuple[float, ...]

    @classmethod
    def of(cls, noise: RecordNoise, tolerance: Tolerance, priors: Sequence[Prior], places: Array) -> RecordSums | None:
        """With the shares that the tolerance has at ``places``; None where these are not the same everywhere."""
        found = []
        for prior in priors:
            shares = tolerance.shares(prior, places)
            if shares is None or not len(places) or np.ptp(shares[0]) > SAME_SHARE:
                return None
            found.append(float(np.min(shares[0])))
        return cls(noise, tolerance, tuple(found))

    def to_spare(self, number: int, prior: Prior, X: Array, own: Array, first: Array) -> Array:
        """s for records at ``X`` with the variance ``own`` of their own (``first``: the first prior's).

        Not positive where a record is not promised what it should be.
        """
        if not len(X):
            return np.zeros(0)
        values = FunctionAndRecords(Reader(prior), records_at(X, own))
        shares = self.tolerance.shares(values, X)
        assert shares is not None
        independent = self.noise.multiple * first
        kept = np.where(np.abs(shares[0] - self.shares[number]) <= SAME_SHARE, shares[1], 0.0)
        return np.asarray((kept - own / np.maximum(independent, np.finfo(float).tiny)) * own)


@dataclass(frozen=True, eq=False)
class Gram:
    """The work on a part of the rows: sums of ``s_i φ_i φ_iᵀ`` for several scales s, and of what is left out.

    Where V is given for each row, the part has it in columns ``noise_<number>``;
    ``weighted`` says that the part has a column ``weights``, ``observed`` that it has one with ``outputs``: then
    ``ΦᵀV⁻¹(outputs − mean)`` is summed too, for the first prior, with what is ``added`` to them. ``noises`` has V of
    each prior, None where it is given for each row. ``records`` asks for what their promise needs. With ``blurred``
    that noise counts as a part of the first prior's V, and so do ``rounding`` errors of this variance.
    """

    features: tuple[Features, ...]
    noises: tuple[float | None, ...]
    weighted: bool
    observed: bool
    device: str = "cpu"
    records: RecordSums | None = None
    blurred: RecordNoise | None = None
    rounding: float = 0.0
    added: Callable[[Part], Array] | None = None

    @property
    def noisy(self) -> tuple[int, ...]:
        """The priors whose V is not one number."""
        return tuple(i for i, noise in enumerate(self.noises) if noise is None or (i == 0 and self.blurred is not None))

    def __call__(self, part: Part) -> Totals:
        size = sum(len(features) for features in self.features)
        rows = _rows_at_once(size, self.device)
        places = np.array(part.inputs())
        known = self._known(part, places)
        X, columns = torch.from_numpy(places), {name: torch.from_numpy(values) for name, values in known.items()}
        starts = range(0, part.rows, rows)

        def add_up(share: slice) -> dict[str, torch.Tensor]:
            totals = self._nothing_yet()
            for start in starts[share]:
                here = X[start : start + rows].to(self.device)
                more = {name: values[start : start + rows].to(self.device) for name, values in columns.items()}
                self._add(totals, here, more)
            return totals

        totals, *others = side_by_side(add_up, len(starts)) if self.device == "cpu" else [add_up(slice(None))]
        found = {name: sum((other[name] for other in others), value).cpu().numpy() for name, value in totals.items()}
        for name in found:
            if found[name].ndim == 2:
                found[name] = np.tril(found[name]) + np.tril(found[name], -1).T
        return found | {"rows": np.array(float(part.rows))}

    def _nothing_yet(self) -> dict[str, torch.Tensor]:
        """The totals that sums begin with."""
        totals: dict[str, torch.Tensor] = {}
        if self.records is not None:
            totals["records_short"] = torch.zeros((), dtype=torch.float64, device=self.device)
            for number in range(len(self.noises)):
                size = len(self.features[number])
                totals[f"record_gram_{number}"] = torch.zeros(size, size, dtype=torch.float64, device=self.device)
                totals[f"record_left_out_{number}"] = torch.zeros((), dtype=torch.float64, device=self.device)
        return totals

    def _known(self, part: Part, X: Array) -> dict[str, Array]:
        """What is known of each row by name."""
        more = [name for name, given in (("weights", self.weighted), ("outputs", self.observed)) if given]
        names = [f"noise_{number}" for number, noise in enumerate(self.noises) if noise is None] + more
        columns = {name: np.array(part.column(name)) for name in names}
        if self.observed:
            columns["outputs"] -= self.features[0].prior.mean_at(X)
            if self.added is not None:
                columns["outputs"] += self.added(part)
        if self.records is not None:
            inside = self.records.noise.region.contains(X)
            first = self._errors(0, columns, len(X))[inside]
            short = np.zeros(len(first), dtype=np.bool_)
            for number in range(len(self.noises)):
                own = self._errors(number, columns, len(X))[inside]
                spare = self.records.to_spare(number, self.features[number].prior, X[inside], own, first)
                short |= ~(spare > 0)
                columns[f"spare_{number}"] = np.zeros(len(X))
                columns[f"spare_{number}"][inside] = np.where(spare > 0, spare, 0.0)
            columns["short"] = np.zeros(len(X))
            columns["short"][inside] = short
        if self.blurred is not None:
            errors = self._errors(0, columns, len(X))
            columns["noise_0"] = errors + self.rounding + self.blurred.at(X, errors)
        return columns

    def _errors(self, number: int, columns: dict[str, Array], rows: int) -> Array:
        """V of each row for a prior."""
        noise = self.noises[number]
        return columns[f"noise_{number}"] if noise is None else np.full(rows, noise)

    def _add(self, totals: dict[str, torch.Tensor], X: torch.Tensor, columns: dict[str, torch.Tensor]) -> None:
        weights = columns.get("weights")
        blocks = [features.block(X) for features in self.features]
        for number, features in enumerate(self.features):
            variance = features.variance(X)
            _accumulate(totals, f"variance_{number}", variance.sum())
            if weights is not None:
                _accumulate(totals, f"weighted_variance_{number}", (variance * weights).sum())
        together = blocks[0] if len(blocks) == 1 else torch.hstack(blocks)
        if self.observed:
            values = columns["outputs"] / columns["noise_0"] if 0 in self.noisy else columns["outputs"]
            _accumulate(totals, "projection", together.T @ values)
        for name, scale in self._scales(columns).items():
            if name not in totals:
                totals[name] = torch.zeros(together.shape[1], together.shape[1], dtype=X.dtype, device=X.device)
            add_gram(totals[name], together, together if scale is None else together * scale[:, None])
        if self.records is not None:
            totals["records_short"] += columns["short"].sum()
            for number, features in enumerate(self.features[: len(self.noises)]):
                self._add_records(totals, number, features, X, blocks[number], columns[f"spare_{number}"])

    def _add_records(
        self,
        totals: dict[str, torch.Tensor],
        number: int,
        features: Features,
        X: torch.Tensor,
        block: torch.Tensor,
        spare: torch.Tensor,
    ) -> None:
        """Add ``φφᵀ/s`` of the records, and the norms of what the features leave out of some of them at a time."""
        kept = spare > 0
        X, block, root = X[kept], block[kept], spare[kept].sqrt()
        scaled = block / root[:, None]
        add_gram(totals[f"record_gram_{number}"], scaled, scaled)
        for start in range(0, len(X), RECORDS_AT_ONCE):
            some = slice(start, start + RECORDS_AT_ONCE)
            with torch.no_grad():
                own = kernel_matrix(features.prior.kernel_on(str(X.device)), X[some], X[some])
            rest = (own / root[some] / root[some][:, None]) - scaled[some] @ scaled[some].T
            # |λ|² is at most the largest sum of |entries| of a row of the square
            norm = (rest @ rest).abs().sum(dim=1).max().sqrt()
            lost = KERNEL_VALUES * UNIT * len(rest) * (own.diagonal() / root[some] ** 2).max()
            totals[f"record_left_out_{number}"] += norm + lost

    def _scales(self, columns: dict[str, torch.Tensor]) -> dict[str, torch.Tensor | None]:
        weights = columns.get("weights")
        scales: dict[str, torch.Tensor | None] = {"gram": None}
        if weights is not None:
            scales |= {"weighted_gram": weights, "squared_weights_gram": weights.square()}
        for number in self.noisy:
            noise = columns[f"noise_{number}"]
            scales[f"precision_{number}"] = 1.0 / noise
            scales[f"noise_gram_{number}"] = noise if weights is None else noise * weights.square()
        return scales


def _accumulate(totals: dict[str, torch.Tensor], name: str, value: torch.Tensor) -> None:
    totals[name] = totals[name] + value if name in totals else value


def _rows_at_once(size: int, device: str) -> int:
    if device == "cpu":
        return ROWS_ON_CPU
    return int(np.clip(SHARE_OF_MEMORY * free_memory(device) / (8 * size), ROWS_ON_CPU, 1 << 20))


@dataclass(frozen=True, eq=False)
class Summary:
    """What the rows tell of the features' coefficients. The coefficients of several priors follow each other.

    ``noises`` holds V where it is one number for all rows, else None.
    """

    features: tuple[Features, ...]
    noises: tuple[float | None, ...]
    totals: Totals

    def __len__(self) -> int:
        """How many virtual rows there are."""
        return sum(len(features) for features in self.features)

    @property
    def rows(self) -> int:
        return int(self.totals["rows"])

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the coefficients of each prior lie."""
        ends = np.cumsum([len(features) for features in self.features])
        return tuple(slice(int(end) - len(features), int(end)) for end, features in zip(ends, self.features))

    @property
    def gram(self) -> Array:
        """ΦᵀΦ: ``Tr Σ = Tr cᵀ(ΦᵀΦ)c``."""
        return self.totals["gram"]

    @property
    def weighted_gram(self) -> Array:
        """ΦᵀCΦ, so that what is minimised is ``Tr cᵀ(ΦᵀCΦ)c``."""
        return self.totals.get("weighted_gram", self.gram)

    def noise_gram(self, number: int) -> Array:
        """ΦᵀC V CΦ for the prior with this number."""
        noise = self.noises[number]
        if noise is None:
            return self.totals[f"noise_gram_{number}"]
        return noise * self.totals.get("squared_weights_gram", self.gram)

    def residual(self, number: int, weighted: bool) -> float:
        """``Tr C(K_XX − ΦΦᵀ)``: how much the features leave out, with what round-off may hide of it."""
        weighted = weighted and "weighted_gram" in self.totals
        total = float(self.totals[f"weighted_variance_{number}" if weighted else f"variance_{number}"])
        known = np.diag(self.weighted_gram if weighted else self.gram)[self.slices[number]]
        left_out = total - float(self.features[number].shares @ known)
        if left_out < -NOT_A_COVARIANCE * total:
            raise InputError("kernel is not a covariance: variances are negative once f is known at the centres.")
        return max(left_out, 0.0) + SUMMED * UNIT * total

    @cached_property
    def allowance(self) -> Array:
        """How much information, for V = 1, round-off may have taken from each coefficient: added to its own.

        A feature is wrong by about ``u √p |k| ‖row of L⁻¹‖``, and an entry (j, k) of ΦᵀΦ by ``e_k √(ΦᵀΦ)_jj`` with
        ``e_k`` that, times √n. A diagonal a covers such errors if ``a_j a_k ≥ p e_k² (ΦᵀΦ)_jj``, so if each a_j
        has a part that is relative to ΦᵀΦ and one that is relative to the error.
        """
        size, rows = len(self), self.rows
        own = np.diag(self.gram)
        reach = max(float(np.max(features.prior.variance(features.centres))) for features in self.features)
        amplified = np.concatenate([features.amplification for features in self.features])
        error = UNIT**2 * size * rows * reach**2 * amplified
        balance = UNIT * np.sqrt(size * reach * float(np.max(amplified)))
        return np.asarray(GRAM * np.sqrt(size) * (balance * own + error / balance))

    def precision(self, number: int) -> Array:
        """``ΦᵀV⁻¹Φ`` for the prior with this number."""
        noise = self.noises[number]
        return self.totals[f"precision_{number}"] if noise is None else self.gram / noise

    def promised_root(self, number: int, values: Array, records: RecordSums) -> Array | None:
        """B such that a promise about f(S) and all records says ``Bᵀ(told + (1 − α)(I − Diag(shares)))B ⪯ 1``.

        ``told`` is what a release explains of u, and ``values`` has φ(S) in its rows: S are centres, of which the
        features leave out nothing. None where some record is not promised what it should be, or where the features
        leave out more of the records than there is to spare.
        """
        share = records.shares[number]
        left = 1.0 - (1.0 - share) * float(self.totals[f"record_left_out_{number}"])
        left = np.floor(STEPS_OF_SPARE * left) / STEPS_OF_SPARE
        if left <= 0 or share <= 0 or float(self.totals["records_short"]) > 0:
            return None
        gram, own = self.totals[f"record_gram_{number}"], self.slices[number]
        # as in ``information``: never less than the records tell
        level = float(np.trace(gram)) / max(float(np.trace(self.gram[own, own])), np.finfo(float).tiny)
        told = share / left * (gram + np.diag(level * self.allowance[own]))
        root = np.sqrt(self.features[number].shares)
        # once f(S) is known, u is free in the directions across φ(S) only; there records tell of it
        basis, _ = scipy.linalg.qr((values * root).T, mode="full", check_finite=False)
        across = basis[:, len(values) :]
        eigenvalues, vectors = np.linalg.eigh(across.T @ (root[:, None] * told * root) @ across)
        eigenvalues = np.maximum(eigenvalues, 0.0)
        seen = (across @ vectors) * np.sqrt(eigenvalues / (1.0 + eigenvalues))
        return np.asarray(np.hstack([basis[:, : len(values)], seen]) / root[:, None] / np.sqrt(share))

    def information(self, number: int) -> Array:
        """``ΦᵀV⁻¹Φ`` for the prior with this number, from the safe side: never less than the rows tell."""
        precise = self.precision(number)
        scale = float(np.trace(precise)) / float(np.trace(self.gram))
        return np.asarray(precise + np.diag(scale * self.allowance))

    @property
    def projection(self) -> Array:
        """``ΦᵀV⁻¹(outputs − mean)`` for the first prior, where outputs were summed up."""
        noise = self.noises[0]
        return self.totals["projection"] if noise is None else self.totals["projection"] / noise


def summarise(
    priors: Sequence[Prior],
    features: Sequence[Features],
    inputs: Inputs,
    weights: Array | None,
    engine: Engine,
    device: str | None,
    done: Done,
    outputs: Array | StoredColumn | None = None,
    records: RecordSums | None = None,
    blurred: RecordNoise | None = None,
    rounding: float = 0.0,
    added: Callable[[Part], Array] | None = None,
) -> Summary:
    """One pass over the rows; ``outputs`` are published values, for ``projection``; the rest is as in ``Gram``."""
    columns: dict[str, Array | StoredColumn] = {**noise_columns(priors)}
    if weights is not None:
        columns["weights"] = weights
    if outputs is not None:
        columns["outputs"] = outputs
    noises = tuple(prior.noise if isinstance(prior.noise, float) else None for prior in priors)
    work = Gram(
        tuple(features),
        noises,
        weights is not None,
        outputs is not None,
        device or "cpu",
        records,
        blurred,
        rounding,
        added,
    )
    totals = engine.total(work, inputs.parts(columns), done)
    if blurred is not None:
        noises = (None, *noises[1:])
    return Summary(tuple(features), noises, totals)


def without_functions(precision: Array, functions: Array, projection: Array) -> tuple[Array, Array]:
    """``ΦᵀV⁻¹Φ`` and ``ΦᵀV⁻¹(outputs − mean)`` of a reader to whom suppressed ``functions`` φᵀs say nothing.

    They are eliminated as if nothing were known of how much there is of each.
    """
    if not functions.shape[1]:
        return precision, projection
    functions = functions @ seen_functions(precision, functions)
    root = precision @ functions
    return precision - root @ root.T, projection - root @ (functions.T @ projection)


def seen_functions(precision: Array, functions: Array, least: float = SEEN) -> Array:
    """T such that the rows show each of the ``functions`` φᵀsT alike, and by itself: (sT)ᵀ ΦᵀV⁻¹Φ sT = I.

    What they do not show, and what they show of one function beside the others below the share ``least``, is left out.
    """
    told = functions.T @ precision @ functions
    sizes = np.sqrt(np.maximum(np.diag(told), 0.0))
    some = np.flatnonzero(sizes > 0.0)
    if not some.size:
        return np.zeros((len(sizes), 0))
    values, vectors = np.linalg.eigh(told[np.ix_(some, some)] / sizes[some] / sizes[some, None])
    kept = values > least * float(values[-1])
    turned = np.zeros((len(sizes), int(np.sum(kept))))
    turned[some] = vectors[:, kept] / np.sqrt(values[kept]) / sizes[some, None]
    return turned


def inverse(matrix: Array) -> Array:
    """The inverse of a positive definite matrix."""
    lower = scipy.linalg.cholesky(matrix, lower=True, check_finite=False)
    half = scipy.linalg.solve_triangular(lower, np.eye(len(matrix)), lower=True, check_finite=False)
    return np.asarray(half.T @ half)


@dataclass(frozen=True, eq=False)
class VirtualRows:
    """Covariances of the virtual rows, as readers with each prior see them.

    They are in units in which each of them costs the same: with ``E Eᵀ = ΦᵀCΦ`` they show ``Eᵀu``, and noise Σ on them
    costs Tr Σ. A reader who is given what the features leave out learns from all rows exactly what they tell:
    ``K_SX (A′ + Σ)⁻¹ K_XS`` is the same for both, ``A′ = ΦΦᵀ + V ⪯ A``.
    """

    summary: Summary

    def __len__(self) -> int:
        return len(self.summary)

    @cached_property
    def basis(self) -> Array:
        """E, lower triangular."""
        level = float(np.trace(self.summary.weighted_gram)) / float(np.trace(self.summary.gram))
        cost = self.summary.weighted_gram + np.diag(level * self.summary.allowance)
        return np.asarray(scipy.linalg.cholesky(cost, lower=True, check_finite=False))

    def noise(self, number: int) -> Array:
        """V as the virtual rows have it: ``Eᵀ(ΦᵀV⁻¹Φ)⁻¹E``."""
        known = self.summary.noises[number]
        if known is not None and "weighted_gram" not in self.summary.totals:
            return known * np.eye(len(self))
        half = solve_lower(self.basis, self.summary.information(number))
        return inverse(_symmetric(solve_lower(self.basis, half.T)))

    def noise_bound(self, number: int) -> Array:
        """``E⁻¹(ΦᵀC V CΦ)E⁻ᵀ``: at least ``noise``, and the same where V and C are multiples of the identity."""
        half = solve_lower(self.basis, self.summary.noise_gram(number))
        return _symmetric(solve_lower(self.basis, half.T))

    def process(self, number: int) -> Array:
        """The covariance of Eᵀu: what ΦΦᵀ is for the rows."""
        features, own = self.summary.features[number], self.basis[self.summary.slices[number]]
        return np.asarray(own.T @ (features.shares[:, None] * own))

    def cross(self, number: int, values: Array) -> Array:
        """The covariance of the virtual rows with f, as far as the features have it; ``values`` has φ in its rows."""
        features, own = self.summary.features[number], self.basis[self.summary.slices[number]]
        return np.asarray(own.T @ (values * features.shares).T)

    def coefficients(self, factor: Array) -> Array:
        """c with ``Σ = Φ c cᵀ Φᵀ`` for noise ``factor · factorᵀ`` on the virtual rows.

        Symmetric, so that it changes little where the sums change little: the same key must give the same noise
        wherever they are taken, and the columns of a factor could turn.
        """
        own = self.functions(factor)
        vectors, values, _ = scipy.linalg.svd(own, full_matrices=False, check_finite=False)
        return np.asarray((vectors * values) @ vectors.T)

    def functions(self, combinations: Array) -> Array:
        """Coefficients c of the functions ``φᵀc`` whose values at all rows are these ``combinations``."""
        return np.asarray(
            scipy.linalg.solve_triangular(self.basis, combinations, lower=True, trans="T", check_finite=False)
        )

    def mixing(self, coefficients: Array) -> Array:
        """C with ``k(x, Z) C = φ(x)ᵀ c``."""
        blocks = [
            scipy.linalg.solve_triangular(f.lower, coefficients[own], lower=True, trans="T", check_finite=False)
            for f, own in zip(self.summary.features, self.summary.slices, strict=True)
        ]
        return np.vstack(blocks)


def _symmetric(matrix: Array) -> Array:
    return np.asarray((matrix + matrix.T) / 2.0)


def summary_of(design: Design, engine: Engine, device: str | None, done: Done) -> Summary:
    """The sums that a certificate needs, from the published objects alone: one pass over the rows."""
    noise = design.noise.as_function()
    features = [Features.around(prior, centres) for prior, centres in zip(design.priors, noise.centres, strict=True)]
    if any(mine is not its for mine, its in zip(design.priors, noise.priors, strict=True)):
        # the noise is made of other functions than those that readers think f is made of
        features += [Features.around(prior, centres) for prior, centres in zip(noise.priors, noise.centres)]
    records = record_sums_of(design)
    return summarise(design.priors, features, design.inputs, design.weights, engine, device, done, records=records)


def published_sums(design: Design, summary: Summary, engine: Engine, device: str | None) -> Summary:
    """The sums in which noise that records carry by themselves is a part of V: another pass, where there is any."""
    records = design.noise.as_function().records
    if records is None:
        return summary
    rows, features = design.inputs, summary.features
    return summarise([design.prior], features, rows, None, engine, device, lambda done: None, blurred=records)


def record_sums_of(design: Design) -> RecordSums | None:
    """What the joint promise of ``design`` about records needs; None where there is none, or it cannot be checked."""
    noise = design.noise.as_function()
    if design.protects != "both" or design.guarantee != "joint" or noise.records is None:
        return None
    return RecordSums.of(noise.records, design.tolerance, design.priors, design.sensitive)


def noise_coefficients(noise: FunctionalNoise, features: Sequence[Features], of: Array | None = None) -> Array:
    """c with ``k(x, Z) C = φ(x)ᵀ c``, over all ``features``; the last of them are those of the noise.

    C is ``of``; left out, it is how the noise mixes its sources.
    """
    mixing = noise.mixing if of is None else of
    parts, own = noise.by_prior(mixing), features[-len(noise.centres) :]
    others = [np.zeros((len(f), mixing.shape[1])) for f in features[: -len(noise.centres)]]
    return np.vstack([*others, *(f.lower.T @ part for f, part in zip(own, parts, strict=True))])


def sources_of(summary: Summary, coefficients: Array) -> Array:
    """T with ``T Tᵀ = D + ccᵀ``, for a noise with the ``coefficients`` c: u and the noise, each with variance 1."""
    own = summary.features[0]
    of_u = np.zeros((len(summary), len(own)))
    of_u[summary.slices[0]] = np.diag(np.sqrt(own.shares))
    return np.hstack([of_u, coefficients])
