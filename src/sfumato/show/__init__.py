"""What a person looks at: pictures and the report.

It takes releases, ledgers, trade-offs and audits, which do not import it. It gives Matplotlib axes and one HTML page.
"""

from .cells import plot_cells
from .comparisons import plot_audit, plot_history, plot_suggestion, plot_tradeoff
from .curves import plot_both, plot_floor, plot_floor_along, plot_partial, plot_release, plot_slices, plot_trajectory
from .maps import plot_covariance, plot_noise_map, plot_std_map
from .publication import write_publication
from .rehearsals import plot_rehearsal
from .report_facts import Facts
from .report_figures import Picture, public_pictures
from .report_page import check_page, report, write_report
from .report_records import RecordFacts
from .view import (
    BAND,
    DASHED,
    FLOOR,
    ORANGE,
    PUBLISHED,
    PURPLE,
    READER,
    REGION,
    SKY,
    TRUTH,
    draw_band,
    draw_floor,
    draw_prior,
    draw_reader,
    legend_of_figure,
    plain_axes,
    runs,
    value_axes,
)
