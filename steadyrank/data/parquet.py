"""Parquet files of lists: one row an example, in our own form or as columns. Needs pyarrow (`steadyrank[data]`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from steadyrank.data.columns import example_to_columns
from steadyrank.data.reading import checked_rows, example_of_row
from steadyrank.errors import InputError
from steadyrank.files import atomic_write
from steadyrank.names import require
from steadyrank.records import RankingExample


def read_parquet(path: str | Path) -> Iterator[RankingExample]:
    """Examples of a Parquet file, batch by batch; errors name the row, from 1."""
    pyarrow, parquet = require("pyarrow", "reading Parquet"), require("pyarrow.parquet", "reading Parquet")
    try:
        file = parquet.ParquetFile(os.fspath(path))
    except pyarrow.ArrowInvalid as error:
        raise InputError("is not a Parquet file", path=path) from error
    return checked_rows(_rows(file), path, example_of_row)


def _rows(file: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    line = 0
    for batch in file.iter_batches(batch_size=256):
        for row in batch.to_pylist():
            line += 1
            yield line, {name: value for name, value in row.items() if value is not None}


def write_parquet(path: str | Path, examples: Iterable[RankingExample]) -> int:
    """Write examples as columns (query, instruction, docs, labels, ...); returns how many."""
    pyarrow, parquet = require("pyarrow", "writing Parquet"), require("pyarrow.parquet", "writing Parquet")
    rows = [example_to_columns(example) for example in examples]
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in names})
    with atomic_write(path, binary=True) as handle:
        parquet.write_table(table, handle)
    return len(rows)
