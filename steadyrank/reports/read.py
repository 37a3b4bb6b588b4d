"""A study folder, read into typed records.

Checks what the report needs and names the file that lacks it. `study.json` and one evaluation for every system and split are required;
everything else may be absent and then stands in `Study.absent`, which the page shows. No number is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrank.errors import InputError, MissingDataError
from steadyrank.files import read_json, read_jsonl

ROLES = ("reference", "baseline", "start", "teacher", "student")


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95% interval; None where the file has none."""

    mean: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """One system of the study."""

    name: str
    label: str
    role: str
    short: str = ""

    @property
    def tag(self) -> str:
        """The name for figures."""
        return self.short or self.name


@dataclass(frozen=True, slots=True)
class Split:
    """One split of the study."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class SystemResult:
    """What one evaluation file says, without its values per query."""

    system: str
    split: str
    measures: Mapping[str, Mapping[str, Interval]]  # measure -> micro | macro -> interval
    counts: Mapping[str, Any]
    missing: Sequence[str]
    fingerprints: Mapping[str, Any]
    by_source: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # measure -> source -> mean


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """Wins, ties and losses of a against b in one source, and the mean difference."""

    win: int
    tie: int
    loss: int
    difference: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """One paired comparison: a minus b."""

    a: str
    b: str
    split: str
    measure: str
    difference: Interval
    n: int
    nonzero: int | None
    two_sided: float | None
    holm: float | None
    by_source: Mapping[str, SourceDifference]
    macro: Interval = Interval(None)
    by_seed: Mapping[str, float] = field(default_factory=dict)  # the mean difference of each seed, where runs had several


@dataclass(frozen=True, slots=True)
class Run:
    """A training run's curves; `rows` and `dev` are empty where the files are absent."""

    name: str
    label: str
    folder: str
    rows: Sequence[Mapping[str, Any]]
    dev: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any]
    has_config: bool


@dataclass(frozen=True, slots=True)
class Study:
    """All that the report shows."""

    folder: Path
    title: str
    subtitle: str
    created: str
    measure: str
    systems: Sequence[SystemInfo]
    splits: Sequence[Split]
    results: Mapping[tuple[str, str], SystemResult]  # (split, system)
    differences: Mapping[str, Sequence[Difference]]  # by split
    flips: Mapping[str, Mapping[str, Any]]
    instructions: Mapping[str, Mapping[str, Any]]
    runs: Sequence[Run]
    settings: Mapping[str, Any]
    fingerprints: Mapping[str, Any]
    environment: Mapping[str, Any]
    notes: Sequence[str]
    data: Mapping[str, Mapping[str, Any]]
    commands: Sequence[str] = ()
    absent: Sequence[str] = field(default=())

    def system(self, name: str) -> SystemInfo:
        """The system of that name; an unlisted one is shown under its bare name."""
        return next((system for system in self.systems if system.name == name), SystemInfo(name, name, "baseline"))

    def with_role(self, role: str) -> list[SystemInfo]:
        return [system for system in self.systems if system.role == role]

    def against_start(self, split: str, system: str) -> Difference | None:
        """The comparison of a system with the start it was trained from, where the study made one."""
        for item in self.differences.get(split, ()):
            if item.a == system and self.system(item.b).role == "start" and item.measure == self.measure:
                return item
        return None

    def compared(self, split: str, a: str, b: str) -> Difference | None:
        for item in self.differences.get(split, ()):
            if (item.a, item.b, item.measure) == (a, b, self.measure):
                return item
        return None


def read_study(folder: str | Path) -> Study:
    """The study in `folder`; one sentence names the file that is missing or does not fit."""
    folder = Path(folder)
    path = folder / "study.json"
    if not path.is_file():
        raise MissingDataError(f"{path} is not there; give the folder of a study, as `steadyrank demo` or an experiment writes it")
    index = document(path, "steadyrank.study/")
    systems = [SystemInfo(_text(path, s, "name"), str(s.get("label") or s["name"]), _role(path, s)) for s in _rows(path, index, "systems")]
    splits = [Split(_text(path, s, "name"), str(s.get("label") or s["name"])) for s in _rows(path, index, "splits")]
    measure = _text(path, index, "headline_measure")
    results = {(split.name, system.name): result_of(folder, split.name, system.name, measure) for split in splits for system in systems}
    absent: list[str] = []
    return Study(
        folder=folder,
        title=_text(path, index, "title"),
        subtitle=str(index.get("subtitle") or ""),
        created=str(index.get("created") or ""),
        measure=measure,
        systems=systems,
        splits=splits,
        results=results,
        differences={split.name: differences_of(folder, f"comparisons/{split.name}.json", split.name, absent) for split in splits},
        flips={split.name: optional(folder, f"flips/{split.name}.json", "steadyrank.flips/", absent) for split in splits},
        instructions={
            split.name: optional(folder, f"instructions/{split.name}.json", "steadyrank.instructions/", absent) for split in splits
        },
        runs=[_run(folder, path, row, absent) for row in index.get("runs") or []],
        settings=index.get("settings") or {},
        fingerprints=index.get("fingerprints") or {},
        environment=index.get("environment") or {},
        notes=[str(note) for note in index.get("notes") or []],
        data=index.get("data") or {},
        commands=[str(line) for line in index.get("commands") or []],
        absent=absent,
    )


