"""One recipe, end to end: load the lists and the models, score with the teacher once, train, keep the run directory."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from steadyrank import objectives
from steadyrank.config import DataConfig, LabelsConfig, ModelConfig, Recipe
from steadyrank.data.selecting import cap, choose, examples_of
from steadyrank.errors import ConfigError, RunError
from steadyrank.files import cache_dir
from steadyrank.judging import load_judge, with_grades
from steadyrank.records import RankingExample, ScoredList
from steadyrank.scoring import load_scorer
from steadyrank.training.labels import Labels, grade_labels, read_labels, scorer_labels
from steadyrank.training.result import TrainResult
from steadyrank.training.run import train
from steadyrank.training.settings import TrainSettings
from steadyrank.training.teacher_cache import TeacherCache

Say = Callable[[str], None]
_BOUND = re.compile(r"\s*(>=|<=|>|<)\s*([-+0-9.eE]+)\s*")
_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def run_recipe(recipe: Recipe, *, restart: bool = False, say: Say = print) -> TrainResult:
    """Train as the recipe says. A run directory that holds an unfinished run of the same recipe is resumed."""
    settings = settings_of(recipe)
    objective = objectives.build(recipe.objective, **recipe.objective_settings)
    bounds = {measure: _bound(measure, text) for measure, text in recipe.expect.items()}
    teacher = _teacher(recipe, objective)
    lists, dev = training_lists(recipe.data, seed=recipe.seed), dev_lists(recipe.data, seed=recipe.seed)
    about: dict[str, Any] = {"recipe": recipe.model_dump(mode="json", exclude_none=True)}
    if recipe.judge is not None:
        judge = load_judge(recipe.judge)
        lists, counts = with_grades(lists, judge)
        about["judged"] = {**counts, "judge": judge.about()}
        say(
            f"judge {judge.name}: {counts['judged_candidates']} candidates graded, {counts['missing_grades']} without a grade "
            f"({counts['missing_share']:.1%}), {counts['lists_without_two_grades']} lists left out"
        )
    student = load(recipe.student, allow_untrained=True)
    candidates = sum(len(item.candidates) for item in lists)
    say(f"{recipe.preset or recipe.objective}: {len(lists)} lists, {candidates} candidates; {len(dev)} dev lists")
    teacher_scores = None
    if teacher is not None:
        teacher_scores = _scored(teacher, lists, say)
        about["teacher"] = teacher.name
    labels = labels_of(recipe, lists, student=student, restart=restart, say=say) if objective.target == "labels" else None
    result = train(
        settings,
        student=student,
        objective=objective,
        train=lists,
        dev=dev or None,
        teacher_scores=teacher_scores,
        labels=labels,
        output=Path(recipe.output),
        resume=not restart,
        say=say,
        describe=about,
    )
    _check(result, bounds)
    return result


def settings_of(recipe: Recipe) -> TrainSettings:
    """The training settings of a recipe; its `views` block is that of `training.views`."""
    views = {"views": {**(recipe.training.get("views") or {}), **recipe.views}} if recipe.views else {}
    return TrainSettings.from_mapping({"seed": recipe.seed, **recipe.training, **views})


def labels_of(recipe: Recipe, lists: Sequence[RankingExample], *, student: Any, restart: bool = False, say: Say = print) -> Labels:
    """The labels that a recipe asks for. Those of a run that is resumed are read back where they come from the same model and settings."""
    block = recipe.labels
    if block is None:
        raise ConfigError(f"objective {recipe.objective!r} learns from labels in [0, 1]; set labels.kind in the recipe")
    if block.kind == "grades":
        return grade_labels(lists, max_grade=block.max_grade)
    if block.kind == "file":
        if block.path is None:
            raise ConfigError("labels.kind is 'file' and labels.path is missing; give a labels.jsonl")
        return read_labels(block.path)
    if block.kind == "teacher" and recipe.teacher is None:
        raise ConfigError("labels.kind is 'teacher'; set teacher.model in the recipe")
    scorer = student if block.kind == "self_distillation" else load(recipe.teacher)  # type: ignore[arg-type]
    kept = _kept_labels(Path(recipe.output) / "labels.jsonl", block, lists, scorer, seed=recipe.seed) if not restart else None
    if kept is not None:
        return kept
    scores = None
    if block.passes == 1 and not getattr(scorer, "reads_lists", False):
        scores = [[row] for row in _scored(scorer, lists, say)]
    labels = scorer_labels(
        scorer, lists, kind=block.kind, passes=block.passes, mapping=block.mapping, seed=recipe.seed, scores=scores
    )  # fmt: skip
    say(f"labels of {scorer.name}: {len(lists)} lists, {block.passes} passes, {block.mapping}")
    return labels


def _kept_labels(path: Path, block: LabelsConfig, lists: Sequence[RankingExample], scorer: Any, *, seed: int) -> Labels | None:
    if not path.exists():
        return None
    found = read_labels(path)
    wanted = {"fingerprint": scorer.fingerprint, "mapping": block.mapping, "num_passes": block.passes, "seed": seed}
    same = found.kind == block.kind and all(found.provenance.get(name) == value for name, value in wanted.items())
    return found if same and found.covers(lists) else None


def _scored(teacher: Any, lists: Sequence[RankingExample], say: Say) -> list[ScoredList]:
    """A teacher's scores with their scale, read from the cache where they are known."""
    cache = TeacherCache(cache_dir() / "teacher-scores.sqlite")
    rows = cache.scores(teacher, lists)
    say(f"teacher {teacher.name}: {cache.misses} candidates scored, {cache.hits} read from the cache")
    return [ScoredList(example.id, teacher.name, tuple(row), teacher.scale) for example, row in zip(lists, rows, strict=True)]


def training_lists(data: DataConfig, *, seed: int) -> list[RankingExample]:
    chosen = choose(examples_of(data.train, sources=data.sources), data.limit, seed=seed)
    return [cap(example, data.max_candidates, seed=seed) for example in chosen]


def dev_lists(data: DataConfig, *, seed: int) -> list[RankingExample]:
    if data.dev is None:
        return []
    return choose(examples_of(data.dev, sources=data.sources), data.dev_limit, seed=seed)


def load(model: ModelConfig, **options: Any) -> Any:
    return load_scorer(model.model, **{**options, **model.options})


def _teacher(recipe: Recipe, objective: Any) -> Any:
    if objective.target != "teacher" and objective.anchor != "teacher":
        return None
    if recipe.teacher is None:
        raise ConfigError(f"objective {recipe.objective!r} learns from a teacher; set teacher.model in the recipe")
    return load(recipe.teacher)


def _bound(measure: str, text: str) -> tuple[Any, float]:
    match = _BOUND.fullmatch(text)
    if match is None:
        raise ConfigError(f"expect[{measure!r}] is {text!r}; write a bound such as '>= 0.6'")
    return _COMPARE[match[1]], float(match[2])


def _check(result: TrainResult, bounds: dict[str, tuple[Any, float]]) -> None:
    missed = [
        f"{measure} is {_value(result, measure):.4f}"
        for measure, (holds, value) in bounds.items()
        if not holds(_value(result, measure), value)
    ]
    if missed:
        raise RunError(f"the run did not reach what its recipe expects: {'; '.join(missed)}")


def _value(result: TrainResult, measure: str) -> float:
    if measure not in result.dev_final:
        raise ConfigError(f"expect names {measure!r}, which was not measured on dev; measured: {', '.join(result.dev_final) or 'nothing'}")
    return result.dev_final[measure]
