"""BM25 over short corpora and pools: bm25s (Lucene's formula, k1 1.5, b 0.75, English stop words), safe at the edges.

k over the corpus, unknown words, an empty query, an empty corpus or a corpus of empty texts give fewer hits, never invented ones:
a document without a word of the query is no hit. Ties keep corpus order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steadyrank.names import require
from steadyrank.records import RankingExample


def tokens(text: str) -> list[str]:
    """The words BM25 sees: lower case, two letters or more, without English stop words."""
    return _tokenize([text])[0]


def _tokenize(texts: Sequence[str]) -> list[list[str]]:
    bm25s = require("bm25s", "BM25")
    return bm25s.tokenize(list(texts), return_ids=False, show_progress=False) if texts else []


class Bm25Index:
    """An index of texts; their places are their names."""

    def __init__(self, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75):
        words = _tokenize(texts)
        self.size = len(words)
        self._model = None
        if any(words):
            self._model = require("bm25s", "BM25").BM25(k1=k1, b=b)
            self._model.index(words, show_progress=False)

    def scores(self, query: str) -> np.ndarray:
        """One score a text, in corpus order; zero where no word of the query stands."""
        known = [] if self._model is None else [word for word in tokens(query) if word in self._model.vocab_dict]
        if self._model is None or not known:
            return np.zeros(self.size, dtype=np.float32)
        return np.asarray(self._model.get_scores(known), dtype=np.float32)

    def search(self, query: str, k: int) -> list[tuple[int, float]]:
        """At most k (place, score), best first; places without a word of the query are left out."""
        scores = self.scores(query)
        hits = np.flatnonzero(scores > 0)
        if k < len(hits):  # keep all that tie with the k-th, so that the cut does not depend on partition order
            hits = hits[scores[hits] >= np.partition(scores[hits], len(hits) - k)[len(hits) - k]] if k > 0 else hits[:0]
        order = np.lexsort((hits, -scores[hits]))[:k]
        return [(int(hits[place]), float(scores[hits[place]])) for place in order]


def bm25_scores(query: str, documents: Sequence[str]) -> list[float]:
    """BM25 scores of the documents of one pool, whose word statistics come from that pool alone."""
    return [float(score) for score in Bm25Index(documents).scores(query)]


def in_bm25_order(example: RankingExample) -> RankingExample:
    """The same list as a first stage would hand it over: best BM25 score first, ties as they stood. The id, and so its streams, stay."""
    scores = bm25_scores(example.query, example.documents)
    places = sorted(range(len(scores)), key=lambda place: -scores[place])
    return replace(example.with_candidates(places), id=example.id)
