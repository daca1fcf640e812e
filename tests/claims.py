"""Certificates that claim what a test needs, without any work."""

from __future__ import annotations

import numpy as np

from sfumato.promise.design import Design
from sfumato.proof.certificate import Certificate


def claim(design: Design, holds: bool = True) -> Certificate:
    return Certificate(
        promise="a promise", prior="a prior", guarantee="joint", structure="full", cover=design.cover, holds=holds,
        evidence="searched", proved_share=0.5, joint_ratio=0.9 if holds else 1.7, floor_ratio=1.1,
        promised_ratio=1.1 if holds else 0.8, worst_input=design.inputs.values[0], worst_std=1.0, worst_floor=1.1,
        trace=design.noise.trace, trace_lower=0.0, gap=0.0, objective=design.objective, explained=np.nan,
        explained_upper=np.nan, suppressed=0, spill=0.0, protects="function",
        records=0, raw_records=0, record_noise=np.nan, record_ratio=np.nan, record_learnt=np.nan,
        record_sensitivity=np.nan, insider_ratio=np.nan, insider_group=-1, compression=0.0,
        sensitive=len(design.sensitive),
        checked=7,
        allowance=0.0, columns=design.inputs.names, outputs=(), findings=(),
    )  # fmt: skip
