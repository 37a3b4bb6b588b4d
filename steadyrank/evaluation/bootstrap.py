"""Percentile bootstrap intervals of query means (micro) and of means over sources (macro), vectorised over resamples and measures.

Units are drawn with replacement: `queries`, `groups` (examples of one base query move together; a query without a group is its own) or
`sources` (tasks). A resampled micro mean is the sum of the drawn units' values over the number of their queries; a resampled macro mean
averages the source means of the drawn queries over the sources that were drawn at all. Unstratified; 95% is the 2.5 and 97.5 percentile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from steadyrank.errors import ConfigError, unknown_name
from steadyrank.seeds import stream

UNITS = ("queries", "groups", "sources")
RESAMPLES = 10_000
_CELLS = 2_000_000  # cells of one chunk of the resample-by-unit table


def unit_labels(queries: Sequence[str], groups: Mapping[str, str], sources: Mapping[str, str], units: str) -> list[str]:
    """The unit of every query."""
    if units not in UNITS:
        raise unknown_name("bootstrap unit", units, UNITS)
    if units == "queries":
        return list(queries)
    if units == "groups":
        return [f"group {groups[query]}" if query in groups else f"query {query}" for query in queries]
    if not sources:
        raise ConfigError("units is 'sources', and no query has a source; choose queries or groups")
    return [sources.get(query, "") for query in queries]


def intervals(
    values_QM: np.ndarray,
    units: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """(micro, macro) intervals `{mean, low, high}`, one a column. Without units every row is one; without sources macro is micro."""
    values_QM = np.asarray(values_QM, dtype=np.float64)
    values_QM = values_QM[:, None] if values_QM.ndim == 1 else values_QM
    if not len(values_QM) or resamples < 1 or not 0 < level < 1:
        raise ConfigError("intervals need at least one value, one resample and a level between 0 and 1")
    unit_Q = np.unique(list(units), return_inverse=True)[1] if units is not None else np.arange(len(values_QM))
    source_Q = np.unique(list(sources), return_inverse=True)[1] if sources is not None else np.zeros(len(values_QM), dtype=int)
    amount, tasks, width = int(unit_Q.max()) + 1, int(source_Q.max()) + 1, values_QM.shape[1] + 1
    table = np.zeros((amount, tasks, width))  # sums of every measure and the count, by unit and source
    np.add.at(table, (unit_Q, source_Q), np.column_stack([values_QM, np.ones(len(values_QM))]))
    flat = table.reshape(amount, tasks * width)
    micro, macro = _means(flat.sum(0)[None], tasks, width)
    drawn = [_means(counts_RU @ flat, tasks, width) for counts_RU in _draws(amount, resamples, seed)]
    tail = 100 * (1 - level) / 2
    out = []
    for point, parts in ((micro[0], [part[0] for part in drawn]), (macro[0], [part[1] for part in drawn])):
        low, high = np.percentile(np.concatenate(parts), [tail, 100 - tail], axis=0)
        out.append([{"mean": float(m), "low": float(a), "high": float(b)} for m, a, b in zip(point, low, high, strict=True)])
    return out[0], out[1]


def _draws(amount: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each unit is drawn, a chunk of resamples at a time."""
    draw = stream(seed, "bootstrap", amount)
    for start in range(0, resamples, step := max(1, _CELLS // amount)):
        rows = min(step, resamples - start)
        cells = draw.integers(0, amount, size=(rows, amount), dtype=np.int32) + (np.arange(rows, dtype=np.int64) * amount)[:, None]
        yield np.bincount(cells.ravel(), minlength=rows * amount).reshape(rows, amount).astype(np.float64)


def _means(sums: np.ndarray, tasks: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    sums = sums.reshape(len(sums), tasks, width)
    total = sums.sum(1)
    micro = total[:, :-1] / total[:, -1:]
    counts = sums[:, :, -1:]
    by_task = np.divide(sums[:, :, :-1], counts, out=np.zeros_like(sums[:, :, :-1]), where=counts > 0)
    return micro, by_task.sum(1) / (counts > 0).sum(1)
