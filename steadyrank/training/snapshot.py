"""The student of some steps ago, as a policy that draws rankings: its scores of the lists of the coming steps, taken all at once.

Where a judge is paid for whole rankings, several steps learn from rankings of one snapshot; the objective corrects by a clipped ratio. What
it gave travels with the checkpoint, since a resumed run cannot score with the weights of a step that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from steadyrank import files, lists
from steadyrank.training.collate import cut
from steadyrank.training.sampling import StepSampler

if TYPE_CHECKING:
    from steadyrank.training.collate import Collator

_FILE = "snapshot.json"


class Snapshot:
    """Scores of the lists of a block of `every` steps; every process scores its own lists and holds those of all."""

    def __init__(self, sampler: StepSampler, collator: Collator, *, every: int):
        self.sampler, self.collator, self.every = sampler, collator, every
        self.block: int | None = None
        self.scores: dict[int, list[float]] = {}  # by the list's place in the training lists

    def refresh(self, step: int, score: Callable[[dict[str, Tensor]], Tensor], model: nn.Module) -> None:
        """Score the lists of this step's block, unless they are here already."""
        if self.block == step // self.every:
            return
        self.block = step // self.every
        first = self.block * self.every
        draws = {draw.index: draw for draws in islice(self.sampler, first, first + self.every) for draw in draws}
        encoded = self.collator.encoded(list(draws.values()))
        flat = [pair for pairs in encoded for pair in pairs]
        model.eval()
        with torch.no_grad():
            places = cut([len(pair.ids) for pair in flat], budget=self.collator.budget)
            chunks = [score(self.collator.scorer.collate([flat[place] for place in group])) for group in places]
        values = iter(torch.cat(chunks).tolist())
        self.scores = _of_all({index: [next(values) for _ in pairs] for index, pairs in zip(draws, encoded, strict=True)})

    def of(self, indices: Sequence[int], *, like: Tensor) -> Tensor:
        """behaviour_BK: the snapshot's scores of these lists, where `like` is."""
        return lists.pack([self.scores[index] for index in indices])[0].to(like.device)

    def save(self, folder: Path) -> None:
        files.write_json(folder / _FILE, {"block": self.block, "scores": [*self.scores.items()]})

    def load(self, folder: Path) -> None:
        kept = files.read_json(folder / _FILE)
        self.block, self.scores = kept["block"], dict(kept["scores"])


def _of_all(own: dict[int, list[float]]) -> dict[int, list[float]]:
    """Those of every process, since the one that writes the checkpoint must hold them all."""
    if not torch.distributed.is_initialized():
        return own
    parts: list[dict[int, list[float]]] = [{} for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather_object(parts, own)
    return {index: row for part in parts for index, row in part.items()}
