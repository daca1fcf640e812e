"""What a reader knows, and whether that keeps the promise: the certificate.

It takes a published design and nothing else. It gives a certificate, the inputs where a promise falls short, and lower
bounds on the noise that the promise needs.
"""

from .certificate import (
    Certificate,
    Evidence,
    Examination,
    certify,
    examine,
    examine_sums,
    examine_together,
    knowledge_of,
)
from .findings import (
    SAME_FLOOR,
    findings_on_design,
    floor_range,
    free_columns,
    learnt_inside,
    look_alike,
    one_by_one,
    record_floors,
)
from .insiders import groups_told
from .knowledge import Knowledge
from .optimality import objective
from .privacy_loss import gaussian_mu
from .records import UNCHANGED, record_sensitivity
from .region import Effort, Looked, Pieces, Proof, Prover, pieces_of
from .roundoff import FACTORED, TOLERANCE
from .search import inputs_to_look_at
from .sums import (
    LEAST_SHARE,
    MOST_CENTRES,
    STEPS_OF_SPARE,
    Centres,
    Features,
    RecordSums,
    Summary,
    VirtualRows,
    choose_centres,
    noise_coefficients,
    summarise,
)
