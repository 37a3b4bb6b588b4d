"""A second set of the trained weights beside the model: their moving average, or the start. It reads without dropout and without gradient.

The model's own tensors are exchanged for the time of a pass, so nothing but the trained weights is held twice (under LoRA, the adapters).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from transformers import TrainerCallback

from steadyrank.errors import RunError

FILE = "shadow.safetensors"
_STEPS = "shadow.steps"


class Shadow:
    """The weights that `mean_teacher` and `kl_to_base` compare with. decay 1 keeps the start."""

    def __init__(self, model: nn.Module, *, decay: float):
        self.decay, self.steps = decay, 0
        self.weights: dict[str, Tensor] = {name: weight.detach().clone() for name, weight in _trained(model)}

    @property
    def is_frozen(self) -> bool:
        """Whether it stays the start for the whole run."""
        return self.decay >= 1.0

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take in the weights after one optimiser step. In the first steps the average forgets faster: it has seen little yet."""
        if self.is_frozen:
            return
        self.steps += 1
        rate = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for name, weight in _trained(model):
            self.weights[name].lerp_(weight.detach(), 1 - rate)

    @contextlib.contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """Inside, `model` is this shadow, in evaluation mode. Not between a forward of the model and its backward."""
        was_training = model.training
        self._exchange(model)
        model.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self._exchange(model)
            model.train(was_training)

    def _exchange(self, model: nn.Module) -> None:
        for name, weight in _trained(model):
            weight.data, self.weights[name] = self.weights[name], weight.data

    def save(self, folder: Path) -> None:
        """Write into a checkpoint; a frozen one is the start, which a resumed run has anyway."""
        if not self.is_frozen:
            safetensors.torch.save_file({**self.weights, _STEPS: torch.tensor(self.steps)}, folder / FILE)

    def load(self, folder: Path) -> None:
        """Go on from a checkpoint."""
        if self.is_frozen:
            return
        if not (folder / FILE).exists():
            raise RunError(f"{folder} holds no moving average of the weights, so the run cannot go on; begin anew with --restart")
        saved = safetensors.torch.load_file(folder / FILE)
        self.steps = int(saved.pop(_STEPS))
        for name, weight in self.weights.items():
            weight.copy_(saved[name])


class ShadowCallback(TrainerCallback):
    """Updates the average after every optimiser step."""

    def __init__(self, shadow: Shadow, model: nn.Module):
        self.shadow, self.model = shadow, model

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.shadow.update(self.model)


def _trained(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)
