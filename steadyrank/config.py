"""Recipes: the strict configuration of a training run, written beside its result.

A recipe is YAML with the fields of `Recipe`. It may start from a shipped preset (`preset: a3`), and `--set a.b=c` changes one field.
An unknown field, a wrong type or a missing file is a `ConfigError` that names the field and the nearest right name.
It holds no values of its own for objectives and training: those are checked by the rooms that own them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from steadyrank.errors import ConfigError, MissingDataError, unknown_name


class Strict(BaseModel):
    """Fields of a file of the user: an unknown one is an error, and none changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_S = TypeVar("_S", bound=Strict)


class DataConfig(Strict):
    """Where the lists come from: a file, a folder, or `packaged:SPLIT`."""

    train: str = "packaged:train"
    dev: str | None = None
    sources: tuple[str, ...] = Field(default=(), description="keep only examples whose source starts with one of these")
    limit: int | None = Field(default=None, gt=0, description="train on this many lists, drawn by a named stream")
    dev_limit: int | None = Field(default=None, gt=0)
    max_candidates: int | None = Field(default=None, gt=1, description="cap a pool; the candidates kept are drawn by a named stream")


class ModelConfig(Strict):
    """A model to load: its spec for `load_scorer`, and that scorer's options."""

    model: str
    options: dict[str, Any] = Field(default_factory=dict, description="options of the scorer: max_length, template, layers, precision, ...")


class LabelsConfig(Strict):
    """Labels in [0, 1] of the training lists, for objectives that regress on them."""

    kind: Literal["self_distillation", "teacher", "grades", "file"] = Field(
        description="self_distillation: the student's own scores before training; teacher: those of `teacher`; file: labels made before"
    )
    passes: int = Field(default=1, gt=0, description="presentations of each list that are scored: its own order, then drawn ones")
    mapping: Literal["sigmoid", "rank", "platt"] = Field(
        default="sigmoid", description="how a teacher's scores become labels; platt reads grades"
    )
    max_grade: float | None = Field(default=None, gt=0, description="the grade that becomes 1; None: the highest of the lists")
    path: str | None = Field(default=None, description="of kind file: a labels.jsonl that a run wrote")


class Recipe(Strict):
    """One training run."""

    preset: str | None = None
    output: str
    seed: int = 0
    objective: str = Field(description="a name of steadyrank.objectives.OBJECTIVES or VIEW_OBJECTIVES")
    objective_settings: dict[str, Any] = Field(default_factory=dict)
    student: ModelConfig
    teacher: ModelConfig | None = None
    labels: LabelsConfig | None = None
    views: dict[str, Any] = Field(default_factory=dict, description="settings of steadyrank.training.settings.ViewSettings")
    judge: str | dict[str, Any] | None = Field(
        default=None,
        description="who grades the training lists: a name, or kind and its fields; None: their own grades, unjudged ones as 0",
    )
    data: DataConfig = DataConfig()
    training: dict[str, Any] = Field(default_factory=dict, description="settings of steadyrank.training.TrainSettings")
    expect: dict[str, str] = Field(
        default_factory=dict, description='what the run should reach, as {"RR@6": ">= 0.6"}; missing it fails the run'
    )


