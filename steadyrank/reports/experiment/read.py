"""The folder of an experiment, read into one record around the `Study` that the other reports draw. The layout is in docs/formats.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyrank.errors import MissingDataError
from steadyrank.reports.read import Difference, Split, Study, SystemInfo, differences_of, document, optional, result_of

CHECKPOINTS = {"final": "the final checkpoint of each run", "best": "the checkpoint of each run that was best on dev lists"}


@dataclass(frozen=True, slots=True)
class Family:
    """Pairs that were compared and corrected together. `differences` holds every measure, by split; `absent` pairs that were not done."""

    name: str
    title: str
    pairs: Sequence[tuple[str, str]]
    differences: Mapping[str, Sequence[Difference]]
    is_question: bool

    def of(self, split: str, a: str, b: str, measure: str) -> Difference | None:
        wanted = (a, b, measure)
        return next((item for item in self.differences[split] if (item.a, item.b, item.measure) == wanted), None)


@dataclass(frozen=True, slots=True)
class Experiment:
    """All that the report shows. `rows` holds what experiment.json says of each system, by name."""

    study: Study
    measures: Sequence[str]
    rows: Mapping[str, Mapping[str, Any]]
    base: str | None
    checkpoint: str
    seeds: Sequence[int]
    parameters: Sequence[str]
    families: Sequence[Family]
    spread: Mapping[str, Mapping[str, Any]]  # split -> system -> measure -> micro | macro
    profiles: Mapping[str, Mapping[str, Any]]  # split -> sources | gains
    flips: Mapping[tuple[str, str, str], Mapping[str, Any]]  # (split, a, b)
    splits: Sequence[Mapping[str, Any]]  # what experiment.json says of each split
    cells: Sequence[Mapping[str, Any]]
    jobs: Sequence[Mapping[str, Any]]
    about: str

    @property
    def arms(self) -> list[SystemInfo]:
        return self.study.with_role("student")

    @property
    def split_labels(self) -> list[str]:
        return [split.label for split in self.study.splits]

    @property
    def statement(self) -> str:
        """What every table says of itself."""
        seeds = f"mean over {len(self.seeds)} seeds" if len(self.seeds) > 1 else "one seed"
        return f"Evaluated: {CHECKPOINTS[self.checkpoint]}, {seeds}."

    @property
    def main(self) -> Family | None:
        """The family that per-subset tables and figures show: methods, else settings, else the starts."""
        by_name = {family.name: family for family in self.families}
        return next((by_name[name] for name in ("methods", "settings", "start") if name in by_name), None)

    def family(self, name: str) -> Family | None:
        return next((family for family in self.families if family.name == name), None)

    def sources(self, split: str) -> list[str]:
        """The sources of a split, by name."""
        found = [self.study.results[split, system.name].by_source[self.study.measure] for system in self.study.systems]
        return sorted({source for one in found for source in one})

    def headline_of(self, family: Family) -> Study:
        """The study with the comparisons of one family, in the headline measure."""
        measure = self.study.measure
        rows = {split: [item for item in found if item.measure == measure] for split, found in family.differences.items()}
        return replace(self.study, differences=rows)


def read_experiment(folder: str | Path) -> Experiment:
    """The experiment in `folder`; one sentence names the file that is missing or does not fit."""
    folder = Path(folder)
    path = folder / "experiment.json"
    if not path.is_file():
        raise MissingDataError(f"{path} is not there; give the folder of an experiment, as `steadyrank experiment` writes it")
    index = document(path, "steadyrank.experiment/")
    splits = [Split(row["name"], row["label"]) for row in index["splits"]]
    systems = [SystemInfo(row["name"], row["label"], row["role"], row["short"]) for row in index["systems"]]
    absent: list[str] = []
    families = [_family(folder, row, splits, absent) for row in index["families"]]
    measure = index["measures"][0]
    starts = {split.name: _starts(families, split.name) for split in splits}
    study = Study(
        folder=folder, title=index["title"], subtitle=index["about"], created=index["created"], measure=measure,
        systems=systems, splits=splits,
        results={(split.name, system.name): result_of(folder, split.name, system.name, measure) for split in splits for system in systems},
        differences=starts, flips={}, instructions={}, runs=[], settings={}, fingerprints={}, environment=index["environment"],
        notes=index["notes"], data={}, absent=absent,
    )  # fmt: skip
    by_split = {split.name: split for split in splits}
    return Experiment(
        study=study,
        measures=index["measures"],
        rows={row["name"]: row for row in index["systems"]},
        base=index["base"],
        checkpoint=index["checkpoint"],
        seeds=index["seeds"],
        parameters=index["parameters"],
        families=families,
        spread={name: optional(folder, f"seeds/{name}.json", "steadyrank.seeds/", absent).get("systems") or {} for name in by_split},
        profiles={name: optional(folder, f"profiles/{name}.json", "steadyrank.profiles/", absent) for name in by_split},
        flips=_flips(folder, families, splits),
        splits=index["splits"],
        cells=index["cells"],
        jobs=index["jobs"],
        about=index["about"],
    )


def _family(folder: Path, row: Mapping[str, Any], splits: Sequence[Split], absent: list[str]) -> Family:
    name = row["name"]
    found = {split.name: differences_of(folder, f"comparisons/{name}/{split.name}.json", split.name, absent) for split in splits}
    return Family(name, row["title"], [(a, b) for a, b in row["pairs"]], found, bool(row["is_question"]))


def _starts(families: Sequence[Family], split: str) -> list[Difference]:
    """Every arm against its start: what the column of the headline table shows."""
    return [item for family in families if family.name == "start" for item in family.differences[split]]


def _flips(folder: Path, families: Sequence[Family], splits: Sequence[Split]) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    pairs = list(dict.fromkeys(pair for family in families for pair in family.pairs))
    wanted = {(split.name, a, b): folder / "flips" / split.name / f"{a}..{b}.json" for split in splits for a, b in pairs}
    return {key: document(path, "steadyrank.flips/") for key, path in wanted.items() if path.is_file()}
