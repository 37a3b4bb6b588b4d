"""Regression on labels, mean_d (s_d - y_d)^2 averaged over the views that are laid   (arXiv 2608.26762, the distillation arms).

    single_order               one view in first-stage order; the label of the teacher's first pass
    order_averaged             the same view; the mean label over the teacher's passes, each in an order of its own
    permutation_augmentation   one fresh order an update (the published arm has two orders in all, the same for every list)
    debias_first               inverse-propensity weights of the slot a candidate stands in (Liu et al., DebiasFirst)

They are one loss; what differs is what is laid and which label is read. Departures are listed in docs/papers.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from steadyrank.objectives.settings import number
from steadyrank.objectives.views import LabelSettings, LaidViews, ViewObjective, Views, candidate_mean


def anchor_loss(views: Views, *, on: str = "first") -> Tensor:
    """anchor_B: mean squared distance to the labels, of the first view or over all of them."""
    grades_BPK = views.grades_BPK[:, :1] if on == "first" else views.grades_BPK
    return candidate_mean((grades_BPK - views.targets_BK[:, None]).square(), views.mask_BK).mean(1)


class SingleOrder(ViewObjective):
    """Squared error in first-stage order."""

    Settings = LabelSettings

    @property
    def laid(self) -> LaidViews:
        return LaidViews(1, ("first_stage",))

    def losses(self, views: Views) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return {"anchor": anchor_loss(views, on="all")}, {}


@dataclass(frozen=True, kw_only=True)
class OrderAveragedSettings(LabelSettings):
    """Settings of order_averaged."""

    labels: Literal["first", "mean"] = "mean"
    """Which label of a list: the mean over the teacher's passes; `first` would be single_order."""


class OrderAveraged(SingleOrder):
    """Squared error in first-stage order, on labels averaged over orders."""

    Settings = OrderAveragedSettings


class PermutationAugmentation(SingleOrder):
    """Squared error in an order drawn for this list and epoch."""

    @property
    def laid(self) -> LaidViews:
        return LaidViews(1, ("shuffle",))


@dataclass(frozen=True, kw_only=True)
class DebiasSettings(LabelSettings):
    """Settings of debias_first."""

    slot: Literal["presented", "first_stage"] = "presented"
    """Whose propensity weighs a candidate: that of the slot it stands in, or (published port) of its slot in first-stage order."""
    smoothing: float = number(1e-3, above=0.0)
    """Added to the count of relevant candidates of every slot."""
    limit: float = number(10.0, low=1.0)
    """No weight is above this many times the mean; a slot that never held a relevant candidate would weigh without bound."""
    relevant: float = number(0.5, above=0.0, high=1.0)
    """A candidate whose label is at least this counts as relevant."""
    paper_compat: bool = False
    """The published port: weights by first-stage slot, without a limit."""


class DebiasFirst(SingleOrder):
    """Squared error weighed by the inverse propensity of slots, divided by the list's total weight."""

    Settings = DebiasSettings
    needs = frozenset({"weights_BPK"})

    @property
    def laid(self) -> LaidViews:
        # In orders drawn uniformly every slot is equally likely to hold a relevant candidate, and the weights say nothing; the first-stage
        # view is where they correct. One view each keeps both halves of the method.
        return LaidViews(2, ("first_stage", "shuffle"))

    @property
    def slot(self) -> str:
        """Which slot weighs."""
        return "first_stage" if self.settings.paper_compat else self.settings.slot

    def losses(self, views: Views) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        assert views.beside.weights_BPK is not None
        weights_BPK = views.beside.weights_BPK
        square_BPK = (views.grades_BPK - views.targets_BK[:, None]).square()
        weighed_BP = torch.where(views.mask_BK[:, None], weights_BPK * square_BPK, 0.0).sum(-1)
        total_BP = torch.where(views.mask_BK[:, None], weights_BPK, 0.0).sum(-1)
        plain_B = candidate_mean(square_BPK, views.mask_BK).mean(1)
        return {"anchor": (weighed_BP / total_BP.where(total_BP > 0, 1.0)).mean(1)}, {"unweighted_anchor": plain_B.detach()}


def slot_weights(relevant_S: Tensor, *, smoothing: float, limit: float | None) -> Tensor:
    """weights_S, mean 1 over the slots before the limit: 1 / p of each slot, p its share of the relevant candidates.

    relevant_S: how many relevant candidates stood in each slot. limit: the highest weight; None leaves them unbounded.
    """
    counts_S = relevant_S.double() + smoothing
    inverse_S = counts_S.sum() / counts_S
    weights_S = inverse_S / inverse_S.mean()
    return weights_S if limit is None else weights_S.clamp(max=limit)
