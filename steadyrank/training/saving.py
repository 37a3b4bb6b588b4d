"""Saves a trained student as a folder that transformers, sentence-transformers and steadyrank load, and proves that it scores the same.

FOLDER/            the model (LoRA merged in), its tokenizer, steadyrank.json, README.md
FOLDER/adapter/    the LoRA adapter alone, where one was trained
"""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

from torch import nn

from steadyrank.records import RankingExample
from steadyrank.training import lora

TOLERANCE = 1e-5
_PROBES = 4  # lists


class Saver:
    """Knows the student and, under LoRA, its wrapped model and a copy of the start."""

    def __init__(self, student: Any, *, wrapped: nn.Module | None, start: nn.Module | None, probes: list[RankingExample]):
        self.student, self.wrapped, self.start = student, wrapped, start
        self.probes = probes[:_PROBES]

    def save(self, folder: Path, *, card: str | None = None, verify: bool = False) -> dict[str, float]:
        """Write `folder` whole (an older one is replaced); `verify` reloads it and compares scores on the probes. Returns the
        differences."""
        scratch = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(scratch, ignore_errors=True)
        scorer = self.student
        if self.wrapped is not None:
            scorer = with_model(self.student, lora.merged(self.wrapped))
            self.wrapped.save_pretrained(str(scratch / "adapter"))  # type: ignore[operator]
        scorer.save(scratch)
        if card is not None:
            (scratch / "README.md").write_text(card, encoding="utf-8")
        differences = self._verify(scratch) if verify else {}
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
        return differences

    def _verify(self, folder: Path) -> dict[str, float]:
        from steadyrank.scoring import load_scorer

        live = self._scores(with_model(self.student, self.student.model))
        out = {}
        if self.start is not None:
            adapter = with_model(self.student, lora.reloaded(self.start, folder / "adapter"))
            out["adapter"] = lora.require_equal("saved adapter", live, self._scores(adapter), tolerance=TOLERANCE)
        loaded = load_scorer(str(folder), precision="fp32", allow_untrained=True)
        out["saved"] = lora.require_equal("saved model", live, self._scores(loaded), tolerance=TOLERANCE)
        return out

    def _scores(self, scorer: Any) -> list[float]:
        return [score for scored in scorer.score_examples(self.probes) for score in scored.scores]


def with_model(scorer: Any, model: nn.Module) -> Any:
    """The same scorer reading from another model, in fp32: bf16 would hide a difference in its own rounding."""
    other = copy.copy(scorer)
    other.model, other.precision = model.eval(), "fp32"
    return other
