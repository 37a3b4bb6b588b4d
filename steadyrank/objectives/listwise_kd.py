"""a1, offline listwise distillation: KL(softmax t || softmax s)   (ListNet, Cao et al. 2007, less the teacher's own entropy)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from steadyrank.objectives.base import Lists, Objective
from steadyrank.objectives.settings import Settings, number
from steadyrank.objectives.terms import first_choice_kl


@dataclass(frozen=True, kw_only=True)
class ListwiseKDSettings(Settings):
    """Settings of listwise distillation."""

    reverse: bool = False
    """KL(student || teacher) instead."""
    temperature: float = number(1.0, above=0.0)
    """Divides both sides' utilities. The loss is not multiplied by its square."""


class ListwiseKD(Objective):
    """KL between the first choices of teacher and student."""

    Settings = ListwiseKDSettings
    settings: ListwiseKDSettings

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        student_BK, teacher_BK = (x_BK / self.settings.temperature for x_BK in (lists.scores_BK, self.teacher(lists)))
        pair = (student_BK, teacher_BK) if self.settings.reverse else (teacher_BK, student_BK)
        return {"kd": first_choice_kl(*pair, lists.mask_BK)}, {}
