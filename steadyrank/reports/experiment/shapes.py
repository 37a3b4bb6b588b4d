"""Figures of shapes and shares: queries won, tied and lost, and profiles over sources as a radar."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from steadyrank.reports import style, text
from steadyrank.reports.experiment.contrasts import outcomes, pair_label
from steadyrank.reports.experiment.read import Experiment
from steadyrank.reports.plots import FULL_WIDTH, new_figure
from steadyrank.reports.read import Split, SystemInfo

RADAR_SYSTEMS = 5
_LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)), (0, (1, 1)))


def win_tie_loss(experiment: Experiment, folder: Path) -> str | None:
    """Shares of queries won, tied and lost by every pair of the main family, a panel a split."""
    family, study = experiment.main, experiment.study
    pairs = [pair for pair in family.pairs if any(family.of(s.name, *pair, study.measure) for s in study.splits)] if family else []
    if family is None or not pairs:
        return None
    with style.house_style("wins"):
        figure = new_figure(FULL_WIDTH, 1.1 + 0.27 * len(pairs))
        panels = figure.subplots(1, len(study.splits), sharey=True, squeeze=False)[0]
        for axes, split in zip(panels, study.splits, strict=True):
            for place, pair in enumerate(pairs):
                counts = outcomes(family.of(split.name, *pair, study.measure))
                if counts is not None and any(counts):
                    _shares(axes, place, counts)
            axes.set_xlim(0, 1)
            axes.set_xticks([0, 0.5, 1], ["0", "half", "all"])
            axes.set_title(split.label, color=style.INK)
            axes.set_xlabel("share of queries")
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
        panels[0].set_yticks(range(len(pairs)), [pair_label(experiment, *pair) for pair in pairs], color=style.INK)
        panels[0].set_ylim(len(pairs) - 0.4, -0.6)
        return style.save(figure, folder, "wins")


def _shares(axes: Any, place: int, counts: tuple[int, int, int]) -> None:
    left, total = 0.0, sum(counts)
    for count, colour, alpha in zip(counts, (style.GAIN, style.QUIET, style.LOSS), (0.55, 0.15, 0.55), strict=True):
        axes.barh([place], [count / total], left=left, height=0.66, color=colour, alpha=alpha, linewidth=0)
        if count / total > 0.06:
            axes.text(left + count / total / 2, place, str(count), ha="center", va="center", fontsize=8, color=style.INK)
        left += count / total


def radar(experiment: Experiment, folder: Path) -> str | None:
    """The profile over sources of a few systems, a panel a split with at least three sources."""
    splits = [split for split in experiment.study.splits if len(experiment.sources(split.name)) >= 3]
    systems = radar_systems(experiment)
    if not splits or not systems:
        return None
    with style.house_style("radar"):
        figure = new_figure(FULL_WIDTH, 5.0)
        panels = figure.subplots(1, len(splits), squeeze=False, subplot_kw={"projection": "polar"})[0]
        for axes, split in zip(panels, splits, strict=True):
            _radar(experiment, axes, split, systems)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(systems), frameon=False, fontsize=8.5)
        return style.save(figure, folder, "radar")


def radar_systems(experiment: Experiment) -> list[SystemInfo]:
    """The base arm, its start, the teacher, BM25, then arms in the order of the matrix: more would hide each other."""
    study = experiment.study
    base = [arm for arm in experiment.arms if arm.name == experiment.base]
    start = [study.system(name) for arm in base if (name := experiment.rows[arm.name].get("start"))]
    lexical = [system for system in study.with_role("baseline") if system.name == "bm25"]
    wanted = [*base, *study.with_role("teacher")[:1], *start, *lexical, *experiment.arms]
    return list({system.name: system for system in wanted}.values())[:RADAR_SYSTEMS]


def _radar(experiment: Experiment, axes: Any, split: Split, systems: list[SystemInfo]) -> None:
    measure, names = experiment.study.measure, experiment.sources(split.name)
    angles = [2 * math.pi * place / len(names) for place in range(len(names))]
    for number, system in enumerate(systems):
        means = experiment.study.results[split.name, system.name].by_source[measure]
        values = [means.get(name, 0.0) for name in names]
        colour = style.ROLE[system.role] if system.name == experiment.base or system.role != "student" else style.QUIET
        width = 2.0 if number == 0 else 1.3
        axes.plot([*angles, angles[0]], [*values, values[0]], color=colour, linewidth=width, linestyle=_LINES[number], label=system.tag)
        if number == 0:
            axes.fill(angles, values, color=colour, alpha=0.10, linewidth=0)
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, [name.replace("/", "/\n") for name in names], fontsize=8, color=style.INK)
    axes.tick_params(axis="x", pad=9)
    axes.set_rlabel_position(180 / len(names))
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75], ["", "0.5", ""], fontsize=7)
    axes.spines["polar"].set_color(style.GRID)
    axes.set_title(f"{split.label}: {text.measure(measure)}", color=style.INK, pad=18)
