"""`steadyrank judge grade`: a judge and lists in, a file of judgments out, with progress, cost and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from steadyrank.cli.output import AsJson, Seed, emit, say

EVERY = 10.0  # seconds between two lines where there is no terminal


def grade(
    examples: Annotated[str, typer.Argument(help="The lists to grade: a file or folder, or packaged:test.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The judgments, as JSON lines; FILE.summary.json goes beside it.")],
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            help="A YAML file with a judge's fields, a chat endpoint (http://.../v1), judgments (.jsonl), or a kind: "
            "chat, pairwise, scorer, causal_lm, recorded, relevance.",
        ),
    ],  # fmt: skip
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A field of the judge, e.g. model=gpt-oss-20b, budget=5, scorer=teacher; repeatable.")
    ] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="Keep lists whose source starts with this; repeatable.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Grade only this many lists, drawn by the seed.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Grade every candidate of every list. The same command goes on after a kill or a spent budget; no reply is paid for twice.

    Example: steadyrank judge grade lists.jsonl -o judgments.jsonl --judge http://localhost:8000/v1 --set model=my-model
    """
    from steadyrank.data.selecting import choose, examples_of
    from steadyrank.experiments.judging import judge_into
    from steadyrank.judging import load_judge

    lists = choose(examples_of(examples, sources=source or ()), limit, seed=seed)
    loaded = load_judge(judge_fields(judge, setting or []))
    say(f"judge {loaded.name}: {len(lists)} lists, {sum(len(item.candidates) for item in lists)} candidates")
    ledger = getattr(loaded, "ledger", None)
    with watching(ledger.spent if ledger is not None else None) as watch:
        summary = judge_into(output, loaded, lists, watch=watch)
    emit(summary, as_json=as_json, lines=_lines(summary))


def judge_fields(judge: str, settings: list[str]) -> dict[str, Any]:
    """The fields of a judge, from what --judge names, with --set laid over them."""
    from steadyrank.config import merge, parse_override, read_fields
    from steadyrank.errors import MissingDataError
    from steadyrank.judging import fields_of

    if judge.endswith((".yaml", ".yml")):
        if not Path(judge).is_file():
            raise MissingDataError(f"judge {judge} does not exist; give a YAML file with kind and the fields of that kind")
        fields = read_fields(Path(judge))
        fields = fields["judge"] if isinstance(fields.get("judge"), dict) else fields  # also the judge of a recipe
    else:
        fields = fields_of(judge)
    for text in settings:
        fields = merge(fields, parse_override(text))
    return fields


@contextmanager
def watching(spent: Callable[[], str] | None) -> Iterator[Any]:
    """A bar on a terminal, else a line every few seconds; both with what is missing, what was spent and the time left."""
    if not sys.stderr.isatty():
        yield Lines(spent)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield Bar(bar, spent)


class Lines:
    """Progress as plain lines."""

    def __init__(self, spent: Callable[[], str] | None, *, clock: Callable[[], float] = time.monotonic, tell: Callable[[str], None] = say):
        self.spent, self.clock, self.tell = spent, clock, tell

    def begin(self, total: int, what: str) -> None:
        self.total, self.what, self.done, self.missing = total, what, 0, 0
        self.begun = self.told = self.clock()

    def step(self, is_missing: bool) -> None:
        self.done += 1
        self.missing += is_missing
        now = self.clock()
        if now - self.told >= EVERY or self.done == self.total:
            self.told = now
            left = (now - self.begun) / self.done * (self.total - self.done)
            spent = f", spent {self.spent()}" if self.spent else ""
            self.tell(f"{self.done}/{self.total} {self.what}, {self.missing} without an answer{spent}, {left:.0f} s left")


class Bar:
    """Progress as a bar."""

    def __init__(self, bar: Any, spent: Callable[[], str] | None):
        self.bar, self.spent, self.missing = bar, spent, 0

    def begin(self, total: int, what: str) -> None:
        self.what, self.task = what, self.bar.add_task(what, total=total)

    def step(self, is_missing: bool) -> None:
        self.missing += is_missing
        spent = f", spent {self.spent()}" if self.spent else ""
        self.bar.update(self.task, advance=1, description=f"{self.what}, {self.missing} without an answer{spent}")


def _lines(summary: dict[str, Any]) -> list[str]:
    told = summary["judge"]
    out = [
        f"{summary['lists']} lists, {summary['candidates']} candidates in {summary['output']}; "
        f"without a grade: {summary['missing']} ({summary['missing_share']:.1%})"
    ]
    if told.get("missing_reasons"):
        out.append("replies without an answer: " + ", ".join(f"{name} {count}" for name, count in told["missing_reasons"].items()))
    if "ledger" in told:
        ledger = told["ledger"]
        tokens = ledger["prompt_tokens"] + ledger["completion_tokens"]
        out.append(
            f"calls: {ledger['called']}, from the cache: {ledger['cached']}, failed attempts: {ledger['failed_attempts']}, "
            f"tokens: {tokens}, cost: {ledger['cost']:.4f}; schema: {told['structured']}"
        )
    if not summary["fit_for_training"]:
        out.append(
            f"NOT FIT FOR TRAINING: more than {summary['max_missing']:.1%} (max_missing) of the candidates have no grade, so training "
            "refuses this judge"
        )
    return out
