"""`Audit`: what an audit found, as a frozen record whose JSON form is `audit.json` (schema steadyrank.audit/1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from steadyrank.errors import InputError
from steadyrank.files import read_json, write_json

Part = dict[str, Any]


@dataclass(frozen=True)
class Audit:
    """One scorer on one set of lists. A part that could not be computed is None, and `left_out` says why.

    system:     name, scale, whether it reads whole lists, its fingerprint.
    data:       lists reported and used for the threshold, candidates, sources, fingerprint.
    counts:     asked, failed, truncated, empty, left out, ...; docs/audit.md explains each.
    quality:    measures (mean, worst, best over presentations; first-stage order), reference rows, difference to chance.
    steadiness: tau-PSI, spread of scores and ranks, turnover, ties.
    causes:     slot, window and remainder shares of the movement.
    threshold, preference, reader: what it does to those who act on scores.
    pool, replace, companions, injection, batching: probes.
    verdict:    grade, headline, sentences, numbers that decided it.
    example:    one list on which a decision flips, a typical one.
    per_list:   the values of every list, by which two audits are compared (`comparing`).
    """

    SCHEMA: ClassVar[str] = "steadyrank.audit/1"

    system: Part
    data: Part
    counts: Part
    steadiness: Part
    verdict: Part
    quality: Part | None = None
    causes: Part | None = None
    threshold: Part | None = None
    preference: Part | None = None
    reader: Part | None = None
    pool: Part | None = None
    replace: Part | None = None
    companions: Part | None = None
    injection: Part | None = None
    batching: Part | None = None
    example: Part | None = None
    per_list: Part | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    settings: Part = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and text; `schema` first."""
        return {"schema": self.SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Audit:
        """The inverse of `to_json`; another schema is refused."""
        if not isinstance(value, Mapping) or value.get("schema") != cls.SCHEMA:
            told = value.get("schema") if isinstance(value, Mapping) else type(value).__name__
            raise InputError(f"is {told!r}; give an audit.json ({cls.SCHEMA}), as `steadyrank audit` writes it", field="schema")
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(value) - known - {"schema"})
        if unknown:
            raise InputError(f"unknown field of {cls.SCHEMA}", field=unknown[0])
        missing = [name for name in ("system", "data", "counts", "steadiness", "verdict") if name not in value]
        if missing:
            raise InputError(f"is missing from {cls.SCHEMA}", field=missing[0])
        return cls(**{key: item for key, item in value.items() if key != "schema"})

    def write(self, path: str | Path) -> None:
        """Write the JSON form to a file."""
        write_json(Path(path), self.to_json())

    @classmethod
    def read(cls, path: str | Path) -> Audit:
        """Read what `write` wrote."""
        try:
            return cls.from_json(read_json(Path(path)))
        except InputError as error:
            raise error.at(path=path) from error
