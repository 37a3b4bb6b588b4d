"""Exact expectations under Plackett-Luce by recursion over the sets of candidates already placed.

What follows a prefix depends on the set that was placed, not on its order, so E[nDCG@k] needs sum_{m<k} C(n, m) states instead of n!/(n-k)!
rankings: 27,896 for n = 21, k = 6. With w = exp(s), f_0({}) = 1:

    f(S) = sum_{d in S} f(S - d) w_d / Z(S - d),   Z(S) = sum_{d not in S} w_d,   E = sum_S theta_|S| f(S) sum_{d not in S} w_d rho_d / Z(S)

The inner sums are matrix products with 0/1 tables of the sets, cached for every (n, k). The gradient is taken, list by list,
while the value is
computed, in bounded chunks: no graph of states is kept for the backward pass. All of it in float64. Not here: anything sampled.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadyrank.errors import ConfigError
from steadyrank.metrics import clean, discounts, normalised_gains
from steadyrank.policy.plackett_luce import _temperature

MAX_STATES = 1_000_000  # beyond it a list costs seconds; sample instead
_CHUNK = 1 << 22  # numbers held at once in the widest tensors
_SPAN = 690.0  # exp(-span) is still a normal float64


def expected_ndcg(
    scores_BK: Tensor, relevance_BK: Tensor, mask_BK: Tensor, *, k: int, gain: str = "exponential", temperature: float = 1.0
) -> Tensor:
    """value_B = E[nDCG@k(ranking; relevance)], ranking ~ PL(scores / temperature): exact, and differentiable in the scores only."""
    scores_BK = clean(scores_BK, mask_BK) / _temperature(temperature)
    rho_BK = normalised_gains(relevance_BK.detach(), mask_BK, k=k, gain=gain)
    return _Expectation.apply(scores_BK, rho_BK, mask_BK, k)


def states(n: int, k: int) -> int:
    """How many sets the recursion visits for a list of n candidates."""
    return sum(math.comb(n, m) for m in range(min(n, k)))


class _Expectation(torch.autograd.Function):
    """The value in the forward pass and, where it is wanted, its gradient with it; backward only multiplies."""

    @staticmethod
    def forward(ctx: Any, scores_BK: Tensor, rho_BK: Tensor, mask_BK: Tensor, k: int) -> Tensor:
        wanted = ctx.needs_input_grad[0]
        value_B = scores_BK.new_zeros(scores_BK.shape[0], dtype=torch.float64)
        gradient_BK = torch.zeros_like(scores_BK, dtype=torch.float64)
        sizes_B = mask_BK.sum(-1)
        first_BK = (~mask_BK).byte().argsort(dim=-1, stable=True)  # places of the candidates, then of the padding
        for n in sizes_B.unique().tolist():
            if n == 0:
                continue
            rows_all = (sizes_B == n).nonzero()[:, 0]
            for rows in rows_all.split(max(1, _CHUNK // (states(n, k) * min(n, k)))):
                at = rows[:, None], first_BK[rows, :n]
                value_B[rows], gradient = _value_and_gradient(scores_BK[at].double(), rho_BK[at].double(), k, wanted)
                if gradient is not None:
                    gradient_BK[at] = gradient
        ctx.save_for_backward(gradient_BK.to(scores_BK.dtype))
        return value_B.to(scores_BK.dtype)

    @staticmethod
    def backward(ctx: Any, *grads_B: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient_BK,) = ctx.saved_tensors
        return grads_B[0][:, None] * gradient_BK, None, None, None


def _value_and_gradient(scores_BN: Tensor, rho_BN: Tensor, k: int, wanted: bool) -> tuple[Tensor, Tensor | None]:
    with torch.set_grad_enabled(wanted):
        scores_BN = scores_BN.detach().requires_grad_(wanted)
        value_B = _recursion(_spanned(scores_BN), rho_BN, k)
        gradient_BN = torch.autograd.grad(value_B.sum(), scores_BN)[0] if wanted else None
    return value_B.detach(), gradient_BN


def _recursion(logw_BN: Tensor, rho_BN: Tensor, k: int) -> Tensor:
    """E of the discounted sum of rho over the first k places. States stand on the first axis: whole rows are gathered at once."""
    tables = _tables(logw_BN.shape[1], k, str(logw_BN.device))
    w_NB = logw_BN.exp().T.contiguous()
    wrho_NB = w_NB * rho_BN.T
    discount_D = discounts(len(tables), logw_BN)
    flow_SB = torch.ones(1, logw_BN.shape[0], dtype=logw_BN.dtype, device=logw_BN.device)
    value_B = torch.zeros_like(flow_SB[0])
    for place, table in enumerate(tables):
        if place:
            flow_SB = _enter(flow_SB, w_NB, table)
        # exp(-log Z), not 1 / Z: the derivative of the quotient holds 1 / Z^2, which overflows for wide scores
        flow_SB = flow_SB * torch.exp(-(table.left_SN @ w_NB).log())
        value_B = value_B + discount_D[place] * (flow_SB * (table.left_SN @ wrho_NB)).sum(0)
    return value_B


def _enter(flow_SB: Tensor, w_NB: Tensor, table: _Table) -> Tensor:
    """The probability of every set one larger, from f / Z of the sets it can come from."""
    total_SB = flow_SB.index_select(0, table.parents_MS[0]) * w_NB.index_select(0, table.members_MS[0])
    for parents_S, members_S in zip(table.parents_MS[1:], table.members_MS[1:], strict=True):
        total_SB = total_SB + flow_SB.index_select(0, parents_S) * w_NB.index_select(0, members_S)
    return total_SB


def _spanned(scores_BN: Tensor) -> Tensor:
    """Scores below their maximum, with a span that float64 can hold.

    Only lists wider than the span change: each step down between neighbours is cut at span / (n - 1), 34 for 21 candidates,
    beyond which the
    better one is chosen first with probability 1 to the last digit anyway.
    """
    n = scores_BN.shape[1]
    shifted_BN = scores_BN - scores_BN.detach().amax(-1, keepdim=True)
    if n < 2 or bool((shifted_BN >= -_SPAN).all()):
        return shifted_BN
    sorted_BN, order_BN = scores_BN.sort(dim=-1, descending=True)
    steps_BN = (sorted_BN[:, 1:] - sorted_BN[:, :-1]).clamp(min=-_SPAN / (n - 1))
    cut_BN = torch.zeros_like(scores_BN).scatter(-1, order_BN[:, 1:], steps_BN.cumsum(-1))
    return torch.where((shifted_BN >= -_SPAN).all(-1, keepdim=True), shifted_BN, cut_BN)


@dataclass(frozen=True)
class _Table:
    """The sets of one size."""

    left_SN: Tensor  # 1 where a candidate is not in the set, float64
    parents_MS: Tensor  # the place, among the sets one smaller, of this set without its m-th member
    members_MS: Tensor  # that member


@functools.lru_cache(maxsize=64)
def _tables(n: int, k: int, device: str) -> tuple[_Table, ...]:
    """Tables of the sets of 0 .. min(n, k) - 1 candidates."""
    if states(n, k) > MAX_STATES:
        raise ConfigError(
            f"the exact expectation of {n} candidates at k = {k} needs {states(n, k):,} states (at most {MAX_STATES:,});"
            " lower k, or sample: objective a3 or placement"
        )
    tables = []
    place = n ** np.arange(min(n, k), dtype=np.float64)  # key of a sorted set: its members as digits; exact below 2^53
    keys_before = np.zeros(1)
    for size in range(min(n, k)):
        sets_SM = np.array(list(itertools.combinations(range(n), size)), dtype=np.int64).reshape(math.comb(n, size), size)
        left_SN = np.ones((len(sets_SM), n))
        np.put_along_axis(left_SN, sets_SM, 0.0, axis=1)
        parents = [np.searchsorted(keys_before, np.delete(sets_SM, m, axis=1) @ place[: size - 1][::-1]) for m in range(size)]
        parents_MS = np.array(parents, dtype=np.int64).reshape(size, len(sets_SM))
        keys_before = sets_SM @ place[:size][::-1]
        tables.append(_Table(*(torch.from_numpy(np.ascontiguousarray(x)).to(device) for x in (left_SN, parents_MS, sets_SM.T))))
    return tuple(tables)
