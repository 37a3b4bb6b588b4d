"""How good the student is on the dev lists during a run: means over queries, against gold grades, by the evaluation room's own measures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyrank import files
from steadyrank.errors import ConfigError
from steadyrank.evaluation import DEFAULT_MEASURES, evaluate
from steadyrank.evaluation.measures import Measure, parse_all
from steadyrank.records import RankingExample

_RESAMPLES = 1  # intervals belong to the final evaluation; here only the means are read


class DevSet:
    """Measures a scorer; keeps `dev.jsonl`, one row an evaluation."""

    def __init__(self, examples: Sequence[RankingExample], *, best_measure: str, path: Path):
        self.examples, self.path = list(examples), path
        self.best_measure = str(Measure.parse(best_measure))
        self.measures = tuple(parse_all([*DEFAULT_MEASURES, best_measure]))
        self.rows: list[dict[str, Any]] = []

    def load(self, *, up_to: int) -> None:
        """Go on from an earlier start of the run: rows after the checkpoint's step are forgotten, they will be measured again."""
        if self.path.exists():
            self.rows = [row for _, row in files.read_jsonl(self.path) if row["step"] <= up_to]
            files.write_jsonl(self.path, self.rows)

    def has(self, step: int) -> bool:
        return any(row["step"] == step for row in self.rows)

    def measure(self, scorer: Any, step: int) -> dict[str, Any]:
        """Scores every dev list and keeps the row."""
        scored = scorer.score_examples(self.examples)
        result = evaluate(scored, self.examples, self.measures, resamples=_RESAMPLES)
        means = {name: value["micro"]["mean"] for name, value in result.to_json()["measures"].items()}
        values = [score for item in scored for score in item.scores]
        spreads = [max(item.scores) - min(item.scores) for item in scored]
        row = {
            "step": step,
            "measures": means,
            "queries": len(scored),
            "score_range": sum(spreads) / len(spreads),
            "constant_lists": sum(spread < 1e-6 for spread in spreads) / len(spreads),
            "score_mean": sum(values) / len(values),
        }
        self.rows.append(row)
        files.write_jsonl(self.path, self.rows)
        return row

    def best(self) -> dict[str, Any] | None:
        """The row of the highest `best_measure`; the earliest among equals, so that training must improve to replace the base."""
        return max(self.rows, key=lambda row: (row["measures"][self.best_measure], -row["step"]), default=None)

    def check(self) -> None:
        """Dev lists must carry grades."""
        without = [example.id for example in self.examples if example.relevance is None]
        if without:
            raise ConfigError(f"dev example {without[0]!r} has no grades, so no best checkpoint can be chosen; give grades or no dev set")
