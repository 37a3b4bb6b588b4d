"""What a judge is, and how its grades become the grades of training lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from steadyrank.errors import InputError
from steadyrank.records import RankingExample


@dataclass(frozen=True, slots=True)
class JudgedList:
    """The grades of one example, canonical order; None where the judge gave none (an unreadable reply, an unjudged document).

    judge: who gave them, where that is written down. extra: what else a file holds of them (`candidates`, `replies`).
    """

    example_id: str
    grades: tuple[float | None, ...]
    judge: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


class Judge(Protocol):
    """Grades every candidate of every example, one list each, in the order given."""

    name: str

    def judge(self, examples: Sequence[RankingExample]) -> list[JudgedList]:
        """Grades from 0 (not relevant) upwards."""
        ...


def with_grades(examples: Sequence[RankingExample], judge: Judge) -> tuple[list[RankingExample], dict[str, int]]:
    """The examples with the judge's grades as their relevance, and counts of what was left out.

    A candidate without a grade leaves its list; a list with fewer than two graded candidates leaves the set.
    """
    judged = judge.judge(examples)
    if [row.example_id for row in judged] != [example.id for example in examples]:
        raise InputError(f"judge {judge.name!r} did not answer for the examples it was asked about, one each and in their order")
    out = []
    counts = {"judged_candidates": 0, "missing_grades": 0, "lists_without_two_grades": 0}
    for example, row in zip(examples, judged, strict=True):
        if len(row.grades) != len(example.candidates):
            raise InputError(
                f"judge {judge.name!r} gave {len(row.grades)} grades for {len(example.candidates)} candidates of {example.id!r}"
            )
        kept = [place for place, grade in enumerate(row.grades) if grade is not None]
        counts["judged_candidates"] += len(kept)
        counts["missing_grades"] += len(row.grades) - len(kept)
        if len(kept) < 2:
            counts["lists_without_two_grades"] += 1
            continue
        grades = tuple(grade for grade in row.grades if grade is not None)
        out.append(replace(example.with_candidates(kept), relevance=grades, id=example.id))
    return out, counts
