"""Exact expectations of measures over tie orders, in numpy. A list without ties gives the measure itself.

Source: McSherry and Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores" (ECIR 2008).
The nDCG formula is that of `steadyrank.metrics` (which is torch and differentiable): sum of gain / log2(rank + 1) over the first k,
divided by the same sum of the best order of all grades. A test holds the two, and ir-measures, together.

`tied` are blocks of places, best first (`ties.blocks`); `grades` holds every document of the query, retrieved or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

import numpy as np

from steadyrank.evaluation.measures import Measure
from steadyrank.evaluation.ties import gain_of

Blocks = Sequence[Sequence[int]]


def value(measure: Measure, tied: Blocks, grades: Sequence[float | None]) -> float:
    """The expected value of a measure that has a closed form."""
    if measure.family == "nDCG":
        return _ndcg(measure, tied, grades)
    threshold = 1 if measure.rel is None else measure.rel
    relevant = [grade is not None and grade >= threshold for grade in grades]
    sizes = [len(block) for block in tied]
    hits = [sum(relevant[place] for place in block) for block in tied]
    if measure.family == "IPrec":
        return _interpolated_precision(hits, sum(relevant), float(measure.cutoff or 0))
    cutoff = int(measure.cutoff) if measure.cutoff is not None else None
    return _BINARY[measure.family](sizes, hits, sum(relevant), cutoff)


def gains(measure: Measure, grades: Sequence[float | None]) -> np.ndarray:
    """2^grade - 1 for `exp`, the written gain of a mapped grade, else the grade; 0 for negative and unjudged."""
    mapping = measure.gains or {}
    values = np.array([gain_of(grade if grade is None else mapping.get(grade, grade)) for grade in grades], dtype=np.float64)
    return np.exp2(values) - 1 if measure.gain == "exp" else values


def _ndcg(measure: Measure, tied: Blocks, grades: Sequence[float | None]) -> float:
    gain_N = gains(measure, grades)
    depth = int(measure.cutoff) if measure.cutoff is not None else len(gain_N)
    discount = 1 / np.log2(np.arange(2, len(gain_N) + 2))
    ideal = float(np.sort(gain_N)[::-1][:depth] @ discount[:depth])
    if ideal <= 0:
        return 0.0
    expected = [mean for block in tied for mean in [gain_N[list(block)].mean()] * len(block)][:depth]
    return min(float(np.asarray(expected) @ discount[: len(expected)]) / ideal, 1.0)


def _hits_before(sizes: list[int], hits: list[int], depth: int) -> float:
    """Expected relevant documents among the first `depth`."""
    total, start = 0.0, 0
    for size, hit in zip(sizes, hits, strict=True):
        total += hit * min(max(depth - start, 0), size) / size
        start += size
    return total


def _precision(sizes: list[int], hits: list[int], relevant: int, cutoff: int | None) -> float:
    depth = cutoff or sum(sizes)  # trec_eval's P@k divides by k also where fewer were retrieved
    return _hits_before(sizes, hits, depth) / depth if depth else 0.0


def _recall(sizes: list[int], hits: list[int], relevant: int, cutoff: int | None) -> float:
    return _hits_before(sizes, hits, cutoff or sum(sizes)) / relevant if relevant else 0.0


def _reciprocal_rank(sizes: list[int], hits: list[int], relevant: int, cutoff: int | None) -> float:
    start = 0
    for size, hit in zip(sizes, hits, strict=True):
        if hit:
            last = size - hit + 1 if cutoff is None else min(size - hit + 1, cutoff - start)
            return sum(comb(size - t, hit - 1) / comb(size, hit) / (start + t) for t in range(1, last + 1))
        start += size
    return 0.0


def _success(sizes: list[int], hits: list[int], relevant: int, cutoff: int | None) -> float:
    start, depth = 0, cutoff or sum(sizes)
    for size, hit in zip(sizes, hits, strict=True):
        if start >= depth:
            return 0.0
        if hit:
            return 1 - comb(size - hit, min(depth - start, size)) / comb(size, min(depth - start, size))
        start += size
    return 0.0


def _average_precision(sizes: list[int], hits: list[int], relevant: int, cutoff: int | None) -> float:
    total, start, before = 0.0, 0, 0
    for size, hit in zip(sizes, hits, strict=True):
        places = size if cutoff is None else min(size, cutoff - start)
        if hit and places > 0:
            spread = (hit - 1) / (size - 1) if size > 1 else 0.0  # chance that another given place of the block is relevant too
            total += sum(hit / size * (before + 1 + (i - 1) * spread) / (start + i) for i in range(1, places + 1))
        start, before = start + size, before + hit
    return total / relevant if relevant else 0.0


def _interpolated_precision(hits: list[int], relevant: int, recall: float) -> float:
    """Highest precision from the needed hit on; an order without ties only. trec_eval 10: recall * relevant rounds half up (9.0: +0.9)."""
    needed, found, best = max(int(recall * relevant + 0.5), 1), 0, 0.0
    for rank, hit in enumerate(hits, start=1):
        found += hit
        if hit and found >= needed:
            best = max(best, found / rank)
    return best


_BINARY: dict[str, Callable[[list[int], list[int], int, int | None], float]] = {
    "P": _precision,
    "R": _recall,
    "RR": _reciprocal_rank,
    "Success": _success,
    "AP": _average_precision,
}
