"""Draws of one step -> the tensors of its forwards.

A step is cut into *parts* (one forward and one backward each) by tokens and by lists; nothing that a list contributes depends on the
cut: its tokens are
its own, and its ranking noise comes from a stream of (seed, example id, epoch).
Does not know the trainer or the loss; which lists count is asked of `objective.live`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from steadyrank import lists, policy
from steadyrank.records import RankingExample
from steadyrank.training.prepare import TrainingLists
from steadyrank.training.sampling import Draw

Part = dict[str, Any]
_CHUNK_ABOVE = 4  # `auto` cuts a list's forward where it holds more than this many budgets of tokens


class DrawDataset(Dataset[Draw]):
    """Hands the sampler's draws through to the collator, which works on a step at once."""

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, draw: Draw) -> Draw:
        return draw


class TokenStore:
    """Tokenised lists, kept between epochs as flat arrays (4 bytes a token) up to a budget. Counts what was cut, once a list."""

    def __init__(self, scorer: Any, examples: Sequence[RankingExample], *, budget: int):
        self.scorer, self.examples, self.budget = scorer, examples, budget
        self.truncated_documents = self.truncated_queries = self.used = 0
        self._kept: dict[int, tuple[Any, ...]] = {}
        self._seen: set[int] = set()

    def get(self, indices: Sequence[int]) -> list[list[Any]]:
        """The encoded pairs of these lists; those not kept are tokenised in one call."""
        missing = sorted({index for index in indices if index not in self._kept})
        fresh: dict[int, list[Any]] = {}
        if missing:
            pairs = [pair for index in missing for pair in pairs_of(self.examples[index])]
            encoded = iter(self.scorer.encode(pairs))
            for index in missing:
                fresh[index] = [next(encoded) for _ in self.examples[index].candidates]
                self._keep(index, fresh[index])
        return [fresh[index] if index in fresh else _unpacked(self._kept[index]) for index in indices]

    def _keep(self, index: int, encoded: list[Any]) -> None:
        if index not in self._seen:
            self._seen.add(index)
            self.truncated_documents += sum(pair.truncated_document for pair in encoded)
            self.truncated_queries += sum(pair.truncated_query for pair in encoded)
        tokens = sum(len(pair.ids) for pair in encoded)
        if self.used + tokens <= self.budget:
            self.used += tokens
            self._kept[index] = _packed(encoded)


def pairs_of(example: RankingExample) -> list[Any]:
    from steadyrank.scoring.base import Pair

    return [Pair(example.query, document, example.instruction) for document in example.documents]


def _packed(encoded: list[Any]) -> tuple[Any, ...]:
    sizes = [len(pair.ids) for pair in encoded]
    ids = np.fromiter((token for pair in encoded for token in pair.ids), dtype=np.int32, count=sum(sizes))
    has_types = encoded[0].type_ids is not None
    types = np.fromiter((kind for pair in encoded for kind in pair.type_ids), dtype=np.int8, count=sum(sizes)) if has_types else None
    shells = [dataclasses.replace(pair, ids=(), type_ids=None) for pair in encoded]
    return sizes, ids, types, shells


def _unpacked(kept: tuple[Any, ...]) -> list[Any]:
    sizes, ids, types, shells = kept
    out, start = [], 0
    for size, shell in zip(sizes, shells, strict=True):
        stop = start + size
        kinds = tuple(types[start:stop].tolist()) if types is not None else None
        out.append(dataclasses.replace(shell, ids=tuple(ids[start:stop].tolist()), type_ids=kinds))
        start = stop
    return out


