"""The gradient of a loss of scores, with memory that does not grow with the number of candidates.

The loss sees scores only. So: (1) score every chunk without a graph, (2) differentiate the loss once with respect to the scores, (3)
score every chunk
again with a graph and send that gradient back through it. Random states are kept in (1) and replayed in (3), so that dropout draws the
same masks.
The idea is GradCache's (Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup"), applied to scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor


def chunked_backward(
    forward: Callable[[Any], Tensor],
    chunks: Sequence[Any],
    *,
    loss_of: Callable[[Tensor], Tensor],
    backward: Callable[[Tensor], None],
    scope: Callable[[bool], AbstractContextManager[Any]] = lambda is_last: nullcontext(),
) -> Tensor:
    """Adds the gradient of `loss_of(scores_N)` to the parameters behind `forward`; returns the loss, detached.

    forward:  one chunk's inputs -> its scores, differentiable.
    backward: takes a scalar to differentiate.
    scope:    is_last -> what surrounds a forward and its backward (data parallel training synchronises at the last one only).
    """
    states, parts = [], []
    with torch.no_grad():
        for chunk in chunks:
            states.append(_random_state())
            parts.append(forward(chunk))
    scores_N = torch.cat(parts).detach().requires_grad_()
    loss = loss_of(scores_N)
    if not loss.requires_grad:  # no list of this part counts
        gradient_N = torch.zeros_like(scores_N)
    else:
        (gradient_N,) = torch.autograd.grad(loss, scores_N)
    sizes = [len(part) for part in parts]
    for place, (chunk, state, own) in enumerate(zip(chunks, states, gradient_N.split(sizes), strict=True)):
        _set_random_state(state)
        with scope(place == len(chunks) - 1):
            backward((forward(chunk) * own).sum())
    return loss.detach()


def _random_state() -> tuple[Tensor, list[Tensor]]:
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


def _set_random_state(state: tuple[Tensor, list[Tensor]]) -> None:
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])
