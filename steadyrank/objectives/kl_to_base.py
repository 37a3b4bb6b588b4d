"""kl_to_base: squared error, held near the model before training by KL(student || base), candidate by candidate   (arXiv 2608.26762).

With grade logits the KL is that of the two distributions over grades; a scorer that gives scores only has one probability a candidate, and
the KL is that of two coins. Both are means over the candidates of a list.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from steadyrank.errors import ConfigError
from steadyrank.objectives.label_regression import anchor_loss
from steadyrank.objectives.settings import number
from steadyrank.objectives.views import LabelSettings, LaidViews, ViewObjective, Views, as_grades, candidate_mean

_EDGE = 1e-6


@dataclass(frozen=True, kw_only=True)
class KlToBaseSettings(LabelSettings):
    """Settings of kl_to_base."""

    weight: float = number(0.05, low=0.0)
    """Of the KL."""


class KlToBase(ViewObjective):
    """Squared error in first-stage order plus KL to the start."""

    Settings = KlToBaseSettings
    settings: KlToBaseSettings
    shadow_decay = 1.0
    reads_logits = True

    @property
    def laid(self) -> LaidViews:
        return LaidViews(1, ("first_stage",))

    def losses(self, views: Views) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        beside = views.beside
        if beside.logits_BPKG is not None and beside.shadow_logits_BPKG is not None:
            kl_BPK = grade_kl(beside.logits_BPKG, beside.shadow_logits_BPKG)
        elif beside.shadow_BPK is not None:
            kl_BPK = coin_kl(views.grades_BPK, as_grades(beside.shadow_BPK, views.mask_BK[:, None], scale=beside.scale))
        else:
            raise ConfigError(
                f"objective {self.name!r} is held near the model's start; give shadow_BPK or both grade logits beside the scores"
            )
        kl_B = candidate_mean(kl_BPK, views.mask_BK).mean(1)
        return {"anchor": anchor_loss(views, on="all"), "kl": self.settings.weight * kl_B}, {"kl_to_base": kl_B.detach()}


def grade_kl(logits_G: Tensor, base_G: Tensor) -> Tensor:
    """KL(softmax logits || softmax base) over the last axis."""
    logq_G, logp_G = logits_G.log_softmax(-1), base_G.log_softmax(-1)
    return (logq_G.exp() * (logq_G - logp_G)).sum(-1)


def coin_kl(grades: Tensor, base: Tensor) -> Tensor:
    """KL of two coins, q log q/p + (1 - q) log (1 - q)/(1 - p); probabilities are cut at 1e-6 from 0 and 1."""
    q, p = (torch.stack([value, 1 - value]).clamp(_EDGE, 1 - _EDGE) for value in (grades, base))
    return (q * (q.log() - p.log())).sum(0)