class Collator:
    """Draws of one step -> `{"parts": [...], "live": number of lists that count, "ids": [...]}`."""

    def __init__(self, scorer: Any, objective: Any, data: TrainingLists, *, settings: Any, tokens_per_forward: int):
        self.scorer, self.objective, self.data, self.settings, self.budget = scorer, objective, data, settings, tokens_per_forward
        self.tokens = TokenStore(scorer, data.examples, budget=settings.cache_tokens)

    def __call__(self, draws: Sequence[Draw]) -> dict[str, Any]:
        encoded = self.encoded(draws)
        sizes = [sum(len(pair.ids) for pair in pairs) for pairs in encoded]
        order = self.arranged(sizes)
        groups = cut([sizes[place] for place in order], budget=self.budget, at_most=self.settings.lists_per_device)
        places = [[order[number] for number in group] for group in groups]
        parts = [self.part([draws[place] for place in group], [encoded[place] for place in group]) for group in places]
        live = torch.stack([part["live_B"].sum() for part in parts]).sum()
        ids = [self.data.examples[draw.index].id for draw in draws if not draw.is_ghost]
        return {"parts": parts, "live": live, "ids": ids, "tokens": sum(sizes)}

    def encoded(self, draws: Sequence[Draw]) -> list[list[Any]]:
        """What is forwarded for each draw; every item has `ids`."""
        return self.tokens.get([draw.index for draw in draws])

    def arranged(self, sizes: Sequence[int]) -> list[int]:
        """The order in which the lists of a step are cut into parts."""
        return list(range(len(sizes)))

    @property
    def counts(self) -> dict[str, int]:
        """What was cut to fit, once a list."""
        return {"truncated_documents": self.tokens.truncated_documents, "truncated_queries": self.tokens.truncated_queries}

    def part(self, draws: Sequence[Draw], encoded: Sequence[list[Any]]) -> Part:
        """The tensors of one forward and its lists. `chunks` holds several inputs where the score gradient is taken in chunks."""
        rows = [self.data.targets[draw.index] for draw in draws]
        targets_BK, mask_BK = lists.pack(rows)
        anchor_BK = lists.pack([self.data.anchors[draw.index] for draw in draws])[0] if self.data.anchors is not None else None
        counted_BK = mask_BK & self._counted(draws, targets_BK, mask_BK)[:, None]
        flat = [pair for pairs in encoded for pair in pairs]
        return {
            "chunks": [self.scorer.collate(group) for group in self._chunks(flat)],
            "sizes": [len(row) for row in rows],
            "targets_BK": targets_BK,
            "anchor_BK": anchor_BK,
            "mask_BK": counted_BK,
            "live_B": self.objective.live(targets_BK, counted_BK),
            "noise_BGK": self._noise(draws, rows, mask_BK.shape[1]),
            "ids": [self.data.examples[draw.index].id for draw in draws],
            "indices": [draw.index for draw in draws],
        }

    def _counted(self, draws: Sequence[Draw], targets_BK: Tensor, mask_BK: Tensor) -> Tensor:
        """Lists that count at all: no ghost, and with `drop_flat` only those whose targets differ."""
        counted_B = torch.tensor([not draw.is_ghost for draw in draws])
        if self.settings.drop_flat:
            highest_B = targets_BK.masked_fill(~mask_BK, -torch.inf).amax(-1)
            lowest_B = targets_BK.masked_fill(~mask_BK, torch.inf).amin(-1)
            counted_B = counted_B & (highest_B > lowest_B)
        return counted_B

    def _noise(self, draws: Sequence[Draw], rows: Sequence[Sequence[float]], width: int) -> Tensor | None:
        if not self.objective.num_samples:
            return None
        noise = []
        for draw, row in zip(draws, rows, strict=True):  # one call a list: epochs may differ within a step
            name, samples = self.data.examples[draw.index].id, self.objective.num_samples
            one_1GK = policy.gumbel_noise([name], [len(row)], num_samples=samples, seed=self.settings.seed, step=draw.epoch)
            noise.append(torch.nn.functional.pad(one_1GK, (0, width - one_1GK.shape[-1])))
        return torch.cat(noise)

    def _chunks(self, flat: list[Any]) -> list[list[Any]]:
        sizes = [len(pair.ids) for pair in flat]
        kind = self.settings.score_gradient
        if kind == "direct" or (kind == "auto" and sum(sizes) <= _CHUNK_ABOVE * self.budget):
            return [flat]
        return [[flat[place] for place in group] for group in cut(sizes, budget=self.budget)]


def cut(sizes: Sequence[int], *, budget: int, at_most: int | None = None) -> list[list[int]]:
    """Places of `sizes`, in order, in groups that hold at most `budget` in sum (a larger item stands alone) and at most `at_most` items."""
    groups: list[list[int]] = []
    held = 0
    for place, size in enumerate(sizes):
        if not groups or held + size > budget or len(groups[-1]) == at_most:
            groups.append([])
            held = 0
        groups[-1].append(place)
        held += size
    return groups
