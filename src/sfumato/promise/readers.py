"""Readers: to whom a promise is made, and how they see the data and what is sensitive before a release.

A reader is a prior and a past, what they have seen already: nothing, earlier releases, or rows that they hold (an
insider). What is sensitive is f at inputs, or records y_i = f(x_i) + e_i. For each reader the programs need
``A = Cov(y|past)`` and ``U = Cov(y, sensitive|past)``; the certificate needs the same. Matrices are tensors on one
device, in float64: where they are n × n, they are made where they are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch

from ..arrays import Array, Index
from ..data import Inputs, Part
from ..linalg import as_tensor, solve_lower
from ..models import FamilyMember, Prior, kernel_matrix, require_features

#: A block of rows has about this many entries; evaluating a kernel takes a few times its memory.
BLOCK = 1 << 25


class Past(ABC):
    """What a reader has seen before the release in question.

    What was seen counts as independent values of variance 1 (it is *whitened*), so that with R = ``about(points)``
    the past explains ``RᵀR`` of the covariance of f there. R has no rows where nothing was seen.
    """

    @property
    @abstractmethod
    def may_show_rows(self) -> bool:
        """Whether rows of the release may be known already, so that Cov(y|past) may be singular whatever V is."""

    @abstractmethod
    def about(self, points: Array) -> Array:
        """The covariance of what was seen with f, a column for each of ``points``."""

    @abstractmethod
    def about_data(self) -> Array:
        """The covariance of what was seen with y, a column for each row of the release."""


class NothingSeen(Past):
    """The past of an outsider."""

    @property
    def may_show_rows(self) -> bool:
        return False

    def about(self, points: Array) -> Array:
        return np.zeros((0, len(points)))

    def about_data(self) -> Array:
        return np.zeros((0, 0))


@dataclass(frozen=True, eq=False)
class RowsHeld(Past):
    """The past of an insider: the records of the ``rows`` of the data, without noise."""

    prior: Prior
    inputs: Inputs
    rows: Index

    @property
    def may_show_rows(self) -> bool:
        return True

    @cached_property
    def lower(self) -> Array:
        """The Cholesky factor of Cov(y_H); ``LinAlgError`` where some held rows determine others."""
        own = self.prior.covariance(self.inputs.values[self.rows])
        own[np.diag_indices_from(own)] += self.prior.noise_variance(len(self.inputs))[self.rows]
        return np.asarray(np.linalg.cholesky(own))

    def about(self, points: Array) -> Array:
        if not len(points):
            return np.zeros((len(self.rows), 0))
        return solve_lower(self.lower, self.prior.covariance(self.inputs.values[self.rows], points))

    def about_data(self) -> Array:
        cross = self.prior.covariance(self.inputs.values[self.rows], self.inputs.values)
        cross[np.arange(len(self.rows)), self.rows] += self.prior.noise_variance(len(self.inputs))[self.rows]
        return solve_lower(self.lower, cross)


@dataclass(frozen=True, eq=False)
class Reader:
    """Whoever believes ``prior`` and has seen ``past``."""

    prior: Prior
    past: Past = field(default_factory=NothingSeen)

    @property
    def is_promised_averages(self) -> bool:
        """Whether weighted averages can be promised to them; who stands for a family is promised single values."""
        return not isinstance(self.prior, FamilyMember)

    @property
    def function(self) -> FunctionValues:
        """f, as this reader sees it."""
        return FunctionValues(self)

    def values(self, inputs: Inputs, rows: Index) -> FunctionAndRecords:
        """f at any inputs, and the records of these ``rows`` of the data, as this reader sees them."""
        return FunctionAndRecords(self, self.records(inputs, rows))

    def records(self, inputs: Inputs, rows: Index) -> Records:
        """The records of these ``rows`` of the data."""
        own, data = self.prior.noise_variance(len(inputs))[rows], self.past.about_data()
        seen = data[:, rows] if len(data) else np.zeros((0, len(rows)))
        return Records(inputs.values[rows], own, rows, np.arange(len(rows)), seen)

    def data_covariance(self, inputs: Inputs, device: str | None = None) -> torch.Tensor:
        """A = Cov(y|past). One n × n matrix is live, and one block of rows; it is symmetric to the last bit."""
        X = self.tensor(inputs.values, device)
        result = X.new_empty(len(X), len(X))
        for start, stop in _blocks(len(X)):
            own = self.kernel(X[start:stop], X[start:stop])
            result[start:stop, start:stop] = (own + own.T) / 2.0
            if start:
                result[start:stop, :start] = self.kernel(X[start:stop], X[:start])
                result[:start, start:stop] = result[start:stop, :start].T
        result.diagonal().add_(as_tensor(self.prior.noise_variance(len(X)), X.device))
        known = self.past.about_data()
        if len(known):
            result = result - as_tensor(known.T @ known, X.device)
            result = (result + result.T) / 2.0
        return result

    def data_times(self, inputs: Inputs, block: torch.Tensor) -> torch.Tensor:
        """A ``block``, without A: only a block of its rows is ever there."""
        X = self.tensor(inputs.values, block.device)
        result = as_tensor(self.prior.noise_variance(len(X)), X.device)[:, None] * block
        for start, stop in _blocks(len(X)):
            result[start:stop] += self.kernel(X[start:stop], X) @ block
        known = self.past.about_data()
        if len(known):
            seen = as_tensor(known, X.device)
            result -= seen.T @ (seen @ block)
        return result

    def kernel(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """K(A, B), before anything was seen."""
        with torch.no_grad():
            return kernel_matrix(self.prior.kernel_on(str(A.device)), A, B)

    def tensor(self, values: Array, device: str | torch.device | None) -> torch.Tensor:
        """Inputs that the kernel can take, on ``device`` (None: the CPU)."""
        require_features(self.prior.kernel, values.shape[1])
        return torch.tensor(values, dtype=torch.float64, device=device)


class SensitiveValues(ABC):
    """Values that must stay uncertain, as one reader sees them: linear functionals of what is unknown, one an input."""

    reader: Reader

    @property
    def stands_for(self) -> float:
        """The variance of f for those whom the reader stands for, as a multiple of the reader's (models/below.py)."""
        return self.reader.prior.stands_for

    @abstractmethod
    def covariance(self, S: Array) -> Array:
        """Cov(values at S|past)."""

    @abstractmethod
    def variance(self, S: Array) -> Array:
        """The diagonal of ``covariance``."""

    @property
    @abstractmethod
    def before(self) -> SensitiveValues:
        """The same values, to who has seen nothing."""

    @abstractmethod
    def known(self, S: Array) -> Array:
        """The covariance of what was seen with the values at ``S``, a column for each (``Past``)."""

    @abstractmethod
    def variance_before(self, S: Array) -> Array:
        """The variance before anything was seen: of this a floor is a share."""

    @abstractmethod
    def own_variance(self, S: Array) -> Array:
        """How much of each value's variance is its own (V of a record; nothing of f)."""

    @abstractmethod
    def with_data(self, inputs: Inputs, S: Array, device: str | None = None) -> torch.Tensor:
        """Cov(y, values at S|past), a row for each row of the data and a column for each of ``S``."""


