"""Cases to read: lists where two systems put different documents on top, those first in which the seeds agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steadyrank.evaluation import find_flips
from steadyrank.experiments.matrix.pairs import Family
from steadyrank.records import RankingExample, ScoredList

KEPT = 12  # cases of a pair and split, whatever their direction
Scores = Mapping[str, Mapping[str, Mapping[int, list[ScoredList]]]]  # split, system, seed


def mined(
    families: Sequence[Family], scores: Scores, lists: Mapping[str, Sequence[RankingExample]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file, cases) of every pair of every family and split."""
    for split, examples in lists.items():
        for a, b in dict.fromkeys(pair for family in families for pair in family.pairs):
            if a in scores[split] and b in scores[split]:
                yield f"flips/{split}/{a}..{b}.json", flips_of(scores[split][a], scores[split][b], examples, a=a, b=b)


def flips_of(
    of_a: Mapping[int, list[ScoredList]], of_b: Mapping[int, list[ScoredList]], examples: Sequence[RankingExample], *, a: str, b: str
) -> dict[str, Any]:
    """The flips of the first seed, with `seeds` (how many were compared) and `agree` (in how many the same example flips in the same
    direction). Most agreement first, then the largest gap in grade. A system without seeds stands beside every seed of the other."""
    pairs = [(of_a[s], of_b[s]) for s in of_a if s in of_b] if len(of_a) > 1 and len(of_b) > 1 else []
    pairs = pairs or [(one, two) for one in of_a.values() for two in of_b.values()]
    found = [find_flips(one, two, examples, a=a, b=b, limit=None) for one, two in pairs]
    ways = [{row["id"]: _way(row) for row in flips["examples"]} for flips in found]
    rows = [{**row, "agree": sum(seen.get(row["id"]) == _way(row) for seen in ways)} for row in found[0]["examples"]]
    rows.sort(key=lambda row: (-row["agree"], -abs(_gap(row)), row["id"]))
    better, worse = ([row for row in rows if _way(row) == way] for way in (1, -1))
    kept = [row for pair in zip(better, worse) for row in pair] + better[len(worse) :] + worse[len(better) :]
    return {**found[0], "seeds": len(pairs), "examples": kept[:KEPT]}


def _gap(row: Mapping[str, Any]) -> float:
    new, old = (row[side]["relevance"] for side in ("a_top", "b_top"))
    return max(new or 0.0, 0.0) - max(old or 0.0, 0.0)


def _way(row: Mapping[str, Any]) -> int:
    gap = _gap(row)
    return (gap > 0) - (gap < 0)
