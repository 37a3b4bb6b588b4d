"""The verdict: a grade by rules that are written here, and sentences made of the numbers and their intervals.

Three disagreements decide, the worst of them: how many document pairs two presentations rank the other way (tau-PSI), how much of the kept
set they do not share (1 - Jaccard at the threshold), and how often they put another document first (top-choice flip, pairwise).

    grade           tau-PSI   1 - Jaccard   top-choice flip
    steady           <= .02         <= .05            <= .05
    mostly steady    <= .08         <= .20            <= .20
    unsteady         above         above             above

The means give the grade; `best` and `worst` are what the ends of the 95% intervals would give. Before steadiness come three findings that
make it worthless or complete: a scorer that gives all candidates of every list the same score is useless however steady; one whose first
measure does not lie above a random order is no better than chance; one whose scores never move is exactly steady.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

GRADES = ("steady", "mostly steady", "unsteady")
LIMITS = {"tau_psi": (0.02, 0.08), "kept_set": (0.05, 0.20), "top_choice": (0.05, 0.20)}
_NAMES = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}
_BLAME = {
    "slot": "the slot a document stands in",
    "window": "the prompt it falls into",
    "remainder": "its companions there (an upper bound)",
}
Interval = Mapping[str, Any]


def judge(parts: Mapping[str, Any]) -> dict[str, Any]:
    """`{grade, steadiness, best, worst, headline, sentences, disagreements, rules}` of the parts of an audit."""
    disagreements = _disagreements(parts)
    steady, best, worst = (_grade(disagreements, end) for end in ("mean", "low", "high"))
    still = parts["steadiness"]["moved_lists"]["mean"] == 0
    grade, headline = _finding(parts, still=still, steady=steady)
    told = [_exact(parts)] if still and grade != "useless" else [] if still else [_kept(parts), _moved(parts)]
    told += [_quality(parts)] if grade not in ("useless", "no better than chance", "worse than chance") else []
    told += [_order_gives(parts)]
    sentences = [line for line in (*told, _cause(parts), _reader(parts), _probes(parts)) if line]
    if not still and best != worst:
        sentences.append(f"The intervals leave room from {best} to {worst}.")
    return {
        "grade": grade,
        "steadiness": "exactly steady" if still else steady,
        "best": best,
        "worst": worst,
        "headline": headline,
        "sentences": [line for line in sentences if line != headline],
        "disagreements": disagreements,
        "limits": {name: list(limits) for name, limits in LIMITS.items()},
    }


def main_point(parts: Mapping[str, Any]) -> dict[str, Any] | None:
    """The operating point that the headline speaks of: the given, else the F1-tuned, else the matched-retention one."""
    points = {point["name"]: point for point in (parts.get("threshold") or {}).get("points", [])}
    return next((points[name] for name in ("given", "f1", "retention") if name in points), None)


def _disagreements(parts: Mapping[str, Any]) -> dict[str, Any]:
    out = {"tau_psi": _ends(parts["steadiness"]["tau_psi"])}
    point = main_point(parts)
    if point is not None and point["jaccard"]["mean"] is not None:
        kept = point["jaccard"]
        out["kept_set"] = {"mean": 1 - kept["mean"], "low": 1 - kept["high"], "high": 1 - kept["low"]}
    if parts.get("preference"):
        out["top_choice"] = _ends(parts["preference"]["top_flip"])
    return {name: value for name, value in out.items() if value["mean"] is not None}


def _ends(interval: Interval) -> dict[str, Any]:
    return {end: interval[end] for end in ("mean", "low", "high")}


def _grade(disagreements: Mapping[str, Interval], end: str) -> str:
    """The worst grade of all disagreements, read at one end of their intervals."""
    reached = [sum(value[end] > limit for limit in LIMITS[name]) for name, value in disagreements.items()]
    return GRADES[max(reached, default=0)]


def _finding(parts: Mapping[str, Any], *, still: bool, steady: str) -> tuple[str, str]:
    if parts["steadiness"]["tie_rate"]["mean"] == 1:
        return "useless", "Useless: the same score for everything. No order of documents can be told from another."
    if parts.get("quality"):
        name, above = next(iter(parts["quality"]["above_chance"].items()))
        if above["low"] is not None and above["low"] <= 0:
            measured = parts["quality"]["measures"][name]["mean"]
            chance = parts["quality"]["references"][name]["random"]["mean"]
            worse = above["high"] < 0
            told = "Worse than chance" if worse else "No better than chance"
            lists = parts["quality"]["lists"]
            return (
                "worse than chance" if worse else "no better than chance",
                f"{told}: {name} is {score(measured)} where a random order gets {chance:.3f}, on {lists} lists.",
            )
    if still:
        return "exactly steady", _exact(parts)
    return steady, _kept(parts) or _moved(parts)


def _exact(parts: Mapping[str, Any]) -> str:
    data, system = parts["data"], parts["system"]
    why = "" if system.get("reads_lists") is not False else " It cannot see the order, so this holds by construction."
    told = f"{data['presentations']} presentations of the same {_documents(data)} gave the same scores, on all {data['lists']} lists"
    return f"Exactly steady: {told}.{why}"


def _kept(parts: Mapping[str, Any]) -> str:
    point = main_point(parts)
    if point is None or point["jaccard"]["mean"] is None:
        return ""
    return f"At threshold {point['threshold']:.3g}, {_two(parts['data'])} agree on {percent(point['jaccard'])} of the kept set."


def _ranked(parts: Mapping[str, Any]) -> str:
    psi = parts["steadiness"]["tau_psi"]
    if psi["mean"] is None:
        return ""
    chance = ", no better agreement than chance" if psi["high"] >= 0.48 else ""
    two = _two(parts["data"])
    return f"{two[0].upper()}{two[1:]} rank {percent(psi)} of document pairs the other way round{chance}."


def _moved(parts: Mapping[str, Any]) -> str:
    ranked = _ranked(parts)
    if not parts.get("preference") or parts["preference"]["top_flip"]["mean"] is None:
        return ranked
    flip = f"put another document first in {percent(parts['preference']['top_flip'])} of cases"
    return f"{ranked[:-1]} and {flip}." if ranked else ""


def _quality(parts: Mapping[str, Any]) -> str:
    if not parts.get("quality"):
        return "The lists hold no grades, so nothing is said about quality."
    name, row = next(iter(parts["quality"]["measures"].items()))
    chance = parts["quality"]["references"][name]["random"]["mean"]
    return f"Under the same {_what(parts['data'])} {name} is {score(row['mean'])}; a random order gets {chance:.3f}."


def _order_gives(parts: Mapping[str, Any]) -> str:
    """What quality in the order of the file owes to that order, where the interval says so."""
    if not parts.get("quality"):
        return ""
    name, row = next(iter(parts["quality"]["measures"].items()))
    lost = row["lost_by_shuffling"]
    if lost["low"] is None or lost["low"] <= 0 <= lost["high"]:
        return ""
    way = "higher" if lost["mean"] > 0 else "lower"
    return f"In the order of the file {name} is {abs(lost['mean']):.3f} {way}: that part belongs to the order."


def _cause(parts: Mapping[str, Any]) -> str:
    if not parts.get("causes"):
        return ""
    shares = {name: share for name, share in parts["causes"]["shares"].items() if share is not None}
    if not shares:
        return ""
    ranked = sorted(shares, key=lambda name: -shares[name])
    told = [f"{max(0.0, shares[name]):.0%} to {_BLAME[name]}" for name in ranked if shares[name] >= 0.01]
    return "Of what moves, " + _listed(told).replace(" to ", " is due to ", 1) + "." if told else ""


def _reader(parts: Mapping[str, Any]) -> str:
    reader = parts.get("reader")
    if not reader or reader["answer_flip"]["mean"] is None:
        return ""
    return f"A reader of the top {reader['k']} gives another answer in {percent(reader['answer_flip'])} of pairs of {_what(parts['data'])}."


def _probes(parts: Mapping[str, Any]) -> str:
    told = []
    pool, batching = parts.get("pool"), parts.get("batching")
    if pool and pool["top_k_turnover"]["mean"]:
        told.append(f"Dropping one candidate changes the top {pool['top_k']} of the others in {percent(pool['top_k_turnover'])} of lists.")
    injection = parts.get("injection")
    if injection and injection["places_difference"]["low"] > 0:
        row = injection["places_difference"]
        told.append(
            f"A sentence that asks for a high grade lifts an irrelevant document by {row['mean']:.2g} "
            f"[{row['low']:.2g}, {row['high']:.2g}] places more than a neutral one."
        )
    if batching and batching["moved_lists"]:
        told.append(f"Other batches of the same prompts move scores by up to {batching['largest']:.2g}.")
    return " ".join(told)


def _what(data: Mapping[str, Any]) -> str:
    """What differs between presentations."""
    return "slot markers" if data.get("kind") == "markers" else "orders"


def _two(data: Mapping[str, Any]) -> str:
    return (
        f"two sets of slot markers on the same {_documents(data)}"
        if data.get("kind") == "markers"
        else f"two orders of the same {_documents(data)}"
    )


def _documents(data: Mapping[str, Any]) -> str:
    low, high = data["pool_sizes"]
    return f"{_NAMES.get(low, low)} documents" if low == high and low > 1 else "documents"


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def percent(interval: Interval) -> str:
    """`64% [60, 68]`; one decimal below 10%, so that small rates do not read as none."""
    digits = 0 if interval["mean"] >= 0.1 or interval["mean"] == 0 else 1
    mean, low, high = (f"{100 * interval[end]:.{digits}f}" for end in ("mean", "low", "high"))
    return f"{mean}% [{low}, {high}]"


def score(interval: Interval) -> str:
    """`0.712 [0.690, 0.735]`"""
    return f"{interval['mean']:.3f} [{interval['low']:.3f}, {interval['high']:.3f}]"
