"""`steadyrank train`: one recipe, one run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.output import AsJson, emit, say


def train(
    recipe: Annotated[Path | None, typer.Argument(help="A recipe (YAML); docs/recipes.md lists its fields.")] = None,
    preset: Annotated[str | None, typer.Option(help="Start from a shipped preset: a1 ... a10, exact, stage1, ...")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="Change one field, e.g. training.learning_rate=3e-5; repeatable.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The run directory; a killed run goes on from there.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away what an earlier run left in the directory.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a reranker from a recipe or a preset; with `stage1` and `stage2` in the recipe both stages, then a report.

    Example: steadyrank train --preset a3 --set data.limit=500 -o runs/a3
    """
    from steadyrank.config import load_recipe, preset_names
    from steadyrank.errors import ConfigError

    if recipe is None and preset is None:
        raise ConfigError(f"give a recipe file, or --preset with one of: {', '.join(preset_names())}")
    overrides = list(setting or []) + ([f"output={output}"] if output is not None else [])
    from steadyrank.experiments.two_stage import read_two_stage, run_two_stage

    both = read_two_stage(recipe, overrides=overrides) if preset is None else None
    if both is not None:
        done = run_two_stage(both, restart=restart, say=say)
        emit(done.to_json(), as_json=as_json, lines=done.lines())
        return
    loaded = load_recipe(recipe, preset=preset, overrides=overrides)
    from steadyrank.experiments.recipes import run_recipe

    result = run_recipe(loaded, restart=restart, say=say)
    emit(result.to_json(), as_json=as_json, lines=[*result.lines(), f"model in {loaded.output}/final, best on dev in {loaded.output}/best"])
