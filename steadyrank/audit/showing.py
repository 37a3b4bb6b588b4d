"""One list on which a decision flips, chosen to be typical: of the lists whose kept set (else whose top choice) changes, the middle one.

Not the worst list, which would frighten, and not a still one, which would soothe. The two presentations shown are the pair of that list
that disagrees most; how many lists flip at all stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrank.audit.lists import Shown
from steadyrank.consumers.ordering import rankings
from steadyrank.consumers.sets import retained_set
from steadyrank.stability.arrays import places_array

TEXT = 320  # characters of a text that the record keeps
MOST = 20  # candidates


def flip_example(shown: Sequence[Shown], threshold: float | None) -> dict[str, Any] | None:
    """The record of the example; None where nothing flips."""
    if threshold is not None:
        pairs = [(_least_agreeing(retained_set(item.scores_PK, threshold)), item) for item in shown]
        found = _middle(pairs)
        if found is not None:
            return _record(*found, lists=len(shown), about="threshold", threshold=threshold)
    found = _middle([(_least_agreeing(_top(item)), item) for item in shown])
    return None if found is None else _record(*found, lists=len(shown), about="top_choice", threshold=threshold)


Pair = tuple[float, int, int]


def _least_agreeing(mask_PK: np.ndarray) -> Pair:
    """(agreement, two presentations) of the pair of kept sets that share least; 1 where all are the same."""
    bits_PK = mask_PK.astype(float)
    both_PP = bits_PK @ bits_PK.T
    either_PP = bits_PK.sum(1)[:, None] + bits_PK.sum(1)[None] - both_PP
    agreement_PP = np.divide(both_PP, either_PP, out=np.ones_like(both_PP), where=either_PP > 0)
    first, second = np.unravel_index(int(agreement_PP.argmin()), agreement_PP.shape)
    return float(agreement_PP[first, second]), int(first), int(second)


def _top(item: Shown) -> np.ndarray:
    """The one candidate put first, as a mask."""
    return _ranks(item) == 1


def _ranks(item: Shown) -> np.ndarray:
    """Rank from 1 of each candidate, under the tie rule of the consumers."""
    return np.argsort(rankings(item.scores_PK, item.orders_PK), axis=1) + 1


def _middle(pairs: Sequence[tuple[Pair, Shown]]) -> tuple[Pair, Shown, int] | None:
    """The flipping list of median agreement, and how many flip."""
    flipping = sorted((entry for entry in pairs if entry[0][0] < 1), key=lambda entry: (entry[0][0], entry[1].example.id))
    if not flipping:
        return None
    pair, item = flipping[len(flipping) // 2]
    return pair, item, len(flipping)


def _record(pair: Pair, item: Shown, flipping: int, *, lists: int, about: str, threshold: float | None) -> dict[str, Any]:
    agreement, first, second = pair
    example, rows = item.example, item.scores_PK[[first, second]]
    rank_2K = _ranks(item)[[first, second]]
    place_2K = None if item.orders_PK is None else places_array(item.orders_PK[[first, second]])
    candidates = []
    for place, candidate in enumerate(example.candidates):
        row: dict[str, Any] = {"text": _cut(candidate.content), "grade": None if example.relevance is None else example.relevance[place]}
        for at, side in enumerate("ab"):
            row[f"score_{side}"] = float(rows[at, place])
            row[f"rank_{side}"] = int(rank_2K[at, place])
            row[f"place_{side}"] = None if place_2K is None else int(place_2K[at, place]) + 1
            if threshold is not None:
                row[f"kept_{side}"] = bool(rows[at, place] >= threshold)
        candidates.append(row)
    if about == "threshold":
        candidates.sort(key=lambda row: (row["kept_a"] == row["kept_b"], row["rank_a"] + row["rank_b"]))
    else:
        candidates.sort(key=lambda row: (min(row["rank_a"], row["rank_b"]), row["rank_a"] + row["rank_b"]))
    return {
        "id": example.id,
        "source": example.source,
        "query": _cut(example.query),
        "instruction": None if example.instruction is None else _cut(example.instruction),
        "about": about,
        "threshold": threshold,
        "agreement": agreement,
        "flipping_lists": flipping,
        "lists": lists,
        "candidates": candidates[:MOST],
        "candidates_left_out": max(0, len(candidates) - MOST),
    }


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else text[: TEXT - 1] + "…"
