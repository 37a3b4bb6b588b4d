"""Objectives: scores, targets and a mask in, a `LossSum` out. Never a model, a text or a trainer.

    objective = build("a3", kl=0.5)
    objective.live(targets_BK, mask_BK)                                  # which lists count, known before the forward pass
    objective(scores_BK, targets_BK, mask_BK, noise_BGK=noise).total     # a SUM; the trainer divides once by the live lists of
    its whole step

Objectives of VIEW_OBJECTIVES read several views of each list (scores_BPK), and so does any of OBJECTIVES that is given a consistency:

    build("oc_sft", weight=3, form="pairwise"),  build("a3", consistency={"weight": 3.0})

A name is a class and the settings in which it differs from the class; sources and departures are in docs/papers.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steadyrank.errors import ConfigError, unknown_name
from steadyrank.names import find, load

if TYPE_CHECKING:
    from steadyrank.objectives.base import LossSum, Objective
    from steadyrank.objectives.views import ViewObjective

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

VIEW_OBJECTIVES: dict[str, str] = {
    "single_order": "steadyrank.objectives.label_regression:SingleOrder",
    "order_averaged": "steadyrank.objectives.label_regression:OrderAveraged",
    "permutation_augmentation": "steadyrank.objectives.label_regression:PermutationAugmentation",
    "debias_first": "steadyrank.objectives.label_regression:DebiasFirst",
    "mean_teacher": "steadyrank.objectives.mean_teacher:MeanTeacher",
    "kl_to_base": "steadyrank.objectives.kl_to_base:KlToBase",
    "oc_sft": "steadyrank.objectives.oc_sft:OcSft",
    "marker_consistency": "steadyrank.objectives.oc_sft:MarkerConsistency",
}

PRESETS: dict[str, dict[str, Any]] = {  # settings in which a name differs from its class; a8 differs in the teacher it is given
    "a4": {"kl": 0.0},
    "a5": {"entropy": 0.0},
    "a6_kl": {"kl": 1.0},
}

__all__ = ["OBJECTIVES", "PRESETS", "VIEW_OBJECTIVES", "LossSum", "Objective", "ViewObjective", "build"]


def build(name: str, **settings: Any) -> Any:
    """The objective of this name; an unknown name or setting raises with the nearest one, a bad value says what is allowed.

    consistency: settings of the variance over views, for a score objective; the result then reads views.
    """
    cls = find("objective", name, OBJECTIVES | VIEW_OBJECTIVES)
    consistency = settings.pop("consistency", None) if name in OBJECTIVES else None
    objective: Objective | ViewObjective = cls(name, _settings(f"objective {name!r}", cls.Settings, PRESETS.get(name, {}) | settings))
    if consistency is None:
        return objective
    return with_consistency(objective, consistency)


def with_consistency(objective: Any, consistency: Mapping[str, Any]) -> ViewObjective:
    """A score objective with the variance over views added to it."""
    if not isinstance(consistency, Mapping):
        raise ConfigError(f"consistency is {consistency!r}; give its settings, such as {{weight: 3.0}}")
    if objective.snapshot_steps:
        raise ConfigError("consistency goes with rankings of the student itself; set behaviour: student")
    kind, kind_settings = (load(f"steadyrank.objectives.steady:{part}") for part in ("Steady", "ConsistencySettings"))
    made: ViewObjective = kind(objective, _settings("consistency", kind_settings, consistency))
    return made


def _settings(owner: str, kind: Any, values: Mapping[str, Any]) -> Any:
    known = kind.__dataclass_fields__
    for key in values:
        if key not in known:
            raise unknown_name(f"setting of {owner}:", key, known)
    return kind(**values)


def __getattr__(name: str) -> Any:
    if name in ("LossSum", "Objective"):
        return load(f"steadyrank.objectives.base:{name}")
    if name == "ViewObjective":
        return load("steadyrank.objectives.views:ViewObjective")
    raise AttributeError(f"module 'steadyrank.objectives' has no attribute {name!r}")
