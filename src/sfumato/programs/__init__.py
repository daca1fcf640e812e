"""Least noise for finitely many sensitive values: joint, diagonal, correlated, uniform, and their solvers.

It takes demands: A, the covariance of the data, and U, what a promise asks to hide. It gives a factor of Σ (or its
diagonal) and a witness that proves how little noise is possible.
"""

from .correlated import correlated_noise
from .demand import Demand, lower_bound
from .diagonal import diagonal_noise
from .joint import explaining_root, joint_noise_factor, promised_root
from .uniform import needed_everywhere
