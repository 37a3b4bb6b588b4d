"""Every table of the experiment, as grids. A value, difference or p is that of the result files; only its rounding is ours."""

from __future__ import annotations

from typing import Any

from steadyrank.reports import tables, text
from steadyrank.reports.experiment.contrasts import answers_grid, contrast_grid, pair_label, paired_grid
from steadyrank.reports.experiment.grids import Cell, Grid, Row, delta_cell, grouped, value_cell
from steadyrank.reports.experiment.read import Experiment
from steadyrank.reports.read import Split

_AVERAGES = {"micro": "means over queries (micro)", "macro": "means over sources (macro)"}
_BOUNDS = ("mean", "low", "high")


def all_grids(experiment: Experiment) -> list[Grid]:
    """The tables, in the order of the page; one that has no rows is left out."""
    study = experiment.study
    grids = [main_grid(experiment, average) for average in _AVERAGES]
    grids += [answers_grid(experiment, family) for family in experiment.families if family.is_question]
    grids += [contrast_grid(experiment, family) for family in experiment.families if not family.is_question]
    grids += [paired_grid(experiment, family) for family in experiment.families]
    grids += [seeds_grid(experiment)]
    for split in study.splits:
        grids += [sources_grid(experiment, split), deltas_grid(experiment, split)]
    grids += [data_grid(experiment), cells_grid(experiment), cases_grid(experiment)]
    return [grid for grid in grids if grid.rows]


def main_grid(experiment: Experiment, average: str) -> Grid:
    """All systems with all measures and their intervals, and the difference to the start of each."""
    study = experiment.study
    table = tables.headline_table(study, average=average)
    measures, rows, records = list(table.measures), [], []
    for row in table.rows:
        cells: list[Cell] = []
        for split in study.splits:
            cells += [value_cell(row.cells[split.name, name].value, is_bold=row.cells[split.name, name].is_best) for name in measures]
            delta = row.deltas[split.name]
            cells.append(delta_cell((delta.macro if average == "macro" else delta.difference) if delta is not None else None))
            for name in measures:
                found = row.cells[split.name, name].value
                head = [row.system.name, row.system.label, row.system.role, split.name, name, average]
                records.append([*head, found.mean, found.low, found.high])
        rows.append(Row(row.system.label, cells, row.is_reference))
    heads = [*(text.measure(name) for name in measures), "\u0394 start"] * len(study.splits)
    return Grid(
        name="main" if average == "micro" else "main-macro",
        title=f"Main comparison, {_AVERAGES[average]}",
        caption=f"Brackets: 95% bootstrap intervals. Bold: the best of the compared systems. {experiment.statement}",
        corner="System", heads=heads, rows=rows,
        fields=("system", "label", "role", "split", "measure", "average", *_BOUNDS), records=records,
        groups=grouped(experiment.split_labels, len(measures) + 1),
    )  # fmt: skip


def seeds_grid(experiment: Experiment) -> Grid:
    """Mean, standard deviation over seeds and every seed's own mean."""
    study, rows, records = experiment.study, [], []
    names = list(dict.fromkeys(name for found in experiment.spread.values() for name in found)) if len(experiment.seeds) > 1 else []
    for name in names:
        cells: list[Cell] = []
        for split in study.splits:
            found = experiment.spread[split.name].get(name, {})
            for measure in experiment.measures:
                one = found.get(measure, {}).get("micro")
                cells.append(_spread_cell(one))
                records += [[name, split.name, measure, seed, value] for seed, value in (one or {}).get("values", {}).items()]
        rows.append(Row(study.system(name).label, cells))
    return Grid(
        name="seeds", title="Stability over seeds",
        caption="Mean \u00b1 standard deviation (n \u2212 1) over seeds of the mean over queries; in brackets the seeds one by one. "
        f"Evaluated: {_which(experiment)}",
        corner="System", heads=[text.measure(name) for name in experiment.measures] * len(study.splits), rows=rows,
        fields=("system", "split", "measure", "seed", "mean"), records=records,
        groups=grouped(experiment.split_labels, len(experiment.measures)),
    )  # fmt: skip


def _which(experiment: Experiment) -> str:
    return experiment.statement.removeprefix("Evaluated: ").split(", mean over")[0].rstrip(".") + "."


def _spread_cell(one: dict[str, Any] | None) -> Cell:
    if not one:
        return Cell(text.MISSING)
    sd = f" \u00b1 {text.number(one['sd'])}" if one["sd"] is not None else ""
    return Cell(f"{text.number(one['mean'])}{sd}", f"[{', '.join(text.number(value) for value in one['values'].values())}]")


def sources_grid(experiment: Experiment, split: Split) -> Grid:
    """Every system on every source, with the micro and the macro mean."""
    study, measure = experiment.study, experiment.study.measure
    sources = experiment.sources(split.name)
    systems = [system for system in tables.reading_order(study.systems) if system.name != "constant"]
    found = {system.name: study.results[split.name, system.name] for system in systems}
    best = {
        s: max((found[x.name].by_source[measure].get(s, -1.0) for x in systems if x.role != "reference"), default=-1.0) for s in sources
    }
    rows, records = [], []
    for system in systems:
        means = found[system.name].by_source[measure]
        is_apart = tables.is_reference(system)
        cells = [Cell(text.number(means.get(source)), is_bold=not is_apart and means.get(source) == best[source]) for source in sources]
        cells += [Cell(text.number(found[system.name].measures[measure][average].mean)) for average in _AVERAGES]
        rows.append(Row(system.label, cells, is_apart))
        for name in experiment.measures:
            records += [[system.name, split.name, name, source, mean] for source, mean in found[system.name].by_source[name].items()]
    return Grid(
        name=f"sources-{split.name}", title=f"{split.label}: {text.measure(measure)} by source",
        caption="Means within a source; micro is over queries, macro over sources. Bold: the best of the compared systems. "
        f"{experiment.statement}",
        corner="System", heads=[*sources, "micro", "macro"], rows=rows,
        fields=("system", "split", "measure", "source", "mean"), records=records,
    )  # fmt: skip


