"""Adds to `transformers.Trainer`: how a step's lists are scored, what their loss is divided by, and what stops a run. Nothing else.

A step is one batch of the data loader, cut into parts by the collator. Its loss is the sum over the lists that count, of all parts and
all processes,
divided once by their number; so a step depends on its lists and not on how they are cut (style H4).

Departures from the Trainer: its data loader is not sharded by accelerate (the sampler knows its rank); a checkpoint holds the
trainable parameters only
(a run always starts from its student); dropout is seeded by (seed, step, process); a step without any gradient changes nothing, weight
decay included.
"""

from __future__ import annotations

import contextlib
import logging
import math
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainingArguments
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

from steadyrank import lists, seeds
from steadyrank.errors import NonFiniteScoreError, RunError
from steadyrank.training.collate import Collator, DrawDataset, Part
from steadyrank.training.record import StepRecord, broken_scores
from steadyrank.training.sampling import StepSampler
from steadyrank.training.score_gradient import chunked_backward
from steadyrank.training.settings import TrainSettings
from steadyrank.training.snapshot import Snapshot

WEIGHTS = "trainable.safetensors"


class RankTrainer(Trainer):
    """Trains `scorer.model` on ranked lists with an objective of scores."""

    def __init__(self, *, scorer: Any, objective: Any, settings: TrainSettings, collator: Collator, sampler: StepSampler, **kwargs: Any):
        model, use_cache = kwargs["model"], getattr(kwargs["model"].config, "use_cache", None)
        with quiet():
            super().__init__(train_dataset=DrawDataset(sampler.num_lists), data_collator=collator, **kwargs)
        if use_cache is not None:
            model.config.use_cache = use_cache  # the Trainer switches it off, and the saved model would keep that
        self.remove_callback(ProgressCallback)
        self.remove_callback(PrinterCallback)
        self.scorer: Any = scorer
        self.objective: Any = objective
        self.settings, self.sampler, self.collator = settings, sampler, collator
        self.dataset = DrawDataset(sampler.num_lists)
        self.loss_is_scaled_for_ga = True
        self.record = StepRecord(num_processes=self.args.world_size)
        self.snapshot = Snapshot(sampler, collator, every=objective.snapshot_steps) if objective.snapshot_steps else None

    def get_train_dataloader(self) -> DataLoader:
        # Not prepared by accelerate, whose sharding repeats lists to fill a step; batches are moved in `training_step`.
        return DataLoader(
            self.dataset,
            batch_sampler=self.sampler,
            collate_fn=self.data_collator,
            num_workers=self.settings.num_workers,
            generator=seeds.torch_stream(self.settings.seed, "loader"),
        )

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Any]], device: torch.device) -> Tensor:
        live = torch.stack([batch["live"] for batch in batch_samples]).sum().to(device) if batch_samples else torch.zeros((), device=device)
        return self.accelerator.gather(live).sum() if self.args.world_size > 1 else live

    def training_step(self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        if self.snapshot is not None:
            own = self._model()  # not the wrapped one: processes hold different lists, and its forward would wait for the others
            self.snapshot.refresh(self.state.global_step, lambda chunk: self.scores_of(own, chunk), own)
        model.train()
        torch.manual_seed(seeds.digest(self.settings.seed, "dropout", self.state.global_step, self.args.process_index) >> 1)
        self.record.start(inputs["ids"], tokens=inputs["tokens"])
        parts = [self._moved(part) for part in inputs["parts"]]
        losses = [self._backward_part(model, part, num_items_in_batch, is_last=place == len(parts) - 1) for place, part in enumerate(parts)]
        return torch.stack(losses).sum()

    def _moved(self, part: Part) -> Part:
        """The part where the model is; the model's own inputs follow chunk by chunk, as the scorer moves them."""
        return {name: value.to(self.args.device, non_blocking=True) if torch.is_tensor(value) else value for name, value in part.items()}

    def _backward_part(self, model: nn.Module, part: Part, num_items: Any, *, is_last: bool) -> Tensor:
        def scope(is_last_forward: bool) -> contextlib.AbstractContextManager[Any]:
            # Processes add up their gradients once a step; the forward arms it, so it stands inside too.
            return contextlib.nullcontext() if is_last and is_last_forward else self.accelerator.no_sync(model)

        if len(part["chunks"]) > 1:
            return chunked_backward(
                lambda chunk: self.scores_of(model, chunk),
                part["chunks"],
                loss_of=lambda scores_N: self.loss_of(scores_N, part, num_items),
                backward=self.accelerator.backward,
                scope=scope,
            )
        with scope(True):
            loss = self.compute_loss(model, part, num_items_in_batch=num_items)
            self.accelerator.backward(loss)
        return loss.detach()

    def compute_loss(self, model: nn.Module, inputs: Part, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
        scores_N = torch.cat([self.scores_of(model, chunk) for chunk in inputs["chunks"]])
        loss = self.loss_of(scores_N, inputs, num_items_in_batch)
        return (loss, scores_N) if return_outputs else loss

    def scores_of(self, model: nn.Module, chunk: dict[str, Tensor]) -> Tensor:
        with torch.autocast(self.args.device.type, dtype=torch.bfloat16, enabled=self.settings.precision == "bf16"):
            return self.scorer.forward(model, self.scorer.to_device(chunk)).float()

    def loss_of(self, scores_N: Tensor, part: Part, num_items: Any) -> Tensor:
        """This part's share of the step's loss. Data parallel training averages gradients, hence the factor."""
        scores = self.laid_out(scores_N, part)
        try:
            step = self.step_of(scores, part)
        except NonFiniteScoreError as error:
            raise RunError(broken_scores(self.state.global_step + 1, scores.flatten(1), part["ids"])) from error
        self.record.add(step)
        count = part["live_B"].sum() if num_items is None else num_items
        loss = step.total * self.args.world_size / count.clamp(min=1)
        return loss if loss.requires_grad else loss + 0.0 * scores_N.sum()

    def laid_out(self, scores_N: Tensor, part: Part) -> Tensor:
        """The flat scores as the objective reads them, lists first."""
        return lists.pad(scores_N, part["sizes"])[0]

    def step_of(self, scores: Tensor, part: Part) -> Any:
        """The objective's `LossSum` of one part."""
        more = {} if self.snapshot is None else {"behaviour_BK": self.snapshot.of(part["indices"], like=scores)}
        return self.objective(scores, part["targets_BK"], part["mask_BK"], anchor_BK=part["anchor_BK"], noise_BGK=part["noise_BGK"], **more)

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        norm = float(super()._get_grad_norm(model, grad_norm=grad_norm))
        self.record.finish(grad_norm=norm, learning_rate=self._get_learning_rate())
        if not math.isfinite(norm):
            raise RunError(self.record.why_not_finite(self.state.global_step + 1))
        if norm == 0.0:
            for parameter in model.parameters():
                parameter.grad = None
        return norm

    def floating_point_ops(self, inputs: Any) -> int:
        return 0  # estimated by the Trainer from padded inputs, which these are not

    def _model(self) -> nn.Module:
        assert self.model is not None
        return self.model

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Tensor] | None = None) -> None:
        if self.args.should_save:
            folder = Path(str(output_dir or self.args.output_dir))
            folder.mkdir(parents=True, exist_ok=True)
            safetensors.torch.save_file(trainable(self._model()), folder / WEIGHTS)
            if self.snapshot is not None:
                self.snapshot.save(folder)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        saved = safetensors.torch.load_file(Path(resume_from_checkpoint) / WEIGHTS)
        with torch.no_grad():
            for name, parameter in trainable(model or self._model()).items():
                parameter.copy_(saved[name])
        if self.snapshot is not None:
            self.snapshot.load(Path(resume_from_checkpoint))


