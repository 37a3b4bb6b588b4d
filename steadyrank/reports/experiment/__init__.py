"""The report of an experiment: its result files as tables (Markdown, CSV, LaTeX), figures and one page. Computes nothing anew.

`read` reads the folder, `grids` is a table in its four forms, `tables` builds them, `figures`, `heatmaps` and `shapes` draw, `page` writes.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_experiment"]


def write_experiment(folder: str | Path) -> Path:
    """Write `report.html`, `tables/*.{md,csv,tex}` and `figures/*.{png,svg}` into the folder of an experiment; the path of the page."""
    from steadyrank.names import require

    require("matplotlib", "the report")
    require("jinja2", "the report")
    from steadyrank.reports.experiment.page import write_page
    from steadyrank.reports.experiment.read import read_experiment

    return write_page(read_experiment(folder))
