"""What is done already: one record a job, and what identifies the work it did.

FOLDER/jobs/<job>.json is written when a job ends, well or not, and FOLDER/jobs/<job>.log holds what it said. A record counts as done only
while its identity is that of the plan: the recipe without its folder, the weights of every model it reads, and the data files.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from steadyrank.config import ModelConfig, Recipe
from steadyrank.data import models
from steadyrank.experiments.matrix.plan import Job, Plan
from steadyrank.files import file_digest, fingerprint, read_json, write_json

SCHEMA = "steadyrank.job/1"


@dataclass(frozen=True)
class Record:
    """How a job ended. `state`: done, failed, skipped (what it needs failed), or trained (a cell that has no scores yet)."""

    job: str
    state: str
    sentence: str = ""  # why it failed or was skipped
    trained: str = ""  # identity of the training run
    scored: str = ""  # identity of the scores
    scores: Mapping[str, str] = field(default_factory=dict)  # split -> file of scores, below the experiment's folder
    seconds: float = 0.0  # of the last start

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self), "scores": dict(self.scores)}


def log_of(folder: Path, job: str) -> Path:
    return folder / "jobs" / f"{job}.log"


def write_record(folder: Path, record: Record) -> None:
    write_json(folder / "jobs" / f"{record.job}.json", record.to_json())


def read_record(folder: Path, job: str) -> Record | None:
    """The record of a job that ended; None while it has not."""
    path = folder / "jobs" / f"{job}.json"
    if not path.is_file():
        return None
    values = read_json(path)
    return Record(**{name: values[name] for name in Record.__dataclass_fields__})


def write_failure(folder: Path, job: str, sentence: str, *, seconds: float = 0.0, state: str = "failed") -> Record:
    """The record of a job that did not get through; that its run was trained is not forgotten."""
    before = read_record(folder, job)
    record = Record(job, state, sentence, trained=before.trained if before is not None else "", seconds=round(seconds, 1))
    write_record(folder, record)
    return record


def is_done(plan: Plan, job: Job) -> bool:
    """Whether nothing of this job is left to do. Asked once what it needs is done."""
    if job.kind == "teacher":
        return all(is_trained(plan, name) for name in plan.taught_by(job.name) if name in plan.selected)
    if job.kind == "stage1":
        record = read_record(plan.folder, job.name)
        finished = (plan.folder / "stage1" / "result.json").is_file()
        return record is not None and finished and record.state == "done" and record.trained == recipe_identity(plan.stage1)
    record = read_record(plan.folder, job.name)
    if record is None or record.state != "done" or record.scored != score_identity(plan, job):
        return False
    return all((plan.folder / path).is_file() for path in record.scores.values()) and (job.kind != "cell" or is_trained(plan, job.name))


def is_trained(plan: Plan, cell: str) -> bool:
    """Whether the cell's run is finished and is the run that the plan asks for."""
    record = read_record(plan.folder, cell)
    finished = (plan.folder / "cells" / cell / "result.json").is_file()
    return finished and record is not None and record.trained != "" and record.trained == recipe_identity(plan.recipes[cell])


def standing(plan: Plan, cell: str) -> str:
    """How a cell stands: done, failed, skipped, trained (no scores yet), begun, not started, or changed (done, and by another recipe)."""
    record = read_record(plan.folder, cell)
    if record is None:
        return "begun" if (plan.folder / "cells" / cell / "config.yaml").is_file() else "not started"
    return "changed" if record.state == "done" and not is_done(plan, Job(cell, "cell")) else record.state


def recipe_identity(recipe: Recipe | None) -> str:
    """What a run's numbers depend on: its recipe, and what the models and files named in it hold."""
    assert recipe is not None
    fields = recipe.model_dump(mode="json", exclude={"output", "student", "teacher"})
    read = [recipe.data.train, recipe.data.dev or "", (recipe.labels.path if recipe.labels is not None else None) or ""]
    return fingerprint([fields, model_identity(recipe.student), model_identity(recipe.teacher), [file_identity(path) for path in read]])


def score_identity(plan: Plan, job: Job) -> str:
    """What the scores of a job depend on: the model and the lists."""
    lists = [file_digest(path) for path in list_files(plan).values()]
    if job.kind == "baseline":
        return fingerprint([model_identity(plan.system(job.name.removeprefix("baseline-")).model), lists])
    return fingerprint([model_digest(str(model_folder(plan, job.name))), lists])


def model_folder(plan: Plan, cell: str) -> Path:
    """The model of a cell that is evaluated."""
    return plan.folder / "cells" / cell / plan.matrix.checkpoint


def list_files(plan: Plan) -> dict[str, Path]:
    """The frozen lists of every split."""
    return {split: plan.folder / "lists" / f"{split}.jsonl" for split in plan.matrix.evaluate}


def model_identity(model: ModelConfig | None) -> Any:
    return [model_digest(model.model), model.options] if model is not None else None


def model_digest(spec: str) -> str:
    """A digest of the weights of a folder or of a packaged model; what is neither is known by its name only."""
    folder = models.fetch(spec) if spec in models.NAMES else Path(spec).expanduser()
    if not folder.is_dir():
        return spec
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin"), *folder.glob("steadyrank.json")])
    return fingerprint([[path.name, _digest(str(path), path.stat().st_size, path.stat().st_mtime_ns)] for path in weights])


@functools.lru_cache(maxsize=512)
def _digest(path: str, size: int, changed: int) -> str:
    return file_digest(path)


def file_identity(path: str) -> Any:
    """A digest of a file; of a folder its names, sizes and times; any other spec is known by its name only."""
    found = Path(path)
    if not path or not found.exists():
        return path
    if found.is_dir():
        inside = [(str(item.relative_to(found)), item.stat()) for item in sorted(found.rglob("*")) if item.is_file()]
        return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in inside]
    return _digest(path, found.stat().st_size, found.stat().st_mtime_ns)
