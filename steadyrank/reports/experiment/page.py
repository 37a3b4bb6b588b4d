"""The page of an experiment: answers first, then tables and figures, each also as a file of its own. Self-contained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyrank.files import atomic_write
from steadyrank.reports import html, plots, text
from steadyrank.reports.experiment import figures, heatmaps, shapes
from steadyrank.reports.experiment.contrasts import outcome_counts, said, seeds_of
from steadyrank.reports.experiment.grids import Grid, to_csv, to_html, to_latex, to_markdown
from steadyrank.reports.experiment.read import Experiment, Family
from steadyrank.reports.experiment.tables import all_grids
from steadyrank.reports.read import Difference, Interval, SystemInfo
from steadyrank.reports.tables import headline_table
from steadyrank.reports.tables import to_html as headline_html

_FORMS = (("md", to_markdown), ("csv", to_csv), ("tex", to_latex))
CASES_SHOWN = 6  # of a pair and split; the file holds more


def write_page(experiment: Experiment) -> Path:
    """Figures, tables and `report.html` into the folder of the experiment; files that an earlier report left are removed."""
    from markupsafe import Markup

    folder = experiment.study.folder
    _clear(folder)
    drawn = {name: Markup(svg) if svg else None for name, svg in _draw(experiment).items()}
    grids = all_grids(experiment)
    for grid in grids:
        for ending, form in _FORMS:
            _write(folder / "tables" / f"{grid.name}.{ending}", form(grid))
    by_name = {grid.name: grid for grid in grids}
    study = experiment.study
    page = html.template("experiment.html.j2").render(
        experiment=experiment,
        study=study,
        css=Markup(html.resource("report.css") + html.resource("experiment.css")),
        measure=text.measure(study.measure),
        answers=[_answer(experiment, family) for family in experiment.families if family.is_question],
        sentences=_sentences(experiment),
        state=_state(experiment),
        figures=drawn,
        forests=[(family, f"forest-{family.name}") for family in experiment.families if drawn.get(f"forest-{family.name}")],
        headline=Markup(headline_html(headline_table(study))),
        macro=Markup(headline_html(headline_table(study, average="macro"))),
        tables={name: _shown(grid) for name, grid in by_name.items()},
        flips=_cases(experiment),
        failed=[row for row in [*experiment.jobs, *experiment.cells] if row["state"] in ("failed", "skipped")],
        warnings=[(cell["name"], line) for cell in experiment.cells for line in cell.get("warnings") or []],
    )
    path = folder / "report.html"
    _write(path, page)
    return path


def _clear(folder: Path) -> None:
    """A table of a family that is no longer there would be read as a result of this one."""
    for path in [*(folder / "tables").glob("*.*"), *(folder / "figures").glob("*.*")]:
        path.unlink()


def _write(path: Path, content: str) -> None:
    with atomic_write(path) as file:
        file.write(content)


def _draw(experiment: Experiment) -> dict[str, str | None]:
    folder, study = experiment.study.folder / "figures", experiment.study
    base = next((arm for arm in experiment.arms if arm.name == experiment.base), None)
    forests = {
        f"forest-{family.name}": plots.forest(experiment.headline_of(family), folder, name=f"forest-{family.name}")
        for family in experiment.families
    }
    return {
        "main": figures.main(experiment, folder),
        "scatter": plots.scatter(study, folder),
        "sensitivity": figures.sensitivity(experiment, folder),
        "seeds": figures.seeds(experiment, folder),
        "heatmap": heatmaps.sources(experiment, folder),
        "deltas": heatmaps.deltas(experiment, folder),
        "profiles": heatmaps.profiles(experiment, folder),
        "wins": shapes.win_tie_loss(experiment, folder),
        "radar": shapes.radar(experiment, folder),
        "sources": plots.sources(study, folder, system=base) if base is not None else None,
        **forests,
    }


def _shown(grid: Grid) -> dict[str, Any]:
    from markupsafe import Markup

    return {"grid": grid, "html": Markup(to_html(grid))}


def _answer(experiment: Experiment, family: Family) -> dict[str, Any]:
    """One question with its pairs, a line each split: what came out, in words and with the interval."""
    lines = []
    for split in experiment.study.splits:
        found = [(pair, family.of(split.name, *pair, experiment.study.measure)) for pair in family.pairs]
        rows = [_line(experiment, pair, item) for pair, item in found if item is not None]
        lines.append({"split": split.label, "rows": rows, "absent": len(found) - len(rows)})
    return {"family": family, "lines": lines}


def _line(experiment: Experiment, pair: tuple[str, str], item: Difference) -> dict[str, str]:
    word = said(item)
    a, b = (experiment.study.system(name).tag for name in pair)
    clause = {"better": f"{a} beats {b}", "worse": f"{a} loses to {b}"}.get(word, f"{a} and {b} are not told apart")
    return {
        "way": {"better": "up", "worse": "down"}.get(word, ""),
        "clause": clause,
        "value": f"{text.signed(item.difference.mean)} {text.span(item.difference, is_signed=True)}",
        "p": f"Holm {text.p_value(item.holm)}" + (f", {seeds_of(item)} seeds" if len(item.by_seed) > 1 else ""),
    }


def _sentences(experiment: Experiment) -> list[str]:
    """The main family counted, and the highest arm of every split."""
    study, out = experiment.study, []
    for split in study.splits:
        arms = [(arm, study.results[split.name, arm.name].measures[study.measure]["micro"]) for arm in experiment.arms]
        if not arms:
            continue
        best, value = max(arms, key=lambda pair: pair[1].mean if pair[1].mean is not None else -1.0)
        sentence = f"{split.label}: {_highest(arms, best, value)}"
        if experiment.main is not None and experiment.main.name != "start":
            items = [item for pair in experiment.main.pairs if (item := experiment.main.of(split.name, *pair, study.measure)) is not None]
            counts = ", ".join(f"{count} {word}" for word, count in outcome_counts(items).items())
            sentence += f" {experiment.main.title}: {counts} (of {len(items)})."
        out.append(sentence)
    return out


def _highest(arms: list[tuple[SystemInfo, Interval]], best: SystemInfo, value: Interval) -> str:
    shown = f"{text.number(value.mean)} {text.span(value)}"
    return f"{best.tag} reaches {shown}." if len(arms) == 1 else f"highest is {best.tag}, {shown}."


def _state(experiment: Experiment) -> dict[str, int]:
    """How many cells stand how."""
    out: dict[str, int] = {}
    for cell in experiment.cells:
        out[cell["state"]] = out.get(cell["state"], 0) + 1
    return out


def _cases(experiment: Experiment) -> list[dict[str, Any]]:
    """Cases of the main family and of the questions, a block for every pair and split that has some."""
    out = []
    labels = {split.name: split for split in experiment.study.splits}
    for (split, a, b), record in experiment.flips.items():
        if experiment.study.system(b).role == "start" and experiment.main is not None and (a, b) not in experiment.main.pairs:
            continue  # against its own start: in the files
        shown: Mapping[str, Any] = {**record, "a": experiment.study.system(a).tag, "b": experiment.study.system(b).tag}
        view = html.flips_view(labels[split], {**shown, "examples": record["examples"]})
        view["shown"] = [*view["shown"], *view["folded"]][:CASES_SHOWN]
        counts = record["counts"]
        ways = f"{counts['a_better']} to a higher grade, {counts['b_better']} to a lower"
        view["summary"] = f"{counts['flipped']} of {counts['examples']} lists flip: {ways}"
        if view["shown"]:
            out.append(view)
    return out
