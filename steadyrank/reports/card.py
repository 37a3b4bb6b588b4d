"""The decision card: one page of one audit, or of two side by side, written from `audit.json` alone. HTML stands alone; PNG is for slides.

Nothing is loaded from elsewhere and nothing is computed anew. Every text of the user is escaped by the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from steadyrank.files import atomic_write
from steadyrank.names import require
from steadyrank.reports import card_blocks, card_view, text
from steadyrank.reports.card_view import Side, Value

CANDIDATES_SHOWN, SHORT = 5, 130
PANEL = {"width": 520, "height": 316, "left": 46, "right": 18, "top": 20, "bottom": 46}
_SETTINGS = ("presentations", "kind", "windows", "markers", "seed", "relevant", "top_k", "retention", "dev_presentations", "resamples")
_ODD = ("failed", "unscored", "truncated", "empty", "single_presentation", "dev_unscored", "dev_single_presentation", "without_example")


def write_card(
    audits: Sequence[str | Path | Mapping[str, Any]],
    html: str | Path,
    *,
    png: str | Path | None = None,
    title: str | None = None,
    differences: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Path]:
    """The card of one or two audits (paths of audit.json, or their objects); the paths written.

    differences: what `audit.differences` found between two of them.
    """
    given = [card_view.read_audit(one) if isinstance(one, (str, Path)) else one for one in audits]
    sides = card_view.sides_of(given)
    written = [Path(html)]
    _write(written[0], render(sides, title=title, differences=differences))
    if png is not None:
        require("matplotlib", "the card's PNG")
        from steadyrank.reports.card_figure import write_png

        write_png(sides, Path(png))
        written.append(Path(png))
    return written


def render(sides: Sequence[Side], *, title: str | None = None, differences: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """The page."""
    jinja2 = require("jinja2", "the card")
    from markupsafe import Markup

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(plain=text.plain, words=text.words, number=text.number, percent=card_view.percent)
    page = environment.from_string(_resource("card.html.j2"))
    return page.render(
        css=Markup(_resource("report.css") + _resource("card.css")),
        title=title or " against ".join(side.name for side in sides),
        sides=sides,
        meta=[meta(side) for side in sides],
        tiles=[tiles(side) for side in sides],
        panel=panel(sides),
        slots=slot_bars(sides),
        widths=stack_widths(sides),
        differences=card_blocks.differences(sides, differences or {}) if len(sides) == 2 else [],
        blocks=card_blocks.blocks(sides),
        absences=card_view.absences(sides),
        examples=[example(side) for side in sides],
        counts=[counts(side) for side in sides],
        settings=[settings(side) for side in sides],
        prints=[sorted((side.raw.get("fingerprints") or {}).items()) for side in sides],
    )


def _write(path: Path, content: str) -> None:
    with atomic_write(path) as file:
        file.write(content)


def _resource(name: str) -> str:
    return resources.files("steadyrank.reports").joinpath("templates", name).read_text(encoding="utf-8")


def meta(side: Side) -> list[str]:
    """How many lists, of how many candidates, under how many presentations, from where."""
    data = side.raw["data"]
    low, high = data["pool_sizes"]
    shown, most = data["presentations"], data.get("most_presentations", data["presentations"])
    out = [f"{text.plain(data['lists'])} lists of {low if low == high else f'{low} to {high}'} candidates"]
    out.append(f"{shown if shown == most else f'{shown} to {most}'} presentations each")
    if data.get("threshold_chosen_on") and data.get("dev_lists"):
        where = "lists of their own" if data["threshold_chosen_on"] == "dev lists" else "held back from the same file"
        out.append(f"threshold chosen on {text.plain(data['dev_lists'])} other lists ({where})")
    sources = [name for name in data.get("sources") or {} if name]
    if sources:
        out.append(f"{len(sources)} source{'s' if len(sources) > 1 else ''}")
    return out


def tiles(side: Side) -> list[tuple[str, str, str]]:
    """(name, value, interval) of the four numbers to remember; what is absent is left out."""
    point = card_view.main_point(side)
    found: list[tuple[str, Value | None]] = [
        (f"{text.measure(side.measure)}, same orders" if side.measure else "", side.quality()),
        ("kept set agrees", card_view.value(point.get("jaccard"), is_share=True)),
        ("another top choice", card_view.value((side.raw.get("preference") or {}).get("top_flip"), is_share=True)),
        ("document pairs turned round", card_view.value(side.raw["steadiness"].get("tau_psi"), is_share=True)),
    ]
    return [(name, one.text, one.span) for name, one in found if one is not None]


def panel(sides: Sequence[Side]) -> dict[str, Any] | None:
    """Quality against agreement as places on a drawing; None where no side has grades."""
    shown = [side for side in sides if side.quality() is not None and side.agreement.mean is not None]
    if not shown:
        return None
    ranges = [(q.low, q.high) for side in shown for which in ("mean", "worst", "best") if (q := side.quality(which)) is not None]
    chance, first = shown[0].reference("random"), shown[0].reference("first_stage")
    lows = [low for low, _ in ranges if low is not None] + [one for one in (chance, first) if one is not None]
    low_y = max(0.0, min(lows) - 0.05)
    low_x = min(0.0, *(side.agreement.low or 0.0 for side in shown)) - 0.03
    box = {**PANEL, "height": PANEL["height"] + 120 * (len(sides) - 1)}

    def x(value: float) -> float:
        return round(box["left"] + (value - low_x) / (1.03 - low_x) * (box["width"] - box["left"] - box["right"]), 1)

    def y(value: float) -> float:
        return round(box["height"] - box["bottom"] - (value - low_y) / (1.02 - low_y) * (box["height"] - box["top"] - box["bottom"]), 1)

    points: list[dict[str, Any]] = []
    for side in shown:
        mean, worst, best, agreement = side.quality(), side.quality("worst"), side.quality("best"), side.agreement
        assert mean is not None and mean.mean is not None and agreement.mean is not None
        at = x(agreement.mean)
        points.append(
            {
                "side": side, "x": at, "y": y(mean.mean), "on_left": at > box["width"] * 0.62,
                "x_low": x(_or(agreement.low, agreement.mean)), "x_high": x(_or(agreement.high, agreement.mean)),
                "y_low": y(_or(mean.low, mean.mean)), "y_high": y(_or(mean.high, mean.mean)),
                "worst": None if worst is None else y(worst.mean or 0.0), "best": None if best is None else y(best.mean or 0.0),
            }
        )  # fmt: skip
    _apart(points)
    lines = [(name, y(value)) for name, value in (("random order", chance), ("order of the file", first)) if value is not None]
    if len(lines) == 2 and abs(lines[0][1] - lines[1][1]) < 16:
        lines = [("random order and order of the file", (lines[0][1] + lines[1][1]) / 2)]
    is_taken = any(point["x"] < box["left"] + 190 and abs(point["y"] - at) < 34 for point in points for _, at in lines)
    return {
        **box, "points": points, "lines": lines, "measure": text.measure(shown[0].measure or ""),
        "x_ticks": [(f"{tick:g}", x(tick)) for tick in (0, 0.25, 0.5, 0.75, 1)],
        "y_ticks": [(f"{tick / 10:g}", y(tick / 10)) for tick in range(0, 11, 2) if tick / 10 >= low_y],
        "label_x": x(1 - 2 * 0.02) - 8 if is_taken else box["left"] + 6, "steady": x(1 - 2 * 0.02), "chance_x": x(0.0),
    }  # fmt: skip


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _apart(points: list[dict[str, Any]]) -> None:
    """Labels above their points; where two would meet, the lower point's goes below."""
    for point in points:
        point["label_y"] = point["y"] - 12
    if len(points) == 2 and abs(points[0]["y"] - points[1]["y"]) < 26:
        lower = max(points, key=lambda point: point["y"])
        lower["label_y"] = lower["y"] + 22


