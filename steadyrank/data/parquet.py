"""Parquet files of lists: one row an example, in our own form or as columns. Needs pyarrow (`steadyrank[data]`).

Written files keep everything an example holds: candidates as structs of id, text and title, unknown keys as JSON text in `extra`.
Both ways go batch by batch, so that a large file costs one batch of memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import CANDIDATE_KEYS, EXAMPLE_KEYS, candidate_to_json, example_to_json
from steadyrank.data.reading import checked_rows, example_of_row
from steadyrank.errors import InputError
from steadyrank.files import atomic_write, to_json_text
from steadyrank.names import require
from steadyrank.records import RankingExample

BATCH = 256


def read_parquet(path: str | Path) -> Iterator[RankingExample]:
    """Examples of a Parquet file, batch by batch; errors name the row, from 1."""
    pyarrow, parquet = require("pyarrow", "reading Parquet"), require("pyarrow.parquet", "reading Parquet")
    try:
        file = parquet.ParquetFile(os.fspath(path))
    except pyarrow.ArrowInvalid as error:
        raise InputError("is not a Parquet file", path=path) from error
    return checked_rows(_rows(file), path, example_of_row)


def write_parquet(path: str | Path, examples: Iterable[RankingExample]) -> int:
    """Write examples as rows of our own form; returns how many."""
    pyarrow, parquet = require("pyarrow", "writing Parquet"), require("pyarrow.parquet", "writing Parquet")
    schema, rest, count = _schema(pyarrow), iter(examples), 0
    with atomic_write(path, binary=True) as handle, parquet.ParquetWriter(handle, schema) as writer:
        while batch := [_row(example) for example in islice(rest, BATCH)]:
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def _schema(pyarrow: Any) -> Any:
    text = pyarrow.string()
    candidate = pyarrow.struct([(name, text) for name in (*CANDIDATE_KEYS, "extra")])
    kinds = dict.fromkeys((*EXAMPLE_KEYS, "extra"), text)
    kinds |= {"candidates": pyarrow.list_(candidate), "relevance": pyarrow.list_(pyarrow.float64()), "answers": pyarrow.list_(text)}
    return pyarrow.schema(list(kinds.items()))


def _row(example: RankingExample) -> dict[str, Any]:
    row = _packed(example_to_json(example), EXAMPLE_KEYS)
    row["candidates"] = [_packed(candidate_to_json(candidate), CANDIDATE_KEYS) for candidate in example.candidates]
    return row


def _packed(row: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    extra = {name: value for name, value in row.items() if name not in known}
    return {name: row[name] for name in known if name in row} | ({"extra": to_json_text(extra)} if extra else {})


def _rows(file: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    line = 0
    for batch in file.iter_batches(batch_size=BATCH):
        for row in batch.to_pylist():
            line += 1
            row = _unpacked(row)
            if isinstance(row.get("candidates"), list):
                row["candidates"] = [_unpacked(value) if isinstance(value, dict) else value for value in row["candidates"]]
            yield line, row


def _unpacked(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without its empty cells, and with the keys of `extra` where it is an object of ours."""
    out = {name: value for name, value in row.items() if value is not None}
    try:
        extra = json.loads(out["extra"])
    except (KeyError, TypeError, ValueError):  # somebody else's column of that name
        return out
    if isinstance(extra, dict):
        del out["extra"]
        out = extra | out
    return out
