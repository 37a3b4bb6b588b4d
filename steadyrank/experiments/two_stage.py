"""Both stages from one file: a judge grades, the teacher is strengthened, its scores are cached, a student is distilled, and a report says
how good both became.

    output: runs/mine
    data: {train: lists.jsonl, dev: dev.jsonl}         # of both stages
    stage1: {judge: ..., student: {model: ...}}         # fields of a recipe, laid over the preset stage1
    stage2: {preset: a3, student: {model: ...}}         # laid over the preset a3; the teacher is what Stage 1 made
    evaluate: {test: {lists: test.jsonl}}

Every part goes on where it was killed: judgments, runs and score files are read back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from steadyrank.config import DataConfig, ModelConfig, Recipe, Strict, checked, merge, parse_override, preset_recipe, read_fields
from steadyrank.data.selecting import choose, examples_of
from steadyrank.errors import ConfigError
from steadyrank.experiments.recipes import load, run_recipe
from steadyrank.experiments.study import HEADLINE, REFERENCES, Study, System
from steadyrank.files import file_digest, fingerprint
from steadyrank.reports import write_report
from steadyrank.scoring import load_scorer
from steadyrank.training.identity import seed_head

Say = Callable[[str], None]
_OWNED = ("output", "seed")  # of the whole; a stage that sets them would be another run


class EvaluatedLists(Strict):
    """Lists that both models are evaluated on."""

    lists: str
    label: str | None = None
    limit: int | None = Field(default=None, gt=0, description="evaluate this many, balanced over sources")


class TwoStage(Strict):
    """A recipe of both stages."""

    output: str
    seed: int = 0
    title: str = "A compact reranker, distilled from a strengthened teacher"
    data: DataConfig = DataConfig()
    stage1: dict[str, Any]
    stage2: dict[str, Any]
    checkpoint: Literal["final", "best"] = Field(default="final", description="of both stages; best is chosen on the dev lists")
    evaluate: dict[str, EvaluatedLists] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class TwoStageResult:
    """Where the student and the report are, and the headline means of every split and system."""

    student: Path
    report: Path
    seconds: float
    means: dict[str, dict[str, float]]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": "steadyrank.two_stage/1", "student": str(self.student), "report": str(self.report), "measure": HEADLINE,
            "seconds": round(self.seconds, 1), "means": self.means,
        }  # fmt: skip

    def lines(self) -> list[str]:
        splits = list(next(iter(self.means.values())))
        width = max(len(name) for name in (*self.means, HEADLINE))
        rows = [f"{name:<{width}}  " + "  ".join(f"{values[split]:>10.3f}" for split in splits) for name, values in self.means.items()]
        head = f"{HEADLINE:<{width}}  " + "  ".join(f"{split:>10}" for split in splits)
        return [head, *rows, "", f"student in {self.student}; report in {self.report}"]


def read_two_stage(path: Path | None, *, overrides: Iterable[str] = ()) -> TwoStage | None:
    """The recipe of both stages in this file; None where the file is a recipe of one run."""
    if path is None or not path.is_file():
        return None
    fields = read_fields(path)
    if not {"stage1", "stage2"} & set(fields):
        return None
    for override in overrides:
        fields = merge(fields, parse_override(override))
    return checked(TwoStage, fields, where=str(path))


def run_two_stage(recipe: TwoStage, *, restart: bool = False, say: Say = print) -> TwoStageResult:
    """Do all of it into the recipe's output; what is there already is not done again."""
    started = time.monotonic()
    output = Path(recipe.output)
    first, second = _recipes(recipe)
    lists = {name: choose(examples_of(one.lists), one.limit, seed=recipe.seed, balanced=True) for name, one in recipe.evaluate.items()}
    say("Stage 1: the teacher draws rankings and is paid by the judge")
    run_recipe(first, restart=restart, say=say)
    say("Stage 2: the student draws rankings and is paid by the teacher")
    run_recipe(second, restart=restart, say=say)
    study = _study(recipe, first, second, lists, say)
    evaluations = study.run()
    report = write_report(output)
    labels = REFERENCES | {system.name: system.label for system in study.systems}
    means = {
        label: {split: evaluations[split][name].measures[HEADLINE]["micro"]["mean"] for split in lists} for name, label in labels.items()
    }
    return TwoStageResult(Path(second.output) / recipe.checkpoint, report, time.monotonic() - started, means)


