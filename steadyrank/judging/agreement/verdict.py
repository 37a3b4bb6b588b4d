"""The verdict on a judge in plain words, by rules that are written here. The thresholds are ours.

Two findings decide, each graded by its value, with 0.5 and 0 as guessing:

    grade                       document pairs ordered as the reference does   quadratically weighted kappa
    good                        >= .80                                          >= .60
    usable with care            >= .65                                          >= .40
    weak                        above guessing                                  above guessing
    no better than guessing     the interval holds .5                           the interval holds 0
    worse than guessing         the interval lies below .5                      the interval lies below 0

The order decides, since a ranking reward is paid by it; worse grades (kappa) take one step off, never below weak. More than 20% of grades
missing leaves "usable with care" at best. A judge with one grade for everything says nothing. Where one of the two gives ranks only, the
order alone decides. `best` and `worst` are what the ends of the intervals would give. .40 and .60 are the edges of "moderate" and
"substantial" of Landis and Koch (1977).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steadyrank.judging.agreement.sentences import MISSING_LIMIT, percent, sentences, value

GRADES = ("good", "usable with care", "weak", "no better than guessing", "worse than guessing", "says nothing")
LIMITS = {"pairs": (0.80, 0.65, 0.5), "kappa_quadratic": (0.60, 0.40, 0.0)}  # good, usable, guessing
UNKNOWN = "not known"
_STEPS = {
    "good": "Good",
    "usable with care": "Usable with care",
    "weak": "Weak",
    "no better than guessing": "This judge is no better than guessing",
    "worse than guessing": "This judge is worse than guessing",
    "says nothing": "This judge says nothing",
    UNKNOWN: "Nothing can be said about this judge",
}
_ADVICE = {
    "weak": " Better than guessing, and most of a reward made of it would be noise.",
    "no better than guessing": " Do not train on it.",
    "worse than guessing": " Its grades point the wrong way. Do not train on it.",
    "says nothing": " Do not train on it.",
}


def verdict(
    comparison: Mapping[str, Any], *, again: Mapping[str, Any] | None = None, swap: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """`{grade, best, worst, order, grades, headline, sentences, limits}` of a comparison of a judge with its reference."""
    cells = comparison["overall"]
    order, level = (grade_of(name, cells[name]) for name in LIMITS)
    grade, best, worst = (_joined(comparison, end) for end in ("value", "high", "low"))
    said = sentences(comparison, again=again, swap=swap)
    if best != worst and grade != "says nothing":
        said.append(f"The intervals leave room from {worst} to {best}.")
    return {
        "grade": grade,
        "best": best,
        "worst": worst,
        "order": order,
        "grades": level,
        "headline": f"{_STEPS[grade]}: {_numbers(comparison, grade)}.{_advice(grade, order, level, is_graded=comparison['graded'])}",
        "sentences": said,
        "limits": {name: list(limits) for name, limits in LIMITS.items()},
    }


def grade_of(name: str, cell: Mapping[str, Any], end: str = "value") -> str:
    """The grade of one finding, read at its value or at one end of its interval; `not known` where it is undefined."""
    good, usable, chance = LIMITS[name]
    if cell["value"] is None or cell["low"] is None:
        return UNKNOWN
    if cell["high"] < chance:
        return "worse than guessing"
    if (cell["low"] if end == "value" else cell[end]) <= chance:
        return "no better than guessing"
    return "good" if cell[end] >= good else "usable with care" if cell[end] >= usable else "weak"


def _joined(comparison: Mapping[str, Any], end: str) -> str:
    """Order and grades together, at one end of their intervals."""
    cells = comparison["overall"]
    if comparison["b_constant"]:
        return "says nothing"
    order, level = (grade_of(name, cells[name], end) for name in LIMITS)
    if UNKNOWN in (order, level):
        found = order if level == UNKNOWN else level
        if (
            comparison["graded"] and level == UNKNOWN and order in GRADES[:2]
        ):  # its grades stand on one side of the scale only: they tell order and nothing else
            found = GRADES[GRADES.index(order) + 1]
    elif GRADES.index(order) >= GRADES.index("weak") or GRADES.index(level) <= GRADES.index(order):
        found = order
    else:
        found = GRADES[GRADES.index(order) + 1]
    if found == "good" and (cells["missing_b"]["value"] or 0) > MISSING_LIMIT:
        return "usable with care"
    return found


def _numbers(comparison: Mapping[str, Any], grade: str) -> str:
    cells = comparison["overall"]
    a = comparison["a"]
    if not comparison["documents"]:
        return f"no document has both its grade and one of {a}"
    if grade == "says nothing":
        return f"it gave the same grade to all {comparison['documents']} documents"
    told = []
    if cells["pairs"]["value"] is not None:
        told.append(f"it orders {percent(cells['pairs'])} of document pairs as {a} does (guessing: 50%)")
    name = "κ" if len(comparison["levels"]) == 2 else "weighted κ"
    kappa = cells["kappa_quadratic"]
    if not comparison["graded"]:
        told.append(kappa["why"].replace(f"{comparison['b']} gives", "it gives", 1))
        return ", ".join(told)
    told.append(f"{name} is undefined ({kappa['why']})" if kappa["value"] is None else f"{name} is {value(kappa)} (guessing: 0)")
    if grade == UNKNOWN and kappa["value"] is not None:
        told.append("and there are too few lists for an interval")
    return ", ".join(told[:2]) + "".join(f", {one}" for one in told[2:])


def _advice(grade: str, order: str, level: str, *, is_graded: bool) -> str:
    if grade in _ADVICE:
        return _ADVICE[grade]
    if not is_graded:
        return " Train on its order, and set no threshold on its numbers." if order in GRADES else ""
    if order in GRADES and (level == UNKNOWN or (level in GRADES and GRADES.index(level) > GRADES.index(order))):
        return " Its order holds better than its grades: train on ranks, and set no threshold on them."
    return ""
