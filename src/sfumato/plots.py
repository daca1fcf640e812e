"""All pictures, by name: ``from sfumato import plots``."""

from __future__ import annotations

from .show import (
    BAND,
    FLOOR,
    PUBLISHED,
    READER,
    REGION,
    TRUTH,
    plot_both,
    plot_cells,
    plot_covariance,
    plot_floor,
    plot_floor_along,
    plot_history,
    plot_noise_map,
    plot_partial,
    plot_rehearsal,
    plot_release,
    plot_slices,
    plot_std_map,
    plot_tradeoff,
    plot_trajectory,
)

__all__ = [
    "BAND",
    "FLOOR",
    "PUBLISHED",
    "READER",
    "REGION",
    "TRUTH",
    "plot_both",
    "plot_cells",
    "plot_covariance",
    "plot_floor",
    "plot_floor_along",
    "plot_history",
    "plot_noise_map",
    "plot_partial",
    "plot_rehearsal",
    "plot_release",
    "plot_slices",
    "plot_std_map",
    "plot_tradeoff",
    "plot_trajectory",
]
