"""Objectives: scores, targets and a mask in, a `LossSum` out. Never a model, a text or a trainer.

    objective = build("a3", kl=0.5)
    objective.live(targets_BK, mask_BK)                                  # which lists count, known before the forward pass
    objective(scores_BK, targets_BK, mask_BK, noise_BGK=noise).total     # a SUM; the trainer divides once by the live lists of
    its whole step

A name is a class and the settings in which it differs from the class; sources and departures are in docs/papers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadyrank.errors import unknown_name
from steadyrank.names import find, load

if TYPE_CHECKING:
    from steadyrank.objectives.base import LossSum, Objective

OBJECTIVES: dict[str, str] = {
    "a1": "steadyrank.objectives.listwise_kd:ListwiseKD",
    "a2": "steadyrank.objectives.grpo:OffPolicyGrpo",
    "a3": "steadyrank.objectives.grpo:Grpo",
    "a4": "steadyrank.objectives.grpo:Grpo",
    "a5": "steadyrank.objectives.grpo:Grpo",
    "a6": "steadyrank.objectives.grpo:GoldGrpo",
    "a6_kl": "steadyrank.objectives.grpo:GoldGrpo",
    "a7": "steadyrank.objectives.bce:Bce",
    "a8": "steadyrank.objectives.grpo:Grpo",
    "a9": "steadyrank.objectives.gkd:Gkd",
    "a10": "steadyrank.objectives.ranknet:RankNet",
    "stage1": "steadyrank.objectives.grpo:TeacherGrpo",
    "exact": "steadyrank.objectives.exact:Exact",
    "placement": "steadyrank.objectives.placement:Placement",
    "lambda": "steadyrank.objectives.lambda_loss:LambdaLoss",
    "list_mle": "steadyrank.objectives.list_mle:ListMle",
    "approx_ndcg": "steadyrank.objectives.approx_ndcg:ApproxNdcg",
    "margin_mse": "steadyrank.objectives.margin_mse:MarginMse",
}

PRESETS: dict[str, dict[str, Any]] = {  # settings in which a name differs from its class; a8 differs in the teacher it is given
    "a4": {"kl": 0.0},
    "a5": {"entropy": 0.0},
    "a6_kl": {"kl": 1.0},
}

__all__ = ["OBJECTIVES", "PRESETS", "LossSum", "Objective", "build"]


def build(name: str, **settings: Any) -> Objective:
    """The objective of this name; an unknown name or setting raises with the nearest one, a bad value says what is allowed."""
    cls = find("objective", name, OBJECTIVES)
    known = cls.Settings.__dataclass_fields__
    for key in settings:
        if key not in known:
            raise unknown_name(f"setting of objective {name!r}:", key, known)
    objective: Objective = cls(name, cls.Settings(**(PRESETS.get(name, {}) | settings)))
    return objective


def __getattr__(name: str) -> Any:
    if name in ("LossSum", "Objective"):
        return load(f"steadyrank.objectives.base:{name}")
    raise AttributeError(f"module 'steadyrank.objectives' has no attribute {name!r}")
