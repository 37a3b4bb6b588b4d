"""TREC qrels and runs: `{query: {document: value}}`, in file order.

qrels: `query iteration document grade`, split at white space; the iteration is ignored; grades may be negative (unjudged) or fractional.
run:   `query Q0 document rank score tag`; the rank is ignored, as trec_eval ignores it: the scores are the ranking.
A tab-separated file with a head (`query-id corpus-id score`), BEIR's form of qrels, is read as qrels too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from steadyrank.errors import InputError, NonFiniteScoreError
from steadyrank.files import atomic_write, read_text_lines
from steadyrank.records import RankingExample

Table = dict[str, dict[str, float]]
DUPLICATES = ("error", "first", "best")


def read_qrels(path: str | Path) -> Table:
    """Grades by query and document. A document judged twice for a query is an error, unless both grades are equal."""
    out: Table = {}
    for line, text in read_text_lines(path):
        parts = text.split()
        if not parts or (line == 1 and _is_head(parts)):
            continue
        if len(parts) not in (3, 4):
            raise InputError(f"has {len(parts)} columns; a judgment is `query iteration document grade`", path=path, line=line)
        query, document, grade = parts[0], parts[-2], _number(parts[-1], "grade", path, line)
        if out.setdefault(query, {}).setdefault(document, grade) != grade:
            raise InputError(f"grades document {document!r} of query {query!r} a second time, and differently", path=path, line=line)
    return out


def read_run(path: str | Path, *, duplicates: str = "error") -> Table:
    """Scores by query and document. A document twice in a query's list: `error`, or keep the `first` or the `best`."""
    if duplicates not in DUPLICATES:
        raise InputError(f"is {duplicates!r}; must be one of {', '.join(DUPLICATES)}", field="duplicates")
    out: Table = {}
    for line, text in read_text_lines(path):
        parts = text.split()
        if not parts:
            continue
        if len(parts) < 5:  # trec_eval's own files carry words after the tag
            raise InputError(f"has {len(parts)} columns; a line of a run is `query Q0 document rank score tag`", path=path, line=line)
        query, document, score = parts[0], parts[2], _number(parts[4], "score", path, line)
        listed = out.setdefault(query, {})
        if document not in listed:
            listed[document] = score
        elif duplicates == "error":
            raise InputError(f"lists document {document!r} of query {query!r} a second time", path=path, line=line)
        elif duplicates == "best":
            listed[document] = max(score, listed[document])
    return out


def write_qrels(path: str | Path, qrels: Mapping[str, Mapping[str, float]]) -> int:
    """Write grades; whole ones as whole numbers. Returns the number of lines."""
    rows = [(query, document, grade_text(grade)) for query, judged in qrels.items() for document, grade in judged.items()]
    return _write(path, (f"{_word(query, path)} 0 {_word(document, path)} {grade}" for query, document, grade in rows))


def grade_text(grade: float) -> str:
    """A grade as text that reads back as the same number; whole grades as whole numbers."""
    return str(int(grade)) if float(grade).is_integer() else repr(float(grade))


def write_run(path: str | Path, run: Mapping[str, Mapping[str, float]], *, tag: str = "steadyrank") -> int:
    """Write a run, best first, ties in the order given. Returns the number of lines."""
    lines = []
    for query, scores in run.items():
        ranked = sorted(scores.items(), key=lambda item: -item[1])
        for rank, (document, score) in enumerate(ranked, start=1):
            if not math.isfinite(score):
                raise NonFiniteScoreError(f"is {score} (query {query!r}, document {document!r})", path=path, field="score")
            lines.append(f"{_word(query, path)} Q0 {_word(document, path)} {rank} {float(score)!r} {tag}")
    return _write(path, lines)


def qrels_of(examples: Iterable[RankingExample]) -> Table:
    """The grades of examples, by example id and candidate id; examples without grades are left out."""
    return {
        example.id: dict(zip(example.candidate_ids, example.relevance, strict=True))
        for example in examples
        if example.relevance is not None
    }


def write_qrels_of(path: str | Path, examples: Iterable[RankingExample]) -> int:
    """Write the grades of examples as qrels; returns how many examples had some."""
    qrels = qrels_of(examples)
    write_qrels(path, qrels)
    return len(qrels)


def _is_head(parts: list[str]) -> bool:
    try:
        float(parts[-1])
    except ValueError:
        return True
    return False


def _number(text: str, name: str, path: str | Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"is {text!r}, not a number", path=path, line=line, field=name) from None
    if not math.isfinite(value):
        raise NonFiniteScoreError(f"is {text}; such a value cannot be ranked", path=path, line=line, field=name)
    return value


def _word(name: str, path: str | Path) -> str:
    if not name or len(name.split()) != 1:
        raise InputError(f"{name!r} is empty or holds white space, which a TREC file cannot keep", path=path, field="id")
    return name


def _write(path: str | Path, lines: Iterable[str]) -> int:
    count = 0
    with atomic_write(path) as handle:
        for line in lines:
            handle.write(line + "\n")
            count += 1
    return count
