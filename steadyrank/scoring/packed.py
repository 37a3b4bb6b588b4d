"""Forwards without padding: the tokens of all sequences stand in one row, and attention sees one sequence at a time.

Hung on transformers' own `AttentionInterface` under the name `steadyrank`, so that every architecture that uses the interface runs
packed, in scoring and in training alike. Outside of `sequences(...)` and `run` the name is plain SDPA.

    prepare(model)                                    # once
    with sequences([5, 9, 9]):                        # lengths, in the order of the row
        logits = read(model, input_ids_1T, ...)       # one row of logits a sequence

Sequences of equal length that stand side by side share one SDPA call, so a row should be sorted by length. The classification head
is the model's own: hooks hand it the first token of each sequence (the last one for decoders), in fp32 also under autocast. Positions
come from the lengths, never from token values.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "steadyrank"
_LAST = "_steadyrank_last"
_UNSUPPORTED = ("softcap", "position_bias", "s_aux")


@dataclass
class _Active:
    """The forward that is running in this thread."""

    lengths: tuple[int, ...]
    packed: bool
    rows: Tensor | None = None  # where the head reads: (N,) places in a packed row, or the last real place of each padded row
    captured: Tensor | None = None
    width: int = 1
    autocasts: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.groups = [(len(list(run)), length) for length, run in groupby(self.lengths)]
        self.pieces = [count * length for count, length in self.groups]
        self.total = sum(self.lengths)


_state = threading.local()


def _active() -> _Active | None:
    return getattr(_state, "active", None)


@contextlib.contextmanager
def _running(active: _Active) -> Iterator[_Active]:
    before, _state.active = _active(), active
    try:
        yield active
    finally:
        _state.active = before


@contextlib.contextmanager
def sequences(lengths: Sequence[int]) -> Iterator[None]:
    """While this lasts, a model prepared for it reads a row (1, T) as sequences of these lengths."""
    with _running(_Active(tuple(lengths), packed=True)):
        yield


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """SDPA over each sequence of the running row; plain SDPA where no packed row is running."""
    active = _active()
    if active is None or not active.packed:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal, **kwargs
        )
    unsupported = [name for name in _UNSUPPORTED if kwargs.get(name) is not None]
    if unsupported or query.shape[0] != 1 or query.shape[2] != active.total or key.shape[2] != active.total:
        raise NotImplementedError(f"packed attention does not know {unsupported or 'these shapes'}")
    repeats = query.shape[1] // key.shape[1]
    if repeats > 1:
        key, value = repeat_kv(key, repeats), repeat_kv(value, repeats)
    causal = bool(is_causal if is_causal is not None else getattr(module, "is_causal", True))
    dtype = query.dtype
    if _backward_is_slow(query):
        query, key, value = query.float(), key.float(), value.float()
    if active.rows is not None and getattr(module, _LAST, False):
        return _first_tokens_only(active, query, key, value, dropout, scaling).to(dtype), None
    window = kwargs.get("sliding_window")
    out = []
    for (count, length), *parts in zip(
        active.groups, *(tensor[0].split(active.pieces, dim=1) for tensor in (query, key, value)), strict=True
    ):
        # (heads, count * length, size) -> (count, heads, length, size), without a copy
        q, k, v = (part.unflatten(1, (count, length)).transpose(0, 1) for part in parts)
        mask = _window_mask(length, window, causal, q.device)
        mixed = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling, is_causal=causal and mask is None and length > 1
        )
        out.append(mixed.transpose(1, 2).flatten(0, 1))
    return (out[0] if len(out) == 1 else torch.cat(out)).unsqueeze(0).to(dtype), None


def _backward_is_slow(query: Tensor) -> bool:
    """Whether this attention is computed in fp32 although the model runs in bf16: on a CPU the gradient of attention over short sequences
    takes twice as long in bf16 (docs/log.md), and fp32 loses nothing."""
    return query.device.type == "cpu" and query.dtype == torch.bfloat16 and torch.is_grad_enabled() and query.requires_grad


def _first_tokens_only(active: _Active, query: Tensor, key: Tensor, value: Tensor, dropout: float, scaling: float | None) -> Tensor:
    """Attention of the last layer of an encoder whose head reads first tokens: nobody reads the other rows, which stay zero."""
    assert active.rows is not None
    heads = query[0, :, active.rows[0]].split([count for count, _ in active.groups], dim=1)
    out = []
    for (count, length), q, *parts in zip(
        active.groups, heads, *(tensor[0].split(active.pieces, dim=1) for tensor in (key, value)), strict=True
    ):
        k, v = (part.unflatten(1, (count, length)).transpose(0, 1) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(q.transpose(0, 1)[:, :, None], k, v, dropout_p=dropout, scale=scaling)
        out.append(mixed[:, :, 0])
    rows = torch.cat(out)
    return rows.new_zeros(active.total, *rows.shape[1:]).index_copy(0, active.rows[0], rows)[None]


def _window_mask(length: int, window: int | None, causal: bool, device: torch.device) -> Tensor | None:
    """What a token may see under a sliding window that is shorter than the sequence; None where it sees all that it may."""
    if window is None or length <= window:
        return None
    place = torch.arange(length, device=device)
    back = place[:, None] - place[None, :]
    # transformers' conventions: causal models see `window` tokens with themselves, the bidirectional ones receive half their window + 1
    return (back >= 0) & (back < window) if causal else back.abs() < window


def _mask(*args: Any, **kwargs: Any) -> Tensor | None:
    active = _active()
    return None if active is not None and active.packed else sdpa_mask(*args, **kwargs)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, _mask)


def reads_last(model: PreTrainedModel) -> bool:
    """Whether the head reads the last token (decoders name their head `score`), not the first."""
    return isinstance(getattr(model, "score", None), nn.Module)


def prepare(model: PreTrainedModel) -> PreTrainedModel:
    """Give a sequence classifier the hooks that it needs; a model that already has them is left as it is."""
    if getattr(model, "_steadyrank_prepared", False):
        return model
    base = getattr(model, model.base_model_prefix)
    heads = [child for child in model.children() if child is not base]
    pooler = getattr(base, "pooler", None)
    if reads_last(model):
        score: nn.Module = model.score  # type: ignore[assignment]
        score.register_forward_pre_hook(_gather_input)
        score.register_forward_hook(_capture)
    else:
        base.register_forward_hook(_gather_output)
        _shorten_last_layer(base)
        if isinstance(pooler, nn.Module):
            pooler.register_forward_pre_hook(_gather_input)
            heads.append(pooler)
    for head in heads:
        head.register_forward_pre_hook(_enter_fp32)
        head.register_forward_hook(_leave_fp32, always_call=True)
    model._steadyrank_prepared = True  # type: ignore[assignment]
    return model


def _shorten_last_layer(base: nn.Module) -> None:
    """From the last layer's attention on, only the token that the head reads is computed (BERT's family of layers)."""
    try:
        attention = base.encoder.layer[-1].attention  # type: ignore[union-attr,index]
        mixing, output = attention.self, attention.output
    except (AttributeError, TypeError, IndexError):
        return
    if not getattr(mixing, "is_causal", False):
        setattr(mixing, _LAST, True)
        output.register_forward_pre_hook(_gather_both)


def use(model: PreTrainedModel) -> str | None:
    """Let the model run packed; otherwise the reason why it cannot, and the model is left on its own attention."""
    before = model.config._attn_implementation
    if "position_ids" not in forward_names(model):
        return "its forward takes no position_ids"
    if getattr(model.config, "classifier_pooling", "cls") != "cls":
        return f"its head pools by {model.config.classifier_pooling}"
    try:
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation != NAME:
            return "it does not use transformers' attention interface"
        _probe(model)
    except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError, NotImplementedError) as error:
        model.set_attn_implementation(before)
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return None


@torch.inference_mode()
def _probe(model: PreTrainedModel) -> None:
    """Packed and alone must agree on made-up sequences: what an architecture does to a row cannot be known from its name."""
    numbers = torch.Generator().manual_seed(0)
    size = model.config.get_text_config().vocab_size
    rows = [torch.randint(size, (length,), generator=numbers).to(model.device) for length in (3, 7, 7)]
    was_training = model.training
    model.eval()
    try:
        offset = position_start(model)
        alone = torch.cat(
            [
                run(
                    model,
                    {
                        "input_ids": row[None],
                        "attention_mask": torch.ones_like(row)[None],
                        "position_ids": _positions([len(row)], offset, row.device),
                    },
                )
                for row in rows
            ]
        )
        lengths = torch.tensor([len(row) for row in rows])
        together = run(
            model,
            {
                "input_ids": torch.cat(rows)[None],
                "position_ids": _positions(lengths.tolist(), offset, rows[0].device),
                "lengths_N": lengths,
            },
        )
    finally:
        model.train(was_training)
    bound = 1e-4 if model.dtype == torch.float32 else 0.05
    if not torch.allclose(alone, together, atol=bound, rtol=bound):
        raise NotImplementedError(f"packed and single scores differ by {(alone - together).abs().max():.2g}")


def position_start(model: PreTrainedModel) -> int:
    """The first position: RoBERTa's tables start behind their padding index."""
    from steadyrank.prompts.fit import position_offset

    return position_offset(model.config)


