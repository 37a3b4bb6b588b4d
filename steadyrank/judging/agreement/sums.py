"""What agreement is computed from: per list, whatever adds up over lists, so that a resample of lists is a weighted sum of rows.

Axes: Q lists, R resamples, X either of them, L levels of the common scale. Rater a stands in the rows of a confusion matrix; with
`is_reference` it is the truth that b is held against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from steadyrank.judging.agreement import kappa as kappas
from steadyrank.judging.agreement import order
from steadyrank.judging.agreement.ratings import Lists, Rater, levels, relevance

COUNTS = ("documents", "missing_a", "missing_b", "both", "difference", "equal")
_BINARY = ("binary_pairs", "binary_alike")
NAMES = (*COUNTS, *order.COLUMNS, *_BINARY)


@dataclass(frozen=True, slots=True)
class Sums:
    """values_XM: the columns NAMES, then the confusion matrix row by row, then that of relevance."""

    values_XM: np.ndarray
    num_levels: int

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values_XM[:, NAMES.index(name)]

    @property
    def confusion_XLL(self) -> np.ndarray:
        """Documents by level of a and level of b."""
        return self.values_XM[:, len(NAMES) : -4].reshape(-1, self.num_levels, self.num_levels)

    @property
    def binary_X22(self) -> np.ndarray:
        """Documents by relevance of a and of b."""
        return self.values_XM[:, -4:].reshape(-1, 2, 2)

    def weighed(self, times_RX: np.ndarray) -> Sums:
        """The sums of each resample; `times_RX` says how often it drew each list."""
        return replace(self, values_XM=times_RX @ self.values_XM)

    def total(self) -> Sums:
        """The sums over all rows, as one row."""
        return replace(self, values_XM=self.values_XM.sum(0)[None])

    def of(self, rows: np.ndarray) -> Sums:
        """These lists only."""
        return replace(self, values_XM=self.values_XM[rows])


def pair_sums(a: Rater, b: Rater, lists: Lists, *, is_reference: bool) -> Sums:
    """The sums of two raters, one row a list."""
    top = min(a.scale.top, b.scale.top)
    amount, size = len(lists.ids_Q), top + 1
    has_a_D, has_b_D = ~np.isnan(a.grades_D), ~np.isnan(b.grades_D)
    both_D = has_a_D & has_b_D
    list_D = lists.list_D[both_D]

    def counted(weights_D: np.ndarray, list_D: np.ndarray) -> np.ndarray:
        return np.bincount(list_D, weights=weights_D, minlength=amount)

    def confusion(a_D: np.ndarray, b_D: np.ndarray, size: int) -> np.ndarray:
        cell_D = (list_D * size + a_D[both_D]) * size + b_D[both_D]
        return np.bincount(cell_D, minlength=amount * size * size).reshape(amount, size * size).astype(float)

    stretched_D = b.grades_D * (top / b.scale.top) - a.grades_D * (top / a.scale.top)
    counts = [
        counted(np.ones(len(both_D)), lists.list_D), counted(~has_a_D, lists.list_D), counted(~has_b_D, lists.list_D),
        counted(both_D, lists.list_D), counted(stretched_D[both_D], list_D), counted((a.grades_D == b.grades_D)[both_D], list_D),
    ]  # fmt: skip
    relevant_a_D, relevant_b_D = relevance(a.grades_D, a.scale), relevance(b.grades_D, b.scale)
    graded = order.order_sums(a.grades_D[both_D], b.grades_D[both_D], list_D, amount, is_reference=is_reference)
    binary = order.order_sums(relevant_a_D[both_D], relevant_b_D[both_D], list_D, amount, is_reference=is_reference)
    parts = [
        np.column_stack(counts),
        graded,
        binary[:, [order.COLUMNS.index(name) for name in ("pairs", "pairs_alike")]],
        confusion(levels(a.grades_D, a.scale, top), levels(b.grades_D, b.scale, top), size),
        confusion(relevant_a_D, relevant_b_D, 2),
    ]
    return Sums(np.column_stack(parts), size)


def _error(name: str) -> Callable[[Sums], np.ndarray]:
    return lambda sums: kappas.errors(sums.binary_X22)[name]


STATISTICS: dict[str, tuple[str, Callable[[Sums], np.ndarray]]] = {  # name -> (what its n counts, value_X of sums)
    "missing_a": ("documents", lambda sums: kappas.ratio(sums["missing_a"], sums["documents"])),
    "missing_b": ("documents", lambda sums: kappas.ratio(sums["missing_b"], sums["documents"])),
    "accuracy": ("both", lambda sums: kappas.accuracy(sums.confusion_XLL)),
    "accuracy_binary": ("both", lambda sums: kappas.accuracy(sums.binary_X22)),
    "identical": ("both", lambda sums: kappas.ratio(sums["equal"], sums["both"])),
    "kappa": ("both", lambda sums: kappas.kappa(sums.confusion_XLL)),
    "kappa_linear": ("both", lambda sums: kappas.kappa(sums.confusion_XLL, "linear")),
    "kappa_quadratic": ("both", lambda sums: kappas.kappa(sums.confusion_XLL, "quadratic")),
    "kappa_binary": ("both", lambda sums: kappas.kappa(sums.binary_X22)),
    "difference": ("both", lambda sums: kappas.ratio(sums["difference"], sums["both"])),
    "false_positives": ("both", _error("false_positives")),
    "false_negatives": ("both", _error("false_negatives")),
    "false_positive_rate": ("both", _error("false_positive_rate")),
    "false_negative_rate": ("both", _error("false_negative_rate")),
    "precision": ("both", _error("precision")),
    "recall": ("both", _error("recall")),
    "spearman_query": ("ordered", lambda sums: kappas.ratio(sums["spearman"], sums["ordered"])),
    "spearman_query_counted": ("can_order", lambda sums: kappas.ratio(sums["spearman"], sums["ordered"] + sums["blind"])),
    "tau_query": ("ordered", lambda sums: kappas.ratio(sums["tau"], sums["ordered"])),
    "tau_query_counted": ("can_order", lambda sums: kappas.ratio(sums["tau"], sums["ordered"] + sums["blind"])),
    "pairs": ("pairs", lambda sums: kappas.ratio(sums["pairs_alike"], sums["pairs"])),
    "pairs_binary": ("binary_pairs", lambda sums: kappas.ratio(sums["binary_alike"], sums["binary_pairs"])),
}


def statistics(sums: Sums) -> dict[str, np.ndarray]:
    """Every statistic of every row."""
    return {name: compute(sums) for name, (_, compute) in STATISTICS.items()}


def counted(sums: Sums, name: str) -> int:
    """What a statistic was computed from: documents, lists or document pairs."""
    what = STATISTICS[name][0]
    column = sums["ordered"] + sums["blind"] if what == "can_order" else sums[what]
    return int(round(float(column.sum())))
