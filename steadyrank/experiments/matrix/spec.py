"""The matrix of an experiment: methods x students x seeds x settings over one base recipe, as one strict file.

Strict like a recipe: an unknown field is an error with the nearest right name. Every name in it becomes a part of a folder's name.
A size (`--size small`) and `--set a.b=c` change fields before the file is checked. What the fields mean is in docs/experiments.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, field_validator

from steadyrank.config import Strict, checked, merge, parse_override, preset_names, read_fields
from steadyrank.errors import ConfigError, MissingDataError, unknown_name
from steadyrank.evaluation import DEFAULT_MEASURES

BUILT_IN = {  # baselines that need no model of their own
    "bm25": "BM25",
    "teacher": "Teacher",
    "teacher_start": "Teacher before Stage 1",
    "start": "Student before training",
}
REFERENCES = {"random": "Random order", "constant": "Constant score", "first_stage": "Order of the file", "oracle": "Oracle"}
FAMILIES = ("methods", "settings", "start")  # of comparisons, made without being asked
JOIN = "--"  # between the parts of a cell's name
_NAME = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9._+=])*")
_OF_THE_CELL = ("output", "seed", "preset")  # recipe fields that the matrix sets


class Method(Strict):
    """A preset, and what differs from it. A plain text names a preset."""

    preset: str
    name: str = ""
    label: str | None = None
    set: dict[str, Any] = Field(default_factory=dict, description="recipe fields laid over preset and base; keys may be dotted")


class Student(Strict):
    """A model to train; it replaces the preset's student whole."""

    name: str
    model: str
    options: dict[str, Any] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict, description="recipe fields that this student needs, such as its learning rate")
    label: str | None = None


class Setting(Strict):
    """One point of a sweep: recipe fields laid over everything else."""

    name: str
    set: dict[str, Any] = Field(default_factory=dict)
    label: str | None = None
    default: bool = Field(default=False, description="the point that the others are compared with, marked in figures")


class Lists(Strict):
    """Lists that every system is evaluated on: a file, a folder or `packaged:SPLIT`."""

    lists: str
    label: str | None = None
    limit: int | None = Field(default=None, gt=0, description="as nearly as possible the same number from every source")


class Baseline(Strict):
    """A system that is not trained here: one of BUILT_IN by its name, or any scorer."""

    name: str
    label: str | None = None
    model: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    role: Literal["baseline", "teacher", "start"] = "baseline"


class Pick(Strict):
    """Cells by patterns (`a*`) on their axes; an axis left out is any."""

    method: str = "*"
    student: str = "*"
    setting: str = "*"
    seed: int | None = None


class Question(Strict):
    """What the experiment is to answer: pairs [a, b] (is a better than b?), corrected together. A method's name stands for its arms."""

    name: str
    ask: str
    pairs: tuple[tuple[str, str], ...] = Field(min_length=1)


class Matrix(Strict):
    """One experiment."""

    name: str
    title: str | None = None
    about: str | None = None
    base: dict[str, Any] = Field(default_factory=dict, description="recipe fields that every cell shares")
    stage1: dict[str, Any] | None = Field(default=None, description="a recipe run first, whose final model is the teacher")
    methods: tuple[Method, ...] = Field(min_length=1)
    students: tuple[Student, ...] = ()
    settings: tuple[Setting, ...] = ()
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    exclude: tuple[Pick, ...] = ()
    include: tuple[Pick, ...] = Field(default=(), description="cells that stay although `exclude` names them")
    evaluate: dict[str, Lists] = Field(min_length=1)
    measures: tuple[str, ...] = Field(default=DEFAULT_MEASURES, min_length=1, description="the first is the headline")
    baselines: tuple[Baseline, ...] = ()
    against: str | None = Field(default=None, description="the method that the others are compared with; None: the first")
    questions: tuple[Question, ...] = ()
    checkpoint: Literal["final", "best"] = Field(default="final", description="best: on dev lists, by training.best_measure")
    threads: int = Field(default=1, gt=0, description="of each process; numbers may depend on it in their last digits, on --jobs never")

    @field_validator("methods", mode="before")
    @classmethod
    def _presets(cls, values: Any) -> Any:
        return [{"preset": value, "name": value} if isinstance(value, str) else _named(value) for value in _rows(values)]

    @field_validator("baselines", mode="before")
    @classmethod
    def _built_in(cls, values: Any) -> Any:
        return [{"name": value} if isinstance(value, str) else value for value in _rows(values)]

    @property
    def headline(self) -> str:
        return self.measures[0]

    @property
    def base_method(self) -> str:
        """The method that the others are compared with."""
        return self.against or self.methods[0].name

    @property
    def default_setting(self) -> Setting | None:
        return next((setting for setting in self.settings if setting.default), None)


def _rows(values: Any) -> Any:
    return values if isinstance(values, (list, tuple)) else [values]


def _named(value: Any) -> Any:
    return {"name": value["preset"], **value} if isinstance(value, dict) and "preset" in value else value


