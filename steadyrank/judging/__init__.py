"""Judges grade documents for a query and its instruction; Stage 1 pays rankings by their grades.

`JUDGES` names them. A grade is a number, or None where the judge gave none: a missing grade is never a zero.
"""

from __future__ import annotations

from steadyrank.judging.base import Judge, JudgedList, with_grades
from steadyrank.names import find

JUDGES = {"relevance": "steadyrank.judging.relevance:RelevanceJudge"}

__all__ = ["JUDGES", "Judge", "JudgedList", "load_judge", "with_grades"]


def load_judge(name: str) -> Judge:
    """The judge of this name."""
    return find("judge", name, JUDGES)()
