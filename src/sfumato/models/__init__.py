"""Gaussian process priors: kernels and their derivatives, means, fitting, several outputs.

It takes data, and models of GPyTorch, BoTorch or scikit-learn. It gives priors, trees that a file can hold, and models
that those libraries can work with.
"""

from .fit import checked_kernel, fit_prior
from .fit_correlated import fit_correlated
from .fit_rows import least_outside
from .functionals import Average, Derivative, Integral, Value
from .joint_prior import JointPrior
from .kernel_terms import RADIAL, ProductTerm, kernel_terms, proportion, scale_between
from .kernel_values import kernel_diagonal, kernel_jet, kernel_matrix, require_features, seconds_a_value
from .likelihoods import LogDensity
from .outputs import OutputsKernel
from .prior import MOST_CELLS, FamilyMember, GaussianProcess, Posterior, Prior, PriorFamily
from .relations import Relation, parse_relation
from .smoothness import MOST_DERIVATIVES, AlongColumn, along_column
from .spectra import group_gram
from .trees import build_kernel, build_mean, describe_kernel, describe_mean
from .units import ColumnMap, multiplied_kernel
