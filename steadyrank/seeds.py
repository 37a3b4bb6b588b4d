"""Named random streams: every draw in steadyrank comes from a stream hashed from a seed and names.

    stream(seed, "rollout", example_id, epoch)

The same names give the same numbers whatever the batch size, the worker count, the order of examples or PYTHONHASHSEED.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def digest(*names: object) -> int:
    """A 64-bit number hashed from the names; `1` and `"1"` differ, and so do `("a", "b")` and `("ab",)`."""
    text = "\x1f".join(f"{type(name).__name__}:{name}" for name in names)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def stream(seed: int, *names: object) -> np.random.Generator:
    """The numpy generator of this seed and these names."""
    return np.random.Generator(np.random.PCG64(digest(seed, *names)))


def torch_stream(seed: int, *names: object) -> torch.Generator:
    """The torch CPU generator of this seed and these names."""
    import torch

    return torch.Generator().manual_seed(digest(seed, *names) >> 1)


def permutation(size: int, seed: int, *names: object) -> tuple[int, ...]:
    """A uniform permutation of range(size)."""
    return tuple(int(i) for i in stream(seed, *names).permutation(size))
