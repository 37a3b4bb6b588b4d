"""margin_mse: squared difference of student and teacher margins, ((s_i - s_j) - (t_i - t_j))^2   (Hofstaetter et al. 2020),
mean over pairs.

Margins need utilities: probabilities must be turned to logits first (`steadyrank.rewards.logit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.ranknet import pair_gaps, pair_mask
from steadyrank.objectives.settings import Settings


@dataclass(frozen=True, kw_only=True)
class MarginMseSettings(Settings):
    """Settings of MarginMSE."""

    pairs: Literal["all", "top"] = "all"
    """All pairs, or the teacher's best candidate against each that it scores lower."""


class MarginMse(Objective):
    """Mean squared difference of margins."""

    Settings = MarginMseSettings
    settings: MarginMseSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        teacher_BK = self.teacher(lists)
        margins_BKK = pair_gaps(teacher_BK)
        if self.settings.pairs == "all":
            # each pair once in each direction: the square is the same, the mean too
            own_KK = torch.eye(margins_BKK.shape[-1], dtype=torch.bool, device=margins_BKK.device)
            counted_BKK = pair_mask(lists.mask_BK) & ~own_KK
        else:
            top_B1 = torch.where(lists.mask_BK, teacher_BK, -torch.inf).amax(-1, keepdim=True)
            counted_BKK = pair_mask(lists.mask_BK) & (teacher_BK == top_B1)[:, :, None] & (margins_BKK > 0)
        square_BKK = torch.where(counted_BKK, (pair_gaps(lists.scores_BK) - margins_BKK).square(), 0.0)
        return {"margin_mse": square_BKK.sum((-1, -2)) / counted_BKK.sum((-1, -2)).clamp(min=1)}, {}
