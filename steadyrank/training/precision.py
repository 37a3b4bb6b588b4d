"""Number formats of a run: fp32 master weights with bf16 autocast by default, and a warning where bf16 weights would stand still.

AdamW moves a weight by about the learning rate, and a bf16 number keeps 8 bits: with lr * 2^8 below |w| the update rounds away.
"""

from __future__ import annotations

import torch
from torch import nn

_BF16_BITS = 8


def choose(precision: str) -> str:
    """`auto` as what this machine computes fast."""
    if precision != "auto":
        return precision
    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    return "bf16" if _cpu_has_bf16() else "fp32"


def apply(model: nn.Module, precision: str, *, learning_rate: float) -> list[str]:
    """Casts the trainable weights as `precision` asks; returns what the user should know."""
    want = torch.bfloat16 if precision == "bf16_resident" else torch.float32
    changed = 0
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.dtype != want:
            parameter.data = parameter.data.to(want)
            changed += 1
    notes = [f"{changed} weight tensors cast to {str(want).removeprefix('torch.')}"] if changed else []
    if want is torch.bfloat16:
        notes += _stuck(model, learning_rate)
    return notes


def _stuck(model: nn.Module, learning_rate: float) -> list[str]:
    matrices = [parameter.detach() for parameter in model.parameters() if parameter.requires_grad and parameter.dim() > 1]
    sizes = [weights.flatten()[:100_000].float().abs() for weights in matrices]
    median = torch.cat(sizes).median().item() if sizes else 0.0
    if learning_rate * 2**_BF16_BITS >= median:
        return []
    return [
        f"warning: weights are kept in bf16 and learning_rate {learning_rate:g} is too small to move most of them "
        f"(lr * 2^8 = {learning_rate * 2**_BF16_BITS:.2g} < median |w| = {median:.2g}); set precision to bf16, which keeps fp32 masters"
    ]


def _cpu_has_bf16() -> bool:
    checks = [getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported")]
    return any(check() for check in checks if check is not None)
