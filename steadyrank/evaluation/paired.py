"""Paired tests: Wilcoxon's signed-rank test (scipy) and Holm's step-down correction.

Zero differences are dropped (Wilcoxon's own rule) and counted; a difference below 1e-12 is rounding and counts as zero. Without any
non-zero difference there is no evidence: p = 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steadyrank.names import require

ROUNDING = 1e-12


def wilcoxon(differences: Sequence[float] | np.ndarray) -> tuple[dict[str, float], int]:
    """p-values `two_sided` and `greater` (differences tend above zero), and the number of non-zero differences."""
    values = np.asarray(differences, dtype=np.float64)
    values = values[np.abs(values) > ROUNDING]
    if not len(values):
        return {"two_sided": 1.0, "greater": 1.0}, 0
    values = np.round(values, 12)  # equal differences must get equal ranks, whatever their last bits
    test = require("scipy.stats", "the Wilcoxon test").wilcoxon
    p = {name: float(test(values, alternative=name.replace("_", "-")).pvalue) for name in ("two_sided", "greater")}
    return p, len(values)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm (1979): adjusted p-values of a family, in the order given."""
    out = [1.0] * len(p_values)
    worst = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[place]))
        out[place] = worst
    return out
