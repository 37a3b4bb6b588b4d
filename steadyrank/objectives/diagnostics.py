"""What is logged at every step, beside the loss: how sure the policy is, how wide its scores are, how far it is from its teacher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from steadyrank.objectives.terms import first_choice_entropy, first_choice_kl
from steadyrank.policy.plackett_luce import masked_log_softmax

if TYPE_CHECKING:
    from steadyrank.objectives.base import Lists


@torch.no_grad()
def of_lists(lists: Lists, likeness: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Per-list values: score_spread (population std), argmax_probability and policy_entropy of the first choice, KL to each of
    `likeness`."""
    scores_BK, mask_BK = lists.scores_BK.detach(), lists.mask_BK
    size_B = mask_BK.sum(-1).clamp(min=1)
    gap_BK = torch.where(mask_BK, scores_BK - (scores_BK.sum(-1) / size_B)[:, None], 0.0)
    out = {
        "score_spread": (gap_BK.square().sum(-1) / size_B).sqrt(),
        "argmax_probability": torch.where(mask_BK, masked_log_softmax(scores_BK, mask_BK).exp(), 0.0).amax(-1),
        "policy_entropy": first_choice_entropy(scores_BK, mask_BK),
    }
    return out | {name: first_choice_kl(scores_BK, other_BK, mask_BK) for name, other_BK in likeness.items()}


def summed(values: Mapping[str, Tensor], live_B: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """name -> (detached sum over live lists, their count)."""
    count = live_B.sum()
    return {name: (torch.where(live_B, value_B.detach(), 0.0).sum(), count) for name, value_B in values.items()}