def _positions(lengths: Sequence[int], start: int, device: torch.device | str) -> Tensor:
    return torch.cat([torch.arange(start, start + length) for length in lengths])[None].to(device)


def forward_names(model: nn.Module) -> frozenset[str]:
    """The inputs that the model's forward names."""
    import inspect

    return frozenset(inspect.signature(type(model).forward).parameters)


def run(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """logits (N, labels), fp32, of a prepared classifier, wrapped or not. With `lengths_N` the inputs are a packed row."""
    inputs = dict(inputs)
    lengths, places = inputs.pop("lengths_N", None), inputs.pop("places_N", None)
    if "position_ids" in inputs and inputs["position_ids"] is None:
        inputs.pop("position_ids")
    if lengths is not None:
        sizes = lengths.tolist()
        active = _Active(tuple(sizes), packed=True)
        ends = lengths.cumsum(0)
        active.rows = torch.stack((ends - lengths, ends - 1)).to(inputs["input_ids"].device)
    else:
        mask = inputs["attention_mask"]
        active = _Active((), packed=False)
        active.rows = torch.stack((torch.zeros_like(mask[:, 0]), mask.sum(-1) - 1))
    active.width = inputs["input_ids"].shape[1]
    with _running(active):
        found = model(**inputs)
    logits = (active.captured if active.captured is not None else found.logits).float()
    return logits if places is None else logits[places.to(logits.device)]


def _pick(active: _Active, hidden: Tensor, which: int) -> Tensor:
    """(N, 1, size): the token that the head reads of each sequence; what is already picked stays as it is."""
    assert active.rows is not None
    rows = active.rows[which]
    if active.packed:
        return hidden[0, rows][:, None] if hidden.shape[:2] == (1, active.total) else hidden
    if hidden.shape[1] == 1:
        return hidden
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), rows][:, None]


