"""The figures: each function draws one from a study's records and hands back its SVG for the page, PNG and SVG being saved beside it.

A function gives None where the study has nothing to draw; the page then says so. Values are those of the files. The one thing added is the
running mean over training steps, drawn over the raw points and said in the caption.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steadyrank.reports import labels, style, text
from steadyrank.reports.read import Difference, Interval, Run, Study, SystemInfo

_COLUMNS = (1.065, 1.11, 1.15, 1.195)  # of the numbers right of a panel, in widths of the panel
FULL_WIDTH = 9.6  # inches; the page shows figures at this width


def new_figure(width: float, height: float) -> Any:
    """An empty figure on the Agg canvas."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def scatter(study: Study, folder: Path) -> str | None:
    """In-domain against shifted: the first split across, the second up, both with their intervals. The oracle (1, 1) is left out."""
    if len(study.splits) < 2:
        return None
    first, second = study.splits[:2]
    shown: list[tuple[SystemInfo, Interval, Interval]] = []
    for system in study.systems:
        x, y = (study.results[split.name, system.name].measures[study.measure].get("micro", Interval(None)) for split in (first, second))
        if system.name != "oracle" and x.mean is not None and y.mean is not None:
            shown.append((system, x, y))
    if not shown:
        return None
    with style.house_style("scatter"):
        figure = new_figure(FULL_WIDTH, 5.6)
        axes = figure.add_subplot()
        points, bars, colours = [], [], []
        for system, x, y in shown:
            colour, (px, py) = style.ROLE[system.role], (x.mean or 0.0, y.mean or 0.0)
            xl, xh, yl, yh = (_or(x.low, px), _or(x.high, px), _or(y.low, py), _or(y.high, py))
            axes.plot([xl, xh], [py, py], color=colour, linewidth=1.1, alpha=0.55, zorder=2)
            axes.plot([px, px], [yl, yh], color=colour, linewidth=1.1, alpha=0.55, zorder=2)
            axes.plot([px], [py], style.MARKER[system.role], color=colour, markersize=7, markeredgecolor=style.PAPER, zorder=3)
            points.append((px, py))
            bars += [labels.Box(xl, py, xh, py), labels.Box(px, yl, px, yh)]
            colours.append(colour)
        low = min(min(bar.left for bar in bars), min(bar.low for bar in bars))
        high = max(max(bar.right for bar in bars), max(bar.high for bar in bars))
        axes.set_xlabel(f"{first.label}: {text.measure(study.measure)}")
        axes.set_ylabel(f"{second.label}: {text.measure(study.measure)}")
        axes.axline((low, low), (high, high), color=style.QUIET, linewidth=0.9, linestyle=(0, (4, 4)), zorder=1)
        axes.margins(0.08)
        axes.autoscale_view()
        _role_legend(axes, [system.role for system, _, _ in shown])
        steps = [low + (high - low) * place / 150 for place in range(151)]
        diagonal = [labels.Box(start, start, end, end) for start, end in zip(steps, steps[1:])]
        labels.annotate(axes, [system.tag for system, _, _ in shown], points, bars + diagonal, colours)
        return style.save(figure, folder, "scatter")


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def role_handles(roles: Sequence[str]) -> list[Any]:
    """What a legend of these roles shows: each with its marker, in the order of the palette."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], linestyle="", marker=style.MARKER[role], color=colour, markersize=7, label=role)
        for role, colour in style.ROLE.items()
        if role in roles
    ]


def _role_legend(axes: Any, roles: Sequence[str]) -> None:
    handles = role_handles(roles)
    place: Any = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "ncols": len(handles), "handletextpad": 0.2}
    axes.legend(handles=handles, frameon=False, fontsize=8.5, labelcolor=style.QUIET, **place)


def forest(study: Study, folder: Path, *, name: str = "forest") -> str | None:
    """Paired differences with intervals: one row a pair, one panel a split; filled where Holm's p is under 0.05."""
    pairs = list(dict.fromkeys((item.a, item.b) for split in study.splits for item in study.differences[split.name]))
    if not pairs:
        return None
    every = [item for split in study.splits for item in study.differences[split.name]]
    ends = [value for item in every for value in (item.difference.low, item.difference.high, item.difference.mean) if value is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = (high - low or 1.0) * 0.06
    with style.house_style(name):
        figure = new_figure(FULL_WIDTH, 1.1 + 0.3 * len(pairs))
        panels = figure.subplots(1, len(study.splits), sharey=True, squeeze=False)[0]
        for axes, split in zip(panels, study.splits, strict=True):
            axes.axvline(0, color=style.QUIET, linewidth=0.9)
            for place, (a, b) in enumerate(pairs):
                item = next((d for d in study.differences[split.name] if (d.a, d.b) == (a, b)), None)
                _forest_row(axes, place, item)
            axes.set_xlim(low - room, high + room)
            axes.locator_params(axis="x", nbins=5)
            axes.set_title(split.label, color=style.INK)
            axes.set_xlabel(f"Δ {text.measure(study.measure)}")
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
        panels[0].set_yticks(range(len(pairs)), [f"{study.system(a).tag} \u2212 {study.system(b).tag}" for a, b in pairs], color=style.INK)
        panels[0].set_ylim(len(pairs) - 0.4, -0.6)
        return style.save(figure, folder, name)


def _forest_row(axes: Any, place: int, item: Difference | None) -> None:
    side = axes.get_yaxis_transform()
    if item is None or item.difference.mean is None:
        axes.text(1.02, place, text.MISSING, transform=side, va="center", fontsize=8, color=style.QUIET)
        return
    way = text.direction(item.difference)
    colour = {"up": style.GAIN, "down": style.LOSS, "flat": style.QUIET}[way]
    if item.difference.low is not None and item.difference.high is not None:
        axes.plot([item.difference.low, item.difference.high], [place, place], color=colour, linewidth=2.2, zorder=2)
    is_sure = item.holm is not None and item.holm < 0.05
    axes.plot(
        [item.difference.mean], [place], "o", markersize=6.5, color=colour, markerfacecolor=colour if is_sure else style.PAPER, zorder=3
    )
    ink = style.INK if is_sure else style.QUIET
    axes.text(1.20, place, text.signed(item.difference.mean), transform=side, va="center", ha="right", fontsize=8, color=ink)
    axes.text(1.24, place, text.p_value(item.holm), transform=side, va="center", fontsize=8, color=ink)


def sources(study: Study, folder: Path, *, system: SystemInfo) -> str | None:
    """The lead student against its start, source by source, one panel a split, with wins, ties and losses."""
    found = [(split, study.against_start(split.name, system.name)) for split in study.splits]
    panels = [(split, item) for split, item in found if item is not None and item.by_source]
    if not panels:
        return None
    heights = [len(item.by_source) for _, item in panels]
    differences = [s.difference for _, item in panels for s in item.by_source.values() if s.difference is not None]
    low, high = min([0.0, *differences]), max([0.0, *differences])
    room = (high - low or 1.0) * 0.08
    with style.house_style("sources"):
        figure = new_figure(FULL_WIDTH, 0.9 * len(panels) + 0.29 * sum(heights))
        figure.get_layout_engine().set(hspace=0.06, h_pad=0.12)
        grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
        for axes, (split, item) in zip(grid, panels, strict=True):
            ordered = sorted(item.by_source.items(), key=lambda pair: -_or(pair[1].difference, 0.0))
            side = axes.get_yaxis_transform()
            for place, (_, source) in enumerate(ordered):
                value = _or(source.difference, 0.0)
                colour = style.GAIN if value >= 0 else style.LOSS
                axes.plot([0, value], [place, place], color=colour, linewidth=2.2, alpha=0.45, zorder=2)
                axes.plot([value], [place], "o", markersize=6.5, color=colour, zorder=3)
                for x, note in zip(_COLUMNS, (text.signed(source.difference), source.win, source.tie, source.loss)):
                    axes.text(x, place, str(note), transform=side, va="center", ha="right", fontsize=8, color=style.INK)
            axes.axvline(0, color=style.QUIET, linewidth=0.9)
            axes.set_yticks(range(len(ordered)), [name for name, _ in ordered], color=style.INK)
            axes.set_ylim(len(ordered) - 0.4, -0.6)
            axes.set_xlim(low - room, high + room)
            axes.set_title(f"{split.label}: {study.system(item.a).tag} \u2212 {study.system(item.b).tag}", color=style.INK)
            for x, head in zip(_COLUMNS, ("Δ", "win", "tie", "loss")):
                axes.text(x, 1.01, head, transform=axes.transAxes, va="bottom", ha="right", fontsize=8, color=style.QUIET)
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
        grid[-1].set_xlabel(f"Δ {text.measure(study.measure)}")
        return style.save(figure, folder, "sources")


def training(study: Study, folder: Path) -> str | None:
    """One row a run: loss, mean reward, dev measure and entropy of the policy over steps."""
    runs = [run for run in study.runs if run.rows or run.dev]
    if not runs:
        return None
    titles = ("Loss", "Mean reward", f"Dev {text.measure(study.measure)}", "Policy entropy")
    with style.house_style("training"):
        figure = new_figure(FULL_WIDTH, 0.5 + 1.45 * len(runs))
        grid = figure.subplots(len(runs), 4, squeeze=False, sharex="row")
        for place, (row, run) in enumerate(zip(grid, runs, strict=True)):
            role = (
                "teacher" if any(s.name == run.name and s.role == "teacher" for s in study.systems) or run.name == "stage1" else "student"
            )
            series = (
                _series(run.rows, "loss"),
                _series(run.rows, "reward"),
                _dev(run, study.measure),
                _series(run.rows, "policy_entropy"),
            )
            for column, (axes, title, values) in enumerate(zip(row, titles, series, strict=True)):
                _curve(axes, values, style.ROLE[role], is_dev=column == 2)
                if place == 0:
                    axes.set_title(title, color=style.INK)
                if place == len(runs) - 1:
                    axes.set_xlabel("step")
            row[0].set_ylabel(run.name, color=style.INK, fontweight="bold")
        figure.align_ylabels(grid[:, 0])
        return style.save(figure, folder, "training")


def _series(rows: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float]]:
    return [(row["step"], row[name]) for row in rows if isinstance(row.get(name), (int, float)) and "step" in row]


