"""The second act: scorers that read several candidates at once, trained in one order or for all orders, and what that does to decisions.

lists in BM25 order -> a model warmed up on their labels, one candidate at a time -> the same weights reading several candidates at once ->
every arm trained from that one start on the same labels -> audited under the same presentations -> a table, and two decision cards.

Everything is a file and every run resumes: `lists/`, `runs/`, `start/`, `audits/<split>/<arm>/`, `table.md`, `result.json`, `card-*.html`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.audit import run_audit
from steadyrank.config import merge, preset_recipe
from steadyrank.data.bm25 import in_bm25_order
from steadyrank.data.jsonl import load_examples, save_examples
from steadyrank.data.selecting import cap, choose, examples_of
from steadyrank.experiments.recipes import run_recipe
from steadyrank.experiments.steadiness_sizes import QUICK, Arm, Sizes
from steadyrank.experiments.steadiness_table import Row, write_tables
from steadyrank.files import file_digest, read_json, write_json
from steadyrank.records import RankingExample
from steadyrank.reports.card import write_card
from steadyrank.scoring import load_scorer

Say = Callable[[str], None]
LISTS_PER_STEP = 16
WARM_LENGTH = 160  # tokens of a pair
CALIBRATED = 64  # training lists from which the start's grades are spread
RAW = {"grade_scale": 1.0, "grade_cuts": (0.0, 0.0, 0.0)}  # grade logits whose steps are the cross-encoder's logit
LABELS = {"test": "in-domain", "shifted": "shifted"}


@dataclass(frozen=True)
class SteadinessResult:
    """Where things are, the rows of the table, and how long it took."""

    folder: Path
    rows: tuple[Row, ...]
    seconds: float
    cards: tuple[Path, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder), "seconds": round(self.seconds, 1), "cards": [str(card) for card in self.cards],
            "rows": [row.to_json() for row in self.rows],
        }  # fmt: skip

    def lines(self) -> list[str]:
        where = ", ".join(str(card) for card in self.cards)
        return [
            *(self.folder / "table.md").read_text(encoding="utf-8").splitlines(),
            "",
            f"{self.seconds / 60:.1f} minutes; cards: {where}",
        ]


def run_steadiness(
    output: Path, sizes: Sizes = QUICK, *, teacher: str | None = None, warm: str | None = None, seed: int = 0, say: Say = print
) -> SteadinessResult:
    """Do the whole second act into `output`; what is there already is not done again.

    teacher: a cross-encoder whose scores are the labels (and which the arms that need one learn from); without one the labels are the
             grades of the lists, and such arms are left out.
    warm:    a cross-encoder that ranks already, from which every arm starts; without one it is trained here.
    """
    started = time.monotonic()
    lists = _lists(output, sizes, seed, say)
    start = _start(output, sizes, lists["train"], warm or _warm(output, sizes, teacher, seed, say))
    arms = [arm for arm in sizes.arms if teacher is not None or not _needs_teacher(arm)]
    tables: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for arm_seed in sizes.seeds:
        for arm in arms:
            if arm.serve and arm_seed != sizes.seeds[0]:  # an average of ten costs ten times as much
                continue
            folder = _train(output, sizes, arm, start, teacher, arm_seed, say)
            for split in sizes.splits:
                found = _audit(output, sizes, arm, folder, split, lists, seed, arm_seed, say)
                tables.setdefault((split, arm.name), []).append(found)
    rows = write_tables(output, tables, arms=[(arm.name, arm.label) for arm in arms], base="oc_sft", splits=LABELS)
    cards = _cards(output, sizes, arms)
    result = SteadinessResult(output, tuple(rows), time.monotonic() - started, tuple(cards))
    write_json(output / "result.json", result.to_json())
    return result


def _lists(output: Path, sizes: Sizes, seed: int, say: Say) -> dict[str, list[RankingExample]]:
    """The lists of every part, of one size and in BM25 order, as files that any other command reads."""
    wanted = {"train": ("train", sizes.lists, False), "dev": ("valid", sizes.dev_lists, True)}
    wanted |= {split: (split, sizes.eval_lists, True) for split in sizes.splits}
    out = {}
    for name, (split, count, balanced) in wanted.items():
        path = output / "lists" / f"{name}.jsonl"
        if not path.exists():
            say(f"{name}: {count} lists of {sizes.data.format(split)}, {sizes.candidates} candidates each, in BM25 order")
            chosen = choose(examples_of(sizes.data.format(split)), count, seed=seed, balanced=balanced)
            save_examples(path, [in_bm25_order(cap(example, sizes.candidates, seed=seed)) for example in chosen])
        out[name] = load_examples(path)
    return out


def _warm(output: Path, sizes: Sizes, teacher: str | None, seed: int, say: Say) -> str:
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


def _start(output: Path, sizes: Sizes, lists: Sequence[RankingExample], warm: str) -> Path:
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


def _needs_teacher(arm: Arm) -> bool:
    return arm.preset in ("a3", "a3_steady")


def _train(output: Path, sizes: Sizes, arm: Arm, start: Path, teacher: str | None, seed: int, say: Say) -> Path:
    """The folder of the model that an arm serves."""
    if arm.preset is None:
        return start if arm.of is None else output / "runs" / _run_name(arm.of, seed) / "final"
    run = output / "runs" / _run_name(arm.name, seed)
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
            "learning_rate": sizes.rate, "lists_per_step": LISTS_PER_STEP, "eval_every": -(-steps // 2), "lora": sizes.lora,
        },
    }  # fmt: skip
    fields = merge(fields, {"student": {"options": {"kind": sizes.family, "max_length": sizes.max_length}}})
    if teacher is not None:
        fields["teacher"] = {"model": teacher, "options": {"max_length": WARM_LENGTH}}
    if not _needs_teacher(arm) and arm.preset != "order_averaged":
        fields["labels"] = _labels(teacher)
    if arm.preset in ("oc_sft", "marker_consistency"):
        fields["objective_settings"] = {"weight": sizes.consistency, "form": "pairwise"}
    run_recipe(_recipe(arm.preset, merge(fields, dict(arm.fields))), say=say)
    return run / "final"


def _labels(teacher: str | None) -> dict[str, Any]:
    return {"kind": "grades"} if teacher is None else {"kind": "teacher", "mapping": "platt"}


def _recipe(preset: str, fields: Mapping[str, Any]) -> Any:
    """The preset's recipe. Options that it sets for a model it makes anew do not fit one that is made already; None takes them away."""
    recipe = preset_recipe(preset, fields)
    options = {name: value for name, value in recipe.student.options.items() if value is not None}
    return recipe.model_copy(update={"student": recipe.student.model_copy(update={"options": options})})


