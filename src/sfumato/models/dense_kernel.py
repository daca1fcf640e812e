"""A kernel evaluated densely, for batches of inputs and with gradients, as readers of a release need it.

The same care as in dense_kernel.py, which is faster but keeps no gradients: sums and products are not multiplied out
lazily, and inputs far from 0 are moved there before they are divided by a lengthscale.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    CosineKernel,
    Kernel,
    MaternKernel,
    PeriodicKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from linear_operator import to_dense

from ..errors import InputError

# Kernel matrices by plain dense arithmetic, as exact as float64 allows.
#
# GPyTorch is built for speed on large problems: it expands |x − x′|², divides by the lengthscale before it subtracts,
# and multiplies lazily with a jitter on the diagonal. Each of these makes a kernel value wrong by far more than
# round-off, and a diagonal that is too large flatters a promise. So sums, products and scales are evaluated here, and
# distances are differences first.

#: Inputs this many lengthscales away from a common origin still have round-off of a few units when scaled first.
NEAR = 32.0

#: Up to this many columns it is quicker to add up squares one column after the other.
FEW_COLUMNS = 3

_EXACT = "donot_use_mm_for_euclid_dist"


def kernel_matrix(kernel: Kernel, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """K(A, B) as a dense matrix."""
    return _matrix(kernel, A, B, picked=False)


def kernel_diagonal(kernel: Kernel, A: torch.Tensor) -> torch.Tensor:
    """K(a, a) for every row of ``A``."""
    return _diagonal(kernel, A, picked=False)


def _matrix(kernel: Kernel, A: torch.Tensor, B: torch.Tensor, picked: bool) -> torch.Tensor:
    A, B = active_columns(kernel, A, picked), active_columns(kernel, B, picked)
    kind = type(kernel)
    if kind is ScaleKernel:
        # a ScaleKernel takes over the columns of the kernel that it scales
        scaled: torch.Tensor = _matrix(kernel.base_kernel, A, B, picked=True) * kernel.outputscale
        return scaled
    if kind is AdditiveKernel:
        total = torch.zeros(len(A), len(B)).to(A)
        for part in kernel.kernels:
            total = total + _matrix(part, A, B, picked=False)
        return total
    if kind is ProductKernel:
        product = torch.ones(len(A), len(B)).to(A)
        for part in kernel.kernels:
            product = product * _matrix(part, A, B, picked=False)
        return product
    if kind is RBFKernel:
        return scaled_squares(A, B, kernel.lengthscale).div_(-2.0).exp_()
    if kind is MaternKernel:
        return _matern(scaled_squares(A, B, kernel.lengthscale).sqrt_(), kernel.nu)
    if kind is RQKernel:
        # the power of a number next to 1 would lose as many digits as alpha has
        return torch.exp(-kernel.alpha * torch.log1p(scaled_squares(A, B, kernel.lengthscale) / (2.0 * kernel.alpha)))
    if kind in (PeriodicKernel, CosineKernel):
        A, B = A - A[:1], B - A[:1]
    return _dense(kernel.forward(A, B))


def _diagonal(kernel: Kernel, A: torch.Tensor, picked: bool) -> torch.Tensor:
    A = active_columns(kernel, A, picked)
    kind = type(kernel)
    if kind is ScaleKernel:
        scaled: torch.Tensor = _diagonal(kernel.base_kernel, A, picked=True) * kernel.outputscale
        return scaled
    if kind is AdditiveKernel:
        total = torch.zeros(len(A)).to(A)
        for part in kernel.kernels:
            total = total + _diagonal(part, A, picked=False)
        return total
    if kind is ProductKernel:
        product = torch.ones(len(A)).to(A)
        for part in kernel.kernels:
            product = product * _diagonal(part, A, picked=False)
        return product
    if kind in (RBFKernel, MaternKernel, RQKernel):
        return torch.ones(len(A)).to(A)
    return _dense(kernel.forward(A, A, diag=True))


def active_columns(kernel: Kernel, A: torch.Tensor, picked: bool) -> torch.Tensor:
    """The columns of ``A`` that the kernel looks at; all of them where they were ``picked`` one level above."""
    return A if picked or kernel.active_dims is None else A.index_select(-1, kernel.active_dims)


def _dense(values: object) -> torch.Tensor:
    result: torch.Tensor = values if isinstance(values, torch.Tensor) else values.to_dense()  # type: ignore[attr-defined]
    return result


def scaled_squares(A: torch.Tensor, B: torch.Tensor, lengthscale: torch.Tensor) -> torch.Tensor:
    """|(a − b)/ℓ|² for all pairs."""
    lengthscale = lengthscale.reshape(-1)
    origin = A[:1]
    scaled_A, scaled_B = (A - origin) / lengthscale, (B - origin) / lengthscale
    near = torch.maximum(scaled_A.abs().amax(dim=0), scaled_B.abs().amax(dim=0)) <= NEAR
    columns = torch.nonzero(near).flatten().tolist()
    if A.is_cuda or 0 < len(columns) <= FEW_COLUMNS:
        # on a GPU torch.cdist gives a whole block of threads to each pair, and its square root is taken back here
        squares = _gaps(scaled_A, scaled_B, columns[0]).square_() if columns else A.new_zeros(len(A), len(B))
        for column in columns[1:]:
            gap = _gaps(scaled_A, scaled_B, column)
            squares.addcmul_(gap, gap)
    else:
        squares = torch.cdist(scaled_A[:, near], scaled_B[:, near], compute_mode=_EXACT).square_()
    for column in torch.nonzero(~near).flatten().tolist():
        gap = (A[:, column : column + 1] - B[:, column]).div_(lengthscale[column % lengthscale.numel()])
        squares.addcmul_(gap, gap)
    return squares


def _gaps(A: torch.Tensor, B: torch.Tensor, column: int) -> torch.Tensor:
    """The differences of all pairs in one column."""
    return A[:, column : column + 1] - B[:, column]


def _matern(distance: torch.Tensor, nu: float) -> torch.Tensor:
    scaled = distance * math.sqrt(2.0 * nu)
    decay = torch.exp(-scaled)
    if nu == 0.5:
        return decay
    return decay * (1.0 + scaled) if nu == 1.5 else decay * (1.0 + scaled + scaled.square() / 3.0)


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
    distance: torch.Tensor
    if diag:
        distance = torch.linalg.vector_norm(A - B, dim=-1)
    else:
        distance = torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist")
    return distance.square() if square_dist else distance


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


#: Kernels of differences only.
STATIONARY = (RBFKernel, MaternKernel, RQKernel, PeriodicKernel, CosineKernel)


class DifferentiableKernel(Kernel):
    """``kernel``, with its sums, products and scales computed here."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **_: Any) -> torch.Tensor:
        return _values(self.kernel, x1, x2, diag, picked=False)


def _values(kernel: Kernel, A: torch.Tensor, B: torch.Tensor, diag: bool, picked: bool) -> torch.Tensor:
    A, B = active_columns(kernel, A, picked), active_columns(kernel, B, picked)
    kind = type(kernel)
    if kind is ScaleKernel:
        scaled: torch.Tensor = _values(kernel.base_kernel, A, B, diag, picked=True) * kernel.outputscale
        return scaled
    if kind in (AdditiveKernel, ProductKernel):
        first, *others = [_values(part, A, B, diag, picked=False) for part in kernel.kernels]
        for other in others:
            first = first + other if kind is AdditiveKernel else first * other
        return first
    if kind in STATIONARY:
        origin = A[..., :1, :].detach()
        A, B = A - origin, B - origin
    values: torch.Tensor = to_dense(kernel.forward(A, B, diag=diag))
    return values
