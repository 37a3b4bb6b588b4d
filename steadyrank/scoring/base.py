"""The contract of every scorer, and the pointwise scoring of many lists at once.

What a caller can count on: canonical order, one float a document, `[]` for `[]`; the same text gets the same score whatever
its neighbours; a document without text never reaches the model and gets the scorer's `floor`; a score that is not finite is an error,
never a number; nothing that the caller handed over is changed. Only the query's own candidates are scored.

Does not know models: a pointwise scorer implements `_score_pairs`, one that needs the whole list `_score_lists`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steadyrank import seeds
from steadyrank.errors import InputError, NonFiniteScoreError
from steadyrank.records import Candidate, Presentation, RankedCandidate, RankingExample, Scale, ScoredList
from steadyrank.scoring.text import is_empty

EMPTY_FLOOR = -1000.0  # below any logit a model gives; exp of it is 0 in float64


class DocumentTypeError(InputError, TypeError):
    """A document is neither text nor something that holds text."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One query with one document. Where it came from (`example`, `index`) names it in errors and is no part of its identity."""

    query: str
    document: str
    instruction: str | None = None
    example: str | None = field(default=None, compare=False)
    index: int | None = field(default=None, compare=False)

    @property
    def place(self) -> str:
        """How an error names this pair."""
        where = f"index: {self.index}" if self.index is not None else "pair"
        if self.example is not None:
            where += f" of example {self.example!r}"
        return f"{where} (query {_short(self.query)}, document {_short(self.document)})"


@dataclass(frozen=True, slots=True)
class PairScore:
    """The score of one pair, and what was cut to make it fit."""

    score: float
    truncated_query: bool = False
    truncated_document: bool = False
    empty: bool = False


class Scorer(ABC):
    """Scores documents for a query.

    name:  of the scorer, written into every ScoredList.
    scale: of its scores; declared once, never guessed from values. Ranking is always by the score itself.
    floor: the score of a document without text, below that of every other document; None for references that do not read.
    reads_lists: whether a score may depend on the other candidates and on how the list is laid.
    """

    name: str = "scorer"
    scale: Scale = "logit"
    reads_lists: bool = False
    floor: float | None = EMPTY_FLOOR

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that can change a score."""

    def score(self, query: str, documents: Sequence[Any], *, instruction: str | None = None) -> list[float]:
        """One score a document, in the order given. Documents are texts, or objects or mappings with a `text`."""
        _check_query(query, instruction)
        candidates = [Candidate(candidate.text, title=candidate.title) for candidate in _as_candidates(documents)]
        if not candidates:
            return []
        example = RankingExample(query, tuple(candidates), instruction=instruction)
        return [found.score for found in self._checked(self._score_lists([example], named=False), [example])[0]]

    def rank(
        self, query: str, documents: Sequence[Any], *, instruction: str | None = None, top_k: int | None = None
    ) -> list[RankedCandidate]:
        """The documents, best first; equal scores keep the order given. `top_k` absent, or above their number, means all."""
        if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, (int, np.integer)) or top_k <= 0):
            raise InputError(f"is {top_k!r}; give a whole number from 1, or leave it out for all", field="top_k")
        candidates = _as_candidates(documents)
        scores = self.score(query, candidates, instruction=instruction)
        order = sorted(range(len(scores)), key=lambda place: -scores[place])[:top_k]
        names = [candidate.id if candidate.id is not None else str(place) for place, candidate in enumerate(candidates)]
        return [RankedCandidate(place, names[place], scores[place]) for place in order]

    def score_examples(
        self, examples: Sequence[RankingExample], *, presentations: int = 1, seed: int = 0, progress: bool = False
    ) -> list[ScoredList]:
        """Score every list; with several presentations, one ScoredList for each order, the orders of one example together.

        A scorer that reads one pair at a time cannot see the order: it scores once, and every order gets those scores.
        """
        if presentations < 1:
            raise InputError(f"is {presentations}; at least one is needed", field="presentations")
        examples = list(examples)
        laid = [orders(example, presentations, seed) for example in examples]
        return [scored for rows in self.score_presentations(examples, laid, progress=progress) for scored in rows]

    def score_presentations(
        self, examples: Sequence[RankingExample], laid: Sequence[Sequence[Presentation]], *, progress: bool = False
    ) -> list[list[ScoredList]]:
        """Score every example under each of its presentations: one ScoredList a presentation, in the order given.

        Here: one pair at a time cannot see how the list was laid, so it is scored once and every presentation gets those scores.
        """
        rows = self._checked(self._score_lists(examples, progress=progress), examples) if examples else []
        return [
            [self._scored_list(example, row, presentation) for presentation in presentations]
            for example, row, presentations in zip(examples, rows, laid, strict=True)
        ]

    def probability(self, scores: Sequence[float]) -> list[float]:
        """Scores as probabilities, in float64, for display only: float64 keeps apart what lower precision makes exactly 1."""
        values = np.asarray(scores, dtype=np.float64)
        if self.scale == "probability":
            return [float(value) for value in values]
        if self.scale == "grade":
            raise InputError(f"scorer {self.name!r} gives grades, which have no probability; use the scores", field="scale")
        small = np.exp(-np.abs(values))
        return [float(value) for value in np.where(values >= 0, 1 / (1 + small), small / (1 + small))]

    def _score_pairs(self, pairs: Sequence[Pair], *, progress: bool = False) -> list[PairScore]:
        """One score a pair, in order. All documents have text, and no two pairs are equal."""
        raise NotImplementedError(f"{type(self).__name__} scores whole lists")

    def _score_lists(self, examples: Sequence[RankingExample], *, progress: bool = False, named: bool = True) -> list[list[PairScore]]:
        """The scores of each example's candidates. Here: all pairs of all lists at once, each distinct pair scored once."""
        pairs = [
            Pair(example.query, document, example.instruction, example.id if named else None, index)
            for example in examples
            for index, document in enumerate(example.documents)
        ]
        unique: dict[Pair, PairScore | None] = {}
        for pair in pairs:
            if pair not in unique:
                unique[pair] = PairScore(self.floor, empty=True) if self.floor is not None and is_empty(pair.document) else None
        wanted = [pair for pair, found in unique.items() if found is None]
        if wanted:
            unique.update(zip(wanted, self._score_pairs(wanted, progress=progress), strict=True))
        flat = iter([unique[pair] for pair in pairs])
        return [[next(flat) for _ in example.candidates] for example in examples]  # type: ignore[misc]

    def _checked(self, rows: list[list[PairScore]], examples: Sequence[RankingExample]) -> list[list[PairScore]]:
        for row, example in zip(rows, examples, strict=True):
            for index, found in enumerate(row):
                if not math.isfinite(found.score):
                    pair = Pair(example.query, example.documents[index], example.instruction, example.id, index)
                    raise NonFiniteScoreError(f"scorer {self.name!r} gave {found.score} to {pair.place}; such a score is never ranked")
        return rows

    def _scored_list(self, example: RankingExample, row: Sequence[PairScore], laid: Presentation) -> ScoredList:
        return ScoredList(
            example.id,
            self.name,
            tuple(found.score for found in row),
            self.scale,
            laid,
            truncated=tuple(index for index, found in enumerate(row) if found.truncated_query or found.truncated_document),
            empty=tuple(index for index, found in enumerate(row) if found.empty),
        )


