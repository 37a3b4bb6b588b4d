"""The second act: scorers that read several candidates at once, trained in one order or for all orders, and what that does to decisions.

lists in BM25 order -> a model warmed up on their labels, one candidate at a time -> the same weights reading several candidates at once ->
every arm trained from that one start on the same labels -> audited under the same presentations -> a table, and two decision cards.

With several values of lambda, the one for OC-SFT is chosen on dev lists (`select_lambda`) before any arm is audited.

Everything is a file and every run resumes: `lists/`, `runs/`, `start/`, `lambda.json`, `audits/<split>/<arm>/`, `table.md`, `result.json`,
`card-*.html`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.audit import differences, run_audit
from steadyrank.data.bm25 import in_bm25_order
from steadyrank.data.jsonl import load_examples, save_examples
from steadyrank.data.selecting import cap, choose, examples_of
from steadyrank.experiments import steadiness_runs as runs
from steadyrank.experiments.steadiness_sizes import QUICK, Arm, Sizes
from steadyrank.experiments.steadiness_table import Row, write_tables
from steadyrank.files import file_digest, read_json, write_json
from steadyrank.records import RankingExample
from steadyrank.reports.card import write_card
from steadyrank.scoring import load_scorer

Say = Callable[[str], None]
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
    start = runs.start(output, sizes, lists["train"], warm or runs.warm(output, sizes, teacher, seed, say))
    sizes = runs.with_lambda(output, sizes, start, teacher, seed, say)
    arms = [arm for arm in sizes.arms if teacher is not None or not runs.needs_teacher(arm)]
    tables: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for arm_seed in sizes.seeds:
        for arm in arms:
            if arm.serve and arm_seed != sizes.seeds[0]:  # an average of ten costs ten times as much
                continue
            folder = runs.train(output, sizes, arm, start, teacher, arm_seed, say)
            for split in sizes.splits:
                found = _audit(output, sizes, arm, folder, split, lists, seed, arm_seed, say)
                tables.setdefault((split, arm.name), []).append(found)
        rows = write_tables(output, tables, arms=[(arm.name, arm.label) for arm in arms], base="oc_sft", splits=LABELS)  # after each seed
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


def _audit(
    output: Path, sizes: Sizes, arm: Arm, model: Path, split: str, lists: Mapping[str, Sequence[RankingExample]],
    seed: int, arm_seed: int, say: Say,
) -> dict[str, Any]:  # fmt: skip
    """What the audit found on each list; threshold chosen on the dev lists. An audit of the same model is read back."""
    trained = arm.preset is not None or arm.of is not None
    folder = output / "audits" / split / (runs.run_name(arm.name, arm_seed) if trained else arm.name)
    presentations = min(sizes.presentations, arm.presentations or sizes.presentations)
    identity = {"model": file_digest(model / "model.safetensors"), "serve": dict(arm.serve), "presentations": presentations}
    if (folder / "audit.json").exists() and read_json(folder / "identity.json") == identity:
        return read_json(folder / "audit.json")["per_list"]
    say(f"audit, {LABELS[split]}: {arm.label}, seed {arm_seed}")
    scorer = load_scorer({**arm.serve, "model": str(model)} if arm.serve else str(model))
    found = run_audit(
        scorer, lists[split], dev=lists["dev"], presentations=presentations, seed=seed, name=arm.label,
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
        sides = [output / "audits" / split / runs.run_name(name, seed) / "audit.json" for name in ("single_order", "oc_sft")]
        told = differences(*(read_json(side)["per_list"] for side in sides))
        out += write_card(sides, output / f"card-{split}.html", png=output / f"card-{split}.png", differences=told)
    return out
