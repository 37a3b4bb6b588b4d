"""`steadyrank judge`: grade lists with a judge, and find out how far a judge can be trusted."""

from __future__ import annotations

import typer

from steadyrank.cli import judge_agreement, judge_grade

app = typer.Typer(
    no_args_is_help=True,
    help="Grade lists with a judge, and ask how far it can be trusted. Example: steadyrank judge grade lists.jsonl -o judgments.jsonl",
)


@app.callback()
def judge() -> None:
    """Commands of this verb: `grade`, `agreement`."""


app.command("grade")(judge_grade.grade)
app.command("agreement")(judge_agreement.agreement)