def orders(example: RankingExample, presentations: int, seed: int) -> list[Presentation]:
    """The presentations of an example: its canonical order where there is one, else orders drawn for this example and index."""
    if presentations == 1:
        return [Presentation()]
    size = len(example.candidates)
    return [Presentation(order=seeds.permutation(size, seed, "order", example.id, index), seed=seed) for index in range(presentations)]


def _check_query(query: object, instruction: object) -> None:
    if not isinstance(query, str):
        raise DocumentTypeError(f"must be text, not {type(query).__name__}", field="query")
    if instruction is not None and not isinstance(instruction, str):
        raise DocumentTypeError(f"must be text or absent, not {type(instruction).__name__}", field="instruction")


def _as_candidates(documents: Sequence[Any]) -> list[Candidate]:
    """Copies of what was given, as candidates; the caller's objects stay as they are."""
    if isinstance(documents, (str, bytes, Mapping)):
        raise DocumentTypeError(f"must be a list of documents, not one {type(documents).__name__}", field="documents")
    out = []
    for index, document in enumerate(documents):
        if isinstance(document, (str, Candidate)):
            out.append(Candidate(document) if isinstance(document, str) else document)
            continue
        read = document.get if isinstance(document, Mapping) else lambda name, document=document: getattr(document, name, None)
        text, title, name = read("text"), read("title"), read("id")
        if not isinstance(text, str):
            what = type(document).__name__ + ("" if document is None or text is None else f" whose text is {type(text).__name__}")
            raise DocumentTypeError(f"must be text, or hold text under `text`; it is {what}", field=f"documents[{index}]")
        out.append(Candidate(text, id=None if name is None else str(name), title=title if isinstance(title, str) else None))
    return out


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
