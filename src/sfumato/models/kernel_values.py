"""Kernels and their first derivatives at pairs of inputs, by plain dense arithmetic.

Sums, products and scales are evaluated here, kernels without parts by the table in kernel_kinds.py. (GPyTorch would
multiply lazily with a jitter on the diagonal, and a diagonal that is too large flatters a promise.) With
``f ~ GP(0, k)``, the covariance of ``∂f(a)/∂a_i`` with ``∂f(b)/∂b_j`` is ``∂_{a_i} ∂_{b_j} k(a, b)``. A column that a
kernel does not look at gives 0, whatever the kernel is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from gpytorch.kernels import AdditiveKernel, Kernel, MaternKernel, ProductKernel, ScaleKernel
from linear_operator import to_dense

from ..arrays import Array
from ..errors import InputError
from .kernel_kinds import EXACT_DISTANCES, KINDS, Pairs, Side, by_gpytorch, kind_of_kernel
from .radial import radial_values

#: Values of a kernel are made so many at a time on a CPU (32 MiB): a kernel that is nested has as many such blocks at
#: once as it is deep, and never as many whole matrices.
VALUES_AT_ONCE = 1 << 22


def kernel_matrix(kernel: Kernel, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """K(A, B) as a dense matrix."""
    step = max(1, VALUES_AT_ONCE // max(1, len(B)))
    if A.is_cuda or len(A) <= step:
        return _jet(kernel, Pairs(A, B, matched=False), None, None, picked=False)
    found = A.new_empty(len(A), len(B))
    for start in range(0, len(A), step):
        some = slice(start, start + step)
        found[some] = _jet(kernel, Pairs(A[some], B, matched=False), None, None, picked=False)
    return found


#: Kernels are timed at so many rows, up to a number that takes this many seconds.
TIMED, LONG_ENOUGH = (8, 16, 64, 192), 0.05


def seconds_a_value(kernel: Kernel, rows: Array) -> float:
    """How long one value of ``kernel`` takes on this machine, measured at the first of ``rows`` in milliseconds."""
    taken = math.inf
    for count in TIMED:
        some = torch.tensor(rows[:count], dtype=torch.float64)
        start = time.perf_counter()
        with torch.no_grad():
            kernel_matrix(kernel, some, some)
        elapsed = time.perf_counter() - start
        taken = min(taken, elapsed / max(1, len(some)) ** 2)
        # the first time also loads what is needed
        if elapsed > LONG_ENOUGH and count > TIMED[0]:
            break
    return taken


def kernel_diagonal(kernel: Kernel, A: torch.Tensor) -> torch.Tensor:
    """K(a, a) for every row of ``A``."""
    return _jet(kernel, Pairs(A, A, matched=True), None, None, picked=False)


def kernel_jet(kernel: Kernel, A: torch.Tensor, B: torch.Tensor, left: int | None, right: int | None) -> torch.Tensor:
    """The matrix of ``∂_{a_left} ∂_{b_right} k(a, b)``; None means no derivative on that side."""
    return _checked_jet(kernel, Pairs(A, B, matched=False), left, right)


def kernel_jet_diagonal(kernel: Kernel, A: torch.Tensor, left: int | None, right: int | None) -> torch.Tensor:
    """The same at b = a, for every row of ``A``."""
    return _checked_jet(kernel, Pairs(A, A, matched=True), left, right)


def _checked_jet(kernel: Kernel, pairs: Pairs, left: int | None, right: int | None) -> torch.Tensor:
    for column in (left, right):
        if column is None:
            continue
        if not 0 <= column < pairs.A.shape[1]:
            raise InputError(
                f"column is {column}, but the inputs have {pairs.A.shape[1]} feature(s); give one of their numbers."
            )
        require_derivative(kernel, column)
    return _jet(kernel, pairs, None if left is None else (left,), None if right is None else (right,), picked=False)


def _jet(kernel: Kernel, pairs: Pairs, left: Side, right: Side, picked: bool) -> torch.Tensor:
    """Values or derivatives; the columns are ``picked`` where a ScaleKernel above has taken those of its base."""
    left, right = _followed(kernel, left, picked), _followed(kernel, right, picked)
    if left == () or right == ():
        return pairs.constant(0.0)
    pairs = Pairs(_seen(kernel, pairs.A, picked), _seen(kernel, pairs.B, picked), pairs.matched)
    kind = type(kernel)
    if kind is ScaleKernel:
        scaled: torch.Tensor = _jet(kernel.base_kernel, pairs, left, right, picked=True) * kernel.outputscale
        return scaled
    if kind is AdditiveKernel:
        total = pairs.constant(0.0)
        for part in kernel.kernels:
            total = total + _jet(part, pairs, left, right, picked=False)
        return total
    if kind is ProductKernel:
        return _product(kernel, pairs, left, right)
    known = kind_of_kernel(kernel)
    if left is None and right is None:
        return (by_gpytorch if known is None else known.value)(kernel, pairs)
    assert known is not None  # require_derivative has refused the others
    return known.derivative(kernel, pairs, left, right)


def _product(kernel: Kernel, pairs: Pairs, left: Side, right: Side) -> torch.Tensor:
    """Leibniz' rule, one factor after the other."""
    value = pairs.constant(1.0)
    by_left = by_right = both = pairs.constant(0.0)
    for part in kernel.kernels:
        k = _jet(part, pairs, None, None, picked=False)
        if left is not None and right is not None:
            k_both = _jet(part, pairs, left, right, picked=False)
            k_left = _jet(part, pairs, left, None, picked=False)
            k_right = _jet(part, pairs, None, right, picked=False)
            both = both * k + by_left * k_right + by_right * k_left + value * k_both
            by_left, by_right = by_left * k + value * k_left, by_right * k + value * k_right
        elif left is not None:
            by_left = by_left * k + value * _jet(part, pairs, left, None, picked=False)
        elif right is not None:
            by_right = by_right * k + value * _jet(part, pairs, None, right, picked=False)
        value = value * k
    if left is None:
        return value if right is None else by_right
    return by_left if right is None else both


