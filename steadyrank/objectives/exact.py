"""exact: -E[nDCG@k] itself, by recursion, with a3's KL and entropy terms. What a3 samples, without sampling noise (docs/papers.md)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.settings import RegularSettings
from steadyrank.objectives.terms import first_choice_entropy, first_choice_kl
from steadyrank.policy import expected_ndcg


@dataclass(frozen=True, kw_only=True)
class ExactSettings(RegularSettings):
    """Settings of the exact expectation."""


class Exact(Objective):
    """Minus the exact expected nDCG@k of the student's policy under the teacher's relevance."""

    Settings = ExactSettings
    settings: ExactSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        setting = self.settings
        value_B = expected_ndcg(
            lists.scores_BK, self.relevance(lists), lists.mask_BK, k=setting.k, gain=setting.gain, temperature=setting.temperature
        )
        return {"policy": -value_B} | regularisers(self, lists), {"reward": value_B.detach()}


def regularisers(objective: Objective, lists: Lists) -> dict[str, Tensor]:
    """kl * KL(student || anchor) and -entropy * H, on the first choice; a weight of 0 leaves its term out."""
    setting, terms = objective.settings, {}
    if setting.kl:
        floor = 1e-12 if setting.paper_compat else 0.0
        terms["kl"] = setting.kl * first_choice_kl(lists.scores_BK, objective.anchored(lists), lists.mask_BK, floor=floor)
    if setting.entropy:
        terms["entropy"] = -setting.entropy * first_choice_entropy(lists.scores_BK, lists.mask_BK)
    return terms
