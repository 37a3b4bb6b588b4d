"""Reports: the result files of a study as one page, its figures and its tables. Reads files and computes nothing anew."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_report"]


def write_report(study_dir: str | Path) -> Path:
    """Write `report.html`, `figures/*.{png,svg}` and `tables/headline.{md,csv}` into the folder of a study; the path of the page."""
    from steadyrank.names import require

    require("matplotlib", "the report")
    require("jinja2", "the report")
    from steadyrank.reports.html import write_page
    from steadyrank.reports.read import read_study

    return write_page(read_study(study_dir))
