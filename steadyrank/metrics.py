"""Ranking metrics, used alike by rewards, evaluation and stability. Not here: named measures of whole runs (`steadyrank.evaluation`).

Axes: B lists, K candidates (padded), G rankings. A ranking holds candidate indices, best first, padded candidates last; it may
be cut short.
Rules:
- gain is 2^grade - 1 ("exponential", Burges et al. 2005) or the grade itself ("linear", Jarvelin & Kekalainen 2002); a negative grade
  (unjudged) gains 0; discount is 1 / log2(rank + 1), rank from 1; the cutoff is min(k, list length);
- the ideal is that of the same list (pool-local); a list whose ideal is 0 scores 0;
- `mrr` is 1 / rank of the first candidate with a grade above 0 among the first k, else 0;
- ties: rankings have none, whoever sorts decides; `kendall_tau` "b" corrects for ties and is nan where one side is constant or has fewer
  than two entries (no pair to compare); "a" counts a tied pair as neither, or, with ties="input", ranks tied entries by their place.
float64 in, float64 out; everything below float32 is computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from steadyrank.errors import ConfigError, NonFiniteScoreError

if TYPE_CHECKING:
    from torch import Tensor

Gain = Literal["exponential", "linear"]


def clean(values_BK: Tensor, mask_BK: Tensor, *, what: str = "scores") -> Tensor:
    """Values in float32 or wider, zeros on the padding whatever it holds; a NaN or infinite value of a candidate raises."""
    import torch

    values_BK = torch.where(mask_BK, values_BK.to(torch.promote_types(values_BK.dtype, torch.float32)), 0.0)
    if not bool(torch.isfinite(values_BK).all()):
        place = (~torch.isfinite(values_BK)).nonzero()[0].tolist()
        raise NonFiniteScoreError(f"is {values_BK[tuple(place)].item()}; such a value is never ranked", field=f"{what}{place}")
    return values_BK


def gains(relevance_BK: Tensor, mask_BK: Tensor | None = None, *, gain: str = "exponential") -> Tensor:
    """Gain of every candidate, 0 on padding and for negative grades."""
    import torch

    if gain not in ("exponential", "linear"):
        raise ConfigError(f"gain {gain!r} unknown; give 'exponential' or 'linear'")
    relevance_BK = torch.as_tensor(relevance_BK)
    mask_BK = torch.ones_like(relevance_BK, dtype=torch.bool) if mask_BK is None else mask_BK
    relevance_BK = clean(relevance_BK, mask_BK, what="relevance").clamp(min=0)
    return torch.exp2(relevance_BK) - 1 if gain == "exponential" else relevance_BK


def discounts(depth: int, like: Tensor) -> Tensor:
    """1 / log2(rank + 1) for ranks 1..depth, on the device and in the dtype of `like`."""
    import torch

    return 1 / torch.log2(torch.arange(2, depth + 2, device=like.device, dtype=like.dtype))


def ideal_dcg(gains_BK: Tensor, *, k: int) -> Tensor:
    """ideal_B: the DCG@k of the best order of each list."""
    depth = min(_cutoff(k), gains_BK.shape[-1])
    return (gains_BK.topk(depth, dim=-1).values * discounts(depth, gains_BK)).sum(-1)


def normalised_gains(relevance_BK: Tensor, mask_BK: Tensor | None = None, *, k: int, gain: str = "exponential") -> Tensor:
    """Gains divided by the list's ideal DCG@k, so that nDCG is a discounted sum of them; zeros where the ideal is 0."""
    gains_BK = gains(relevance_BK, mask_BK, gain=gain)
    ideal_B1 = ideal_dcg(gains_BK, k=k)[..., None]
    return gains_BK / ideal_B1.where(ideal_B1 > 0, 1.0)


def ndcg(rankings_BGK: Tensor, relevance_BK: Tensor, mask_BK: Tensor | None = None, *, k: int, gain: str = "exponential") -> Tensor:
    """ndcg_BG in [0, 1] of each ranking."""
    gains_BK = normalised_gains(relevance_BK, mask_BK, k=k, gain=gain)
    depth = min(_cutoff(k), rankings_BGK.shape[-1])
    return (_at(gains_BK, rankings_BGK[..., :depth]) * discounts(depth, gains_BK)).sum(-1).clamp(max=1)


def mrr(rankings_BGK: Tensor, relevance_BK: Tensor, mask_BK: Tensor | None = None, *, k: int) -> Tensor:
    """mrr_BG: reciprocal rank of the first relevant candidate among the first k."""
    gains_BK = gains(relevance_BK, mask_BK, gain="linear")
    depth = min(_cutoff(k), rankings_BGK.shape[-1])
    found_BGD = _at(gains_BK, rankings_BGK[..., :depth]) > 0
    first_BG = found_BGD.int().argmax(-1)
    return found_BGD.any(-1) / (first_BG + 1).to(gains_BK.dtype)


def kendall_tau(
    scores_a_K: Sequence[float], scores_b_K: Sequence[float], *, variant: Literal["a", "b"] = "b", ties: Literal["none", "input"] = "none"
) -> float:
    """Kendall's tau of two score lists over the same candidates; ties="input" ranks tied scores by their place first."""
    a_K, b_K = np.asarray(scores_a_K, dtype=np.float64), np.asarray(scores_b_K, dtype=np.float64)
    if a_K.shape != b_K.shape or a_K.ndim != 1:
        raise ConfigError(f"kendall_tau compares two lists of equal length, not shapes {a_K.shape} and {b_K.shape}")
    if not (np.isfinite(a_K).all() and np.isfinite(b_K).all()):
        raise NonFiniteScoreError("kendall_tau was given a NaN or infinite score; such a value is never ranked", field="scores")
    if variant not in ("a", "b") or ties not in ("none", "input"):
        raise ConfigError(f"kendall_tau knows variants 'a', 'b' and ties 'none', 'input', not {variant!r} and {ties!r}")
    if ties == "input":
        a_K, b_K = _untied(a_K), _untied(b_K)
    upper = np.triu_indices(len(a_K), 1)
    sign_a = np.sign(a_K[:, None] - a_K[None, :])[upper]
    sign_b = np.sign(b_K[:, None] - b_K[None, :])[upper]
    pairs_a, pairs_b = (len(sign_a), len(sign_b)) if variant == "a" else (np.abs(sign_a).sum(), np.abs(sign_b).sum())
    if not pairs_a or not pairs_b:
        return float("nan")
    return float((sign_a * sign_b).sum() / np.sqrt(float(pairs_a) * float(pairs_b)))


def _untied(values_K: np.ndarray) -> np.ndarray:
    """Scores without ties in the order of the given ones; of equal ones the earlier is higher."""
    out_K = np.empty(len(values_K))
    out_K[np.argsort(-values_K, kind="stable")] = -np.arange(len(values_K), dtype=np.float64)
    return out_K


def _at(values_BK: Tensor, rankings_BGK: Tensor) -> Tensor:
    """Values in the order of each ranking."""
    import torch

    return torch.take_along_dim(values_BK[..., None, :], rankings_BGK, dim=-1)


def _cutoff(k: int) -> int:
    if k < 1:
        raise ConfigError(f"cutoff k is {k}; it must be at least 1")
    return int(k)
