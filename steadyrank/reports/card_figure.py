"""The decision card as one picture for a slide: the verdict on top, three panels and a flip below; drawn from the page's own `Side`s."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyrank.files import atomic_write
from steadyrank.reports import card_view, style, text
from steadyrank.reports.card_view import Side, Value

WIDTH, HEIGHT, DPI = 14.0, 7.9, 150
TONE = {"good": "#0e8a68", "middling": "#8a6100", "bad": style.LOSS}
SHARE = {"slot": style.LOSS, "window": style.ROLE["start"], "remainder": style.ROLE["reference"]}
LEFT, RIGHT = 0.035, 0.965


def write_png(sides: Sequence[Side], path: Path) -> None:
    """Write the picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style.house_style("card"):
        figure = Figure(figsize=(WIDTH, HEIGHT))
        figure.set_layout_engine("none")
        FigureCanvasAgg(figure)
        bottom = _verdicts(figure, sides)
        _panels(figure, sides, bottom)
        _footer(figure, sides)
        with atomic_write(path, binary=True) as file:
            figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})


def _verdicts(figure: Any, sides: Sequence[Side]) -> float:
    """Name, grade and headline of each side; the height at which they end."""
    alone = len(sides) == 1
    gap = 0.035
    width = (RIGHT - LEFT - gap * (len(sides) - 1)) / len(sides)
    lowest = 1.0
    for place, side in enumerate(sides):
        x = LEFT + place * (width + gap)
        stamp = figure.text(
            x + 0.006, 0.94, side.grade, fontsize=12, fontweight="bold", color="white", va="center",
            bbox={"boxstyle": "round,pad=0.42,rounding_size=0.9", "facecolor": TONE[side.tone], "edgecolor": "none"},
        )  # fmt: skip
        beside = x + 0.028 + _width(figure, stamp)
        mark = "" if alone else {"o": "\u25cf ", "D": "\u25c6 "}[style.MARKER[side.colour]]
        figure.text(
            beside, 0.94, mark + _fit(side.name, 80 if alone else 34), fontsize=13, fontweight="bold", color=_colour(side), va="center"
        )
        headline = "".join(part for part, _ in side.headline)
        y = _paragraph(figure, headline, x, 0.893, width, size=20 if alone else 15, most=3, fontweight="bold", color=style.INK)
        said = "  ".join(side.sentences[:2])
        lowest = min(lowest, _paragraph(figure, said, x, y - 0.012, width, size=10.5, most=2 if alone else 4, color=style.QUIET))
    return lowest


def _paragraph(figure: Any, words: str, x: float, y: float, width: float, *, size: float, most: int, **looks: Any) -> float:
    """Text wrapped to a width in figure units, at most so many lines; the height at which it ends."""
    probe = figure.text(0, 0, "", fontsize=size, **looks)
    lines = [""]
    for word in words.split(" "):
        probe.set_text(f"{lines[-1]} {word}".strip())
        if lines[-1] and _width(figure, probe) > width:
            lines.append(word)
        else:
            lines[-1] = probe.get_text()
    probe.remove()
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1] + " \u2026"]
    figure.text(x, y, "\n".join(lines), fontsize=size, va="top", linespacing=1.3, **looks)
    return y - len(lines) * size * 1.42 / 72 / HEIGHT


def _width(figure: Any, item: Any) -> float:
    extent = item.get_window_extent(figure.canvas.get_renderer())
    return float(extent.width / figure.bbox.width)


def _panels(figure: Any, sides: Sequence[Side], bottom: float) -> None:
    top, low = bottom - 0.075, 0.165
    columns = ((0.075, 0.25), (0.405, 0.225), (0.70, 0.225))
    titles = ("Quality and steadiness", "Where it comes from", "What it does to decisions")
    for x, title in zip((LEFT, columns[1][0] - 0.03, columns[2][0] - 0.02), titles, strict=True):
        figure.text(x, top + 0.03, title, fontsize=12.5, fontweight="bold", color=style.INK)
    _quality(figure.add_axes((columns[0][0], low + 0.03, columns[0][1], top - low - 0.035)), sides)
    _causes(figure, sides, columns[1][0] - 0.03, columns[1][1] + 0.03, low, top)
    _decisions(figure.add_axes((columns[2][0] + 0.09, low + 0.03, columns[2][1] - 0.09, top - low - 0.035)), sides)


