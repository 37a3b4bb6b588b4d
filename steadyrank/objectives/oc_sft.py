"""oc_sft: labels pull on one view, and the views pull on each other   (arXiv 2608.26762, OC-SFT).

    L = mean_d (s_1 - y)^2 + lambda * 1/P sum_i mean_d (s_i - sbar)^2          form: paper
    L = mean_d (s_1 - y)^2 + lambda * mean_{i<j} mean_d (s_i - s_j)^2          form: pairwise (the released code, which has P = 2 only)

The pairwise mean is 2P / (P - 1) times the variance: for two views the same lambda weighs four times as much in the pairwise form. The
lambdas that the paper prints are pairwise ones. Gradients flow through all views. The weight rises over a *fraction* of the steps: over 500
steps, as published, the shorter runs of the study never reached their lambda.
marker_consistency is the same loss over views that also name their slots by other markers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from steadyrank.objectives.label_regression import anchor_loss
from steadyrank.objectives.settings import number
from steadyrank.objectives.views import LaidViews, RampSettings, ViewObjective, Views, pairwise_factor, ramped, view_variance


@dataclass(frozen=True, kw_only=True)
class OcSftSettings(RampSettings):
    """Settings of oc_sft."""

    weight: float = number(3.0, low=0.0)
    """Lambda, in the chosen form."""
    form: Literal["paper", "pairwise"] = "paper"
    """paper: variance over views; pairwise: mean squared difference of two views, 2P / (P - 1) times as much."""
    views: int = number(2, low=2, hint="one view cannot disagree with itself")
    """Views of a list an update (P), each in a fresh order."""
    on: Literal["first", "all"] = "first"
    """The labels pull on the first view, as published, or on all of them."""


def penalty(views: Views, *, weight: float, form: str, ramp: float) -> tuple[Tensor, dict[str, Tensor]]:
    """(penalty_B, logged): the weighed variance over views, with what is in force now."""
    variance_B = view_variance(views.grades_BPK, views.mask_BK)
    factor = pairwise_factor(views.grades_BPK.shape[1]) if form == "pairwise" else 1.0
    in_force = ramped(weight, ramp, views.beside.progress)
    return in_force * factor * variance_B, {
        "variance": variance_B.detach(),
        "lambda": variance_B.detach().new_full(variance_B.shape, in_force),
    }


class OcSft(ViewObjective):
    """Squared error on the anchor view plus variance over the views."""

    Settings = OcSftSettings
    settings: OcSftSettings

    @property
    def laid(self) -> LaidViews:
        return LaidViews(self.settings.views, ("shuffle",))

    def losses(self, views: Views) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        setting = self.settings
        penalty_B, logged = penalty(views, weight=setting.weight, form=setting.form, ramp=setting.ramp)
        return {"anchor": anchor_loss(views, on=setting.on), "penalty": penalty_B}, logged


class MarkerConsistency(OcSft):
    """Each view draws its markers from schemes seen in training; `roman` and `random` are held out, to test on."""

    @property
    def laid(self) -> LaidViews:
        return LaidViews(self.settings.views, ("shuffle",), markers=("numeric", "letters", "doc"))