def deltas_grid(experiment: Experiment, split: Split) -> Grid:
    """Per-subset differences of the main family, with queries won, tied and lost."""
    family, rows, records = experiment.main, [], []
    sources = experiment.sources(split.name)
    for a, b in family.pairs if family is not None else ():
        item = family.of(split.name, a, b, experiment.study.measure) if family is not None else None
        if item is None or not item.by_source:
            continue
        cells = []
        for source in sources:
            part = item.by_source.get(source)
            cells.append(Cell(text.signed(part.difference), f"{part.win}/{part.tie}/{part.loss}") if part else Cell(text.MISSING))
            if part:
                records.append([a, b, split.name, item.measure, source, part.difference, part.win, part.tie, part.loss])
        rows.append(Row(pair_label(experiment, a, b), cells))
    return Grid(
        name=f"deltas-{split.name}", title=f"{split.label}: differences by source",
        caption=f"Mean difference in {text.measure(experiment.study.measure)}, and queries won/tied/lost. Sources are small: no test is "
        f"made within one. {experiment.statement}",
        corner="a \u2212 b", heads=sources, rows=rows,
        fields=("a", "b", "split", "measure", "source", "difference", "win", "tie", "loss"), records=records,
    )  # fmt: skip


def data_grid(experiment: Experiment) -> Grid:
    """What was evaluated on."""
    rows, records = [], []
    for split in experiment.splits:
        rows.append(Row(split["label"], [Cell(text.plain(split["lists"])), Cell(text.plain(split["candidates"]))], is_apart=True))
        for source, count in split["by_source"].items():
            rows.append(Row(source, [Cell(text.plain(count)), Cell("")]))
            records.append([split["name"], source, count])
    return Grid(
        name="data", title="Evaluated lists", caption="Every system scored the same frozen lists.",
        corner="Split and source", heads=["lists", "candidates"], rows=rows, fields=("split", "source", "lists"), records=records,
    )  # fmt: skip


def cells_grid(experiment: Experiment) -> Grid:
    """Every run: how it ended, and what it did on dev lists."""
    rows, records = [], []
    for cell in experiment.cells:
        values = [cell.get(name) for name in ("dev_start", "dev_best", "dev_final")]
        shown = [Cell(cell["state"]), Cell(text.plain(cell.get("steps"))), *(Cell(text.number(value)) for value in values)]
        shown += [Cell(text.plain(cell.get("best_step"))), Cell(text.plain(cell.get("seconds") and round(cell["seconds"])))]
        rows.append(Row(cell["name"], [*shown, Cell(str(len(cell.get("warnings") or [])) if "warnings" in cell else text.MISSING)]))
        records.append([cell["name"], cell["arm"], cell["seed"], cell["state"], cell.get("steps"), *values, cell.get("best_step")])
    return Grid(
        name="cells", title="Runs",
        caption=f"{text.measure(experiment.study.measure)} on dev lists; seconds are those of a run's last start.",
        corner="Run", heads=["state", "steps", "dev start", "dev best", "dev final", "best step", "seconds", "warnings"], rows=rows,
        fields=("cell", "arm", "seed", "state", "steps", "dev_start", "dev_best", "dev_final", "best_step"), records=records,
    )  # fmt: skip


def cases_grid(experiment: Experiment) -> Grid:
    """One list for every pair of the main family where a puts a better document on top than b, and one where it is the other way round."""
    rows, records = [], []
    for (split, a, b), record in experiment.flips.items():
        if experiment.main is None or (a, b) not in experiment.main.pairs:
            continue
        for place, way in enumerate((1, -1)):
            for case in [case for case in record["examples"] if _way(case) == way][:1]:
                tops = [_top(experiment, name, case[side]) for name, side in ((a, "a_top"), (b, "b_top"))]
                seeds = f"{case['agree']} of {record['seeds']} seeds"
                rows.append(
                    Row(pair_label(experiment, a, b), [Cell(_cut(case["query"]), _cut(case["instruction"] or "")), *tops, Cell(seeds)])
                )
                top = [part for side in ("a_top", "b_top") for part in (case[side]["text"], case[side]["relevance"])]
                records.append(
                    [a, b, split, place == 0, case["id"], case["instruction"], case["query"], *top, case["agree"], record["seeds"]]
                )
    return Grid(
        name="cases", title="Lists whose top document changes",
        caption="Of each pair and split the list with the largest gap in grade in either direction, those first in which the seeds agree; "
        f"texts are cut. Chosen to be read, no evidence by themselves. {experiment.statement}",
        corner="a \u2212 b", heads=["query (instruction)", "a puts first", "b puts first", "same flip in"], rows=rows,
        fields=("a", "b", "split", "a_better", "id", "instruction", "query", "a_top", "a_grade", "b_top", "b_grade", "agree", "seeds"),
        records=records, is_text=True,
    )  # fmt: skip


def _top(experiment: Experiment, system: str, side: Any) -> Cell:
    return Cell(_cut(side["text"]), f"grade {side['relevance']:g}" if side["relevance"] is not None else "no grade")


def _way(case: Any) -> int:
    new, old = (max(case[side]["relevance"] or 0.0, 0.0) for side in ("a_top", "b_top"))
    return (new > old) - (new < old)


def _cut(value: str, length: int = 140) -> str:
    return value if len(value) <= length else value[:length].rsplit(" ", 1)[0] + " \u2026"