def _followed(kernel: Kernel, columns: Side, picked: bool) -> Side:
    """Where ``columns`` are among those that the kernel looks at."""
    if columns is None or picked or kernel.active_dims is None:
        return columns
    return tuple(place for place, column in enumerate(kernel.active_dims.tolist()) if column in columns)


def _seen(kernel: Kernel, A: torch.Tensor, picked: bool) -> torch.Tensor:
    """The columns of ``A`` that the kernel looks at."""
    return A if picked or kernel.active_dims is None else A.index_select(-1, kernel.active_dims)


def require_derivative(kernel: Kernel, column: int) -> None:
    """Raise unless ``kernel`` has a derivative in ``column`` that is known here."""
    _require(kernel, (column,), picked=False)


def _require(kernel: Kernel, columns: tuple[int, ...], picked: bool) -> None:
    columns = _followed(kernel, columns, picked) or ()
    if not columns:
        return
    if type(kernel) is ScaleKernel:
        _require(kernel.base_kernel, columns, picked=True)
    elif type(kernel) in (AdditiveKernel, ProductKernel):
        for part in kernel.kernels:
            _require(part, columns, picked=False)
    elif type(kernel) is MaternKernel and kernel.nu == 0.5:
        raise InputError(
            "kernel has a MaternKernel with nu=0.5, whose functions have no derivative; "
            "use nu=1.5, nu=2.5 or an RBFKernel."
        )
    elif kind_of_kernel(kernel) is None:
        known = ", ".join(kind.kernel.__name__ for kind in KINDS.values())
        raise InputError(
            f"kernel has a part of class {type(kernel).__name__}, whose derivative is not known here; "
            f"use {known}, and sums, products and scales of them."
        )


def require_features(kernel: Kernel, features: int) -> None:
    """Raise unless ``kernel`` and all its parts are made for this many features."""
    _require_features(kernel, features, features, picked=False)


