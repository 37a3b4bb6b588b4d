"""One way from values per list to a mean with its interval: hierarchical bootstrap over sources, then groups of lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steadyrank.records import RankingExample
from steadyrank.stability.bootstrap import bootstrap_table

KEPT = ("mean", "low", "high", "n", "excluded")


def summaries(
    columns: Mapping[str, Sequence[float] | np.ndarray], examples: Sequence[RankingExample], *, resamples: int, seed: int
) -> dict[str, dict[str, Any]]:
    """`{mean, low, high, n, excluded}` of each column; the columns share their draws. Empty where there is no list.

    The mean is that of the means of sources; a value that is nan is left out and counted in `excluded`.
    """
    if not examples or not columns:
        return {name: {"mean": None, "low": None, "high": None, "n": 0, "excluded": 0} for name in columns}
    values_NM = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns.values()])
    rows = bootstrap_table(
        values_NM,
        [example.source or "" for example in examples],
        groups=[example.group for example in examples],
        resamples=resamples,
        seed=seed,
    )
    return {name: {key: plain(row[key]) for key in KEPT} for name, row in zip(columns, rows, strict=True)}


def plain(value: Any) -> Any:
    """A number for JSON; nan becomes None."""
    if isinstance(value, (float, np.floating)):
        return None if np.isnan(value) else float(value)
    return int(value) if isinstance(value, np.integer) else value
