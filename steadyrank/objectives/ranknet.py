"""a10, RankNet distillation (Burges et al. 2005): log(1 + exp(-sigma (s_i - s_j))) over pairs that the teacher orders i above j."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.settings import Settings, number


@dataclass(frozen=True, kw_only=True)
class RankNetSettings(Settings):
    """Settings of RankNet."""

    sigma: float = number(1.0, above=0.0)
    """Slope of the logistic."""
    margin: float = number(0.0, low=0.0)
    """Pairs count whose teacher utilities differ by more than this; ties never do."""
    weight: Literal["none", "difference"] = "none"
    """difference: a pair weighs as much as the teacher's utilities differ."""


class RankNet(Objective):
    """Mean logistic loss over the pairs; 0 where the teacher orders none."""

    Settings = RankNetSettings
    settings: RankNetSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        gap_BKK = pair_gaps(self.teacher(lists))
        weight_BKK = ((gap_BKK > self.settings.margin) & pair_mask(lists.mask_BK)).to(gap_BKK.dtype)
        if self.settings.weight == "difference":
            weight_BKK = weight_BKK * gap_BKK
        loss_BKK = softplus(-self.settings.sigma * pair_gaps(lists.scores_BK))
        norm_B = weight_BKK.sum((-1, -2))
        loss_B = (weight_BKK * loss_BKK).sum((-1, -2)) / norm_B.where(norm_B > 0, 1.0)
        return {"ranknet": loss_B}, {}


def pair_gaps(values_BK: Tensor) -> Tensor:
    """gap_BKK[i, j] = value_i - value_j."""
    return values_BK[:, :, None] - values_BK[:, None, :]


def pair_mask(mask_BK: Tensor) -> Tensor:
    """True where both of a pair are candidates."""
    return torch.logical_and(mask_BK[:, :, None], mask_BK[:, None, :])
