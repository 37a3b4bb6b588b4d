"""`steadyrank experiment`: methods x students x seeds x settings, every cell a run, ending in tables, figures and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.output import AsJson, emit, say, show_table


def experiment(
    matrix: Annotated[str | None, typer.Argument(help="A matrix (YAML), or a shipped one by its name; --list names them.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder of the experiment; a killed one goes on from there.")
    ] = None,
    size: Annotated[str | None, typer.Option(help="A size that the matrix names: tiny, small, ...; none is the whole of it.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="Change one field, e.g. base.training.learning_rate=3e-5; repeatable.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at a time, each a process; numbers do not depend on it.")] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Work on these cells only, as patterns: a3, 'a*--seed0'; repeatable.")] = None,
    status: Annotated[bool, typer.Option("--status", help="Start nothing: show every cell, its steps, and how it stands.")] = False,
    report_only: Annotated[bool, typer.Option("--report-only", help="Start nothing: evaluate what is done and report it.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away what earlier starts left of the cells worked on.")] = False,
    as_list: Annotated[bool, typer.Option("--list", help="The shipped matrices.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a matrix of experiments; the same command goes on where it stopped, and a failing cell does not stop the others.

    Example: steadyrank experiment ablations --size small -o results/ablations --jobs 2
    """
    from steadyrank.errors import ConfigError
    from steadyrank.experiments.matrix import load_matrix, shipped

    if as_list:
        emit(shipped(), as_json=as_json, lines=[f"{name:<10} {about}" for name, about in shipped().items()])
        return
    if matrix is None:
        raise ConfigError(f"name a matrix file, or one of: {', '.join(shipped())}")
    loaded = load_matrix(matrix, size=size, overrides=setting or ())
    folder = output or Path(f"{loaded.name}-results")
    if status:
        _show_status(loaded, folder, only or (), as_json=as_json)
        return
    from steadyrank.experiments.matrix import collect_only, run_matrix

    if report_only:
        page = collect_only(folder, say=say)
        emit({"report": str(page)}, as_json=as_json, lines=[f"report in {page}"])
        return
    result = run_matrix(loaded, folder, jobs=jobs, only=only or (), restart=restart, say=say)
    emit(result.to_json(), as_json=as_json, lines=result.lines())
    if result.failed:
        raise typer.Exit(1)


def _show_status(matrix: object, folder: Path, only: list[str] | tuple[str, ...], *, as_json: bool) -> None:
    from steadyrank.experiments.matrix import standing

    rows = standing(matrix, folder, only=only)  # type: ignore[arg-type]
    if as_json:
        emit({"cells": [row.to_json() for row in rows]}, as_json=True)
        return
    done = sum(row.state == "done" for row in rows)
    show_table(
        f"{folder}: {done} of {len(rows)} cells done",
        ["cell", "state", "steps done", "steps"],
        [(row.cell if row.is_selected else f"{row.cell} (not chosen)", row.state, str(row.steps_done), str(row.steps)) for row in rows],
    )
