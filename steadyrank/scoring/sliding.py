"""Sliding windows over a list that is too long for one prompt: from its end to its start, each window reordered, the best carried upwards.

The windows overlap by `size - step` documents; so many of the best reach the top in one pass. A step as large as the window would leave the
best where they are, and is refused.
"""

from __future__ import annotations

from steadyrank.errors import ConfigError


def check(size: int, step: int) -> None:
    """Refuse windows that cannot carry the best document to the top."""
    if size < 2 or not 1 <= step < size:
        raise ConfigError(
            f"window {size} with step {step} cannot carry the best document to the top; give window >= 2 and 1 <= step < window"
        )


class Pass:
    """One pass over one list: `window` says which places to reorder next (None when done), `take` applies the order that came back."""

    def __init__(self, n: int, *, size: int, step: int):
        check(size, step)
        self.order = list(range(n))
        self.size, self.step, self._end = size, step, n

    @property
    def window(self) -> list[int] | None:
        """The documents of the next window, in their present order."""
        return self.order[max(0, self._end - self.size) : self._end] if self._end > 1 else None

    def take(self, places: list[int]) -> None:
        """Put the window in this order: places count from its start."""
        start = max(0, self._end - self.size)
        shown = self.order[start : self._end]
        self.order[start : self._end] = [shown[place] for place in places]
        self._end = self._end - self.step if start > 0 else 0
