"""Examples where two scorers put different documents on top, for reading: records of steadyrank.flips/1.

A tie at the top is resolved by canonical order, and marked by `tied_top`. Several presentations of an example: the first is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steadyrank.errors import InputError
from steadyrank.records import RankingExample, ScoredList


def find_flips(
    scored_a: Iterable[ScoredList],
    scored_b: Iterable[ScoredList],
    examples: Iterable[RankingExample],
    *,
    a: str | None = None,
    b: str | None = None,
    limit: int | None = 200,
) -> dict[str, Any]:
    """`{"schema", "a", "b", "counts", "examples"}`; the largest differences in grade first, at most `limit` of them (all are counted)."""
    lists_a, lists_b = _first(scored_a), _first(scored_b)
    rows: list[tuple[float, dict[str, Any]]] = []
    counts = {"examples": 0, "unscored": 0, "flipped": 0, "a_better": 0, "b_better": 0, "equal": 0, "tied_top": 0}
    for example in examples:
        if example.id not in lists_a or example.id not in lists_b:
            counts["unscored"] += 1
            continue
        counts["examples"] += 1
        one, two = lists_a[example.id], lists_b[example.id]
        top_a, top_b = _top(one, example), _top(two, example)
        if top_a == top_b:
            continue
        gap = _grade(example, top_a) - _grade(example, top_b)
        counts["flipped"] += 1
        counts["a_better" if gap > 0 else "b_better" if gap < 0 else "equal"] += 1
        tied = any(item.scores.count(max(item.scores)) > 1 for item in (one, two))
        counts["tied_top"] += tied
        row = {
            "id": example.id, "source": example.source, "instruction": example.instruction, "query": example.query,
            "a_top": _shown(example, one, top_a), "b_top": _shown(example, two, top_b), "tied_top": tied,
        }  # fmt: skip
        rows.append((-abs(gap), row))
    rows.sort(key=lambda item: (item[0], item[1]["id"]))
    names = [name or next((item.scorer for item in lists.values()), "") for name, lists in ((a, lists_a), (b, lists_b))]
    return {"schema": "steadyrank.flips/1", "a": names[0], "b": names[1], "counts": counts, "examples": [row for _, row in rows[:limit]]}


def _first(scored: Iterable[ScoredList]) -> dict[str, ScoredList]:
    out: dict[str, ScoredList] = {}
    for item in scored:
        out.setdefault(item.example_id, item)
    return out


def _top(item: ScoredList, example: RankingExample) -> int:
    if len(item.scores) != len(example.candidates):
        raise InputError(f"example {example.id!r} has {len(example.candidates)} candidates and {len(item.scores)} scores", field="scores")
    return max(range(len(item.scores)), key=lambda place: item.scores[place])


def _grade(example: RankingExample, place: int) -> float:
    return max(example.relevance[place], 0.0) if example.relevance is not None else 0.0


def _shown(example: RankingExample, item: ScoredList, place: int) -> dict[str, Any]:
    relevance = example.relevance[place] if example.relevance is not None else None
    return {"text": example.candidates[place].content, "relevance": relevance, "score": item.scores[place], "index": place}
