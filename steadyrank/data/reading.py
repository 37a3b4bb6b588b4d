"""One reader for every format of lists: what a path holds is seen from its name, and from each row for JSON lines.

A new format costs a function and a line in READERS (suffix) or WRITERS (kind).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from steadyrank.data.columns import columns_to_row, is_columns
from steadyrank.data.jsonl import Unique, example_from_json
from steadyrank.errors import InputError, MissingDataError
from steadyrank.files import read_jsonl
from steadyrank.names import find
from steadyrank.records import RankingExample

HUB = "hub:"
READERS = {  # how the name ends -> reader(path) -> examples
    ".jsonl": "steadyrank.data.reading:read_json_lines",
    ".jsonl.gz": "steadyrank.data.reading:read_json_lines",
    ".parquet": "steadyrank.data.parquet:read_parquet",
}
WRITERS = {  # kind -> writer(path, examples) -> count
    "jsonl": "steadyrank.data.jsonl:save_examples",
    "columns": "steadyrank.data.columns:write_columns",
    "parquet": "steadyrank.data.parquet:write_parquet",
    "beir": "steadyrank.data.beir:write_beir",
    "trec-qrels": "steadyrank.data.trec:write_qrels_of",
}


def read_examples(path: str | Path) -> Iterator[RankingExample]:
    """The examples of a `.jsonl`, `.jsonl.gz` or `.parquet` file, of a BEIR folder, or of a dataset of a hub (`hub:owner/name:split`)."""
    if str(path).startswith(HUB):
        return find("format", "hub", {"hub": "steadyrank.data.hub:read_hub"})(str(path))
    path = Path(path)
    if path.is_dir():
        return find("format", "beir", {"beir": "steadyrank.data.beir:read_beir"})(path)
    if not path.exists():
        raise MissingDataError(f"{path}: no such file or folder of lists")
    for ending, target in READERS.items():
        if path.name.endswith(ending):
            return find("format", ending, {ending: target})(path)
    raise InputError(f"is of no known format; lists are read from {', '.join(READERS)} files and BEIR folders", path=path)


def write_examples(path: str | Path, examples: Iterable[RankingExample], *, kind: str = "jsonl") -> int:
    """Write examples in one of WRITERS' formats; returns how many."""
    return find("format", kind, WRITERS)(path, examples)


def read_json_lines(path: str | Path) -> Iterator[RankingExample]:
    """Examples of JSON lines: records of ours or rows of columns."""
    return checked_rows(read_jsonl(path), path, example_of_row)


def example_of_row(row: Mapping[str, Any]) -> RankingExample:
    """The example of one row, whichever of the row forms it has."""
    return example_from_json(columns_to_row(row) if is_columns(row) else row)


def checked_rows(
    rows: Iterable[tuple[int, dict[str, Any]]], path: str | Path, parse: Callable[[Mapping[str, Any]], RankingExample]
) -> Iterator[RankingExample]:
    """Parsed rows with unique ids; errors name the file and the row."""
    seen = Unique("id")
    for line, row in rows:
        try:
            example = parse(row)
            seen.add(example.id, repr(example.id) if row.get("id") is not None else "the same query and pool, without an id,", line)
        except InputError as error:
            raise error.at(path=path, line=line) from None
        yield example
