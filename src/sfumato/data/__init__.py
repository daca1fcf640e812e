"""Rows as people have them: arrays, frames, CSV, Parquet, Dask.

In come tables with labels and columns, checked once at the door. Out come float64 inputs with names, and parts of rows
that are worked on one after the other, here or on a cluster.
"""

from .inputs import (
    SAMPLE,
    Inputs,
    among,
    as_inputs,
    as_outputs,
    at_output,
    default_names,
    in_row_order,
    is_plain,
    sample_places,
    stacked_inputs,
    stacked_outputs,
    without_labels,
)
from .on_dask import as_engine, is_dask_frame, rows_of_dask
from .orbit import LENGTHSCALE, ORBIT_RADIUS, SENSITIVE, STATES, simulate, training_grid
from .outputs import ONE_OUTPUT, Outputs, known_output
from .parquet import ENDINGS, TablePart, fingerprint, parquet_files, rows_of_parquet, scanned
from .parts import LARGEST_NUMBER, ROWS, Done, Engine, Here, Part, StoredColumn, StoredInputs, Totals, parts_of
from .tables import CSV, PARQUET, read_table, select_numbers, write_table
