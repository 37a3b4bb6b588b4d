"""Reports: the result files of a study as one page, its figures and its tables. Reads files and computes nothing anew."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_report"]


def write_report(study_dir: str | Path) -> Path:
    """Write `report.html`, `figures/*.{png,svg}` and `tables/` into the folder of a study or of an experiment; the path of the page."""
    from steadyrank.names import require

    require("matplotlib", "the report")
    require("jinja2", "the report")
    if (Path(study_dir) / "experiment.json").is_file():
        from steadyrank.reports.experiment import write_experiment

        return write_experiment(study_dir)
    from steadyrank.reports.html import write_page
    from steadyrank.reports.read import read_study

    return write_page(read_study(study_dir))
