"""Two audits of the same lists, or two groups of audits (one a seed), compared list by list: paired differences with their intervals.

A group is averaged list by list first, so that what is drawn in the bootstrap stays the list: sources, then groups of lists, then lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steadyrank.errors import InputError
from steadyrank.stability.bootstrap import hierarchical_bootstrap, paired_bootstrap

Table = Mapping[str, Any]  # what `per_list` gives


def averaged(tables: Sequence[Table]) -> dict[str, Any]:
    """One table whose values are the means over tables of the same lists; a value that any of them lacks is absent."""
    first = tables[0]
    for other in tables[1:]:
        if list(other["ids"]) != list(first["ids"]):
            raise InputError("are of other lists; audits are compared list by list, so give audits of the same lists", field="audits")
    names = [name for name in first["columns"] if all(name in table["columns"] for table in tables)]
    columns = {name: np.mean([_numbers(table["columns"][name]) for table in tables], axis=0).tolist() for name in names}
    return {**{key: first[key] for key in ("ids", "sources", "groups")}, "columns": columns}


def summary(table: Table, *, seed: int = 0, resamples: int = 10_000) -> dict[str, dict[str, Any]]:
    """`{mean, low, high, n}` of every column."""
    return {
        name: hierarchical_bootstrap(_numbers(values), table["sources"], groups=table["groups"], seed=seed, resamples=resamples)
        for name, values in table["columns"].items()
    }


def differences(a: Table, b: Table, *, seed: int = 0, resamples: int = 10_000) -> dict[str, dict[str, Any]]:
    """`{mean, low, high, p, n}` of a - b for every column that both have; the lists must be the same."""
    if list(a["ids"]) != list(b["ids"]):
        raise InputError("are of other lists; audits are compared list by list, so give audits of the same lists", field="audits")
    return {
        name: paired_bootstrap(
            _numbers(a["columns"][name]), _numbers(b["columns"][name]), a["sources"], groups=a["groups"], seed=seed, resamples=resamples
        )
        for name in a["columns"]
        if name in b["columns"]
    }


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
