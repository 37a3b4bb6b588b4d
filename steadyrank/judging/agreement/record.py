"""`Agreement`: what was found about judges, as a frozen record whose JSON form is `agreement.json` (schema steadyrank.agreement/1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from steadyrank.errors import InputError
from steadyrank.files import read_json, write_json


@dataclass(frozen=True)
class Agreement:
    """Judges on one set of lists. docs/agreement.md explains every statistic.

    reference:   name of the rater that judges are held against, None where there is none.
    scales:      highest grade and grade of relevance, by rater, None where it gives ranks only; a second run is a rater of its own.
    data:        lists, documents, datasets with their lists, lists of the file that no judge has a row for.
    counts:      by rater: graded and missing documents, lists without a row, rows for other lists.
    comparisons: of two raters a and b; kind is reference (a is the truth), judges, or again (b is a's second run).
    order_swap:  consistency of pairs judged in both orders.
    verdicts:    by judge, where there is a reference.
    notes:       what was guessed or should be known.
    """

    SCHEMA: ClassVar[str] = "steadyrank.agreement/1"

    reference: str | None
    judges: list[str]
    scales: dict[str, dict[str, float] | None]
    data: dict[str, Any]
    counts: dict[str, dict[str, int]]
    comparisons: list[dict[str, Any]]
    order_swap: dict[str, dict[str, Any]]
    verdicts: dict[str, dict[str, Any]]
    notes: list[str]
    settings: dict[str, Any]
    fingerprints: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and text; `schema` first."""
        return {"schema": self.SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Agreement:
        """The inverse of `to_json`; another schema, a missing and an unknown field are refused."""
        if not isinstance(value, Mapping) or value.get("schema") != cls.SCHEMA:
            told = value.get("schema") if isinstance(value, Mapping) else type(value).__name__
            raise InputError(f"is {told!r}; expected {cls.SCHEMA!r}, as `steadyrank judge agreement` writes it", field="schema")
        known = {item.name for item in fields(cls)}
        odd = sorted(known ^ (set(value) - {"schema"}))
        if odd:
            raise InputError(f"is {'missing from' if odd[0] in known else 'no field of'} {cls.SCHEMA}", field=odd[0])
        return cls(**{name: value[name] for name in known})

    def write(self, path: str | Path) -> None:
        """Write the JSON form to a file."""
        write_json(Path(path), self.to_json())

    @classmethod
    def read(cls, path: str | Path) -> Agreement:
        """Read what `write` wrote."""
        try:
            return cls.from_json(read_json(Path(path)))
        except InputError as error:
            raise error.at(path=path) from error
