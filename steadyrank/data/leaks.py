"""What splits share: queries, groups, documents and near-duplicate documents.

Near duplicates are documents whose sets of three-word shingles have a Jaccard similarity of about `threshold` or more, found by MinHash
with banding (Broder 1997): 64 hashes in 16 bands of 4, then checked on the 64. Shared queries make a test score meaningless; shared
documents are normal for closed catalogues, and belong in the report.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from steadyrank import seeds
from steadyrank.data.splits import group_of
from steadyrank.errors import InputError
from steadyrank.records import RankingExample

_WORD = re.compile(r"\w+")
_HASHES, _BANDS = 64, 16
_PRIME = (1 << 61) - 1
_CHUNK = 32  # templated texts fill a bucket; the first few mostly decide


@dataclass(frozen=True)
class PairLeaks:
    """What two splits share; documents are counted once each, by text."""

    a: str
    b: str
    queries: int
    groups: int
    documents: int
    near_documents: int
    documents_b: int
    examples: dict[str, list[str]]

    @property
    def share_of_documents(self) -> float:
        """Share of b's documents that also stand in a, word for word or nearly."""
        return (self.documents + self.near_documents) / self.documents_b if self.documents_b else 0.0


@dataclass(frozen=True)
class LeakReport:
    """One row for every pair of splits."""

    pairs: list[PairLeaks]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": "steadyrank.leaks/1",
            "pairs": [asdict(pair) | {"share_of_documents": pair.share_of_documents} for pair in self.pairs],
        }

    def lines(self) -> list[str]:
        return [
            f"{pair.a} and {pair.b}: {pair.queries} queries, {pair.groups} groups, {pair.documents} documents and "
            f"{pair.near_documents} near-duplicates shared ({pair.share_of_documents:.1%} of the documents of {pair.b})"
            for pair in self.pairs
        ]

    def refuse_shared_queries(self) -> None:
        """Raise where two splits share a query or a group."""
        for pair in self.pairs:
            if pair.queries or pair.groups:
                first = (pair.examples["queries"] or pair.examples["groups"])[0]
                raise InputError(
                    f"{pair.a} and {pair.b} share {pair.queries} queries and {pair.groups} groups, {first!r} for one; split by group"
                )


def find_leaks(splits: Mapping[str, Sequence[RankingExample]], *, threshold: float = 0.8) -> LeakReport:
    """Compare every pair of splits."""
    if len(splits) < 2:
        raise InputError("a leak report needs two splits or more")
    queries = {name: {_normal(example.query) for example in examples} for name, examples in splits.items()}
    groups = {name: {group_of(example) for example in examples if example.group is not None} for name, examples in splits.items()}
    documents = {name: {_normal(text): text for example in examples for text in example.documents} for name, examples in splits.items()}
    prints = {name: _signatures(list(texts)) for name, texts in documents.items()}
    pairs = []
    for a, b in combinations(splits, 2):
        same = set(documents[a]) & set(documents[b])
        near = _near(documents[a], prints[a], documents[b], prints[b], same, threshold)
        shared = {"queries": queries[a] & queries[b], "groups": groups[a] & groups[b], "documents": same, "near_documents": near}
        pairs.append(
            PairLeaks(
                a, b, **{name: len(values) for name, values in shared.items()}, documents_b=len(documents[b]),
                examples={name: sorted(values)[:3] for name, values in shared.items()},
            )
        )  # fmt: skip
    return LeakReport(pairs)


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _signatures(texts: Sequence[str]) -> np.ndarray:
    """MinHash signatures, [texts, 64]; a text of fewer than three words has its words as one shingle."""
    draw = seeds.stream(0, "minhash")
    a, b = draw.integers(1, 1 << 31, size=(2, _HASHES, 1), dtype=np.uint64)
    out = np.empty((len(texts), _HASHES), dtype=np.uint64)
    for place, text in enumerate(texts):
        words = _WORD.findall(text)
        shingles = {" ".join(words[start : start + 3]) for start in range(max(1, len(words) - 2))}
        codes = np.fromiter((zlib.crc32(shingle.encode("utf-8", "surrogatepass")) for shingle in shingles), dtype=np.uint64)
        out[place] = ((a * codes + b) % np.uint64(_PRIME)).min(axis=1)
    return out


def _near(
    texts_a: Mapping[str, str], prints_a: np.ndarray, texts_b: Mapping[str, str], prints_b: np.ndarray, same: set[str], threshold: float
) -> set[str]:
    """Documents of b with a near duplicate in a that is not the same text."""
    names_a, names_b, found = list(texts_a), list(texts_b), set()
    width = _HASHES // _BANDS
    for band in range(_BANDS):
        columns = slice(band * width, (band + 1) * width)
        buckets: dict[bytes, list[int]] = {}
        for place in range(len(names_a)):
            buckets.setdefault(prints_a[place, columns].tobytes(), []).append(place)
        for place, name in enumerate(names_b):
            if name in same or name in found:
                continue
            others = buckets.get(prints_b[place, columns].tobytes(), [])
            for start in range(0, len(others), _CHUNK):
                if float((prints_a[others[start : start + _CHUNK]] == prints_b[place]).mean(axis=1).max()) >= threshold:
                    found.add(name)
                    break
    return found
