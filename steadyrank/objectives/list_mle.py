"""list_mle: -log PL(s; the teacher's order)   (ListMLE, Xia et al. 2008; position weights: p-ListMLE, Lan et al. 2014).

Candidates that the teacher ties are ordered by the student's own scores, the likeliest of the orders that agree with the teacher.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.settings import Settings, number
from steadyrank.policy import choice_log_probs


@dataclass(frozen=True, kw_only=True)
class ListMleSettings(Settings):
    """Settings of ListMLE."""

    k: int = number(0, low=0)
    """Places that count; 0 is all."""
    position_weights: bool = False
    """p-ListMLE: place i counts 2^(n - i) - 1, i from 1, over their sum (three candidates: .75, .25, 0)."""


class ListMle(Objective):
    """Negative log-likelihood of the teacher's order."""

    Settings = ListMleSettings
    settings: ListMleSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        order_BK = teacher_order(lists.targets_BK, lists.scores_BK, lists.mask_BK)
        logp_BD = choice_log_probs(lists.scores_BK, order_BK[:, None, :], lists.mask_BK, depth=self.settings.k or None)[:, 0]
        if self.settings.position_weights:
            logp_BD = logp_BD * position_weights(lists.mask_BK, logp_BD)
        return {"list_mle": -logp_BD.sum(-1)}, {}


def teacher_order(targets_BK: Tensor, scores_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """order_BK, best first: by target, then by score, then as given; padding last."""
    by_score_BK = scores_BK.detach().argsort(dim=-1, descending=True, stable=True)
    targets_BK = torch.where(mask_BK, targets_BK, -torch.inf).gather(-1, by_score_BK)
    return by_score_BK.gather(-1, targets_BK.argsort(dim=-1, descending=True, stable=True))


def position_weights(mask_BK: Tensor, like_BD: Tensor) -> Tensor:
    """weight_BD = 2^(n - i) - 1 for i = 1, 2, ..., divided by their sum over the list."""
    places_K = torch.arange(mask_BK.shape[-1], device=mask_BK.device) + 1
    exponent_BK = (mask_BK.sum(-1, keepdim=True) - places_K).clamp(min=0)
    # over the largest, so that a list of thousands does not overflow
    top_B1 = exponent_BK[:, :1]
    weight_BK = torch.exp2((exponent_BK - top_B1).to(like_BD.dtype)) - torch.exp2(-top_B1.to(like_BD.dtype))
    total_B1 = weight_BK.sum(-1, keepdim=True)
    return (weight_BK / total_B1.where(total_B1 > 0, 1.0))[:, : like_BD.shape[-1]]
