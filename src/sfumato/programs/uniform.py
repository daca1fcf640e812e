"""The uniform program: the promise at every input of ℝᵈ at once, and which M is needed for it.

``K_SX M⁻¹ K_XS ⪯ H_SS`` for all finite S iff ``M ⪰ G``, ``G = (⟨K(·,x_i), K(·,x_j)⟩)`` in the native space of H
(MATH.md 4). For ``H = αK`` that is ``K_XX/α``, whatever K is. For stationary kernels with spectral measures μ_K and
μ_H it is the stationary kernel with the measure ``(dμ_K/dμ_H)² dμ_H``, that is with density k̂²/ĥ, where that is
finite. Parts of a kernel that act on different sets of columns have measures on different subspaces, which do not see
each other: G is the sum over these sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel

from ..arrays import Array, Index
from ..data import Inputs, as_inputs
from ..errors import InputError
from ..models import (
    RADIAL,
    OutputsKernel,
    Prior,
    ProductTerm,
    build_kernel,
    describe_kernel,
    group_gram,
    kernel_terms,
    proportion,
    scale_between,
)
from ..promise import KernelTolerance, Tolerance
from .joint import something_left


@dataclass(frozen=True, eq=False)
class UniformGram:
    """G at the rows of X.

    Guarantee: the true G is at most ``matrix + error·I`` in the Loewner order, up to round-off. ``error`` is 0 where
    there is a closed form; elsewhere it is an estimate, n times that of the error of each entry.
    """

    matrix: Array
    error: float


def uniform_gram(kernel: Kernel, tolerance_kernel: Kernel, X: Any) -> UniformGram:
    """G for the prior's kernel K and the tolerance kernel H; ``InputError`` where no noise protects every input.

    >>> from sfumato.models import build_kernel
    >>> K = build_kernel({"kind": "rbf", "lengthscale": 0.5})
    >>> H = build_kernel({"kind": "scale", "variance": 0.1, "kernel": {"kind": "rbf", "lengthscale": 0.4}})
    >>> uniform_gram(K, H, [0.0, 0.5]).matrix.round(4)
    array([[10.7187,  7.4212],
           [ 7.4212, 10.7187]])
    """
    inputs = as_inputs(X)
    prior, tolerance = Prior(kernel=kernel), Prior(kernel=tolerance_kernel)
    # these also check that both kernels are made for the columns of X
    K, _ = prior.covariance(inputs), tolerance.variance(inputs)
    same = scale_between(prior.kernel, tolerance.kernel)
    if same is None:
        own = kernel_terms(_described(prior.kernel, "the prior's kernel"), range(inputs.dimension))
        other = kernel_terms(_described(tolerance.kernel, "H"), range(inputs.dimension))
        same = proportion(own, other)
    if same is not None:
        return UniformGram(K / same, 0.0)
    _require_stationary(own, "the prior's kernel", inputs.names)
    _require_stationary(other, "H", inputs.names)
    return _sum_over_groups(own, other, inputs)


def _sum_over_groups(K: Sequence[ProductTerm], H: Sequence[ProductTerm], inputs: Inputs) -> UniformGram:
    X, names = inputs.values, inputs.names
    total, error = np.zeros((len(X), len(X))), 0.0
    for columns in dict.fromkeys(term.columns for term in K):
        above = [term for term in K if term.columns == columns]
        below = [term for term in H if term.columns == columns]
        if not below:
            raise InputError(
                f"tolerance: the prior's kernel has a part {_where(columns, names)}, but H has none "
                f"{_where(columns, names)} (it has parts {', '.join(_where(t.columns, names) for t in H)}), so nothing "
                "bounds what is learnt there; add such a part to H, or give alpha=… (H proportional to the prior's "
                "kernel)."
            )
        ratio = proportion(above, below)
        if ratio is not None:
            tree = {"kind": "sum", "kernels": [term.tree() for term in above]}
            total += Prior(kernel=build_kernel(tree, inputs.dimension)).covariance(inputs) / ratio
            continue
        values = group_gram(above, below, X, names)
        total += values.matrix
        error += len(X) * values.error
    return UniformGram((total + total.T) / 2.0, error)


def _described(kernel: Kernel, whose: str) -> dict[str, Any]:
    try:
        if isinstance(kernel, OutputsKernel):
            raise InputError("a kernel of several outputs has no spectral density")
        return describe_kernel(kernel)
    except InputError:
        raise InputError(
            f"tolerance: {whose}, {type(kernel).__name__}, has parts whose spectral density is not known here, and the "
            "two kernels are not the same up to a factor; give kernels made of RBF, Matérn and rational quadratic "
            "parts, or alpha=… (H proportional to the prior's kernel)."
        ) from None


def _require_stationary(terms: Sequence[ProductTerm], whose: str, names: Sequence[str]) -> None:
    remedy = "H must then be proportional to the prior's kernel, which alpha=… gives, or protect a bounded region."
    for term in terms:
        taken: dict[int, str] = {}
        for leaf in term.leaves:
            if leaf.kind in ("periodic", "cosine"):
                raise InputError(
                    f"tolerance: {whose} has a {leaf.in_words()} part {_where(leaf.columns, names)}, whose spectrum is "
                    f"discrete and has no density; {remedy}"
                )
            if leaf.kind not in RADIAL:
                why = "for which no inversion is known here" if leaf.stationary else "which is not stationary"
                raise InputError(
                    f"tolerance: {whose} has a {leaf.in_words()} part {_where(leaf.columns, names)}, {why}; {remedy}"
                )
            for column in leaf.columns:
                if column in taken:
                    raise InputError(
                        f"tolerance: {whose} has a product of {taken[column]} and {leaf.in_words()} "
                        f"{_where([column], names)}, whose spectral density is not known here; {remedy}"
                    )
                taken[column] = leaf.in_words()


def _where(columns: Sequence[int], names: Sequence[str]) -> str:
    if not columns:
        return "that is constant"
    plural = "s" if len(columns) > 1 else ""
    return f"on the column{plural} {', '.join(names[c] for c in columns)}"


def needed_everywhere(prior: Prior, tolerance: Tolerance, inputs: Inputs, records: Index) -> Array:
    """G(ℝᵈ), with the error of a numerical one added: where M is at least this, the promise holds at every input.

    Of sensitive ``records`` the same share may be learnt as of f: who knows f everywhere knows what is their own.
    """
    kernel = prior.covariance(inputs)
    shares = tolerance.budget(prior, inputs.values) / np.diag(kernel)
    if isinstance(tolerance, KernelTolerance):
        gram = uniform_gram(prior.kernel, tolerance.kernel, inputs)
        needed = gram.matrix + gram.error * np.eye(len(inputs))
    else:
        shares = np.full(len(inputs), np.min(something_left(shares)))
        needed = kernel / shares[0]
    needed[records, records] += prior.noise_variance(len(inputs))[records] / np.minimum(shares[records], 1.0)
    return np.asarray(needed)
