"""approx_ndcg: minus nDCG with soft ranks 1 + sum_{j != i} sigmoid(alpha (s_j - s_i))   (Qin, Liu & Li 2010; Bruch et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from steadyrank.metrics import normalised_gains
from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.ranknet import pair_gaps, pair_mask
from steadyrank.objectives.settings import RewardSettings, number


@dataclass(frozen=True, kw_only=True)
class ApproxNdcgSettings(RewardSettings):
    """Settings of ApproxNDCG; `k` is read with `full: false` only."""

    alpha: float = number(10.0, above=0.0)
    """Sharpness of the soft ranks; large is near the true ranks and flat."""
    full: bool = True
    """nDCG of the whole list, as published; otherwise gains fade out beyond rank k by a sigmoid of the same sharpness."""


class ApproxNdcg(Objective):
    """Minus the soft nDCG."""

    Settings = ApproxNdcgSettings
    settings: ApproxNdcgSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        setting = self.settings
        k = max(1, lists.mask_BK.shape[-1]) if setting.full else setting.k
        gains_BK = normalised_gains(self.relevance(lists), lists.mask_BK, k=k, gain=setting.gain).to(lists.scores_BK.dtype)
        rank_BK = soft_ranks(lists.scores_BK, lists.mask_BK, alpha=setting.alpha)
        worth_BK = gains_BK / torch.log2(1 + rank_BK)
        if not setting.full:
            worth_BK = worth_BK * torch.sigmoid(setting.alpha * (setting.k + 0.5 - rank_BK))
        return {"approx_ndcg": -torch.where(lists.mask_BK, worth_BK, 0.0).sum(-1)}, {}


def soft_ranks(scores_BK: Tensor, mask_BK: Tensor, *, alpha: float) -> Tensor:
    """rank_BK from 1, differentiable."""
    above_BKK = torch.where(pair_mask(mask_BK), torch.sigmoid(-alpha * pair_gaps(scores_BK)), 0.0)
    return 1 + above_BKK.sum(-1) - torch.where(mask_BK, 0.5, 0.0)  # less the candidate itself
