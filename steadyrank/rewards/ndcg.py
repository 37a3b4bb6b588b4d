"""The reward of a ranking: nDCG@k under teacher or gold relevance, optionally mapped to [worst, best] of its list (`regret`)."""

from __future__ import annotations

import torch
from torch import Tensor

from steadyrank.metrics import discounts, ndcg, normalised_gains


def ndcg_reward(
    rankings_BGK: Tensor, relevance_BK: Tensor, mask_BK: Tensor, *, k: int, gain: str = "exponential", regret: bool = False
) -> Tensor:
    """rewards_BG in [0, 1].

    A random order is worth .80 for three candidates and .52 for eighteen, so lists of different sizes pay on different scales.
    regret: (r - worst) / (best - worst) instead, 0 for every ranking of a list whose best and worst are equal.
    """
    rewards_BG = ndcg(rankings_BGK, relevance_BK, mask_BK, k=k, gain=gain)
    if not regret:
        return rewards_BG
    worst_B1 = worst_ndcg(relevance_BK, mask_BK, k=k, gain=gain)[:, None]
    best_B1 = (normalised_gains(relevance_BK, mask_BK, k=k, gain=gain).sum(-1, keepdim=True) > 0).to(rewards_BG.dtype)
    span_B1 = best_B1 - worst_B1
    return torch.where(span_B1 > 1e-7, (rewards_BG - worst_B1) / span_B1.where(span_B1 > 1e-7, 1.0), 0.0)


def worst_ndcg(relevance_BK: Tensor, mask_BK: Tensor, *, k: int, gain: str = "exponential") -> Tensor:
    """worst_B: nDCG@k of the worst order, the lowest gains first."""
    gains_BK = normalised_gains(relevance_BK, mask_BK, k=k, gain=gain)
    ascending_BK = torch.where(mask_BK, gains_BK, torch.inf).sort(dim=-1).values
    depth = min(k, gains_BK.shape[-1])
    lowest_BD = ascending_BK[:, :depth]
    return (lowest_BD.where(lowest_BD.isfinite(), 0.0) * discounts(depth, gains_BK)).sum(-1)
