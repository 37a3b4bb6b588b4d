"""Rewards of a group of rankings -> advantages.

baseline "mean" with scale "std" is GRPO as published (population std + 1e-6 outside the root); "leave_one_out" with "none" is RLOO
(Kool et al. 2019; Ahmadian et al. 2024): the mean baseline holds a ranking's own reward and so gives (G - 1) / G of the gradient.
A group equal up to float noise gets zeros, exactly: dividing noise by 1e-6 would make a gradient of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from steadyrank.errors import ConfigError, NonFiniteScoreError

FLAT = 1e-7


def group_advantages(
    rewards_BG: Tensor,
    *,
    baseline: str = "mean",
    scale: str = "std",
    valid_BG: Tensor | None = None,
    epsilon: float = 1e-6,
    tolerance: float = FLAT,
) -> Tensor:
    """advantages_BG of each group (the last axis).

    baseline: "mean" | "leave_one_out" | "none"; scale: "std" (population) | "sample_std" | "none".
    valid_BG: false where a ranking could not be scored; such a one counts in no mean or std and gets 0, whatever it holds.
    """
    rewards_BG = torch.as_tensor(rewards_BG)
    rewards_BG = rewards_BG.to(torch.promote_types(rewards_BG.dtype, torch.float32))
    valid_BG = torch.ones_like(rewards_BG, dtype=torch.bool) if valid_BG is None else valid_BG.bool()
    rewards_BG = torch.where(valid_BG, rewards_BG, 0.0)
    if not bool(torch.isfinite(rewards_BG).all()):
        raise NonFiniteScoreError("holds a NaN or infinite reward; mark what could not be scored in valid_BG", field="rewards")
    count_B1 = valid_BG.sum(-1, keepdim=True)
    mean_B1 = rewards_BG.sum(-1, keepdim=True) / count_B1.clamp(min=1)
    advantages_BG = _minus_baseline(rewards_BG, mean_B1, count_B1, baseline)
    if scale in ("std", "sample_std"):
        squares_B1 = torch.where(valid_BG, rewards_BG - mean_B1, 0.0).square().sum(-1, keepdim=True)
        degrees_B1 = count_B1 - int(scale == "sample_std")
        advantages_BG = advantages_BG / ((squares_B1 / degrees_B1.clamp(min=1)).sqrt() + epsilon)
    elif scale != "none":
        raise ConfigError(f"scale {scale!r} unknown; give 'std', 'sample_std' or 'none'")
    return torch.where(valid_BG & ~is_flat(rewards_BG, valid_BG, tolerance=tolerance)[..., None], advantages_BG, 0.0)


def is_flat(rewards_BG: Tensor, valid_BG: Tensor | None = None, *, tolerance: float = FLAT) -> Tensor:
    """flat_B: no two scored rankings of the group differ by more than float noise (also where fewer than two were scored)."""
    valid_BG = torch.ones_like(rewards_BG, dtype=torch.bool) if valid_BG is None else valid_BG
    high_B = torch.where(valid_BG, rewards_BG, -torch.inf).amax(-1)
    low_B = torch.where(valid_BG, rewards_BG, torch.inf).amin(-1)
    if tolerance:  # a few units in the last place of the dtype are noise too
        largest_B = torch.where(valid_BG, rewards_BG, 0.0).abs().amax(-1)
        return ~(high_B - low_B > torch.clamp(4 * torch.finfo(rewards_BG.dtype).eps * largest_B, min=tolerance))
    return ~(high_B > low_B)


def from_optional(rows: Sequence[Sequence[float | None]], *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """(rewards_BG, valid_BG) of rewards where None, and only None, means: could not be scored."""
    rewards_BG = torch.tensor([[0.0 if reward is None else reward for reward in row] for row in rows], dtype=dtype)
    return rewards_BG, torch.tensor([[reward is not None for reward in row] for row in rows])


def _minus_baseline(rewards_BG: Tensor, mean_B1: Tensor, count_B1: Tensor, baseline: str) -> Tensor:
    if baseline == "mean":
        return rewards_BG - mean_B1
    if baseline == "leave_one_out":
        return (rewards_BG - mean_B1) * (count_B1 / (count_B1 - 1).clamp(min=1))
    if baseline == "none":
        return rewards_BG
    raise ConfigError(f"baseline {baseline!r} unknown; give 'mean', 'leave_one_out' or 'none'")
