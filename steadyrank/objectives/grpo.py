"""Policy gradient over sampled rankings: a2, a3, a4, a5, a6, a8 and stage1   (arXiv 2609.01947, equations of Stage 1 and Stage 2).

    -E[A log p(ranking)] + kl * KL(student || anchor) - entropy * H(first choice)

Rankings are drawn by Gumbel-top-k from the behaviour policy, rewards are nDCG@k, A compares a ranking with its group. The
log-probability covers the first k picks (the reward reads no more; `depth: full` covers all). Departures from the published forms are
listed in docs/papers.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from steadyrank.errors import ConfigError
from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.settings import SampledSettings, number
from steadyrank.objectives.terms import first_choice_entropy, first_choice_kl, sampled_kl, stepwise_kl
from steadyrank.policy import choice_log_probs, rank_with_noise
from steadyrank.rewards import group_advantages, is_flat, ndcg_reward
from steadyrank.rewards.advantage import FLAT


@dataclass(frozen=True, kw_only=True)
class GrpoSettings(SampledSettings):
    """Settings of the policy-gradient family."""

    baseline: Literal["mean", "leave_one_out", "none"] = "mean"
    """What a reward is compared with: the group's mean, or the mean of the other rankings (unbiased)."""
    scale: Literal["std", "sample_std", "none"] = "std"
    """What the comparison is divided by. std (population, + 1e-6) is the paper's; none keeps the size of the reward gap."""
    regret: bool = False
    """Map rewards to [worst, best] of their list."""
    depth: Literal["cutoff", "full"] = "cutoff"
    """Picks in the log-probability: the first k, or all."""
    kl_form: Literal["first_choice", "stepwise", "k2", "k3"] = "first_choice"
    """How KL to the anchor is measured: on the first choice, stepwise along sampled prefixes, or by a sampled estimator."""
    drop_flat: bool = False
    """Lists whose rewards are all equal pay no KL and no entropy either; they still count in the denominator."""
    behaviour: Literal["student", "snapshot", "teacher", "uniform"] = "student"
    """Who draws the rankings: the current student (fresh), the student of up to `snapshot_steps` steps ago, the anchor or teacher, or
    nobody (uniform orders)."""
    snapshot_steps: int = number(4, low=1)
    """Steps between two snapshots, where they draw: the lists of so many steps are scored, then each step learns from its own."""
    behaviour_temperature: float | None = number(None, above=0.0)
    """Temperature of the behaviour policy where it differs from `temperature`; the ratio then corrects for it."""
    ratio: Literal["auto", "none", "ranking", "pick"] = "auto"
    """Clipped importance ratio: of whole rankings, of each pick, or none. auto: rankings, where the behaviour is not the student itself."""
    clip_low: float = number(0.2, low=0.0, high=1.0)
    """The ratio is clipped below at 1 - this."""
    clip_high: float = number(0.2, low=0.0)
    """The ratio is clipped above at 1 + this."""
    ratio_limit: float = number(10.0, low=1.0)
    """A ratio above this weighs as this much. Without a limit one ranking that the behaviour policy found unlikely moves all scores."""


@dataclass(frozen=True, kw_only=True)
class OffPolicySettings(GrpoSettings):
    """a2: the teacher draws, the student is corrected by a clipped ratio."""

    behaviour: Literal["student", "snapshot", "teacher", "uniform"] = "teacher"
    """Who draws the rankings."""
    kl: float = number(0.0, low=0.0)
    """Weight of KL(student || anchor)."""
    entropy: float = number(0.0, low=0.0)
    """Weight of the entropy bonus on the first choice."""
    literal: bool = False
    """The published form: no ratio. It has no minimum: scores grow without limit. Same as paper_compat."""
    span_limit: float = number(100.0, above=0.0)
    """In the literal form, a list whose scores span more than this adds no policy term; the share is logged as span_guard."""


@dataclass(frozen=True, kw_only=True)
class GoldSettings(GrpoSettings):
    """a6: the reward reads gold grades, and nobody is imitated."""

    kl: float = number(0.0, low=0.0)
    """Weight of KL(student || teacher); a6_kl sets 1."""


