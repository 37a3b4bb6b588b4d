"""BEIR folders: `corpus.jsonl` {_id, title, text}, `queries.jsonl` {_id, text, instruction?} and `qrels/SPLIT.tsv`.

Read as lists, each query's pool is its judged documents; `steadyrank data pool` adds candidates from a run or from BM25.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.data.trec import Table, read_qrels
from steadyrank.errors import InputError, MissingDataError
from steadyrank.files import atomic_write, read_jsonl, write_jsonl
from steadyrank.records import Candidate, RankingExample


@dataclass(frozen=True)
class BeirFolder:
    """A collection: documents, queries and grades by id."""

    corpus: dict[str, Candidate]
    queries: dict[str, str]
    instructions: dict[str, str]
    qrels: Table


def open_beir(folder: str | Path, *, split: str = "test") -> BeirFolder:
    """Read a folder; grades of unknown queries or documents are an error that names the first."""
    folder = Path(folder)
    corpus = {key: Candidate(row.get("text", ""), key, row.get("title") or None) for key, row in _rows(folder / "corpus.jsonl")}
    rows = dict(_rows(folder / "queries.jsonl"))
    qrels_path = _qrels_path(folder, split)
    qrels = read_qrels(qrels_path)
    for query, judged in qrels.items():
        unknown = next((document for document in judged if document not in corpus), None)
        if query not in rows or unknown is not None:
            missing = f"query {query!r} is not in queries.jsonl" if query not in rows else f"document {unknown!r} is not in corpus.jsonl"
            raise InputError(missing, path=qrels_path)
    instructions = {key: row["instruction"] for key, row in rows.items() if row.get("instruction")}
    return BeirFolder(corpus, {key: row["text"] for key, row in rows.items()}, instructions, qrels)


def read_beir(folder: str | Path, *, split: str = "test") -> Iterator[RankingExample]:
    """One example a judged query; its candidates are its judged documents, ordered by id (never positives first)."""
    data = open_beir(folder, split=split)
    for query, judged in data.qrels.items():
        documents = sorted(judged)
        yield RankingExample(
            data.queries[query],
            tuple(data.corpus[document] for document in documents),
            tuple(judged[document] for document in documents),
            instruction=data.instructions.get(query),
            id=query,
            split=split,
        )


def write_beir(folder: str | Path, examples: Iterable[RankingExample], *, split: str = "test") -> int:
    """Write examples as a folder; candidates without an id get `EXAMPLE-PLACE`. One id with two texts is an error."""
    folder, queries, lines = Path(folder), [], []
    corpus: dict[str, dict[str, str]] = {}
    for example in examples:
        queries.append({"_id": example.id, "text": example.query} | ({"instruction": example.instruction} if example.instruction else {}))
        for place, candidate in enumerate(example.candidates):
            key = candidate.id if candidate.id is not None else f"{example.id}-{place}"
            row = {"_id": key, "title": candidate.title or "", "text": candidate.text}
            if corpus.setdefault(key, row) != row:
                raise InputError(f"id {key!r} stands for two different documents", path=folder / "corpus.jsonl")
            if example.relevance is not None:
                lines.append(f"{example.id}\t{key}\t{example.relevance[place]:g}")
    write_jsonl(folder / "corpus.jsonl", corpus.values())
    write_jsonl(folder / "queries.jsonl", queries)
    with atomic_write(folder / "qrels" / f"{split}.tsv") as handle:
        handle.write("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return len(queries)


def _qrels_path(folder: Path, split: str) -> Path:
    for path in (folder / "qrels" / f"{split}.tsv", folder / f"{split}.tsv"):
        if path.exists():
            return path
    raise MissingDataError(f"{folder}: holds no qrels/{split}.tsv; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv")


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.exists():
        raise MissingDataError(f"{path} is missing; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv")
    seen: dict[str, int] = {}
    for line, row in read_jsonl(path):
        if "_id" not in row or not isinstance(row.get("text", ""), str):
            raise InputError("must have `_id` and a text", path=path, line=line)
        key = str(row["_id"])
        if seen.setdefault(key, line) != line:
            raise InputError(f"repeats _id {key!r} of line {seen[key]}", path=path, line=line)
        yield key, row
