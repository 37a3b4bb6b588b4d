"""Scored lists put side by side: one array of scores and orders for every example, and a count of what had to stay out.

First-stage order. A scored list without an order was laid in canonical order. Where an example has one such list beside at least two
with an order, it is the first-stage presentation and no part of the shuffled ones. Where no list has an order the lists are still compared
with each other, but nothing can be said about slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from steadyrank.data.presenting import parse_windows
from steadyrank.errors import InputError
from steadyrank.records import RankingExample, ScoredList


@dataclass(frozen=True, slots=True)
class Shown:
    """One example under its presentations.

    scores_PK: canonical order. orders_PK: `orders[p, j]` is the candidate at place j; None where the lists do not say.
    first_K:   scores in first-stage order; None where it was not scored.
    windows:   the rule that cut the orders into prompts; None where the lists do not say.
    """

    example: RankingExample
    scores_PK: np.ndarray
    orders_PK: np.ndarray | None
    first_K: np.ndarray | None
    windows: str | None = None

    @property
    def has_grades(self) -> bool:
        return self.example.relevance is not None

    @property
    def grades(self) -> tuple[float, ...]:
        """Relevance; only where `has_grades`."""
        assert self.example.relevance is not None
        return self.example.relevance


def gather(scored: Iterable[ScoredList], examples: Sequence[RankingExample]) -> tuple[list[Shown], dict[str, int]]:
    """(one `Shown` an example that has at least two presentations, counts of lists, cut and empty texts and what was left out)."""
    by_id: dict[str, list[ScoredList]] = {}
    for item in scored:
        by_id.setdefault(item.example_id, []).append(item)
    counts: Counter[str] = Counter(unscored=0, single_presentation=0, truncated=0, empty=0, tied_lists=0, repeated_orders=0)
    out = []
    for example in examples:
        lists = by_id.pop(example.id, [])
        counts["scored_lists"] += len(lists)
        counts["truncated"] += sum(len(item.truncated) for item in lists)
        counts["empty"] += sum(len(item.empty) for item in lists)
        if not lists:
            counts["unscored"] += 1
            continue
        _check(example, lists)
        shown = _shown(example, lists)
        if len(shown.scores_PK) < 2:
            counts["single_presentation"] += 1
            continue
        counts["tied_lists"] += sum(len(set(row)) < len(row) for row in shown.scores_PK.tolist())
        if shown.orders_PK is not None:
            counts["repeated_orders"] += len(shown.orders_PK) - len({tuple(row) for row in shown.orders_PK.tolist()})
        out.append(shown)
    counts["without_example"] = sum(len(lists) for lists in by_id.values())
    return out, dict(counts)


def _check(example: RankingExample, lists: Sequence[ScoredList]) -> None:
    for item in lists:
        if len(item.scores) != len(example.candidates):
            raise InputError(
                f"of example {example.id!r} holds {len(item.scores)} scores for {len(example.candidates)} candidates; "
                "give the scores of these very lists",
                field="scores",
            )
    if len({(item.scorer, item.scale) for item in lists}) > 1:
        names = sorted({item.scorer for item in lists})
        raise InputError(f"example {example.id!r} was scored by {' and '.join(names)}; an audit reads one scorer", field="scorer")


def _shown(example: RankingExample, lists: Sequence[ScoredList]) -> Shown:
    laid = [item for item in lists if item.presentation.order is not None]
    unlaid = [item for item in lists if item.presentation.order is None]
    first = np.asarray(unlaid[0].scores) if len(unlaid) == 1 else None
    shuffled = laid if len(unlaid) <= 1 and len(laid) >= 2 else list(lists)
    orders = None
    if all(item.presentation.order is not None for item in shuffled):
        orders = np.array([item.presentation.order for item in shuffled])
    windows = {item.presentation.windows for item in shuffled}
    return Shown(example, np.array([item.scores for item in shuffled]), orders, first, windows.pop() if len(windows) == 1 else None)


def width_of(shown: Shown, windows: str | None) -> tuple[int, str | None]:
    """(candidates of one prompt, window rule): as the lists say, else the scorer; else the whole pool is one prompt."""
    text = shown.windows or windows
    if text is None:
        return len(shown.example.candidates), None
    return parse_windows(text).width, text
