"""`steadyrank demo`: the main job, end to end, on packaged data and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.output import AsJson, Seed, emit, say


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the study goes.")] = Path("demo-results"),
    full: Annotated[bool, typer.Option("--full", help="The larger sizes: hours on two cores, instead of minutes.")] = False,
    lists: Annotated[int | None, typer.Option(min=1, help="Train each stage on this many lists instead.")] = None,
    eval_lists: Annotated[int | None, typer.Option(min=1, help="Evaluate on this many lists of each split instead.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Strengthen a teacher, distil a compact student from it, evaluate both and write a report.

    Example: steadyrank demo -o demo-results
    """
    from steadyrank.experiments.demo import run_demo, sizes_of

    result = run_demo(output, sizes_of(full=full, lists=lists, eval_lists=eval_lists), seed=seed, say=say)
    emit(result.to_json(), as_json=as_json, lines=result.lines())
