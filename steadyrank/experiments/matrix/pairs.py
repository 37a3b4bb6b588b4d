"""What is compared with what: families of pairs, each corrected by itself (Holm), because each answers a question of its own.

methods   every method against the named one, on the same student under the same setting
settings  every setting against the default one
start     every arm against what it was trained from
and one family for each question of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steadyrank.errors import unknown_name
from steadyrank.experiments.matrix.plan import Plan, System
from steadyrank.experiments.matrix.spec import Question


@dataclass(frozen=True)
class Family:
    """Pairs (a, b) of systems: is a better than b?"""

    name: str
    title: str
    pairs: tuple[tuple[str, str], ...]


def families_of(plan: Plan) -> list[Family]:
    """The families that have a pair; the questions of the matrix first."""
    matrix, arms = plan.matrix, [system for system in plan.systems if system.role == "student"]
    base, default = matrix.base_method, matrix.default_setting
    label = next(method.label or method.name for method in matrix.methods if method.name == base)
    found = [Family(question.name, question.ask, _asked(plan, question, arms)) for question in matrix.questions]
    found.append(Family("methods", f"Every method against {label}", _others(arms, "method", base)))
    if default is not None:
        title = f"Every setting against {default.label or default.name}"
        found.append(Family("settings", title, _others(arms, "setting", default.name)))
    starts = tuple((arm.name, arm.start) for arm in arms if arm.start is not None)
    found.append(Family("start", "Every student against itself before training", starts))
    return [family for family in found if family.pairs]


def _others(arms: Sequence[System], axis: str, base: str) -> tuple[tuple[str, str], ...]:
    """Every arm against the one that differs from it in this axis only, and has `base` there."""
    by_parts = {_parts(arm): arm.name for arm in arms}
    out = []
    for arm in arms:
        other = by_parts.get(tuple(base if name == axis else part for name, part in zip(_AXES, _parts(arm), strict=True)))
        if other is not None and other != arm.name:
            out.append((arm.name, other))
    return tuple(out)


_AXES = ("method", "student", "setting")


def _parts(system: System) -> tuple[str | None, ...]:
    arm = system.arm
    assert arm is not None
    return tuple(part.name if part is not None else None for part in (arm.method, arm.student, arm.setting))


def _asked(plan: Plan, question: Question, arms: Sequence[System]) -> tuple[tuple[str, str], ...]:
    """The named pairs; a method's name stands for its arms, each with the arm of the other that agrees in student and setting."""
    known = {system.name for system in plan.systems} | {method.name for method in plan.matrix.methods}
    out: dict[tuple[str, str], None] = {}
    for pair in question.pairs:
        for name in pair:
            if name not in known:
                raise unknown_name(f"questions.{question.name}: system", name, known)
        out |= dict.fromkeys((a, b) for a in _named(pair[0], arms) for b in _named(pair[1], arms) if a != b and _agree(a, b, pair, arms))
    return tuple(out)


def _named(name: str, arms: Sequence[System]) -> list[str]:
    return [arm.name for arm in arms if _parts(arm)[0] == name and arm.name != name] or [name]


def _agree(a: str, b: str, pair: tuple[str, str], arms: Sequence[System]) -> bool:
    """Two arms found by the names of their methods must agree in student and setting; what was named itself is compared as it is."""
    parts = {arm.name: _parts(arm) for arm in arms}
    both_found = a not in pair and b not in pair
    return not both_found or parts[a][1:] == parts[b][1:]
