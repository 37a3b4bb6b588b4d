"""`RankTrainer` for objectives that read views: scores_BPK instead of scores_BK, and the shadow model beside the student. Nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steadyrank.errors import ConfigError
from steadyrank.objectives.views import SCALES, Beside
from steadyrank.training.collate import Part
from steadyrank.training.ema import Shadow, ShadowCallback
from steadyrank.training.trainer import RankTrainer
from steadyrank.training.views import scatter


class ViewTrainer(RankTrainer):
    """Trains a scorer of whole lists on several views of each list."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        if self.scorer.scale not in SCALES:
            raise ConfigError(
                f"student {self.scorer.name!r} gives scores of scale {self.scorer.scale!r}; views are trained on {' or '.join(SCALES)}"
            )
        decay = self.objective.shadow_decay
        self.shadow = Shadow(self._model(), decay=decay) if decay is not None else None
        # the KL to the start is that of grade distributions where there are any
        self.reads_logits = bool(self.objective.reads_logits and hasattr(self.scorer, "grade_logits"))
        if self.shadow is not None:
            self.add_callback(ShadowCallback(self.shadow, self._model()))

    def scores_of(self, model: nn.Module, chunk: dict[str, Tensor]) -> Tensor:
        if not self.reads_logits:
            return super().scores_of(model, chunk)
        with torch.autocast(self.args.device.type, dtype=torch.bfloat16, enabled=self.settings.precision == "bf16"):
            return self.scorer.grade_logits(model, self.scorer.to_device(chunk)).float()

    def _moved(self, part: Part) -> Part:
        """With the shadow's scores in it: it reads before the student does, because it borrows the student's place."""
        part = super()._moved(part)
        if self.shadow is None:
            return part
        model = self._model()
        with self.shadow.in_place(model):
            values_N = torch.cat([self.scores_of(model, chunk) for chunk in part["shadow_chunks"]])
        return {**part, "shadow": scatter(self._averaged(values_N), part["shadow_index_N"], part["shadow_shape"])}

    def laid_out(self, scores_N: Tensor, part: Part) -> Tensor:
        return scatter(self._averaged(scores_N), part["index_N"], part["shape"])

    def _averaged(self, values_N: Tensor) -> Tensor:
        """What may be averaged where several windows show a candidate: scores, or the probabilities behind logits."""
        return values_N.softmax(-1) if self.reads_logits else values_N

    def step_of(self, scores: Tensor, part: Part) -> Any:
        beside = Beside(
            progress=self.state.global_step / max(self.state.max_steps, 1),
            scale=self.scorer.scale,
            weights_BPK=part["weights_BPK"],
            anchor_BK=part["anchor_BK"],
            noise_BGK=part["noise_BGK"],
            shadow_BPK=part.get("shadow"),
        )
        if self.reads_logits:
            shadow = part["shadow"]
            beside = replace(beside, shadow_BPK=_expected(shadow), logits_BPKG=_log(scores), shadow_logits_BPKG=_log(shadow))
            scores = _expected(scores)
        return self.objective(scores, part["targets_BK"], part["mask_BK"], beside=beside)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Tensor] | None = None) -> None:
        super()._save(output_dir, state_dict)
        if self.args.should_save and self.shadow is not None:
            self.shadow.save(Path(str(output_dir or self.args.output_dir)))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        if self.shadow is not None:
            self.shadow.load(Path(resume_from_checkpoint))


def _expected(probabilities_BPKG: Tensor) -> Tensor:
    """scores_BPK in [0, 1]: expected grade over the highest."""
    grades_G = torch.arange(probabilities_BPKG.shape[-1], dtype=probabilities_BPKG.dtype, device=probabilities_BPKG.device)
    return probabilities_BPKG @ grades_G / grades_G[-1]


def _log(probabilities_BPKG: Tensor) -> Tensor:
    """Logits of probabilities; the padding's zeros become the lowest finite number."""
    return probabilities_BPKG.clamp(min=torch.finfo(probabilities_BPKG.dtype).tiny).log()
