"""How good the student is on the dev lists during a run: means over queries, against gold grades, by the evaluation room's own measures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadyrank import files, seeds
from steadyrank.data.presenting import presentations as presentations_of
from steadyrank.errors import ConfigError
from steadyrank.evaluation import DEFAULT_MEASURES, evaluate
from steadyrank.evaluation.measures import Measure, parse_all
from steadyrank.records import Presentation, RankingExample, ScoredList
from steadyrank.stability.psi import psi_many

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
        return self._kept(self._row(scorer.score_examples(self.examples), step))

    def _row(self, scored: Sequence[ScoredList], step: int) -> dict[str, Any]:
        values = [score for item in scored for score in item.scores]
        spreads = [max(item.scores) - min(item.scores) for item in scored]
        return {
            "step": step,
            "measures": self._means(scored),
            "queries": len(self.examples),
            "score_range": sum(spreads) / len(spreads),
            "constant_lists": sum(spread < 1e-6 for spread in spreads) / len(spreads),
            "score_mean": sum(values) / len(values),
        }

    def _means(self, scored: Sequence[ScoredList]) -> dict[str, float]:
        result = evaluate(scored, self.examples, self.measures, resamples=_RESAMPLES)
        return {name: value["micro"]["mean"] for name, value in result.to_json()["measures"].items()}

    def _kept(self, row: dict[str, Any]) -> dict[str, Any]:
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


class ViewDevSet(DevSet):
    """Measures a scorer of whole lists under several orders of every list, the same at every step.

    measures:     means over queries and drawn orders; the best checkpoint is chosen by them
    first_stage:  the same measures in the lists' own order: what a score learnt from slots would shine in
    tau_psi, score_variance: how much the orders disagree (rankings; scores of one candidate), means over queries; nothing to compare is
                  left out and counted in `undefined`
    score_sd:     SD of scores inside a list, mean over lists: near 0 the scores have collapsed
    per_query:    quality (the best measure), tau_psi and variance of each dev query, from which a lambda is chosen
    """

    def __init__(
        self,
        examples: Sequence[RankingExample],
        *,
        best_measure: str,
        path: Path,
        presentations: int,
        seed: int,
        windows: str | None = None,
    ):
        super().__init__(examples, best_measure=best_measure, path=path)
        drawn = seeds.digest(seed, "dev orders") >> 1
        own = Presentation(windows=windows)
        self.laid = [[own, *presentations_of(example, presentations, seed=drawn, windows=windows)] for example in self.examples]

    def measure(self, scorer: Any, step: int) -> dict[str, Any]:
        rows = scorer.score_presentations(self.examples, self.laid)
        own, drawn = [row[0] for row in rows], [row[1:] for row in rows]
        flat = [scored for row in drawn for scored in row]
        arrays = [np.array([scored.scores for scored in row]) for row in drawn]
        psi_N = psi_many(arrays)
        variance_N = np.array([scores_PK.var(0).mean() for scores_PK in arrays])
        psi = [float(value) if np.isfinite(value) else None for value in psi_N]
        quality = evaluate(flat, self.examples, [self.best_measure], resamples=_RESAMPLES).per_query
        return self._kept(
            {
                **self._row(flat, step),
                "first_stage": self._means(own),
                "presentations": len(drawn[0]),
                "tau_psi": float(np.nanmean(psi_N)) if np.isfinite(psi_N).any() else None,
                "undefined": sum(value is None for value in psi),
                "score_variance": float(variance_N.mean()),
                "score_sd": float(np.mean([scores_PK.std(1).mean() for scores_PK in arrays])),
                "per_query": {
                    "ids": [example.id for example in self.examples],
                    "groups": [example.group or example.id for example in self.examples],
                    "quality": [quality[example.id][self.best_measure] if example.id in quality else None for example in self.examples],
                    "tau_psi": psi,
                    "variance": [float(value) for value in variance_N],
                },
            }
        )
