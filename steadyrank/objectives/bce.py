"""a7, supervised: binary cross-entropy on gold labels, candidate by candidate, mean over the judged candidates of a list.

A negative grade means unjudged and is left out; it is not a negative example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.settings import Settings, number


@dataclass(frozen=True, kw_only=True)
class BceSettings(Settings):
    """Settings of supervised cross-entropy."""

    labels: Literal["scaled", "binary"] = "scaled"
    """scaled: grade over the highest grade; binary: grade above 0."""
    max_grade: float = number(0.0, low=0.0)
    """The highest grade of the scale; 0 takes the highest of each list."""


class Bce(Objective):
    """Binary cross-entropy of sigmoid(score) with the label; lists without a positive do not count, as in a6."""

    Settings = BceSettings
    settings: BceSettings
    target = "gold"
    positives_only = True

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        judged_BK = lists.mask_BK & (lists.targets_BK >= 0)
        labels_BK = torch.where(judged_BK, lists.targets_BK, 0.0)
        if self.settings.labels == "binary":
            labels_BK = (labels_BK > 0).to(labels_BK.dtype)
        else:
            top_B1 = labels_BK.amax(-1, keepdim=True) if not self.settings.max_grade else labels_BK.new_tensor(self.settings.max_grade)
            labels_BK = (labels_BK / top_B1.where(top_B1 > 0, 1.0)).clamp(max=1)
        loss_BK = binary_cross_entropy_with_logits(lists.scores_BK, labels_BK, reduction="none")
        loss_B = torch.where(judged_BK, loss_BK, 0.0).sum(-1) / judged_BK.sum(-1).clamp(min=1)
        return {"bce": loss_B}, {}
