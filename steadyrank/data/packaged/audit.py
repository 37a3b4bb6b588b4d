"""The audit of a built collection: what systems that do not read, or only match words, already reach.

prior     ranks documents by their mean training grade in the same family and never reads the query; must stay near `shuffled` or `kind`
kind      the same for the kind of document alone (`Mitigation`, `Base weakness`: the words before the first colon or bracket), where a
          family has few kinds. Where the instruction asks for a level or a kind (`attack/parent`, `attack/mitigation`, `cwe/general` ...)
          this much can be had without the query, and no more
shuffled  random order: chance
bm25      word matching between query and document
oracle    the ideal order, 1 by construction: a check of the measure itself
All are nDCG@10 with gain 2^grade - 1 and a pool-local ideal, ties broken by a named stream, on at most `MOST` lists a family.
`seen_documents` is the share of distinct documents of the measured lists that training lists hold too (closed catalogues recur, queries
never do).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from steadyrank import seeds
from steadyrank.data.bm25 import bm25_scores
from steadyrank.data.packaged.common import normal
from steadyrank.errors import RunError
from steadyrank.records import Candidate, RankingExample

MOST = 300
DEPTH = 10
SHUFFLES = 8
MOST_KINDS = 60
Splits = Mapping[str, Sequence[RankingExample]]


def ndcg(grades: Sequence[float], *, depth: int = DEPTH) -> float:
    """nDCG of grades in ranked order."""

    def total(values: Iterable[float]) -> float:
        return math.fsum((2.0**grade - 1.0) / math.log2(place + 2) for place, grade in enumerate(list(values)[:depth]))

    return total(grades) / total(sorted(grades, reverse=True))


def ranked(example: RankingExample, scores: Sequence[float], *, seed: int) -> float:
    """nDCG of a list under scores, ties broken by the example's stream."""
    chance = seeds.permutation(len(scores), seed, "audit-ties", example.id)
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], chance[place]))
    return ndcg([example.relevance[place] for place in order])  # type: ignore[index]


def chance(example: RankingExample, *, seed: int) -> float:
    """Mean nDCG of a few random orders."""
    grades = example.relevance or ()
    return fmean(ndcg([grades[p] for p in seeds.permutation(len(grades), seed, "audit", example.id, draw)]) for draw in range(SHUFFLES))


def kind_of(candidate: Candidate) -> str:
    """The kind a document's text shows: the words before its first colon or bracket, where these are few."""
    head = re.split(r"[:(]", candidate.text, maxsplit=1)[0].strip()
    return head if len(head) <= 20 else ""


def document_name(candidate: Candidate) -> str:
    """The document itself."""
    return candidate.id or candidate.text


def prior_of(train: Iterable[RankingExample], name: Callable[[Candidate], str]) -> dict[str, float]:
    """Document (or kind) -> mean training grade, of lists of one family."""
    grades: dict[str, list[float]] = {}
    for example in train:
        for candidate, grade in zip(example.candidates, example.relevance or (), strict=True):
            grades.setdefault(name(candidate), []).append(grade)
    return {key: fmean(values) for key, values in grades.items()}


def by_prior(judged: Sequence[RankingExample], prior: Mapping[str, float], name: Callable[[Candidate], str], *, seed: int) -> float | None:
    """Mean nDCG of ranking by a prior; unseen documents get its mean. None without training lists."""
    if not prior:
        return None
    usual = fmean(prior.values())
    return round(fmean(ranked(e, [prior.get(name(c), usual) for c in e.candidates], seed=seed) for e in judged), 3)


def family(measured: Sequence[RankingExample], train: Sequence[RankingExample], *, seed: int) -> dict[str, Any]:
    """The row of one family."""
    judged = sorted((e for e in measured if any(g > 0 for g in e.relevance or ())), key=lambda e: seeds.digest(seed, "audit", e.id))[:MOST]
    known = {name for example in train for name in example.candidate_ids}
    documents = {name for example in measured for name in example.candidate_ids}
    grades = Counter(grade for example in measured for grade in example.relevance or ())
    row: dict[str, Any] = {
        "lists": len(measured),
        "measured": len(judged),
        "without_positive": sum(not any(g > 0 for g in e.relevance or ()) for e in measured),
        "grades": {f"{grade:g}": round(count / grades.total(), 3) for grade, count in sorted(grades.items())},
        "seen_documents": round(len(documents & known) / len(documents), 3) if documents else None,
    }
    if judged:
        row["shuffled"] = round(fmean(chance(e, seed=seed) for e in judged), 3)
        row["bm25"] = round(fmean(ranked(e, bm25_scores(e.query, e.documents), seed=seed) for e in judged), 3)
        row["oracle"] = round(fmean(ranked(e, e.relevance or (), seed=seed) for e in judged), 3)
        row["prior"] = by_prior(judged, prior_of(train, document_name), document_name, seed=seed)
        kinds = prior_of(train, kind_of)
        row["kind"] = by_prior(judged, kinds, kind_of, seed=seed) if 1 < len(kinds) <= MOST_KINDS else None
    return row


def audit(splits: Splits, *, seed: int = 0) -> dict[str, dict[str, Any]]:
    """family -> its row, on the test lists (or the shifted, reader and abstain ones, for families that are never trained)."""
    train: dict[str, list[RankingExample]] = {}
    for example in splits.get("train", ()):
        train.setdefault(example.source or "", []).append(example)
    out = {}
    for split in ("test", "shifted", "reader"):
        rows: dict[str, list[RankingExample]] = {}
        for example in splits.get(split, ()):
            rows.setdefault(example.source or "", []).append(example)
        for source, members in sorted(rows.items()):
            out[source] = {"split": split, "train": len(train.get(source, ())), **family(members, train.get(source, ()), seed=seed)}
    return out


def check_splits(splits: Splits) -> None:
    """Raise unless every query and every group stands in one split only; `reworded` repeats test groups and nothing else."""
    query_in: dict[tuple[str, str], tuple[str, str]] = {}
    group_in: dict[str, str] = {}
    for split, examples in splits.items():
        home = "test" if split == "reworded" else split
        for example in examples:
            domain = (example.source or "").split("/")[0]
            key = (domain, normal(example.query))
            where, other = query_in.setdefault(key, (home, example.id))
            if where != home:
                query = example.query[:80]
                raise RunError(f"splits {where} and {home} share the query {query!r} ({other} and {example.id}); nothing was written")
            where = group_in.setdefault(example.group or example.id, home)
            if where != home:
                raise RunError(f"splits {where} and {home} share the group {example.group!r}; nothing was written")
