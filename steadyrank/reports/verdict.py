"""The headline in words, from the comparison files alone: what the student gains over its start, and where it stands.

"Gains" and "loses" are said only where the 95% interval of the paired difference lies on one side of zero.
"""

from __future__ import annotations

from collections.abc import Callable

from steadyrank.reports import text
from steadyrank.reports.read import Difference, Study, SystemInfo

_VERBS = {"up": "gains", "down": "loses", "flat": "shows no clear change:"}


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
        name = f"the student ({student.name})" if len(study.with_role("student")) > 1 else "the student"
        out += _against(study, name, lambda split: study.against_start(split, student.name), "its start", is_first=True)
        if not out:
            out.append(f"{name[:1].upper()}{name[1:]} was not compared with its start, so no gain is claimed.")
        for other in study.systems:
            if other.role in ("baseline", "teacher"):
                out += _against(study, name, lambda split, b=other.name: study.compared(split, student.name, b), _named(other))  # type: ignore[misc]
    for teacher in study.with_role("teacher"):
        out += _against(study, "the teacher", lambda split, a=teacher.name: study.against_start(split, a), "its own start")  # type: ignore[misc]
    return out or ["This study holds no comparison of a trained system with its start."]


def _named(system: SystemInfo) -> str:
    return "the teacher" if system.role == "teacher" else system.label


def _against(study: Study, subject: str, find: Callable[[str], Difference | None], what: str, *, is_first: bool = False) -> list[str]:
    pairs = [(split.label, item) for split in study.splits if (item := find(split.name)) is not None]
    if not pairs:
        return []
    groups: dict[str, list[str]] = {way: [] for way in _VERBS}
    unit = f" {text.measure(study.measure)}" if is_first else ""
    for way, found in groups.items():
        for label, item in pairs:
            if text.direction(item.difference) == way:
                amount = f"{text.signed(item.difference.mean)} {text.span(item.difference, is_signed=True)}".strip()
                found.append(f"{amount}{unit} {_place(label)}")
                unit = ""
    clauses = [f"{_VERBS[way]} {' and '.join(found)}" for way, found in groups.items() if found]
    return [f"Against {what}, {subject} {'; it '.join(clauses)}."]


def _place(label: str) -> str:
    lower = label.lower()
    return lower if lower.startswith("in-") else f"on {lower} lists"
