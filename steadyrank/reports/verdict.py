"""The headline in words, from the comparison files alone: what the student gains over its start, and where it stands.

A gain or a loss is said only where the 95% interval of the paired difference lies on one side of zero; else "no clear change".
"""

from __future__ import annotations

from collections.abc import Callable

from steadyrank.reports import text
from steadyrank.reports.read import Difference, Study, SystemInfo

_VERBS = {"up": ("gains", "over"), "down": ("scores", "against"), "flat": ("shows no clear change:", "from")}


def lead_student(study: Study) -> SystemInfo | None:
    """The student that the flips are about, else the first one listed."""
    students = study.with_role("student")
    named = {flips.get("a") for flips in study.flips.values() if flips}
    return next((student for student in students if student.name in named), students[0] if students else None)


def sentences(study: Study) -> list[str]:
    """The first is the headline; each of the others one more comparison. Never empty."""
    student = lead_student(study)
    out: list[str] = []
    if student is not None:
        name = f"The student ({student.name})" if len(study.with_role("student")) > 1 else "The student"
        out += _against(study, name, lambda split: study.against_start(split, student.name), "its start", is_first=True)
        if not out:
            out.append(f"{name} was not compared with its start, so no gain is claimed.")
        for other in study.systems:
            if other.role in ("baseline", "teacher"):
                out += _against(study, name, lambda split, b=other.name: study.compared(split, student.name, b), _named(other))  # type: ignore[misc]
    for teacher in study.with_role("teacher"):
        out += _against(study, "The teacher", lambda split, a=teacher.name: study.against_start(split, a), "its own start")  # type: ignore[misc]
    return out or ["This study holds no comparison of a trained system with its start."]


def _named(system: SystemInfo) -> str:
    return "the teacher" if system.role == "teacher" else system.label


def _against(study: Study, subject: str, find: Callable[[str], Difference | None], what: str, *, is_first: bool = False) -> list[str]:
    pairs = [(split.label, item) for split in study.splits if (item := find(split.name)) is not None]
    unit = f" {text.measure(study.measure)}" if is_first else ""
    clauses: list[str] = []
    for way, (verb, link) in _VERBS.items():
        amounts: list[str] = []
        for label, item in pairs:
            if text.direction(item.difference) == way:
                value = f"{text.signed(item.difference.mean)} {text.span(item.difference, is_signed=True)}".strip()
                amounts.append(f"{value}{unit} {'' if clauses or amounts else f'{link} {what} '}{_place(label)}")
                unit = ""
        if amounts:
            clauses.append(f"{verb} {' and '.join(amounts)}")
    return [f"{subject} {', but '.join(clauses)}."] if clauses else []


def _place(label: str) -> str:
    lower = label.lower()
    return lower if lower.startswith("in-") else f"on {lower} lists"