def _quality(axes: Any, sides: Sequence[Side]) -> None:
    shown = [side for side in sides if side.quality() is not None and side.agreement.mean is not None]
    if not shown:
        _absent(axes, f"No quality: {sides[0].absent('quality')}.")
        return
    axes.axvspan(1 - 2 * 0.02, 1.03, color="#e4f4ee", zorder=0)
    lows = []
    for side in shown:
        quality, agreement, colour = side.quality(), side.agreement, _colour(side)
        assert quality is not None and quality.mean is not None and agreement.mean is not None
        worst, best = side.quality("worst"), side.quality("best")
        if worst is not None and best is not None:
            axes.plot([agreement.mean] * 2, [worst.mean, best.mean], color=colour, linewidth=1.2, alpha=0.5)
            lows.append(worst.mean or 0.0)
        axes.plot([agreement.mean] * 2, _ends(quality), color=colour, linewidth=4, alpha=0.45)
        axes.plot(_ends(agreement), [quality.mean] * 2, color=colour, linewidth=4, alpha=0.45)
        axes.plot([agreement.mean], [quality.mean], style.MARKER[side.colour], color=colour, markersize=9, markeredgecolor=style.PAPER)
        on_left = agreement.mean > 0.55
        is_high = quality.mean > 0.9
        axes.annotate(
            quality.text,
            (agreement.mean, quality.mean),
            (-11 if on_left else 11, -5 if is_high else 7),
            textcoords="offset points",
            ha="right" if on_left else "left",
            va="top" if is_high else "bottom",
            color=colour,
            fontweight="bold",
            fontsize=9.5,
        )
        lows.append(quality.mean)
    chance, first = shown[0].reference("random"), shown[0].reference("first_stage")
    marks = [("random order", chance), ("order of the file", first)]
    if chance is not None and first is not None and abs(first - chance) < 0.03:
        marks = [("random order, order of the file", chance)]
    for words, at in marks:
        if at is not None:
            axes.axhline(at, color=style.QUIET, linewidth=0.9, linestyle=(0, (4, 4)))
            axes.text(0.0, at + 0.008, words, fontsize=8, color=style.QUIET)
            lows.append(at)
    axes.set(xlim=(min(-0.03, *(side.agreement.mean or 0 for side in shown)) - 0.02, 1.03), ylim=(max(0.0, min(lows) - 0.06), 1.02))
    axes.set_xlabel("agreement of two orders (Kendall τ); shaded: steady")
    axes.set_ylabel(text.measure(shown[0].measure or "") + ", same orders")


def _ends(value: Value) -> list[float]:
    assert value.mean is not None
    return [value.mean if value.low is None else value.low, value.mean if value.high is None else value.high]


def _causes(figure: Any, sides: Sequence[Side], x: float, width: float, low: float, top: float) -> None:
    """A bar of shares for each side, as long as its scores move where both are on one scale; slot effects of both below."""
    one_scale = len({side.raw["system"].get("scale") for side in sides}) == 1
    spread = max((side.spread or 0.0 for side in sides), default=0.0)
    y = top - 0.005
    for side in sides:
        if not side.shares:
            why = side.absent("causes")
            y = _paragraph(figure, f"{why[:1].upper()}{why[1:]}.", x, y, width, size=10, most=3, color=style.QUIET) - 0.03
            continue
        length = (side.spread or 0.0) / spread if one_scale and spread else 1.0
        named = len(sides) > 1
        figure.text(
            x, y, f"a score moves by {side.spread or 0:.2g} (SD)", fontsize=9.5, color=_colour(side) if named else style.QUIET, va="top"
        )
        _shares(figure.add_axes((x, y - 0.075, width * max(length, 0.02), 0.043)), side, write=length > 0.35)
        _legend(figure, side, x, y - 0.087)
        y -= 0.14
    if any(side.slot_effects for side in sides) and y - low > 0.1:
        _slots(figure.add_axes((x, low + 0.03, width, y - low - 0.04)), sides)


def _shares(axes: Any, side: Side, *, write: bool) -> None:
    start = 0.0
    for key, _, share in side.shares:
        axes.barh([0], [share], left=[start], color=SHARE[key], height=1)
        if write and share >= 0.12:
            axes.text(
                start + share / 2, 0, card_view.percent(share), color="white", ha="center", va="center", fontweight="bold", fontsize=10
            )
        start += share
    axes.set(xlim=(0, 1), ylim=(-0.5, 0.5))
    axes.axis("off")


def _legend(figure: Any, side: Side, x: float, y: float) -> None:
    names = {"slot": "slot", "window": "prompt", "remainder": "companions \u2264"}
    at = x
    for key, _, share in side.shares:
        words = f"{names[key]} {card_view.percent(share)}"
        figure.text(at, y, "■", color=SHARE[key], fontsize=9, va="top")
        figure.text(at + 0.012, y, words, color=style.INK, fontsize=9, va="top")
        at += 0.022 + 0.0062 * len(words)


