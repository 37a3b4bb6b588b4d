"""Raw replies on disk: asked once, kept for good, shared by processes.

The key is everything that can change a reply: endpoint, model, revision, prompt hash, decoding and the texts sent. A process claims a key
before it calls, so that two processes never pay for the same reply; the claim of a process that has died is free at once, any other after
its time. A reply is written the moment it is there: kill -9 costs the calls under way and nothing else. What is kept is the reply as it
came, never what was read out of it, so that reading can be mended without asking again.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steadyrank.errors import RunError
from steadyrank.files import to_json_text

_BATCH = 500  # keys of one statement; sqlite limits its variables


@dataclass(frozen=True, slots=True)
class RawReply:
    """What the endpoint sent back. Token counts are None where it sent none."""

    text: str | None
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    model: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """What came of asking for a key: a reply that is there, or the right to call (`mine`), or neither: another process is at it."""

    reply: RawReply | None = None
    mine: bool = False


def key_of(parts: Mapping[str, Any]) -> bytes:
    """The key of a request: a hash of everything that can change its reply."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode("ascii")).digest()


class ReplyCache:
    """A file of replies. One object a process and job; `close` gives its open claims back."""

    def __init__(self, path: str | Path, *, claim_seconds: float = 600.0):
        self.path, self.claim_seconds = Path(path), claim_seconds
        self.owner = f"{socket.gethostname()}|{os.getpid()}|{_started(os.getpid())}|{uuid.uuid4().hex[:8]}"
        with self._guarded():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The client may run its loop in a thread of its own; one thread at a time uses the connection all the same.
            self._db = sqlite3.connect(self.path, timeout=60.0, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT, owner TEXT, until REAL NOT NULL) WITHOUT ROWID"
            )

    def read(self, keys: Iterable[bytes]) -> dict[bytes, RawReply]:
        """The replies that are there."""
        every = list(keys)
        out: dict[bytes, RawReply] = {}
        with self._guarded():
            for start in range(0, len(every), _BATCH):
                part = every[start : start + _BATCH]
                marks = ",".join("?" * len(part))
                rows = self._db.execute(f"SELECT key, reply FROM replies WHERE reply IS NOT NULL AND key IN ({marks})", part)
                out |= {bytes(key): _reply(text) for key, text in rows}
        return out

    def claim(self, key: bytes, *, again: bool = False) -> Claim:
        """The reply, or the right to ask for it, or neither. again: ask although a reply is there; it then takes that one's place."""
        with self._guarded(), self._transaction():
            row = self._db.execute("SELECT reply, owner, until FROM replies WHERE key = ?", (key,)).fetchone()
            if row is not None and row[0] is not None and not again:
                return Claim(reply=_reply(row[0]))
            if row is not None and row[1] not in (None, self.owner) and row[2] > time.time() and not _is_dead(row[1]):
                return Claim()
            self._db.execute(
                "INSERT INTO replies VALUES (?, NULL, ?, ?) ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until",
                (key, self.owner, time.time() + self.claim_seconds),
            )
            return Claim(mine=True)

    def store(self, key: bytes, reply: RawReply) -> None:
        """Keep a reply and end the claim."""
        with self._guarded():
            self._db.execute(
                "INSERT INTO replies VALUES (?, ?, NULL, 0) "
                "ON CONFLICT (key) DO UPDATE SET reply = excluded.reply, owner = NULL, until = 0",
                (key, to_json_text(asdict(reply))),
            )

    def release(self, key: bytes) -> None:
        """End a claim without a reply; an older reply stays."""
        with self._guarded(), self._transaction():
            self._db.execute("DELETE FROM replies WHERE key = ? AND owner = ? AND reply IS NULL", (key, self.owner))
            self._db.execute("UPDATE replies SET owner = NULL, until = 0 WHERE key = ? AND owner = ?", (key, self.owner))

    def close(self) -> None:
        """Give back all claims and close the file."""
        with self._guarded():
            with self._transaction():
                self._db.execute("DELETE FROM replies WHERE owner = ? AND reply IS NULL", (self.owner,))
                self._db.execute("UPDATE replies SET owner = NULL, until = 0 WHERE owner = ?", (self.owner,))
            self._db.close()

    @contextmanager
    def _transaction(self) -> Any:
        self._db.execute("BEGIN IMMEDIATE")  # the write lock first: what is read below cannot change before it is written
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    @contextmanager
    def _guarded(self) -> Any:
        try:
            yield
        except sqlite3.Error as error:
            raise RunError(f"{self.path}: the cache of replies cannot be used ({error}); give another file with `cache`") from error


def _reply(text: str) -> RawReply:
    return RawReply(**json.loads(text))


def _started(pid: int) -> str:
    """When a process began, so that a later one with the same number is not taken for it; empty where the system does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_dead(owner: str) -> bool:
    """Whether a claim's process is known to be gone: of this machine, and not running any more. Elsewhere only time frees a claim."""
    host, pid, started, _ = owner.rsplit("|", 3)
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return bool(started) and _started(int(pid)) != started