def _require_features(kernel: Kernel, features: int, given: int, picked: bool) -> None:
    if kernel.active_dims is not None and not picked:
        if int(kernel.active_dims.max()) >= features:
            raise InputError(
                f"the kernel looks at column {int(kernel.active_dims.max())}, but the inputs have {given} feature(s); "
                "give inputs with the columns that the kernel was made for."
            )
        features = kernel.active_dims.numel()
    known = kind_of_kernel(kernel)
    if known is not None and known.of_fixed_columns and kernel.ard_num_dims != features:
        raise InputError(
            f"the kernel has a {known.title} part of {kernel.ard_num_dims} column(s), but the inputs have {given} "
            "feature(s); make it with one mean and one scale for each feature (ard_num_dims)."
        )
    if kernel.ard_num_dims not in (None, 1, features):
        raise InputError(
            f"the kernel has {kernel.ard_num_dims} lengthscales, but the inputs have {given} feature(s); "
            "give one lengthscale, or one for each feature."
        )
    # a kernel over (input, output) rows hands its parts the input alone
    own = getattr(kernel, "columns_of_its_own", 0)
    if features <= own:
        raise InputError(
            f"the inputs have {given} feature(s), of which the kernel needs {own} for itself; give rows of an input "
            "and the number of an output."
        )
    features, given = features - own, given - own
    for part in kernel.children():
        for inner in part if isinstance(part, torch.nn.ModuleList) else [part]:
            if isinstance(inner, Kernel):
                _require_features(inner, features, given, isinstance(kernel, ScaleKernel))


def with_exact_distances(kernel: Kernel) -> Kernel:
    """``kernel`` itself, its parts made to take differences where GPyTorch would expand the square."""
    for part in kernel.modules():
        if isinstance(part, Kernel):
            part.covar_dist = _distance
    return kernel


def _distance(
    A: torch.Tensor,
    B: torch.Tensor,
    diag: bool = False,
    last_dim_is_batch: bool = False,
    square_dist: bool = False,
    **_: object,
) -> torch.Tensor:
    if last_dim_is_batch:
        A, B = A.transpose(-1, -2).unsqueeze(-1), B.transpose(-1, -2).unsqueeze(-1)
    if diag:
        distance: torch.Tensor = torch.linalg.vector_norm(A - B, dim=-1)
    else:
        distance = torch.cdist(A, B, compute_mode=EXACT_DISTANCES)
    return distance.square() if square_dist else distance


class DifferentiableKernel(Kernel):
    """``kernel`` for batches of inputs and with gradients, as readers of a release need it.

    The values are those of ``kernel_matrix``, which is faster but keeps no gradients.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **_: Any) -> torch.Tensor:
        return with_gradients(self.kernel, x1, x2, partial(_leaf_values, diag=diag))


Leaf = Callable[[Kernel, torch.Tensor, torch.Tensor], torch.Tensor]


def with_gradients(kernel: Kernel, A: torch.Tensor, B: torch.Tensor, leaf: Leaf, picked: bool = False) -> torch.Tensor:
    """Sums, products and scales of what ``leaf`` gives for kernels without parts."""
    A, B = _seen(kernel, A, picked), _seen(kernel, B, picked)
    kind = type(kernel)
    if kind is ScaleKernel:
        scaled: torch.Tensor = with_gradients(kernel.base_kernel, A, B, leaf, picked=True) * kernel.outputscale
        return scaled
    if kind in (AdditiveKernel, ProductKernel):
        first, *others = [with_gradients(part, A, B, leaf) for part in kernel.kernels]
        for other in others:
            first = first + other if kind is AdditiveKernel else first * other
        return first
    return leaf(kernel, A, B)


def _leaf_values(kernel: Kernel, A: torch.Tensor, B: torch.Tensor, diag: bool = False) -> torch.Tensor:
    known = kind_of_kernel(kernel)
    if known is not None and known.stationary:
        # moved next to 0 before they are divided by a lengthscale
        origin = A[..., :1, :].detach()
        A, B = A - origin, B - origin
    values: torch.Tensor = to_dense(kernel.forward(A, B, diag=diag))
    return values


def searched_values(kernel: Kernel, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """K(A, B) with gradients by the parameters of the kernel, fast for kernels that are fitted often."""

    def leaf(part: Kernel, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        quick = radial_values(part, A, B)
        return _leaf_values(part, A, B) if quick is None else quick

    return with_gradients(kernel, A, B, leaf)


def searched_diagonal(kernel: Kernel, A: torch.Tensor) -> torch.Tensor:
    """k(a, a) for every row of ``A``, with gradients by the parameters of the kernel."""
    return with_gradients(kernel, A, A, partial(_leaf_values, diag=True))
