"""Any score objective, made steady: `consistency: {weight: lambda}` adds the variance over views to it. Ours.

    L = objective(utilities of view 1) + lambda * 1/P sum_i mean_d (g_i - gbar)^2

The objective reads utilities (the logit of a probability, since a policy over bounded scores could never become sure); the penalty reads
grades in [0, 1], so that a lambda means the same beside every objective. With weight 0 and one view this is how a scorer of whole lists is
trained with a plain score objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from steadyrank.metrics import clean
from steadyrank.objectives import diagnostics
from steadyrank.objectives.base import LossSum, Objective
from steadyrank.objectives.oc_sft import penalty
from steadyrank.objectives.settings import Settings, number
from steadyrank.objectives.views import Beside, LaidViews, ViewObjective, as_utilities, spread


@dataclass(frozen=True, kw_only=True)
class ConsistencySettings:
    """`consistency:` of a score objective's settings."""

    weight: float = number(3.0, low=0.0)
    """Lambda, in the chosen form."""
    form: Literal["paper", "pairwise"] = "paper"
    """paper: variance over views; pairwise: mean squared difference of two views, 2P / (P - 1) times as much."""
    views: int = number(2, low=1)
    """Views of a list an update (P), each in a fresh order; one view has no variance."""
    ramp: float = number(0.2, low=0.0, high=1.0)
    """Share of the run's steps over which the weight rises from 0."""
    on: Literal["first", "all"] = "first"
    """The objective reads the first view, or each view (mean over them)."""

    def __post_init__(self) -> None:
        Settings.__post_init__(self)  # type: ignore[arg-type]  # checks the fields of any dataclass


@dataclass(frozen=True)
class SteadySettings:
    """Both halves, as they are written into a run's config."""

    objective: Any
    consistency: ConsistencySettings


class Steady(ViewObjective):
    """A score objective on utilities plus variance over views on grades."""

    Settings = SteadySettings
    settings: SteadySettings

    def __init__(self, inner: Objective, consistency: ConsistencySettings):
        super().__init__(inner.name, SteadySettings(inner.settings, consistency))
        self.inner = inner
        self.target, self.anchor, self.num_samples = inner.target, inner.anchor, inner.num_samples

    @property
    def laid(self) -> LaidViews:
        return LaidViews(self.settings.consistency.views, ("shuffle",))

    def live(self, targets_BK: Tensor, mask_BK: Tensor) -> Tensor:
        return self.inner.live(targets_BK, mask_BK)

    def __call__(self, scores_BPK: Tensor, targets_BK: Tensor, mask_BK: Tensor, *, beside: Beside | None = None) -> LossSum:
        beside, mask_BK = beside or Beside(), mask_BK.bool()
        with torch.autocast(scores_BPK.device.type, enabled=False):
            views = self._views(scores_BPK, targets_BK, mask_BK, beside)
            setting = self.settings.consistency
            utilities_BPK = as_utilities(clean(scores_BPK, mask_BK[:, None]), mask_BK[:, None], scale=beside.scale)
            read = utilities_BPK.shape[1] if setting.on == "all" else 1
            found = [
                self.inner(
                    utilities_BPK[:, view], targets_BK, mask_BK,
                    anchor_BK=beside.anchor_BK, noise_BGK=beside.noise_BGK, generator=beside.generator,
                )
                for view in range(read)
            ]  # fmt: skip
            penalty_B, logged = penalty(views, weight=setting.weight, form=setting.form, ramp=setting.ramp)
            logged |= {"penalty": penalty_B.detach(), **spread(views.grades_BPK.detach(), mask_BK)}
            total = torch.stack([step.total for step in found]).mean() + torch.where(views.live_B, penalty_B, 0.0).sum()
        parts = {name: (torch.stack([step.parts[name][0] for step in found]).mean(), count) for name, (_, count) in found[0].parts.items()}
        return LossSum(total, views.live_B.sum(), parts | diagnostics.summed(logged, views.live_B))