def _recipes(recipe: TwoStage) -> tuple[Recipe, Recipe]:
    """The recipe of each stage; a mistake in the second is told before the first is run."""
    data = recipe.data.model_dump(exclude_unset=True)
    first = _stage(recipe, "stage1", recipe.stage1, {"preset": "stage1", "data": data})
    teacher = {"model": str(Path(first.output) / recipe.checkpoint), "options": dict(first.student.options)}
    return first, _stage(recipe, "stage2", recipe.stage2, {"preset": "a3", "data": data, "teacher": teacher})


def _stage(recipe: TwoStage, name: str, fields: Mapping[str, Any], below: Mapping[str, Any]) -> Recipe:
    for owned in _OWNED:
        if owned in fields:
            raise ConfigError(f"{name}.{owned} is set; {owned} belongs to the whole recipe, so set {owned} beside {name}")
    if name == "stage2" and "model" in (fields.get("teacher") or {}):
        raise ConfigError("stage2.teacher.model is set; the teacher of Stage 2 is what Stage 1 makes; leave it out")
    laid = merge(below, fields)
    where = {"output": str(Path(recipe.output) / "runs" / name), "seed": recipe.seed}
    return preset_recipe(laid.pop("preset"), {**laid, **where})


def _study(recipe: TwoStage, first: Recipe, second: Recipe, lists: Mapping[str, Any], say: Say) -> Study:
    output = Path(recipe.output)
    return Study(
        folder=output, title=recipe.title,
        subtitle="The teacher is strengthened on judge grades; the student draws its own rankings and is paid by the teacher.",
        splits={name: (recipe.evaluate[name].label or name, chosen) for name, chosen in lists.items()},
        systems=[
            System("bm25", "BM25", "baseline", lambda: load_scorer("bm25")),
            _start(first, "teacher-start", "Teacher before Stage 1"),
            _start(second, "student-start", "Student before distillation"),
            _trained(recipe, first, "teacher", "Teacher after Stage 1"),
            _trained(recipe, second, "student", f"Student, {second.preset}"),
        ],
        pairs=[
            ("teacher", "teacher-start"), ("teacher", "bm25"), ("student", "student-start"), ("student", "bm25"), ("student", "teacher"),
        ],
        flips=("student", "student-start"), seed=recipe.seed, say=say,
        runs=[{"name": name, "label": label, "dir": f"runs/{name}"} for name, label in (("stage1", "Stage 1"), ("stage2", "Stage 2"))],
        settings=recipe.model_dump(mode="json", exclude={"output"}, exclude_unset=True),
        notes=[
            "Stage 1 is paid by the judge of its recipe; evaluation reads the grades of the lists themselves.",
            f"Both models are the {recipe.checkpoint} checkpoints of their runs.",
        ],
    )  # fmt: skip


def _start(run: Recipe, name: str, label: str) -> System:
    identity = fingerprint([_identity(run.student), run.seed])
    return System(name, label, "start", lambda: _seeded(run), identity=identity)


def _seeded(run: Recipe) -> Any:
    """The model that a run starts from; a head that is new is drawn as the run draws it."""
    scorer = load(run.student, allow_untrained=True)
    seed_head(scorer, run.seed)
    return scorer


def _trained(recipe: TwoStage, run: Recipe, name: str, label: str) -> System:
    folder = Path(run.output) / recipe.checkpoint
    options = {key: value for key, value in run.student.options.items() if key != "layers"}  # the saved model holds those it has
    model = ModelConfig(model=str(folder), options=options)
    return System(name, label, name, lambda: load(model), identity=_identity(model))


def _identity(model: ModelConfig) -> str:
    """What the scores of a model depend on: its options, and the weights where they are a folder of one file."""
    weights = Path(model.model) / "model.safetensors"
    return fingerprint([model.model_dump(mode="json"), file_digest(weights) if weights.is_file() else ""])
