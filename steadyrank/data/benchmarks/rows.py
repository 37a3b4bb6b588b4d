"""What the benchmark readers share: rows of a JSON array or of JSON lines, checked fields, seeded shuffles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from steadyrank import seeds
from steadyrank.data.jsonl import Unique
from steadyrank.errors import InputError
from steadyrank.files import read_json, read_jsonl, read_lines
from steadyrank.records import RankingExample


def rows_of(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number from 1, object) of each row, of a file that holds either one JSON array of objects or JSON lines."""
    first = next((line for _, line in read_lines(path) if line.strip()), b"")
    if first.lstrip()[:1] != b"[":
        yield from read_jsonl(path)
        return
    values = read_json(path)
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise InputError(f"row {number} is a JSON {type(value).__name__}; every row must be an object", path=path)
        yield number, value


def examples_of(path: str | Path, parse: Callable[[int, Mapping[str, Any]], RankingExample]) -> list[RankingExample]:
    """The parsed rows; an error names the file and the row (its line, in JSON lines)."""
    seen, out = Unique("id"), []
    for number, row in rows_of(path):
        try:
            example = parse(number, row)
            seen.add(example.id, repr(example.id), number)
        except InputError as error:
            raise error.at(path=path, line=number) from None
        out.append(example)
    if not out:
        raise InputError("holds no example", path=path)
    return out


def take(row: Mapping[str, Any], name: str, kind: type, *, of: type | None = None) -> Any:
    """A field of a row that must be there and of this type; `of`: the type of every element of a list."""
    value = row.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        found = "missing" if name not in row else f"a {type(value).__name__}"
        raise InputError(f"is {found}; it must be a {kind.__name__}", field=name)
    if of is not None:
        elements: Any = value
        for place, element in enumerate(elements):
            if not isinstance(element, of):
                raise InputError(f"is a {type(element).__name__}; it must be a {of.__name__}", field=f"{name}[{place}]")
    return value


def shuffled(example: RankingExample, *, seed: int | None) -> RankingExample:
    """The candidates and grades in an order drawn for this example; None keeps the file's order."""
    if seed is None:
        return example
    order: Sequence[int] = seeds.permutation(len(example.candidates), seed, "benchmark", example.id)
    return example.with_candidates(order)
