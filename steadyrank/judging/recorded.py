"""Judgments made before, by any tool, as a judge: found by example id. What the file does not hold is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steadyrank.errors import InputError
from steadyrank.files import file_digest
from steadyrank.judging.base import JudgedList, Watch
from steadyrank.judging.files import load_judgments
from steadyrank.judging.settings import RecordedSettings
from steadyrank.records import RankingExample


class RecordedJudge:
    """Reads a file of `steadyrank.judgments/1`. Where it names candidates, grades are matched by their ids, so pools may differ."""

    def __init__(self, settings: RecordedSettings):
        self.settings = settings
        self.rows = {row.example_id: row for row in load_judgments(settings.path, judge=settings.judge)}
        self.name = settings.name or next(iter(self.rows.values())).judge
        self.max_missing = settings.max_missing
        self.unknown_lists = 0

    def judge(self, examples: Sequence[RankingExample], *, watch: Watch | None = None) -> list[JudgedList]:
        self.unknown_lists = sum(example.id not in self.rows for example in examples)
        if self.unknown_lists == len(examples):
            raise InputError(f"holds none of the {len(examples)} lists asked for; judge these lists first", path=self.settings.path)
        return [JudgedList(example.id, self._grades(example), judge=self.name) for example in examples]

    def about(self) -> dict[str, Any]:
        return {
            "kind": "recorded",
            "name": self.name,
            "path": self.settings.path,
            "sha256": file_digest(self.settings.path),
            "lists_not_in_the_file": self.unknown_lists,
        }

    def _grades(self, example: RankingExample) -> tuple[float | None, ...]:
        row = self.rows.get(example.id)
        if row is None:
            return (None,) * len(example.candidates)
        if row.extra.get("candidates") is not None:
            known = dict(zip(row.extra["candidates"], row.grades, strict=True))
            return tuple(known.get(name) for name in example.candidate_ids)
        if len(row.grades) != len(example.candidates):
            raise InputError(
                f"holds {len(row.grades)} grades of example {example.id!r}, which has {len(example.candidates)} candidates here; "
                "judgments that name their candidates can be matched",
                path=self.settings.path,
            )
        return row.grades
