"""From a region to a noise: which sensitive inputs stand for the region, by which method, and with which margins.

It takes a prior, inputs, a region and a tolerance; ``y`` is given to ``Mechanism.release`` only. It gives a
``Mechanism``: a design, its certificate and a secret key.
"""

from .acceptance import Acceptance
from .arguments import asked_problem, check_choice, check_prior, check_settings
from .closed_form import has_closed_form, least_noise
from .evidence import AskedEvidence, as_asked
from .levels import SharedWork, Told
from .loop import NoCover, certified_design
from .mechanism import Mechanism, protect
from .plan import FEW_ROWS, check_memory, exact_plan
from .problem import BackEnd, Exposure, Problem, RowsExposure, Solution
from .sensitive import AskedCover
from .serving import FELL_BACK, bound_served, served_inputs
from .solver import Solver
from .units import InUnits, design_in, rescaled
from .worth import MOST_ROWS_COMPARED, Worth
