"""What a judge is, and how its grades become the grades of training lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from steadyrank.errors import InputError, UserError
from steadyrank.records import RankingExample


class TooManyMissingError(UserError):
    """More candidates are without a grade than the judge's settings allow for training."""


@dataclass(frozen=True, slots=True)
class JudgedList:
    """The grades of one example, canonical order; None where the judge gave none (an unreadable reply, an unjudged document).

    judge: who gave them, where that is written down. extra: what else a file holds of them (`candidates`, `replies`).
    """

    example_id: str
    grades: tuple[float | None, ...]
    judge: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


class Watch(Protocol):
    """Is told how far a judge has come."""

    def begin(self, total: int, what: str) -> None:
        """So many of these are to do."""
        ...

    def step(self, is_missing: bool) -> None:
        """One more is done, with a grade or without."""
        ...


class Judge(Protocol):
    """Grades every candidate of every example, one list each, in the order given.

    max_missing: the share of candidates without a grade above which the grades are not trained on.
    """

    name: str
    max_missing: float

    def judge(self, examples: Sequence[RankingExample], *, watch: Watch | None = None) -> list[JudgedList]:
        """Grades from 0 (not relevant) upwards."""
        ...

    def about(self) -> dict[str, Any]:
        """What a result should say of this judge and of what it did: settings, counts, what was missing and why."""
        ...


def missing_share(judged: Sequence[JudgedList]) -> float:
    """The share of candidates without a grade."""
    grades = [grade for row in judged for grade in row.grades]
    return sum(grade is None for grade in grades) / len(grades) if grades else 0.0


def with_grades(examples: Sequence[RankingExample], judge: Judge) -> tuple[list[RankingExample], dict[str, Any]]:
    """The examples with the judge's grades as their relevance, and counts of what was left out.

    A candidate without a grade leaves its list; a list with fewer than two graded candidates leaves the set. Above the judge's share of
    missing grades nothing is handed back: lists thinned out by failures are another training set.
    """
    judged = judge.judge(examples)
    if [row.example_id for row in judged] != [example.id for example in examples]:
        raise InputError(f"judge {judge.name!r} did not answer for the examples it was asked about, one each and in their order")
    for example, row in zip(examples, judged, strict=True):
        if len(row.grades) != len(example.candidates):
            raise InputError(
                f"judge {judge.name!r} gave {len(row.grades)} grades for {len(example.candidates)} candidates of {example.id!r}"
            )
    share = missing_share(judged)
    if share > judge.max_missing:
        raise TooManyMissingError(
            f"judge {judge.name!r} left {share:.1%} of the candidates without a grade, more than max_missing of {judge.max_missing:.1%}; "
            "see why they are missing (steadyrank judge grade), or raise judge.max_missing to train on the rest"
        )
    out = []
    counts: dict[str, Any] = {"judged_candidates": 0, "missing_grades": 0, "lists_without_two_grades": 0, "missing_share": share}
    for example, row in zip(examples, judged, strict=True):
        kept = [place for place, grade in enumerate(row.grades) if grade is not None]
        counts["judged_candidates"] += len(kept)
        counts["missing_grades"] += len(row.grades) - len(kept)
        if len(kept) < 2:
            counts["lists_without_two_grades"] += 1
            continue
        grades = tuple(grade for grade in row.grades if grade is not None)
        out.append(replace(example.with_candidates(kept), relevance=grades, id=example.id))
    return out, counts
