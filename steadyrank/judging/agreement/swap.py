"""Order-swap consistency of a pairwise judge: does it prefer the same document when the two change places?

A record holds one pair in both orders: `{"schema": "steadyrank.swaps/1", "example_id", "a", "b", "first", "second"}`. `first` is the answer
with a shown first, `second` the answer with b shown first; both say how sure the judge is of a: 1 for a, 0 for b, 0.5 for a tie (or "a",
"b", "tie"), null where there was no readable answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steadyrank.errors import InputError
from steadyrank.files import read_jsonl
from steadyrank.judging.agreement.intervals import Cell, draws, make_cell
from steadyrank.judging.agreement.kappa import ratio
from steadyrank.records import RankingExample

SCHEMA = "steadyrank.swaps/1"
_WORDS = {"a": 1.0, "b": 0.0, "tie": 0.5}
_COLUMNS = ("asked", "unanswered", "both", "consistent", "flipped", "tied_once", "decided", "first_won")


@dataclass(frozen=True, slots=True)
class Swap:
    """One pair of documents judged in both orders; how sure the judge was of `a` each time, None where it gave no readable answer."""

    example_id: str
    a: str
    b: str
    first: float | None
    second: float | None


def load_swaps(path: str | Path) -> list[Swap]:
    """The records of a JSON lines file; every error names file, line and field."""
    out = [_read(row, path, line) for line, row in read_jsonl(path)]
    if not out:
        raise InputError(f"holds no record of {SCHEMA}; record pairs in both orders", path=path)
    return out


def _read(row: Mapping[str, Any], path: str | Path, line: int) -> Swap:
    try:
        return _swap(row)
    except InputError as error:
        raise error.at(path=path, line=line) from None


def _swap(row: Mapping[str, Any]) -> Swap:
    if row.get("schema", SCHEMA) != SCHEMA:
        raise InputError(f"is {row['schema']!r}; expected {SCHEMA!r}", field="schema")
    for name in ("example_id", "a", "b", "first", "second"):
        if name not in row:
            raise InputError(f"is missing; a swap holds example_id, a, b, first and second (it has: {', '.join(row)})", field=name)
    return Swap(str(row["example_id"]), str(row["a"]), str(row["b"]), _answer(row["first"], "first"), _answer(row["second"], "second"))


def _answer(value: Any, field: str) -> float | None:
    if value is None:
        return None
    value = _WORDS.get(value, value) if isinstance(value, str) else value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InputError(f"is {value!r}; give a number from 0 (b) to 1 (a), 'a', 'b', 'tie' or null", field=field)
    return float(value)


def swap_consistency(swaps: Sequence[Swap], examples: Sequence[RankingExample], *, resamples: int, seed: int) -> dict[str, Any]:
    """Cells with intervals over lists: unanswered, consistent, flipped, tied_once, first_won; and the counts they stand on.

    Pairs of lists that are not given are left out and counted as `elsewhere`.

    consistent: same document preferred in both orders, or a tie in both. flipped: another one. tied_once: a tie in one order only.
    first_won:  of all answers that prefer a document, the share that prefer the one shown first; 0.5 is no position bias.
    """
    groups = {example.id: f"group {example.group}" if example.group is not None else f"query {example.id}" for example in examples}
    given, swaps = len(swaps), [swap for swap in swaps if swap.example_id in groups]
    if not swaps:
        raise InputError("no list with pairs in both orders is among the lists given; judge and compare the same file")
    ids = list(dict.fromkeys(swap.example_id for swap in swaps))
    place = {example_id: at for at, example_id in enumerate(ids)}
    sums_QC = np.zeros((len(ids), len(_COLUMNS)))
    for swap in swaps:
        sums_QC[place[swap.example_id]] += _counts(swap)
    unit_Q = np.unique([groups[example_id] for example_id in ids], return_inverse=True)[1]
    drawn_RC = np.concatenate([times_RQ @ sums_QC for times_RQ in draws(unit_Q, resamples, seed)])
    total_C = sums_QC.sum(0)
    units = int(unit_Q.max()) + 1
    values: dict[str, Cell] = {}
    for name, whole in (
        ("unanswered", "asked"),
        ("consistent", "both"),
        ("flipped", "both"),
        ("tied_once", "both"),
        ("first_won", "decided"),
    ):
        part, base = _COLUMNS.index(name), _COLUMNS.index(whole)
        point = float(ratio(total_C[part], total_C[base]))
        values[name] = make_cell(point, ratio(drawn_RC[:, part], drawn_RC[:, base]), int(total_C[base]), units=units)
    counts = {name: int(count) for name, count in zip(_COLUMNS, total_C, strict=True)}
    return {"pairs": len(swaps), "lists": len(ids), "elsewhere": given - len(swaps), "counts": counts, "values": values}


def _counts(swap: Swap) -> list[float]:
    """One pair's row of _COLUMNS; `asked` and `unanswered` count answers, two a pair."""
    answers = [answer for answer in (swap.first, swap.second) if answer is not None]
    first, second = (0 if answer is None else int(np.sign(answer - 0.5)) for answer in (swap.first, swap.second))
    both = len(answers) == 2
    decided = abs(first) + abs(second)
    return [
        2, 2 - len(answers), both, both and first == second, both and first * second < 0, both and abs(first - second) == 1,
        decided, (first > 0) + (second < 0),
    ]  # fmt: skip
