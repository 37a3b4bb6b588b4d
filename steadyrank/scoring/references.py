"""References that every result is read against. They do not read the documents; the oracle reads the answers."""

from __future__ import annotations

from collections.abc import Sequence

from steadyrank import files, seeds
from steadyrank.errors import InputError
from steadyrank.records import RankingExample
from steadyrank.scoring.base import PairScore, Scorer


class Reference(Scorer):
    """A scorer without a model. It has no floor: a document without text is treated as any other."""

    floor = None

    @property
    def fingerprint(self) -> str:
        """The name says everything about it."""
        return files.fingerprint(["reference", self.name, getattr(self, "seed", None)])

    def values(self, example: RankingExample) -> Sequence[float]:
        """One score a candidate."""
        raise NotImplementedError

    def _score_lists(self, examples: Sequence[RankingExample], *, progress: bool = False, named: bool = True) -> list[list[PairScore]]:
        return [[PairScore(float(value)) for value in self.values(example)] for example in examples]


class Random(Reference):
    """Uniform scores from a stream of the seed and the example: the same list gets the same scores in any batch."""

    name, scale = "random", "probability"

    def __init__(self, *, seed: int = 0):
        self.seed = seed

    def values(self, example: RankingExample) -> Sequence[float]:
        """Draws of this example."""
        return seeds.stream(self.seed, "random scorer", example.id).random(len(example.candidates)).tolist()


class Constant(Reference):
    """Zero for everything: what ties are worth."""

    name, scale = "constant", "grade"

    def values(self, example: RankingExample) -> Sequence[float]:
        """Zeros."""
        return [0.0] * len(example.candidates)


class FirstStage(Reference):
    """The order in which the candidates came: the last one gets 1, the one before it 2, and so on."""

    name, scale = "first_stage", "grade"

    def values(self, example: RankingExample) -> Sequence[float]:
        """Falling by one a place."""
        size = len(example.candidates)
        return [float(size - place) for place in range(size)]


class Oracle(Reference):
    """The relevance grades themselves, unjudged candidates (negative grades) last: the best that any order can be."""

    name, scale = "oracle", "grade"

    def values(self, example: RankingExample) -> Sequence[float]:
        """The grades; -1 for unjudged."""
        if example.relevance is None:
            raise InputError(f"example {example.id!r} has no relevance grades, which the oracle needs", field="relevance")
        return [grade if grade >= 0 else -1.0 for grade in example.relevance]
