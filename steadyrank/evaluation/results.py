"""Results as frozen records with a JSON form: `Evaluation` (steadyrank.evaluation/1), `Comparison` (steadyrank.comparison/1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from steadyrank.errors import InputError

Interval = dict[str, float]  # mean, low, high
_T = TypeVar("_T", bound="_Result")


class _Result:
    SCHEMA: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and text; `schema` first."""
        return {"schema": self.SCHEMA, **asdict(self)}  # type: ignore[call-overload]

    @classmethod
    def from_json(cls: type[_T], value: Mapping[str, Any]) -> _T:
        """The inverse of `to_json`; another schema is refused."""
        if value.get("schema") != cls.SCHEMA:
            raise InputError(f"is {value.get('schema')!r}; expected {cls.SCHEMA!r}", field="schema")
        known = {item.name for item in fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(set(value) - known - {"schema"})
        if unknown:
            raise InputError(f"unknown field of {cls.SCHEMA}", field=unknown[0])
        return cls(**{key: item for key, item in value.items() if key != "schema"})

    def write(self, path: str | Path) -> None:
        """Write the JSON form to a file."""
        from steadyrank.files import write_json

        write_json(Path(path), self.to_json())

    @classmethod
    def read(cls: type[_T], path: str | Path) -> _T:
        """Read what `write` wrote."""
        from steadyrank.files import read_json

        try:
            return cls.from_json(read_json(Path(path)))
        except InputError as error:
            raise error.at(path=path) from error


@dataclass(frozen=True)
class Evaluation(_Result):
    """One system on one set of queries.

    measures:  by measure text: `micro` (mean over queries), `macro` (mean over the means of sources), each with its 95% interval;
               `by_source` (mean, n); `ceiling`, the micro mean of the best order of what was retrieved.
    per_query: by query id, then measure; the mean over the presentations of the query.
    counts:    queries, missing, unjudged, ... ; docs/evaluation.md explains each.
    """

    SCHEMA: ClassVar[str] = "steadyrank.evaluation/1"

    system: str
    split: str | None
    measures: dict[str, dict[str, Any]]
    per_query: dict[str, dict[str, float]]
    groups: dict[str, str]
    sources: dict[str, str]
    counts: dict[str, Any]
    missing: list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)

    def mean(self, measure: str) -> float:
        """The micro mean of a measure."""
        from steadyrank.evaluation.measures import Measure

        return self.measures[str(Measure.parse(measure))]["micro"]["mean"]


@dataclass(frozen=True)
class Comparison(_Result):
    """System a minus system b on the same queries. `holm` is set where the comparison belongs to a family."""

    SCHEMA: ClassVar[str] = "steadyrank.comparison/1"

    a: str
    b: str
    split: str | None
    measure: str
    difference: Interval
    macro_difference: Interval
    nonzero: int
    n: int
    wilcoxon: dict[str, float]
    holm: float | None
    by_source: dict[str, dict[str, float]]
    settings: dict[str, Any] = field(default_factory=dict)
