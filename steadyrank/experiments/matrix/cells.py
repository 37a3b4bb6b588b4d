"""Cells: one point of the matrix each, with the recipe that trains it. An arm is a cell without its seed.

Laid over each other, the later wins: preset, base, student, its `set`, the method's, the setting's. A `student` or `teacher` block that
names a model replaces the preset's whole, since its options belong to its own model; one without a model is laid over it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from steadyrank import objectives
from steadyrank.config import ModelConfig, Recipe, merge, preset_recipe
from steadyrank.errors import ConfigError, unknown_name
from steadyrank.experiments.matrix.spec import JOIN, Matrix, Method, Pick, Setting, Student, dotted, leaves
from steadyrank.experiments.recipes import settings_of


@dataclass(frozen=True)
class Arm:
    """What is compared: a method on a student under a setting; an axis that the matrix does not have is None."""

    method: Method
    student: Student | None
    setting: Setting | None

    @property
    def name(self) -> str:
        return JOIN.join(part.name for part in (self.method, self.student, self.setting) if part is not None)


@dataclass(frozen=True)
class Cell:
    """One training run."""

    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm.name}{JOIN}seed{self.seed}"


def cells_of(matrix: Matrix) -> list[Cell]:
    """All cells; those of the first seed come first, so that an unfinished experiment compares what it has."""
    arms = [Arm(*parts) for parts in product(matrix.methods, matrix.students or (None,), matrix.settings or (None,))]
    every = [Cell(arm, seed) for seed in matrix.seeds for arm in arms]
    for name in ("exclude", "include"):
        for pick in getattr(matrix, name):
            anywhere = pick.model_copy(update={"seed": None})  # a smaller size may lack the seed
            if not any(_matches(anywhere, cell) for cell in every):
                raise ConfigError(f"{name}: no cell is {_written(pick)}; the methods are {', '.join(m.name for m in matrix.methods)}")
    kept = [cell for cell in every if not _any(matrix.exclude, cell) or _any(matrix.include, cell)]
    if not kept:
        raise ConfigError("exclude leaves no cell; take a line of it away")
    return kept


def arms_of(cells: Sequence[Cell]) -> list[Arm]:
    """The arms of these cells, each once, in order."""
    return list({cell.arm.name: cell.arm for cell in cells}.values())


def chosen(cells: Sequence[Cell], patterns: Iterable[str]) -> list[Cell]:
    """The cells whose name fits one of the patterns; all of them without a pattern. `a3` fits every cell of the method a3."""
    patterns = list(patterns)
    for pattern in patterns:
        if not any(_fits(cell, pattern) for cell in cells):
            names = [name for cell in cells for name in (cell.arm.method.name, cell.arm.name, cell.name)]
            raise unknown_name("cell", pattern, dict.fromkeys(names))
    return [cell for cell in cells if not patterns or any(_fits(cell, pattern) for pattern in patterns)]


def recipe_of(matrix: Matrix, cell: Cell, folder: Path) -> Recipe:
    """The recipe of one cell; its objective and its settings are checked here, before anything runs."""
    arm = cell.arm
    fields: dict[str, Any] = merge(dotted(matrix.base), {"output": str(folder / "cells" / cell.name), "seed": cell.seed})
    stage1 = stage1_recipe(matrix, folder)
    if stage1 is not None:  # a8 is taught by the teacher as it was before Stage 1
        teacher = stage1.student.model if arm.method.preset == "a8" else str(folder / "stage1" / "final")
        fields["teacher"] = {**(fields.get("teacher") or {}), "model": teacher}
    if arm.student is not None:
        fields["student"] = {"model": arm.student.model, "options": arm.student.options}
    for part in (arm.student, arm.method, arm.setting):
        fields = merge(fields, dotted(part.set)) if part is not None else fields
    try:
        recipe = preset_recipe(arm.method.preset, fields)
        recipe = recipe.model_copy(update={name: _whole(fields, name, getattr(recipe, name)) for name in ("student", "teacher")})
        settings_of(recipe)
        return recipe if needs_teacher(recipe) else recipe.model_copy(update={"teacher": None})
    except ConfigError as error:
        raise ConfigError(f"cell {cell.name}: {error}") from error


def stage1_recipe(matrix: Matrix, folder: Path) -> Recipe | None:
    """The recipe that makes the teacher; data and training are those of `base` where it says nothing else."""
    if matrix.stage1 is None:
        return None
    base, block = dotted(matrix.base), dotted(matrix.stage1)
    if "model" in (base.get("teacher") or {}):
        raise ConfigError("base.teacher.model is set, and stage1 makes the teacher; leave one of them out (--set stage1=null)")
    shared: dict[str, Any] = {name: base[name] for name in ("data", "training") if name in base}
    fields = merge(shared, merge(block, {"output": str(folder / "stage1")}))
    try:
        recipe = preset_recipe(fields.pop("preset", "stage1"), fields)
        recipe = recipe.model_copy(update={"student": _whole(fields, "student", recipe.student)})
        settings_of(recipe)
        objectives.build(recipe.objective, **recipe.objective_settings)
    except ConfigError as error:
        raise ConfigError(f"stage1: {error}") from error
    return recipe


def needs_teacher(recipe: Recipe) -> bool:
    """Whether a run reads a teacher's scores."""
    objective = objectives.build(recipe.objective, **recipe.objective_settings)
    by_label = objective.target == "labels" and recipe.labels is not None and recipe.labels.kind == "teacher"
    return by_label or "teacher" in (objective.target, objective.anchor)


def parameters(matrix: Matrix) -> list[str]:
    """The recipe fields that the settings set, as dotted names, in the order of the file: a panel each in figures."""
    return list(dict.fromkeys(name for setting in matrix.settings for name in leaves(setting.set)))


def _whole(fields: dict[str, Any], name: str, found: ModelConfig | None) -> ModelConfig | None:
    block = fields.get(name)
    return ModelConfig(**block) if isinstance(block, dict) and "model" in block else found


def _any(picks: Sequence[Pick], cell: Cell) -> bool:
    return any(_matches(pick, cell) for pick in picks)


def _matches(pick: Pick, cell: Cell) -> bool:
    parts = ((pick.method, cell.arm.method), (pick.student, cell.arm.student), (pick.setting, cell.arm.setting))
    named = all(fnmatch.fnmatchcase(part.name if part is not None else "", pattern) for pattern, part in parts)
    return named and pick.seed in (None, cell.seed)


def _fits(cell: Cell, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in (cell.name, cell.arm.name, cell.arm.method.name))


def _written(pick: Pick) -> str:
    return ", ".join(f"{name} {value}" for name, value in pick.model_dump().items() if value not in ("*", None)) or "*"
