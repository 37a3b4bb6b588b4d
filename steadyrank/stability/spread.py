"""How far scores and ranks of one example move over presentations: variances, top-k turnover, tie rate; and rank correlation of measures.

Each takes scores_PK (one row a presentation, canonical order) and is 0 for a scorer that presentations cannot move. None of them sees
whether that scorer is any good: a constant scorer has variance 0, so read `tie_rate` and quality beside them. Source: Frohmann et al.
2026, appendix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrank.errors import ConfigError, InputError, unknown_name
from steadyrank.stability.arrays import centred, orders_array, places_array, scores_array
from steadyrank.stability.psi import untied


def score_variance(scores_PK: Any) -> float:
    """Population variance over presentations, mean over candidates, in squared score units; nan without scores."""
    array_PK = scores_array(scores_PK)
    return float((centred(array_PK) ** 2).mean()) if array_PK.size else float("nan")


def residual_rmse(scores_PK: Any) -> float:
    """Spread over presentations in units of the spread within one; free of the score's scale and of shifts of whole presentations.

    sqrt(variance over presentations of scores less their presentation's mean / variance of scores within a presentation); nan where every
    presentation scores all candidates alike.
    """
    array_PK = scores_array(scores_PK)
    if not array_PK.size:
        return float("nan")
    within_PK = array_PK - array_PK[:, :1]
    within_PK = within_PK - within_PK.mean(1, keepdims=True)
    spread = float((within_PK**2).mean())
    return float(np.sqrt((centred(within_PK) ** 2).mean() / spread)) if spread > 0 else float("nan")


def rank_variance(scores_PK: Any, *, ties: str = "average") -> float:
    """Population variance of each candidate's rank over presentations, mean over candidates, in squared ranks.

    ties: "average" gives tied candidates their mean rank; "a_listed" ranks them by canonical order, the published form.
    """
    array_PK = scores_array(scores_PK)
    if not array_PK.size:
        return float("nan")
    return float((centred(ranks(array_PK, ties=ties)) ** 2).mean())


def ranks(scores_PK: np.ndarray, *, ties: str = "average") -> np.ndarray:
    """Rank from 0, best first, of each candidate in its row."""
    if ties == "a_listed":
        return -untied(scores_PK)
    if ties != "average":
        raise unknown_name("tie rule", ties, ("average", "a_listed"))
    above_PK = (scores_PK[:, None, :] > scores_PK[:, :, None]).sum(2)
    alike_PK = (scores_PK[:, None, :] == scores_PK[:, :, None]).sum(2)
    return above_PK + (alike_PK - 1) / 2


def top_k_turnover(scores_PK: Any, k: int, *, orders_PK: Any | None = None, count: str = "sets") -> float:
    """How often two presentations pick another top k, in [0, 1]; nan for one presentation, 0 by definition where k covers the pool.

    count: "sets" is the share of presentation pairs whose top-k sets differ at all (with two presentations and a mean over queries this is
    the published turnover); "members" is the mean share of the top k that the other presentation does not pick.
    Ties at the cut fall to the candidate listed earlier: by `orders_PK` where given, as a serving stack does; else by canonical order,
    under which a constant scorer never turns over.
    """
    array_PK = scores_array(scores_PK)
    if k < 1:
        raise ConfigError(f"k is {k}; it must be at least 1")
    if count not in ("sets", "members"):
        raise unknown_name("count of turnover", count, ("sets", "members"))
    presentations, candidates = array_PK.shape
    if presentations < 2 or not candidates:
        return float("nan")
    laid = None if orders_PK is None else orders_array(orders_PK, array_PK.shape)
    top_PK = (-untied(array_PK, laid) < k).astype(np.float64)
    first, second = np.triu_indices(presentations, 1)
    lost = 1 - (top_PK @ top_PK.T)[first, second] / min(k, candidates)
    return float((lost > 0).mean() if count == "sets" else lost.mean())


def tie_rate(scores_PK: Any) -> float:
    """Share of candidate pairs with exactly equal scores, mean over presentations, in [0, 1]; nan for fewer than two candidates."""
    array_PK = scores_array(scores_PK)
    candidates = array_PK.shape[1]
    if candidates < 2 or not len(array_PK):
        return float("nan")
    left, right = np.triu_indices(candidates, 1)
    return float((array_PK[:, left] == array_PK[:, right]).mean())


def slot_residual_rms(scores_PK: Any, orders_PK: Any, width: int, *, windows: str | None = None) -> float:
    """Root mean square of one example's slot effects, in score units; noise adds to it, so prefer `slot_profile` over many examples."""
    from steadyrank.stability.decomposition import decompose

    return decompose(scores_PK, orders_PK, width, windows=windows).slot_rms


def survivors_after_drop(size: int, dropped: int) -> list[tuple[int, int]]:
    """(place in the pool, place in the pool without `dropped`) of every candidate left, for `pool_psi`."""
    _check_place(size, dropped)
    return [(place, place - (place > dropped)) for place in range(size) if place != dropped]


def survivors_after_replace(size: int, replaced: int) -> list[tuple[int, int]]:
    """(place, place) of every candidate but the one whose place another took, for `pool_psi`."""
    _check_place(size, replaced)
    return [(place, place) for place in range(size) if place != replaced]


def placement_variance(orders_PK: Any) -> float:
    """Population variance of each candidate's place over presentations, mean over candidates: how hard the presentations shuffled."""
    array_PK = np.asarray(orders_PK)
    return float(places_array(orders_array(array_PK, array_PK.shape)).var(0).mean())


def spearman(a_N: Sequence[float], b_N: Sequence[float]) -> float:
    """Spearman's correlation with average ranks (decoupling: 1 - Jaccard against tau-PSI); pairs with a nan are left out.

    nan for fewer than three pairs, or where one side is constant.
    """
    a, b = np.asarray(a_N, dtype=np.float64), np.asarray(b_N, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"have shapes {a.shape} and {b.shape}; give two lists of equal length", field="values")
    kept = ~(np.isnan(a) | np.isnan(b))
    if kept.sum() < 3:
        return float("nan")
    ranked = [ranks_of(one[kept]) for one in (a, b)]
    x, y = (one - one.mean() for one in ranked)
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else float("nan")


def ranks_of(values_N: np.ndarray) -> np.ndarray:
    """Average ranks from 0, lowest first."""
    _, place_N, count = np.unique(values_N, return_inverse=True, return_counts=True)
    first = np.cumsum(count) - count
    return (first + (count - 1) / 2)[place_N]


def _check_place(size: int, place: int) -> None:
    if not 0 <= place < size:
        raise InputError(f"is {place}, outside a pool of {size}", field="place")
