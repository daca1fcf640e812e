"""Values of radial kernels on a GPU in one pass over its memory, compiled there when they are first asked for.

A GPU takes as long to write a number down as to work out a kernel value: with one operation after the other, four
fifths of the time went into numbers that nobody keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch

#: So many columns are added up in one pass: PyTorch compiles functions of at most eight tensors.
COLUMNS_AT_ONCE = 3

#: k as a function of s = |(a − b)/ℓ|², in the language of the GPU.
SQUARES = "return s;"
RBF = "return exp(T(-0.5) * s);"
MATERN = {
    0.5: "return exp(-sqrt(s));",
    1.5: "T r = sqrt(T(3.0) * s); return (T(1.0) + r) * exp(-r);",
    2.5: "T r = sqrt(T(5.0) * s); return (T(1.0) + r * (T(1.0) + r / T(3.0))) * exp(-r);",
}


@cache
def _compiled(columns: int, of_squares: str) -> Callable[..., torch.Tensor]:
    """A function of s so far and of ``columns`` pairs of coordinates."""
    names = ", ".join(f"T a{place}, T b{place}" for place in range(columns))
    gaps = " ".join(f"T g{place} = a{place} - b{place}; s += g{place} * g{place};" for place in range(columns))
    code = f"template <typename T> T of_gaps(T s, {names}) {{ {gaps} {of_squares} }}"
    made: Callable[..., torch.Tensor] = torch.cuda.jiterator._create_jit_fn(code)
    return made


def of_gaps(A: torch.Tensor, B: torch.Tensor, columns: Sequence[int], of_squares: str = SQUARES) -> torch.Tensor:
    """``of_squares`` at the sum of (a − b)² over ``columns``, at least one, for all rows of ``A`` with all of ``B``."""
    values = A.new_zeros(1, 1)
    for first in range(0, len(columns), COLUMNS_AT_ONCE):
        some = columns[first : first + COLUMNS_AT_ONCE]
        pairs = [side for column in some for side in (A[:, column : column + 1], B[:, column])]
        last = first + COLUMNS_AT_ONCE >= len(columns)
        values = _compiled(len(some), of_squares if last else SQUARES)(values, *pairs)
    return values
