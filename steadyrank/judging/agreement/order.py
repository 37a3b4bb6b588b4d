"""How alike two raters order the documents of a list: Spearman, Kendall's tau-b, ordered pairs; vectorised over lists of one length.

With s_ij the sign of grade i minus grade j, all three are sums of these signs (Kendall 1948, chapter 2): tau-b is the correlation of s over
the pairs, Spearman that of the row sums of s, which are the centred mid-ranks times two.
"""

from __future__ import annotations

import numpy as np

_CELLS = 2_000_000  # cells of one chunk of list-by-document-by-document signs
COLUMNS = ("ordered", "blind", "unordered", "short", "spearman", "tau", "pairs", "pairs_alike")


def order_sums(a_D: np.ndarray, b_D: np.ndarray, list_D: np.ndarray, num_lists: int, *, is_reference: bool) -> np.ndarray:
    """sums_QC, one row a list, columns as COLUMNS. Documents must hold a grade of both raters; the others are left out beforehand.

    ordered:   1 where both raters tell documents apart; `spearman` and `tau` hold the list's value there, else 0.
    blind:     1 where a rater gives all documents one grade though the other tells them apart. With is_reference only b can be blind.
    unordered: 1 where there is no order to find: a (with is_reference), else both, gives one grade to all.
    short:     1 where fewer than two documents have both grades.
    pairs:     document pairs that a orders (with is_reference), else that either orders; `pairs_alike` those that the other orders alike,
               half where it has a tie.
    """
    sums_QC = np.zeros((num_lists, len(COLUMNS)))
    size_Q = np.bincount(list_D, minlength=num_lists)
    sums_QC[size_Q < 2, COLUMNS.index("short")] = 1
    start_Q = np.concatenate([[0], np.cumsum(size_Q)[:-1]])
    order_D = np.argsort(list_D, kind="stable")
    a_D, b_D = a_D[order_D], b_D[order_D]
    for size in np.unique(size_Q[size_Q >= 2]):
        rows = np.flatnonzero(size_Q == size)
        step = max(1, _CELLS // int(size) ** 2)
        for first in range(0, len(rows), step):
            chunk = rows[first : first + step]
            at_BK = start_Q[chunk][:, None] + np.arange(size)
            sums_QC[chunk] = _of_equal_length(a_D[at_BK], b_D[at_BK], is_reference=is_reference)
    return sums_QC


def _of_equal_length(a_BK: np.ndarray, b_BK: np.ndarray, *, is_reference: bool) -> np.ndarray:
    a_BKK, b_BKK = (np.sign(values[:, :, None] - values[:, None, :]) for values in (a_BK, b_BK))
    has_a_B, has_b_B = (signs.any((1, 2)) for signs in (a_BKK, b_BKK))
    ordered_B = has_a_B & has_b_B
    blind_B = has_a_B & ~has_b_B if is_reference else has_a_B ^ has_b_B
    is_pair_BKK = (a_BKK != 0) if is_reference else (a_BKK != 0) | (b_BKK != 0)
    alike_BKK = np.where(is_pair_BKK, (1 + a_BKK * b_BKK) / 2, 0)
    columns = {
        "ordered": ordered_B,
        "blind": blind_B,
        "unordered": ~ordered_B & ~blind_B,
        "short": np.zeros(len(a_BK)),
        "spearman": _correlation(a_BKK.sum(2), b_BKK.sum(2)),
        "tau": _correlation(a_BKK.reshape(len(a_BK), -1), b_BKK.reshape(len(a_BK), -1)),
        "pairs": is_pair_BKK.sum((1, 2)) / 2,  # each pair stands twice
        "pairs_alike": alike_BKK.sum((1, 2)) / 2,
    }
    return np.column_stack([columns[name] for name in COLUMNS])


def _correlation(x_BN: np.ndarray, y_BN: np.ndarray) -> np.ndarray:
    """Correlation of centred rows; 0 where one of them is constant."""
    scale_B = np.sqrt((x_BN**2).sum(1) * (y_BN**2).sum(1))
    return np.divide((x_BN * y_BN).sum(1), scale_B, out=np.zeros(len(x_BN)), where=scale_B > 0)
