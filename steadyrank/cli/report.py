"""`steadyrank report`: the result files of a study as one page and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.output import AsJson, emit


def report(
    study: Annotated[Path, typer.Argument(help="The folder of a study: what `steadyrank demo` or an experiment wrote.")],
    as_json: AsJson = False,
) -> None:
    """Write report.html and the figures of a study; computes nothing anew.

    Example: steadyrank report demo-results
    """
    from steadyrank.reports import write_report

    page = write_report(study)
    emit({"report": str(page)}, as_json=as_json, lines=[f"report in {page}"])