def _gather_input(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    active = _active()
    if active is None or active.rows is None or args[0].dim() != 3:
        return None
    last = 1 if isinstance(module, nn.Linear) else 0  # the `score` of decoders is a linear layer, a pooler never is
    return (_pick(active, args[0], last), *args[1:])


def _gather_both(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    active = _active()
    if active is None or active.rows is None or len(args) != 2:
        return None
    return _pick(active, args[0], 0), _pick(active, args[1], 0)


def _gather_output(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
    active = _active()
    if active is None or active.rows is None or not active.packed:
        return None
    output.last_hidden_state = _pick(active, output.last_hidden_state, 0)
    return output


def _capture(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
    """Keep the logits of the picked tokens; the model's own picking, which trusts token values, gets zeros to pick from."""
    active = _active()
    if active is None or active.rows is None:
        return None
    active.captured = output[:, 0]
    rows = 1 if active.packed else output.shape[0]
    return output.new_zeros(1, 1, output.shape[-1]).expand(rows, active.width, -1)


def _enter_fp32(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    active = _active()
    if active is None or active.rows is None:
        return None
    device = args[0].device.type
    off = torch.autocast(device, enabled=False)
    off.__enter__()
    active.autocasts.append(off)
    weight = next(module.parameters(), None)
    return (args[0].to(weight.dtype), *args[1:]) if weight is not None else None


def _leave_fp32(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
    active = _active()
    if active is not None and active.autocasts:
        active.autocasts.pop().__exit__(None, None, None)
