"""Round-off counts against the promise: every factor that the certificate stands on, with its reason.

``docs/roundoff.md`` derives them. What round-off could hide is subtracted from covariances before they are inverted,
and added to what a reader may have learnt. Factors are in units of u = 2⁻⁵² (``UNIT`` in arrays.py).
"""

from __future__ import annotations

#: Ratios are promised to within this much; it is far above round-off and far below anything one can see.
TOLERANCE = 1e-9

# What a reader knows from the rows themselves (knowledge.py). Rows are in units in which M has about 1 on its diagonal.

#: A Cholesky factor of M (n × n) is that of a matrix within n·u·max M of it, for each of forming and factoring M,
#: if single errors have random signs; the worst case is n/4 times as much.
FACTORED = 2.0

#: The norm of an inverse is estimated from below; less than a third of it is found only where someone set out to.
ESTIMATED_INVERSE = 3.0

#: Kernel values, a solve with the factor and a norm: the length of L⁻¹k is known to this many u·√(n · κ(M)).
SOLVED = 4.0

#: Δ must be this many times as large as what round-off in the kernel may change in it, or nothing is promised.
DELTA_TO_SPARE = 4.0

# What a reader knows from sums over many rows (sums.py, knowledge.py). There are p features.

#: Round-off in L makes features too large by at most this many √p·u·‖K_ZZ‖ times how much each amplifies it.
FEATURE = 4.0

#: Sums of variances and of squares over all rows agree with exact ones to this many u: they are added in blocks.
SUMMED = 64.0

#: A diagonal of this many √p times the errors of entries of ΦᵀΦ is above the matrix of these errors.
GRAM = 4.0

#: The coefficients of the noise are wrong by at most this many u of |Lᵀ||C|.
COEFFICIENTS = 4.0

#: The p × p covariance of virtual rows is factored less this many u of its diagonal (forming it may cost more).
FACTORED_SUMS = 16.0

#: Features, a solve with the factor and a norm: what is explained is known to this many p·u of the standard deviation.
SOLVED_SUMS = 8.0

# How far f is from a polynomial on patches of a region, and what is explained of that (grids.py, region.py, cells.py).

#: Bounds of ρ are sums of some hundred positive numbers: raised by this share they are bounds in spite of round-off.
OF_BOUNDS = 1e-12

#: The place of a node, or the end of a patch or cell, is rounded by less than this many u of how far it is from 0.
MISPLACED = 8.0

#: Kernel values are wrong by less than this many u of the variance.
KERNEL_VALUES = 16.0
