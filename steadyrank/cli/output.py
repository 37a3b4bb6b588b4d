"""What every verb shares: plain or rich output, `--json`, progress lines, and how an error looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random stream.")]


def fail(sentence: str, code: int) -> int:
    """Print the one sentence on stderr; hands the exit code back."""
    print(f"steadyrank: {sentence}", file=sys.stderr)
    return code


def say(text: str) -> None:
    """A line of progress; on stderr, so that stdout holds results only."""
    print(text, file=sys.stderr, flush=True)


def emit(result: Mapping[str, Any], *, as_json: bool, lines: Iterable[str] = ()) -> None:
    """The result as one JSON object, or as lines for a person."""
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        for line in lines:
            print(line)


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, notes: Iterable[str] = ()) -> None:
    """A table on the terminal: the first column to the left, the others to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right", no_wrap=place > 0)
    for row in rows:
        table.add_row(*row)
    # A pipe has no width of its own; a table cut at 80 columns would lose figures.
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(table)
    for note in notes:
        console.print(note, style="dim")
