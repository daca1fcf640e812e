"""Polynomials of each column: a mean that is one, and a kernel whose functions are.

Powers are taken of ``u = (x − centre) / width``, so that a column of years is as well conditioned as one of shares.
There are no products of different columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from ..arrays import Array
from ..data import Encoding
from ..linalg import Whitening
from ..text import listed

#: The degrees that have a name.
DEGREES = {"linear": 1, "quadratic": 2, "cubic": 3}
#: The largest degree in a file.
MAX_DEGREE = 20
#: Directions of the powers below this share of the largest are the same as others.
SAME = 1e-10


def powers(X: torch.Tensor, centre: torch.Tensor, width: torch.Tensor, degree: int) -> torch.Tensor:
    """u, u², … for each row and column: the last axis has the degrees from 1 on, the one before it the columns."""
    u = ((X - centre.reshape(-1)) / width.reshape(-1)).unsqueeze(-1)
    return torch.cat([u**degree for degree in range(1, degree + 1)], dim=-1)


class PolynomialMean(Mean):
    """``constant + Σ_j Σ_p coefficients[j, p − 1] u_j^p`` with ``u = (x − centre) / width``."""

    def __init__(self, constant: Any, coefficients: Any, centre: Any, width: Any) -> None:
        super().__init__()
        values = {"constant": constant, "coefficients": coefficients, "centre": centre, "width": width}
        for name, value in values.items():
            self.register_parameter(name, torch.nn.Parameter(torch.as_tensor(value, dtype=torch.float64)))

    @property
    def degree(self) -> int:
        return int(self.coefficients.shape[1])

    def in_words(self, names: Sequence[str], encoding: Encoding | None = None) -> str:
        """The polynomial for people: written out for one column.

        >>> PolynomialMean(5.0, [[2.0, -0.5]], [1987.0], [13.0]).in_words(["year"])
        'quadratic in year: 5 + 2 u - 0.5 u², u = (year - 1987)/13'
        """
        count = len(self.centre)
        called = list(names) if len(names) == count else [f"column {number}" for number in range(count)]
        title = next((word for word, degree in DEGREES.items() if degree == self.degree), f"of degree {self.degree}")
        if encoding is not None:
            called = list(encoding.sources)
        if count > 1:
            return f"{title} in {listed(called, 8)}, {self.constant.item():.6g} in the middle of all"
        terms = [f"{self.constant.item():.6g}"]
        for power, value in zip(("u", "u²", "u³"), self.coefficients[0].tolist(), strict=False):
            terms.append(f"{'-' if value < 0 else '+'} {abs(value):.4g} {power}")
        more = " …" if self.degree > 3 else ""
        middle, width = f"{self.centre[0].item():.6g}", f"{self.width[0].item():.4g}"
        if encoding is not None and encoding.columns[0].kind == "date":
            column = encoding.columns[0]
            middle, width = column.date_in_words(self.centre[0].item(), "m"), f"{width} {column.unit}"
        place = f"u = ({called[0]} - {middle})/{width}"
        return f"{title} in {called[0]}: {' '.join(terms)}{more}, {place}"

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        terms = powers(X, self.centre, self.width, self.degree) * self.coefficients
        values: torch.Tensor = self.constant + terms.sum(dim=(-2, -1))
        return values

    def slope(self, X: torch.Tensor, column: int) -> torch.Tensor:
        """The derivative by ``column`` at the rows of ``X``."""
        u = (X[..., column] - self.centre[column]) / self.width[column]
        rates = [p * self.coefficients[column, p - 1] * u ** (p - 1) for p in range(1, self.degree + 1)]
        total: torch.Tensor = torch.stack(rates).sum(dim=0) / self.width[column]
        return total


class TrendKernel(Kernel):
    """``Σ_j Σ_p (u_j u′_j)^p`` for p from 1 to ``power``: polynomials with unknown coefficients, 0 at ``centre``."""

    is_stationary = False

    def __init__(self, power: int = 1, ard_num_dims: int | None = None, **options: Any) -> None:
        super().__init__(ard_num_dims=ard_num_dims, **options)
        self.power = power
        columns = 1 if ard_num_dims is None else ard_num_dims
        self.register_parameter("centre", torch.nn.Parameter(torch.zeros(1, columns), requires_grad=False))
        self.register_parameter("width", torch.nn.Parameter(torch.ones(1, columns), requires_grad=False))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("centre", "width") and not isinstance(value, torch.nn.Parameter):
            parameter = getattr(self, name)
            parameter.data = torch.as_tensor(value).to(parameter).expand_as(parameter).clone()
        else:
            super().__setattr__(name, value)

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **_: Any) -> torch.Tensor:
        left, right = (powers(x, self.centre, self.width, self.power).flatten(-2) for x in (x1, x2))
        return (left * right).sum(dim=-1) if diag else left @ right.transpose(-1, -2)


def places_of(X: Array) -> dict[str, Array]:
    """The centre and the width of each column of ``X``: the middle and half the range, 1 where nothing varies."""
    low, high = X.min(axis=0), X.max(axis=0)
    half = (high - low) / 2.0
    return {"centre": low + half, "width": np.where(half > 0.0, half, 1.0)}


@dataclass(frozen=True, eq=False)
class Trend:
    """A polynomial of each column that is to be fitted; ``degrees`` are at most ``degree``, one for each column."""

    degree: int
    degrees: tuple[int, ...]
    centre: Array
    width: Array

    @classmethod
    def of(cls, degree: int, X: Array) -> Trend:
        """The one that rows ``X`` can tell: of a column with m different values they tell m − 1 powers."""
        told = [min(degree, len(np.unique(column)) - 1) for column in X.T] if degree else [0] * X.shape[1]
        return cls(degree, tuple(told), **places_of(X))

    @property
    def size(self) -> int:
        """How many coefficients it has."""
        return 1 + sum(self.degrees)

    def features(self, X: Array) -> Array:
        """1 and the powers of each column, a column each."""
        u = (X - self.centre) / self.width
        ones = np.ones(len(X))
        return np.column_stack(
            [ones, *(u[:, j] ** p for j, most in enumerate(self.degrees) for p in range(1, most + 1))]
        )

    def directions(self, X: Array) -> Array:
        """What the features span, as orthonormal columns."""
        left, sizes, _ = np.linalg.svd(self.features(X), full_matrices=False)
        return np.asarray(left[:, sizes > SAME * sizes[0]])

    def least_squares(self, X: Array, y: Array) -> Array:
        return np.asarray(np.linalg.lstsq(self.features(X), y, rcond=SAME)[0])

    def generalised_least_squares(self, X: Array, y: Array, whiten: Whitening) -> Array:
        """The coefficients under which y, whose covariance around the trend is whitened so, is most likely."""
        near = self.least_squares(X, y)
        white = whiten.apply(np.column_stack([self.features(X), y - self.at(X, near)]))
        return np.asarray(near + np.linalg.lstsq(white[:, :-1], white[:, -1], rcond=SAME)[0])

    def errors(self, X: Array, covariance: Array) -> Array:
        """The standard errors of the coefficients that generalised least squares finds."""
        white = Whitening.of(covariance).apply(self.features(X))
        return np.asarray(np.sqrt(np.diag(np.linalg.pinv(white.T @ white))))

    def at(self, X: Array, coefficients: Array) -> Array:
        return np.asarray(self.features(X) @ coefficients)

    def mean(self, coefficients: Array) -> float | PolynomialMean:
        """The mean with these coefficients: a number where there are no powers."""
        if self.degree == 0:
            return float(coefficients[0])
        return PolynomialMean(float(coefficients[0]), self.by_column(coefficients), self.centre, self.width)

    def by_column(self, coefficients: Array) -> Array:
        """The coefficients of the powers, a row for each column."""
        table = np.zeros((len(self.degrees), self.degree))
        table[np.arange(1, self.degree + 1) <= np.array(self.degrees)[:, None]] = coefficients[1:]
        return table
