"""Does the scorer follow the instruction? Tests on examples that share a query group and its candidates and differ in the instruction.

- `instruction_pairs`: pairs of examples of one group with equal candidates, other instructions and other right documents (those
  of the highest grade above 0). `accuracy`: the top document is right under both; `each`: under either, averaged; `preference`:
  under each instruction its own right document stands above the other's (NevIR's pairwise accuracy, Weller et al. 2024; a scorer
  that ignores instructions gets 0, or 1/4 where it ties them); `same_top`: the top document does not move. `chance` is `accuracy` for a
  constant scorer. Ties count by expectation, the two lists of a pair broken independently.
- `p_mrr`: FollowIR's paired measure (Weller et al. 2024, arXiv 2403.15246) of documents that lose their relevance; -1 to 1.
- `robustness`: InstructIR's Robustness@k (Oh et al. 2024, arXiv 2402.14334): mean over groups of the worst instruction's value.

Groups count alike (each the mean of its pairs); intervals draw groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from steadyrank.errors import InputError
from steadyrank.evaluation.bootstrap import RESAMPLES, intervals
from steadyrank.evaluation.measures import Measure
from steadyrank.evaluation.results import Evaluation, Interval, _Result
from steadyrank.records import RankingExample, ScoredList

ROWS = ("accuracy", "each", "preference", "same_top", "chance")


@dataclass(frozen=True)
class InstructionPairs(_Result):
    """Paired-instruction accuracy of one scorer; means over groups, None where there is no pair; `intervals` holds their 95% intervals."""

    SCHEMA: ClassVar[str] = "steadyrank.instruction_pairs/1"

    system: str
    pairs: int
    groups: int
    accuracy: float | None
    each: float | None
    preference: float | None
    same_top: float | None
    chance: float | None
    intervals: dict[str, Interval]
    by_source: dict[str, dict[str, float]]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class _View:
    """One example by candidate text, so that two pools in another order can be compared."""

    instruction: str | None
    scores: tuple[Mapping[str, float], ...]  # by text, one a presentation
    right: frozenset[str]
    source: str


def instruction_pairs(
    scored: Iterable[ScoredList],
    examples: Iterable[RankingExample],
    *,
    system: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> InstructionPairs:
    """Whether the right document moves to the top when the instruction changes."""
    lists: dict[str, list[ScoredList]] = {}
    for item in scored:
        lists.setdefault(item.example_id, []).append(item)
    counts = dict.fromkeys(("unscored", "ungrouped", "repeated_texts", "no_right_document", "same_right_documents"), 0)
    groups: dict[tuple[str, frozenset[str], str], list[_View]] = {}
    for example in examples:
        view = _view(example, lists.get(example.id, []), counts)
        if view is not None:
            groups.setdefault((str(example.group), frozenset(example.documents), example.query), []).append(view)
    rows, names, sources = [], [], []
    for key, views in groups.items():
        for one, two in combinations(views, 2):
            if one.instruction == two.instruction:
                continue
            if one.right == two.right:
                counts["same_right_documents"] += 1
                continue
            rows.append(_pair(one, two))
            names.append(key[0])
            sources.append(one.source)
    name = system or next((items[0].scorer for items in lists.values()), "run")
    if not rows:
        return InstructionPairs(name, 0, 0, None, None, None, None, None, {}, {}, counts)
    means, amount = _group_means(np.array(rows), names)
    micro, _ = intervals(means, resamples=resamples, seed=seed)
    found = dict(zip(ROWS, micro, strict=True))
    return InstructionPairs(
        system=name,
        pairs=len(rows),
        groups=amount,
        intervals=found,
        by_source=_by_source(np.array(rows), names, sources),
        counts=counts,
        **{row: value["mean"] for row, value in found.items()},
    )


def _view(example: RankingExample, lists: list[ScoredList], counts: dict[str, int]) -> _View | None:
    texts, grades = example.documents, [max(grade, 0.0) for grade in example.relevance or ()]
    reason = (
        "unscored" if not lists else "ungrouped" if example.group is None
        else "repeated_texts" if len(set(texts)) < len(texts) else "no_right_document" if not any(grades) else None
    )  # fmt: skip
    if reason is not None:
        counts[reason] += 1
        return None
    if any(len(item.scores) != len(texts) for item in lists):
        raise InputError(f"example {example.id!r} has {len(texts)} candidates and another number of scores", field="scores")
    right = frozenset(text for text, grade in zip(texts, grades, strict=True) if grade == max(grades))
    return _View(
        example.instruction, tuple(dict(zip(texts, item.scores, strict=True)) for item in lists), right, example.source or "unnamed"
    )


def _pair(one: _View, two: _View) -> list[float]:
    tops = [[_top(scores) for scores in view.scores] for view in (one, two)]
    hit_one, hit_two = (float(np.mean([len(top & view.right) / len(top) for top in of])) for view, of in zip((one, two), tops, strict=True))
    same = float(np.mean([len(a & b) / (len(a) * len(b)) for a in tops[0] for b in tops[1]]))
    prefer = _prefers(one, two.right) * _prefers(two, one.right)
    size = len(one.scores[0])
    return [hit_one * hit_two, (hit_one + hit_two) / 2, prefer, same, len(one.right) * len(two.right) / size**2]


def _top(scores: Mapping[str, float]) -> frozenset[str]:
    best = max(scores.values())
    return frozenset(text for text, score in scores.items() if score == best)


def _prefers(view: _View, other: frozenset[str]) -> float:
    """Chance that a document right here alone stands above one that is right there alone; 1 where there is no such pair to confuse."""
    cases = [(here, there) for here in view.right - other for there in other - view.right]
    if not cases:
        return 1.0
    return float(np.mean([(s[here] > s[there]) + 0.5 * (s[here] == s[there]) for s in view.scores for here, there in cases]))


def _group_means(rows: np.ndarray, names: list[str]) -> tuple[np.ndarray, int]:
    group, counts = np.unique(names, return_inverse=True)[1], Counter(names)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, group, rows)
    return sums / np.bincount(group)[:, None], len(counts)


def _by_source(rows: np.ndarray, names: list[str], sources: list[str]) -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    for source in sorted(set(sources)):
        at = [place for place, name in enumerate(sources) if name == source]
        means, _ = _group_means(rows[at], [names[place] for place in at])
        out[source] = {**{name: float(value) for name, value in zip(ROWS, means.mean(0), strict=True)}, "pairs": len(at)}
    return out


def p_mrr_of_ranks(original: float, changed: float) -> float:
    """p-MRR of one document that is relevant under the original instruction and not under the changed one; ranks from 1."""
    return changed / original - 1 if original >= changed else 1 - original / changed


def p_mrr(
    original: Mapping[str, Mapping[str, float]], changed: Mapping[str, Mapping[str, float]], documents: Mapping[str, Iterable[str]]
) -> float:
    """Mean p-MRR over topics of two runs `{topic: {document: score}}`; `documents` are those that lose their relevance.

    Ties stand at the mean of their ranks (no order leaks); a document that was not retrieved has rank n + 1.
    """
    topics = []
    for topic, names in documents.items():
        values = [p_mrr_of_ranks(_rank(original.get(topic, {}), name), _rank(changed.get(topic, {}), name)) for name in names]
        if values:
            topics.append(float(np.mean(values)))
    if not topics:
        raise InputError("holds no document that loses its relevance; p-MRR needs at least one", field="documents")
    return float(np.mean(topics))


def _rank(scores: Mapping[str, float], name: str) -> float:
    if name not in scores:
        return len(scores) + 1
    above = sum(score > scores[name] for score in scores.values())
    tied = sum(score == scores[name] for score in scores.values())
    return above + (tied + 1) / 2


def robustness(evaluation: Evaluation, measure: str | Measure, *, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Any]:
    """Mean over groups of the worst value of the group's queries, with its interval and the number of groups."""
    name = str(Measure.parse(measure))
    worst: dict[str, float] = {}
    for query, values in evaluation.per_query.items():
        group = evaluation.groups.get(query, f"query {query}")
        worst[group] = min(worst.get(group, float("inf")), values[name])
    micro, _ = intervals(np.array(list(worst.values())), resamples=resamples, seed=seed)
    return {**micro[0], "groups": len(worst)}
