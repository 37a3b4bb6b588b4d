"""A whole experiment: freeze the lists, do what is left to do, collect, report. The same command goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from steadyrank.errors import MissingDataError
from steadyrank.experiments.matrix import state
from steadyrank.experiments.matrix.collect import collect
from steadyrank.experiments.matrix.lists import freeze
from steadyrank.experiments.matrix.pairs import families_of
from steadyrank.experiments.matrix.plan import Plan, plan_of
from steadyrank.experiments.matrix.running import Child, Here, Launch, ended_by_sigterm, locked, run_jobs
from steadyrank.experiments.matrix.spec import Matrix, load_matrix
from steadyrank.experiments.matrix.state import Record
from steadyrank.experiments.recipes import training_lists
from steadyrank.files import atomic_write
from steadyrank.reports.experiment import write_experiment
from steadyrank.training.sampling import count_steps
from steadyrank.training.settings import TrainSettings

Say = Callable[[str], None]


@dataclass(frozen=True)
class MatrixResult:
    """Where the page is, what failed, and how long it took."""

    page: Path
    cells: int  # that are done, of all in the matrix
    planned: int
    failed: tuple[Record, ...]
    logs: dict[str, str] = field(default_factory=dict)  # of the failed jobs
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "report": str(self.page), "cells_done": self.cells, "cells": self.planned, "seconds": round(self.seconds, 1),
            "failed": [{"job": record.job, "state": record.state, "sentence": record.sentence, "log": self.logs.get(record.job)}
                       for record in self.failed],
        }  # fmt: skip

    def lines(self) -> list[str]:
        out = []
        for record in self.failed:
            log = f" (log: {self.logs[record.job]})" if record.job in self.logs else ""
            out.append(f"{record.state}: {record.job}: {record.sentence}{log}")
        return [*out, f"{self.cells} of {self.planned} cells done, {self.seconds / 60:.1f} minutes; report in {self.page}"]


def run_matrix(
    matrix: Matrix, folder: Path, *, jobs: int = 1, only: Sequence[str] = (), restart: bool = False, say: Say = print, here: bool = False
) -> MatrixResult:
    """Do the experiment into `folder`.

    jobs:    jobs at a time, each a process of `matrix.threads` threads; results do not depend on it.
    only:    patterns of the cells to work on; the report holds what is done, of all.
    restart: throw away what earlier starts left of the runs that are worked on.
    here:    one job after the other inside this process, for a debugger.
    """
    started = time.monotonic()
    plan = plan_of(matrix, folder, only=only)
    families_of(plan)  # a pair that names nothing is told now
    with locked(folder, say=say) as lock, ended_by_sigterm():
        _keep(matrix, folder / "matrix.yaml")
        freeze(plan, say)
        if restart:
            _forget(plan)
        launch: Launch = (
            (lambda plan, job, slot: Here(plan, job, say=say, restart=restart))
            if here
            else (lambda plan, job, slot: Child(plan, job, slot, say=say, restart=restart, lock=lock))
        )
        records = run_jobs(plan, jobs=1 if here else jobs, say=say, launch=launch)
        collect(plan, say)
    page = write_experiment(folder)
    failed = tuple(record for record in records.values() if record.state != "done")
    logs = {record.job: str(log) for record in failed if (log := state.log_of(folder, record.job)).is_file()}
    done = sum(state.standing(plan, cell.name) == "done" for cell in plan.cells)
    return MatrixResult(page, done, len(plan.cells), failed, logs, time.monotonic() - started)


def collect_only(folder: Path, *, say: Say = print) -> Path:
    """Start nothing: evaluate what is done in the folder of an experiment and write its report; the path of the page."""
    if not (folder / "matrix.yaml").is_file():
        raise MissingDataError(f"{folder} holds no matrix.yaml; run the experiment first, or give its folder with -o")
    plan = plan_of(load_matrix(folder / "matrix.yaml"), folder)
    if not all(path.is_file() for path in state.list_files(plan).values()):
        raise MissingDataError(f"{folder}/lists is not complete, so nothing was evaluated yet; run the experiment first")
    with locked(folder, say=say):
        collect(plan, say)
    return write_experiment(folder)


@dataclass(frozen=True)
class Standing:
    """How one cell stands, for `--status`."""

    cell: str
    state: str
    steps: int
    steps_done: int
    is_selected: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def standing(matrix: Matrix, folder: Path, *, only: Sequence[str] = ()) -> list[Standing]:
    """Every cell with its steps and what is done of it; nothing is run and nothing written."""
    plan = plan_of(matrix, folder, only=only)
    families_of(plan)
    amounts: dict[tuple[str, int], int] = {}
    out = []
    for cell in plan.cells:
        recipe = plan.recipes[cell.name]
        key = (recipe.data.model_dump_json(), recipe.seed)
        if key not in amounts:
            amounts[key] = len(training_lists(recipe.data, seed=recipe.seed))
        settings = TrainSettings.from_mapping({"seed": recipe.seed, **recipe.training})
        steps = count_steps(amounts[key], lists_per_step=settings.lists_per_step, epochs=settings.epochs, max_steps=settings.max_steps)
        out.append(Standing(cell.name, state.standing(plan, cell.name), steps, _steps_done(plan, cell.name), cell.name in plan.selected))
    return out


def _steps_done(plan: Plan, cell: str) -> int:
    log = plan.folder / "cells" / cell / "log.jsonl"
    if not log.is_file():
        return 0
    return log.read_text(encoding="utf-8").count("\n")


def _keep(matrix: Matrix, path: Path) -> None:
    """The matrix as it is run, with size and overrides laid over it; the processes of the jobs read it."""
    with atomic_write(path) as out:
        out.write(yaml.safe_dump(matrix.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


def _forget(plan: Plan) -> None:
    for name in plan.selected:
        (plan.folder / "jobs" / f"{name}.json").unlink(missing_ok=True)
