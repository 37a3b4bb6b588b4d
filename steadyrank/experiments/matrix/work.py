"""What a job does. Everything goes into files and goes on where it was killed: `run_recipe` for training, `score_splits` for scores.

A mistake of the user or a run that fails leaves a record with its one sentence. Anything else is a bug of ours and leaves its traceback in
the job's log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import load_examples
from steadyrank.errors import SteadyrankError
from steadyrank.experiments.matrix import state
from steadyrank.experiments.matrix.plan import Job, Plan, System
from steadyrank.experiments.matrix.state import Record
from steadyrank.experiments.recipes import load, run_recipe, training_lists
from steadyrank.experiments.score_files import score_splits
from steadyrank.files import cache_dir
from steadyrank.records import RankingExample
from steadyrank.scoring import load_scorer
from steadyrank.training.identity import seed_head
from steadyrank.training.teacher_cache import TeacherCache

Say = Callable[[str], None]


def perform(plan: Plan, job: Job, say: Say, *, restart: bool = False) -> Record:
    """Do the job and leave its record. `restart` throws away what an earlier start left of a training run."""
    started = time.monotonic()
    try:
        found = _WORK[job.kind](plan, job, say, restart)
    except SteadyrankError as error:
        say(str(error))
        return state.write_failure(plan.folder, job.name, str(error), seconds=time.monotonic() - started)
    record = Record(**{"job": job.name, "state": "done", "seconds": round(time.monotonic() - started, 1), **found})
    state.write_record(plan.folder, record)
    return record


def _stage1(plan: Plan, job: Job, say: Say, restart: bool) -> dict[str, Any]:
    assert plan.stage1 is not None
    run_recipe(plan.stage1, restart=restart, say=say)
    return {"trained": state.recipe_identity(plan.stage1)}


def _teacher(plan: Plan, job: Job, say: Say, restart: bool) -> dict[str, Any]:
    """Every list that a cell to be trained reads is scored into the cache, so that the cells find all of it there."""
    cells = [name for name in plan.taught_by(job.name) if name in plan.selected and not state.is_trained(plan, name)]
    wanted: dict[tuple[str, int], list[RankingExample]] = {}
    for name in cells:
        recipe = plan.recipes[name]
        key = (recipe.data.model_dump_json(), recipe.seed)
        wanted[key] = wanted.get(key) or training_lists(recipe.data, seed=recipe.seed)
    cache = TeacherCache(cache_dir() / "teacher-scores.sqlite")
    teacher = load(plan.teachers[job.name])
    for lists in wanted.values():
        cache.scores(teacher, lists, report=lambda done, total: say(f"{teacher.name}: {done} of {total} lists"))
    say(f"{teacher.name}: {cache.misses} candidates scored, {cache.hits} read from the cache")
    return {}


def _cell(plan: Plan, job: Job, say: Say, restart: bool) -> dict[str, Any]:
    recipe = plan.recipes[job.name]
    trained = state.recipe_identity(recipe)
    if restart or not state.is_trained(plan, job.name):
        result = run_recipe(recipe, restart=restart, say=say)
        state.write_record(plan.folder, Record(job.name, "trained", trained=trained))
        for line in result.lines():
            say(line)
    folder = state.model_folder(plan, job.name)
    scores = _scores(plan, job.name, lambda: load_scorer(str(folder)), state.model_digest(str(folder)), say)
    return {"trained": trained, "scored": state.score_identity(plan, job), "scores": scores}


def _baseline(plan: Plan, job: Job, say: Say, restart: bool) -> dict[str, Any]:
    system = plan.system(job.name.removeprefix("baseline-"))
    identity = str(state.model_identity(system.model) or "")  # a name alone may come to mean another model
    scores = _scores(plan, system.name, lambda: _open(system), identity, say)
    return {"scored": state.score_identity(plan, job), "scores": scores}


def _open(system: System) -> Any:
    if system.model is None:
        return load_scorer(system.name)
    if system.role != "start":
        return load(system.model)
    scorer = load(system.model, allow_untrained=True)
    seed_head(scorer, 0)  # a head that is new has the numbers of seed 0, in every process
    return scorer


def _scores(plan: Plan, name: str, open_scorer: Callable[[], Any], identity: str, say: Say) -> dict[str, str]:
    lists = {split: load_examples(path) for split, path in state.list_files(plan).items()}
    paths = score_splits(plan.folder, name, lists, open_scorer, identity=identity)
    say(f"{name}: scores of {', '.join(f'{len(chosen)} lists of {split}' for split, chosen in lists.items())}")
    return {split: str(Path(path).relative_to(plan.folder)) for split, path in paths.items()}


_WORK = {"stage1": _stage1, "teacher": _teacher, "cell": _cell, "baseline": _baseline}
