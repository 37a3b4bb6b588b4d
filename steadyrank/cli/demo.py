"""`steadyrank demo`: the main job, end to end, on packaged data and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.output import AsJson, Seed, emit, say


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the study goes.")] = Path("demo-results"),
    full: Annotated[bool, typer.Option("--full", help="The larger sizes: hours on two cores, instead of minutes.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Strengthen a teacher, distil a compact student from it, evaluate both and write a report.

    Example: steadyrank demo -o demo-results
    """
    from steadyrank.experiments.demo import run_demo

    result = run_demo(output, full=full, seed=seed, say=say)
    emit(result.to_json(), as_json=as_json, lines=result.lines())
