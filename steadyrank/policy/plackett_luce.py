"""Plackett-Luce: p(ranking) = prod_m exp(s_m / T) / sum over what is left of exp(s / T)   (Plackett 1975).

Sampling is Gumbel-top-k (Yellott 1977; Kool et al. 2019): sort s / T + Gumbel noise. Padded candidates are never chosen, stand
last in every
ranking, and whatever they hold changes neither values nor gradients. Below float32 everything is computed in float32; float64 stays.

Axes: B lists, K candidates (padded), G rankings, D picks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from steadyrank.errors import ConfigError
from steadyrank.metrics import clean
from steadyrank.seeds import stream


def first_choice(scores_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """logq_BK: log-probability of being placed first, the log-softmax of the list; -inf on the padding, also where all is padding."""
    logq_BK = masked_log_softmax(clean(scores_BK, mask_BK), mask_BK)
    return torch.where(mask_BK, logq_BK, -torch.inf)


def masked_log_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Log-softmax over the last axis where `mask`, zeros elsewhere: safe to multiply and to differentiate, all-masked rows too."""
    return torch.where(mask, torch.where(mask, scores, _floor(scores)).log_softmax(-1), 0.0)


def sample_rankings(
    scores_BK: Tensor, mask_BK: Tensor, *, num_samples: int, temperature: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """rankings_BGK: independent draws from the policy."""
    if num_samples < 1:
        raise ConfigError(f"num_samples is {num_samples}; it must be at least 1")
    noise_BGK = gumbel_like(scores_BK, num_samples=num_samples, generator=generator)
    return rank_with_noise(scores_BK, mask_BK, noise_BGK, temperature=temperature)


def gumbel_like(scores_BK: Tensor, *, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
    """noise_BGK: standard Gumbel noise for these scores, from one torch generator (it depends on the batch; see `gumbel_noise`)."""
    size = (scores_BK.shape[0], num_samples, scores_BK.shape[1])
    dtype = torch.promote_types(scores_BK.dtype, torch.float32)
    device = generator.device if generator is not None else scores_BK.device
    noise_BGK = torch.empty(size, dtype=dtype, device=device).exponential_(generator=generator)
    return -noise_BGK.clamp_min(torch.finfo(dtype).tiny).log().to(scores_BK.device)


def gumbel_noise(example_ids: Sequence[str], sizes: Sequence[int], *, num_samples: int, seed: int, step: int) -> Tensor:
    """noise_BGK, float32, from one named stream an example: the same whatever stands beside it, however wide the padding (zeros).

    The first G rankings of an example do not change when more are asked for.
    """
    noise_BGK = np.zeros((len(sizes), num_samples, max(sizes, default=0)), dtype=np.float32)
    for row, (example_id, size) in enumerate(zip(example_ids, sizes, strict=True)):
        noise_BGK[row, :, :size] = stream(seed, "ranking noise", str(example_id), int(step)).gumbel(size=(num_samples, size))
    return torch.from_numpy(noise_BGK)


@torch.no_grad()
def rank_with_noise(scores_BK: Tensor, mask_BK: Tensor, noise_BGK: Tensor, *, temperature: float = 1.0) -> Tensor:
    """rankings_BGK: candidates by falling s / T + noise; equal sums keep their order; no gradient flows."""
    scores_BK = clean(scores_BK, mask_BK) / _temperature(temperature)
    noisy_BGK = torch.where(mask_BK[:, None, :], scores_BK[:, None, :] + noise_BGK, -torch.inf)
    return noisy_BGK.argsort(dim=-1, descending=True, stable=True)


def positions(rankings_BGK: Tensor) -> Tensor:
    """position_BGK: the place, from 0, of every candidate in each full ranking (the inverse permutation)."""
    places_K = torch.arange(rankings_BGK.shape[-1], device=rankings_BGK.device)
    return torch.empty_like(rankings_BGK).scatter_(-1, rankings_BGK, places_K.expand_as(rankings_BGK))


def log_prob(scores_BK: Tensor, rankings_BGK: Tensor, mask_BK: Tensor, *, depth: int | None = None, temperature: float = 1.0) -> Tensor:
    """logp_BG of the first `depth` picks of each ranking (of all, by default)."""
    return choice_log_probs(scores_BK, rankings_BGK, mask_BK, depth=depth, temperature=temperature).sum(-1)


def choice_log_probs(
    scores_BK: Tensor, rankings_BGK: Tensor, mask_BK: Tensor, *, depth: int | None = None, temperature: float = 1.0
) -> Tensor:
    """logp_BGD of each of the first `depth` picks given those before it; zeros beyond the end of a list.

    One reverse cumulative logsumexp along the ranking. The padding holds a huge finite negative, because the gradient of
    logcumsumexp through -inf is NaN.
    """
    width = rankings_BGK.shape[-1]
    depth = width if depth is None else min(_depth(depth), width)
    scores_BK = clean(scores_BK, mask_BK) / _temperature(temperature)
    scores_BK = torch.where(mask_BK, scores_BK, _floor(scores_BK))
    ranked_BGK = torch.take_along_dim(scores_BK[:, None, :], rankings_BGK, dim=-1)
    left_BGK = ranked_BGK.flip(-1).logcumsumexp(-1).flip(-1)
    sizes_B = mask_BK.sum(-1)
    real_B1D = (torch.arange(depth, device=sizes_B.device) < sizes_B[:, None])[:, None, :]
    return torch.where(real_B1D, ranked_BGK[..., :depth] - left_BGK[..., :depth], 0.0)


def next_choice(scores_BK: Tensor, rankings_BGK: Tensor, mask_BK: Tensor, *, depth: int, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """(logp_BGDK, open_BGDK): at each of the first `depth` places of each ranking the log-probability of every candidate, and
    which are left.

    logp is 0 where a candidate is not open (placed before, or padding), so it is safe to multiply.
    """
    depth = min(_depth(depth), mask_BK.shape[-1])
    places_D1 = torch.arange(depth, device=mask_BK.device)[:, None]
    open_BGDK = (positions(rankings_BGK)[:, :, None, :] >= places_D1) & mask_BK[:, None, None, :]
    scores_BK = clean(scores_BK, mask_BK) / _temperature(temperature)
    return masked_log_softmax(scores_BK[:, None, None, :].expand(open_BGDK.shape), open_BGDK), open_BGDK


def _floor(scores: Tensor) -> float:
    """A finite stand-in for -inf that survives subtraction and exp() in this dtype."""
    return torch.finfo(scores.dtype).min / 4


def _temperature(temperature: float) -> float:
    if not temperature > 0:
        raise ConfigError(f"temperature is {temperature}; it must be above 0")
    return temperature


def _depth(depth: int) -> int:
    if depth < 1:
        raise ConfigError(f"depth is {depth}; it must be at least 1")
    return depth