def _run_name(arm: str, seed: int) -> str:
    return f"{arm}-seed{seed}"


def _audit(
    output: Path, sizes: Sizes, arm: Arm, model: Path, split: str, lists: Mapping[str, Sequence[RankingExample]],
    seed: int, arm_seed: int, say: Say,
) -> dict[str, Any]:  # fmt: skip
    """What the audit found on each list; threshold chosen on the dev lists. An audit of the same model is read back."""
    trained = arm.preset is not None or arm.of is not None
    folder = output / "audits" / split / (_run_name(arm.name, arm_seed) if trained else arm.name)
    identity = {"model": file_digest(model / "model.safetensors"), "serve": dict(arm.serve), "presentations": sizes.presentations}
    if (folder / "audit.json").exists() and read_json(folder / "identity.json") == identity:
        return read_json(folder / "audit.json")["per_list"]
    say(f"audit, {LABELS[split]}: {arm.label}, seed {arm_seed}")
    scorer = load_scorer({**arm.serve, "model": str(model)} if arm.serve else str(model))
    found = run_audit(
        scorer, lists[split], dev=lists["dev"], presentations=sizes.presentations, seed=seed, name=arm.label,
        scores_path=folder / "scores.jsonl", probes=() if arm.serve else ("pool",),
    )  # fmt: skip
    found.write(folder / "audit.json")
    write_json(folder / "identity.json", identity)
    write_card([found.to_json()], folder / "card.html", png=folder / "card.png")
    assert found.per_list is not None
    return found.per_list


def _cards(output: Path, sizes: Sizes, arms: Sequence[Arm]) -> list[Path]:
    """Trained in one order against OC-SFT, side by side."""
    names = {arm.name for arm in arms}
    if not {"single_order", "oc_sft"} <= names:
        return []
    seed = sizes.seeds[0]
    out = []
    for split in sizes.splits:
        sides = [output / "audits" / split / _run_name(name, seed) / "audit.json" for name in ("single_order", "oc_sft")]
        out += write_card(sides, output / f"card-{split}.html", png=output / f"card-{split}.png")
    return out
