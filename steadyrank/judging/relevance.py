"""The grades that the lists already have, behind the judge's interface; a negative grade means unjudged, so it is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steadyrank.errors import InputError
from steadyrank.judging.base import JudgedList, Watch
from steadyrank.judging.settings import JudgeSettings
from steadyrank.records import RankingExample


class RelevanceJudge:
    """Reads `example.relevance`. Unjudged candidates are as their makers left them, so none of them refuses training."""

    def __init__(self, settings: JudgeSettings | None = None):
        self.name = (settings and settings.name) or "relevance"
        self.max_missing = settings.max_missing if settings is not None and "max_missing" in settings.model_fields_set else 1.0

    def judge(self, examples: Sequence[RankingExample], *, watch: Watch | None = None) -> list[JudgedList]:
        return [JudgedList(example.id, _grades(example)) for example in examples]

    def about(self) -> dict[str, Any]:
        return {"kind": "relevance", "name": self.name}


def _grades(example: RankingExample) -> tuple[float | None, ...]:
    if example.relevance is None:
        raise InputError(f"judge 'relevance' reads the grades of the lists, and example {example.id!r} has none", field="relevance")
    return tuple(grade if grade >= 0 else None for grade in example.relevance)
