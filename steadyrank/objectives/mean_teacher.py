"""mean_teacher: one view is pulled to the labels and to a moving average of the model, which reads another view.

    L = mean_d (s_1 - y)^2 + alpha * mean_d (s_1 - sg[ema_2])^2          (Tarvainen & Valpola 2017, as an arm of arXiv 2608.26762)

The average reads without dropout (in the published arm dropout stayed on). With several shadow views their mean is the goal.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from steadyrank.objectives.label_regression import anchor_loss
from steadyrank.objectives.settings import number
from steadyrank.objectives.views import LaidViews, RampSettings, ViewObjective, Views, as_grades, candidate_mean, ramped


@dataclass(frozen=True, kw_only=True)
class MeanTeacherSettings(RampSettings):
    """Settings of mean_teacher."""

    weight: float = number(0.5, low=0.0)
    """Alpha: weight of the pull to the average."""
    decay: float = number(0.999, low=0.0, high=1.0)
    """Of the moving average of the trained weights; in the first steps it is lower, (1 + step) / (10 + step)."""
    ramp: float = number(0.0, low=0.0, high=1.0)
    """Share of the run's steps over which alpha rises from 0; none as published."""


class MeanTeacher(ViewObjective):
    """Squared error plus squared distance to the moving average on another view."""

    Settings = MeanTeacherSettings
    settings: MeanTeacherSettings
    needs = frozenset({"shadow_BPK"})

    @property
    def laid(self) -> LaidViews:
        return LaidViews(2, ("shuffle",), student=1)

    @property
    def shadow_decay(self) -> float:  # type: ignore[override]
        """Decay of the moving average."""
        return self.settings.decay

    def losses(self, views: Views) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        shadow_BPK = views.beside.shadow_BPK
        assert shadow_BPK is not None
        goal_BK = as_grades(shadow_BPK, views.mask_BK[:, None], scale=views.beside.scale).mean(1)
        in_force = ramped(self.settings.weight, self.settings.ramp, views.beside.progress)
        pull_B = candidate_mean((views.grades_BPK[:, 0] - goal_BK).square(), views.mask_BK)
        logged = {"distance_to_average": pull_B.detach(), "lambda": pull_B.detach().new_full(pull_B.shape, in_force)}
        return {"anchor": anchor_loss(views), "pull": in_force * pull_B}, logged
