"""What unsteady scores do to those who act on them: a threshold, a preference pair, a reader. Each gives (its part, why it is absent).

The consumers are those of `steadyrank.consumers`, and every value keeps its name there; added here are intervals and the operating points.
The threshold stands at two points that dev lists fix: where F1 on dev is highest, and where the share kept on dev comes closest to a target
that is the same for every scorer on the same lists (so that two audits compare): `retention`, else the share of relevant candidates on dev,
else RETENTION. A threshold that is given stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrank.audit.intervals import summaries
from steadyrank.audit.lists import Shown
from steadyrank.audit.settings import AuditSettings
from steadyrank.consumers.extractive import ExtractiveReader
from steadyrank.consumers.preference import PreferenceConsumer
from steadyrank.consumers.reader import ReaderConsumer
from steadyrank.consumers.results import ConsumerResult
from steadyrank.consumers.threshold import ThresholdChoice, ThresholdConsumer, choose_threshold
from steadyrank.records import RankingExample

RETENTION = 0.3  # share kept at the matched-retention point where no dev list has grades
Part = tuple[dict[str, Any] | None, str]


def threshold(shown: Sequence[Shown], dev: Sequence[Shown], settings: AuditSettings, chosen_on: str) -> Part:
    """The kept sets at each operating point."""
    if settings.threshold is not None:
        points: list[tuple[str, ThresholdChoice | None, float]] = [("given", None, settings.threshold)]
    elif not dev and chosen_on:
        return None, "no dev list has scores; score them too, or give a threshold"
    elif not dev:
        return None, "there are too few lists to choose a threshold on some and report it on others; give dev lists, or a threshold"
    else:
        points = [(choice.objective, choice, choice.threshold) for choice in _choices(dev, settings)]
    rows = [_point(name, choice, value, shown, settings) for name, choice, value in points]
    return {"chosen_on": chosen_on, "dev_lists": len(dev), "points": rows}, ""


def _choices(dev: Sequence[Shown], settings: AuditSettings) -> list[ThresholdChoice]:
    scores = [item.scores_PK for item in dev]
    grades = [item.example.relevance for item in dev]
    judged = [row for row in grades if row is not None]
    has_relevant = any(max(row) >= settings.relevant for row in judged)
    target = settings.retention
    if target is None:
        target = float(np.mean([np.mean(np.array(row) >= settings.relevant) for row in judged])) if has_relevant else RETENTION
    options: dict[str, Any] = {"relevance": grades if judged else None, "relevant": settings.relevant}
    tuned = [choose_threshold(scores, objective="f1", **options)] if has_relevant else []
    return [*tuned, choose_threshold(scores, objective="retention", target=target, **options)]


def _point(name: str, choice: ThresholdChoice | None, value: float, shown: Sequence[Shown], settings: AuditSettings) -> dict[str, Any]:
    examples = [item.example for item in shown]
    found = ThresholdConsumer(value, relevant=settings.relevant).apply([item.scores_PK for item in shown], examples)
    chosen: dict[str, Any] = (
        {} if choice is None else {"dev_f1": choice.f1, "dev_retention": choice.retention, "dev_lists": choice.examples}
    )
    chosen = {key: None if item != item else item for key, item in chosen.items()}
    return {"name": name, "threshold": value, **chosen, **_with_intervals(found, examples, settings), "counts": dict(found.counts)}


def preference(shown: Sequence[Shown], settings: AuditSettings) -> Part:
    """How often the top choice and the chosen pair change, and what the choice is worth."""
    items = [item for item in shown if len(item.example.candidates) > 1]
    if not items:
        return None, "no list has two candidates"
    examples = [item.example for item in items]
    found = PreferenceConsumer().apply([item.scores_PK for item in items], examples, orders=[item.orders_PK for item in items])
    flipping = sum(len({top for top, _ in row}) > 1 for row in found.decisions)
    return {**_with_intervals(found, examples, settings), "flipping_lists": flipping, "counts": dict(found.counts)}, ""


def reader(shown: Sequence[Shown], settings: AuditSettings, answerer: Any) -> Part:
    """What a reader of the top k answers, on the lists that hold answers."""
    items = [item for item in shown if item.example.answers]
    if not items:
        return None, "no list holds answers"
    examples = [item.example for item in items]
    consumer = ReaderConsumer(answerer or ExtractiveReader(), k=settings.top_k, relevant=settings.relevant)
    found = consumer.apply([item.scores_PK for item in items], examples, orders=[item.orders_PK for item in items])
    told = {"answerer": found.consumer["answerer"], "k": settings.top_k, "lists": len(items)}
    return {**told, **_with_intervals(found, examples, settings), "counts": dict(found.counts)}, ""


def _with_intervals(found: ConsumerResult, examples: Sequence[RankingExample], settings: AuditSettings) -> dict[str, Any]:
    return summaries(found.values, examples, resamples=settings.resamples, seed=settings.seed)
