"""Dense linear algebra twice: in float64, and in 50 digits as object arrays of mpmath numbers.

Covariances come from the textbook formulas of ``tests/kernel_oracles.py``. Nothing here imports sfumato.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import scipy.linalg

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from kernel_oracles import DIGITS, kernel50, kernel_values

Array = Any  # of float64, or of mpmath numbers
Tree = dict[str, Any]

#: Added to diagonals in 50 digits, as a share: rows that are the same in all digits have no Cholesky factor.
SPLIT = mpmath.mpf(10) ** -42


class SingularError(Exception):
    """A matrix has no Cholesky factor in float64; 50 digits may still decide."""


def in_digits() -> Any:
    """A context in which mpmath has 50 digits."""
    return mpmath.workdps(DIGITS)


def numbers(values: Array, exact: bool) -> Array:
    """``values`` as they are, or as mpmath numbers: exactly these doubles."""
    given = np.asarray(values)
    if not exact or given.dtype == object:
        return given
    return np.vectorize(mpmath.mpf, otypes=[object])(given.astype(float)) if given.size else given.astype(object)


def kernel(tree: Tree, A: Array, B: Array, exact: bool) -> Array:
    """k(a, b) for all rows."""
    if not exact:
        return kernel_values(tree, A, B)
    first, second = numbers(A, True).tolist(), numbers(B, True).tolist()
    values = np.empty((len(first), len(second)), dtype=object)
    same = A is B
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            values[i, j] = values[j, i] if same and j < i else kernel50(tree, a, b)
    return values


def cholesky(matrix: Array) -> Array:
    """L with L Lᵀ = ``matrix``; ``SingularError`` where there is none."""
    if matrix.dtype != object:
        scale = np.sqrt(np.diag(matrix))
        if not np.all(scale > 0):
            raise SingularError
        try:
            lower = scipy.linalg.cholesky(matrix / scale / scale[:, None], lower=True)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise SingularError from error
        return scale[:, None] * lower
    lower = np.full(matrix.shape, mpmath.mpf(0), dtype=object)
    for i in range(len(matrix)):
        for j in range(i + 1):
            rest = matrix[i, j] - lower[i, :j].dot(lower[j, :j]) if j else matrix[i, j]
            if i == j:
                rest += SPLIT * abs(matrix[i, i])
                if rest <= 0:
                    raise SingularError
                lower[i, i] = mpmath.sqrt(rest)
            else:
                lower[i, j] = rest / lower[j, j]
    return lower


def solve_lower(lower: Array, block: Array) -> Array:
    """L⁻¹ ``block``."""
    if lower.dtype != object:
        return scipy.linalg.solve_triangular(lower, block, lower=True)
    rows: list[Array] = []
    for i in range(len(lower)):
        rest = block[i] - lower[i, :i].dot(np.array(rows, dtype=object)) if i else block[i]
        rows.append(rest / lower[i, i])
    return np.array(rows, dtype=object)


def root(values: Array) -> Array:
    given = np.asarray(values)
    return np.sqrt(given) if given.dtype != object else np.vectorize(mpmath.sqrt, otypes=[object])(given)


def is_positive(matrix: Array) -> bool:
    """Whether a symmetric matrix is positive definite."""
    try:
        cholesky(matrix)
    except SingularError:
        return False
    return True


def largest_ratio(part: Array, whole: Array) -> float:
    """λ_max(whole^{-1/2} part whole^{-1/2}); in 50 digits the last bits are those of the eigenvalue solver."""
    lower = cholesky(whole)
    white = solve_lower(lower, solve_lower(lower, part).T)
    white = (white + white.T) / 2
    if white.dtype != object:
        return float(np.linalg.eigvalsh(white)[-1])
    return float(max(mpmath.eigsy(mpmath.matrix(white.tolist()), eigvals_only=True)))