def trainable(model: nn.Module) -> dict[str, Tensor]:
    """The trainable parameters by name, detached, sharing memory with the model."""
    return {name: parameter.detach() for name, parameter in model.named_parameters() if parameter.requires_grad}


def arguments(settings: TrainSettings, output: Path, *, steps: int, save_every: int) -> TrainingArguments:
    """`TrainingArguments` of these settings; logging and evaluation are ours, checkpoints are the Trainer's."""
    return TrainingArguments(
        output_dir=str(output),
        max_steps=steps,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        adam_beta1=settings.adam_betas[0],
        adam_beta2=settings.adam_betas[1],
        max_grad_norm=settings.max_grad_norm,
        lr_scheduler_type="linear",
        warmup_steps=int(steps * settings.warmup_ratio),
        optim="adamw_torch_fused",
        per_device_train_batch_size=1,
        seed=settings.seed,
        logging_strategy="no",
        logging_nan_inf_filter=False,
        eval_strategy="no",
        save_strategy="steps",
        save_steps=save_every,
        save_total_limit=1,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        log_level="error",
        use_cpu=not torch.cuda.is_available(),
    )


@contextlib.contextmanager
def quiet() -> Any:
    """The libraries' own messages below errors are held back: what a run has to say, it says itself."""
    loggers = [logging.getLogger(name) for name in ("transformers", "accelerate")]
    levels = [logger.level for logger in loggers]
    bars = is_progress_bar_enabled()
    try:
        disable_progress_bar()
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            enable_progress_bar()
