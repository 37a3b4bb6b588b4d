"""What may stand in for a rater: files of judgments, scored lists, graded lists, or TREC qrels, each as rows of grades by list.

file                              rows                                    scale
judgments (steadyrank.judgments/1) one rater for each judge in it         grades
scored lists (steadyrank.scores/1) the scores                             ranks only, unless a scale is given for it
lists (steadyrank.example/1)       their relevance, found by ids          grades
any other text                     TREC qrels, found by ids               grades
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyrank.data.jsonl import EXAMPLE_SCHEMA, SCORES_SCHEMA, load_examples, load_scores
from steadyrank.data.trec import Table, qrels_of, read_qrels
from steadyrank.errors import InputError
from steadyrank.files import read_jsonl
from steadyrank.judging.base import JudgedList
from steadyrank.judging.files import SCHEMA, load_judgments
from steadyrank.records import RankingExample

_JSON = (".jsonl", ".json", ".jsonl.gz")


@dataclass(frozen=True, slots=True)
class Given:
    """The rows of one rater of a file; `is_graded` is false where its numbers only order documents."""

    name: str
    rows: list[JudgedList]
    is_graded: bool = True


def read_raters(path: str | Path, examples: Sequence[RankingExample], *, name: str | None = None) -> list[Given]:
    """The raters of a file. `name` renames its only rater, or chooses one of several judges."""
    path = Path(path)
    if not path.name.endswith(_JSON):
        return [Given(name or path.stem, _by_ids(read_qrels(path), path, examples))]
    head = next((row for _, row in read_jsonl(path)), None)
    if head is None:
        raise InputError("holds no judgment", path=path)
    if head.get("schema") == SCORES_SCHEMA:
        return [_of_scores(path, name)]
    if head.get("schema") == SCHEMA:
        return _of_judgments(path, examples, name)
    if head.get("schema", EXAMPLE_SCHEMA) == EXAMPLE_SCHEMA:
        graded = qrels_of(load_examples(path))
        return [Given(name or path.name.partition(".")[0], _by_ids(graded, path, examples))]
    told = f"is {head['schema']!r}; give judgments ({SCHEMA}), scored lists, graded lists or TREC qrels"
    raise InputError(told, path=path, line=1, field="schema")


def _of_judgments(path: Path, examples: Sequence[RankingExample], name: str | None) -> list[Given]:
    judges = list(dict.fromkeys(str(row.get("judge")) for _, row in read_jsonl(path)))
    if len(judges) == 1:
        found = [Given(name or judges[0], load_judgments(path))]
    else:
        found = [Given(judge, load_judgments(path, judge=judge)) for judge in ([name] if name else judges)]
    ids = {example.id: example.candidate_ids for example in examples}
    for row in (row for given in found for row in given.rows):
        theirs, ours = row.extra.get("candidates"), ids.get(row.example_id)
        if theirs and ours is not None and [str(one) for one in theirs] != ours:
            raise InputError(f"list {row.example_id!r} holds other candidates, or in another order; judge this file anew", path=path)
    return found


def _of_scores(path: Path, name: str | None) -> Given:
    scored = load_scores(path)
    often, most = Counter(one.example_id for one in scored).most_common(1)[0]
    if most > 1:
        told = f"holds {most} scored lists of {often!r}, and a judge needs one a list; score with --presentations 1 and one scorer a file"
        raise InputError(told, path=path)
    rows = [JudgedList(one.example_id, one.scores, judge=one.scorer) for one in scored]
    return Given(name or scored[0].scorer, rows, is_graded=False)


def _by_ids(table: Table, path: Path, examples: Sequence[RankingExample]) -> list[JudgedList]:
    """Grades of the lists' candidates, found by their ids; what has none, or a negative one, is missing."""
    rows = []
    for example in examples:
        graded = table.get(example.id)
        if graded is not None:
            found = [graded.get(candidate) for candidate in example.candidate_ids]
            rows.append(JudgedList(example.id, tuple(None if grade is None or grade < 0 else grade for grade in found)))
    if not rows:
        raise InputError("grades none of the lists given; its queries must have the ids of the lists", path=path)
    return rows
