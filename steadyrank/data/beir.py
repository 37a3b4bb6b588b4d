"""BEIR folders: `corpus.jsonl` {_id, title, text}, `queries.jsonl` {_id, text, instruction?} and `qrels/SPLIT.tsv`.

Read as lists, each query's pool is its judged documents; `steadyrank data pool` adds candidates from a run or from BM25.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import name_of
from steadyrank.data.trec import Table, grade_text, read_qrels
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
    corpus = {key: _document(key, row) for key, row in _rows(folder / "corpus.jsonl")}
    rows = dict(_rows(folder / "queries.jsonl", needs_text=True))
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
                lines.append(f"{example.id}\t{key}\t{grade_text(example.relevance[place])}")
    write_jsonl(folder / "corpus.jsonl", corpus.values())
    write_jsonl(folder / "queries.jsonl", queries)
    with atomic_write(folder / "qrels" / f"{split}.tsv") as handle:
        handle.write("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return len(queries)


def _qrels_path(folder: Path, split: str) -> Path:
    for path in (folder / "qrels" / f"{split}.tsv", folder / f"{split}.tsv"):
        if path.exists():
            return path
    there = sorted({path.stem for path in [*folder.glob("qrels/*.tsv"), *folder.glob("*.tsv")]})
    others = f"it holds {', '.join(there)}" if there else "a BEIR folder has corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv"
    raise MissingDataError(f"{folder}: holds no qrels/{split}.tsv; {others}")


def _document(key: str, row: dict[str, Any]) -> Candidate:
    kept = {name: value for name, value in row.items() if name not in ("_id", "text", "title")}
    return Candidate(row.get("text") or "", key, row.get("title") or None, extra=kept)


def _rows(path: Path, *, needs_text: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.exists():
        raise MissingDataError(f"{path} is missing; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv")
    seen: dict[str, int] = {}
    for line, row in read_jsonl(path):
        key = _name(row, path, line)
        for name in ("text", "title"):
            is_missing = row.get(name) is None and not (needs_text and name == "text")
            if not is_missing and not isinstance(row.get(name), str):
                raise InputError(f"must be text, not {row.get(name)!r}", path=path, line=line, field=name)
        if seen.setdefault(key, line) != line:
            raise InputError(f"repeats _id {key!r} of line {seen[key]}", path=path, line=line)
        yield key, row


def _name(row: dict[str, Any], path: Path, line: int) -> str:
    try:
        key = name_of(row.get("_id"), "_id")
    except InputError as error:
        raise error.at(path=path, line=line) from None
    if key is None:
        raise InputError("is missing; every row of a BEIR file has one", path=path, line=line, field="_id")
    return key
