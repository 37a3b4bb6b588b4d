"""a9, on-policy generalised distillation (Agarwal et al. 2024) over rankings: no reward.

The vocabulary is what is left of the list, the sequence a ranking drawn by the student. At each of the first min(k, n - 1) places the
Jensen-Shannon divergence between the student's and the teacher's next choice, mean over places and rankings. No gradient flows
through sampling.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.settings import Settings, number
from steadyrank.objectives.terms import jensen_shannon
from steadyrank.policy import next_choice, rank_with_noise


@dataclass(frozen=True, kw_only=True)
class GkdSettings(Settings):
    """Settings of on-policy distillation."""

    num_samples: int = number(8, low=1)
    """Rankings a list; they are not compared, so one is enough."""
    k: int = number(6, low=1)
    """Places along which the next choices are compared."""
    beta: float = number(0.5, low=0.0, high=1.0)
    """Weight of the teacher in the mixture; 0 is KL(teacher || student), 1 is KL(student || teacher)."""
    temperature: float = number(1.0, above=0.0)
    """Divides both sides' utilities, in sampling and comparing."""


class Gkd(Objective):
    """Jensen-Shannon divergence of next choices along the student's own rankings."""

    Settings = GkdSettings
    settings: GkdSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        assert lists.noise_BGK is not None
        rankings_BGK = rank_with_noise(lists.scores_BK, lists.mask_BK, lists.noise_BGK, temperature=self.settings.temperature)
        return {"gkd": along(lists.scores_BK, self.teacher(lists), rankings_BGK, lists.mask_BK, setting=self.settings)}, {}


def along(scores_BK: Tensor, teacher_BK: Tensor, rankings_BGK: Tensor, mask_BK: Tensor, *, setting: GkdSettings) -> Tensor:
    """gkd_B along given rankings."""
    depth, heat = setting.k, setting.temperature
    logs_BGDK, open_BGDK = next_choice(scores_BK, rankings_BGK, mask_BK, depth=depth, temperature=heat)
    logt_BGDK, _ = next_choice(teacher_BK, rankings_BGK, mask_BK, depth=depth, temperature=heat)
    jsd_BGD = jensen_shannon(logs_BGDK, logt_BGDK, open_BGDK, beta=setting.beta)
    # the last place of a list offers no choice and is not counted
    choice_BGD = open_BGDK.sum(-1) > 1
    return torch.where(choice_BGD, jsd_BGD, 0.0).sum((-1, -2)) / choice_BGD.sum((-1, -2)).clamp(min=1)
