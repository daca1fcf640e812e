"""The subspace in which the noise is looked for: ``Σ = P T Pᵀ``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.linalg

from ..inputs import Array
from .barrier import SmallDemand
from .view import View

Index = npt.NDArray[np.intp]

NEW = 1e-10
"""A direction is new if at least this share of it lies outside P."""


class Subspace:
    """P with orthonormal columns, and ``L⁻¹P`` for each view: what makes a demand about Σ one about T."""

    def __init__(self, views: Sequence[View], rows: int, whole: bool) -> None:
        self.views = views
        self.columns = np.eye(rows) if whole else np.zeros((rows, 0))
        self.white = [view.whiten(self.columns) for view in views]

    @property
    def size(self) -> int:
        return int(self.columns.shape[1])

    def grow(self, block: Array) -> Array:
        """P takes in the columns of ``block``; returns the directions that were new."""
        none = block[:, :0]
        if self.size == self.columns.shape[0] or not block.shape[1]:
            return none
        fresh = self._outside(block / np.maximum(np.linalg.norm(block, axis=0), np.finfo(float).tiny))
        frame, triangle, _ = scipy.linalg.qr(fresh, mode="economic", pivoting=True, check_finite=False)
        fresh = frame[:, np.abs(np.diag(triangle)) > NEW]
        if not fresh.shape[1]:
            return none
        fresh = np.linalg.qr(self._outside(fresh))[0]
        self.columns = np.hstack([self.columns, fresh])
        self.white = [np.hstack([old, view.whiten(fresh)]) for old, view in zip(self.white, self.views, strict=True)]
        return np.asarray(fresh)

    def _outside(self, block: Array) -> Array:
        for _ in range(2):
            block = block - self.columns @ (self.columns.T @ block)
        return block

    def compress(self, work: Sequence[Index]) -> tuple[list[SmallDemand], list[Array]]:
        """The demands on T for the columns ``work`` of each U, and Z of ``L⁻¹P = Z R`` for each view."""
        small, frames = [], []
        for view, white, index in zip(self.views, self.white, work, strict=True):
            frame, whitener = np.linalg.qr(white)
            frames.append(frame)
            small.append(SmallDemand(whitener, frame.T @ view.white[:, index], view.joint))
        return small, frames
