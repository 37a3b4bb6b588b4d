"""What makes two starts the same run: checkpoints to go on from, the numbers of a new head, fingerprints of what is learnt from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from steadyrank import files, seeds
from steadyrank.records import RankingExample
from steadyrank.training.prepare import Scores, utilities


def newest_checkpoint(folder: Path) -> tuple[Path | None, int]:
    """The newest whole checkpoint (its state is written last) and its step; half-written ones are passed over."""
    found = [(_step_of(path), path) for path in folder.glob("checkpoint-*")] if folder.exists() else []
    step, path = max(((step, path) for step, path in found if step), default=(0, None), key=lambda item: item[0])
    return path, step


def _step_of(checkpoint: Path) -> int:
    """The step a checkpoint stands at; 0 for one that a kill left unfinished."""
    try:
        return int(json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, KeyError):
        return 0


def seed_head(student: Any, seed: int) -> None:
    """A new head gets the numbers of this run's seed, whatever was drawn in the process before."""
    fresh = getattr(student, "_initial", None) if getattr(student, "untrained", False) else None
    if not fresh:
        return
    # a cross-encoder names its new weights from the model's root, a joint encoder from its grade head
    root = "" if set(fresh) <= set(student.model.state_dict()) else "grades."
    owners = {(root + name).rpartition(".")[0] for name in fresh}
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seeds.digest(seed, "head") >> 1)
        for name, module in student.model.named_modules():
            if name in owners and isinstance(module, torch.nn.Linear):
                drawn = torch.empty(module.weight.shape).normal_(std=getattr(student.model.config, "initializer_range", 0.02))
                module.weight.copy_(drawn)
    state = student.model.state_dict()
    student._initial = {name: state[root + name].clone() for name in fresh}


def fingerprint(examples: Sequence[RankingExample]) -> dict[str, Any]:
    rows = [[example.id, example.query, example.instruction, example.documents, example.relevance] for example in examples]
    return {"lists": len(rows), "fingerprint": files.fingerprint(rows)}


def printed(value: Any) -> Any:
    """What identifies a part of the data."""
    return value.get("fingerprint") if isinstance(value, dict) else value


def score_print(scores: Scores | None) -> str | None:
    if scores is None:
        return None
    return files.fingerprint([[round(score, 6) for score in utilities(row)] for row in scores])
