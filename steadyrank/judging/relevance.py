"""The grades that the lists already have, behind the judge's interface; a negative grade means unjudged, so it is missing."""

from __future__ import annotations

from collections.abc import Sequence

from steadyrank.errors import InputError
from steadyrank.judging.base import JudgedList
from steadyrank.records import RankingExample


class RelevanceJudge:
    """Reads `example.relevance`."""

    name = "relevance"

    def judge(self, examples: Sequence[RankingExample]) -> list[JudgedList]:
        return [JudgedList(example.id, _grades(example)) for example in examples]


def _grades(example: RankingExample) -> tuple[float | None, ...]:
    if example.relevance is None:
        raise InputError(f"judge 'relevance' reads the grades of the lists, and example {example.id!r} has none", field="relevance")
    return tuple(grade if grade >= 0 else None for grade in example.relevance)
