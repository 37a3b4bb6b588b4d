"""Figures of one value a system: main comparison, settings with the default marked, seeds. Each gives its SVG, or None without data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyrank.reports import style, tables, text
from steadyrank.reports.experiment.read import Experiment
from steadyrank.reports.plots import FULL_WIDTH, new_figure, role_handles
from steadyrank.reports.read import Interval, SystemInfo

_NAMES = {
    "objective_settings.num_samples": "group size G",
    "objective_settings.temperature": "temperature",
    "objective_settings.kl": "KL weight",
    "objective_settings.entropy": "entropy weight",
    "training.learning_rate": "learning rate",
    "seed": "seed",
}


def main(experiment: Experiment, folder: Path) -> str | None:
    """Every system with its interval, a panel a split, the best of the first on top. Bars start at random order: what was gained."""
    study, measure = experiment.study, experiment.study.measure
    first = study.splits[0].name
    shown = [system for system in study.systems if system.role != "reference"]
    shown.sort(key=lambda system: -_or(study.results[first, system.name].measures[measure]["micro"].mean))
    if not shown:
        return None
    with style.house_style("main"):
        figure = new_figure(FULL_WIDTH, 1.3 + 0.27 * len(shown))
        panels = figure.subplots(1, len(study.splits), sharey=True, squeeze=False)[0]
        for axes, split in zip(panels, study.splits, strict=True):
            random = study.results[split.name, "random"].measures[measure]["micro"].mean
            for place, system in enumerate(shown):
                _bar(axes, place, study.results[split.name, system.name].measures[measure]["micro"], system.role, _or(random))
            axes.axvline(_or(random), color=style.ROLE["reference"], linewidth=1.0)
            axes.set_title(split.label, color=style.INK)
            axes.set_xlabel(text.measure(measure))
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
            ends = [study.results[split.name, system.name].measures[measure]["micro"] for system in shown]
            axes.set_xlim(*_room([_or(random), *(_or(v.low, _or(v.mean)) for v in ends), *(_or(v.high, _or(v.mean)) for v in ends)]))
        panels[0].set_yticks(range(len(shown)), [_starred(experiment, system) for system in shown], color=style.INK)
        panels[0].set_ylim(len(shown) - 0.4, -0.6)
        handles = role_handles([system.role for system in shown])
        where: Any = {"loc": "outside upper left", "ncols": len(handles), "handletextpad": 0.2}
        figure.legend(handles=handles, frameon=False, fontsize=8.5, labelcolor=style.QUIET, **where)
        return style.save(figure, folder, "main")


def _bar(axes: Any, place: int, value: Interval, role: str, left: float) -> None:
    colour, mean = style.ROLE[role], _or(value.mean)
    axes.barh([place], [mean - left], left=left, height=0.62, color=colour, alpha=0.25, zorder=2)
    axes.plot([_or(value.low, mean), _or(value.high, mean)], [place, place], color=colour, linewidth=1.6, zorder=3)
    axes.plot([mean], [place], style.MARKER[role], color=colour, markersize=5.5, markeredgecolor=style.PAPER, zorder=4)
    axes.text(1.015, place, text.number(value.mean), transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=style.INK)


def _starred(experiment: Experiment, system: SystemInfo) -> str:
    return f"{system.tag} \u2605" if system.name == experiment.base and len(experiment.arms) > 1 else system.tag


def _or(value: float | None, other: float = 0.0) -> float:
    return other if value is None else value


def _room(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low or 0.1) * share
    return low - room, high + room


def sensitivity(experiment: Experiment, folder: Path) -> str | None:
    """One panel a field that settings change and a split; the default is a star, and its interval a band."""
    panels = [(name, points) for name in experiment.parameters if len(points := _points(experiment, name)) > 1]
    if not panels:
        return None
    study, measure = experiment.study, experiment.study.measure
    series = list(dict.fromkeys(_series(experiment, arm) for arm in experiment.arms))
    with style.house_style("sensitivity"):
        figure = new_figure(FULL_WIDTH, 0.5 + 2.0 * len(study.splits))
        grid = figure.subplots(len(study.splits), len(panels), sharey="row", squeeze=False)
        for row, split in zip(grid, study.splits, strict=True):
            for axes, (name, points) in zip(row, panels, strict=True):
                values = list(dict.fromkeys(point for point, _, _ in points))
                for number, one in enumerate(series):
                    own = [point for point in points if _series(experiment, point[1]) == one]
                    found = [study.results[split.name, arm.name].measures[measure]["micro"] for _, arm, _ in own]
                    _line(axes, [values.index(point) for point, _, _ in own], found, [is_default for *_, is_default in own], number, one)
                axes.set_xticks(range(len(values)), [f"{value:g}" if isinstance(value, (int, float)) else str(value) for value in values])
                axes.margins(x=0.12)
                if split is study.splits[-1]:
                    axes.set_xlabel(_NAMES.get(name, name.rsplit(".", 1)[-1].replace("_", " ")))
            row[0].set_ylabel(f"{split.label}\n{text.measure(measure)}")
        if len(series) > 1:
            handles = [axes_line for axes_line in grid[0][0].get_lines() if axes_line.get_label() in series]
            figure.legend(handles=handles, loc="outside upper left", ncols=len(series), fontsize=8, frameon=False)
        return style.save(figure, folder, "sensitivity")


def _series(experiment: Experiment, arm: SystemInfo) -> str:
    """The arm without its setting."""
    row = experiment.rows[arm.name]
    return " \u00b7 ".join(row[part] for part in ("method", "student") if part in row)


def _points(experiment: Experiment, name: str) -> list[tuple[Any, SystemInfo, bool]]:
    """(value, arm, whether it is the default) of the arms whose setting changes this field alone, and of the default; by value."""
    out = []
    for arm in experiment.arms:
        row = experiment.rows[arm.name]
        point = row.get("point") or {}
        if name in point and (row.get("is_default") or len(point) == 1):
            out.append((point[name], arm, bool(row.get("is_default"))))
    are_numbers = all(isinstance(value, (int, float)) for value, _, _ in out)
    return sorted(out, key=lambda item: item[0]) if are_numbers else out


def _line(axes: Any, places: Sequence[int], values: Sequence[Interval], defaults: Sequence[bool], number: int, name: str) -> None:
    colour = list(style.ROLE.values())[number % len(style.ROLE)]
    axes.plot(places, [_or(value.mean) for value in values], color=colour, linewidth=1.4, zorder=3, label=name)
    for place, value, is_default in zip(places, values, defaults, strict=True):
        mean = _or(value.mean)
        axes.plot([place, place], [_or(value.low, mean), _or(value.high, mean)], color=colour, linewidth=1.1, alpha=0.55, zorder=2)
        axes.plot([place], [mean], "*" if is_default else "o", color=style.LOSS if is_default else colour, zorder=4,
                  markersize=12 if is_default else 4.5, markeredgecolor=style.PAPER)  # fmt: skip
        if is_default:
            axes.axhline(mean, color=style.LOSS, linewidth=0.8, linestyle=(0, (2, 3)), zorder=1)


def seeds(experiment: Experiment, folder: Path) -> str | None:
    """Every seed a dot, mean and standard deviation beside, a panel a split."""
    if len(experiment.seeds) < 2:
        return None
    study, measure = experiment.study, experiment.study.measure
    arms = [arm for arm in tables.reading_order(experiment.arms) if any(arm.name in found for found in experiment.spread.values())]
    with style.house_style("seeds"):
        figure = new_figure(FULL_WIDTH, 1.3 + 0.3 * len(arms))
        panels = figure.subplots(1, len(study.splits), sharey=True, squeeze=False)[0]
        for axes, split in zip(panels, study.splits, strict=True):
            for place, arm in enumerate(arms):
                one = experiment.spread[split.name].get(arm.name, {}).get(measure, {}).get("micro")
                if one is None:
                    continue
                values = list(one["values"].values())
                axes.plot(values, [place] * len(values), "o", color=style.ROLE["student"], markersize=5, alpha=0.45, markeredgewidth=0)
                sd = _or(one["sd"])
                axes.plot([one["mean"] - sd, one["mean"] + sd], [place, place], color=style.INK, linewidth=1.5)
                axes.plot([one["mean"]], [place], "|", color=style.INK, markersize=11, markeredgewidth=2)
            axes.set_title(split.label, color=style.INK)
            axes.set_xlabel(text.measure(measure))
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
        panels[0].set_yticks(range(len(arms)), [_starred(experiment, arm) for arm in arms], color=style.INK)
        panels[0].set_ylim(len(arms) - 0.4, -0.6)
        return style.save(figure, folder, "seeds")
