"""One of two gloo processes: the gradient of a step of seven lists, three ways, and a short run; process zero writes them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import training_helpers as tiny
from torch.nn.parallel import DistributedDataParallel

from steadyrank import objectives
from steadyrank.training.collate import Collator
from steadyrank.training.prepare import prepare
from steadyrank.training.run import train
from steadyrank.training.sampling import StepSampler
from steadyrank.training.settings import TrainSettings
from steadyrank.training.trainer import RankTrainer, arguments


def short_run(output: Path, objective: Any) -> None:
    """Three steps of three lists; the eighth list is alone on one process in the last of them."""
    examples = tiny.lists(8)
    train(
        TrainSettings(precision="fp32", lists_per_step=3, max_steps=3, tensorboard=False), student=tiny.student(), objective=objective,
        train=examples, dev=examples[:3], teacher_scores=tiny.teacher_scores(examples), output=output, say=lambda text: None,
    )  # fmt: skip


def main(folder: Path) -> None:
    rank = int(os.environ["RANK"])
    examples = tiny.lists(8)
    objective = objectives.build("a3")
    for name, options in {"whole": {}, "cut": {"lists_per_device": 1}, "chunked": {"score_gradient": "chunked"}}.items():
        student = tiny.student()
        settings = TrainSettings(precision="fp32", lists_per_step=7, shuffle=False, **options)
        data = prepare(examples, objective, teacher_scores=tiny.teacher_scores(examples))
        collator = Collator(student, objective, data, settings=settings, tokens_per_forward=60 if name == "chunked" else 10_000)
        args = arguments(settings, folder / "unused", steps=1, save_every=1)
        sampler = StepSampler(8, lists_per_step=7, steps=1, seed=0, shuffle=False, rank=args.process_index, world=args.world_size)
        trainer = RankTrainer(
            scorer=student, objective=objective, settings=settings, collator=collator, sampler=sampler, model=student.model, args=args
        )
        assert args.world_size == 2
        model = trainer.accelerator.prepare(student.model)
        assert isinstance(model, DistributedDataParallel)
        batch = collator(next(iter(sampler)))
        trainer.training_step(model, batch, trainer._get_num_items_in_batch([batch], torch.device("cpu")))
        if rank == 0:
            torch.save({key: p.grad for key, p in student.model.named_parameters() if p.grad is not None}, folder / f"{name}.pt")
    for name, used in {"run": objective, "snapshot": objectives.build("a3", behaviour="snapshot", snapshot_steps=2)}.items():
        short_run(folder / name, used)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
