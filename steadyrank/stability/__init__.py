"""How far scores of one pool move when only their presentation changes. numpy only; names load on use.

Scores come as scores_PK: one row a presentation, columns in canonical order. Every function states range, ties and what nan means; nothing
here knows a model, a threshold or a grade (`steadyrank.consumers` holds what acts on scores).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadyrank.names import find

_NAMES = {
    "tau_psi": "steadyrank.stability.psi:tau_psi",
    "psi_many": "steadyrank.stability.psi:psi_many",
    "psi_table": "steadyrank.stability.psi:psi_table",
    "PsiTable": "steadyrank.stability.psi:PsiTable",
    "pool_psi": "steadyrank.stability.psi:pool_psi",
    "score_variance": "steadyrank.stability.spread:score_variance",
    "residual_rmse": "steadyrank.stability.spread:residual_rmse",
    "rank_variance": "steadyrank.stability.spread:rank_variance",
    "top_k_turnover": "steadyrank.stability.spread:top_k_turnover",
    "tie_rate": "steadyrank.stability.spread:tie_rate",
    "slot_residual_rms": "steadyrank.stability.spread:slot_residual_rms",
    "survivors_after_drop": "steadyrank.stability.spread:survivors_after_drop",
    "survivors_after_replace": "steadyrank.stability.spread:survivors_after_replace",
    "placement_variance": "steadyrank.stability.spread:placement_variance",
    "spearman": "steadyrank.stability.spread:spearman",
    "decompose": "steadyrank.stability.decomposition:decompose",
    "pool": "steadyrank.stability.decomposition:pool",
    "Decomposition": "steadyrank.stability.decomposition:Decomposition",
    "slot_profile": "steadyrank.stability.decomposition:slot_profile",
    "SlotProfile": "steadyrank.stability.decomposition:SlotProfile",
    "companion_swap": "steadyrank.stability.companions:companion_swap",
    "CompanionSwap": "steadyrank.stability.companions:CompanionSwap",
    "swap_orders": "steadyrank.stability.companions:swap_orders",
    "hierarchical_bootstrap": "steadyrank.stability.bootstrap:hierarchical_bootstrap",
    "paired_bootstrap": "steadyrank.stability.bootstrap:paired_bootstrap",
    "bootstrap_table": "steadyrank.stability.bootstrap:bootstrap_table",
}
__all__ = [
    "CompanionSwap",
    "Decomposition",
    "PsiTable",
    "SlotProfile",
    "bootstrap_table",
    "companion_swap",
    "decompose",
    "hierarchical_bootstrap",
    "paired_bootstrap",
    "placement_variance",
    "pool",
    "pool_psi",
    "psi_many",
    "psi_table",
    "rank_variance",
    "residual_rmse",
    "score_variance",
    "slot_profile",
    "slot_residual_rms",
    "spearman",
    "survivors_after_drop",
    "survivors_after_replace",
    "swap_orders",
    "tau_psi",
    "tie_rate",
    "top_k_turnover",
]

if TYPE_CHECKING:
    from steadyrank.stability.bootstrap import bootstrap_table, hierarchical_bootstrap, paired_bootstrap
    from steadyrank.stability.companions import CompanionSwap, companion_swap, swap_orders
    from steadyrank.stability.decomposition import Decomposition, SlotProfile, decompose, pool, slot_profile
    from steadyrank.stability.psi import PsiTable, pool_psi, psi_many, psi_table, tau_psi
    from steadyrank.stability.spread import (
        placement_variance,
        rank_variance,
        residual_rmse,
        score_variance,
        slot_residual_rms,
        spearman,
        survivors_after_drop,
        survivors_after_replace,
        tie_rate,
        top_k_turnover,
    )


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return find("name of steadyrank.stability", name, _NAMES)
    raise AttributeError(f"module 'steadyrank.stability' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
