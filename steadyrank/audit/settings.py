"""The settings of an audit, checked at the door. Each default is the one that docs/audit.md explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from steadyrank.data.presenting import KINDS
from steadyrank.errors import ConfigError, unknown_name
from steadyrank.evaluation.measures import parse_all

CONSUMERS = ("threshold", "preference", "reader")
PROBES = ("pool", "replace", "companions", "injection", "batching")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """What is laid before the scorer, and what is read off its scores.

    presentations:     of each reported list; quality and steadiness are read off the same ones.
    kind:              how they differ, as `data.presenting.presentations` names it; windows and markers likewise.
    threshold:         a threshold given beforehand; without one it is chosen on dev lists.
    retention:         share of candidates that the matched-retention point keeps; without one, the share of relevant candidates on dev,
                       or RETENTION where there are no grades.
    consumers, probes: which are run; what cannot be run is listed with its reason.
    measures:          quality measures with a closed form over ties (nDCG, RR, P, R, Success, AP).
    top_k:             the top that turnover and the reader look at.
    relevant:          the grade from which a candidate counts as relevant for precision, recall and F1.
    dev_presentations: at most this many presentations of each dev list (the threshold needs fewer).
    probe_lists:       at most this many lists for each probe.
    """

    presentations: int = 10
    seed: int = 0
    kind: str = "shuffle"
    windows: str | None = None
    markers: str | None = None
    threshold: float | None = None
    retention: float | None = None
    consumers: tuple[str, ...] = CONSUMERS
    probes: tuple[str, ...] = PROBES
    measures: tuple[str, ...] = ("nDCG@6", "RR@6")
    top_k: int = 3
    relevant: float = 1.0
    dev_presentations: int = 4
    probe_lists: int = 100
    resamples: int = 10_000

    def __post_init__(self) -> None:
        for name, least in (("presentations", 2), ("top_k", 1), ("dev_presentations", 1), ("probe_lists", 1), ("resamples", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"{name} is {value!r}; give a whole number from {least}")
        if self.kind not in KINDS:
            raise unknown_name("kind of presentations", self.kind, KINDS)
        for name, known in (("consumers", CONSUMERS), ("probes", PROBES)):
            chosen = (getattr(self, name),) if isinstance(getattr(self, name), str) else tuple(getattr(self, name))
            object.__setattr__(self, name, chosen)
            for item in chosen:
                if item not in known:
                    raise unknown_name(name.removesuffix("s"), item, known)
        if self.retention is not None and not 0 < self.retention < 1:
            raise ConfigError(f"retention is {self.retention!r}; give the share of candidates to keep, between 0 and 1")
        if self.threshold is not None and not float("-inf") < self.threshold < float("inf"):
            raise ConfigError(f"threshold is {self.threshold!r}; give a finite number on the scorer's scale")
        measures = parse_all(self.measures)
        for measure in measures:
            if not measure.closed:
                raise ConfigError(f"measure {str(measure)!r} has no closed form over ties; the audit takes nDCG, RR, P, R, Success and AP")
        object.__setattr__(self, "measures", tuple(str(measure) for measure in measures))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> AuditSettings:
        """Settings of a mapping; an unknown name raises with the nearest ones."""
        known = [item.name for item in fields(cls)]
        for name in values:
            if name not in known:
                raise unknown_name("audit setting", name, known)
        return cls(**values)
