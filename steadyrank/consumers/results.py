"""What every consumer hands back: one value an example and measure, nan where there is none, and counts; ready for a bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ConsumerResult:
    """Values of N examples, in the order given.

    consumer: name and settings of what acted. example_ids: of the N examples.
    values:   measure -> values_N; nan: the example has no value (why is in the consumer's docstring) and is left out of means.
    counts:   what happened over all examples: ties, empties, failures, calls.
    decisions: what was decided under each presentation, one tuple an example; kept for reports.
    """

    consumer: Mapping[str, Any]
    example_ids: tuple[str, ...]
    values: Mapping[str, np.ndarray]
    counts: Mapping[str, int]
    decisions: tuple[tuple[Any, ...], ...] = field(default=(), repr=False)

    def mean(self, measure: str) -> float:
        """Mean over the examples with a value; nan without one."""
        values_N = self.values[measure]
        kept_N = values_N[~np.isnan(values_N)]
        return float(kept_N.mean()) if len(kept_N) else float("nan")

    def to_json(self) -> dict[str, Any]:
        """Plain values: means with n and excluded, every example's values, counts; nan becomes None."""
        measures = {}
        for name, values_N in self.values.items():
            has_N = ~np.isnan(values_N)
            mean = self.mean(name)
            measures[name] = {
                "mean": None if np.isnan(mean) else mean,
                "n": int(has_N.sum()),
                "excluded": int((~has_N).sum()),
                "values": [float(value) if has else None for value, has in zip(values_N, has_N, strict=True)],
            }
        return {
            "consumer": dict(self.consumer),
            "example_ids": list(self.example_ids),
            "measures": measures,
            "counts": dict(self.counts),
            "decisions": [[_plain(one) for one in row] for row in self.decisions],
        }


def _plain(decision: Any) -> Any:
    return list(decision) if isinstance(decision, (tuple, frozenset)) else decision
