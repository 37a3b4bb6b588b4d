"""Spearman's rank correlation over all documents of many lists at once, for weighted lists: mid-ranks are those of the resample itself.

Documents with the same two grades are one cell, so graded judges cost a handful of cells whatever the number of documents.
Axes: C cells, V distinct grades of one rater, Q lists, R resamples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_CELLS = 250_000  # cells of one block of the cell-by-resample table, so that it stays in a processor's cache


class PooledSpearman:
    """`values(times_RQ)`: the correlation of each resample, nan where one rater gives one grade only."""

    def __init__(self, a_D: np.ndarray, b_D: np.ndarray, list_D: np.ndarray, num_lists: int):
        pairs_C2, cell_D = np.unique(np.column_stack([a_D, b_D]), axis=0, return_inverse=True)
        self._cells_CQ = _counts(cell_D.reshape(-1), list_D, (len(pairs_C2), num_lists))
        self._sides = []  # (documents by grade and list, the grade of each cell) of a and of b
        for side, grades_D in enumerate((a_D, b_D)):
            found_V, code_D = np.unique(grades_D, return_inverse=True)
            grades_VQ = _counts(code_D, list_D, (len(found_V), num_lists))
            self._sides.append((grades_VQ, np.searchsorted(found_V, pairs_C2[:, side])))

    @property
    def num_cells(self) -> int:
        """Distinct pairs of grades."""
        return int(self._cells_CQ.shape[0])

    def values(self, times_RQ: np.ndarray) -> np.ndarray:
        """value_R of each resample; `times_RQ` says how often it drew each list."""
        out_R = np.full(len(times_RQ), np.nan)
        step = max(1, _CELLS // max(1, self.num_cells))
        for start in range(0, len(times_RQ) if self.num_cells else 0, step):
            out_R[start : start + step] = self._block(np.ascontiguousarray(times_RQ[start : start + step].T))
        return out_R

    def _block(self, times_QR: np.ndarray) -> np.ndarray:
        ranks, squares = zip(*(_centred_ranks(grades_VQ @ times_QR) for grades_VQ, _ in self._sides))
        a_CR, b_CR = (rank_VR[code_C] for rank_VR, (_, code_C) in zip(ranks, self._sides, strict=True))
        above_R = np.einsum("cr,cr,cr->r", self._cells_CQ @ times_QR, a_CR, b_CR)
        below_R = np.sqrt(squares[0] * squares[1])
        return np.divide(above_R, below_R, out=np.full(len(below_R), np.nan), where=below_R > 0)


def _counts(row_D: np.ndarray, list_D: np.ndarray, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(row_D)), (row_D, list_D)), shape=shape)


def _centred_ranks(total_VR: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rank_VR, sum of their squares): mid-ranks minus their mean, half the weight below minus half the weight above each grade."""
    upto_VR = np.cumsum(total_VR, axis=0)
    rank_VR = upto_VR - total_VR / 2 - upto_VR[-1] / 2
    return rank_VR, np.einsum("vr,vr,vr->r", total_VR, rank_VR, rank_VR)
