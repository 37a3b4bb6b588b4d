"""Score lists under their presentations into a file, chunk by chunk: a killed audit goes on after its last whole chunk.

What is done stands in `<file>.part`. Its first line says what it belongs to; the line that ends a chunk says how many lists failed in it.
The finished file has `<file>.key` beside it, so that the same command with another threshold scores nothing again. A list that the scorer
left out (`scorer.failures`) is counted and never becomes scores.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import load_scores, save_scores, scored_from_json, scored_to_json
from steadyrank.errors import RunError
from steadyrank.files import file_digest, fingerprint, read_json, to_json_text, write_json
from steadyrank.records import Presentation, RankingExample, ScoredList

CHUNK = 64  # examples; each has several presentations
REASONS = 5  # failures told in full


@dataclass
class Scored:
    """All scored lists, how many an earlier start had done, and what failed."""

    lists: list[ScoredList] = field(default_factory=list)
    asked: int = 0
    resumed: int = 0
    failed: int = 0
    reasons: list[str] = field(default_factory=list)


def score_laid(
    scorer: Any,
    examples: Sequence[RankingExample],
    laid: Sequence[Sequence[Presentation]],
    *,
    path: Path | None = None,
    progress: bool = False,
) -> Scored:
    """The scored lists of every example under each of its presentations."""
    if path is None:
        out = Scored()
        for start in range(0, len(examples), CHUNK):
            _add(out, scorer, examples[start : start + CHUNK], laid[start : start + CHUNK], progress=progress)
        return _checked(out, scorer)
    pools = [[item.id, item.query, item.instruction, item.documents] for item in examples]
    shown = [[[list(p.order or ()), p.windows, p.markers, p.skeleton, p.dummy, p.seed] for p in row] for row in laid]
    key = fingerprint(["audit", scorer.fingerprint, pools, shown])
    found = _finished(path, key)
    if found is not None:
        return found
    part = path.with_name(path.name + ".part")
    out, chunks = _read(part, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = _kept_lines(part) if chunks else [json.dumps({"key": key})]
    with open(part, "w", encoding="utf-8") as handle:
        handle.writelines(line + "\n" for line in kept)
        for start in range(chunks * CHUNK, len(examples), CHUNK):
            before = len(out.lists), out.asked, out.failed, len(out.reasons)
            _add(out, scorer, examples[start : start + CHUNK], laid[start : start + CHUNK], progress=progress)
            handle.writelines(to_json_text(scored_to_json(item)) + "\n" for item in out.lists[before[0] :])
            end = {"chunk": {"asked": out.asked - before[1], "failed": out.failed - before[2], "reasons": out.reasons[before[3] :]}}
            handle.write(to_json_text(end) + "\n")
            handle.flush()
    _checked(out, scorer)
    save_scores(path, out.lists)
    done = {"key": key, "scores": file_digest(path), "asked": out.asked, "failed": out.failed, "reasons": out.reasons}
    write_json(_key_path(path), done)
    part.unlink()
    return out


def _add(out: Scored, scorer: Any, examples: Sequence[RankingExample], laid: Sequence[Sequence[Presentation]], *, progress: bool) -> None:
    told = len(getattr(scorer, "failures", ()))
    rows = scorer.score_presentations(examples, laid, progress=progress)
    asked, got = sum(map(len, laid)), sum(map(len, rows))
    out.lists += [item for row in rows for item in row]
    out.asked += asked
    out.failed += asked - got
    room = REASONS - len(out.reasons)
    out.reasons += [reason_of(item) for item in list(getattr(scorer, "failures", ()))[told : told + max(0, room)]]


def reason_of(failure: Any) -> str:
    """A failure of a remote scorer on one line."""
    where, why = getattr(failure, "example_id", None), getattr(failure, "reason", None) or str(failure)
    return f"{where}: {why}" if where is not None else str(why)


def _checked(out: Scored, scorer: Any) -> Scored:
    if out.asked and not out.lists:
        why = f" (first: {out.reasons[0]})" if out.reasons else ""
        raise RunError(f"scorer {scorer.name!r} answered none of {out.asked} lists{why}; nothing can be audited")
    return out


def _key_path(path: Path) -> Path:
    return path.with_name(path.name + ".key")


def _finished(path: Path, key: str) -> Scored | None:
    """What an earlier audit left whole, if it is of this very job and unchanged since."""
    if not path.exists() or not _key_path(path).exists():
        return None
    done = read_json(_key_path(path))
    if not isinstance(done, dict) or done.get("key") != key or done.get("scores") != file_digest(path):
        return None
    lists = load_scores(path)
    return Scored(lists, done["asked"], len(lists), done["failed"], list(done["reasons"]))


def _lines(part: Path) -> list[str]:
    return part.read_text(encoding="utf-8").split("\n")[:-1] if part.exists() else []


def _kept_lines(part: Path) -> list[str]:
    """The lines up to the end of the last whole chunk."""
    lines = _lines(part)
    last = max((at for at, line in enumerate(lines) if line.startswith('{"chunk"')), default=0)
    return lines[: last + 1]


def _read(part: Path, key: str) -> tuple[Scored, int]:
    """(what whole chunks of this job hold, how many chunks)."""
    out, chunks = Scored(), 0
    lines = _lines(part)
    if not lines or lines[0] != json.dumps({"key": key}):
        return out, 0
    for line in _kept_lines(part)[1:]:
        row = json.loads(line)
        if "chunk" in row:
            chunks += 1
            out.asked += row["chunk"]["asked"]
            out.failed += row["chunk"]["failed"]
            out.reasons += row["chunk"]["reasons"]
        else:
            out.lists.append(scored_from_json(row))
    out.resumed = len(out.lists)
    return out, chunks
