"""Low-rank adapters through peft, with the scoring head trained and saved whole, and a check that what was saved scores as what was
trained.

peft changes the model in place: the adapters sit inside the scorer's own model, which therefore scores with them at once.
"""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

from steadyrank import names
from steadyrank.errors import ConfigError, RunError
from steadyrank.training.settings import LoraSettings

_HEADS = ("classifier", "score", "pre_classifier", "classification_head", "grades")


def wrap(model: nn.Module, lora: LoraSettings) -> nn.Module:
    """The peft model around `model`; only adapters and head are trainable."""
    peft = names.require("peft", "training with LoRA")
    top = {name for name, _ in model.named_children()}
    heads = [name for name in _HEADS if name in top]
    is_classifier = type(model).__name__.endswith("ForSequenceClassification") or "grades" in top
    if is_classifier and not heads:
        known = ", ".join(_HEADS)
        raise ConfigError(f"{type(model).__name__} has no head named {known}; LoRA would not train and save it, so train all weights")
    config = peft.LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets if isinstance(lora.targets, str) else list(lora.targets),
        modules_to_save=heads if is_classifier else None,
        exclude_modules=heads or None,
        task_type=None,
    )
    try:
        return peft.get_peft_model(model, config)
    except (ValueError, ImportError, AttributeError) as error:
        raise ConfigError(f"LoRA cannot be put on {type(model).__name__} with peft {peft.__version__}: {error}") from error


def merged(model: Any) -> nn.Module:
    """A copy of the base model with the adapters added into its weights; the model in training stays as it is."""
    return copy.deepcopy(model).merge_and_unload()


def reloaded(base: nn.Module, folder: Any) -> nn.Module:
    """A copy of the untouched base with the saved adapter on it."""
    peft = names.require("peft", "reading a LoRA adapter")
    return peft.PeftModel.from_pretrained(copy.deepcopy(base), str(folder)).eval()


def require_equal(kind: str, live: list[float], other: list[float], *, tolerance: float) -> float:
    """The largest difference of the probes' scores; more than `tolerance` (relative above 1) refuses the save."""
    worst = max((abs(a - b) / max(1.0, abs(a)) for a, b in zip(live, other, strict=True)), default=0.0)
    if not worst <= tolerance:
        raise RunError(f"the {kind} scores unlike the trained model (difference {worst:.2e} on the probes, allowed {tolerance:.0e})")
    return worst
