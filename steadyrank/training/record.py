"""What is logged of each step: sums and counts over its parts and processes, divided once, read off the device once."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import torch
from torch import Tensor

_NEXT = "look at these lists, or lower learning_rate, or set precision to fp32, and run again to go on from the last checkpoint"


class StepRecord:
    """Collects one optimiser step; `row` is ready after `finish`."""

    def __init__(self, *, num_processes: int = 1):
        self.num_processes = num_processes
        self.row: dict[str, Any] = {}
        self.ids: list[str] = []
        self.lists_seen = 0
        self._sums: dict[str, tuple[Tensor, Tensor]] = {}
        self._tokens = 0

    def start(self, ids: list[str], *, tokens: int) -> None:
        self.ids, self._tokens, self._sums = list(ids), tokens, {}

    def add(self, step: Any) -> None:
        """One part's `LossSum`."""
        for name, (total, count) in {"loss": (step.total, step.count), **step.parts}.items():
            total, count = total.detach().double(), torch.as_tensor(count, device=total.device).detach().double()
            if name in self._sums:
                total, count = total + self._sums[name][0], count + self._sums[name][1]
            self._sums[name] = (total, count)

    def finish(self, *, grad_norm: float, learning_rate: float) -> None:
        names = sorted(self._sums)
        table = torch.stack([torch.stack(self._sums[name]) for name in names])  # (names, [sum, count]): one transfer
        extra = torch.tensor([[len(self.ids), self._tokens]], dtype=table.dtype, device=table.device)
        table = torch.cat([table, extra])
        if self.num_processes > 1:
            torch.distributed.all_reduce(table)
        *rows, (num_lists, num_tokens) = table.tolist()
        self.lists_seen += int(num_lists)
        means = {name: total / count if count else 0.0 for name, (total, count) in zip(names, rows, strict=True)}
        self.row = {
            "lists": int(num_lists),
            "lists_counted": int(rows[names.index("loss")][1]),
            "lists_seen": self.lists_seen,
            "tokens": int(num_tokens),
            "learning_rate": learning_rate,
            "grad_norm": grad_norm,
            "ids_digest": hashlib.sha256("\x1f".join(self.ids).encode("utf-8", "surrogatepass")).hexdigest()[:12],
            **means,
        }

    def why_not_finite(self, step: int) -> str:
        """The sentence of a run that stops at a gradient; the scores were finite, or it would have stopped before."""
        loss = self.row.get("loss", math.nan)
        return f"step {step}: the gradient is not finite (loss {loss:.4g}, all scores finite); its lists were {_some(self.ids)}; {_NEXT}"


def broken_scores(step: int, scores_BK: Tensor, ids: list[str]) -> str:
    """The sentence of a run that stops at scores."""
    bad = [name for name, is_broken in zip(ids, (~torch.isfinite(scores_BK)).any(-1).tolist(), strict=True) if is_broken]
    return f"step {step}: scores that are not finite came from {_some(bad or ids)}; {_NEXT}"


def _some(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
