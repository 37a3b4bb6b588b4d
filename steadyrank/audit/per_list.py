"""The values of every list that two audits are compared by, as columns of `audit.json`; means with intervals stand in its parts.

One column a value, one entry a reported list; None where a list has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steadyrank.audit.intervals import plain
from steadyrank.audit.lists import Shown
from steadyrank.audit.settings import AuditSettings
from steadyrank.consumers.preference import PreferenceConsumer
from steadyrank.consumers.sets import jaccard
from steadyrank.evaluation import closed_forms
from steadyrank.evaluation.measures import Measure
from steadyrank.evaluation.ties import blocks
from steadyrank.stability.psi import psi_many


def per_list(shown: Sequence[Shown], settings: AuditSettings, points: Mapping[str, float]) -> dict[str, Any]:
    """`{"ids", "sources", "groups", "columns": {name: values}}`; `points` are the thresholds by name."""
    columns: dict[str, list[float]] = {}
    for name in settings.measures:
        measure = Measure.parse(name)
        columns[name] = [_quality(measure, item, item.scores_PK) for item in shown]
        columns[f"{name} first stage"] = [np.nan if item.first_K is None else _quality(measure, item, item.first_K[None]) for item in shown]
    columns["tau_psi"] = psi_many([item.scores_PK for item in shown]).tolist()
    columns["score_variance"] = [float(item.scores_PK.var(0).mean()) for item in shown]
    for name, threshold in points.items():
        columns[f"jaccard {name}"] = [jaccard(item.scores_PK, threshold, empty="skip") for item in shown]
    orders = [item.orders_PK for item in shown]
    chosen = PreferenceConsumer().apply([item.scores_PK for item in shown], [item.example for item in shown], orders=orders)
    columns["top_flip"] = chosen.values["top_flip"].tolist()
    return {
        "ids": [item.example.id for item in shown],
        "sources": [item.example.source or "" for item in shown],
        "groups": [item.example.group or item.example.id for item in shown],
        "columns": {name: [plain(float(value)) for value in values] for name, values in columns.items()},
    }


def _quality(measure: Measure, item: Shown, scores_PK: np.ndarray) -> float:
    """The measure's mean over presentations; nan without grades."""
    if not item.has_grades:
        return float("nan")
    return float(np.mean([closed_forms.value(measure, blocks(row), item.grades) for row in scores_PK.tolist()]))
