"""experiment.json: what the experiment is, which systems and splits it holds, and how every cell stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from steadyrank.evaluation import Evaluation
from steadyrank.experiments.matrix import state
from steadyrank.experiments.matrix.cells import Arm, Cell, parameters
from steadyrank.experiments.matrix.pairs import Family
from steadyrank.experiments.matrix.plan import Plan, System
from steadyrank.experiments.matrix.spec import FAMILIES, Matrix, leaves
from steadyrank.files import fingerprint, read_json, write_json
from steadyrank.records import RankingExample
from steadyrank.training import environment

SCHEMA = "steadyrank.experiment/1"
_OF_THE_RUN = ("steps", "lists_seen", "best_step", "best_measure", "seconds", "precision")


def write_index(
    plan: Plan,
    families: Sequence[Family],
    systems: Mapping[str, Mapping[str, Evaluation]],
    cells: Mapping[str, Mapping[str, Mapping[int, Evaluation]]],
    lists: Mapping[str, Sequence[RankingExample]],
) -> None:
    """Written last: its presence means that a report can be made."""
    matrix = plan.matrix
    first = next(iter(lists))
    write_json(
        plan.folder / "experiment.json",
        {
            "schema": SCHEMA,
            "name": matrix.name,
            "title": matrix.title or matrix.name,
            "about": matrix.about or "",
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "measures": list(matrix.measures),
            "checkpoint": matrix.checkpoint,
            "seeds": list(matrix.seeds),
            "parameters": parameters(matrix),
            "base": _base(matrix, plan),
            "systems": [
                _system(plan, system, sorted(cells[first].get(system.name, {}))) for system in plan.systems if system.name in systems[first]
            ],
            "splits": [_split(split, matrix, chosen) for split, chosen in lists.items()],
            "families": [
                {
                    "name": family.name,
                    "title": family.title,
                    "is_question": family.name not in FAMILIES,
                    "pairs": [list(pair) for pair in family.pairs],
                }
                for family in families
            ],
            "cells": [_cell(plan, cell) for cell in plan.cells],
            "jobs": [_job(plan, job.name) for job in plan.jobs if job.kind in ("stage1", "baseline")],
            "environment": environment.describe(),
            "notes": _notes(plan),
        },
    )


def _base(matrix: Matrix, plan: Plan) -> str | None:
    """The arm that figures put in front: of the named method, under the default setting, on the first student."""
    arms = [system for system in plan.systems if system.arm is not None]
    default = matrix.default_setting
    for arm in arms:
        parts = arm.arm
        if parts is not None and parts.method.name == matrix.base_method and (default is None or parts.setting == default):
            return arm.name
    return arms[0].name if arms else None


def _system(plan: Plan, system: System, seeds: Sequence[int]) -> dict[str, Any]:
    out: dict[str, Any] = {"name": system.name, "short": _short(plan.matrix, system), "label": system.label, "role": system.role}
    if system.arm is None:
        return out
    planned = [cell.seed for cell in plan.cells if cell.arm.name == system.name]
    parts = {name: part.name for name in ("method", "student", "setting") if (part := getattr(system.arm, name)) is not None}
    return {**out, **parts, "start": system.start, "seeds": list(seeds), "planned_seeds": planned, **_point(system.arm)}


def _short(matrix: Matrix, system: System) -> str:
    """A name for figures: the parts of the axes that have more than one value."""
    arm = system.arm
    if arm is None:
        return system.name.replace("--", " ").replace("_", " ")
    axes = ((arm.method, matrix.methods), (arm.student, matrix.students), (arm.setting, matrix.settings))
    varied = [
        part.name if not hasattr(part, "default") else part.label or part.name for part, axis in axes if part is not None and len(axis) > 1
    ]
    return " · ".join(varied) or arm.method.name


def _point(arm: Arm) -> dict[str, Any]:
    """Where the arm stands in the sweep: the fields that its setting sets."""
    if arm.setting is None:
        return {}
    return {"setting_label": arm.setting.label or arm.setting.name, "is_default": arm.setting.default, "point": leaves(arm.setting.set)}


def _split(split: str, matrix: Matrix, lists: Sequence[RankingExample]) -> dict[str, Any]:
    return {
        "name": split,
        "label": matrix.evaluate[split].label or split,
        "lists": len(lists),
        "candidates": sum(len(example.candidates) for example in lists),
        "by_source": dict(sorted(Counter(example.source or "unnamed" for example in lists).items())),
        "from": Path(matrix.evaluate[split].lists).name,
        "fingerprint": fingerprint([example.id for example in lists]),
    }


def _cell(plan: Plan, cell: Cell) -> dict[str, Any]:
    """State, sentence and result of one run."""
    out = {**_job(plan, cell.name), "state": state.standing(plan, cell.name), "arm": cell.arm.name, "seed": cell.seed}
    result = plan.folder / "cells" / cell.name / "result.json"
    if result.is_file():
        values = read_json(result)
        out |= {name: values.get(name) for name in _OF_THE_RUN}
        measure = plan.matrix.headline
        out |= {moment: (values.get(moment) or {}).get(measure) for moment in ("dev_start", "dev_best", "dev_final")}
        out |= {"warnings": values.get("warnings") or [], "counts": {k: v for k, v in (values.get("counts") or {}).items() if v}}
    return out


def _job(plan: Plan, name: str) -> dict[str, Any]:
    record = state.read_record(plan.folder, name)
    log = state.log_of(plan.folder, name)
    return {
        "name": name,
        "state": record.state if record is not None else "not started",
        "sentence": record.sentence if record is not None else "",
        "log": str(log.relative_to(plan.folder)) if log.is_file() else None,
    }


def _notes(plan: Plan) -> list[str]:
    matrix = plan.matrix
    which = "final checkpoint" if matrix.checkpoint == "final" else "checkpoint that was best on dev lists"
    seeds = f"{len(matrix.seeds)} seeds" if len(matrix.seeds) > 1 else "one seed"
    notes = [
        f"Evaluated models: the {which} of each run, {seeds} an arm. Arms differ from the base recipe only where their method, student or "
        "setting says so.",
        "The value of a query is its mean over seeds. Intervals resample queries, lists of one group together, and not seeds: the spread "
        "over seeds stands beside.",
    ]
    if len(matrix.seeds) < 3:
        notes.append("Fewer than three seeds: a difference of about a point can be the seeds'.")
    leaks = plan.folder / "lists" / "leaks.json"
    if not leaks.is_file():
        return notes
    shared = [pair for pair in read_json(leaks)["pairs"] if pair["queries"] or pair["groups"]]
    told = "; ".join(f"{pair['a']} and {pair['b']}, {pair['queries']} queries and {pair['groups']} groups" for pair in shared)
    return [*notes, f"Shared by splits: {told}." if told else "Training, dev and evaluated lists share no query and no group."]