@dataclass(frozen=True, eq=False)
class FunctionValues(SensitiveValues):
    """f(s) at inputs s; with several outputs the last column says of which."""

    reader: Reader

    @property
    def before(self) -> FunctionValues:
        return Reader(self.reader.prior).function

    def known(self, S: Array) -> Array:
        return self.reader.past.about(S)

    def covariance(self, S: Array) -> Array:
        known = self.known(S)
        covariance = self.reader.prior.covariance(S)
        return covariance - known.T @ known if len(known) else covariance

    def variance(self, S: Array) -> Array:
        known = self.known(S)
        variance = self.reader.prior.variance(S)
        return variance - np.sum(known**2, axis=0) if len(known) else variance

    def variance_before(self, S: Array) -> Array:
        return self.reader.prior.variance(S)

    def own_variance(self, S: Array) -> Array:
        return np.zeros(len(S))

    def with_data(self, inputs: Inputs, S: Array, device: str | None = None) -> torch.Tensor:
        reader = self.reader
        cross = reader.kernel(reader.tensor(inputs.values, device), reader.tensor(S, device))
        known = reader.past.about_data()
        return cross - as_tensor(known.T @ reader.past.about(S), device) if len(known) else cross


@dataclass(frozen=True, eq=False)
class Records:
    """Records y_i = f(x_i) + e_i: the ``places`` x_i, and ``own``, the variance of each e_i.

    This of the ``rows`` of the data shows that one of the records (``shown``): none, one or several rows show each.
    ``seen`` is the covariance of what a reader has seen with each (``Past``).
    """

    places: Array
    own: Array
    rows: Index
    shown: Index
    seen: Array

    def __len__(self) -> int:
        return len(self.places)

    def among(self, kept: Index) -> Records:
        """Those with these numbers, which are in order."""
        rows = np.isin(self.shown, kept)
        shown = np.searchsorted(kept, self.shown[rows])
        return Records(self.places[kept], self.own[kept], self.rows[rows], shown, self.seen[:, kept])


