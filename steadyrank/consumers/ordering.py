"""Which candidate a consumer sees first: rankings of every presentation, with one written tie rule.

steady (default): equal scores keep canonical order, so that a scorer which scores alike under every presentation decides alike; but a
    presentation that scores *all* candidates alike ranks nothing, and they stand as they were listed. A constant scorer therefore decides
    by chance under shuffles, and is never taken for a steady one.
listed:           equal scores keep the order in which the presentation listed them, as a serving stack does.
canonical:        equal scores keep canonical order; `id`: the lower candidate id first (the published rule of response choice).
`steady` and `listed` read orders_PK; without it the listing is canonical order. How often ties decided is counted by the callers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrank.consumers.sets import scores_array
from steadyrank.errors import InputError, unknown_name

TIES = ("steady", "listed", "canonical", "id")


def rankings(scores_PK: Any, orders_PK: Any | None = None, *, ties: str = "steady", ids: Sequence[str] | None = None) -> np.ndarray:
    """rankings_PK: candidates of each presentation, best first."""
    if ties not in TIES:
        raise unknown_name("tie rule", ties, TIES)
    array_PK = scores_array(scores_PK)
    presentations, candidates = array_PK.shape
    canonical_PK = np.broadcast_to(np.arange(candidates), array_PK.shape)
    listed_PK = canonical_PK
    if orders_PK is not None:
        orders = np.asarray(orders_PK)
        if orders.shape != array_PK.shape or (orders.size and (np.sort(orders, 1) != np.arange(candidates)).any()):
            raise InputError(f"of shape {orders.shape} do not permute the candidates of scores {array_PK.shape}", field="orders_PK")
        listed_PK = np.argsort(orders, axis=1)
    if ties == "steady":
        place_PK = np.where(all_tied(array_PK)[:, None], listed_PK, canonical_PK)
    elif ties == "id":
        if ids is None or len(ids) != candidates:
            raise InputError("are needed for the tie rule 'id', one a candidate", field="ids")
        place_PK = np.broadcast_to(np.argsort(np.argsort(np.array(ids, dtype=str), kind="stable")), array_PK.shape)
    else:
        place_PK = listed_PK if ties == "listed" else canonical_PK
    return np.lexsort((place_PK, -array_PK), axis=-1)


def all_tied(scores_PK: np.ndarray) -> np.ndarray:
    """Which presentations score all of several candidates alike, [P]."""
    if scores_PK.shape[1] < 2:
        return np.zeros(len(scores_PK), dtype=bool)
    return (scores_PK == scores_PK[:, :1]).all(1)


def orders_of(orders: Sequence[Any] | None, place: int) -> Any | None:
    """The orders of one example, where they are known."""
    return None if orders is None else orders[place]


def check_lengths(scores: Sequence[Any], **others: Sequence[Any] | None) -> None:
    """Every list holds one entry an example."""
    for name, other in others.items():
        if other is not None and len(other) != len(scores):
            raise InputError(f"holds {len(other)} entries for {len(scores)} examples' scores", field=name)
