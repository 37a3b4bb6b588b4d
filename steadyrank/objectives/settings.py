"""Settings of objectives: frozen dataclasses whose fields check type and range when they are made."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from steadyrank.errors import ConfigError, unknown_name


def number(default: Any, *, low: float | None = None, high: float | None = None, above: float | None = None, hint: str = "") -> Any:
    """A field with a range: low <= value <= high, or value > above; `hint` ends the error's sentence."""
    return field(default=default, metadata={"low": low, "high": high, "above": above, "hint": hint})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every objective has."""

    score_scale: float = number(1.0, above=0.0)
    """Multiplies the student's scores before anything else; a saturated head (logits of +-20) explores at .1."""
    teacher_scale: float = number(1.0, above=0.0)
    """Multiplies teacher or reference utilities wherever their magnitude is read (KL, distillation targets)."""
    paper_compat: bool = False
    """The published form where it differs from the default; docs/papers.md says how. No effect on most objectives."""

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for item in fields(self):
            value = getattr(self, item.name)
            object.__setattr__(self, item.name, _checked(item.name, value, hints[item.name], item.metadata))


@dataclass(frozen=True, kw_only=True)
class RewardSettings(Settings):
    """What every objective has whose target is nDCG of a relevance."""

    k: int = number(6, low=1)
    """Cutoff of nDCG."""
    gain: Literal["exponential", "linear"] = "exponential"
    """2^relevance - 1, or the relevance itself."""
    relevance: Literal["rank", "sigmoid", "zsigmoid", "minmax", "softmax", "raw"] = "rank"
    """How targets become relevance; the paper ranks them. Gold grades are read raw."""


@dataclass(frozen=True, kw_only=True)
class RegularSettings(RewardSettings):
    """What every objective has that can be held near an anchor and kept spread."""

    kl: float = number(1.0, low=0.0)
    """Weight of KL(student || anchor)."""
    entropy: float = number(0.01, low=0.0)
    """Weight of the entropy bonus on the first choice."""
    temperature: float = number(1.0, above=0.0)
    """Of the policy, in sampling and log-probabilities alike; KL and entropy on the first choice read untempered scores."""


@dataclass(frozen=True, kw_only=True)
class SampledSettings(RegularSettings):
    """What every objective has that samples groups of rankings and centres their rewards."""

    num_samples: int = number(8, low=2, hint="a group's rewards are compared with each other, so it needs at least 2 rankings")
    """Rankings a list (the group size G)."""


def _checked(name: str, value: Any, hint: Any, limits: Any) -> Any:
    if typing.get_origin(hint) is Literal:
        if value not in typing.get_args(hint):
            raise unknown_name(name, value, [str(option) for option in typing.get_args(hint)])
        return value
    if hint is bool:
        if not isinstance(value, bool):
            raise ConfigError(f"{name} is {value!r}; give true or false")
        return value
    options = typing.get_args(hint) or (hint,)
    if value is None and type(None) in options:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"{name} is {value!r}; give a finite number")
    if int in options:
        if value != int(value):
            raise ConfigError(f"{name} is {value!r}; give a whole number")
        value = int(value)
    else:
        value = float(value)
    return _in_range(name, value, limits)


def _in_range(name: str, value: Any, limits: Any) -> Any:
    low, high, above = limits.get("low"), limits.get("high"), limits.get("above")
    wrong = (low is not None and value < low) or (high is not None and value > high) or (above is not None and not value > above)
    if wrong:
        parts = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
        parts.append(f"above {above:g}" if above is not None else "")
        allowed = " and ".join(part for part in parts if part)
        raise ConfigError(f"{name} is {value:g}; it must be {allowed}" + (f" ({limits['hint']})" if limits.get("hint") else ""))
    return value
