"""Score lists into a file, chunk by chunk: a killed job goes on after its last whole chunk, to the same numbers.

What is done so far stands in `<output>.part`; its first line says what it belongs to, and a part of another job is begun anew. A line after
each chunk says how far it goes and which lists got no scores: a scorer that leaves lists out gives fewer lines than were asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import save_scores, scored_from_json, scored_to_json
from steadyrank.files import fingerprint, to_json_text
from steadyrank.records import RankingExample, ScoredList
from steadyrank.scoring.outside import Failure

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
    done, first, failures = _read(part, key)
    resumed = len(done)
    if failures:
        scorer.failures.extend(Failure(*row) for row in failures)
    part.parent.mkdir(parents=True, exist_ok=True)
    with open(part, "w", encoding="utf-8") as handle:
        handle.write(json.dumps({"key": key}) + "\n")
        handle.writelines(to_json_text(scored_to_json(item)) + "\n" for item in done)
        if first:
            handle.write(to_json_text({"done": first, "failures": failures}) + "\n")
        for start in range(first, len(examples), CHUNK):
            told = len(getattr(scorer, "failures", ()))
            chunk = scorer.score_examples(examples[start : start + CHUNK], presentations=presentations, seed=seed, progress=progress)
            handle.writelines(to_json_text(scored_to_json(item)) + "\n" for item in chunk)
            failed = [list(astuple(failure)) for failure in getattr(scorer, "failures", ())[told:]]
            handle.write(to_json_text({"done": start + CHUNK, "failures": failed}) + "\n")
            handle.flush()
            done += chunk
    save_scores(output, done)
    part.unlink()
    return done, resumed


def score_splits(
    folder: Path,
    name: str,
    splits: Mapping[str, Sequence[RankingExample]],
    open_scorer: Callable[[], Any],
    *,
    identity: str = "",
    seed: int = 0,
) -> dict[str, Path]:
    """The file of scores of every split, `folder/scores/<split>/<name>-<key>.jsonl`; the scorer is opened only where one is missing.

    identity: what the scores depend on, where the name alone does not say it (a digest of the weights); it is hashed into the key with
    the seed and the pools.
    """
    out, scorer = {}, None
    for split, lists in splits.items():
        pools = [[example.query, example.instruction or "", *example.documents] for example in lists]
        path = folder / "scores" / split / f"{name}-{fingerprint([identity, seed, pools])[:8]}.jsonl"
        if not path.exists():
            scorer = scorer or open_scorer()
            score_into(path, scorer, lists, seed=seed)
        out[split] = path
    return out


def _read(part: Path, key: str) -> tuple[list[ScoredList], int, list[Any]]:
    """The lists of whole chunks after a first line with this key, how many examples those were, and which of their lists failed."""
    done: list[ScoredList] = []
    failures: list[Any] = []
    first = 0
    if not part.exists():
        return done, first, failures
    lines = part.read_text(encoding="utf-8").split("\n")[:-1]
    if not lines or lines[0] != json.dumps({"key": key}):
        return done, first, failures
    chunk: list[ScoredList] = []
    for row in map(json.loads, lines[1:]):
        if "done" not in row:
            chunk.append(scored_from_json(row))
            continue
        done, chunk, first = done + chunk, [], row["done"]  # whole chunks only: the same batches, the same numbers
        failures += row["failures"]
    return done, first, failures
