"""A tiny experiment on disk: lists with a planted rule, a random student and a random teacher."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import training_helpers as tiny
import yaml

from steadyrank import save_examples

SOURCES = ("near", "far", "other")
QUIET = lambda text: None
TRAINING = {"lists_per_step": 8, "max_steps": 2, "learning_rate": 1e-3, "precision": "fp32", "tensorboard": False, "eval_every": 1}


def make(folder: Path) -> Path:
    """Lists with sources and groups, and two models, in a folder."""
    for name, count, seed in (("train", 16, 0), ("dev", 4, 9), ("test", 9, 11), ("shifted", 9, 12)):
        rows = [
            replace(item, id=f"{name}-{item.id}", source=SOURCES[place % 3], instruction="Find w0.", group=f"{name}-g{place // 2}")
            for place, item in enumerate(tiny.lists(count, seed=seed))
        ]
        save_examples(folder / f"{name}.jsonl", rows)
    tiny.student(seed=1).save(folder / "student")
    tiny.student(seed=2).save(folder / "teacher")
    return folder


def fields(world: Path, **changes: Any) -> dict[str, Any]:
    """A matrix of two methods and one seed; `changes` replace whole fields."""
    options = {"layers": None, "max_length": 48}
    return {
        "name": "tiny",
        "title": "A tiny experiment",
        "base": {
            "student": {"model": str(world / "student"), "options": options},
            "teacher": {"model": str(world / "teacher"), "options": {"max_length": 48}},
            "data": {"train": str(world / "train.jsonl"), "dev": str(world / "dev.jsonl"), "max_candidates": 4},
            "training": TRAINING,
        },
        "methods": ["a3", "a1"],
        "evaluate": {
            "test": {"lists": str(world / "test.jsonl"), "label": "In-domain"},
            "shifted": {"lists": str(world / "shifted.jsonl"), "label": "Shifted"},
        },
        "baselines": ["bm25", "teacher", "start"],
        **changes,
    }


def write(path: Path, values: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    return path


def result_files(folder: Path) -> list[Path]:
    """Everything that holds numbers: two experiments that agree in these agree."""
    inside = [path for name in ("evaluations", "seeds", "comparisons", "profiles", "flips") for path in (folder / name).rglob("*.json")]
    return sorted([*inside, *(folder / "tables").glob("main*.csv"), *(folder / "tables").glob("paired*.csv")])
