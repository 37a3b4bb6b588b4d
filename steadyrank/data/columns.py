"""sentence-transformers style columns: `query`, `docs` (or `documents`) and `labels`; or `query`, `positive`, `negative...`.

A row becomes the JSON object of an example, which `steadyrank.data.jsonl` then checks. `labels` may be missing; other columns are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from steadyrank.errors import InputError
from steadyrank.files import write_jsonl
from steadyrank.records import RankingExample

QUERY = ("query", "anchor", "question")
DOCUMENTS = ("docs", "documents")
LABELS = ("labels", "label", "scores")
_NEGATIVE = re.compile(r"negatives?(_\d+)?")


def is_columns(row: Mapping[str, Any]) -> bool:
    """Whether a row is of columns and not an example of ours."""
    return "candidates" not in row and (any(name in row for name in DOCUMENTS) or "positive" in row)


def columns_to_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of an example from a row of columns."""
    query = next((name for name in QUERY if name in row), None)
    if query is None:
        raise InputError(f"is missing; rows of columns need one of {', '.join(QUERY)}", field="query")
    docs = next((name for name in DOCUMENTS if name in row), None)
    if docs is None:
        return _positive_negative(row, query)
    labels = next((name for name in LABELS if name in row), None)
    if not isinstance(row[docs], list):
        raise InputError("must be a list of texts", field=docs)
    if labels is not None and isinstance(row[labels], list) and len(row[labels]) != len(row[docs]):
        raise InputError(f"has {len(row[labels])} labels for {len(row[docs])} documents", field=labels)
    rest = {name: value for name, value in row.items() if name not in (query, docs, labels)}
    return {**rest, "query": row[query], "candidates": row[docs], "relevance": None if labels is None else row[labels]}


def _positive_negative(row: Mapping[str, Any], query: str) -> dict[str, Any]:
    positives = _listed(row["positive"])
    names = [name for name in row if _NEGATIVE.fullmatch(name)]
    negatives = [text for name in names for text in _listed(row[name]) if text is not None]
    rest = {name: value for name, value in row.items() if name not in (query, "positive", *names)}
    grades = [1] * len(positives) + [0] * len(negatives)
    return {**rest, "query": row[query], "candidates": positives + negatives, "relevance": grades}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def example_to_columns(example: RankingExample) -> dict[str, Any]:
    """One row of columns; titles stand before their texts, ids of candidates are left out."""
    row: dict[str, Any] = {"id": example.id, "query": example.query}
    if example.instruction is not None:
        row["instruction"] = example.instruction
    row["docs"] = example.documents
    if example.relevance is not None:
        row["labels"] = list(example.relevance)
    for name in ("source", "split", "group"):
        if getattr(example, name) is not None:
            row[name] = getattr(example, name)
    if example.answers is not None:
        row["answers"] = list(example.answers)
    return row | {name: value for name, value in example.extra.items() if name not in row}


def write_columns(path: str | Path, examples: Iterable[RankingExample]) -> int:
    """Write examples as JSON lines of columns; returns how many."""
    return write_jsonl(path, (example_to_columns(example) for example in examples))
