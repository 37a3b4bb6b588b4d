from pathlib import Path


def write_experiment(folder: Path) -> Path:
    return folder / "report.html"
