"""Datasets of a hub, or of a folder that the `datasets` library reads: one row an example, in our own form or as columns.

    hub:owner/name            the only split
    hub:owner/name:train      a split;  hub:owner/name#config:train of a named configuration;  hub:owner/name@revision:train pinned

Rows are streamed. Needs `datasets` (`steadyrank[data]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from steadyrank.data.reading import checked_rows, example_of_row
from steadyrank.errors import InputError, MissingDataError, unknown_name
from steadyrank.names import require
from steadyrank.records import RankingExample

_SPEC = re.compile(r"hub:(?P<name>[^#@:]+)(?:@(?P<revision>[^#:]+))?(?:#(?P<config>[^:]+))?(?::(?P<split>.+))?")


@dataclass(frozen=True, slots=True)
class HubSpec:
    """What a `hub:` spec names."""

    name: str
    revision: str | None = None
    config: str | None = None
    split: str | None = None


def parse_spec(spec: str) -> HubSpec:
    """The parts of a spec."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise InputError(f"{spec!r} is not of the form hub:owner/name[@revision][#config][:split]")
    return HubSpec(**match.groupdict())


def read_hub(spec: str) -> Iterator[RankingExample]:
    """Examples of a dataset, row by row; errors name the row, from 1."""
    return checked_rows(enumerate(map(_filled, _rows(parse_spec(str(spec)))), start=1), spec, example_of_row)


def _rows(wanted: HubSpec) -> Iterator[dict[str, Any]]:
    datasets = require("datasets", "reading a dataset of a hub")
    try:
        found = datasets.load_dataset(wanted.name, wanted.config, revision=wanted.revision, streaming=True)
    except Exception as error:  # the library raises what its many transports raise
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise MissingDataError(f"dataset {wanted.name!r} cannot be read ({why}); check its name and the network, or give a file") from error
    splits = list(found)
    if wanted.split is None and len(splits) > 1:
        raise InputError(f"dataset {wanted.name!r} has the splits {', '.join(splits)}; name one, as hub:{wanted.name}:{splits[0]}")
    split = wanted.split or splits[0]
    if split not in splits:
        raise unknown_name(f"split of {wanted.name!r}:", split, splits)
    yield from found[split]


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    """The row without its empty cells: a table gives every row every column."""
    return {name: value for name, value in row.items() if value is not None}
