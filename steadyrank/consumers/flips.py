"""How often a decision flips over presentations, by two estimators that must be named, since they differ much.

pairwise (default): share of the M(M-1)/2 pairs of presentations whose decisions differ, 1 - sum c(c-1) / (M(M-1)) over the counts c of each
decision: the chance that two presentations disagree. modal: 1 - count of the commonest decision / M: the published code's form, about
half of it for two outcomes. Decisions are compared with ==; None and other marks of failure are decisions of their own, never dropped here.
One decision: pairwise is nan (no pair), modal 0 by its definition. None at all: nan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from steadyrank.errors import unknown_name

ESTIMATORS = ("pairwise", "modal")


def flip_rate(decisions_P: Iterable[Hashable], estimator: str = "pairwise") -> float:
    """Flip rate of one example's decisions, one a presentation, in [0, 1]; arrays and sets are not hashable, give tuples and frozensets."""
    if estimator not in ESTIMATORS:
        raise unknown_name("flip estimator", estimator, ESTIMATORS)
    counts = Counter(decisions_P)
    total = sum(counts.values())
    if not total:
        return float("nan")
    if estimator == "modal":
        return 1 - max(counts.values()) / total
    if total < 2:
        return float("nan")
    return 1 - sum(count * (count - 1) for count in counts.values()) / (total * (total - 1))
