"""What the second act trains: the warm start, the model from which every arm starts, the arms, and the lambda of OC-SFT.

A finished run is not done again; `run_recipe` resumes one that was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyrank.config import merge, preset_recipe
from steadyrank.experiments.recipes import run_recipe
from steadyrank.experiments.steadiness_sizes import STEADY, Arm, Sizes
from steadyrank.files import read_jsonl, write_json
from steadyrank.records import RankingExample
from steadyrank.scoring import load_scorer
from steadyrank.training.select_lambda import Rules, select_lambda

Say = Callable[[str], None]
LISTS_PER_STEP = 16
EVALUATIONS = 5  # on dev lists, in one run
WARM_LENGTH = 160  # tokens of a pair
CALIBRATED = 64  # training lists from which the start's grades are spread
RAW = {"grade_scale": 1.0, "grade_cuts": (0.0, 0.0, 0.0)}  # grade logits whose steps are the cross-encoder's logit


def warm(output: Path, sizes: Sizes, teacher: str | None, seed: int, say: Say) -> str:
    """A model that learnt to rank, one candidate at a time; its folder."""
    run = output / "runs" / "warm"
    if (run / "result.json").exists():
        return str(run / "final")
    say("warm start: the model learns to rank, one candidate at a time")
    fields: dict[str, Any] = {
        "output": str(run), "seed": seed,
        "data": {
            "train": sizes.data.format("train"), "dev": sizes.data.format("valid"), "dev_limit": sizes.watched_lists,
            "limit": sizes.warm_lists, "max_candidates": sizes.candidates,
        },
        "training": {"learning_rate": sizes.warm_rate, "lists_per_step": LISTS_PER_STEP, "eval_every": 10**6, "lora": sizes.lora},
    }  # fmt: skip
    if teacher is not None:
        fields["teacher"] = {"model": teacher, "options": {"max_length": WARM_LENGTH}}
    if sizes.family == "joint_encoder":
        kept = {"layers": list(sizes.layers) if sizes.layers is not None else None}
        fields["student"] = {"model": sizes.model, "options": {"max_length": WARM_LENGTH, **kept}}
        run_recipe(preset_recipe("a1" if teacher is not None else "a7", fields), say=say)
    else:
        options = {"kind": sizes.family, "width": sizes.candidates, "max_length": sizes.max_length, "layers": None}
        fields |= {"student": {"model": sizes.model, "options": options}, "views": {"windows": "contiguous:1", "dev_presentations": 2}}
        run_recipe(_recipe("single_order", {**fields, "labels": _labels(teacher)}), say=say)
    return str(run / "final")


def start(output: Path, sizes: Sizes, lists: Sequence[RankingExample], warm: str) -> Path:
    """The folder of the model from which every arm starts: the warm one, reading several candidates at once."""
    if sizes.family != "joint_encoder":
        return Path(warm)
    folder = output / "start"
    if not (folder / "config.json").exists():
        options = {"width": sizes.candidates, "max_length": sizes.max_length, "name": "joint"}
        _joint(warm, **options, **_grades_of(_joint(warm, **options, **RAW), lists[:CALIBRATED])).save(folder)
    return folder


def _joint(model: str, **options: Any) -> Any:
    return load_scorer(model, kind="joint_encoder", **options)


def _grades_of(raw: Any, lists: Sequence[RankingExample]) -> dict[str, Any]:
    """How logits become grades at the start: spread over the grades by their mean and SD on training lists. A ranking loss leaves zero
    and scale free, companions move them, and a grade head that starts saturated learns nothing."""
    import torch

    prompts = raw.encode_prompts([prompt for example in lists for prompt in raw.prompts_of(example)])
    with torch.inference_mode():
        rows = [raw.grade_logits(raw.model, raw.to_device(raw.collate(prompts[at : at + 8]))) for at in range(0, len(prompts), 8)]
    logits_N = torch.cat([logits_N4[:, 1] - logits_N4[:, 0] for logits_N4 in rows])
    mean, spread = float(logits_N.mean()), max(float(logits_N.std()), 1e-3)
    return {"grade_scale": 2 / spread, "grade_cuts": [mean - 0.7 * spread, mean, mean + 0.7 * spread]}


def with_lambda(output: Path, sizes: Sizes, start: Path, teacher: str | None, seed: int, say: Say) -> Sizes:
    """The sizes with one lambda: the only one, or the one chosen on dev lists from a run of each (the first, where no choice is made)."""
    if len(sizes.consistency) == 1:
        return sizes
    one = [(weight, replace(sizes, consistency=(weight,))) for weight in sizes.consistency]
    runs = {weight: train(output, size, STEADY, start, teacher, sizes.seeds[0], say).parent for weight, size in one}
    choice = select_lambda({weight: [row for _, row in read_jsonl(run / "dev.jsonl")] for weight, run in runs.items()}, Rules(seed=seed))
    write_json(output / "lambda.json", choice.to_json())
    for line in choice.lines():
        say(line)
    return dict(one)[sizes.consistency[0] if choice.weight is None else choice.weight]


def needs_teacher(arm: Arm) -> bool:
    return arm.preset in ("a3", "a3_steady")


def train(output: Path, sizes: Sizes, arm: Arm, start: Path, teacher: str | None, seed: int, say: Say) -> Path:
    """The folder of the model that an arm serves."""
    if arm.preset is None:
        return start if arm.of is None else output / "runs" / run_name(arm.of, seed) / "final"
    weighed = arm.preset in ("oc_sft", "marker_consistency")
    weight = sizes.consistency[0]
    run = output / "runs" / run_name(f"{arm.name}-lambda{weight:g}" if weighed else arm.name, seed)
    if (run / "result.json").exists():
        return run / "final"
    say(f"{arm.label}, seed {seed}")
    steps = -(-sizes.lists // LISTS_PER_STEP)
    fields: dict[str, Any] = {
        "output": str(run), "seed": seed, "views": {"dev_presentations": 2},
        "student": {"model": str(start), "options": {"layers": None, "width": None}},
        "data": {
            "train": str(output / "lists" / "train.jsonl"), "dev": str(output / "lists" / "dev.jsonl"), "dev_limit": sizes.watched_lists,
            "max_candidates": None,
        },
        "training": {
            "learning_rate": sizes.rate, "lists_per_step": LISTS_PER_STEP, "eval_every": -(-steps // EVALUATIONS), "lora": sizes.lora,
        },
    }  # fmt: skip
    fields = merge(fields, {"student": {"options": {"kind": sizes.family, "max_length": sizes.max_length}}})
    if teacher is not None:
        fields["teacher"] = {"model": teacher, "options": {"max_length": WARM_LENGTH}}
    if not needs_teacher(arm) and arm.preset != "order_averaged":
        fields["labels"] = _labels(teacher)
    if weighed:
        fields["objective_settings"] = {"weight": weight, "form": "pairwise"}
    run_recipe(_recipe(arm.preset, merge(fields, dict(arm.fields))), say=say)
    return run / "final"


def _labels(teacher: str | None) -> dict[str, Any]:
    return {"kind": "grades"} if teacher is None else {"kind": "teacher", "mapping": "platt"}


def _recipe(preset: str, fields: Mapping[str, Any]) -> Any:
    """The preset's recipe. Options that it sets for a model it makes anew do not fit one that is made already; None takes them away."""
    recipe = preset_recipe(preset, fields)
    options = {name: value for name, value in recipe.student.options.items() if value is not None}
    return recipe.model_copy(update={"student": recipe.student.model_copy(update={"options": options})})


def run_name(arm: str, seed: int) -> str:
    return f"{arm}-seed{seed}"
