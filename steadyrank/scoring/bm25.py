"""`bm25`: lexical scores within the pool of each example (its candidates are the collection)."""

from __future__ import annotations

from collections.abc import Sequence

from steadyrank import files
from steadyrank.data.bm25 import bm25_scores
from steadyrank.records import RankingExample
from steadyrank.scoring.base import PairScore, Scorer
from steadyrank.scoring.text import clean, is_empty


class Bm25(Scorer):
    """BM25 over the pool; word frequencies come from the pool, so a score depends on the other candidates.

    with_instruction: put the instruction's words beside the query's.
    """

    name, scale = "bm25", "grade"
    floor = -1.0  # BM25 of a document without a common word is 0

    def __init__(self, *, with_instruction: bool = False):
        self.with_instruction = with_instruction

    @property
    def fingerprint(self) -> str:
        """The settings say everything about it."""
        return files.fingerprint(["bm25", self.with_instruction])

    def _score_lists(self, examples: Sequence[RankingExample], *, progress: bool = False, named: bool = True) -> list[list[PairScore]]:
        return [self._one(example) for example in examples]

    def _one(self, example: RankingExample) -> list[PairScore]:
        query = f"{example.instruction} {example.query}" if self.with_instruction and example.instruction else example.query
        documents = example.documents
        full = [index for index, document in enumerate(documents) if not is_empty(document)]
        found = [PairScore(self.floor, empty=True)] * len(documents)
        if full:
            for index, value in zip(full, bm25_scores(clean(query), [clean(documents[index]) for index in full]), strict=True):
                found[index] = PairScore(float(value))
        return found
