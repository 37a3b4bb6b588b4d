"""Grade a file of lists with a judge: judgments, and beside them what the judge did, what is missing and why.

A judge that keeps its replies goes on by itself after a kill. One that computes its grades here is saved every few lists in
`<output>.part`, whose first line says what it belongs to. Either way a resumed run writes the file that an uninterrupted one would have.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyrank.files import fingerprint, to_json_text, write_json
from steadyrank.judging.base import Judge, JudgedList, Watch, missing_share
from steadyrank.judging.files import judged_from_json, judged_to_json, save_judgments
from steadyrank.records import RankingExample

SCHEMA = "steadyrank.judging/1"
CHUNK = 32  # lists: what a kill can cost a judge that keeps nothing by itself


def judge_into(output: Path, judge: Judge, examples: Sequence[RankingExample], *, watch: Watch | None = None) -> dict[str, Any]:
    """Write the judgments and `<output>.summary.json`; hands the summary back."""
    key = getattr(judge, "fingerprint", None)
    rows, resumed = (judge.judge(examples, watch=watch), 0) if key is None else _in_parts(output, judge, examples, key, watch)
    rows = [row if row.extra.get("candidates") else _with_ids(row, example) for row, example in zip(rows, examples, strict=True)]
    save_judgments(output, rows, judge=judge.name)
    share = missing_share(rows)
    summary = {
        "schema": SCHEMA,
        "output": str(output),
        "lists": len(rows),
        "lists_from_an_earlier_start": resumed,
        "candidates": sum(len(row.grades) for row in rows),
        "missing": sum(grade is None for row in rows for grade in row.grades),
        "missing_share": share,
        "max_missing": judge.max_missing,
        "fit_for_training": share <= judge.max_missing,
        "judge": judge.about(),
    }
    if output.is_file():  # not a stream, which has no place beside it
        write_json(output.with_name(output.name + ".summary.json"), summary)
    return summary


def _with_ids(row: JudgedList, example: RankingExample) -> JudgedList:
    return replace(row, extra={**row.extra, "candidates": example.candidate_ids})


def _in_parts(
    output: Path, judge: Judge, examples: Sequence[RankingExample], key: str, watch: Watch | None
) -> tuple[list[JudgedList], int]:
    part = output.with_name(output.name + ".part")
    pools = [[example.id, example.query, example.instruction, example.documents, example.relevance] for example in examples]
    head = json.dumps({"key": fingerprint([key, judge.name, pools])})
    done = _read(part, head)
    resumed = len(done)
    part.parent.mkdir(parents=True, exist_ok=True)
    told = None if watch is None else _Rest(watch)
    if told is not None:
        told.watch.begin(sum(len(example.candidates) for example in examples[resumed:]), "documents")
    with open(part, "w", encoding="utf-8") as handle:
        handle.write(head + "\n" + "".join(to_json_text(judged_to_json(row, judge=judge.name)) + "\n" for row in done))
        for start in range(resumed, len(examples), CHUNK):
            chunk = judge.judge(examples[start : start + CHUNK], watch=told)
            handle.write("".join(to_json_text(judged_to_json(row, judge=judge.name)) + "\n" for row in chunk))
            handle.flush()
            done += chunk
    part.unlink()
    return done, resumed


class _Rest:
    """Passes steps on, and not the beginning of every part."""

    def __init__(self, watch: Watch):
        self.watch = watch

    def begin(self, total: int, what: str) -> None:
        return

    def step(self, is_missing: bool) -> None:
        self.watch.step(is_missing)


def _read(part: Path, head: str) -> list[JudgedList]:
    """The lists of a part with this first line, up to the last whole chunk: the same batches, the same numbers."""
    if not part.is_file():
        return []
    lines = part.read_text(encoding="utf-8").split("\n")[:-1]  # what follows the last line end was cut off by the kill
    if not lines or lines[0] != head:
        return []
    rows = [judged_from_json(json.loads(line)) for line in lines[1:]]
    return rows[: len(rows) // CHUNK * CHUNK]
