"""The forms in which Frohmann et al. 2026 report stability over collections, so that their released evidence can be recomputed.

`reduce(operation, payload)` takes their payloads as they are. Nothing else of steadyrank uses these forms: its own reports use
`bootstrap`, with intervals. Retained-set and flip forms stand in `steadyrank.consumers` (`jaccard_of_sets`, `flip_rate(..., "modal")`,
`protocol="published"`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steadyrank.errors import InputError
from steadyrank.names import find
from steadyrank.stability.bootstrap import hierarchical_bootstrap

OPERATIONS = {
    "mean": "steadyrank.stability.published:mean",
    "hierarchical-bootstrap": "steadyrank.stability.published:bootstrap",
    "gain-histogram": "steadyrank.stability.published:gain_histogram",
    "clustered-calibration": "steadyrank.stability.published:clustered_calibration",
    "metric-discordance": "steadyrank.stability.published:metric_discordance",
}


def reduce(operation: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The result of one of OPERATIONS on a payload of its form."""
    return find("published operation", operation, OPERATIONS)(payload)


def mean(payload: Mapping[str, Any]) -> dict[str, Any]:
    """{mean, sd, n} of `values`; sd with n - 1, as over training seeds, nan for one value."""
    values = np.asarray(payload["values"], dtype=np.float64)
    return {"mean": float(values.mean()), "sd": float(values.std(ddof=1)) if len(values) > 1 else float("nan"), "n": len(values)}


def bootstrap(payload: Mapping[str, Any]) -> dict[str, Any]:
    """{mean, ci95, ...} of `per_dataset` {name: values}, with `samples` draws; the draws are ours, so ends agree only in law."""
    per_dataset: Mapping[str, Sequence[float]] = payload["per_dataset"]
    names = [name for name, values in per_dataset.items() for _ in values]
    values = [value for one in per_dataset.values() for value in one]
    row = hierarchical_bootstrap(values, names, resamples=payload["samples"], seed=payload["seed"])
    return {**row, "ci95": [row["low"], row["high"]]}


def gain_histogram(payload: Mapping[str, Any]) -> dict[str, Any]:
    """{nonnegative_fraction, counts} of per-query `gains` over `bins` edges."""
    gains = np.asarray(payload["gains"], dtype=np.float64)
    return {"nonnegative_fraction": float((gains >= 0).mean()), "counts": np.histogram(gains, payload["bins"])[0].tolist()}


def clustered_calibration(payload: Mapping[str, Any]) -> dict[str, Any]:
    """{slope, intercept, standard_error, degrees} of ordinary least squares of y on x, with CR1 errors clustered by `groups`.

    CR1 scales the sandwich by G/(G-1) * (n-1)/(n-2); degrees is G - 1. nan errors for a single group.
    """
    x, y, groups = np.asarray(payload["x"], float), np.asarray(payload["y"], float), list(payload["groups"])
    if len(x) < 3 or len(x) != len(y) or len(x) != len(groups) or np.ptp(x) == 0:
        raise InputError("needs at least three points of differing x, each with y and group", field="payload")
    design = np.column_stack([np.ones(len(x)), x])
    intercept, slope = np.linalg.lstsq(design, y, rcond=None)[0]
    residual = y - design @ [intercept, slope]
    bread = np.linalg.inv(design.T @ design)
    clusters = sorted(set(groups))
    moments = [design[rows].T @ residual[rows] for name in clusters if (rows := [i for i, group in enumerate(groups) if group == name])]
    meat = np.sum([np.outer(moment, moment) for moment in moments], axis=0)
    amount, size = len(clusters), len(x)
    scale = amount / (amount - 1) * (size - 1) / (size - 2) if amount > 1 else float("nan")
    error = float(np.sqrt(max(0.0, (bread @ meat @ bread)[1, 1]) * scale))
    return {"slope": float(slope), "intercept": float(intercept), "standard_error": error, "degrees": amount - 1}


def metric_discordance(payload: Mapping[str, Any]) -> dict[str, Any]:
    """{collections, different, ndcg_span_at_3dp}: on how many collections the best system by quality is not the best by agreement.

    rows: per collection its best system by nDCG and by Jaccard; ndcg_means: of every system, whose span is max - min of the means as
    printed, three places each.
    """
    rows = payload["rows"]
    means = list(payload["ndcg_means"].values())
    different = sum(row["best_ndcg_system"] != row["best_jaccard_system"] for row in rows)
    return {"collections": len(rows), "different": different, "ndcg_span_at_3dp": round(max(means), 3) - round(min(means), 3)}
