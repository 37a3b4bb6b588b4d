"""Any scorer as a judge: its scores become grades from 0 to 3 by a named rule.

    sigmoid     3 / (1 + exp(-s))           for logits
    linear      3 s                         for probabilities and expected grades, which lie between 0 and 1
    rank        3 (rank - 1) / (K - 1)      for scores without a zero point; ties share their mean rank, a list of one gets 1.5
    thresholds  how many thresholds s reaches: whole grades

`rank` gives every list its best and its worst document, also where all are useless: such grades order, and say nothing of how good.
A judge that is a scorer is not independent of a teacher made from the same scorer: rewards then pay it for agreeing with itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from steadyrank.errors import ConfigError
from steadyrank.judging.base import JudgedList, Watch
from steadyrank.judging.settings import CausalSettings, ScorerSettings
from steadyrank.records import RankingExample, Scale, ScoredList
from steadyrank.scoring import Scorer, load_scorer

TOP = 3.0
DEFAULT_RULES: dict[Scale, str] = {"logit": "sigmoid", "probability": "linear", "grade": "rank"}
_LISTS_AT_ONCE = 32


class ScorerJudge:
    """Scores every list, canonical order, one presentation."""

    def __init__(self, settings: ScorerSettings, *, scorer: Scorer | None = None):
        self.settings = settings
        self.scorer = scorer or load_scorer(settings.scorer)
        self.name = settings.name or self.scorer.name
        self.max_missing = settings.max_missing
        self.rule = settings.rule or ("thresholds" if settings.thresholds else DEFAULT_RULES[self.scorer.scale])
        if (self.rule == "thresholds") != bool(settings.thresholds):
            raise ConfigError("rule 'thresholds' and the field thresholds go together; give both, or neither")
        if list(settings.thresholds) != sorted(set(settings.thresholds)):
            raise ConfigError(f"thresholds {list(settings.thresholds)} must rise")
        self.truncated = self.empty = 0

    @property
    def fingerprint(self) -> str:
        """What grades depend on, besides the lists."""
        return f"{self.scorer.fingerprint}-{self.rule}-{list(self.settings.thresholds)}"

    def judge(self, examples: Sequence[RankingExample], *, watch: Watch | None = None) -> list[JudgedList]:
        out: list[JudgedList] = []
        if watch is not None:
            watch.begin(sum(len(example.candidates) for example in examples), "documents")
        for start in range(0, len(examples), _LISTS_AT_ONCE):
            part = examples[start : start + _LISTS_AT_ONCE]
            scored = {row.example_id: row for row in self.scorer.score_examples(part)}
            for example in part:  # a remote scorer may leave lists out
                grades = self._grades(scored.get(example.id), len(example.candidates))
                out.append(JudgedList(example.id, grades, judge=self.name))
                if watch is not None:
                    for grade in grades:
                        watch.step(grade is None)
        return out

    def about(self) -> dict[str, Any]:
        return {
            "kind": "scorer",
            "name": self.name,
            "scorer": self.scorer.name,
            "fingerprint": self.scorer.fingerprint,
            "scale": self.scorer.scale,
            "rule": self.rule,
            "thresholds": list(self.settings.thresholds),
            "truncated": self.truncated,
            "empty": self.empty,
        }

    def _grades(self, scored: ScoredList | None, size: int) -> tuple[float | None, ...]:
        if scored is None:
            return (None,) * size
        self.truncated += len(scored.truncated)
        self.empty += len(scored.empty)
        return tuple(to_grades(scored.scores, self.rule, thresholds=self.settings.thresholds))


class CausalJudge(ScorerJudge):
    """A causal language model through the expected-grade readout, one document a prompt, so that no document sees another."""

    def __init__(self, settings: CausalSettings):
        spec = {"model": settings.model, "kind": "expected_grade", "prompt": settings.prompt, "width": 1, **settings.options}
        if spec["width"] != 1:
            raise ConfigError("options.width of judge 'causal_lm' is 1: grades that depend on the documents beside them are no grades")
        name = settings.name or f"{settings.model} grades"
        super().__init__(ScorerSettings(scorer=spec, rule="linear", name=name, max_missing=settings.max_missing))


def to_grades(scores: Sequence[float], rule: str, *, thresholds: Sequence[float] = ()) -> list[float]:
    """Grades from 0 to 3 (thresholds: from 0 to their number) of the scores of one list."""
    return RULES[rule](scores) if rule != "thresholds" else [float(sum(score >= edge for edge in thresholds)) for score in scores]


def _sigmoid(scores: Sequence[float]) -> list[float]:
    return [TOP / (1 + math.exp(-score)) if score >= 0 else TOP * math.exp(score) / (1 + math.exp(score)) for score in scores]


def _linear(scores: Sequence[float]) -> list[float]:
    wrong = next((score for score in scores if not 0 <= score <= 1), None)
    if wrong is not None:
        raise ConfigError(f"rule 'linear' is for scores from 0 to 1, and one is {wrong:g}; take sigmoid, rank or thresholds")
    return [TOP * score for score in scores]


def _rank(scores: Sequence[float]) -> list[float]:
    if len(scores) < 2:
        return [TOP / 2] * len(scores)
    return [float(TOP * (rank - 1) / (len(scores) - 1)) for rank in rankdata(np.asarray(scores, dtype=float))]


RULES: dict[str, Callable[[Sequence[float]], list[float]]] = {"sigmoid": _sigmoid, "linear": _linear, "rank": _rank}
