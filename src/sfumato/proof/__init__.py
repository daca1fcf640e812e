"""What a reader knows, and whether that keeps the promise: the certificate.

It takes a published design and nothing else. It gives a certificate, the inputs where a promise falls short, and lower
bounds on the noise that the promise needs.
"""

from .centres import LEAST_SHARE, MOST_CENTRES, Centres, choose_centres
from .certificate import Certificate, certify, check_inputs, examine, examine_sums, examine_together
from .findings import findings_on_design, learnt_inside
from .optimality import objective
from .probing import far_apart, places_between_rows, starts, walk
from .related_outputs import look_alike, one_by_one
from .roundoff import FACTORED, TOLERANCE
from .sums import Features, Summary, VirtualRows, noise_coefficients, summarise
from .words import SAME_FLOOR, floor_range, free_columns
