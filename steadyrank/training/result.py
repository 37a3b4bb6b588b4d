"""What a run hands back, and what it leaves in `result.json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = "steadyrank.training/1"


@dataclass(frozen=True)
class TrainResult:
    """A finished run. Measures are means over the dev queries; empty without a dev set."""

    output: Path
    objective: str
    steps: int
    lists_seen: int
    """Lists drawn over the whole run, repeats included."""
    precision: str
    seconds: float
    """Wall time of the last start, evaluation included."""
    best_step: int | None
    """The step of `best/`; 0 is the model before training; None without a dev set."""
    best_measure: str
    dev_start: dict[str, float] = field(default_factory=dict)
    dev_best: dict[str, float] = field(default_factory=dict)
    dev_final: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """What was left out, cut or filled in on the way."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    resumed_from: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self), "output": self.output.name, "warnings": list(self.warnings), "notes": list(self.notes)}

    @classmethod
    def from_json(cls, values: dict[str, Any], *, output: Path) -> TrainResult:
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        return cls(**{**known, "output": output, "warnings": tuple(values["warnings"]), "notes": tuple(values["notes"])})

    def lines(self) -> list[str]:
        """The result in words, for a terminal."""
        out = [f"{self.objective}: {self.steps} steps, {self.lists_seen} lists seen, {self.precision}, {self.seconds:.0f} s"]
        for name, value in self.dev_final.items():
            start = f"{self.dev_start[name]:.4f} -> " if name in self.dev_start else ""
            best = f" (best {self.dev_best[name]:.4f} at step {self.best_step})" if name in self.dev_best else ""
            out.append(f"dev {name}: {start}{value:.4f}{best}")
        return [*out, *(f"warning: {text}" for text in self.warnings)]