def slot_bars(sides: Sequence[Side]) -> list[list[dict[str, Any]]]:
    """Heights of the slot effects of each side. Two sides on one scale share the largest of all, so that bars compare."""
    one_scale = len({side.raw["system"].get("scale") for side in sides}) == 1
    largest = [max((abs(effect) for effect in side.slot_effects), default=0.0) for side in sides]
    out = []
    for side, own in zip(sides, largest, strict=True):
        most = max(largest) if one_scale else own
        shown = side.slot_effects if most and len(side.slot_effects) <= 24 else []
        out.append([{"slot": place, "effect": one, "height": round(100 * abs(one) / most, 1)} for place, one in enumerate(shown, 1)])
    return out


def stack_widths(sides: Sequence[Side]) -> list[float]:
    """Width in percent of each side's bar of shares: by the spread of its scores where both are on one scale, else full."""
    spreads = [side.spread or 0.0 for side in sides]
    if len({side.raw["system"].get("scale") for side in sides}) > 1 or not max(spreads):
        return [100.0] * len(sides)
    return [round(100 * spread / max(spreads), 1) for spread in spreads]


def example(side: Side) -> dict[str, Any] | None:
    """The list on which a decision flips, with the candidates that tell most."""
    found = side.raw.get("example")
    if not found:
        return None
    shown = [{**row, "text": _short(row["text"])} for row in found["candidates"][:CANDIDATES_SHOWN]]
    left = len(found["candidates"]) - len(shown) + found.get("candidates_left_out", 0)
    return {**found, "shown": shown, "left_out": left, "share": found["flipping_lists"] / max(1, found["lists"])}


def _short(words: str) -> str:
    return words if len(words) <= SHORT else words[:SHORT].rsplit(" ", 1)[0] + " …"


def counts(side: Side) -> dict[str, Any]:
    """Counts that a reader should stop at, the others, and the first failures told in full."""
    record = side.raw["counts"]
    numbers = {name: value for name, value in record.items() if isinstance(value, (int, float))}
    told = [(text.words(name), text.plain(value), name in _ODD and value > 0) for name, value in numbers.items() if value]
    zero = [text.words(name) for name, value in numbers.items() if not value]
    return {"told": told, "zero": zero, "failures": list(record.get("failures") or [])}


def settings(side: Side) -> list[tuple[str, str]]:
    """Settings that were set, and what the scorer is."""
    record, system = side.raw.get("settings") or {}, side.raw["system"]
    out = [(text.words(name), text.plain(record[name])) for name in _SETTINGS if record.get(name) is not None]
    out += [
        (f"scorer: {text.words(name)}", text.plain(system[name]))
        for name in ("scale", "reads_lists", "windows")
        if system.get(name) is not None
    ]
    return out
