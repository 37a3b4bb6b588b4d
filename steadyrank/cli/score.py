"""`steadyrank score`: a scorer and lists in, a file of scored lists out. Score once, study often."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steadyrank.cli.output import AsJson, Seed, emit, say


def scorer_options(pairs: list[str]) -> dict[str, Any]:
    """`max_length=256` pairs as options of `load_scorer`."""
    from steadyrank.config import merge, parse_override

    options: dict[str, Any] = {}
    for pair in pairs:
        options = merge(options, parse_override(pair))
    return options


def score(
    scorer: Annotated[
        str,
        typer.Argument(
            help="A model folder, hub id, rerank URL, module:function, scored lists (.jsonl), or: teacher, smollm2, "
            "bm25, random, constant, first_stage, oracle."
        ),
    ],
    examples: Annotated[str, typer.Argument(help="A file or folder of lists, or packaged:test / packaged:shifted.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The scored lists, as JSON lines.")],
    option: Annotated[list[str] | None, typer.Option("--option", help="An option of the scorer, e.g. max_length=256; repeatable.")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="Keep lists whose source starts with this; repeatable.")] = None,
    limit: Annotated[int | None, typer.Option(help="Score only this many lists, drawn by the seed.")] = None,
    presentations: Annotated[int, typer.Option(min=1, help="Lay each list before the scorer in this many orders.")] = 1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Score lists with any scorer and write the scores.

    Example: steadyrank score teacher packaged:test -o teacher.jsonl --limit 200
    """
    from steadyrank.data.selecting import choose, examples_of
    from steadyrank.experiments.score_files import score_into
    from steadyrank.scoring import load_scorer

    lists = choose(examples_of(examples, sources=source or ()), limit, seed=seed)
    loaded = load_scorer(scorer, **scorer_options(option or []))
    say(f"scoring {len(lists)} lists, {sum(len(item.candidates) for item in lists)} candidates, with {loaded.name}")
    scored, resumed = score_into(output, loaded, lists, presentations=presentations, seed=seed, progress=not as_json)
    counts: dict[str, Any] = {
        "lists": len(scored),
        "from_an_earlier_start": resumed,
        "candidates": sum(len(item.scores) for item in scored),
        "truncated": None if hasattr(loaded, "client") else sum(len(item.truncated) for item in scored),  # a service does not say
        "empty": sum(len(item.empty) for item in scored),
        "failed": len(getattr(loaded, "failures", ())),
        "scale": loaded.scale,
        "output": str(output),
    }
    line = "{lists} lists, {candidates} scores ({scale}) in {output}; cut to fit: {cut}; without text: {empty}".format(
        **counts, cut="not known" if counts["truncated"] is None else counts["truncated"]
    )
    lines = [line]
    if counts["failed"]:
        lines.append(f"{counts['failed']} lists got no scores and are not in the file; the first: {loaded.failures[0]}")  # type: ignore[attr-defined]
    if hasattr(loaded, "client"):
        calls = loaded.client.counts
        counts["remote"] = calls.to_json()
        lines.append(f"calls: {calls.calls}, retries: {calls.retries}, failed: {calls.failures}, bytes sent: {calls.sent_bytes}")
    emit(counts, as_json=as_json, lines=lines)
