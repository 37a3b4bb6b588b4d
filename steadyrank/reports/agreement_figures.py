"""The figures of a judge agreement: heat maps by dataset and between raters, and confusion matrices.

A cell's colour is its distance to guessing: none at guessing, blue above, orange below. A share of equal grades is coloured by its distance
to the best judge that reads nothing, so that a frequent grade does not look like agreement. Values are those of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.reports import style, text
from steadyrank.reports.agreement_view import of_kind, writer
from steadyrank.reports.card_view import percent
from steadyrank.reports.plots import FULL_WIDTH, new_figure

PANELS = {"pairs": "Pairs ordered alike", "kappa_quadratic": "Weighted κ", "spearman_query": "Spearman, mean of lists"}
PEER_PANELS = {"kappa_quadratic": "Weighted κ", "spearman_query": "Spearman, mean of lists", "accuracy_binary": "Same relevance"}
_ACROSS = 6  # columns of a panel that has others beside it
WASH, MOST = 0.06, 0.6  # opacity at guessing and at full agreement: the ink stays readable on both themes
_NAME, _ROW_NAME = 24, 30  # characters of a name below a column, or beside a row, before it is cut


@dataclass(frozen=True, slots=True)
class Square:
    """One square of a heat map; strength from -1 to 1, None where there is nothing to colour."""

    words: str
    small: str = ""
    strength: float | None = None


def datasets(found: Mapping[str, Any], folder: Path) -> str | None:
    """Dataset by judge, a panel a statistic, all lists on top. None without a reference."""
    items = of_kind(found, "reference")
    if not items:
        return None
    names = sorted({name for item in items for name in item["by_source"]})
    rows = ["all lists", *(names if len(names) > 1 else [])]
    has_room = len(items) <= 3
    with style.house_style("datasets"):
        panels, figure = _panels(len(PANELS), [item["b"] for item in items], (0.42 if has_room else 0.31) * len(rows))
        for axes, (statistic, title) in zip(panels, PANELS.items(), strict=True):
            squares = [[_of_dataset(item, row, statistic, has_room=has_room) for item in items] for row in rows]
            _heat(axes, squares, gap_after=1)
            _columns(axes, [item["b"] for item in items])
            axes.set_title(title, color=style.INK)
            axes.set_yticks([_place(row, 1) for row in range(len(rows))], [cut(row, _ROW_NAME) for row in rows], color=style.INK)
            for label in axes.get_yticklabels()[:1]:  # a panel beside another has none
                label.set_fontweight("bold")
        return style.save(figure, folder, "datasets")


def _of_dataset(item: Mapping[str, Any], row: str, statistic: str, *, has_room: bool) -> Square:
    cells = item["overall"] if row == "all lists" else item["by_source"].get(row, {})
    references = item["references"] if row == "all lists" else item["references_by_source"].get(row, {})
    return _square(cells.get(statistic), statistic, references, has_room=has_room)


def _square(cell: Mapping[str, Any] | None, statistic: str, references: Mapping[str, Any], *, has_room: bool) -> Square:
    if cell is None or cell["value"] is None:
        return Square(text.MISSING)
    write = writer(statistic)
    small = "" if cell["low"] is None or not has_room else f"[{write(cell['low']).rstrip('%')}, {write(cell['high']).rstrip('%')}]"
    blind = max((one[statistic] for one in references.values() if one[statistic] is not None), default=0.0)
    strength = (cell["value"] - blind) / (1 - blind) if blind < 1 else 0.0
    return Square(write(cell["value"]), small, strength)


def raters(found: Mapping[str, Any], folder: Path) -> str | None:
    """Rater by rater, a panel a statistic; the reference first, set apart. On the diagonal a judge's second run. None for one judge."""
    judges = list(found["judges"])
    if len(judges) < 2:
        return None
    names = [*([found["reference"]] if found["reference"] else []), *judges]
    items = {frozenset((item["a"], item["b"])): item for item in found["comparisons"] if item["kind"] != "again"}
    items |= {frozenset((item["a"],)): item for item in of_kind(found, "again")}
    gap = 1 if found["reference"] else 0
    with style.house_style("raters"):
        panels, figure = _panels(len(PEER_PANELS), names, 0.36 * len(names))
        for axes, (statistic, title) in zip(panels, PEER_PANELS.items(), strict=True):
            squares = [[_of_raters(items.get(frozenset((row, column))), statistic) for column in names] for row in names]
            _heat(axes, squares, gap_after=gap, is_gap_across=True)
            _columns(axes, names, gap_after=gap)
            axes.set_title(title, color=style.INK)
            axes.set_yticks([_place(row, gap) for row in range(len(names))], [cut(name, _ROW_NAME) for name in names], color=style.INK)
        return style.save(figure, folder, "raters")


