"""Rows as people have them: arrays, frames, CSV, Parquet, Dask.

It takes tables with labels and columns, and checks them once. It gives float64 rows with their columns and outputs, in
memory or stored, and parts of them to be worked on here or on a cluster.
"""

from .census import TEXANS, texans
from .column_facts import ColumnFacts, column_facts
from .csv_files import SEPARATORS, TableAsRead, table_stem
from .encoding import Column, Encoding, Finest, as_moment, end_of_day, from_moments, moment_text, to_moments
from .inputs import (
    ONE_OUTPUT,
    SAMPLE,
    Inputs,
    MemoryInputs,
    Outputs,
    among,
    as_inputs,
    as_outputs,
    at_output,
    default_names,
    sample_places,
    stacked_inputs,
    stacked_outputs,
)
from .on_dask import as_engine, is_dask_frame, rows_of_dask
from .orbit import LENGTHSCALE, ORBIT_RADIUS, SENSITIVE, STATES, simulate, training_grid
from .parts import LARGEST_NUMBER, ROWS, Done, Engine, Here, Part, TablePart, Totals
from .spreadsheets import for_spreadsheets, with_texts
from .stored import StoredColumn, StoredInputs, fingerprint, parquet_files, rows_of_parquet, scanned
from .tables import (
    CSV,
    PARQUET,
    in_row_order,
    is_plain,
    need_pyarrow,
    open_table,
    read_table,
    select_columns,
    without_labels,
    write_table,
)
