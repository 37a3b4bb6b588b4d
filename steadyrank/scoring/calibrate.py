"""Repairs of what a slot gives away, without training: `capcal` and `slot_mean`.

capcal     the same prompt with content-free candidates says what each slot grades by itself; that prior q is taken off the grade
           distribution p of the real prompt, more where p is unsure (Lv et al. 2026, as in arXiv 2608.26762):
               p' = p - strength * H(p) * (q - 1/4), clipped to [1e-8, 1] and renormalised;  H in nats;  score = E[g] / 3
slot_mean  the mean score of each slot over shuffled dev lists, less the mean of all slots, is subtracted from every score.

Both remove what depends on the slot alone, not what companions do, and neither sees relevance. A dev list must not be a test list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steadyrank.data.presenting import presentations
from steadyrank.errors import ConfigError, InputError
from steadyrank.records import Presentation, RankingExample
from steadyrank.scoring.base import PairScore, Scorer
from steadyrank.scoring.batched import GRADES, BatchedScorer, Prompt
from steadyrank.scoring.combine import Around

_SMALLEST = 1e-8


class SlotRepair(Around):
    """A repair that works on the slots of each prompt of a batched scorer."""

    inner: BatchedScorer

    def __init__(self, scorer: Scorer, *, name: str | None = None):
        if not isinstance(scorer, BatchedScorer):
            raise ConfigError(f"{self.kind} repairs slots, and scorer {scorer.name!r} has none; give an expected_grade or joint_encoder")
        super().__init__(scorer, name=name)

    def repaired(self, prompts: Sequence[Prompt], *, progress: bool = False) -> list[list[PairScore]]:
        """The repaired score of every slot of every prompt."""
        raise NotImplementedError

    def _rows(self, laid: Sequence[tuple[RankingExample, Presentation]], *, progress: bool) -> list[list[PairScore]]:
        return self.inner.score_laid(laid, score_prompts=lambda prompts: self.repaired(prompts, progress=progress))


class CapCal(SlotRepair):
    """Content-free calibration.

    strength: of the correction; 0 leaves the scores.
    filler:   what a content-free candidate holds.
    """

    kind = "capcal"

    def __init__(self, scorer: Scorer, *, strength: float = 1.0, filler: str = "", name: str | None = None):
        super().__init__(scorer, name=name)
        if strength < 0:
            raise ConfigError(f"strength is {strength}; give a number from 0")
        self.strength, self.filler = strength, filler

    def repaired(self, prompts: Sequence[Prompt], *, progress: bool = False) -> list[list[PairScore]]:
        """Each slot's score under p', the prior computed once for all prompts that differ in their documents only."""
        free = [replace(prompt, documents=(self.filler,) * len(prompt.documents)) for prompt in prompts]
        distinct = {prompt: number for number, prompt in enumerate(dict.fromkeys(free))}
        found = self.inner.slot_scores([*prompts, *distinct], progress=progress)
        priors = found[len(prompts) :]
        out = []
        for row, prompt in zip(found, free):
            shown = zip(row, priors[distinct[prompt]], strict=True)
            out.append([replace(slot.score, score=self.corrected(slot.logits, prior.logits)) for slot, prior in shown])
        return out

    def corrected(self, logits: Sequence[float], prior_logits: Sequence[float]) -> float:
        """E[g] / 3 after the correction."""
        p, q = _softmax(logits), _softmax(prior_logits)
        entropy = -float(np.sum(p * np.log(np.maximum(p, np.finfo(float).tiny))))
        corrected = np.clip(p - self.strength * entropy * (q - 1 / len(GRADES)), _SMALLEST, 1.0)
        return float(corrected @ np.asarray(GRADES) / corrected.sum() / GRADES[-1])

    def settings(self) -> dict[str, Any]:
        """Strength and filler."""
        return {"strength": self.strength, "filler": self.filler}


class SlotMean(SlotRepair):
    """Slot-mean calibration.

    offsets: what to subtract at each slot, from `fit`; a slot beyond them is left as it is, and counted in `beyond`.
    clipped: how many slot scores the subtraction moved out of [0, 1] and were set to its edge.
    """

    kind = "slot_mean"

    def __init__(self, scorer: Scorer, *, offsets: Sequence[float], name: str | None = None):
        super().__init__(scorer, name=name)
        self.offsets = tuple(float(value) for value in offsets)
        self.clipped = self.beyond = 0

    @classmethod
    def fit(
        cls, scorer: Scorer, examples: Sequence[RankingExample], *, presentations_each: int = 10, seed: int = 0, name: str | None = None
    ) -> SlotMean:
        """Estimated on dev lists, each under shuffles, so that every candidate is as likely in every slot."""
        fitted = cls(scorer, offsets=(), name=name)
        prompts = [
            prompt
            for example in examples
            for laid in presentations(example, presentations_each, seed=seed)
            for prompt in fitted.inner.prompts_of(example, laid)
        ]
        if not prompts:
            raise InputError("hold no candidate with text; give dev lists to estimate slot means on", field="examples")
        scores = [[slot.score.score for slot in row] for row in fitted.inner.slot_scores(prompts)]
        columns = [[row[slot] for row in scores if slot < len(row)] for slot in range(max(map(len, scores)))]
        everything = np.mean([value for row in scores for value in row])
        fitted.offsets = tuple(float(np.mean(column) - everything) for column in columns)
        return fitted

    def repaired(self, prompts: Sequence[Prompt], *, progress: bool = False) -> list[list[PairScore]]:
        """Each slot's score less the slot's offset, kept inside [0, 1]."""
        rows = self.inner.slot_scores(prompts, progress=progress)
        return [[self._moved(slot.score, number) for number, slot in enumerate(row)] for row in rows]

    def _moved(self, found: PairScore, slot: int) -> PairScore:
        if slot >= len(self.offsets):
            self.beyond += 1
            return found
        moved = found.score - self.offsets[slot]
        self.clipped += not 0 <= moved <= 1
        return replace(found, score=min(max(moved, 0.0), 1.0))

    def settings(self) -> dict[str, Any]:
        """The offsets."""
        return {"offsets": list(self.offsets)}


def _softmax(logits: Sequence[float]) -> np.ndarray:
    values = np.exp(np.asarray(logits, dtype=np.float64) - max(logits))
    return values / values.sum()