@dataclass(frozen=True, kw_only=True)
class TeacherSettings(GrpoSettings):
    """stage1: a teacher strengthened on judge grades, held near its start."""

    kl: float = number(0.02, low=0.0)
    """Weight of KL(teacher || its start)."""
    kl_form: Literal["first_choice", "stepwise", "k2", "k3"] = "stepwise"
    """How KL to the start is measured."""


class Grpo(Objective):
    """Group-relative policy gradient on teacher-derived nDCG."""

    Settings = GrpoSettings
    settings: GrpoSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        setting = self.settings
        behaviour_BK = self._behaviour(lists)
        assert lists.noise_BGK is not None
        heat = setting.behaviour_temperature or setting.temperature
        rankings_BGK = rank_with_noise(behaviour_BK, lists.mask_BK, lists.noise_BGK, temperature=heat)
        rewards_BG = ndcg_reward(
            rankings_BGK, self.relevance(lists), lists.mask_BK, k=setting.k, gain=setting.gain, regret=setting.regret
        ).to(lists.scores_BK.dtype)
        tolerance = 0.0 if setting.paper_compat else FLAT
        advantages_BG = group_advantages(rewards_BG, baseline=setting.baseline, scale=setting.scale, tolerance=tolerance)
        flat_B = is_flat(rewards_BG, tolerance=tolerance)
        policy_B, logged = self._policy(lists, rankings_BGK, advantages_BG, behaviour_BK, heat)
        terms = {"policy": policy_B}
        kept_B = ~flat_B if setting.drop_flat else torch.ones_like(flat_B)
        if setting.kl:
            kl_B, extra = self._kl(lists, rankings_BGK)
            terms["kl"], logged = torch.where(kept_B, setting.kl * kl_B, 0.0), logged | extra
        if setting.entropy:
            terms["entropy"] = torch.where(kept_B, -setting.entropy * first_choice_entropy(lists.scores_BK, lists.mask_BK), 0.0)
        logged |= {
            "reward": rewards_BG.mean(-1),
            "reward_std": rewards_BG.std(-1, correction=0),
            "flat_groups": flat_B.to(rewards_BG.dtype),
        }
        return terms, logged

    @property
    def snapshot_steps(self) -> int:
        """Steps between two snapshots of the student; 0 where none draws."""
        return self.settings.snapshot_steps if self.settings.behaviour == "snapshot" else 0

    @property
    def depth(self) -> int | None:
        """Picks in the log-probability; None is all."""
        return self.settings.k if self.settings.depth == "cutoff" else None

    def _off_policy(self) -> bool:
        heat = self.settings.behaviour_temperature
        return self.settings.behaviour != "student" or (heat is not None and heat != self.settings.temperature)

    def _ratio(self) -> str:
        if self.settings.ratio == "auto":
            return "ranking" if self._off_policy() else "none"
        return self.settings.ratio

    def _behaviour(self, lists: Lists) -> Tensor:
        if self.settings.behaviour == "student":
            return lists.scores_BK.detach()
        if self.settings.behaviour == "uniform":
            return torch.zeros_like(lists.scores_BK)
        if self.settings.behaviour == "snapshot":
            if lists.behaviour_BK is None:
                raise ConfigError(f"objective {self.name!r} draws rankings from a snapshot; give behaviour_BK, or set behaviour: student")
            return lists.behaviour_BK
        return self.anchored(lists)

    def _policy(
        self, lists: Lists, rankings_BGK: Tensor, advantages_BG: Tensor, behaviour_BK: Tensor, heat: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """(policy_B, logged): -A log p, or the clipped ratio form, mean over the group."""
        logp_BGD = choice_log_probs(lists.scores_BK, rankings_BGK, lists.mask_BK, depth=self.depth, temperature=self.settings.temperature)
        level = self._ratio()
        if level == "none":
            return -(advantages_BG * logp_BGD.sum(-1)).mean(-1), {}
        old_BGD = choice_log_probs(behaviour_BK, rankings_BGK, lists.mask_BK, depth=self.depth, temperature=heat).detach()
        gap_BGD = logp_BGD - old_BGD if level == "pick" else (logp_BGD - old_BGD).sum(-1, keepdim=True)
        # the weight is cut at the limit while the gradient of log p goes on: clipping alone leaves it unbounded for negative advantages
        weight_BGD = gap_BGD.detach().clamp(max=math.log(self.settings.ratio_limit)).exp()
        ratio_BGD = weight_BGD * (gap_BGD - gap_BGD.detach()).exp()
        low, high = 1 - self.settings.clip_low, 1 + self.settings.clip_high
        gain_BGD = advantages_BG[..., None] * ratio_BGD
        worth_BG = torch.minimum(gain_BGD, advantages_BG[..., None] * ratio_BGD.clamp(low, high)).sum(-1)
        return -worth_BG.mean(-1), _ratio_logs(ratio_BGD.detach(), (logp_BGD - old_BGD).detach().sum(-1), low, high)

    def _kl(self, lists: Lists, rankings_BGK: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        setting, anchor_BK = self.settings, self.anchored(lists)
        if setting.kl_form == "first_choice":
            return first_choice_kl(lists.scores_BK, anchor_BK, lists.mask_BK, floor=1e-12 if setting.paper_compat else 0.0), {}
        depth = self.depth or lists.mask_BK.shape[-1]
        if self._off_policy():  # these estimates need the student's own rankings; the same noise draws them at no cost
            assert lists.noise_BGK is not None
            own_BK = lists.scores_BK.detach()
            rankings_BGK = rank_with_noise(own_BK, lists.mask_BK, lists.noise_BGK, temperature=setting.temperature)
        if setting.kl_form == "stepwise":
            return stepwise_kl(lists.scores_BK, anchor_BK, rankings_BGK, lists.mask_BK, depth=depth, temperature=setting.temperature), {}
        kl_B, clamped_B = sampled_kl(
            lists.scores_BK, anchor_BK, rankings_BGK, lists.mask_BK, estimator=setting.kl_form, depth=depth, temperature=setting.temperature
        )
        return kl_B, {"kl_clamped": clamped_B}


class OffPolicyGrpo(Grpo):
    """Rankings drawn by the teacher; a clipped ratio by default, the published form with `literal`."""

    Settings = OffPolicySettings
    settings: OffPolicySettings

    def _ratio(self) -> str:
        return "none" if self.settings.literal or self.settings.paper_compat else super()._ratio()

    def _policy(
        self, lists: Lists, rankings_BGK: Tensor, advantages_BG: Tensor, behaviour_BK: Tensor, heat: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        policy_B, logged = super()._policy(lists, rankings_BGK, advantages_BG, behaviour_BK, heat)
        if self._ratio() != "none":
            return policy_B, logged
        high_B = torch.where(lists.mask_BK, lists.scores_BK, -torch.inf).amax(-1)
        low_B = torch.where(lists.mask_BK, lists.scores_BK, torch.inf).amin(-1)
        wide_B = high_B - low_B > self.settings.span_limit
        return torch.where(wide_B, 0.0, policy_B), logged | {"span_guard": wide_B.to(policy_B.dtype)}


class GoldGrpo(Grpo):
    """The reward reads gold grades; lists without a positive one do not count."""

    Settings = GoldSettings
    target = "gold"
    positives_only = True

    @property
    def anchor(self) -> Literal["teacher", "reference"] | None:
        return "teacher" if self.settings.kl or self.settings.behaviour == "teacher" else None


class TeacherGrpo(Grpo):
    """Stage 1: rewards from judge grades, KL to the frozen start."""

    Settings = TeacherSettings
    target = "gold"
    positives_only = True

    @property
    def anchor(self) -> Literal["teacher", "reference"] | None:
        return "reference" if self.settings.kl or self.settings.behaviour == "teacher" else None


def _ratio_logs(ratio_BGD: Tensor, gap_BG: Tensor, low: float, high: float) -> dict[str, Tensor]:
    """Share of clipped ratios, and the effective sample size of a group over G."""
    outside_BG = ((ratio_BGD < low) | (ratio_BGD > high)).to(ratio_BGD.dtype).mean(-1)
    weight_BG = gap_BG.softmax(-1)
    return {"clipped": outside_BG.mean(-1), "effective_samples": 1 / weight_BG.square().sum(-1) / weight_BG.shape[-1]}
