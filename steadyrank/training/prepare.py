"""What a run learns from, made ready once: examples without empty documents, capped pools, targets and anchors, and a count of
everything changed.

    targets   what `objective.target` asks for: teacher utilities, gold grades (an unjudged candidate counts as grade 0), or labels
    anchors   what `objective.anchor` asks for: teacher utilities, or the scores of the model before training; none where the targets serve
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from steadyrank.errors import ConfigError, InputError
from steadyrank.records import RankingExample, ScoredList

_EDGE = 1e-6  # probabilities are clipped this far from 0 and 1 before they become logits

Scores = Sequence[Sequence[float] | ScoredList]


@dataclass(frozen=True)
class TrainingLists:
    """Aligned rows; `counts` says what was left out or filled in."""

    examples: tuple[RankingExample, ...]
    targets: tuple[tuple[float, ...], ...]
    anchors: tuple[tuple[float, ...], ...] | None
    counts: dict[str, int]

    def __len__(self) -> int:
        return len(self.examples)


def prepare(
    train: Sequence[RankingExample],
    objective: Any,
    *,
    teacher_scores: Scores | None = None,
    reference_scores: Scores | None = None,
    labels: Any = None,
) -> TrainingLists:
    """The lists of a run; an objective whose targets or anchors are missing raises `ConfigError`."""
    teacher = _rows(teacher_scores, train, "teacher_scores")
    reference = _rows(reference_scores, train, "reference_scores")
    counts = dict.fromkeys(("unjudged_candidates", "empty_documents", "skipped_lists_below_two_candidates"), 0)
    counts = {"lists": len(train), **counts}
    if objective.target == "labels":
        goal: list[list[float]] | None = _labels(train, objective, labels)
    else:
        goal = teacher if objective.target == "teacher" else _gold(train, objective, counts)
    if goal is None:
        raise ConfigError(f"objective {objective.name!r} learns from a teacher; give teacher_scores")
    anchor = _anchor(objective, teacher, reference)
    examples, targets, anchors = [], [], []
    for place, example in enumerate(train):
        keep = _places(example, counts)
        if len(keep) < 2:
            counts["skipped_lists_below_two_candidates"] += 1
            continue
        examples.append(replace(example.with_candidates(keep), id=example.id))
        targets.append(tuple(goal[place][column] for column in keep))
        anchors.append(tuple(anchor[place][column] for column in keep) if anchor is not None else ())
    if not examples:
        raise InputError(f"none of the {len(train)} training lists has two candidates with text; there is nothing to rank")
    counts |= {"lists_used": len(examples), "candidates": sum(len(row) for row in targets)}
    return TrainingLists(tuple(examples), tuple(targets), tuple(anchors) if anchor is not None else None, counts)


def utilities(scored: Sequence[float] | ScoredList) -> list[float]:
    """Scores as unbounded utilities: probabilities become logits, so that one teacher trains alike from either scale."""
    if not isinstance(scored, ScoredList):
        return [float(score) for score in scored]
    if scored.scale != "probability":
        return list(scored.scores)
    clipped = [min(max(score, _EDGE), 1.0 - _EDGE) for score in scored.scores]
    return [math.log(score / (1.0 - score)) for score in clipped]


def _rows(scores: Scores | None, train: Sequence[RankingExample], name: str) -> list[list[float]] | None:
    if scores is None:
        return None
    if len(scores) != len(train):
        raise InputError(f"has {len(scores)} rows for {len(train)} training lists", field=name)
    rows = [utilities(row) for row in scores]
    for place, (row, example) in enumerate(zip(rows, train, strict=True)):
        if len(row) != len(example.candidates):
            size = len(example.candidates)
            raise InputError(f"has {len(row)} scores for the {size} candidates of {example.id!r}", field=f"{name}[{place}]")
        if not all(math.isfinite(score) for score in row):
            raise InputError(f"holds a score that is not finite (example {example.id!r})", field=f"{name}[{place}]")
    return rows


def _gold(train: Sequence[RankingExample], objective: Any, counts: dict[str, int]) -> list[list[float]]:
    rows = []
    for example in train:
        if example.relevance is None:
            raise InputError(f"objective {objective.name!r} learns from grades, and example {example.id!r} has none", field="relevance")
        counts["unjudged_candidates"] += sum(grade < 0 for grade in example.relevance)
        rows.append([max(grade, 0.0) for grade in example.relevance])
    return rows


def _labels(train: Sequence[RankingExample], objective: Any, labels: Any) -> list[list[float]]:
    """The label of a list that the objective reads: of the first pass, or the mean over at least two."""
    if labels is None:
        raise ConfigError(f"objective {objective.name!r} learns from labels in [0, 1]; give labels (a recipe's `labels:` block)")
    which = objective.settings.labels
    if which == "mean" and labels.num_passes < 2:
        raise ConfigError(
            f"objective {objective.name!r} reads labels averaged over passes, and these have {labels.num_passes}; "
            "set labels.passes to 2 or more, or labels: first in the objective's settings"
        )
    return list(labels.rows(train, which=which))


def _anchor(objective: Any, teacher: list[list[float]] | None, reference: list[list[float]] | None) -> list[list[float]] | None:
    if objective.anchor == "reference":
        if reference is None:
            raise ConfigError(f"objective {objective.name!r} is held near the model's start; give reference_scores")
        return reference
    if objective.anchor == "teacher" and objective.target != "teacher":
        if teacher is None:
            raise ConfigError(f"objective {objective.name!r} is held near a teacher; give teacher_scores")
        return teacher
    return None


def _places(example: RankingExample, counts: dict[str, int]) -> list[int]:
    """The candidates a run sees, canonical order: none without text."""
    kept = [place for place, text in enumerate(example.documents) if text.strip()]
    counts["empty_documents"] += len(example.candidates) - len(kept)
    return kept
