"""What is taken over seeds and over queries: the evaluation of an arm from those of its seeds, the spread, correlations of profiles."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steadyrank.evaluation import Evaluation, intervals
from steadyrank.evaluation.bootstrap import unit_labels

FLAT = 1e-12  # a profile that varies less does not vary


def averaged(seeds: Sequence[Evaluation]) -> Evaluation:
    """One evaluation of several seeds: each query's value is its mean over them, and the intervals are those of these means."""
    first = seeds[0]
    if len(seeds) == 1:
        return first
    queries, measures = list(first.per_query), list(first.measures)
    values_QM = np.mean([[[one.per_query[query][name] for name in measures] for query in queries] for one in seeds], axis=0)
    units = unit_labels(queries, first.groups, first.sources, first.settings["units"])
    sources = [first.sources.get(query, "") for query in queries]
    micro, macro = intervals(values_QM, units, sources, resamples=first.settings["resamples"], seed=first.settings["seed"])
    rows: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(measures):
        rows[name] = {**first.measures[name], "micro": micro[place], "macro": macro[place]}
        rows[name]["by_source"] = {
            source: {**part, "mean": statistics.fmean(one.measures[name]["by_source"][source]["mean"] for one in seeds)}
            for source, part in first.measures[name]["by_source"].items()
        }
    counts = {
        **first.counts,
        "missing": max(one.counts["missing"] for one in seeds),
        "tie_rate": statistics.fmean(one.counts["tie_rate"] for one in seeds),
    }
    return replace(
        first,
        measures=rows,
        per_query={query: dict(zip(measures, map(float, row), strict=True)) for query, row in zip(queries, values_QM, strict=True)},
        counts=counts,
        missing=sorted({query for one in seeds for query in one.missing}),
    )


def spread(seeds: Mapping[int, Evaluation], measure: str) -> dict[str, dict[str, Any]]:
    """`micro` and `macro`: mean and spread of the seeds' means; `sd` divides by n - 1 and is None for one seed."""
    out = {}
    for average in ("micro", "macro"):
        values = {str(seed): one.measures[measure][average]["mean"] for seed, one in seeds.items()}
        numbers = list(values.values())
        out[average] = {
            "n": len(numbers),
            "mean": statistics.fmean(numbers),
            "sd": statistics.stdev(numbers) if len(numbers) > 1 else None,
            "low": min(numbers),
            "high": max(numbers),
            "values": values,
        }
    return out


def profiles(systems: Mapping[str, Evaluation], starts: Mapping[str, str], measure: str) -> dict[str, Any]:
    """Pearson correlations between systems, as `systems` and a matrix:

    sources:  of the means of the sources, as published. Few sources that differ in how hard they are make any two systems look alike.
    gains:    of what each system gained over its start on every query: do two methods help the same lists?
    """
    by_source = {
        name: np.array([part["mean"] for _, part in sorted(one.measures[measure]["by_source"].items())]) for name, one in systems.items()
    }
    queries = list(next(iter(systems.values())).per_query) if systems else []
    values = {name: np.array([one.per_query[query][measure] for query in queries]) for name, one in systems.items()}
    gains = {name: values[name] - values[start] for name, start in starts.items()}
    return {"sources": _correlations(by_source), "gains": _correlations(gains)}


def _correlations(rows: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """None where a profile does not vary, or has fewer than three values."""
    names = list(rows)
    flat = {name for name, values in rows.items() if len(values) < 3 or np.ptp(values) < FLAT}

    def one(a: str, b: str) -> float | None:
        return None if a in flat or b in flat else 1.0 if a == b else float(np.corrcoef(rows[a], rows[b])[0, 1])

    return {"systems": names, "correlation": [[one(a, b) for b in names] for a in names]}
