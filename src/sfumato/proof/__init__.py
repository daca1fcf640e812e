"""What a reader knows, and whether that keeps the promise: the certificate.

It takes a published design and nothing else. It gives a certificate, the inputs where a promise falls short, and lower
bounds on the noise that the promise needs.
"""

from .certificate import Certificate, Evidence
from .changes import changes_of
from .cost import cost_of_check
from .examination import Examination, certify, examine, examine_sums, examine_together, knowledge_of
from .features import LEAST_SHARE, MOST_CENTRES, Centres, Features, choose_centres
from .findings import FAR_FROM_BEST, findings_on_design, learnt_inside
from .insiders import groups_told
from .knowledge import ExactKnowledge, Knowledge
from .optimality import weighted_trace
from .privacy_loss import gaussian_mu
from .promise_words import SAME_FLOOR, averages_in_words, floor_range, free_columns, record_floors
from .records import UNCHANGED, record_sensitivity
from .region import Effort, Looked, Pieces, Proof, Prover, pieces_of
from .related_outputs import look_alike, one_by_one
from .roundoff import FACTORED, TOLERANCE
from .search import inputs_to_look_at
from .sums import (
    STEPS_OF_SPARE,
    RecordSums,
    Summary,
    VirtualRows,
    noise_coefficients,
    seen_functions,
    sources_of,
    summarise,
    without_functions,
)
