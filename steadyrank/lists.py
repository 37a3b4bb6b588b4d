"""Ragged lists <-> padded tensors. The only file of the package that pads.

Axes: B lists, K candidates (padded), N all candidates of all lists, one after the other. `mask_BK` is true where a candidate is.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def mask_of(sizes_B: Sequence[int], *, width: int | None = None, device: torch.device | str | None = None) -> Tensor:
    """mask_BK of lists of these sizes; K is the longest, or `width`."""
    sizes = torch.as_tensor(list(sizes_B), dtype=torch.long, device=device)
    width = width if width is not None else int(sizes.max()) if len(sizes) else 0
    return torch.arange(width, device=device)[None, :] < sizes[:, None]


def pack(rows: Sequence[Sequence[float]], *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """(x_BK, mask_BK) of ragged rows; the padding holds zeros."""
    flat = torch.tensor([value for row in rows for value in row], dtype=dtype)
    return pad(flat, [len(row) for row in rows])


def pad(values_N: Tensor, sizes_B: Sequence[int]) -> tuple[Tensor, Tensor]:
    """(x_BK, mask_BK) of values that stand one after the other; differentiable."""
    mask_BK = mask_of(sizes_B, device=values_N.device)
    return values_N.new_zeros(mask_BK.shape).masked_scatter(mask_BK, values_N), mask_BK


def flatten(values_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """values_N: the inverse of `pad`."""
    return values_BK[mask_BK]


def unpack(values_BK: Tensor, mask_BK: Tensor) -> list[list[float]]:
    """The rows without their padding."""
    return [row[mask].tolist() for row, mask in zip(values_BK, mask_BK, strict=True)]
