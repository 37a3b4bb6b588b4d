"""lambda: RankNet terms weighted by what a swap would change in nDCG (LambdaRank, Burges et al. 2006; LambdaLoss, Wang et al. 2018).

Ranks are those of the current scores, counted from 1, without gradient; discount 1 / log2(rank + 1); natural logarithm; pairs
summed over the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from steadyrank.metrics import normalised_gains
from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.ranknet import pair_gaps, pair_mask
from steadyrank.objectives.settings import RewardSettings, number
from steadyrank.policy import positions


@dataclass(frozen=True, kw_only=True)
class LambdaSettings(RewardSettings):
    """Settings of LambdaLoss."""

    weighting: Literal["lambdarank", "ndcg2", "ndcg2pp"] = "lambdarank"
    """lambdarank: |dG| |1/D_i - 1/D_j|; ndcg2: |dG| |1/D_|i-j| - 1/D_(|i-j|+1)|; ndcg2pp: their mixture, mu times ndcg2 plus lambdarank."""
    mu: float = number(10.0, low=0.0)
    """Weight of ndcg2 in ndcg2pp."""
    sigma: float = number(1.0, above=0.0)
    """Slope of the logistic."""


class LambdaLoss(Objective):
    """Pairs whose better member or worse member stands among the first k."""

    Settings = LambdaSettings
    settings: LambdaSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        relevance_BK = self.relevance(lists)
        gains_BK = normalised_gains(relevance_BK, lists.mask_BK, k=self.settings.k, gain=self.settings.gain).to(lists.scores_BK.dtype)
        rank_BK = ranks(lists.scores_BK, lists.mask_BK)
        best_BKK = torch.minimum(rank_BK[:, :, None], rank_BK[:, None, :])
        gap_BKK = pair_gaps(gains_BK)
        counted_BKK = (gap_BKK > 0) & pair_mask(lists.mask_BK) & (best_BKK <= self.settings.k)
        weight_BKK = torch.where(counted_BKK, gap_BKK * self._swap(rank_BK), 0.0)
        return {"lambda": (weight_BKK * softplus(-self.settings.sigma * pair_gaps(lists.scores_BK))).sum((-1, -2))}, {}

    def _swap(self, rank_BK: Tensor) -> Tensor:
        """How much the discount of a pair's places differs."""
        lambdarank_BKK = pair_gaps(1 / torch.log2(rank_BK + 1)).abs()
        if self.settings.weighting == "lambdarank":
            return lambdarank_BKK
        apart_BKK = pair_gaps(rank_BK).abs().clamp(min=1)
        ndcg2_BKK = (1 / torch.log2(apart_BKK + 1) - 1 / torch.log2(apart_BKK + 2)).abs()
        return ndcg2_BKK if self.settings.weighting == "ndcg2" else self.settings.mu * ndcg2_BKK + lambdarank_BKK


def ranks(scores_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """rank_BK from 1, as floats, without gradient; equal scores rank in their given order, padding last."""
    order_BK = torch.where(mask_BK, scores_BK.detach(), -torch.inf).argsort(dim=-1, descending=True, stable=True)
    return (positions(order_BK) + 1).to(scores_BK.dtype)
