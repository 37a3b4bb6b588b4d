"""What all objectives over several views of one list share: the cleaned views they read, what may lie beside them, and the sum they give.

A view is one presentation of a list: its order, and whatever else was changed. Scores come as scores_BPK (B lists, P views, K candidates),
always in canonical order, so that a difference along P is nothing but presentation. View 0 is the anchor view: labels pull on it.

The rules of objectives/base.py hold: float32 (float64 stays) without autocast; padding is zeroed and changes nothing; lists of one
candidate are not live; which lists are live is known before the forward; values are means over the candidates of a list, one value a list.
Losses here read *grades*, scores in [0, 1]: a probability as it is, a logit through the sigmoid (`scale`).
Sources: arXiv 2608.26762 (consistency over presentations); the departures of each arm are in docs/papers.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from steadyrank.errors import ConfigError
from steadyrank.metrics import clean
from steadyrank.objectives import diagnostics
from steadyrank.objectives.base import LossSum
from steadyrank.objectives.settings import Settings, number
from steadyrank.rewards.targets import logit

SCALES = ("probability", "logit")
Kind = Literal["first_stage", "shuffle", "within"]


@dataclass(frozen=True)
class LaidViews:
    """How an objective wants its lists laid, unless a run says otherwise: the kind of each view, the last one repeated."""

    count: int
    kinds: tuple[Kind, ...] = ("shuffle",)
    student: int | None = None
    """The student reads the first so many views, the shadow model the others; None: the student reads all."""
    markers: tuple[str, ...] = ()
    """Marker schemes from which each view draws one; none leaves the markers to the scorer."""


@dataclass(frozen=True, kw_only=True)
class LabelSettings:
    """What every objective has that regresses on labels in [0, 1]."""

    labels: Literal["first", "mean"] = "first"
    """Which label of a list: that of the teacher's first pass, or the mean over all its passes."""

    def __post_init__(self) -> None:
        Settings.__post_init__(self)  # type: ignore[arg-type]  # checks the fields of any dataclass


@dataclass(frozen=True, kw_only=True)
class RampSettings(LabelSettings):
    """What every objective has whose second term is faded in."""

    ramp: float = number(0.2, low=0.0, high=1.0)
    """Share of the run's steps over which the weight rises from 0; 0: it is full from the first step."""


@dataclass(frozen=True)
class Beside:
    """What may come with the views; an objective says in `needs` what it cannot do without."""

    progress: float = 1.0
    """Share of the run's steps already taken."""
    scale: str = "probability"
    """What the scores are: probability (expected grade over the highest), or logit."""
    weights_BPK: Tensor | None = None
    """Weight of each candidate in each view (debias_first)."""
    shadow_BPK: Tensor | None = None
    """Scores of the shadow model (a moving average, or the start) on its own views."""
    logits_BPKG: Tensor | None = None
    """The student's grade logits, G grades, on its views."""
    shadow_logits_BPKG: Tensor | None = None
    """The shadow's grade logits on the student's views."""
    anchor_BK: Tensor | None = None
    """Teacher or reference utilities, for a score objective held near them."""
    noise_BGK: Tensor | None = None
    """Ranking noise, for a score objective that samples."""
    generator: torch.Generator | None = None


@dataclass(frozen=True)
class Views:
    """The cleaned input of one call."""

    grades_BPK: Tensor
    """The student's scores in [0, 1]; zeros on the padding."""
    targets_BK: Tensor
    mask_BK: Tensor
    live_B: Tensor
    beside: Beside


class ViewObjective:
    """One way to learn from several views of a list. Subclasses give `losses`."""

    Settings: ClassVar[type] = LabelSettings
    reads_views: ClassVar[bool] = True
    target: str = "labels"
    needs: frozenset[str] = frozenset()
    """Fields of `Beside` that must be there."""
    shadow_decay: float | None = None
    """Decay of the shadow model's moving average; 1 keeps the start; None: no shadow."""
    reads_logits: ClassVar[bool] = False
    """Whether it wants grade logits where the scorer has them."""
    num_samples = 0
    snapshot_steps = 0
    anchor: Literal["teacher", "reference"] | None = None

    def __init__(self, name: str, settings: Any):
        self.name, self.settings = name, settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.settings})"

    @property
    def laid(self) -> LaidViews:
        """The views this objective asks for."""
        return LaidViews(1)

    def live(self, targets_BK: Tensor, mask_BK: Tensor) -> Tensor:
        """live_B: lists that count in the denominator."""
        return mask_BK.sum(-1) > 1

    def losses(self, views: Views) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """(terms, logged): per-list values, terms to be added up to the loss, and values only to be logged."""
        raise NotImplementedError

    def __call__(self, scores_BPK: Tensor, targets_BK: Tensor, mask_BK: Tensor, *, beside: Beside | None = None) -> LossSum:
        with torch.autocast(scores_BPK.device.type, enabled=False):
            views = self._views(scores_BPK, targets_BK, mask_BK.bool(), beside or Beside())
            terms, logged = self.losses(views)
            per_list_B = torch.stack([*terms.values()]).sum(0)
            total = torch.where(views.live_B, per_list_B, 0.0).sum()
            logged = {**{k: v.detach() for k, v in terms.items()}, **logged, **spread(views.grades_BPK.detach(), views.mask_BK)}
        return LossSum(total, views.live_B.sum(), diagnostics.summed(logged, views.live_B))

    def _views(self, scores_BPK: Tensor, targets_BK: Tensor, mask_BK: Tensor, beside: Beside) -> Views:
        missing = sorted(name for name in self.needs if getattr(beside, name) is None)
        if missing:
            raise ConfigError(f"objective {self.name!r} needs {' and '.join(missing)} beside the scores; the trainer gives them")
        scores_BPK = clean(scores_BPK, mask_BK[:, None, :])
        targets_BK = clean(targets_BK.detach(), mask_BK, what="targets").to(scores_BPK.dtype)
        grades_BPK = as_grades(scores_BPK, mask_BK[:, None, :], scale=beside.scale)
        return Views(grades_BPK, targets_BK, mask_BK, self.live(targets_BK, mask_BK), _cleaned(beside, mask_BK, scores_BPK.dtype))


