"""Point labels that do not lie on each other: greedy placement in pixels, nearest free place first.

The first candidate place that is free, else the one with the least overlap; a leader line where it is not beside its point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

RADII = (8, 16, 26, 38, 52, 68, 86, 106, 128)
ANGLES = tuple(math.radians(a) for a in (0, 180, 40, -40, 140, -140, 90, -90, 20, -20, 160, -160, 65, -65, 115, -115))


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels."""

    left: float
    low: float
    right: float
    high: float

    def overlap(self, other: Box) -> float:
        wide = min(self.right, other.right) - max(self.left, other.left)
        tall = min(self.high, other.high) - max(self.low, other.low)
        return wide * tall if wide > 0 and tall > 0 else 0.0

    def outside(self, frame: Box) -> float:
        inside = self.overlap(frame)
        return (self.right - self.left) * (self.high - self.low) - inside


def place(
    sizes: Sequence[tuple[float, float]], points: Sequence[tuple[float, float]], blocked: Sequence[Box], frame: Box, *, scale: float
) -> list[Box]:
    """One box for every point, in order; `blocked` are things that no label may cover."""
    taken = list(blocked)
    out = []
    for (width, height), (x, y) in zip(sizes, points, strict=True):
        best, cost = None, math.inf
        for radius in RADII:
            for angle in ANGLES:
                box = _beside(x, y, width, height, radius * scale, angle)
                here = sum(box.overlap(other) for other in taken) + 3 * box.outside(frame)
                if here < cost:
                    best, cost = box, here
                if cost == 0:
                    break
            if cost == 0:
                break
        assert best is not None
        taken.append(best)
        taken += _leader(x, y, best, scale)
        out.append(best)
    return out


def _nearest(x: float, y: float, box: Box) -> tuple[float, float]:
    return min(max(x, box.left), box.right), min(max(y, box.low), box.high)


def _needs_leader(x: float, y: float, box: Box, scale: float) -> bool:
    edge_x, edge_y = _nearest(x, y, box)
    return math.hypot(edge_x - x, edge_y - y) > 10 * scale


def _leader(x: float, y: float, box: Box, scale: float) -> list[Box]:
    """The leader line as small boxes that later labels keep off."""
    if not _needs_leader(x, y, box, scale):
        return []
    edge_x, edge_y = _nearest(x, y, box)
    places = [(x + (edge_x - x) * t / 12, y + (edge_y - y) * t / 12) for t in range(13)]
    return [Box(px - 2 * scale, py - 2 * scale, px + 2 * scale, py + 2 * scale) for px, py in places]


def _beside(x: float, y: float, width: float, height: float, radius: float, angle: float) -> Box:
    cos, sin = math.cos(angle), math.sin(angle)
    cx = x + radius * cos + (width / 2) * (1 if cos > 0.3 else -1 if cos < -0.3 else 0)
    cy = y + radius * sin + (height / 2) * (1 if sin > 0.8 else -1 if sin < -0.8 else 0)
    return Box(cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2)


def annotate(axes: Any, names: Sequence[str], points: Sequence[tuple[float, float]], bars: Sequence[Box], colours: Sequence[str]) -> None:
    """Write `names` beside data `points`; `bars` are error bars in data units that labels keep off."""
    figure = axes.figure
    figure.draw_without_rendering()
    renderer, scale = figure.canvas.get_renderer(), figure.dpi / 72
    to_pixels = axes.transData.transform
    texts = [axes.text(0, 0, name, fontsize=8.5, color=colour) for name, colour in zip(names, colours, strict=True)]
    extents = [item.get_window_extent(renderer) for item in texts]
    sizes = [(extent.width + 3 * scale, extent.height + 1 * scale) for extent in extents]
    pixels = [tuple(to_pixels(point)) for point in points]
    blocked = [Box(x - 5 * scale, y - 5 * scale, x + 5 * scale, y + 5 * scale) for x, y in pixels]
    for bar in bars:
        (left, low), (right, high) = to_pixels((bar.left, bar.low)), to_pixels((bar.right, bar.high))
        blocked.append(Box(left - scale, low - scale, right + scale, high + scale))
    window = axes.get_window_extent(renderer)
    boxes = place(sizes, pixels, blocked, Box(window.x0, window.y0, window.x1, window.y1), scale=scale)
    back = axes.transData.inverted().transform
    for item, box, (x, y) in zip(texts, boxes, pixels, strict=True):
        cx, cy = (box.left + box.right) / 2, (box.low + box.high) / 2
        item.set(position=tuple(back((cx, cy))), ha="center", va="center")
        if _needs_leader(x, y, box, scale):
            axes.plot(*zip(back((x, y)), back(_nearest(x, y, box))), color=item.get_color(), linewidth=0.6, zorder=1)
