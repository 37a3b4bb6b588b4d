"""Companion coupling, measured directly: a candidate keeps its slot and its window while the others change.

Two presentations under which a candidate stands in the same slot of the same window can differ for it in nothing but its companions. Half
the mean squared difference of its scores over such pairs is the variance that companions cause. Pairs are told apart by what changed:

    coupling     other candidates share the window (which candidates, and in which slots)
    arrangement  the same candidates share it, in other slots
    noise        the same prompt again: batching and sampling noise of the scorer; 0 for a deterministic one

`identity` = coupling - arrangement is what the companions' identity adds to their order, `net` = coupling - noise. Kinds without a pair
are nan and their pair count is 0. Random shuffles hold few such pairs; `swap_orders` lays presentations in which one target always keeps
its place.

Unlike the remainder of `decompose` this is no upper bound: slot and window effects cancel in every pair, with whatever candidate they
interact. Under `sliding` windows the first window of a candidate decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyrank import seeds
from steadyrank.errors import InputError
from steadyrank.stability.arrays import orders_array, scores_array
from steadyrank.stability.decomposition import layout

_KINDS = ("coupling", "arrangement", "noise")


@dataclass(frozen=True, slots=True)
class CompanionSwap:
    """Variances in squared score units; nan for a kind without a pair. pairs: matched pairs of (coupling, arrangement, noise)."""

    coupling: float
    arrangement: float
    noise: float
    pairs: tuple[int, int, int]

    @property
    def identity(self) -> float:
        """What the identity of companions adds to their order; nan where either is."""
        return self.coupling - self.arrangement

    @property
    def net(self) -> float:
        """Coupling less noise; where no prompt was repeated, coupling itself."""
        return self.coupling - (self.noise if self.pairs[2] else 0.0)

    def to_json(self) -> dict[str, Any]:
        """Plain values; nan becomes None."""
        values = {name: getattr(self, name) for name in (*_KINDS, "identity", "net")}
        return {
            **{name: None if np.isnan(value) else value for name, value in values.items()},
            "pairs": dict(zip(_KINDS, self.pairs, strict=True)),
        }


def companion_swap(
    scores: Sequence[Any], orders: Sequence[Any], width: int, *, windows: str | None = None, targets: Sequence[int | None] | None = None
) -> CompanionSwap:
    """Coupling over all matched pairs of all examples.

    scores[n] is [P, K], canonical order; orders[n] the orders they were laid in; targets[n] reads one candidate only, None reads all.
    """
    sums, pairs = np.zeros(3), np.zeros(3, dtype=int)
    if targets is not None and len(targets) != len(scores):
        raise InputError(f"holds {len(targets)} for {len(scores)} examples; give one an example, or None", field="targets")
    for place, (one, laid) in enumerate(zip(scores, orders, strict=True)):
        scores_PK = scores_array(one, field=f"scores[{place}]")
        slot_PK, window_PK = layout(orders_array(laid, scores_PK.shape, field=f"orders[{place}]"), width, windows)
        more, found = _matched(scores_PK, slot_PK, window_PK, None if targets is None else targets[place])
        sums, pairs = sums + more, pairs + found
    values = [float(total / count) if count else float("nan") for total, count in zip(sums, pairs, strict=True)]
    return CompanionSwap(values[0], values[1], values[2], (int(pairs[0]), int(pairs[1]), int(pairs[2])))


def swap_orders(size: int, count: int, *, target: int, place: int | None = None, seed: int, example_id: str) -> np.ndarray:
    """`count` orders [count, size] in which `target` always stands at `place` (by default its canonical one), all others shuffled."""
    place = target if place is None else place
    if not (0 <= target < size and 0 <= place < size):
        raise InputError(f"are {target} and {place}, outside a pool of {size}", field="target, place")
    others = np.array([candidate for candidate in range(size) if candidate != target], dtype=np.int64)
    rows = [seeds.stream(seed, "companions", example_id, target, index).permutation(others) for index in range(count)]
    return np.array([np.insert(row, place, target) for row in rows], dtype=np.int64).reshape(count, size)


def _matched(scores_PK: np.ndarray, slot_PK: np.ndarray, window_PK: np.ndarray, target: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Sums of half squared differences and counts of pairs, by kind."""
    presentations = len(scores_PK)
    sums, pairs = np.zeros(3), np.zeros(3, dtype=int)
    together_PKK = window_PK[:, :, None] == window_PK[:, None, :]
    for first in range(presentations):
        for second in range(first + 1, presentations):
            is_held_K = (slot_PK[first] == slot_PK[second]) & (window_PK[first] == window_PK[second])
            if target is not None:
                is_held_K &= np.arange(len(is_held_K)) == target
            if not is_held_K.any():
                continue
            is_same_set_K = (together_PKK[first] == together_PKK[second]).all(1)
            has_moved_K = (slot_PK[first] != slot_PK[second])[None, :]
            is_rearranged_K = is_same_set_K & (together_PKK[first] & has_moved_K).any(1)
            half_K = (scores_PK[first] - scores_PK[second]) ** 2 / 2
            for kind, chosen_K in enumerate((~is_same_set_K, is_rearranged_K, is_same_set_K & ~is_rearranged_K)):
                chosen_K = chosen_K & is_held_K
                sums[kind] += half_K[chosen_K].sum()
                pairs[kind] += int(chosen_K.sum())
    return sums, pairs
