"""Scores of a frozen scorer, computed once and kept on disk.

The key is everything that can change a score: the scorer's fingerprint (weights, template, budgets, dtype) and the pair's texts,
or the whole list's for a scorer that does not read one pair at a time. Several processes may use one file at a time; a score is
written once and never changed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyrank.errors import RunError
from steadyrank.records import RankingExample

_LISTS_AT_ONCE = 64  # lists scored between two commits: a killed run loses at most these


class TeacherCache:
    """`TeacherCache(path).scores(scorer, examples)`; `hits` and `misses` count candidates since it was opened."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.hits = 0
        self.misses = 0
        self.truncated = 0

    def scores(
        self, scorer: Any, examples: Sequence[RankingExample], *, report: Callable[[int, int], None] | None = None
    ) -> list[list[float]]:
        """One row of scores an example, canonical order, on the scorer's own scale.

        report: called with (lists done, lists) after each part of the work.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(self._connect()) as connection:
                out: list[list[float]] = []
                for start in range(0, len(examples), _LISTS_AT_ONCE):
                    out += self._part(connection, scorer, examples[start : start + _LISTS_AT_ONCE])
                    if report is not None:
                        report(len(out), len(examples))
                return out
        except sqlite3.DatabaseError as error:
            raise RunError(f"{self.path}: the teacher-score cache cannot be used ({error}); delete the file and run again") from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=60.0)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, score REAL NOT NULL) WITHOUT ROWID")
        connection.commit()
        return connection

    def _part(self, connection: sqlite3.Connection, scorer: Any, examples: Sequence[RankingExample]) -> list[list[float]]:
        fingerprint, reads_pairs = scorer.fingerprint, hasattr(scorer, "encode") and not getattr(scorer, "reads_lists", False)
        keys = [_keys(fingerprint, example) if reads_pairs else _list_keys(fingerprint, example) for example in examples]
        known = _read(connection, {key for row in keys for key in row})
        wanted = []  # each example's candidates that are not known, a pair asked for once
        asked: set[bytes] = set()
        for place, row in enumerate(keys):
            missing = [column for column, key in enumerate(row) if key not in known and key not in asked and not asked.add(key)]  # type: ignore[func-returns-value]
            if missing:
                wanted.append((place, missing))
        self.misses += len(asked)
        self.hits += sum(len(row) for row in keys) - len(asked)
        if wanted:
            parts = [replace(examples[place].with_candidates(missing), id=f"{place}") for place, missing in wanted]
            new: dict[bytes, float] = {}
            for (place, missing), scored in zip(wanted, scorer.score_examples(parts), strict=True):
                self.truncated += len(scored.truncated)
                new |= {keys[place][column]: score for column, score in zip(missing, scored.scores, strict=True)}
            with connection:
                connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?)", list(new.items()))
            known |= _read(connection, new)  # another process may have been first: all then use its value
        return [[known[key] for key in row] for row in keys]


def _keys(fingerprint: str, example: RankingExample) -> list[bytes]:
    instruction = ("1" + example.instruction) if example.instruction is not None else "0"
    head = _text_hash(fingerprint, instruction, example.query)
    return [hashlib.sha256(head + document.encode("utf-8", "surrogatepass")).digest()[:20] for document in example.documents]


def _list_keys(fingerprint: str, example: RankingExample) -> list[bytes]:
    """Keys where a score may depend on the whole list, its order and its grades (bm25, first_stage, oracle)."""
    whole = _text_hash(fingerprint, example.id, repr(example.instruction), example.query, repr(example.relevance), *example.documents)
    return [hashlib.sha256(whole + str(place).encode()).digest()[:20] for place in range(len(example.candidates))]


def _text_hash(*texts: str) -> bytes:
    out = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        out.update(len(data).to_bytes(8, "big") + data)
    return out.digest()


def _read(connection: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, float]:
    out: dict[bytes, float] = {}
    every = list(keys)
    for start in range(0, len(every), 500):  # sqlite limits the number of variables of one statement
        part = every[start : start + 500]
        marks = ",".join("?" * len(part))
        out |= dict(connection.execute(f"SELECT key, score FROM scores WHERE key IN ({marks})", part).fetchall())
    return out
