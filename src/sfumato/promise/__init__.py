"""What is promised, about what and to whom: tolerances, readers, the design that is published.

It takes priors, regions and numbers in the owner's units. It gives frozen values that every room above reads and none
changes.
"""

from .composition import (
    Composition,
    Revealed,
    RowLayout,
    compose,
    error_variances,
    interpretations,
    same_measurement,
)
from .design import Cover, Design, Guarantee, Insider, Protects, Structure, WithDesign, promised_records, rows_in_reach
from .families import can_be_promised_to_families, members_of, size_of_members
from .findings import (
    ACCEPTABLE,
    ALARMING,
    NOT_ANY_RECORD,
    ONE_BY_ONE,
    PRIOR_BEATEN,
    RAW_RECORDS,
    SEVERITIES,
    Finding,
    Verdict,
    accepting,
    asked_acceptance,
    check_accepted,
    how_to_accept,
    in_order,
    told_to_readers,
    verdict,
    verdict_in_words,
    warn_of,
    worse_than_found,
)
from .insiders import DETERMINED, Insiders, as_insiders
from .readers import (
    FunctionAndRecords,
    Past,
    Reader,
    Records,
    RowsHeld,
    SensitiveValues,
    noise_columns,
    noise_of_part,
    records_at,
)
from .served import Objective, Served
from .tolerance import (
    MOST_OF_OWN,
    FloorTolerance,
    FractionTolerance,
    KernelTolerance,
    MatrixTolerance,
    OutputTolerance,
    RecordTolerance,
    TabulatedFloor,
    Tolerance,
    Uncertain,
)