def document(path: Path, schema: str) -> dict[str, Any]:
    """The object of a JSON file, whose schema must be version 1 of this one."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputError(f"holds {type(value).__name__}, not an object of schema {schema}1; write the study again", path=path)
    if value.get("schema") != f"{schema}1":
        raise InputError(f"is {value.get('schema')!r}, and this version reads {schema}1; write the study again", path=path, field="schema")
    return value


def optional(folder: Path, name: str, schema: str, absent: list[str]) -> dict[str, Any]:
    """The same of a file that may be absent, which `absent` then names."""
    if not (folder / name).is_file():
        absent.append(name)
        return {}
    return document(folder / name, schema)


def _need(path: Path, record: Mapping[str, Any], name: str) -> Any:
    if not isinstance(record, Mapping) or name not in record:
        raise InputError("is missing; write the study again", path=path, field=name)
    return record[name]


def _text(path: Path, record: Mapping[str, Any], name: str) -> str:
    value = _need(path, record, name)
    if not isinstance(value, str) or not value:
        raise InputError(f"must be a text that is not empty, got {value!r}", path=path, field=name)
    return value


def _rows(path: Path, record: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = _need(path, record, name)
    if not isinstance(value, list) or not value:
        raise InputError("must be a list with at least one entry", path=path, field=name)
    return value


def _role(path: Path, record: Mapping[str, Any]) -> str:
    role = record.get("role")
    if role not in ROLES:
        raise InputError(f"is {role!r}; known roles: {', '.join(ROLES)}", path=path, field=f"systems[{record.get('name')}].role")
    return str(role)


def _number(path: Path, value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"must be a finite number or null, got {value!r}", path=path, field=name)
    return float(value)


def _interval(path: Path, value: Any, name: str) -> Interval:
    if not isinstance(value, Mapping):
        raise InputError(f"must hold mean, low and high, got {value!r}", path=path, field=name)
    return Interval(*(_number(path, value.get(part), f"{name}.{part}") for part in ("mean", "low", "high")))


def result_of(folder: Path, split: str, system: str, measure: str) -> SystemResult:
    """The evaluation of one system on one split."""
    path = folder / "evaluations" / split / f"{system}.json"
    if not path.is_file():
        raise MissingDataError(f"{path} is not there, and study.json lists the system {system!r}; run the study again to score it")
    record = document(path, "steadyrank.evaluation/")
    table = _need(path, record, "measures")
    if measure not in table:
        raise InputError(f"lacks the headline measure {measure!r} of study.json; evaluate the system again", path=path, field="measures")
    measures = {
        name: {kind: _interval(path, values[kind], f"measures.{name}.{kind}") for kind in ("micro", "macro") if kind in values}
        for name, values in table.items()
    }
    missing = [str(name) for name in record.get("missing") or []]
    sources = {
        name: {
            str(source): mean
            for source, part in (values.get("by_source") or {}).items()
            if (mean := _number(path, part.get("mean"), f"measures.{name}.by_source.{source}")) is not None
        }
        for name, values in table.items()
    }
    return SystemResult(system, split, measures, record.get("counts") or {}, missing, record.get("fingerprints") or {}, sources)


def differences_of(folder: Path, name: str, split: str, absent: list[str]) -> list[Difference]:
    """The comparisons of one family; none where the file is not there, which `absent` then names."""
    path = folder / name
    family = optional(folder, name, "steadyrank.comparisons/", absent).get("family") or []
    out = []
    for place, row in enumerate(family):
        where = f"family[{place}]"
        tests = row.get("wilcoxon") or {}
        sources = {
            str(source): SourceDifference(
                int(v.get("win", 0)),
                int(v.get("tie", 0)),
                int(v.get("loss", 0)),
                _number(path, v.get("difference"), f"{where}.by_source.{source}"),
            )
            for source, v in (row.get("by_source") or {}).items()
        }
        out.append(
            Difference(
                a=_text(path, row, "a"),
                b=_text(path, row, "b"),
                split=split,
                measure=_text(path, row, "measure"),
                difference=_interval(path, _need(path, row, "difference"), f"{where}.difference"),
                n=int(row.get("n", 0)),
                nonzero=row.get("nonzero"),
                two_sided=_number(path, tests.get("two_sided"), f"{where}.wilcoxon.two_sided"),
                holm=_number(path, row.get("holm"), f"{where}.holm"),
                by_source=sources,
                macro=_interval(path, row.get("macro_difference") or {}, f"{where}.macro_difference"),
                by_seed=row.get("by_seed") or {},
            )
        )
    return out


def _run(folder: Path, index: Path, row: Mapping[str, Any], absent: list[str]) -> Run:
    name = _text(index, row, "name")
    place = str(row.get("dir") or f"runs/{name}")
    run = folder / place

    def lines(file: str) -> list[dict[str, Any]]:
        if not (run / file).is_file():
            absent.append(f"{place}/{file}")
            return []
        return [value for _, value in read_jsonl(run / file)]

    result = {}
    if (run / "result.json").is_file():
        result = read_json(run / "result.json")
    else:
        absent.append(f"{place}/result.json")
    return Run(name, str(row.get("label") or name), place, lines("log.jsonl"), lines("dev.jsonl"), result, (run / "config.yaml").is_file())
