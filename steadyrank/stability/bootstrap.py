"""Hierarchical percentile bootstrap: collections are drawn with replacement, then queries inside each drawn collection.

The statistic is the unweighted mean of collection means. A collection drawn twice gets two independent draws of its queries. Examples
that share a base query (`groups`) move together. Values that are nan are left out and counted; a draw of a collection that holds only nan
is left out of that resample's mean. Percentiles are linear. Source: Frohmann et al. 2026, appendix (20,000 draws, 2.5 and 97.5
percentiles).

All columns of a table share the drawn counts, and a paired comparison resamples differences, so that pairing is never lost.
Randomness comes from `seeds.stream(seed, "hierarchical bootstrap", collection)`: the collection's name, not its place, decides its draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyrank.errors import ConfigError, InputError
from steadyrank.seeds import stream

RESAMPLES = 10_000
_CELLS = 2_000_000  # cells of one chunk of the resample-by-unit table


def hierarchical_bootstrap(
    values_by_query: Any,
    collections: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
    groups: Sequence[str | None] | None = None,
) -> dict[str, Any]:
    """{mean, low, high, n, excluded, collections, resamples, level} of one value a query; mean, low and high are nan without any value.

    values_by_query: values_N, nan where a query has none. collections: the collection of each query; absent, all are of one.
    groups:          the base query of each, or None where it is its own; groups never cross collections.
    """
    values_N = np.asarray(values_by_query, dtype=np.float64)
    if values_N.ndim != 1:
        raise InputError(f"has shape {values_N.shape}; give one value a query, or use bootstrap_table", field="values_by_query")
    return bootstrap_table(values_N[:, None], collections, resamples=resamples, seed=seed, level=level, groups=groups)[0]


def paired_bootstrap(
    values_a: Any,
    values_b: Any,
    collections: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
    groups: Sequence[str | None] | None = None,
) -> dict[str, Any]:
    """As `hierarchical_bootstrap`, of a - b query by query, with `p` = twice the smaller share of resamples on one side of zero.

    A query without a value on either side is left out and counted in `excluded`.
    """
    a_N, b_N = np.asarray(values_a, dtype=np.float64), np.asarray(values_b, dtype=np.float64)
    if a_N.shape != b_N.shape or a_N.ndim != 1:
        raise InputError(f"have shapes {a_N.shape} and {b_N.shape}; give one value a query on both sides", field="values")
    parts = _parts((a_N - b_N)[:, None], collections, groups, resamples, level)
    drawn_R = _resampled(parts, resamples, seed)[:, 0]
    out = _row(parts, 0, drawn_R, level)
    live_R = drawn_R[~np.isnan(drawn_R)]
    out["p"] = min(1.0, 2 * float(min((live_R <= 0).mean(), (live_R >= 0).mean()))) if len(live_R) else float("nan")
    return out


def bootstrap_table(
    values_NM: Any,
    collections: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
    groups: Sequence[str | None] | None = None,
) -> list[dict[str, Any]]:
    """One row of `hierarchical_bootstrap` a column; the columns share their draws, so differences between them are paired."""
    parts = _parts(np.asarray(values_NM, dtype=np.float64), collections, groups, resamples, level)
    drawn_RM = _resampled(parts, resamples, seed)
    return [_row(parts, column, drawn_RM[:, column], level) for column in range(parts[0].sums_UM.shape[1])]


@dataclass(frozen=True, slots=True)
class _Collection:
    name: str
    sums_UM: np.ndarray  # sums of values by unit
    counts_UM: np.ndarray  # how many values each unit holds
    excluded_M: np.ndarray


def _parts(
    values_NM: np.ndarray, collections: Sequence[str] | None, groups: Sequence[str | None] | None, resamples: int, level: float
) -> list[_Collection]:
    if values_NM.ndim != 2 or not values_NM.shape[0] or not values_NM.shape[1]:
        raise InputError(f"has shape {values_NM.shape}; give at least one query and one column", field="values")
    if np.isinf(values_NM).any():
        raise InputError("holds an infinite value; a query without a value is nan", field="values")
    if resamples < 1 or not 0 < level < 1:
        raise ConfigError(f"resamples is {resamples} and level {level}; give at least one resample and a level between 0 and 1")
    size = len(values_NM)
    for what, labels in (("collections", collections), ("groups", groups)):
        if labels is not None and len(labels) != size:
            raise InputError(f"has {len(labels)} entries for {size} queries", field=what)
    names = ["all"] * size if collections is None else [str(name) for name in collections]
    units = [("query", n) if groups is None or groups[n] is None else ("group", groups[n]) for n in range(size)]
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows_of.setdefault(name, []).append(row)
    out = []
    for name in sorted(rows_of):
        rows = rows_of[name]
        place: dict[Any, int] = {}
        unit_N = np.array([place.setdefault(units[row], len(place)) for row in rows])
        part_NM = values_NM[rows]
        has_NM = ~np.isnan(part_NM)
        sums_UM, counts_UM = np.zeros((len(place), part_NM.shape[1])), np.zeros((len(place), part_NM.shape[1]))
        np.add.at(sums_UM, unit_N, np.where(has_NM, part_NM, 0))
        np.add.at(counts_UM, unit_N, has_NM.astype(float))
        out.append(_Collection(name, sums_UM, counts_UM, (~has_NM).sum(0)))
    return out


def _resampled(parts: list[_Collection], resamples: int, seed: int) -> np.ndarray:
    """The statistic of every resample, [R, M]; nan where no drawn unit has a value."""
    amount, width = len(parts), parts[0].sums_UM.shape[1]
    picked_RC = stream(seed, "hierarchical bootstrap", amount).integers(0, amount, size=(resamples, amount))
    total_RM, live_RM = np.zeros((resamples, width)), np.zeros((resamples, width))
    for place, part in enumerate(parts):
        rows = np.nonzero(picked_RC == place)[0]  # one entry a draw of this collection
        units = len(part.sums_UM)
        draw = stream(seed, "hierarchical bootstrap", part.name)
        step = max(1, _CELLS // units)
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            drawn = draw.integers(0, units, size=(len(chunk), units), dtype=np.int32) + (np.arange(len(chunk)) * units)[:, None]
            times_RU = np.bincount(drawn.ravel(), minlength=len(chunk) * units).reshape(len(chunk), units).astype(np.float64)
            held_RM = times_RU @ part.counts_UM
            has_RM = held_RM > 0
            means_RM = np.divide(times_RU @ part.sums_UM, held_RM, out=np.zeros_like(held_RM), where=has_RM)
            np.add.at(total_RM, chunk, means_RM)
            np.add.at(live_RM, chunk, has_RM.astype(float))
    return np.divide(total_RM, live_RM, out=np.full_like(total_RM, np.nan), where=live_RM > 0)


def _row(parts: list[_Collection], column: int, drawn_R: np.ndarray, level: float) -> dict[str, Any]:
    sums = [(part.sums_UM[:, column].sum(), part.counts_UM[:, column].sum()) for part in parts]
    means = [total / count for total, count in sums if count]
    live_R = drawn_R[~np.isnan(drawn_R)]
    low, high = np.quantile(live_R, [(1 - level) / 2, (1 + level) / 2]) if len(live_R) else (np.nan, np.nan)
    return {
        "mean": float(np.mean(means)) if means else float("nan"),
        "low": float(low),
        "high": float(high),
        "n": int(sum(count for _, count in sums)),
        "excluded": int(sum(part.excluded_M[column] for part in parts)),
        "collections": len(means),
        "resamples": len(drawn_R),
        "level": level,
    }
