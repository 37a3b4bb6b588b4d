"""Batches by tokens, longest first, and what happens when one does not fit into memory: it is halved and tried again.

The retry stands outside of the `except` block: inside it the failed forward's tensors would still be held by the traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from steadyrank.errors import RunError


def token_batches(lengths: Sequence[int], budget: int, *, padded: bool = False) -> list[list[int]]:
    """Places of `lengths`, longest first, in batches of at most `budget` tokens (with padding if `padded`); one too long stands alone."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    batches: list[list[int]] = []
    used = budget + 1
    for place in order:
        cost = lengths[batches[-1][0]] if padded and batches else lengths[place]
        if used + cost > budget:
            batches.append([])
            used, cost = 0, lengths[place]
        batches[-1].append(place)
        used += cost
    return batches


def run_batches(
    batches: Sequence[Sequence[int]], forward: Callable[[Sequence[int]], Sequence[float]], *, describe: Callable[[int], str]
) -> dict[int, float]:
    """The value of every place. A batch that runs out of memory is halved; a place that fails alone is an error that names it."""
    found: dict[int, float] = {}
    todo = [list(batch) for batch in reversed(batches)]
    while todo:
        batch = todo.pop()
        values = _attempt(forward, batch)
        if values is not None:
            found.update(zip(batch, values, strict=True))
        elif len(batch) == 1:
            raise RunError(f"no memory for one pair alone, {describe(batch[0])}; lower max_length, or use a machine with more memory")
        else:
            _release()
            middle = len(batch) // 2
            todo += [batch[middle:], batch[:middle]]
    return found


def _attempt(forward: Callable[[Sequence[int]], Sequence[float]], batch: Sequence[int]) -> Sequence[float] | None:
    try:
        return forward(batch)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
    return None


def out_of_memory(error: BaseException) -> bool:
    """Whether this is a lack of memory, of the accelerator or of the machine (torch's CPU allocator has no class for it)."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text


def _release() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def progress_bar(enabled: bool) -> Any:
    """A rich progress bar, shown only if asked for."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), disable=not enabled
    )
