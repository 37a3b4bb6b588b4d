"""Values with their intervals: 95% percentile bootstrap over lists (over groups of lists where they have groups).

One resample serves a dataset, all documents (micro) and the mean over datasets (macro): lists are drawn from all datasets together, as
`steadyrank.evaluation` does. A resample in which a statistic is undefined is left out of its interval and counted. Where fewer than two
units can be drawn there is no interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyrank.errors import ConfigError
from steadyrank.judging.agreement.pooled import PooledSpearman
from steadyrank.judging.agreement.sums import STATISTICS, Sums, counted, statistics
from steadyrank.seeds import stream

RESAMPLES = 10_000
LEVEL = 0.95
_CELLS = 2_000_000  # cells of one chunk of the resample-by-list table
Cell = dict[str, Any]  # {value, low, high, n}, and undefined_resamples, why where they apply


@dataclass(frozen=True, slots=True)
class Part:
    """Some lists of two raters: all of them, or one dataset."""

    rows: np.ndarray  # places of its lists
    units: int  # how many units can be drawn
    sums: Sums
    pooled: PooledSpearman

    def values(self, times_RQ: np.ndarray) -> dict[str, np.ndarray]:
        """Every statistic of every resample."""
        mine_RQ = times_RQ[:, self.rows]
        return {**statistics(self.sums.weighed(mine_RQ)), "spearman": self.pooled.values(mine_RQ)}

    def n(self, name: str) -> int:
        """Documents, lists or pairs behind a statistic."""
        return int(self.sums["both"].sum()) if name == "spearman" else counted(self.sums, name)


NAMES = (*STATISTICS, "spearman")


def draws(unit_Q: np.ndarray, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """times_RQ: how often each list is drawn, a chunk of resamples at a time. Depends on the number of units only."""
    if resamples < 1:
        raise ConfigError(f"resamples is {resamples}; give at least one")
    units = int(unit_Q.max()) + 1
    draw = stream(seed, "judge agreement", units)
    step = max(1, _CELLS // max(units, len(unit_Q)))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn_RU = draw.integers(0, units, size=(rows, units), dtype=np.int32)
        cell_RU = drawn_RU + (np.arange(rows, dtype=np.int64) * units)[:, None]
        times_RU = np.bincount(cell_RU.ravel(), minlength=rows * units).reshape(rows, units)
        yield times_RU[:, unit_Q].astype(np.float64)


def cells(
    parts: Mapping[str, Part], unit_Q: np.ndarray, *, resamples: int, seed: int
) -> tuple[dict[str, dict[str, Cell]], dict[str, Cell]]:
    """(a cell of every statistic for every part, and for the mean over all parts but the first, "all")."""
    once_1Q = np.ones((1, len(unit_Q)))
    point = {key: part.values(once_1Q) for key, part in parts.items()}
    chunks: dict[str, list[dict[str, np.ndarray]]] = {key: [] for key in parts}
    for times_RQ in draws(unit_Q, resamples, seed):
        for key, part in parts.items():
            chunks[key].append(part.values(times_RQ))
    drawn = {key: {name: np.concatenate([one[name] for one in found]) for name in NAMES} for key, found in chunks.items()}
    table = {
        key: {name: make_cell(float(point[key][name][0]), drawn[key][name], part.n(name), units=part.units) for name in NAMES}
        for key, part in parts.items()
    }
    datasets = [key for key in parts if key != "all"]
    macro = {name: _macro(datasets, name, point, drawn, parts["all"].units) for name in NAMES}
    return table, macro


def _macro(datasets: Sequence[str], name: str, point: Mapping[str, Any], drawn: Mapping[str, Any], units: int) -> Cell:
    """The mean over the datasets in which the statistic is defined; n counts them."""
    value_S = np.array([point[key][name][0] for key in datasets])
    drawn_SR = np.stack([drawn[key][name] for key in datasets])
    defined_R = (~np.isnan(drawn_SR)).sum(0)
    mean_R = np.divide(np.nansum(drawn_SR, axis=0), defined_R, out=np.full(len(defined_R), np.nan), where=defined_R > 0)
    defined_S = ~np.isnan(value_S)
    value = float(value_S[defined_S].mean()) if defined_S.any() else float("nan")
    out = make_cell(value, mean_R, int(defined_S.sum()), units=units)
    if not defined_S.any():
        out["why"] = "undefined in every dataset"
    return {**out, "undefined_datasets": int((~defined_S).sum())} if not defined_S.all() else out


def make_cell(value: float, drawn_R: np.ndarray, n: int, *, units: int) -> Cell:
    """A value with the percentile interval of its resamples; None where there is none."""
    if np.isnan(value):
        return {"value": None, "low": None, "high": None, "n": n}
    live_R = drawn_R[~np.isnan(drawn_R)]
    out: Cell = {"value": value, "low": None, "high": None, "n": n}
    if units > 1 and len(live_R):
        tail = 50 * (1 - LEVEL)
        out["low"], out["high"] = (float(end) for end in np.percentile(live_R, [tail, 100 - tail]))
        if len(live_R) < len(drawn_R):
            out["undefined_resamples"] = len(drawn_R) - len(live_R)
    return out