def _slots(axes: Any, sides: Sequence[Side]) -> None:
    shown = [side for side in sides if side.slot_effects]
    most = max(abs(effect) for side in shown for effect in side.slot_effects) or 1.0
    size = max(len(side.slot_effects) for side in shown)
    thick = 0.8 / len(shown)
    for at, side in enumerate(shown):
        places = [place + (at - (len(shown) - 1) / 2) * thick for place in range(1, len(side.slot_effects) + 1)]
        axes.bar(places, side.slot_effects, color=style.LOSS if len(sides) == 1 else _colour(side), alpha=0.85, width=thick)
    axes.axhline(0, color=style.QUIET, linewidth=0.8)
    axes.set(ylim=(-1.1 * most, 1.1 * most), xticks=list(range(1, size + 1)) if size <= 12 else [1, size])
    axes.set_yticks([-most, 0, most], [f"{-most:+.2g}".replace("-", text.MINUS), "0", f"{most:+.2g}"])
    axes.tick_params(labelsize=8)
    axes.grid(visible=False)
    axes.set_xlabel("effect of each slot of the prompt on a score", fontsize=8.5)


def _decisions(axes: Any, sides: Sequence[Side]) -> None:
    """One line a decision: how often it holds or flips, with its interval."""
    lines: list[tuple[str, list[Value | None]]] = [
        ("kept set agrees", [card_view.value(card_view.main_point(side).get("jaccard"), is_share=True) for side in sides]),
        (
            "documents kept by\nsome orders only",
            [card_view.value(card_view.main_point(side).get("document_flip"), is_share=True) for side in sides],
        ),
        ("another top choice", _of(sides, "preference", "top_flip")),
        ("another pair\n(top, bottom)", _of(sides, "preference", "pair_flip")),
        ("reader: another\nanswer", _of(sides, "reader", "answer_flip")),
        ("one candidate less:\nanother top", _of(sides, "pool", "top_k_turnover")),
    ]
    lines = [(name, values) for name, values in lines if any(value is not None for value in values)]
    if not lines:
        _absent(axes, "No consumer could be run.")
        return
    offsets = [0.0] if len(sides) == 1 else [-0.2, 0.2]
    for row, (_, values) in enumerate(lines):
        axes.axhline(row, color=style.GRID, linewidth=1, zorder=0)
        for side, value, offset in zip(sides, values, offsets, strict=True):
            if value is None or value.mean is None:
                continue
            colour, y = _colour(side), row + offset
            axes.plot(_ends(value), [y, y], color=colour, linewidth=5, alpha=0.4, solid_capstyle="round")
            axes.plot(
                [value.mean], [y], style.MARKER[side.colour], color=colour, markersize=7.5, markeredgecolor=style.PAPER, clip_on=False
            )
            axes.text(1.03, y, value.text, color=colour, fontsize=10, fontweight="bold", va="center")
    axes.set_yticks(range(len(lines)), [name for name, _ in lines], color=style.INK, fontsize=9.5)
    axes.set(xlim=(-0.02, 1.02), ylim=(len(lines) - 0.5, -0.5))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def _of(sides: Sequence[Side], part: str, key: str) -> list[Value | None]:
    return [card_view.value((side.raw.get(part) or {}).get(key), is_share=True) for side in sides]


def _footer(figure: Any, sides: Sequence[Side]) -> None:
    told_of = next((side for side in sides if side.raw.get("example")), None)
    if told_of is not None:
        words = (f"{told_of.name}: " if len(sides) > 1 else "") + card_view.example_sentence(told_of.raw["example"])
        _paragraph(figure, words, LEFT, 0.112, RIGHT - LEFT, size=10.5, most=2, color=style.INK)
    data, counts = sides[0].raw["data"], sides[0].raw["counts"]
    low, high = data["pool_sizes"]
    sizes = low if low == high else f"{low} to {high}"
    told = [
        f"{data['lists']} lists of {sizes} candidates under {data['presentations']} presentations each",
        f"failed {counts.get('failed', 0)}, cut {counts.get('truncated', 0)}, unscored {counts.get('unscored', 0)}",
        "bars: 95% intervals; thin line: worst and best order of each list",
    ]
    figure.text(LEFT, 0.035, "   ·   ".join(told), fontsize=9, color=style.QUIET, va="center")
    prints = sides[0].raw.get("fingerprints") or {}
    figure.text(
        RIGHT,
        0.035,
        f"steadyrank audit   lists {prints.get('lists', text.MISSING)}",
        fontsize=9,
        color=style.QUIET,
        va="center",
        ha="right",
    )


def _absent(axes: Any, words: str) -> None:
    axes.axis("off")
    axes.text(0, 0.95, "\n".join(textwrap.wrap(words, 44)), fontsize=10, color=style.QUIET, va="top", transform=axes.transAxes)


def _colour(side: Side) -> str:
    return style.ROLE[side.colour]


def _fit(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
