"""The preference consumer: from several responses pick the best one, and a (best, worst) pair to train a preference model on.

Decisions follow the tie rule of `consumers.ordering`; quality does not lean on it: where several candidates tie for best, the selected
quality is the mean over them, what a blind pick among them earns. Source: Frohmann et al. 2026, preference model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyrank.consumers.flips import flip_rate
from steadyrank.consumers.ordering import all_tied, check_lengths, orders_of, rankings
from steadyrank.consumers.results import ConsumerResult
from steadyrank.consumers.sets import scores_array
from steadyrank.errors import InputError
from steadyrank.records import RankingExample


@dataclass(frozen=True)
class PreferenceConsumer:
    """Picks the top response and the (top, bottom) pair of each presentation. ties: see `consumers.ordering`."""

    ties: str = "steady"

    def apply(self, scores: Sequence[Any], examples: Sequence[RankingExample], *, orders: Sequence[Any] | None = None) -> ConsumerResult:
        """One value an example; scores[n] is [P, K] canonical, orders[n] the orders it was laid in.

        top_flip, pair_flip:  chance that two presentations choose another response, another (top, bottom) pair; `*_modal` the other
        estimator. quality:              grade of the choice over the best grade of the pool, mean over presentations, in [0, 1].
        right:                share of presentations whose choice has the pool's best grade; ties give the share of the tied that have it.
        order_decides:        1 where some presentations choose a response of best grade and others do not, else 0.
        quality_range:        highest less lowest quality over presentations.
        pair_right:           share of presentations whose top has a higher grade than its bottom; a tie of grades counts half.
        chance:               the right share of a blind pick. All but the flips are nan without grades or without a grade above 0.
        An unjudged candidate (negative grade) counts as grade 0. A pool of one candidate has no choice: its flips are nan.
        """
        check_lengths(scores, examples=examples, orders=orders)
        rows, decisions = [], []
        counts = dict.fromkeys(("examples", "single", "ungraded", "unjudged_choices", "tied_tops", "all_tied", "presentations"), 0)
        for place, (one, example) in enumerate(zip(scores, examples, strict=True)):
            scores_PK = scores_array(one)
            if scores_PK.shape[1] != len(example.candidates):
                raise InputError(f"hold {scores_PK.shape[1]} scores for the candidates of example {example.id!r}", field="scores")
            ranked_PK = rankings(scores_PK, orders_of(orders, place), ties=self.ties, ids=example.candidate_ids)
            pairs = [(int(row[0]), int(row[-1])) for row in ranked_PK]
            is_best_PK = scores_PK == scores_PK.max(1, keepdims=True)
            counts["presentations"] += len(scores_PK)
            counts["tied_tops"] += int((is_best_PK.sum(1) > 1).sum())
            counts["all_tied"] += int(all_tied(scores_PK).sum())
            rows.append({**_flips(pairs, len(example.candidates), counts), **_graded(pairs, is_best_PK, example, counts)})
            decisions.append(tuple(pairs))
        counts["examples"] = len(rows)
        names = rows[0] if rows else {}
        return ConsumerResult(
            {"name": "preference", "ties": self.ties},
            tuple(example.id for example in examples),
            {name: np.array([row[name] for row in rows], dtype=np.float64) for name in names},
            counts,
            tuple(decisions),
        )


def _flips(pairs: list[tuple[int, int]], size: int, counts: dict[str, int]) -> dict[str, float]:
    if size < 2:
        counts["single"] += 1
        return dict.fromkeys(("top_flip", "pair_flip", "top_flip_modal", "pair_flip_modal"), float("nan"))
    tops = [top for top, _ in pairs]
    return {
        "top_flip": flip_rate(tops),
        "pair_flip": flip_rate(pairs),
        "top_flip_modal": flip_rate(tops, "modal"),
        "pair_flip_modal": flip_rate(pairs, "modal"),
    }


def _graded(pairs: list[tuple[int, int]], is_best_PK: np.ndarray, example: RankingExample, counts: dict[str, int]) -> dict[str, float]:
    names = ("quality", "right", "order_decides", "quality_range", "pair_right", "chance")
    grades_K = np.maximum(np.array(example.relevance or (0.0,)), 0.0)
    if example.relevance is None or not grades_K.max() > 0 or not pairs:
        counts["ungraded"] += 1
        return dict.fromkeys(names, float("nan"))
    counts["unjudged_choices"] += sum(example.relevance[top] < 0 for top, _ in pairs)
    is_right_K = grades_K == grades_K.max()
    tied_P = is_best_PK.sum(1)
    quality_P = (is_best_PK * grades_K).sum(1) / tied_P / grades_K.max()
    right_P = (is_best_PK & is_right_K).sum(1) / tied_P
    chosen_right = [bool(is_right_K[top]) for top, _ in pairs]
    above = [float(np.sign(grades_K[top] - grades_K[bottom])) for top, bottom in pairs]
    return {
        "quality": float(quality_P.mean()),
        "right": float(right_P.mean()),
        "order_decides": float(len(set(chosen_right)) > 1),
        "quality_range": float(quality_P.max() - quality_P.min()),
        "pair_right": float((np.mean(above) + 1) / 2) if len(grades_K) > 1 else float("nan"),
        "chance": float(is_right_K.mean()),
    }