def records_at(places: Array, own: Array) -> Records:
    """Records of a data set that is not at hand, to who has seen nothing."""
    nothing = np.zeros(0, dtype=np.intp)
    return Records(places, own, nothing, nothing, np.zeros((0, len(places))))


@dataclass(frozen=True, eq=False)
class FunctionAndRecords(SensitiveValues):
    """f(s) at inputs s, and then ``records``.

    ``places`` says where these values lie: all inputs that are asked about here end with those of the records.
    """

    reader: Reader
    records: Records

    def places(self, S: Array) -> Array:
        """``S``, and the inputs of the records."""
        return np.vstack([S, self.records.places])

    @property
    def before(self) -> FunctionAndRecords:
        return FunctionAndRecords(Reader(self.reader.prior), replace(self.records, seen=self.records.seen[:0]))

    def known(self, S: Array) -> Array:
        inputs, seen = S[: len(S) - len(self.records)], self.records.seen
        return np.hstack([self.reader.past.about(inputs), seen]) if len(inputs) else seen

    def covariance(self, S: Array) -> Array:
        covariance, known = self.reader.prior.covariance(S), self.known(S)
        covariance[np.diag_indices_from(covariance)] += self.own_variance(S)
        return covariance - known.T @ known if len(known) else covariance

    def variance(self, S: Array) -> Array:
        known = self.known(S)
        variance = self.variance_before(S)
        return variance - np.sum(known**2, axis=0) if len(known) else variance

    def variance_before(self, S: Array) -> Array:
        return self.reader.prior.variance(S) + self.own_variance(S)

    def own_variance(self, S: Array) -> Array:
        return np.concatenate([np.zeros(len(S) - len(self.records)), self.records.own])

    def with_data(self, inputs: Inputs, S: Array, device: str | None = None) -> torch.Tensor:
        reader, records, count = self.reader, self.records, len(S) - len(self.records)
        cross = reader.kernel(reader.tensor(inputs.values, device), reader.tensor(S, device))
        rows, columns = (torch.from_numpy(one).to(cross.device) for one in (records.rows, count + records.shown))
        cross[rows, columns] += as_tensor(records.own[records.shown], device)
        known = reader.past.about_data()
        return cross - as_tensor(known.T @ self.known(S), device) if len(known) else cross


def noise_columns(priors: Sequence[Prior]) -> dict[str, Array]:
    """V of the priors that have one for each row, by the names that parts of the data know it by."""
    return {f"noise_{i}": prior.noise for i, prior in enumerate(priors) if not isinstance(prior.noise, float)}


def noise_of_part(priors: Sequence[Prior], part: Part) -> list[Array]:
    """V of each row of a part that has ``noise_columns``, for each prior."""
    return [
        np.full(part.rows, prior.noise) if isinstance(prior.noise, float) else part.column(f"noise_{i}")
        for i, prior in enumerate(priors)
    ]


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // max(1, rows))
    for start in range(0, rows, step):
        yield start, min(rows, start + step)
