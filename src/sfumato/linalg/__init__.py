"""Numerical routines that know nothing of privacy.

It takes arrays or tensors. It gives factors, bounds and points, each from a function that is tested against a dense or
high-precision oracle.
"""

from .conjugate_gradients import conjugate_gradients
from .ellipsoid import smallest_ellipsoid
from .hankel import (
    MaternSeries,
    RadialDensity,
    half_integer_matern,
    invert_radial,
    log_bessel_k,
    log_gamma_ratio,
    total_mass,
)
from .interpolation import (
    BernsteinMaps,
    halves,
    interpolation_nodes,
    interpolation_weights,
    lebesgue,
    pairs,
    quadratic,
    smooth_error,
    values_to_bernstein,
)
from .least_eigenvalue import least_by_products, least_eigenvalue
from .low_discrepancy import deal, fill_ball, fill_cube, fill_interval
from .pivots import Pivots, block_pivots, pivoted_cholesky
from .positive_part import positive_part_by_sign, positive_part_factor, positive_part_there
from .quadratic_forms import chance_below
from .roots import Weighting, Whitening, parallel_sum_factor
from .subspace import FeasibleSubspace
from .tall_products import add_gram, times_upper
from .tensors import (
    Block,
    Matrix,
    as_array,
    as_tensor,
    cholesky_in_place,
    inverse_norm,
    numpys_errors,
    solve_lower,
    squared_norms,
    units,
    whitened_span,
)
from .threads import VERY_SMALL, few_threads, one_thread, side_by_side, thread_share
