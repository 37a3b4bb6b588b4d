"""The settings of a training run: one frozen dataclass, checked when it is made.

What is learnt (the loss and its terms) belongs to the objective, and what a pair looks like belongs to the scorer; neither is here.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steadyrank.data.presenting import MARKERS, parse_windows
from steadyrank.errors import ConfigError, unknown_name

PRECISIONS = ("auto", "fp32", "bf16", "bf16_resident")
SCORE_GRADIENTS = ("auto", "direct", "chunked")
VIEW_KINDS = ("first_stage", "shuffle", "within")


@dataclass(frozen=True)
class LoraSettings:
    """Low-rank adapters; the scoring head is always trained and saved whole."""

    r: int = 16
    """Rank of the adapters."""
    alpha: float = 32.0
    """Scale: an adapter's update is multiplied by alpha / r."""
    dropout: float = 0.0
    """Dropout on the adapters' input, in [0, 1)."""
    targets: tuple[str, ...] | str = "all-linear"
    """Names of the modules to adapt, or `all-linear`."""

    def __post_init__(self) -> None:
        if not isinstance(self.targets, str):
            object.__setattr__(self, "targets", tuple(self.targets))
        _check_number(self, "r", "lora", low=1, whole=True)
        _check_number(self, "alpha", "lora", above=0)
        _check_number(self, "dropout", "lora", low=0, below=1)


@dataclass(frozen=True)
class ViewSettings:
    """How lists are laid for a scorer of whole lists. What is absent is as the objective asks."""

    count: int | None = None
    """Views of each list an update."""
    kind: tuple[str, ...] | None = None
    """first_stage | shuffle | within (inside its window, companions fixed); a list gives each view its own, the last one repeated."""
    markers: tuple[str, ...] | None = None
    """Marker schemes, one drawn for each view; absent leaves them to the scorer."""
    windows: str | None = None
    """Window rule of training and dev where it is not the scorer's own; `contiguous:1` warms a wide scorer up one candidate at a time."""
    dev_presentations: int = 4
    """Orders in which every dev list is scored, beside its own."""

    def __post_init__(self) -> None:
        for name, known in (("kind", VIEW_KINDS), ("markers", MARKERS)):
            value = getattr(self, name)
            if value is None:
                continue
            value = (value,) if isinstance(value, str) else tuple(value)
            object.__setattr__(self, name, value)
            for one in value:
                if one not in known:
                    raise unknown_name(f"views.{name}", one, known)
            if not value:
                raise ConfigError(f"views.{name} is empty; name at least one, or leave it out")
        if self.windows is not None:
            parse_windows(self.windows)
        _check_number(self, "count", "views", low=1, whole=True)
        _check_number(self, "dev_presentations", "views", low=1, whole=True)


