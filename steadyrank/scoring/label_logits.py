"""Logits of a few answer tokens of a causal language model, read at the last real position of each sequence.

Positions come from the attention mask only (the padding id may well be the end-of-text id, and may stand inside a prompt), so either
padding side gives the same scores. Only the rows of the output layer that belong to the answers are multiplied, in float32: under
bfloat16 a logit near 20 has steps of 0.125, which would tie half of a list. The call goes through the model's own `forward`, so
that wrappers (data parallel, adapters), logit caps and hooks stay in force.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def last_positions(mask_BT: Tensor) -> Tensor:
    """Index of the last attended position of each row, for either padding side."""
    steps_T = torch.arange(1, mask_BT.shape[1] + 1, device=mask_BT.device)
    return (mask_BT.bool() * steps_T).argmax(dim=1)


def position_ids(mask_BT: Tensor) -> Tensor:
    """0, 1, 2... over the attended positions of each row, so that padding before a text does not move it."""
    return (mask_BT.long().cumsum(1) - 1).clamp(min=0)


def unwrapped(model: nn.Module) -> nn.Module:
    """The module inside data-parallel and compiled wrappers (adapters stay)."""
    while isinstance(inner := getattr(model, "module", None) or getattr(model, "_orig_mod", None), nn.Module):
        model = inner
    return model


@contextlib.contextmanager
def answer_head(model: nn.Module, ids: Sequence[int]) -> Iterator[bool]:
    """Let the output layer give the logits of `ids` only, in float32. Yields False, changing nothing, where it is no plain linear layer."""
    head = unwrapped(model).get_output_embeddings()  # type: ignore[operator]
    if type(head) is not nn.Linear or "forward" in head.__dict__:
        yield False
        return

    def forward(hidden: Tensor) -> Tensor:
        rows = torch.as_tensor(ids, device=head.weight.device)
        bias = None if head.bias is None else head.bias[rows].float()
        with torch.autocast(hidden.device.type, enabled=False):
            return nn.functional.linear(hidden.float(), head.weight[rows].float(), bias)

    head.__dict__["forward"] = forward
    try:
        yield True
    finally:
        del head.__dict__["forward"]


def answer_logits(model: nn.Module, inputs: Mapping[str, Any], ids: Sequence[int], *, narrow_positions: bool = True) -> Tensor:
    """Logits of the answers for each row of a padded batch, padded on either side: float32, shape (rows, answers).

    `narrow_positions`: the model's forward takes `logits_to_keep`, so that only the read positions go through the output layer.
    """
    last_B = last_positions(inputs["attention_mask"])
    kept, place_B = torch.unique(last_B, return_inverse=True)
    logits_BLA = _logits(model, inputs, ids, kept if narrow_positions else None)
    return logits_BLA[torch.arange(len(last_B), device=last_B.device), place_B if narrow_positions else last_B].float()


def packed_answer_logits(
    model: nn.Module, inputs: Mapping[str, Any], ids: Sequence[int], last_N: Tensor, *, narrow_positions: bool = True
) -> Tensor:
    """The same where several sequences lie in one row and `last_N` holds the last position of each."""
    logits_1LA = _logits(model, inputs, ids, last_N if narrow_positions else None)
    return (logits_1LA[0] if narrow_positions else logits_1LA[0, last_N]).float()


def _logits(model: nn.Module, inputs: Mapping[str, Any], ids: Sequence[int], kept: Tensor | None) -> Tensor:
    options = {} if kept is None else {"logits_to_keep": kept}
    with answer_head(model, ids) as narrow:
        logits = model(**inputs, use_cache=False, **options).logits
    return logits if narrow else logits[..., list(ids)]
