"""Figures of many values: system by source, differences by source, correlations.

Cells are drawn one by one and not as a picture, so that they follow the theme of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.reports import style, tables, text
from steadyrank.reports.experiment.contrasts import pair_label
from steadyrank.reports.experiment.read import Experiment
from steadyrank.reports.plots import FULL_WIDTH, new_figure

_DEEP = 0.62  # alpha of the strongest cell: its text must stay legible in either theme
_PROFILES = {"sources": "Means of sources", "gains": "Gains over the start, query by query"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One map: names of rows and columns, and values[row][column]."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]


def sources(experiment: Experiment, folder: Path) -> str | None:
    """System by source; within a source the shade runs from the lowest to the highest system."""
    measure = experiment.study.measure
    systems = [s for s in tables.reading_order(experiment.study.systems) if s.name not in ("constant", "oracle")]

    panels = []
    for split in experiment.study.splits:
        names = experiment.sources(split.name)
        found = [experiment.study.results[split.name, system.name].by_source[measure] for system in systems]
        panels.append(Panel(split.label, [system.tag for system in systems], names, [[one.get(name) for name in names] for one in found]))
    return _maps(folder, "heatmap", panels, is_signed=False)


def deltas(experiment: Experiment, folder: Path) -> str | None:
    """Pair by source: the differences of the main family."""
    family, measure = experiment.main, experiment.study.measure
    if family is None:
        return None
    panels = []
    for split in experiment.study.splits:
        names = experiment.sources(split.name)
        items = [(pair, item) for pair in family.pairs if (item := family.of(split.name, *pair, measure)) is not None]
        rows = [[part.difference if (part := item.by_source.get(name)) else None for name in names] for _, item in items]
        panels.append(Panel(split.label, [pair_label(experiment, *pair) for pair, _ in items], names, rows))
    return _maps(folder, "deltas", panels, is_signed=True)


def _maps(folder: Path, name: str, panels: Sequence[Panel], *, is_signed: bool) -> str | None:
    panels = [panel for panel in panels if panel.rows and panel.columns]
    if not panels:
        return None
    heights = [len(panel.rows) for panel in panels]
    most = max((abs(value) for panel in panels for row in panel.values for value in row if value is not None), default=1.0) or 1.0
    with style.house_style(name):
        figure = new_figure(FULL_WIDTH, sum(0.27 * height + 1.15 for height in heights))
        figure.get_layout_engine().set(hspace=0.03, h_pad=0.08)
        grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": [height + 1 for height in heights]})[:, 0]
        for axes, panel in zip(grid, panels, strict=True):
            for column in range(len(panel.columns)):
                values = [row[column] for row in panel.values]
                for place, (value, shade) in enumerate(zip(values, _shades(values, most if is_signed else None), strict=True)):
                    written = text.signed(value, digits=2) if is_signed else text.number(value, digits=2)
                    cell(axes, column, place, written, style.LOSS if is_signed and (value or 0) < 0 else style.GAIN, shade)
            frame(axes, panel.rows, panel.columns)
            axes.set_title(panel.title, color=style.INK)
        return style.save(figure, folder, name)


def _shades(values: Sequence[float | None], most: float | None) -> list[float]:
    """0 to 1: the size of a value beside `most`, or where it lies between the lowest and the highest of its column."""
    if most is not None:
        return [abs(value or 0.0) / most for value in values]
    own = [value for value in values if value is not None]
    low, wide = min(own, default=0.0), max(own, default=0.0) - min(own, default=0.0)
    return [(value - low) / wide if value is not None and wide > 0 else 0.0 for value in values]


def cell(axes: Any, column: int, row: int, words: str, colour: str, shade: float) -> None:
    """One cell, and the text on it where there is one."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, facecolor=colour, alpha=_DEEP * shade, linewidth=0))
    if words:
        axes.text(column, row, words, ha="center", va="center", fontsize=7.5, color=style.INK)


def frame(axes: Any, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Names of rows and columns, and no lines."""
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), rows, color=style.INK, fontsize=8)
    turned = sum(map(len, columns)) > 95
    axes.set_xticks(range(len(columns)), columns, fontsize=8, rotation=30 if turned else 0, ha="right" if turned else "center")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def profiles(experiment: Experiment, folder: Path) -> str | None:
    """Correlations between systems, a row a split: of the means of sources, and of the gains of queries."""
    panels = [
        (f"{split.label}: {title[:1].lower()}{title[1:]}", found["systems"], found["correlation"])
        for split in experiment.study.splits
        for name, title in _PROFILES.items()
        if len((found := experiment.profiles[split.name].get(name) or {"systems": []})["systems"]) > 1
    ]
    if not panels:
        return None
    across = 2 if len(panels) > 1 else 1
    down = -(-len(panels) // across)
    most = max(len(names) for _, names, _ in panels)
    with style.house_style("profiles"):
        figure = new_figure(FULL_WIDTH, down * (1.1 + 0.21 * most))
        grid = figure.subplots(down, across, squeeze=False).ravel()
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        for axes, (title, names, rows) in zip(grid, panels):
            for place, row in enumerate(rows):
                for column, value in enumerate(row):
                    colour = style.QUIET if value is None else style.GAIN if value >= 0 else style.LOSS
                    words = "" if len(names) > 12 else text.MISSING if value is None else text.number(value, digits=2)
                    cell(axes, column, place, words, colour, abs(value or 0.0))
            tags = [experiment.study.system(name).tag for name in names]
            frame(axes, tags, tags)
            axes.set_xticks(range(len(tags)), tags, fontsize=8, rotation=60, ha="right", rotation_mode="anchor")
            axes.set_title(title, color=style.INK, fontsize=9)
        return style.save(figure, folder, "profiles")