@dataclass(frozen=True)
class TrainSettings:
    """Everything of a run that is neither the objective nor the models nor the data."""

    learning_rate: float = 2e-5
    """Peak of the schedule: linear warmup, then linear decay to zero."""
    lists_per_step: int = 16
    """Lists of one optimiser step, over all processes. A step depends on its lists only, not on how they are cut."""
    lists_per_device: int | None = None
    """At most this many lists in one forward; None leaves it to `tokens_per_forward`."""
    tokens_per_forward: int | None = None
    """At most about this many tokens in one forward (a list is never cut, except by `score_gradient`); None: 4,096 on CPU, 32,768 on
    GPU."""
    epochs: float = 1.0
    """Passes over the training lists; the last step of a pass holds what is left."""
    max_steps: int | None = None
    """Number of optimiser steps; wins over `epochs`."""
    warmup_ratio: float = 0.03
    """Share of the steps in which the learning rate rises."""
    weight_decay: float = 0.01
    """AdamW's; not applied to biases and norms."""
    max_grad_norm: float = 1.0
    """The gradient is scaled down to this norm; 0 switches it off."""
    adam_betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's two decay rates."""
    precision: str = "auto"
    """fp32 | bf16 (fp32 master weights, bf16 autocast) | bf16_resident (weights kept in bf16, as published; warned about) | auto: bf16
    where
    the machine computes in it, else fp32."""
    seed: int = 0
    """Names every random stream of the run: order of lists, sampled rankings, dropout."""
    shuffle: bool = True
    """False takes the lists in their given order."""
    eval_every: int | None = None
    """Steps between evaluations on dev; None: ten times over the run. Step 0 and the last step are always evaluated."""
    save_every: int | None = None
    """Steps between checkpoints; None: at each evaluation."""
    best_measure: str = "nDCG(gain=exp)@6"
    """The dev measure (against gold grades) that chooses `best/`."""
    score_gradient: str = "auto"
    """direct | chunked (scores without a graph, the loss differentiated once, then forwards again in chunks: memory does not grow with
    the pool) |
    auto: chunked only for a list of more than four times `tokens_per_forward`."""
    lora: LoraSettings | None = None
    """Train adapters instead of all weights."""
    views: ViewSettings | None = None
    """How lists are laid for a scorer of whole lists; None: as the objective asks."""
    drop_flat: bool = False
    """Leave out lists whose targets are all equal: they then add nothing to KL and entropy terms nor to the denominator."""
    cache_tokens: int = 200_000_000
    """Tokens of tokenised pairs kept in memory between epochs; beyond it pairs are tokenised again."""
    num_workers: int = 0
    """Processes that prepare batches; results do not depend on it."""
    tensorboard: bool = True
    """Write `tensorboard/` where the package is installed."""

    def __post_init__(self) -> None:
        if isinstance(self.lora, Mapping):
            object.__setattr__(self, "lora", _build(LoraSettings, self.lora, "training.lora"))
        if isinstance(self.views, Mapping):
            object.__setattr__(self, "views", _build(ViewSettings, self.views, "training.views"))
        object.__setattr__(self, "adam_betas", tuple(self.adam_betas))
        for name in ("learning_rate", "epochs"):
            _check_number(self, name, above=0)
        for name in ("weight_decay", "max_grad_norm"):
            _check_number(self, name, low=0)
        _check_number(self, "warmup_ratio", low=0, below=1)
        for name in ("lists_per_step", "lists_per_device", "tokens_per_forward", "max_steps", "eval_every", "save_every"):
            _check_number(self, name, low=1, whole=True)
        for name in ("seed", "cache_tokens", "num_workers"):
            _check_number(self, name, low=0, whole=True)
        for name, kinds in (("precision", PRECISIONS), ("score_gradient", SCORE_GRADIENTS)):
            if getattr(self, name) not in kinds:
                raise unknown_name(f"training.{name}", getattr(self, name), kinds)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> TrainSettings:
        """Settings of a recipe; an unknown name raises with the nearest one."""
        return _build(cls, values, "training")

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, for YAML and JSON."""
        values = dataclasses.asdict(self)
        values["adam_betas"] = list(self.adam_betas)
        if self.lora is not None and not isinstance(self.lora.targets, str):
            values["lora"]["targets"] = list(self.lora.targets)
        if self.views is not None:
            values["views"] |= {name: list(value) for name, value in values["views"].items() if isinstance(value, tuple)}
        return values


def _build(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    known = [field.name for field in dataclasses.fields(kind)]
    for name in values:
        if name not in known:
            raise unknown_name("setting", f"{where}.{name}", [f"{where}.{option}" for option in known])
    return kind(**values)


def _check_number(
    settings: Any,
    name: str,
    where: str = "",
    *,
    low: float | None = None,
    above: float | None = None,
    below: float | None = None,
    whole: bool = False,
) -> None:
    value, place = getattr(settings, name), "training." + (f"{where}." if where else "") + name
    if value is None and type(settings).__dataclass_fields__[name].default is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{place} is {value!r}; give a number")
    if whole and value != int(value):
        raise ConfigError(f"{place} is {value!r}; give a whole number")
    if whole:
        object.__setattr__(settings, name, int(value))
    rules = ((low, "at least", operator.ge), (above, "more than", operator.gt), (below, "less than", operator.lt))
    asked = [(bound, words, holds) for bound, words, holds in rules if bound is not None]
    if not all(holds(value, bound) for bound, _, holds in asked):
        raise ConfigError(f"{place} is {value!r}; must be {' and '.join(f'{words} {bound:g}' for bound, words, _ in asked)}")
