"""The plan: every piece of work of an experiment as a job with the jobs it needs, and every system that is evaluated.

stage1 -> the scores of each teacher, once -> cells (train, then score) and baselines (score). A plan is made from the matrix alone, so that
any process makes the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from steadyrank.config import ModelConfig, Recipe
from steadyrank.errors import ConfigError
from steadyrank.experiments.matrix.cells import Arm, Cell, arms_of, cells_of, chosen, recipe_of, stage1_recipe
from steadyrank.experiments.matrix.spec import BUILT_IN, JOIN, REFERENCES, Matrix
from steadyrank.files import fingerprint

Kind = Literal["stage1", "teacher", "cell", "baseline"]


@dataclass(frozen=True)
class System:
    """One row of the tables. `start` names the system an arm was trained from, where that is evaluated."""

    name: str
    label: str
    role: str  # student, teacher, start, baseline or reference
    arm: Arm | None = None
    model: ModelConfig | None = None  # of what is not trained here; None for bm25 and the references
    start: str | None = None


@dataclass(frozen=True)
class Job:
    """One piece of work, done in a process of its own."""

    name: str
    kind: Kind
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All work of an experiment in one folder."""

    matrix: Matrix
    folder: Path
    cells: tuple[Cell, ...]
    recipes: dict[str, Recipe]  # by cell
    stage1: Recipe | None
    teachers: dict[str, ModelConfig]  # by job
    systems: tuple[System, ...]
    jobs: tuple[Job, ...]
    selected: frozenset[str] = field(default_factory=frozenset)  # cells that this start works on

    def cell(self, name: str) -> Cell:
        return next(cell for cell in self.cells if cell.name == name)

    def system(self, name: str) -> System:
        return next(system for system in self.systems if system.name == name)

    def taught_by(self, job: str) -> list[str]:
        """The cells that read the scores of this teacher."""
        return [name for name, recipe in self.recipes.items() if recipe.teacher == self.teachers[job]]


def plan_of(matrix: Matrix, folder: Path, *, only: Sequence[str] = ()) -> Plan:
    """The plan of a matrix; every recipe in it is checked. `only`: patterns of the cells to work on."""
    cells = cells_of(matrix)
    recipes = {cell.name: recipe_of(matrix, cell, folder) for cell in cells}
    stage1 = stage1_recipe(matrix, folder)
    teachers = {_teacher_job(model): model for recipe in recipes.values() if (model := recipe.teacher) is not None}
    systems = _systems(matrix, cells, recipes, stage1, folder)
    selected = chosen(cells, only)
    work = [
        Job(f"baseline-{system.name}", "baseline", _needs(stage1, folder, system.model))
        for system in systems
        if system.role != "reference" and system.arm is None
    ]
    for cell in selected:
        recipe = recipes[cell.name]
        taught = (_teacher_job(recipe.teacher),) if recipe.teacher is not None else ()
        work.append(Job(cell.name, "cell", taught + _needs(stage1, folder, recipe.student)))
    jobs = [Job(name, "teacher", _needs(stage1, folder, model)) for name, model in teachers.items() if _is_needed(name, work)] + work
    jobs = [Job("stage1", "stage1")] * _is_needed("stage1", jobs) + jobs
    return Plan(
        matrix, folder, tuple(cells), recipes, stage1, teachers, tuple(systems), tuple(jobs), frozenset(cell.name for cell in selected)
    )


def _teacher_job(model: ModelConfig) -> str:
    return f"teacher-{fingerprint(model.model_dump(mode='json'))[:8]}"


def _is_needed(name: str, jobs: Sequence[Job]) -> bool:
    return any(name in job.needs for job in jobs)


def _needs(stage1: Recipe | None, folder: Path, model: ModelConfig | None) -> tuple[str, ...]:
    return ("stage1",) if stage1 is not None and model is not None and model.model == str(folder / "stage1" / "final") else ()


def _systems(matrix: Matrix, cells: Sequence[Cell], recipes: dict[str, Recipe], stage1: Recipe | None, folder: Path) -> list[System]:
    out = [System(name, label, "reference") for name, label in REFERENCES.items()]
    arms = arms_of(cells)
    first = {arm.name: recipes[next(cell.name for cell in cells if cell.arm.name == arm.name)] for arm in arms}
    starts: dict[str, System] = {}
    for baseline in matrix.baselines:
        label = baseline.label or BUILT_IN.get(baseline.name, baseline.name)
        if baseline.model is not None:
            model = ModelConfig(model=baseline.model, options=baseline.options)
            out.append(System(baseline.name, label, baseline.role, model=model))
        elif baseline.name == "start":
            starts = _starts(arms, first, label)
            out += {system.name: system for system in starts.values()}.values()
        elif baseline.name == "bm25":
            out.append(System("bm25", label, "baseline"))
        else:
            out.append(_teacher_system(baseline.name, label, matrix, first, stage1, folder))
    for arm in arms:
        start = starts[arm.name].name if starts else None
        out.append(System(arm.name, label_of(arm), "student", arm=arm, start=start))
    return out


def label_of(arm: Arm) -> str:
    """The arm in words: the labels of its parts."""
    return ", ".join(part.label or part.name for part in (arm.method, arm.student, arm.setting) if part is not None)


def _starts(arms: Sequence[Arm], first: dict[str, Recipe], label: str) -> dict[str, System]:
    """What each arm was trained from: one system for every model, named after the student, and the method where methods differ in it."""
    out: dict[str, System] = {}
    known: dict[str, System] = {}
    for arm in arms:
        model = first[arm.name].student
        key = fingerprint(model.model_dump(mode="json"))
        if key not in known:
            student = arm.student.name if arm.student is not None else None
            name = JOIN.join(["start", *([student] if student else [])])
            what = label + (f", {arm.student.label or student}" if arm.student is not None else "")
            if name in {system.name for system in known.values()}:
                name, what = JOIN.join([name, arm.method.name]), f"{what}, {arm.method.label or arm.method.name}"
            known[key] = System(name, what, "start", model=model)
        out[arm.name] = known[key]
    return out


def _teacher_system(name: str, label: str, matrix: Matrix, first: dict[str, Recipe], stage1: Recipe | None, folder: Path) -> System:
    if name == "teacher_start":
        if stage1 is None:
            raise ConfigError("baseline 'teacher_start' is the teacher before Stage 1, and the matrix has no stage1; take one away")
        return System(name, label, "start", model=stage1.student)
    ours = str(folder / "stage1" / "final")
    taught = [recipe.teacher for recipe in first.values() if recipe.teacher is not None]
    model = next((model for model in taught if stage1 is None or model.model == ours), None)
    if model is None:
        raise ConfigError("baseline 'teacher' is the teacher of the cells, and no cell has one; leave it out")
    return System(name, f"{label} after Stage 1" if stage1 is not None and label == BUILT_IN["teacher"] else label, "teacher", model=model)