def _of_raters(item: Mapping[str, Any] | None, statistic: str) -> Square:
    return Square("") if item is None else _square(item["overall"][statistic], statistic, item["references"], has_room=False)


def confusion(found: Mapping[str, Any], folder: Path) -> str | None:
    """A panel a judge: rows the reference's grade, columns the judge's; colour is the share of the row. None without grades to compare."""
    items = [item for item in of_kind(found, "reference") if item["graded"]]
    if not items:
        return None
    across = min(4, len(items))
    down = -(-len(items) // across)
    with style.house_style("confusion"):
        figure = new_figure(FULL_WIDTH if across > 2 else 3.6 * across + 0.6, 0.35 + down * 2.75)
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
        grid = figure.subplots(down, across, squeeze=False)
        for axes in grid.flat[len(items) :]:
            axes.set_visible(False)
        for place, (axes, item) in enumerate(zip(grid.flat, items)):
            squares = [[_share(count, row) for count in row] for row in item["confusion"]]
            _heat(axes, squares)
            _outline_diagonal(axes, len(squares))
            levels = item["levels"]
            axes.set_xticks(levels, [str(level) for level in levels])
            axes.set_yticks(levels, [str(level) for level in levels])
            axes.set_title(cut(item["b"]), color=style.INK)
            axes.set_xlabel("grade of the judge")
            if place % across == 0:
                axes.set_ylabel(f"grade of {cut(item['a'])}")
        return style.save(figure, folder, "confusion")


def _panels(amount: int, columns: Sequence[str], height: float) -> tuple[Any, Any]:
    """(panels, figure): side by side, or one below the other where many columns need the width."""
    across = amount if len(columns) <= _ACROSS else 1
    down = amount // across
    figure = new_figure(FULL_WIDTH, down * (0.95 + _slant(columns) + height))
    panels = figure.subplots(down, across, sharey=across > 1, squeeze=False).flat
    return list(panels), figure


def _share(count: int, row: Sequence[int]) -> Square:
    share = count / sum(row) if sum(row) else 0.0
    return Square(text.plain(count), percent(share) if sum(row) else "", share)


def _outline_diagonal(axes: Any, size: int) -> None:
    from matplotlib.patches import Rectangle

    for place in range(size):
        axes.add_patch(Rectangle((place - 0.47, place - 0.47), 0.94, 0.94, fill=False, edgecolor=style.QUIET, linewidth=1.1))


def _place(row: int, gap_after: int) -> float:
    """Where a row or column stands: those after the gap a little further on."""
    return row + (0.14 if gap_after and row >= gap_after else 0.0)


def _heat(axes: Any, squares: Sequence[Sequence[Square]], *, gap_after: int = 0, is_gap_across: bool = False) -> None:
    from matplotlib.patches import Rectangle

    size = 8.5 if len(squares[0]) <= 4 or len(squares[0]) > _ACROSS else 7.4  # narrow squares side by side
    for row, line in enumerate(squares):
        y = _place(row, gap_after)
        for column, square in enumerate(line):
            x = _place(column, gap_after if is_gap_across else 0)
            colour, opacity = style.QUIET, WASH
            if square.strength is not None:
                colour = style.LOSS if square.strength < 0 else style.GAIN
                opacity = WASH + (MOST - WASH) * min(1.0, abs(square.strength))
            axes.add_patch(Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, facecolor=(colour, opacity), edgecolor="none"))
            lift = 0.14 if square.small else 0.0
            ink = style.QUIET if square.words == text.MISSING else style.INK
            axes.text(x, y - lift, square.words, ha="center", va="center", fontsize=size, color=ink)
            axes.text(x, y + 0.24, square.small, ha="center", va="center", fontsize=6.8 if len(line) < 3 else 6.2, color=style.INK)
    last_x = _place(len(squares[0]) - 1, gap_after if is_gap_across else 0)
    axes.set_xlim(-0.55, last_x + 0.55)
    axes.set_ylim(_place(len(squares) - 1, gap_after) + 0.55, -0.55)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _columns(axes: Any, names: Sequence[str], *, gap_after: int = 0) -> None:
    """Names below the columns, slanted where they would meet."""
    is_slanted = _slant(names) > 0
    turn: dict[str, Any] = {"rotation": 50, "ha": "right", "rotation_mode": "anchor"} if is_slanted else {}
    axes.set_xticks([_place(place, gap_after) for place in range(len(names))], [cut(name) for name in names], color=style.INK, **turn)


def _slant(names: Sequence[str]) -> float:
    """Inches that slanted names need below a panel; 0 where they stand upright."""
    longest = max(len(cut(name)) for name in names)
    return 0.062 * longest if longest * len(names) > 34 else 0.0


def cut(name: str, most: int = _NAME) -> str:
    """A name short enough for an axis."""
    return name if len(name) <= most else name[: most - 1] + "…"
