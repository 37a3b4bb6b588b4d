"""`steadyrank bench`: speed, measured beside the tool a user would pick instead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.output import AsJson, emit, say


def bench(
    name: Annotated[str, typer.Argument(help="policy, score, train or audit.")],
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the contestants take turns within each.")] = 3,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the result as JSON.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed in one run, as ratios with their spread. Needs the packaged models.

    Example: steadyrank bench score
    """
    from steadyrank.benchmarks import BENCHMARKS
    from steadyrank.files import write_json
    from steadyrank.names import find

    run = find("benchmark", name, BENCHMARKS)
    say(f"measuring {name}; keep the machine quiet")
    results = run(rounds=rounds)
    written = {"benchmark": name, "results": [result.to_json() for result in results]}
    if output is not None:
        write_json(output, written)
    emit(written, as_json=as_json, lines=[line for result in results for line in result.lines()])
