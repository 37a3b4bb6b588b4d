"""Scores and orders at the door of the room: shapes and finiteness are checked here once. No measure stands here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from steadyrank.errors import InputError, NonFiniteScoreError

CELLS = 4_000_000  # cells of one chunk of a vectorised measure


def scores_array(scores_PK: Any, *, field: str = "scores_PK") -> np.ndarray:
    """float64 scores [P, K]: one row a presentation, canonical order; anything else, and a NaN or infinite score, raises."""
    array_PK = np.asarray(scores_PK, dtype=np.float64)
    if array_PK.ndim != 2:
        raise InputError(f"has shape {array_PK.shape}; give one row of scores a presentation, [P, K]", field=field)
    if not np.isfinite(array_PK).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array_PK))[0])
        raise NonFiniteScoreError(f"is {array_PK[place]}; such a score is never ranked", field=f"{field}{list(place)}")
    return array_PK


def orders_array(orders_PK: Any, shape: tuple[int, ...], *, field: str = "orders_PK") -> np.ndarray:
    """Orders [P, K]: `orders[p, j]` is the candidate at place j; each row must be a permutation of the candidates."""
    array_PK = np.asarray(orders_PK)
    if array_PK.shape != tuple(shape):
        raise InputError(f"has shape {array_PK.shape} beside scores of shape {tuple(shape)}; give one order a presentation", field=field)
    if array_PK.size and not (np.issubdtype(array_PK.dtype, np.integer) and (np.sort(array_PK, 1) == np.arange(shape[1])).all()):
        raise InputError(f"holds a row that is no permutation of 0..{shape[1] - 1}; give the candidate at each place", field=field)
    return array_PK.astype(np.int64)


def places_array(orders_PK: np.ndarray) -> np.ndarray:
    """The place of each candidate, [P, K] in canonical order: the inverse of each row."""
    return np.argsort(orders_PK, axis=-1)


def centred(scores_PK: np.ndarray) -> np.ndarray:
    """Scores less each candidate's mean over presentations; exactly zero where all presentations agree, whatever rounding does."""
    apart_PK = scores_PK - scores_PK[..., :1, :]
    return apart_PK - apart_PK.mean(-2, keepdims=True)


def stacks(lists: Sequence[np.ndarray], *, cells_of_one: int | None = None) -> Iterator[tuple[list[int], np.ndarray]]:
    """(places, stack) of equally shaped arrays, a bounded number at a time: ragged collections without padding."""
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for place, array in enumerate(lists):
        by_shape.setdefault(array.shape, []).append(place)
    for shape, places in by_shape.items():
        cells = cells_of_one or shape[0] * max(1, shape[1] * (shape[1] - 1) // 2)
        step = max(1, CELLS // max(1, cells))
        for start in range(0, len(places), step):
            chunk = places[start : start + step]
            yield chunk, np.stack([lists[place] for place in chunk])
