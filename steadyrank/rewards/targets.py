"""Utilities -> relevance: what the teacher's scores are worth as grades.

`rank` is the paper's (arXiv 2609.01947, "rank-normalize"; average ties over n - 1 as in its released trainer). It throws away magnitude;
the others keep some of it. `sigmoid` and `raw` read one candidate at a time, the others the whole list.
"""

from __future__ import annotations

import torch
from torch import Tensor

from steadyrank.errors import unknown_name
from steadyrank.metrics import clean

RELEVANCES = ("rank", "sigmoid", "zsigmoid", "minmax", "softmax", "raw")


def rank_normalize(utilities_BK: Tensor, mask_BK: Tensor | None = None) -> Tensor:
    """relevance_BK in [0, 1]: ascending rank, ties averaged, over n - 1. 0 for a single candidate, .5 where all are equal, 0 on padding."""
    utilities_BK, mask_BK = _checked(utilities_BK, mask_BK)
    below_BKK = (utilities_BK[..., :, None] > utilities_BK[..., None, :]) & mask_BK[..., None, :]
    equal_BKK = (utilities_BK[..., :, None] == utilities_BK[..., None, :]) & mask_BK[..., None, :]
    rank_BK = below_BKK.sum(-1) + (equal_BKK.sum(-1) - 1) / 2
    relevance_BK = rank_BK.to(utilities_BK.dtype) / (mask_BK.sum(-1, keepdim=True) - 1).clamp(min=1)
    return torch.where(mask_BK, relevance_BK, 0.0)


def relevance_from(utilities_BK: Tensor, mask_BK: Tensor | None = None, *, how: str = "rank") -> Tensor:
    """relevance_BK by one of RELEVANCES, 0 on padding.

    zsigmoid: sigmoid of (t - mean) / (population std + 1e-6). minmax: (t - min) / (max - min), .5 where all are equal.
    softmax: the first-choice probabilities. raw: the values themselves (grades; a negative one later gains 0).
    """
    if how == "rank":
        return rank_normalize(utilities_BK, mask_BK)
    t_BK, mask_BK = _checked(utilities_BK, mask_BK)
    if how == "raw":
        return t_BK
    if how == "sigmoid":
        out_BK = t_BK.sigmoid()
    elif how == "softmax":
        out_BK = torch.where(mask_BK, t_BK, torch.finfo(t_BK.dtype).min / 4).softmax(-1)
    elif how == "zsigmoid":
        size_B1 = mask_BK.sum(-1, keepdim=True).clamp(min=1)
        gap_BK = torch.where(mask_BK, t_BK - t_BK.sum(-1, keepdim=True) / size_B1, 0.0)
        out_BK = (gap_BK / ((gap_BK.square().sum(-1, keepdim=True) / size_B1).sqrt() + 1e-6)).sigmoid()
    elif how == "minmax":
        low_B1 = torch.where(mask_BK, t_BK, torch.inf).amin(-1, keepdim=True)
        span_B1 = torch.where(mask_BK, t_BK, -torch.inf).amax(-1, keepdim=True) - low_B1
        out_BK = torch.where(span_B1 > 0, (t_BK - low_B1) / span_B1.where(span_B1 > 0, 1.0), 0.5)
    else:
        raise unknown_name("relevance", how, RELEVANCES)
    return torch.where(mask_BK, out_BK, 0.0)


def logit(probabilities_BK: Tensor, *, eps: float = 1e-6) -> Tensor:
    """Utilities behind probabilities, cut at eps and 1 - eps: losses on margins need logits, not probabilities."""
    return torch.logit(probabilities_BK, eps=eps)


def _checked(utilities_BK: Tensor, mask_BK: Tensor | None) -> tuple[Tensor, Tensor]:
    mask_BK = torch.ones_like(utilities_BK, dtype=torch.bool) if mask_BK is None else mask_BK
    return clean(utilities_BK, mask_BK, what="utilities"), mask_BK