def preset_names() -> list[str]:
    """The shipped presets, one YAML file each in steadyrank/presets."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _presets().iterdir() if entry.name.endswith(".yaml"))


def load_recipe(path: str | Path | None = None, *, preset: str | None = None, overrides: Iterable[str] = ()) -> Recipe:
    """The recipe of a file and/or a preset, with `a.b=c` overrides on top. The file wins over the preset."""
    fields = _read(Path(path)) if path is not None else {}
    for override in overrides:
        fields = merge(fields, parse_override(override))
    preset = preset or fields.get("preset")
    if preset is not None:
        fields = _over_preset(preset, fields)
    return checked(Recipe, fields, where=str(path) if path is not None else f"preset {preset!r}")


def preset_recipe(preset: str, fields: Mapping[str, Any]) -> Recipe:
    """The preset with these fields laid over it."""
    return checked(Recipe, _over_preset(preset, fields), where=f"preset {preset!r}")


def _over_preset(preset: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields laid over those of the preset. Layers that the preset keeps of its own model are not asked of another one."""
    below = _preset(preset)
    for block in ("student", "teacher"):
        given, shipped = fields.get(block), below.get(block)
        if isinstance(given, Mapping) and shipped and given.get("model", shipped["model"]) != shipped["model"]:
            shipped["options"].pop("layers", None)
    return merge(below, fields) | {"preset": preset}


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` laid over `base`, mappings joined key by key; neither is changed."""
    out = dict(base)
    for key, value in top.items():
        both = isinstance(value, Mapping) and isinstance(out.get(key), Mapping)
        out[key] = merge(out[key], value) if both else value
    return out


def parse_override(text: str) -> dict[str, Any]:
    """`training.learning_rate=2e-5` as a nested mapping; the value is read as YAML, and numbers like 2e-5 as numbers."""
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise ConfigError(f"--set {text!r} is not of the form field.subfield=value")
    try:
        parsed = _number(yaml.safe_load(value))
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {text!r}: the value is not valid YAML") from error
    for part in reversed(name.strip().split(".")):
        parsed = {part: parsed}
    return parsed


def _presets() -> Any:
    return resources.files("steadyrank") / "presets"


def _preset(name: str) -> dict[str, Any]:
    if name not in preset_names():
        raise unknown_name("preset", name, preset_names())
    return _numbers(yaml.safe_load((_presets() / f"{name}.yaml").read_text(encoding="utf-8")))


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise MissingDataError(f"recipe {path} does not exist; give a YAML file, or --preset with one of: {', '.join(preset_names())}")
    return read_fields(path)


def read_fields(path: Path) -> dict[str, Any]:
    """The fields of a YAML file; numbers like 2e-5 are numbers, and what is not YAML is named with its line."""
    try:
        fields = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(f"{place}: is not valid YAML: {getattr(error, 'problem', None) or 'unreadable'}") from error
    if not isinstance(fields, dict):
        raise ConfigError(f"{path}: must hold fields such as `name: value`, not a {type(fields).__name__}")
    return _numbers(fields)


def _number(value: Any) -> Any:
    """YAML 1.1 reads 2e-5 as text; in a recipe it is a number."""
    if isinstance(value, str):
        try:
            return float(value) if any(char.isdigit() for char in value) and "e" in value.lower() else value
        except ValueError:
            return value
    return value


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return _number(value)


def checked(kind: type[_S], fields: Mapping[str, Any], *, where: str) -> _S:
    """The fields as a record of this kind; one sentence says what is wrong with them."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        # An unknown field comes first: it is often the misspelt form of one that is missing.
        problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        raise ConfigError(f"{where}: {_sentence(kind, problem)}") from error


def _sentence(kind: Any, problem: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return str(unknown_name("field", place, _fields_beside(kind, problem["loc"])))
    if problem["type"] == "missing":
        return f"field {place!r} is missing; set it in the file or with --set {place}=..."
    return f"field {place!r} is {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _fields_beside(kind: Any, location: tuple[Any, ...]) -> list[str]:
    """The fields that the record at this place has; places in lists and names in mappings stand for themselves."""
    for part in location[:-1]:
        if part in kind.model_fields:
            kind = _record_in(kind.model_fields[part].annotation) or kind
    prefix = "".join(f"{part}." for part in location[:-1])
    return [prefix + name for name in kind.model_fields]


def _record_in(annotation: Any) -> Any:
    """The record inside an annotation such as `tuple[Method, ...]` or `Method | None`."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((found for part in get_args(annotation) if (found := _record_in(part)) is not None), None)
