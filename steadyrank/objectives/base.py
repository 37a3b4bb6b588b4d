"""What all objectives share: the cleaned lists they see, which of them count, and the sum they hand back.

Rules, kept here once: scores become float32 (float64 stays) and autocast is off; padding is zeroed behind a `where`, so it changes neither
values nor gradients; a list of one candidate, or of padding only, is not live and adds zero with a zero gradient. Numerator and denominator
use the same live lists. Values are read with one list a row; the trainer divides the sum once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from steadyrank.errors import ConfigError
from steadyrank.metrics import clean
from steadyrank.objectives import diagnostics
from steadyrank.objectives.settings import Settings
from steadyrank.policy import gumbel_like
from steadyrank.rewards import relevance_from


@dataclass(frozen=True)
class LossSum:
    """A loss summed over the live lists, how many they are, and what to log: name -> (detached sum, count)."""

    total: Tensor
    count: Tensor
    parts: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __add__(self, other: LossSum) -> LossSum:
        parts = dict(self.parts)
        for name, (value, count) in other.parts.items():
            parts[name] = (parts[name][0] + value, parts[name][1] + count) if name in parts else (value, count)
        return LossSum(self.total + other.total, self.count + other.count, parts)


@dataclass(frozen=True)
class Lists:
    """The cleaned input of one call."""

    scores_BK: Tensor
    """Student utilities after score_scale; zeros on the padding."""
    targets_BK: Tensor
    mask_BK: Tensor
    live_B: Tensor
    anchor_BK: Tensor | None
    """Teacher or reference utilities after teacher_scale."""
    noise_BGK: Tensor | None
    behaviour_BK: Tensor | None = None
    """Utilities of a snapshot of the student, after score_scale, where one draws the rankings."""


class Objective:
    """One way to learn from a list. Subclasses give `losses`, and where needed `live`, `target` and `anchor`."""

    Settings: ClassVar[type] = Settings
    target: Literal["teacher", "gold"] = "teacher"
    positives_only: ClassVar[bool] = False  # lists without a grade above 0 do not count

    def __init__(self, name: str, settings: Any):
        self.name, self.settings = name, settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.settings})"

    @property
    def num_samples(self) -> int:
        """Rankings a list; 0 where nothing is sampled."""
        return getattr(self.settings, "num_samples", 0)

    @property
    def snapshot_steps(self) -> int:
        """Steps between two snapshots of the student that `behaviour_BK` must hold; 0 where none is used."""
        return 0

    @property
    def anchor(self) -> Literal["teacher", "reference"] | None:
        """What anchor_BK must hold; None where it is not used, or where the targets are the anchor."""
        return None

    def live(self, targets_BK: Tensor, mask_BK: Tensor) -> Tensor:
        """live_B: lists that count in the denominator."""
        live_B = mask_BK.sum(-1) > 1
        if self.positives_only:
            live_B = live_B & ((targets_BK > 0) & mask_BK).any(-1)
        return live_B

    def losses(self, lists: Lists) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """(terms, logged): per-list values, terms to be added up to the loss, and values only to be logged."""
        raise NotImplementedError

    def __call__(
        self,
        scores_BK: Tensor,
        targets_BK: Tensor,
        mask_BK: Tensor,
        *,
        anchor_BK: Tensor | None = None,
        noise_BGK: Tensor | None = None,
        behaviour_BK: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> LossSum:
        with torch.autocast(scores_BK.device.type, enabled=False):
            lists = self._lists(scores_BK, targets_BK, mask_BK.bool(), anchor_BK)
            if behaviour_BK is not None:
                behaviour_BK = clean(behaviour_BK.detach(), lists.mask_BK, what="behaviour").to(lists.scores_BK.dtype)
                lists = replace(lists, behaviour_BK=behaviour_BK * self.settings.score_scale)
            if self.num_samples and noise_BGK is None:
                noise_BGK = gumbel_like(lists.scores_BK.detach(), num_samples=self.num_samples, generator=generator)
            terms, logged = self.losses(replace(lists, noise_BGK=noise_BGK))
            per_list_B = torch.stack([*terms.values()]).sum(0)
            total = torch.where(lists.live_B, per_list_B, 0.0).sum()
            logged = {**{k: v.detach() for k, v in terms.items()}, **logged, **diagnostics.of_lists(lists, self._likeness(lists))}
        return LossSum(total, lists.live_B.sum(), diagnostics.summed(logged, lists.live_B))

    def relevance(self, lists: Lists) -> Tensor:
        """relevance_BK: gold grades as they are, teacher utilities by the settings' rule."""
        return relevance_from(lists.targets_BK, lists.mask_BK, how="raw" if self.target == "gold" else self.settings.relevance)

    def anchored(self, lists: Lists) -> Tensor:
        """The anchor's utilities; the teacher's targets where none were given."""
        if lists.anchor_BK is not None:
            return lists.anchor_BK
        if self.target == "teacher":
            return self.teacher(lists)
        raise ConfigError(f"objective {self.name!r} compares with {self.anchor or 'teacher'} scores; give anchor_BK, or set kl to 0")

    def teacher(self, lists: Lists) -> Tensor:
        """Teacher utilities after teacher_scale."""
        return lists.targets_BK * self.settings.teacher_scale

    def _lists(self, scores_BK: Tensor, targets_BK: Tensor, mask_BK: Tensor, anchor_BK: Tensor | None) -> Lists:
        scores_BK = clean(scores_BK, mask_BK) * self.settings.score_scale
        targets_BK = clean(targets_BK.detach(), mask_BK, what="targets").to(scores_BK.dtype)
        if anchor_BK is not None:
            anchor_BK = clean(anchor_BK.detach(), mask_BK, what="anchor").to(scores_BK.dtype) * self.settings.teacher_scale
        return Lists(scores_BK, targets_BK, mask_BK, self.live(targets_BK, mask_BK), anchor_BK, None)

    def _likeness(self, lists: Lists) -> Mapping[str, Tensor]:
        """Whom `kl_to_teacher` compares with: the anchor, or the teacher's targets; nobody under gold targets alone."""
        if lists.anchor_BK is None and self.target == "gold":
            return {}
        return {"kl_to_teacher" if self.anchor != "reference" else "kl_to_reference": self.anchored(lists)}
