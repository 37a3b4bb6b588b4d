"""A chat endpoint that rates whole rankings, 0 to 1 after division by the highest choice.

One call a ranking: the rating belongs to that order, so it pays no other ranking and training on samples would need a call for each. It is
for looking at a few rankings, such as those of two systems, and not for Stage 1, which asks for grades of documents.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyrank.errors import InputError
from steadyrank.judging.base import Watch
from steadyrank.judging.chat import ChatCore
from steadyrank.records import RankingExample


class RankingJudge(ChatCore):
    """Rates one ranking of each example: `orders[j]` lists the candidates of example j, best first."""

    def rate(
        self, examples: Sequence[RankingExample], orders: Sequence[Sequence[int]], *, watch: Watch | None = None
    ) -> list[float | None]:
        """One rating from 0 to 1 an example; None where the judge gave none."""
        for example, order in zip(examples, orders, strict=True):
            if len(set(order)) != len(order) or not set(order) <= set(range(len(example.candidates))) or not order:
                raise InputError(f"the ranking {list(order)} of example {example.id!r} does not name candidates, each at most once")
        asks = [self.asking.ranking(example, order) for example, order in zip(examples, orders, strict=True)]
        top = max(int(choice) for choice in self.asking.spec.choices)
        return [None if found.value is None else int(found.value) / top for found in self.ask(asks, "rankings", watch)]
