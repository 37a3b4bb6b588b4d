"""Ties: one rule for every measure, applied before ir-measures sees the run.

average      (default) the expectation of the measure over all orders of the tied documents, each order equally likely.
             Exact where `closed_forms` has the measure; else exact by enumerating the distinct arrangements of grades where these are at
             most MOST_ORDERS, else the mean over MOST_ORDERS orders drawn from a stream named after the query (counted: `sampled_ties`).
trec         documents of equal score stand by name, descending, and scores are compared in single precision: trec_eval's rule,
             equal to pytrec_eval's values. Names are text; candidates without an id are named by their place.
stable       documents of equal score keep the order they came in: canonical order, or the order of the run. It leaks that order.
pessimistic  documents of equal score stand worst grade first: the lower end of what the scorer can be credited with.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from steadyrank.errors import unknown_name
from steadyrank.seeds import stream

RULES = ("average", "trec", "stable", "pessimistic")
MOST_ORDERS = 256


def check_rule(rule: str) -> None:
    """An unknown rule raises with the known ones."""
    if rule not in RULES:
        raise unknown_name("tie rule", rule, RULES)


def blocks(scores: Sequence[float]) -> list[list[int]]:
    """Places of the documents, best score first; documents of equal score share a block and keep their order in it."""
    out: list[list[int]] = []
    last = None
    for place in sorted(range(len(scores)), key=lambda place: -scores[place]):
        if out and scores[place] == last:
            out[-1].append(place)
        else:
            out.append([place])
        last = scores[place]
    return out


def order(scores: Sequence[float], names: Sequence[str], grades: Sequence[float | None], rule: str) -> list[int]:
    """The one ranking (places, best first) of a rule other than average."""
    if rule == "trec":
        single = np.asarray(scores, dtype=np.float32).tolist()
        by_name = sorted(range(len(single)), key=lambda place: names[place], reverse=True)
        return sorted(by_name, key=lambda place: -single[place])
    if rule == "pessimistic":
        return sorted(range(len(scores)), key=lambda place: (-scores[place], gain_of(grades[place])))
    return [place for block in blocks(scores) for place in block]


def gain_of(grade: float | None) -> float:
    """The grade that counts: nothing below zero, nothing for unjudged."""
    return 0.0 if grade is None or grade < 0 else grade


def orders(
    tied: Sequence[Sequence[int]], grades: Sequence[float | None], *, seed: int, names: tuple[object, ...]
) -> tuple[list[list[int]], bool]:
    """Equally likely rankings that stand for all orders of the tied documents, and whether they are a sample."""
    count = 1
    for block in tied:
        kinds = Counter(grades[place] for place in block)
        count *= math.factorial(len(block)) // math.prod(math.factorial(n) for n in kinds.values())
    if count <= MOST_ORDERS:
        rankings: list[list[int]] = [[]]
        for block in tied:
            rankings = [head + tail for head in rankings for tail in _arrangements(list(block), grades)]
        return rankings, False
    draw = stream(seed, "ties", *names)
    return [[block[i] for block in tied for i in draw.permutation(len(block))] for _ in range(MOST_ORDERS)], True


def _arrangements(block: list[int], grades: Sequence[float | None]) -> Iterator[list[int]]:
    """Orders of a block that differ in their grades; documents of one grade are interchangeable."""
    if not block:
        yield []
        return
    seen = set()
    for i, place in enumerate(block):
        if grades[place] in seen:
            continue
        seen.add(grades[place])
        for rest in _arrangements(block[:i] + block[i + 1 :], grades):
            yield [place, *rest]


def tied_pairs(scores: Sequence[float]) -> tuple[int, int]:
    """(pairs of documents with equal scores, all pairs)."""
    tied = sum(n * (n - 1) // 2 for n in Counter(scores).values())
    return tied, len(scores) * (len(scores) - 1) // 2
