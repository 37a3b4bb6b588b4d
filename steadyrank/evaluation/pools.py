"""What was retrieved and what is known about it, one `Pool` a query, whatever the user handed in.

Rules; what they touch is counted in `Evaluation.counts`:
- the queries are those that have grades; a query without any grade (empty judgments) is left out;
- a query missing from the run stays, with nothing retrieved, and every measure takes its lowest value there (0 for all common ones);
- what was scored without grades is ignored; no query in common is an error (ids such as "1" and "01");
- judged documents that were not retrieved stay in the pool: they count in ideals, recall and precision denominators;
- ids are compared as text; 1 and "1" in one file is an error; so is a document twice in one list (`dedup="first"|"best"` to keep one);
- candidates of an example with a negative grade are unjudged (the record's rule); in qrels a negative grade is judged, with gain 0;
- NaN and infinite scores and grades are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steadyrank.errors import ConfigError, InputError, NonFiniteScoreError
from steadyrank.records import Presentation, RankingExample, ScoredList

SELF_RETRIEVAL = ("arguana", "quora")  # sets whose queries are documents of the corpus (beir's ignore_identical_ids)


@dataclass(frozen=True, slots=True)
class Pool:
    """One query. Retrieved documents stand first, in the order given; judged ones that were not retrieved follow."""

    query: str
    names: tuple[str, ...]
    grades: tuple[float | None, ...]  # one a name; None is unjudged
    retrieved: int
    lists: tuple[tuple[float, ...], ...]  # scores of the retrieved documents, one tuple a presentation; empty: missing from the run
    source: str | None = None
    group: str | None = None


@dataclass(slots=True)
class Gathered:
    """All pools, and what was dropped on the way."""

    pools: list[Pool] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("unjudged", "empty_judgments", "duplicates", "self_excluded"), 0))
    system: str | None = None


def gather(scored: Any, examples: Any, *, exclude_self: bool | None = None, dedup: str = "error") -> Gathered:
    """Pools of ScoredLists or a run against RankingExamples or qrels."""
    if dedup not in ("error", "first", "best"):
        raise ConfigError(f"dedup is {dedup!r}; must be error, first or best")
    judged = _judged_qrels(examples) if isinstance(examples, Mapping) else _judged_examples(examples)
    out = Gathered()
    scored = scored if isinstance(scored, Mapping) else list(scored)
    if not isinstance(scored, Mapping) and (not scored or isinstance(scored[0], ScoredList)):
        lists = _scored_lists(scored, judged, out)
    else:
        lists = _run(scored, judged, out, dedup)
    out.counts["unjudged"] = sum(query not in judged for query in lists)
    out.counts["empty_judgments"] = sum(item.empty for item in judged.values())
    wanted = {query: item for query, item in judged.items() if not item.empty}
    if not any(query in wanted for query in lists):
        raise InputError(
            f"no query of the run has grades (run: {_some(lists)}; graded: {_some(wanted)}); check that both use the same ids",
            field="scored",
        )
    for query, item in wanted.items():
        out.pools.append(_pool(query, item, lists.get(query), out, exclude_self))
    out.missing = [pool.query for pool in out.pools if not pool.lists]
    return out


@dataclass(frozen=True, slots=True)
class _Judged:
    grades: Mapping[str, float | None]  # by document name, file order
    source: str | None = None
    group: str | None = None
    closed: bool = False  # a pool: nothing outside of it may be retrieved
    example: RankingExample | None = None

    @property
    def empty(self) -> bool:
        return not any(grade is not None for grade in self.grades.values())


def _judged_qrels(qrels: Mapping[Any, Mapping[Any, Any]]) -> dict[str, _Judged]:
    out = {}
    for query, documents in as_text(qrels, "qrels").items():
        if not isinstance(documents, Mapping):
            raise InputError(f"qrels[{query!r}] must map documents to grades, not {type(documents).__name__}")
        grades = {
            name: number(grade, f"qrels[{query!r}][{name!r}]", InputError)
            for name, grade in as_text(documents, f"qrels[{query!r}]").items()
        }
        out[query] = _Judged(grades)
    return out


def _judged_examples(examples: Iterable[RankingExample]) -> dict[str, _Judged]:
    out: dict[str, _Judged] = {}
    for example in examples:
        if not isinstance(example, RankingExample):
            raise InputError(f"examples must hold RankingExample records or be a qrels dict, not {type(example).__name__}")
        if example.id in out:
            raise InputError(f"example id {example.id!r} stands twice; ids must differ", field="id")
        relevance = example.relevance or (None,) * len(example.candidates)
        names = example.candidate_ids
        if len(set(names)) < len(names):  # an id that looks like another candidate's place: the place is the identity
            names = [f"{place}:{name}" for place, name in enumerate(names)]
        grades = {name: None if grade is None or grade < 0 else grade for name, grade in zip(names, relevance, strict=True)}
        out[example.id] = _Judged(grades, example.source, example.group, True, example)
    return out


_Lists = dict[
    str, list[tuple[tuple[str, ...] | None, tuple[float, ...]]]
]  # query -> (names or canonical order, scores) of each presentation


def _scored_lists(scored: Sequence[ScoredList], judged: Mapping[str, _Judged], out: Gathered) -> _Lists:
    systems = sorted({item.scorer for item in scored})
    if len(systems) > 1:
        raise InputError(
            f"the scored lists are of {len(systems)} scorers ({', '.join(systems[:3])}); evaluate one at a time", field="scorer"
        )
    out.system = systems[0] if systems else None
    lists: _Lists = {}
    plain: set[str] = set()
    for item in scored:
        example = judged[item.example_id].example if item.example_id in judged else None
        if item.example_id in judged and example is None:
            raise InputError("scored lists go with ranking examples; for qrels give a run: {query: {document: score}}", field="examples")
        if example is not None and len(item.scores) != len(example.candidates):
            raise InputError(
                f"example {item.example_id!r} has {len(example.candidates)} candidates and {len(item.scores)} scores", field="scores"
            )
        if item.presentation == Presentation():
            if item.example_id in plain:
                raise InputError(
                    f"example {item.example_id!r} is scored twice under one presentation; was a file appended twice?", field="id"
                )
            plain.add(item.example_id)
        lists.setdefault(item.example_id, []).append((None, item.scores))
    return lists


def _run(run: Any, judged: Mapping[str, _Judged], out: Gathered, dedup: str) -> _Lists:
    rows = as_text(run, "run") if isinstance(run, Mapping) else _by_query(run, dedup, out)
    lists: _Lists = {}
    for query, documents in rows.items():
        if not isinstance(documents, Mapping):
            raise InputError(f"run[{query!r}] must map documents to scores, not {type(documents).__name__}")
        scores = {
            name: number(score, f"run[{query!r}][{name!r}]", NonFiniteScoreError)
            for name, score in as_text(documents, f"run[{query!r}]").items()
        }
        item = judged.get(query)
        foreign = [name for name in scores if item is not None and item.closed and name not in item.grades]
        if foreign:
            raise InputError(f"query {query!r} holds document {foreign[0]!r}, which is not among its candidates", field="run")
        lists[query] = [(tuple(scores), tuple(scores.values()))]
    return lists


def _by_query(rows: Iterable[Any], dedup: str, out: Gathered) -> dict[str, dict[str, Any]]:
    """A run given as (query, document, score) rows, where a document may stand twice."""
    run: dict[str, dict[str, Any]] = {}
    for row in rows:
        if len(row) != 3:
            raise InputError(f"a run row must be (query, document, score), not {row!r}")
        query, document = str(row[0]), str(row[1])
        score = number(row[2], f"run[{query!r}][{document!r}]", NonFiniteScoreError)
        seen = run.setdefault(query, {})
        if document not in seen:
            seen[document] = score
            continue
        if dedup == "error":
            raise InputError(
                f"query {query!r} holds document {document!r} twice; clean the run, or choose dedup first or best", field="run"
            )
        out.counts["duplicates"] += 1
        if dedup == "best":
            seen[document] = max(seen[document], score)
    return run


def _pool(query: str, item: _Judged, lists: list[Any] | None, out: Gathered, exclude_self: bool | None) -> Pool:
    retrieved = list(lists[0][0] or item.grades) if lists else []
    scores = [one[1] for one in lists or () if one[1]]
    retrieved = retrieved if scores else []
    listed = (item.source or "").lower().rpartition("/")[2] in SELF_RETRIEVAL
    if (listed if exclude_self is None else exclude_self) and query in retrieved:
        at = retrieved.index(query)
        retrieved.pop(at)
        scores = [row[:at] + row[at + 1 :] for row in scores]
        out.counts["self_excluded"] += 1
    found = set(retrieved)
    names = (*retrieved, *(name for name in item.grades if name not in found))
    grades = tuple(item.grades.get(name) for name in names)
    return Pool(query, names, grades, len(retrieved), tuple(row for row in scores if row), item.source, item.group)


def as_text(table: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """The same table with text keys; keys that become equal are an error."""
    out: dict[str, Any] = {}
    for key, value in table.items():
        if str(key) in out:
            raise InputError(f"{what} holds the id {str(key)!r} twice, as a number and as text")
        out[str(key)] = value
    return out


def number(value: Any, place: str, error: type[InputError]) -> float:
    """A finite float of any real number: numpy and torch scalars of any width included."""
    if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__"):
        raise InputError(f"must be a number, not {value!r}", field=place)
    result = float(value)
    if not math.isfinite(result):
        raise error(f"is {result}; a value that is not finite cannot be ranked", field=place)
    return result


def _some(names: Iterable[str]) -> str:
    first = [repr(name) for _, name in zip(range(3), names)]
    return ", ".join(first) or "none"