def _dev(run: Run, measure: str) -> list[tuple[float, float]]:
    out = []
    for row in run.dev:
        value = (row.get("measures") or {}).get(measure)
        value = (value.get("micro") or {}).get("mean") if isinstance(value, Mapping) else value
        if isinstance(value, (int, float)) and "step" in row:
            out.append((row["step"], value))
    return out


def _curve(axes: Any, values: Sequence[tuple[float, float]], colour: str, *, is_dev: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=8)
    if not values:
        axes.text(0.5, 0.5, text.MISSING, transform=axes.transAxes, ha="center", va="center", color=style.QUIET)
        axes.set_yticks([])
        return
    steps, heights = zip(*values)
    if is_dev or len(values) < 12:
        axes.plot(steps, heights, "-o", color=colour, linewidth=1.6, markersize=3.5)
        return
    axes.plot(steps, heights, color=colour, linewidth=0.7, alpha=0.3)
    axes.plot(steps, running_mean(heights, max(3, len(heights) // 12)), color=colour, linewidth=1.7)


def running_mean(values: Sequence[float], width: int) -> list[float]:
    """The mean of the last `width` values at each place, of fewer at the beginning."""
    return [statistics.fmean(values[max(0, place + 1 - width) : place + 1]) for place in range(len(values))]
