"""Raters side by side: the grades of every rater for the same documents, one after the other, and the scale of each.

A rater without a scale (`scale` None) only orders documents: scores of a scorer, whose numbers are no grades.

Axes: Q lists, D documents (all lists, one list after the other). A missing grade is nan here and never a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steadyrank.errors import ConfigError, InputError
from steadyrank.judging.base import JudgedList
from steadyrank.records import RankingExample

JUDGE_TOP = 3  # the scale of our judges' prompts


@dataclass(frozen=True, slots=True)
class Scale:
    """Grades run from 0 to `top`; from `relevant` on a document counts as relevant."""

    top: int
    relevant: float


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists that are studied.

    list_D:   the list of each document.
    sources_Q: the dataset of each list, `unnamed` where it has none.
    unit_Q:   what is resampled: lists of one group share a number. Numbers follow the names, so that the order of the file decides nothing.
    """

    ids_Q: tuple[str, ...]
    sources_Q: tuple[str, ...]
    unit_Q: np.ndarray
    list_D: np.ndarray
    place_D: np.ndarray  # the candidate's place in its list
    not_judged: int  # lists of the file that no judge has a row for

    @property
    def sizes_Q(self) -> np.ndarray:
        """Candidates of each list."""
        return np.bincount(self.list_D, minlength=len(self.ids_Q))


@dataclass(frozen=True, slots=True)
class Rater:
    """One rater's grades, nan where there is none, and what its rows left open."""

    name: str
    grades_D: np.ndarray
    scale: Scale | None  # None: ranks only
    lists_missing: int  # studied lists without a row
    elsewhere: int  # rows for lists that are not studied


def lay_lists(examples: Sequence[RankingExample], judged: Mapping[str, Sequence[JudgedList]]) -> tuple[Lists, list[RankingExample]]:
    """The lists that at least one judge has a row for; other lists are counted and left out."""
    known = {row.example_id for rows in judged.values() for row in rows}
    kept = [example for example in examples if example.id in known]
    if not kept:
        raise InputError("no judged list is among the lists given; judge and compare the same file")
    labels = [f"group {e.group}" if e.group is not None else f"query {e.id}" for e in kept]
    sizes = [len(example.candidates) for example in kept]
    lists = Lists(
        ids_Q=tuple(example.id for example in kept),
        sources_Q=tuple(example.source or "unnamed" for example in kept),
        unit_Q=np.unique(labels, return_inverse=True)[1],
        list_D=np.repeat(np.arange(len(kept)), sizes),
        place_D=np.concatenate([np.arange(size) for size in sizes]),
        not_judged=len(examples) - len(kept),
    )
    return lists, kept


def gold(examples: Sequence[RankingExample]) -> list[JudgedList]:
    """The grades of the lists themselves; negative ones are unjudged, and so is a list without grades."""
    out = []
    for example in examples:
        grades = example.relevance or [None] * len(example.candidates)
        out.append(JudgedList(example.id, tuple(None if grade is None or grade < 0 else grade for grade in grades)))
    return out


def grades_of(name: str, rows: Sequence[JudgedList], lists: Lists) -> tuple[np.ndarray, int, int]:
    """(grades_D, studied lists without a row, rows for other lists) of one rater."""
    found: dict[str, JudgedList] = {}
    for row in rows:
        if row.example_id in found:
            raise InputError(f"{name!r} holds two rows for list {row.example_id!r}; keep one of them")
        found[row.example_id] = row
    parts, missing = [], 0
    for example_id, size in zip(lists.ids_Q, lists.sizes_Q, strict=True):
        one = found.pop(example_id, None)
        missing += one is None
        if one is not None and len(one.grades) != size:
            raise InputError(
                f"{name!r} has {len(one.grades)} grades for the {size} candidates of list {example_id!r}; judge this file anew"
            )
        parts += [math.nan] * size if one is None else [math.nan if grade is None else float(grade) for grade in one.grades]
    return np.array(parts, dtype=np.float64), missing, len(found)


def make_scale(
    name: str, grades_D: np.ndarray, lists: Lists, *, top: int | None, relevant: float | None, like: int | None = None
) -> tuple[Scale, str]:
    """The scale of a rater, and a note where it was guessed (else empty).

    top:      given, or a judge's own 0-3. With `like` (the judges' top) it is the top of given labels: 1 where no grade is above 1, `like`
              where all fit below it, else the largest grade.
    relevant: given, or half of the scale and above.
    """
    highest = float(np.nanmax(grades_D)) if not np.isnan(grades_D).all() else 0.0
    note = ""
    if top is None and like is not None:
        top = 1 if highest <= 1 else like if highest <= like else math.ceil(highest)
        note = f"the scale of {name} is taken as 0-{top} (its largest grade is {highest:g}); --scale {name}=TOP says otherwise"
    elif top is None:
        top = JUDGE_TOP
        if 0 < highest <= 1:
            note = f"no grade of {name} lies above {highest:g} on the scale 0-{top}; if it grades 0-1, give --scale {name}=1"
    if top < 1:
        raise ConfigError(f"the scale of {name!r} ends at {top}; give a highest grade of at least 1")
    _check_range(name, grades_D, lists, top)
    relevant = top / 2 if relevant is None else relevant
    if not 0 < relevant <= top:
        raise ConfigError(f"{name!r} counts as relevant from grade {relevant:g}; give a grade above 0 and at most {top}")
    return Scale(top, relevant), note


def _check_range(name: str, grades_D: np.ndarray, lists: Lists, top: int) -> None:
    wrong = np.flatnonzero(~np.isnan(grades_D) & ~((grades_D >= 0) & (grades_D <= top)))
    if len(wrong):
        at = wrong[0]
        raise InputError(
            f"{name!r} gave grade {grades_D[at]:g} to candidate {lists.place_D[at]} of list {lists.ids_Q[lists.list_D[at]]!r}, "
            f"outside 0-{top}; give its highest grade with --scale {name}=TOP, or --ranks {name} if it only orders documents"
        )


def levels(grades_D: np.ndarray, scale: Scale, top: int) -> np.ndarray:
    """Grades as whole levels 0..top of a scale at most as fine: stretched linearly, rounded half up; -1 where missing."""
    level_D = np.floor(grades_D * top / scale.top + 0.5)
    return np.where(np.isnan(level_D), -1, level_D).astype(np.int64)


def relevance(grades_D: np.ndarray, scale: Scale) -> np.ndarray:
    """1 where relevant, 0 where not, -1 where missing."""
    return np.where(np.isnan(grades_D), -1, grades_D >= scale.relevant).astype(np.int64)
