"""Which lists make up which optimiser step: a pure function of (seed, number of lists, settings).

The order does not depend on the machine, on the number of processes or on a resumed start: step n of a run always holds the same lists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from torch.utils.data import Sampler

from steadyrank import seeds


@dataclass(frozen=True, slots=True)
class Draw:
    """One list of one step. `epoch` names its random streams; a ghost keeps a process busy and counts for nothing."""

    index: int
    epoch: int
    is_ghost: bool = False


class StepSampler(Sampler[list[Draw]]):
    """Yields, step by step over the whole run, the draws of this process: draws `rank`, `rank + world`, ... of the step.

    All epochs in one pass, so that the trainer's own epoch count is always one.
    """

    def __init__(self, num_lists: int, *, lists_per_step: int, steps: int, seed: int, shuffle: bool = True, rank: int = 0, world: int = 1):
        self.num_lists, self.lists_per_step, self.steps, self.seed, self.shuffle = num_lists, lists_per_step, steps, seed, shuffle
        self.rank, self.world = rank, world

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[list[Draw]]:
        for step, draws in enumerate(self.all_steps()):
            if step == self.steps:
                return
            own = draws[self.rank :: self.world]
            yield own or [Draw(draws[0].index, draws[0].epoch, is_ghost=True)]

    def all_steps(self) -> Iterator[list[Draw]]:
        """Every step with the draws of all processes, without end."""
        epoch = 0
        while True:
            order = seeds.permutation(self.num_lists, self.seed, "order", epoch) if self.shuffle else tuple(range(self.num_lists))
            for start in range(0, self.num_lists, self.lists_per_step):
                yield [Draw(index, epoch) for index in order[start : start + self.lists_per_step]]
            epoch += 1


def count_steps(num_lists: int, *, lists_per_step: int, epochs: float, max_steps: int | None) -> int:
    """Optimiser steps of a run."""
    if max_steps is not None:
        return max_steps
    return max(1, math.ceil(epochs * math.ceil(num_lists / lists_per_step)))
