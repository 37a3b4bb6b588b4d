"""What a verdict says after its headline: each sentence one finding, with its numbers and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

MISSING_LIMIT, MISSING_NOTED = 0.20, 0.02
_DATASET_LISTS = 10  # a smaller dataset is not called the weakest: its interval is too rough
Cell = Mapping[str, Any]


def sentences(comparison: Mapping[str, Any], *, again: Mapping[str, Any] | None, swap: Mapping[str, Any] | None) -> list[str]:
    """Those that apply."""
    told = (
        _missing(comparison),
        _accuracy(comparison),
        _direction(comparison),
        _blind(comparison),
        _weakest(comparison),
        _again(again),
        _swap(swap),
    )
    return [line for line in told if line]


def _missing(comparison: Mapping[str, Any]) -> str:
    cell = comparison["overall"]["missing_b"]
    if not cell["value"]:
        return "It graded every document."
    loud = " That is too much to build on: what is missing is rarely missing at random." if cell["value"] > MISSING_LIMIT else ""
    return f"{percent(cell)} of documents have no grade of it and count nowhere here.{loud}"


def _accuracy(comparison: Mapping[str, Any]) -> str:
    cell, references = comparison["overall"]["accuracy"], comparison["references"]
    if cell["value"] is None:
        return ""
    random, constant = references["random"]["accuracy"], references["constant"]["accuracy"]
    told = (
        f"Its grade is that of {comparison['a']} for {percent(cell)} of documents; drawing its grades by lot would give {random:.0%}, "
        f"always giving grade {references['constant']['level']} would give {constant:.0%}."
    )
    beaten = constant >= cell["value"]
    return told + (" A judge that reads nothing is right at least as often." if beaten else "")


def _direction(comparison: Mapping[str, Any]) -> str:
    if not comparison["graded"]:
        return ""
    (_, over), (under, _) = comparison["binary"]
    wrong = over + under
    if not wrong:
        return "On relevance it makes no error." if comparison["documents"] else ""
    shift = comparison["overall"]["difference"]["value"]
    moved = f"{abs(shift):.2f} {'higher' if shift > 0 else 'lower'}"
    by = f"; on the scale 0-{len(comparison['levels']) - 1} it grades {moved} on average"
    if abs(over - under) <= 0.2 * wrong:
        return f"Of its {wrong} errors on relevance {over} are false positives and {under} false negatives{by}."
    way, most = (
        ("too generous", f"{over} of {wrong} errors on relevance are false positives")
        if over > under
        else ("too strict", f"{under} of {wrong} errors on relevance are false negatives")
    )
    return f"It is {way}: {most}{by}."


def _blind(comparison: Mapping[str, Any]) -> str:
    lists = comparison["lists"]
    if not lists["blind"]:
        return ""
    cells = comparison["overall"]
    kept, counted = cells["spearman_query"]["value"], cells["spearman_query_counted"]["value"]
    told = f"In {lists['blind']} of {lists['ordered'] + lists['blind']} lists it gives every document the same grade; "
    if kept is None:
        return told + "in no list does it tell documents apart."
    return told + f"its mean Spearman is {two(kept)} without them and {two(counted)} with each counted as 0."


def _weakest(comparison: Mapping[str, Any]) -> str:
    """The weakest and the strongest dataset, where their intervals stay apart when widened for the number of pairs to choose from."""
    statistic, write = ("kappa_quadratic", value) if comparison["graded"] else ("pairs", percent)
    found = {
        name: cells[statistic]
        for name, cells in comparison["by_source"].items()
        if cells[statistic]["value"] is not None and comparison["lists_by_source"][name] >= _DATASET_LISTS
    }
    if len(found) < 2:
        return ""
    worst = min(found, key=lambda name: (found[name]["value"], name))
    best = max(found, key=lambda name: (found[name]["value"], name))
    if found[worst]["high"] is None or found[best]["low"] is None:
        return ""
    wider = _wider(len(found) * (len(found) - 1) // 2)
    reach_up, reach_down = found[worst]["high"] - found[worst]["value"], found[best]["value"] - found[best]["low"]
    if found[worst]["value"] + wider * reach_up >= found[best]["value"] - wider * reach_down:
        return ""
    told = "κ is" if comparison["graded"] else "pairs ordered alike are"
    return f"It differs between datasets: {told} {write(found[worst])} on {worst} and {write(found[best])} on {best}."


def _wider(pairs: int) -> float:
    """How much wider a 95% interval is when it must hold for so many pairs at once (Bonferroni, of a normal law)."""
    normal = NormalDist()
    return normal.inv_cdf(1 - 0.025 / pairs) / normal.inv_cdf(0.975)


def _again(again: Mapping[str, Any] | None) -> str:
    if again is None or again["overall"]["accuracy"]["value"] is None:
        return ""
    return f"A second run gives the same grade to {percent(again['overall']['accuracy'])} of documents."


def _swap(swap: Mapping[str, Any] | None) -> str:
    if swap is None or swap["values"]["consistent"]["value"] is None:
        return ""
    cells = swap["values"]
    told = f"When two documents change places it keeps its preference in {percent(cells['consistent'])} of pairs"
    first = cells["first_won"]
    if first["low"] is not None and not first["low"] <= 0.5 <= first["high"]:
        told += f", and {'prefers' if first['value'] > 0.5 else 'avoids'} the one shown first ({percent(first)}; without bias 50%)"
    return told + "."


def percent(cell: Cell) -> str:
    """`64% [60, 68]`; one decimal below 10%, so that small rates do not read as none."""
    digits = 0 if cell["value"] >= 0.0995 or cell["value"] == 0 else 1
    told = f"{100 * cell['value']:.{digits}f}%"
    if cell["low"] is None:
        return told
    return f"{told} [{100 * cell['low']:.{digits}f}, {100 * cell['high']:.{digits}f}]"


def value(cell: Cell) -> str:
    """`0.71 [0.69, 0.74]`"""
    told = two(cell["value"])
    return told if cell["low"] is None else f"{told} [{two(cell['low'])}, {two(cell['high'])}]"


def two(number: float) -> str:
    """Two decimals; what rounds to zero has no sign."""
    return f"{round(number, 2) + 0.0:.2f}"
