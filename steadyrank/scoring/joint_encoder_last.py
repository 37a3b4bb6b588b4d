"""The last layer of a joint encoder, computed only where a grade is read. Exact: nobody reads the other rows, which stay zero.

Keys and values of the last layer need every token, its queries, output projection and feed-forward part the markers only: with six
layers that is about an eighth of all work, in scoring and in training. For layers of BERT's form; others run as they are.
"""

from __future__ import annotations

import contextlib
import threading
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

_state = threading.local()


def shorten(encoder: Any) -> None:
    """Let the encoder's last layer look at the slots of the running forward, if it has BERT's form."""
    try:
        layer = encoder.encoder.layer[-1]
        mixing, has_form = layer.attention.self, callable(layer.feed_forward_chunk) and isinstance(layer.attention.output, nn.Module)
    except (AttributeError, TypeError, IndexError):
        return
    if has_form and not getattr(mixing, "is_causal", False) and all(hasattr(mixing, part) for part in ("query", "key", "value", "scaling")):
        layer.forward = types.MethodType(_forward, layer)


@contextlib.contextmanager
def reading(slots_N2: Tensor) -> Iterator[None]:
    """While this lasts, only these (row, place) of the last layer's output are wanted."""
    before, _state.slots = getattr(_state, "slots", None), slots_N2
    try:
        yield
    finally:
        _state.slots = before


def _forward(layer: Any, hidden_BTD: Tensor, attention_mask: Tensor | None = None, *args: Any, **options: Any) -> Tensor:
    slots_N2 = getattr(_state, "slots", None)
    if slots_N2 is None or attention_mask is None:
        return type(layer).forward(layer, hidden_BTD, attention_mask, *args, **options)
    rows_N, places_N = slots_N2.unbind(1)
    mixing = layer.attention.self
    split = (-1, mixing.attention_head_size)
    here_ND = hidden_BTD[rows_N, places_N]
    query = mixing.query(here_ND).unflatten(-1, split)[:, :, None]
    key, value = (part(hidden_BTD).unflatten(-1, split).transpose(1, 2)[rows_N] for part in (mixing.key, mixing.value))
    mixed = nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask[rows_N, :, places_N][:, :, None],
        dropout_p=mixing.dropout.p if mixing.training else 0.0,
        scale=mixing.scaling,
    )
    found_ND = layer.feed_forward_chunk(layer.attention.output(mixed[:, :, 0].flatten(1), here_ND))
    return torch.zeros_like(hidden_BTD, dtype=found_ND.dtype).index_put((rows_N, places_N), found_ND)