def shipped() -> dict[str, str]:
    """Shipped matrices by name, with what each is about."""
    found = {entry.name.removesuffix(".yaml"): entry for entry in _folder().iterdir() if entry.name.endswith(".yaml")}
    return {name: str(yaml.safe_load(found[name].read_text(encoding="utf-8"))["about"]) for name in sorted(found)}


def load_matrix(spec: str | Path, *, size: str | None = None, overrides: Iterable[str] = ()) -> Matrix:
    """The matrix of a file or of a shipped name, with a size and `a.b=c` overrides laid over it."""
    path = _path(spec)
    fields = read_fields(path)
    sizes = fields.pop("sizes", None) or {}
    if not isinstance(sizes, dict):
        raise ConfigError(f"{spec}: field 'sizes' must map names to fields")
    for name in ("base", "stage1"):  # so that a dotted name of the file and a nested one of a size are the same field
        if isinstance(fields.get(name), dict):
            fields[name] = dotted(fields[name])
    if size is not None:
        if size not in sizes:
            raise unknown_name("size", size, sizes) if sizes else ConfigError(f"{spec} has no sizes; leave --size out")
        fields = merge(fields, dotted(sizes[size] or {}))
    for override in overrides:
        fields = merge(fields, parse_override(override))
    matrix = checked(Matrix, fields, where=str(spec))
    try:
        _check(matrix)
    except ConfigError as error:
        raise ConfigError(f"{spec}: {error}") from error
    return matrix


def dotted(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`{"a.b": 1, "c": 2}` as `{"a": {"b": 1}, "c": 2}`."""
    out: dict[str, Any] = {}
    for name, value in fields.items():
        nested: Any = dotted(value) if isinstance(value, Mapping) else value
        for part in reversed(str(name).split(".")):
            nested = {part: nested}
        out = merge(out, nested)
    return out


def leaves(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The inverse of `dotted`: every value under its dotted name."""
    out: dict[str, Any] = {}
    for name, value in dotted(fields).items():
        out |= leaves(value, f"{prefix}{name}.") if isinstance(value, Mapping) and value else {f"{prefix}{name}": value}
    return out


def _folder() -> Any:
    return resources.files("steadyrank") / "matrices"


def _path(spec: str | Path) -> Path:
    path = Path(spec)
    if path.is_file():
        return path
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        raise MissingDataError(f"matrix {spec} does not exist; give a YAML file or one of: {', '.join(shipped())}")
    if str(spec) not in shipped():
        raise unknown_name("matrix", str(spec), shipped())
    return Path(str(_folder() / f"{spec}.yaml"))


def _check(matrix: Matrix) -> None:
    """What one field cannot know of another."""
    _check_names(matrix)
    for name in _OF_THE_CELL:
        if name in matrix.base:
            raise ConfigError(f"base.{name} is set by the experiment itself; leave it out" + (" (seeds: [...])" if name == "seed" else ""))
    if matrix.against is not None and matrix.against not in [method.name for method in matrix.methods]:
        raise unknown_name("method of `against`:", matrix.against, [method.name for method in matrix.methods])
    if sum(setting.default for setting in matrix.settings) > 1:
        raise ConfigError("more than one of the settings has `default: true`; the others are compared with one")
    if matrix.checkpoint == "best" and not dotted(matrix.base).get("data", {}).get("dev"):
        raise ConfigError("checkpoint is 'best' and base.data.dev is missing; name the dev lists that choose, or set checkpoint to final")
    for method in matrix.methods:
        if method.preset not in preset_names():
            raise unknown_name("preset", method.preset, preset_names())
    for baseline in matrix.baselines:
        if baseline.model is None and baseline.name not in BUILT_IN:
            raise ConfigError(f"{unknown_name('baseline', baseline.name, BUILT_IN)}; another scorer needs its `model`")


def _check_names(matrix: Matrix) -> None:
    axes: dict[str, Sequence[str]] = {
        "methods": [item.name for item in matrix.methods],
        "students": [item.name for item in matrix.students],
        "settings": [item.name for item in matrix.settings],
        "baselines": [item.name for item in matrix.baselines],
        "evaluate": list(matrix.evaluate),
        "questions": [item.name for item in matrix.questions],
        "seeds": [str(seed) for seed in matrix.seeds],
        "name": [matrix.name],
    }
    for axis, names in axes.items():
        for name in names:
            if not _NAME.fullmatch(name):
                raise ConfigError(f"{axis}: {name!r} cannot name a folder; use letters, digits and . _ + =, with single - between them")
            if list(names).count(name) > 1:
                raise ConfigError(f"{axis}: {name!r} stands twice; give each its own name")
    if {*FAMILIES} & {*axes["questions"]}:
        raise ConfigError(f"questions: {', '.join(FAMILIES)} are names of families that every experiment has; choose another")
    taken = {*REFERENCES, *BUILT_IN} & {*axes["methods"]} or {*REFERENCES} & {*axes["baselines"]}
    if taken:
        raise ConfigError(f"{sorted(taken)[0]!r} is the name of a row that every experiment has; choose another")
