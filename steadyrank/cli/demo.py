"""`steadyrank demo`: the main job end to end, and `steadyrank demo audit`, its second act; on packaged data and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.output import AsJson, Seed, emit, say
from steadyrank.errors import ConfigError, unknown_name

ACTS = {"distil": "demo-results", "audit": "demo-audit-results"}


def demo(
    act: Annotated[str, typer.Argument(help="distil: teacher, student, report. audit: trained in one order against OC-SFT.")] = "distil",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where the results go.")] = None,
    full: Annotated[bool, typer.Option("--full", help="The larger sizes: hours on two cores, instead of minutes.")] = False,
    lists: Annotated[int | None, typer.Option(min=1, help="Train each run on this many lists instead.")] = None,
    eval_lists: Annotated[int | None, typer.Option(min=1, help="Evaluate on this many lists of each split instead.")] = None,
    teacher: Annotated[str | None, typer.Option(help="Audit: a cross-encoder whose scores are the labels; else the grades are.")] = None,
    warm: Annotated[str | None, typer.Option(help="Audit: a cross-encoder that ranks already, to start from.")] = None,
    language_model: Annotated[bool, typer.Option("--language-model", help="Audit: train a small language model instead; hours.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Strengthen a teacher, distil a compact student, report; or show what order does to a scorer of several candidates.

    Example: steadyrank demo -o demo-results
    Example: steadyrank demo audit -o demo-audit-results
    """
    if act not in ACTS:
        raise unknown_name("act of the demo", act, ACTS)
    folder = output or Path(ACTS[act])
    if act == "audit":
        from steadyrank.experiments.steadiness import run_steadiness
        from steadyrank.experiments.steadiness_sizes import sizes_of as act_sizes_of

        name = "language_model" if language_model else "full" if full else "quick"
        sizes = act_sizes_of(name, lists=lists, eval_lists=eval_lists)
        shown = run_steadiness(folder, sizes, teacher=teacher, warm=warm, seed=seed, say=say)
        emit(shown.to_json(), as_json=as_json, lines=shown.lines())
        return
    if teacher is not None or warm is not None or language_model:
        raise ConfigError("--teacher, --warm and --language-model go with `steadyrank demo audit`; the first act makes its own models")
    from steadyrank.experiments.demo import run_demo, sizes_of

    result = run_demo(folder, sizes_of(full=full, lists=lists, eval_lists=eval_lists), seed=seed, say=say)
    emit(result.to_json(), as_json=as_json, lines=result.lines())
