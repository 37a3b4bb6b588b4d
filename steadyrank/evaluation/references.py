"""Rows that cannot flatter, computed without a scorer: what no information, the file's order, and the grades themselves would get.

- `random`: the exact expectation over all orders. One relevant candidate of three gives nDCG .7103 and RR .6111, never 1.0.
- `constant`: one score for everything, under the caller's tie rule. Equal to `random` under `average`; under another rule the difference
  is what that rule gives away.
- `first_stage`: the order of the candidates in the file. - `oracle`: the grades as scores, the most that the pool allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steadyrank.evaluation import DEFAULT_MEASURES
from steadyrank.evaluation.measures import Measure
from steadyrank.evaluation.results import Evaluation
from steadyrank.evaluation.running import evaluate
from steadyrank.records import RankingExample, ScoredList


def reference_rows(
    examples: Iterable[RankingExample], measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES, **options: Any
) -> dict[str, Evaluation]:
    """Evaluations `random`, `constant`, `first_stage` and `oracle`; options as of `evaluate`."""
    lists = [example for example in examples if example.relevance is not None]
    scores: dict[str, list[list[float]]] = {
        "random": [[0.0] * len(example.candidates) for example in lists],
        "constant": [[0.0] * len(example.candidates) for example in lists],
        "first_stage": [[-float(place) for place in range(len(example.candidates))] for example in lists],
        "oracle": [[max(grade, 0.0) for grade in example.relevance or ()] for example in lists],
    }
    rows = {}
    for name, of in scores.items():
        scored = [ScoredList(example.id, name, tuple(row), scale="grade") for example, row in zip(lists, of, strict=True)]
        rule = {"ties": "average"} if name == "random" else {}
        rows[name] = evaluate(scored, lists, measures, **{**options, **rule, "system": name})
    return rows
