"""Terms that several objectives share: divergences and entropies of Plackett-Luce policies, one value a list.

KL between rankings is, by the chain rule, the expected sum of KLs between next-choice distributions; because a list holds few
candidates these are
exact sums and never single-sample log-ratios. The sampled estimators k2 and k3 (Schulman 2020) are there for comparison: as a
loss, k2 has the
gradient of the reverse KL under on-policy samples, k3 that of the forward KL.
"""

from __future__ import annotations

import torch
from torch import Tensor

from steadyrank.policy.plackett_luce import choice_log_probs, masked_log_softmax, next_choice

LOG_RATIO_LIMIT = 20.0


def first_choice_kl(scores_BK: Tensor, other_BK: Tensor, mask_BK: Tensor, *, floor: float = 0.0) -> Tensor:
    """kl_B = KL(softmax(scores) || softmax(other)), over the first choice. floor: lowest probability of `other` (the paper's
    code: 1e-12)."""
    logq_BK, logother_BK = masked_log_softmax(scores_BK, mask_BK), masked_log_softmax(other_BK, mask_BK)
    if floor:
        logother_BK = torch.where(mask_BK, logother_BK.clamp(min=torch.tensor(floor).log().item()), 0.0)
    return _expected(logq_BK, logq_BK - logother_BK, mask_BK)


def first_choice_entropy(scores_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """entropy_B, in nats, of the first choice."""
    logq_BK = masked_log_softmax(scores_BK, mask_BK)
    return -_expected(logq_BK, logq_BK, mask_BK)


def stepwise_kl(
    scores_BK: Tensor, other_BK: Tensor, rankings_BGK: Tensor, mask_BK: Tensor, *, depth: int, temperature: float = 1.0
) -> Tensor:
    """kl_B: exact KL of the next choice, summed over the first `depth` places of rankings drawn from the student, mean over them.

    The value estimates the KL between top-`depth` rankings without bias; no gradient flows through which prefixes were drawn.
    """
    logp_BGDK, open_BGDK = next_choice(scores_BK, rankings_BGK, mask_BK, depth=depth, temperature=temperature)
    logother_BGDK, _ = next_choice(other_BK, rankings_BGK, mask_BK, depth=depth, temperature=temperature)
    return _expected(logp_BGDK, logp_BGDK - logother_BGDK, open_BGDK).sum(-1).mean(-1)


def sampled_kl(
    scores_BK: Tensor, other_BK: Tensor, rankings_BGK: Tensor, mask_BK: Tensor, *, estimator: str, depth: int, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """(kl_B, clamped_B): k1, k2 or k3 of whole rankings, mean over them, and the share whose log-ratio had to be clamped."""
    log_p_BG, log_other_BG = (
        choice_log_probs(x_BK, rankings_BGK, mask_BK, depth=depth, temperature=temperature).sum(-1) for x_BK in (scores_BK, other_BK)
    )
    ratio_BG = log_other_BG - log_p_BG
    return kl_estimate(ratio_BG, estimator).mean(-1), (ratio_BG.detach().abs() > LOG_RATIO_LIMIT).to(ratio_BG.dtype).mean(-1)


def kl_estimate(log_ratio: Tensor, estimator: str) -> Tensor:
    """k1 = -r, k2 = r^2 / 2, k3 = e^r - r - 1 for r = log p_other - log p, clamped to +-20 so that k3 stays finite."""
    log_ratio = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    if estimator == "k1":
        return -log_ratio
    if estimator == "k2":
        return log_ratio.square() / 2
    return torch.expm1(log_ratio) - log_ratio


def jensen_shannon(logs: Tensor, logt: Tensor, open_: Tensor, *, beta: float) -> Tensor:
    """beta KL(T || M) + (1 - beta) KL(S || M), M = beta T + (1 - beta) S (Agarwal et al. 2024), over the last axis.

    At the ends, where that vanishes, the limits of the divergence over its weight: beta = 0 is KL(T || S), beta = 1 is KL(S || T).
    """
    if beta == 0.0:
        return _expected(logt, logt - logs, open_)
    if beta == 1.0:
        return _expected(logs, logs - logt, open_)
    weights = torch.tensor([beta, 1 - beta], dtype=logs.dtype, device=logs.device).log()
    logm = torch.logaddexp(logt + weights[0], logs + weights[1])
    return beta * _expected(logt, logt - logm, open_) + (1 - beta) * _expected(logs, logs - logm, open_)


def _expected(logp: Tensor, values: Tensor, open_: Tensor) -> Tensor:
    """Sum of exp(logp) * values over the open entries of the last axis."""
    return torch.where(open_, logp.exp() * values, 0.0).sum(-1)
