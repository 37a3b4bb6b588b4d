"""A chat endpoint that compares documents two by two, each pair in both orders; a Bradley-Terry fit makes grades of it.

    grade = 3 × (how likely the document is to beat another of its list, on average)

So grades order a list finely and say nothing of how good it is: there is no zero for useless ones. A pair counts where both orders have a
readable answer; two opposite answers then are one win for each, which is what a pure preference for a place gives every pair. Documents
that no chain of such pairs connects to the largest group cannot be compared with it: they are missing, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyrank import seeds
from steadyrank.files import write_jsonl
from steadyrank.judging.asker import Outcome
from steadyrank.judging.base import JudgedList, Watch
from steadyrank.judging.bradley_terry import components, fit, win_share
from steadyrank.judging.chat import ChatCore
from steadyrank.judging.settings import PairSettings
from steadyrank.records import RankingExample
from steadyrank.scoring.text import is_empty

SWAPS = "steadyrank.swaps/1"
TOP = 3.0
_SHARE = {"A": 1.0, "B": 0.0, "tie": 0.5}  # of the document shown first


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """How sure the judge was of candidate `a` against `b`: with a shown first, and with b shown first; None where it gave no answer."""

    a: int
    b: int
    first: float | None
    second: float | None


class PairwiseJudge(ChatCore):
    """Compares, fits, grades. Writes the answers as order-swap records where `swaps` names a file."""

    settings: PairSettings

    def __init__(self, settings: PairSettings):
        super().__init__(settings)
        self.pairs = self.half_answered = self.inconsistent = self.disconnected_lists = self.disconnected_documents = 0

    def judge(self, examples: Sequence[RankingExample], *, watch: Watch | None = None) -> list[JudgedList]:
        laid = [list(choose_pairs(example, self.settings.pairs, seed=self.settings.seed)) for example in examples]
        asks = [
            self.asking.pair(example, *order)
            for example, pairs in zip(examples, laid, strict=True)
            for a, b in pairs
            for order in ((a, b), (b, a))
        ]
        outcomes = iter(self.ask(asks, "comparisons", watch))
        answers = [[_answer(a, b, next(outcomes), next(outcomes)) for a, b in pairs] for pairs in laid]
        if self.settings.swaps is not None:
            write_jsonl(self.settings.swaps, _swaps(examples, answers))
        return [self._judged(example, found) for example, found in zip(examples, answers, strict=True)]

    def about(self) -> dict[str, Any]:
        names = ("pairs", "half_answered", "inconsistent", "disconnected_lists", "disconnected_documents")
        return {**super().about(), "prior": self.settings.prior, **{name: getattr(self, name) for name in names}}

    def _judged(self, example: RankingExample, answers: Sequence[PairAnswer]) -> JudgedList:
        size = len(example.candidates)
        wins_KK = np.zeros((size, size))
        for found in answers:
            if found.first is None or found.second is None:
                continue
            self.inconsistent += (found.first - 0.5) * (found.second - 0.5) < 0
            wins_KK[found.a, found.b] += found.first + found.second
            wins_KK[found.b, found.a] += 2 - found.first - found.second
        empty = [place for place, text in enumerate(example.documents) if is_empty(text)]
        self.pairs += len(answers)
        self.half_answered += sum((found.first is None) != (found.second is None) for found in answers)
        self.empty += len(empty)
        grades: list[float | None] = [0.0 if place in empty else None for place in range(size)]  # without text: below all, never sent
        groups = [group for group in components(wins_KK) if group[0] not in empty]
        if groups and len(groups[0]) > 1:
            share_C = win_share(fit(wins_KK, prior=self.settings.prior)[groups[0]])
            for place, share in zip(groups[0], share_C, strict=True):
                grades[place] = float(TOP * share)
        lost = sum(grade is None for grade in grades)
        self.disconnected_documents += lost
        self.disconnected_lists += lost > 0
        extra: dict[str, Any] = {"candidates": example.candidate_ids, "comparisons": len(answers)}
        if lost:
            missing = {name: "disconnected" for name, grade in zip(example.candidate_ids, grades, strict=True) if grade is None}
            extra["missing"] = missing
        return JudgedList(example.id, tuple(grades), judge=self.name, extra=extra)


def choose_pairs(example: RankingExample, pairs: int | str, *, seed: int) -> Iterator[tuple[int, int]]:
    """The pairs to compare, a before b in canonical order: all of them, or the edges of rings through all documents, drawn by the example's
    stream. One ring gives every document two comparisons and connects the list. Documents without text are left out."""
    places = [place for place, text in enumerate(example.documents) if not is_empty(text)]
    size = len(places)
    if pairs == "all" or int(pairs) >= size - 1:
        yield from ((a, b) for at, a in enumerate(places) for b in places[at + 1 :])
        return
    edges: set[tuple[int, int]] = set()
    for ring in range((int(pairs) + 1) // 2):
        order = [places[at] for at in seeds.permutation(size, seed, "pairs", example.id, ring)]
        edges |= {(min(a, b), max(a, b)) for a, b in zip(order, [*order[1:], order[0]], strict=True)}
    yield from sorted(edges)


def _answer(a: int, b: int, a_first: Outcome, b_first: Outcome) -> PairAnswer:
    first = None if a_first.value is None else _SHARE[str(a_first.value)]
    second = None if b_first.value is None else 1 - _SHARE[str(b_first.value)]
    return PairAnswer(a, b, first, second)


def _swaps(examples: Sequence[RankingExample], answers: Sequence[Sequence[PairAnswer]]) -> Iterator[dict[str, Any]]:
    for example, rows in zip(examples, answers, strict=True):
        ids = example.candidate_ids
        for row in rows:
            found = {"a": ids[row.a], "b": ids[row.b], "first": row.first, "second": row.second}
            yield {"schema": SWAPS, "example_id": example.id, **found}
