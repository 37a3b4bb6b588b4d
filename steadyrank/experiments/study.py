"""A study: several systems on the same lists, scored once, evaluated, compared, and written as the folder a report is made of.

Everything is a file: `scores/<split>/<system>.jsonl`, `evaluations/<split>/<system>.json`, `comparisons/<split>.json`,
`instructions/<split>.json`, `flips/<split>.json`, `study.json`.
A killed study goes on from the score files that are there. The layout is in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import load_scores
from steadyrank.evaluation import DEFAULT_MEASURES, Evaluation, compare_family, evaluate, find_flips, instruction_pairs, reference_rows
from steadyrank.experiments.score_files import score_splits
from steadyrank.files import fingerprint, write_json
from steadyrank.records import RankingExample, ScoredList
from steadyrank.training import environment

HEADLINE = "nDCG(gain=exp)@6"
REFERENCES = {"random": "Random order", "constant": "Constant score", "first_stage": "Order of the file", "oracle": "Oracle"}


@dataclass(frozen=True, slots=True)
class System:
    """One row of the study. `open` gives the scorer; it is called only when scores are missing."""

    name: str
    label: str
    role: str  # student, teacher, start, baseline or reference
    open: Callable[[], Any]
    identity: str = ""  # what the scores depend on, where the name alone does not say it (a fingerprint of a trained model)


@dataclass
class Study:
    """The systems, the splits and the pairs to compare; `run` does the work. The reference rows stand in every study."""

    folder: Path
    title: str
    subtitle: str
    splits: Mapping[str, tuple[str, Sequence[RankingExample]]]  # name -> (label, lists)
    systems: Sequence[System]
    pairs: Sequence[tuple[str, str]]  # (a, b): is a better than b?
    flips: tuple[str, str] | None = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    runs: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = ()
    say: Callable[[str], None] = print

    def run(self) -> dict[str, dict[str, Evaluation]]:
        """Evaluations by split and system; all result files written."""
        evaluations = {split: self._references(split) for split in self.splits}
        scores: dict[tuple[str, str], list[ScoredList]] = {}
        for system in self.systems:
            for split, scored in self._scores(system).items():
                scores[split, system.name] = scored
                evaluations[split][system.name] = self._evaluate(split, system, scored)
        for split in self.splits:
            self._compare(split, evaluations[split], scores)
        self._write_index()
        return evaluations

    def _scores(self, system: System) -> dict[str, list[ScoredList]]:
        lists = {split: chosen for split, (_, chosen) in self.splits.items()}
        paths = score_splits(self.folder, system.name, lists, system.open, identity=system.identity, seed=self.seed)
        self.say(f"scored {system.label}")
        return {split: load_scores(path) for split, path in paths.items()}

    def _references(self, split: str) -> dict[str, Evaluation]:
        rows = reference_rows(self.splits[split][1], DEFAULT_MEASURES, split=split, seed=self.seed)
        return {name: self._kept(split, rows[name]) for name in REFERENCES}

    def _evaluate(self, split: str, system: System, scored: list[ScoredList]) -> Evaluation:
        return self._kept(split, evaluate(scored, self.splits[split][1], system=system.name, split=split, seed=self.seed))

    def _kept(self, split: str, result: Evaluation) -> Evaluation:
        write_json(self.folder / "evaluations" / split / f"{result.system}.json", result.to_json())
        return result

    def _compare(self, split: str, evaluations: Mapping[str, Evaluation], scores: Mapping[tuple[str, str], list[ScoredList]]) -> None:
        pairs = [(evaluations[a], evaluations[b]) for a, b in self.pairs]
        family = compare_family(pairs, HEADLINE, seed=self.seed)
        write_json(
            self.folder / "comparisons" / f"{split}.json",
            {"schema": "steadyrank.comparisons/1", "family": [comparison.to_json() for comparison in family]},
        )
        lists = self.splits[split][1]
        pairs_by_system = {system.name: instruction_pairs(scores[split, system.name], lists) for system in self.systems}
        write_json(
            self.folder / "instructions" / f"{split}.json",
            {"schema": "steadyrank.instructions/1", "systems": {name: pairs.to_json() for name, pairs in pairs_by_system.items()}},
        )
        if self.flips is not None:
            a, b = self.flips
            write_json(self.folder / "flips" / f"{split}.json", find_flips(scores[split, a], scores[split, b], lists, a=a, b=b))

    def _write_index(self) -> None:
        write_json(
            self.folder / "study.json",
            {
                "schema": "steadyrank.study/1",
                "title": self.title,
                "subtitle": self.subtitle,
                "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "headline_measure": HEADLINE,
                "systems": [
                    *({"name": name, "label": label, "role": "reference"} for name, label in REFERENCES.items()),
                    *({"name": system.name, "label": system.label, "role": system.role} for system in self.systems),
                ],
                "splits": [{"name": name, "label": label} for name, (label, _) in self.splits.items()],
                "runs": list(self.runs),
                "settings": dict(self.settings),
                "fingerprints": {name: fingerprint([example.id for example in lists]) for name, (_, lists) in self.splits.items()},
                "environment": environment.describe(),
                "notes": list(self.notes),
                "data": {name: _counts(lists) for name, (_, lists) in self.splits.items()},
            },
        )


def _counts(lists: Sequence[RankingExample]) -> dict[str, Any]:
    by_source: dict[str, int] = {}
    for example in lists:
        by_source[example.source or "unnamed"] = by_source.get(example.source or "unnamed", 0) + 1
    return {
        "lists": len(lists),
        "candidates": sum(len(example.candidates) for example in lists),
        "by_source": dict(sorted(by_source.items())),
    }
