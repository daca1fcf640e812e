"""Readers: to whom a promise is made, and how they see the data and what is sensitive before a release.

A reader is a prior and a past, what they have seen already: nothing, earlier releases, or rows that they hold (an
insider). What is sensitive is f at inputs, or records y_i = f(x_i) + e_i. For each reader the programs need
``A = Cov(y|past)`` and ``U = Cov(y, sensitive|past)``; the certificate needs the same. Matrices are tensors on one
device, in float64: where they are n × n, they are made where they are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from ..arrays import Array, Index
from ..data import Inputs
from ..linalg import as_tensor, solve_lower
from ..models import Prior, kernel_matrix, require_features

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
    def function(self) -> FunctionValues:
        """f, as this reader sees it."""
        return FunctionValues(self)

    def values(self, inputs: Inputs, records: Index) -> FunctionAndRecords:
        """f at any inputs, and the ``records`` of these rows of the data, as this reader sees them."""
        return FunctionAndRecords(self, inputs, records)

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

    @abstractmethod
    def covariance(self, S: Array) -> Array:
        """Cov(values at S|past)."""

    @abstractmethod
    def variance(self, S: Array) -> Array:
        """The diagonal of ``covariance``."""

    @abstractmethod
    def variance_before(self, S: Array) -> Array:
        """The same before anything was seen: of this a floor is a share."""

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

    def covariance(self, S: Array) -> Array:
        known = self.reader.past.about(S)
        covariance = self.reader.prior.covariance(S)
        return covariance - known.T @ known if len(known) else covariance

    def variance(self, S: Array) -> Array:
        known = self.reader.past.about(S)
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
class FunctionAndRecords(SensitiveValues):
    """f(s) at inputs s, and then the ``records`` y_i of these rows of the data.

    ``places`` says where these values lie: all inputs that are asked about here end with those of the records.
    """

    reader: Reader
    inputs: Inputs
    records: Index

    def places(self, S: Array) -> Array:
        """``S``, and the inputs of the records."""
        return np.vstack([S, self.inputs.values[self.records]])

    def covariance(self, S: Array) -> Array:
        covariance, known = self.reader.prior.covariance(S), self._known(S)
        covariance[np.diag_indices_from(covariance)] += self.own_variance(S)
        return covariance - known.T @ known if len(known) else covariance

    def variance(self, S: Array) -> Array:
        known = self._known(S)
        variance = self.variance_before(S)
        return variance - np.sum(known**2, axis=0) if len(known) else variance

    def variance_before(self, S: Array) -> Array:
        return self.reader.prior.variance(S) + self.own_variance(S)

    def own_variance(self, S: Array) -> Array:
        own = np.zeros(len(S))
        own[len(S) - len(self.records) :] = self.reader.prior.noise_variance(len(self.inputs))[self.records]
        return own

    def with_data(self, inputs: Inputs, S: Array, device: str | None = None) -> torch.Tensor:
        reader, own, count = self.reader, self.own_variance(S), len(S) - len(self.records)
        cross = reader.kernel(reader.tensor(inputs.values, device), reader.tensor(S, device))
        places = torch.from_numpy(np.arange(count, len(S))).to(cross.device)
        cross[torch.from_numpy(self.records).to(cross.device), places] += as_tensor(own[count:], device)
        known = reader.past.about_data()
        return cross - as_tensor(known.T @ self._known(S), device) if len(known) else cross

    def _known(self, S: Array) -> Array:
        """What was seen, with these values."""
        data = self.reader.past.about_data()
        if not len(data):
            return data[:, :0]
        return np.hstack([self.reader.past.about(S[: len(S) - len(self.records)]), data[:, self.records]])


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // max(1, rows))
    for start in range(0, rows, step):
        yield start, min(rows, start + step)
