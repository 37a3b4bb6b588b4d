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

COUNTS = ("documents", "missing_a", "missing_b", "both", "graded", "difference", "equal")
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
    """The sums of two raters, one row a list. Where one of them gives ranks only, whatever needs a scale stays 0, and so undefined."""
    amount = len(lists.ids_Q)
    has_a_D, has_b_D = ~np.isnan(a.grades_D), ~np.isnan(b.grades_D)
    both_D = has_a_D & has_b_D
    list_D = lists.list_D[both_D]
    kinds = (np.ones(len(both_D)), ~has_a_D, ~has_b_D, both_D)
    counts = [np.bincount(lists.list_D, weights=kind_D, minlength=amount) for kind_D in kinds]
    ordered = order.order_sums(a.grades_D[both_D], b.grades_D[both_D], list_D, amount, is_reference=is_reference)
    size, (graded, binary, confusions) = _graded_sums(a, b, both_D, list_D, amount, is_reference=is_reference)
    return Sums(np.column_stack([*counts, graded, ordered, binary, confusions]), size)


def _graded_sums(
    a: Rater, b: Rater, both_D: np.ndarray, list_D: np.ndarray, amount: int, *, is_reference: bool
) -> tuple[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(levels, (graded, difference and equal; pairs on relevance; both confusion matrices)): what needs the scales of both."""
    if a.scale is None or b.scale is None:
        return 1, (np.zeros((amount, 3)), np.zeros((amount, len(_BINARY))), np.zeros((amount, 1 + 4)))
    top = min(a.scale.top, b.scale.top)
    a_D, b_D = a.grades_D[both_D], b.grades_D[both_D]
    relevant_a_D, relevant_b_D = relevance(a_D, a.scale), relevance(b_D, b.scale)

    def confusion(a_D: np.ndarray, b_D: np.ndarray, size: int) -> np.ndarray:
        cell_D = (list_D * size + a_D) * size + b_D
        return np.bincount(cell_D, minlength=amount * size * size).reshape(amount, size * size).astype(float)

    stretched_D = b_D * (top / b.scale.top) - a_D * (top / a.scale.top)
    graded = [np.bincount(list_D, weights=weights_D, minlength=amount) for weights_D in (np.ones(len(list_D)), stretched_D, a_D == b_D)]
    ordered = order.order_sums(relevant_a_D, relevant_b_D, list_D, amount, is_reference=is_reference)
    confusions = [
        confusion(levels(a_D, a.scale, top), levels(b_D, b.scale, top), top + 1),
        confusion(relevant_a_D, relevant_b_D, 2),
    ]
    binary = ordered[:, [order.COLUMNS.index(name) for name in ("pairs", "pairs_alike")]]
    return top + 1, (np.column_stack(graded), binary, np.column_stack(confusions))


def _error(name: str) -> Callable[[Sums], np.ndarray]:
    return lambda sums: kappas.errors(sums.binary_X22)[name]


STATISTICS: dict[str, tuple[str, Callable[[Sums], np.ndarray]]] = {  # name -> (what its n counts, value_X of sums)
    "missing_a": ("documents", lambda sums: kappas.ratio(sums["missing_a"], sums["documents"])),
    "missing_b": ("documents", lambda sums: kappas.ratio(sums["missing_b"], sums["documents"])),
    "accuracy": ("graded", lambda sums: kappas.accuracy(sums.confusion_XLL)),
    "accuracy_binary": ("graded", lambda sums: kappas.accuracy(sums.binary_X22)),
    "identical": ("graded", lambda sums: kappas.ratio(sums["equal"], sums["graded"])),
    "kappa": ("graded", lambda sums: kappas.kappa(sums.confusion_XLL)),
    "kappa_linear": ("graded", lambda sums: kappas.kappa(sums.confusion_XLL, "linear")),
    "kappa_quadratic": ("graded", lambda sums: kappas.kappa(sums.confusion_XLL, "quadratic")),
    "kappa_binary": ("graded", lambda sums: kappas.kappa(sums.binary_X22)),
    "difference": ("graded", lambda sums: kappas.ratio(sums["difference"], sums["graded"])),
    "false_positives": ("graded", _error("false_positives")),
    "false_negatives": ("graded", _error("false_negatives")),
    "false_positive_rate": ("graded", _error("false_positive_rate")),
    "false_negative_rate": ("graded", _error("false_negative_rate")),
    "precision": ("graded", _error("precision")),
    "recall": ("graded", _error("recall")),
    "spearman_query": ("ordered", lambda sums: kappas.ratio(sums["spearman"], sums["ordered"])),
    "spearman_query_counted": ("can_order", lambda sums: kappas.ratio(sums["spearman"], sums["ordered"] + sums["blind"])),
    "tau_query": ("ordered", lambda sums: kappas.ratio(sums["tau"], sums["ordered"])),
    "tau_query_counted": ("can_order", lambda sums: kappas.ratio(sums["tau"], sums["ordered"] + sums["blind"])),
    "pairs": ("pairs", lambda sums: kappas.ratio(sums["pairs_alike"], sums["pairs"])),
    "pairs_binary": ("binary_pairs", lambda sums: kappas.ratio(sums["binary_alike"], sums["binary_pairs"])),
}
NEED_SCALES = ("graded", "binary_pairs")  # statistics that count these are undefined where a rater gives ranks only


def statistics(sums: Sums) -> dict[str, np.ndarray]:
    """Every statistic of every row."""
    return {name: compute(sums) for name, (_, compute) in STATISTICS.items()}


def counted(sums: Sums, name: str) -> int:
    """What a statistic was computed from: documents, lists or document pairs."""
    what = STATISTICS[name][0]
    column = sums["ordered"] + sums["blind"] if what == "can_order" else sums[what]
    return int(round(float(column.sum())))
