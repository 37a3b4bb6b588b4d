"""Score lists into a file, chunk by chunk: a killed job goes on after its last whole chunk, to the same numbers.

What is done so far stands in `<output>.part`; its first line says what it belongs to, and a part of another job is begun anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import save_scores, scored_from_json, scored_to_json
from steadyrank.files import fingerprint, to_json_text
from steadyrank.records import RankingExample, ScoredList

CHUNK = 256  # lists; large enough that sorting by length still pays


def score_into(
    output: Path, scorer: Any, examples: Sequence[RankingExample], *, presentations: int = 1, seed: int = 0, progress: bool = False
) -> tuple[list[ScoredList], int]:
    """Score, write `output`, and hand back the scored lists and how many of them an earlier start had done."""
    if output.exists() and not output.is_file():  # a stream: there is no place beside it
        scored = scorer.score_examples(examples, presentations=presentations, seed=seed, progress=progress)
        save_scores(output, scored)
        return scored, 0
    pools = [[item.id, item.query, item.instruction, item.documents] for item in examples]
    key = fingerprint([scorer.fingerprint, presentations, seed, pools])
    part = output.with_name(output.name + ".part")
    done = _read(part, key)
    done = done[: len(done) // (CHUNK * presentations) * CHUNK * presentations]  # whole chunks: the same batches, the same numbers
    resumed = len(done)
    part.parent.mkdir(parents=True, exist_ok=True)
    with open(part, "w", encoding="utf-8") as handle:
        handle.write(json.dumps({"key": key}) + "\n")
        handle.writelines(to_json_text(scored_to_json(item)) + "\n" for item in done)
        for start in range(resumed // presentations, len(examples), CHUNK):
            chunk = scorer.score_examples(examples[start : start + CHUNK], presentations=presentations, seed=seed, progress=progress)
            handle.writelines(to_json_text(scored_to_json(item)) + "\n" for item in chunk)
            handle.flush()
            done += chunk
    save_scores(output, done)
    part.unlink()
    return done, resumed


def _read(part: Path, key: str) -> list[ScoredList]:
    """The lists of whole lines after a first line with this key; a line cut short by a kill ends them."""
    if not part.exists():
        return []
    lines = part.read_text(encoding="utf-8").split("\n")[:-1]
    if not lines or lines[0] != json.dumps({"key": key}):
        return []
    return [scored_from_json(json.loads(line)) for line in lines[1:]]
