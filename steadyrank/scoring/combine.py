"""Order-averaged serving (BSC xK): the mean of a scorer's scores over K orders.

A repair that needs no training and costs K times the forwards. Scores are averaged, not ranks (arXiv 2608.26762, section on batched
self-consistency). The K orders are shuffles *of the order that was given*, drawn for the example: two orders of one list get two
independent averages, as two callers would. What still differs between them is therefore the steadiness of the average itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from steadyrank import files, seeds
from steadyrank.data.presenting import order_of
from steadyrank.errors import ConfigError
from steadyrank.records import Presentation, RankingExample, ScoredList
from steadyrank.scoring.base import PairScore, Scorer


class Around(Scorer):
    """A scorer that repairs the scores of another. Windows, markers and the like are the other's."""

    kind = "around"
    reads_lists = True

    def __init__(self, inner: Scorer, *, name: str | None = None):
        self.inner, self.name = inner, name or f"{inner.name}+{self.kind}"
        self.scale, self.floor = inner.scale, inner.floor
        for attribute in ("width", "windows", "markers"):
            if hasattr(inner, attribute):
                setattr(self, attribute, getattr(inner, attribute))

    @abstractmethod
    def _rows(self, laid: Sequence[tuple[RankingExample, Presentation]], *, progress: bool) -> list[list[PairScore]]:
        """The repaired scores of each laid list, canonical order."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What can change a score, besides the inner scorer."""

    @property
    def fingerprint(self) -> str:
        """Hash of the inner scorer and the repair."""
        return files.fingerprint([self.kind, self.inner.fingerprint, self.settings()])

    def score_presentations(
        self, examples: Sequence[RankingExample], laid: Sequence[Sequence[Presentation]], *, progress: bool = False
    ) -> list[list[ScoredList]]:
        """One ScoredList for each presentation of each example."""
        flat = [(example, one) for example, rows in zip(examples, laid, strict=True) for one in rows]
        scored = self._checked(self._rows(flat, progress=progress), [example for example, _ in flat])
        found = iter([self._scored_list(example, row, one) for (example, one), row in zip(flat, scored, strict=True)])
        return [[next(found) for _ in rows] for rows in laid]

    def _score_lists(self, examples: Sequence[RankingExample], *, progress: bool = False, named: bool = True) -> list[list[PairScore]]:
        return self._rows([(example, Presentation()) for example in examples], progress=progress)


class OrderAveraged(Around):
    """The mean score over `k` orders of each list."""

    kind = "order_averaged"

    def __init__(self, scorer: Scorer, *, k: int = 10, seed: int = 0, name: str | None = None):
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ConfigError(f"k is {k!r}; give the number of orders to average, from 1")
        super().__init__(scorer, name=name or f"{scorer.name}x{k}")
        self.k, self.seed = k, seed

    def orders(self, example: RankingExample, given: Presentation) -> list[Presentation]:
        """The presentations that are averaged: shuffles of the given order, by a stream of seed, example and that order."""
        base = order_of(given, len(example.candidates))
        return [
            replace(
                given, order=tuple(base[place] for place in seeds.permutation(len(base), self.seed, "averaged", example.id, base, number))
            )
            for number in range(self.k)
        ]

    def _rows(self, laid: Sequence[tuple[RankingExample, Presentation]], *, progress: bool) -> list[list[PairScore]]:
        views = [self.orders(example, given) for example, given in laid]
        found = self.inner.score_presentations([example for example, _ in laid], views, progress=progress)
        return [
            [_mean(scored, place) for place in range(len(example.candidates))] for (example, _), scored in zip(laid, found, strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        """Number of orders and the seed that draws them."""
        return {"k": self.k, "seed": self.seed}


def _mean(scored: Sequence[ScoredList], place: int) -> PairScore:
    cut = any(place in one.truncated for one in scored)
    return PairScore(
        sum(one.scores[place] for one in scored) / len(scored), truncated_document=cut, empty=any(place in one.empty for one in scored)
    )
