"""placement: every placed candidate is credited with what its own place and those after it earned, instead of one reward a ranking.

`pl_rank` is PL-Rank-1 (Oosterhuis, SIGIR 2021): with PR_k the reward from place k on and P_k(d) the chance of d at place k,

    dE/ds_d = E[ PR_rank(d) - sum_{k <= min(rank(d), K)} P_k(d) PR_k ]

with gains centred in their list, which changes nothing in expectation because all min(k, n) places are always filled, and much in variance.
`reward_to_go` is the score-function form with a leave-one-out baseline at every place. KL and entropy terms are a3's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from steadyrank.metrics import discounts, normalised_gains
from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.exact import regularisers
from steadyrank.objectives.settings import SampledSettings
from steadyrank.policy import choice_log_probs, next_choice, positions, rank_with_noise
from steadyrank.rewards import is_flat


@dataclass(frozen=True, kw_only=True)
class PlacementSettings(SampledSettings):
    """Settings of per-place credit."""

    credit: Literal["pl_rank", "reward_to_go"] = "pl_rank"
    """Which estimator of the same gradient."""
    centred: bool = True
    """Subtract the list's mean gain (pl_rank) or the other rankings' reward-to-go (reward_to_go)."""


class Placement(Objective):
    """Unbiased for the gradient of `exact`. Its value is minus the mean reward of the sampled rankings."""

    Settings = PlacementSettings
    settings: PlacementSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        setting = self.settings
        assert lists.noise_BGK is not None
        rankings_BGK = rank_with_noise(lists.scores_BK, lists.mask_BK, lists.noise_BGK, temperature=setting.temperature)
        gains_BK = normalised_gains(self.relevance(lists), lists.mask_BK, k=setting.k, gain=setting.gain).to(lists.scores_BK.dtype)
        rewards_BG = self._to_go(gains_BK, rankings_BGK)[..., 0]
        surrogate_B = (
            self._pl_rank(lists, gains_BK, rankings_BGK) if setting.credit == "pl_rank" else self._score(lists, gains_BK, rankings_BGK)
        )
        policy_B = surrogate_B - (surrogate_B + rewards_BG.mean(-1)).detach()
        logged = {"reward": rewards_BG.mean(-1), "reward_std": rewards_BG.std(-1, correction=0)}
        logged["flat_groups"] = is_flat(rewards_BG).to(rewards_BG.dtype)
        return {"policy": policy_B} | regularisers(self, lists), logged

    def _to_go(self, gains_BK: Tensor, rankings_BGK: Tensor) -> Tensor:
        """togo_BGD: discounted gains of this place and those after it, among the first k."""
        depth = min(self.settings.k, gains_BK.shape[-1])
        placed_BGD = torch.take_along_dim(gains_BK[:, None, :], rankings_BGK[..., :depth], dim=-1) * discounts(depth, gains_BK)
        return placed_BGD.flip(-1).cumsum(-1).flip(-1)

    def _pl_rank(self, lists: Lists, gains_BK: Tensor, rankings_BGK: Tensor) -> Tensor:
        if self.settings.centred:
            mean_B1 = gains_BK.sum(-1, keepdim=True) / lists.mask_BK.sum(-1, keepdim=True).clamp(min=1)
            gains_BK = torch.where(lists.mask_BK, gains_BK - mean_B1, 0.0)
        togo_BGD = self._to_go(gains_BK, rankings_BGK)
        depth = togo_BGD.shape[-1]
        logp_BGDK, open_BGDK = next_choice(
            lists.scores_BK.detach(), rankings_BGK, lists.mask_BK, depth=depth, temperature=self.settings.temperature
        )
        chance_BGDK = torch.where(open_BGDK, logp_BGDK.exp(), 0.0)
        place_BGK = positions(rankings_BGK)
        own_BGK = torch.where(place_BGK < depth, torch.take_along_dim(togo_BGD, place_BGK.clamp(max=depth - 1), dim=-1), 0.0)
        gradient_BK = (own_BGK - (chance_BGDK * togo_BGD[..., None]).sum(-2)).mean(1) / self.settings.temperature
        return -(lists.scores_BK * torch.where(lists.mask_BK, gradient_BK, 0.0)).sum(-1)

    def _score(self, lists: Lists, gains_BK: Tensor, rankings_BGK: Tensor) -> Tensor:
        togo_BGD = self._to_go(gains_BK, rankings_BGK)
        if self.settings.centred:
            group = togo_BGD.shape[1]
            togo_BGD = (togo_BGD - togo_BGD.mean(1, keepdim=True)) * (group / (group - 1))
        depth, heat = togo_BGD.shape[-1], self.settings.temperature
        logp_BGD = choice_log_probs(lists.scores_BK, rankings_BGK, lists.mask_BK, depth=depth, temperature=heat)
        return -(togo_BGD * logp_BGD).sum(-1).mean(-1)
