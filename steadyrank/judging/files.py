"""Judgments as JSON lines (`steadyrank.judgments/1`): the grades of one example a line, canonical order, null where there is none.

Reading is strict where a guess would change results: an example judged twice by one judge, a grade that is no number, a file of several
judges without a choice. Unknown extra keys (`candidates`, `replies`) are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from steadyrank.errors import InputError, unknown_name
from steadyrank.files import read_jsonl, write_jsonl
from steadyrank.judging.base import JudgedList

SCHEMA = "steadyrank.judgments/1"
KEYS = ("schema", "example_id", "judge", "grades")


def save_judgments(path: str | Path, judged: Iterable[JudgedList], *, judge: str) -> int:
    """Write judgments; `judge` names those that name no judge themselves. Returns how many lines."""
    return write_jsonl(path, (judged_to_json(row, judge=judge) for row in judged))


def load_judgments(path: str | Path, *, judge: str | None = None) -> list[JudgedList]:
    """The judgments of a file by one judge; `judge` chooses where the file holds several."""
    out: list[JudgedList] = []
    seen: dict[tuple[str, str], int] = {}
    for line, row in read_jsonl(path):
        try:
            found = judged_from_json(row)
            first = seen.setdefault((found.judge, found.example_id), line)
            if first != line:
                raise InputError(f"{found.example_id!r} stands on line {first} already; keep one line an example", field="example_id")
        except InputError as error:
            raise error.at(path=path, line=line) from None
        out.append(found)
    judges = list(dict.fromkeys(row.judge for row in out))
    if not out:
        raise InputError("holds no judgment", path=path)
    if judge is None and len(judges) > 1:
        raise InputError(f"holds judgments of {len(judges)} judges; choose one with judge: {', '.join(judges)}", path=path)
    if judge is not None and judge not in judges:
        raise unknown_name(f"judge in {path}", judge, judges)
    return [row for row in out if judge is None or row.judge == judge]


def judged_to_json(judged: JudgedList, *, judge: str = "") -> dict[str, Any]:
    """The JSON object of one judgment."""
    grades = [None if grade is None else _whole(grade) for grade in judged.grades]
    return {"schema": SCHEMA, "example_id": judged.example_id, "judge": judged.judge or judge, "grades": grades, **judged.extra}


def judged_from_json(row: Mapping[str, Any]) -> JudgedList:
    """One judgment of its JSON object."""
    if row.get("schema") != SCHEMA:
        told = "is missing" if row.get("schema") is None else f"is {row['schema']!r}"
        raise InputError(f"{told}; this reader knows {SCHEMA!r}", field="schema")
    for name in ("example_id", "judge"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise InputError(f"must be a name, not {row.get(name)!r}; a judgment needs example_id, judge and grades", field=name)
    if not isinstance(row.get("grades"), list):
        raise InputError(f"must be a list of numbers and nulls, not {row.get('grades')!r}", field="grades")
    grades = tuple(_grade(value, place) for place, value in enumerate(row["grades"]))
    extra = {name: value for name, value in row.items() if name not in KEYS}
    ids = extra.get("candidates")
    if ids is not None and (not isinstance(ids, list) or len(ids) != len(grades)):
        raise InputError(f"must be a list of {len(grades)} ids, one a grade", field="candidates")
    return JudgedList(row["example_id"], grades, judge=row["judge"], extra=extra)


def _grade(value: Any, place: int) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"is {value!r}; give a finite number, or null for a missing grade", field=f"grades[{place}]")
    return float(value)


def _whole(grade: float) -> float:
    return int(grade) if grade == int(grade) else grade