def _cleaned(beside: Beside, mask_BK: Tensor, dtype: torch.dtype) -> Beside:
    """Tensors of candidates in the scores' dtype, zeros on their padding, without a gradient (the student's own logits keep theirs)."""
    given = {item.name: getattr(beside, item.name) for item in fields(Beside)}
    for name, value in given.items():
        if name.endswith(("_BPK", "_BPKG")) and value is not None:
            mask = mask_BK[:, None, :, None] if name.endswith("G") else mask_BK[:, None, :]
            own = value if name == "logits_BPKG" else value.detach()
            given[name] = clean(own, mask, what=name).to(dtype)
    return Beside(**given)


def as_grades(scores: Tensor, mask: Tensor, *, scale: str) -> Tensor:
    """Scores in [0, 1], zeros on the padding."""
    if scale == "probability":
        return scores
    if scale == "logit":
        return torch.where(mask, scores.sigmoid(), 0.0)
    raise ConfigError(f"scores of scale {scale!r} cannot be trained on views; use a scorer whose scale is probability or logit")


def as_utilities(scores: Tensor, mask: Tensor, *, scale: str) -> Tensor:
    """Unbounded scores for a policy: the logit of a probability, a logit as it is; zeros on the padding."""
    if scale == "logit":
        return scores
    if scale == "probability":
        return torch.where(mask, logit(torch.where(mask, scores, 0.5)), 0.0)
    raise ConfigError(f"scores of scale {scale!r} have no utilities; use a scorer whose scale is probability or logit")


def candidate_mean(values_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """Mean over the candidates of each list (0 for a list of padding only); leading axes between B and K are kept."""
    while mask_BK.dim() < values_BK.dim():
        mask_BK = mask_BK[:, None]
    return torch.where(mask_BK, values_BK, 0.0).sum(-1) / mask_BK.sum(-1).clamp(min=1)


def view_variance(grades_BPK: Tensor, mask_BK: Tensor) -> Tensor:
    """variance_B = 1/P sum_i mean_d (s_i - sbar)^2: the paper's penalty."""
    gap_BPK = grades_BPK - grades_BPK.mean(1, keepdim=True)
    return candidate_mean(gap_BPK.square().mean(1), mask_BK)


def pairwise_square(grades_BPK: Tensor, mask_BK: Tensor) -> Tensor:
    """square_B: mean over the pairs i < j of views of mean_d (s_i - s_j)^2: the penalty of the released code, for any P."""
    return pairwise_factor(grades_BPK.shape[1]) * view_variance(grades_BPK, mask_BK)


def pairwise_factor(views: int) -> float:
    """What pairwise mean squares are in units of the variance: 2P / (P - 1), so 4 for two views. A weight in the pairwise form penalises as
    a weight this many times as large in the paper's form."""
    return 2.0 * views / (views - 1) if views > 1 else 0.0


def ramped(weight: float, ramp: float, progress: float) -> float:
    """The weight in force after this share of the run's steps: linear from 0 up to `ramp`, then full."""
    return weight if ramp <= 0 else weight * min(1.0, max(0.0, progress) / ramp)


@torch.no_grad()
def spread(grades_BPK: Tensor, mask_BK: Tensor) -> dict[str, Tensor]:
    """Logged a list: score_sd, the population SD of grades inside a view, mean over views (a collapse shows here); view_disagreement, the
    mean absolute difference of one candidate's grades in two views."""
    size_B = mask_BK.sum(-1).clamp(min=1)
    gap_BPK = torch.where(mask_BK[:, None], grades_BPK - (grades_BPK.sum(-1) / size_B[:, None])[..., None], 0.0)
    sd_B = (gap_BPK.square().sum(-1) / size_B[:, None]).sqrt().mean(1)
    count = grades_BPK.shape[1]
    if count < 2:
        return {"score_sd": sd_B}
    pairs_BPPK = (grades_BPK[:, :, None] - grades_BPK[:, None]).abs()
    return {"score_sd": sd_B, "view_disagreement": candidate_mean(pairs_BPPK.sum((1, 2)) / (count * (count - 1)), mask_BK)}
