"""Tables of comparisons: the answers to the questions of the matrix, each family beside its base, and the whole of the paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steadyrank.reports import text
from steadyrank.reports.experiment.grids import Cell, Grid, Row, delta_cell, grouped, p_cell, value_cell
from steadyrank.reports.experiment.read import Experiment, Family
from steadyrank.reports.read import Difference

_BOUNDS = ("mean", "low", "high")
_TITLES = {"methods": "Ablations", "settings": "Sensitivity", "start": "Before and after training"}


def answers_grid(experiment: Experiment, family: Family) -> Grid:
    """The pairs of one question: differences, intervals and what they say."""
    rows = []
    for a, b in family.pairs:
        cells: list[Cell] = []
        for split in experiment.study.splits:
            item = family.of(split.name, a, b, experiment.study.measure)
            cells += [
                delta_cell(item.difference if item else None),
                p_cell(item.holm if item else None),
                Cell(seeds_of(item)),
                Cell(said(item)),
            ]
        rows.append(Row(pair_label(experiment, a, b), cells))
    return Grid(
        name=f"question-{family.name}", title=family.title.rstrip("?") + "?",
        caption=f"Paired differences in {text.measure(experiment.study.measure)} with 95% bootstrap intervals; Wilcoxon p after Holm over "
        f"this table; seeds that have the sign of the difference. {experiment.statement}",
        corner="a \u2212 b", heads=["\u0394", "Holm p", "seeds", "said"] * len(experiment.study.splits), rows=rows,
        groups=grouped(experiment.split_labels, 4), **_paired_records(experiment, family),
    )  # fmt: skip


def said(item: Difference | None) -> str:
    """A difference in words. It is one only where the interval lies on one side of zero, Holm's p is under 0.05, and all seeds agree."""
    if item is None or item.difference.mean is None:
        return "not done"
    way = text.direction(item.difference)
    is_sure = way != "flat" and item.holm is not None and item.holm < 0.05
    if not is_sure or agreeing(item) < len(item.by_seed):
        return "not told apart"
    return "better" if way == "up" else "worse"


def agreeing(item: Difference) -> int:
    """How many seeds have the sign of the mean difference."""
    sign = 1 if (item.difference.mean or 0.0) > 0 else -1
    return sum(value * sign > 0 for value in item.by_seed.values())


def seeds_of(item: Difference | None) -> str:
    """`2/2`: the seeds that agree, of all."""
    return f"{agreeing(item)}/{len(item.by_seed)}" if item is not None and item.by_seed else text.MISSING


def pair_label(experiment: Experiment, a: str, b: str) -> str:
    """The pair as figures and tables name it."""
    return f"{experiment.study.system(a).tag} \u2212 {experiment.study.system(b).tag}"


def contrast_grid(experiment: Experiment, family: Family) -> Grid:
    """Each a of the family with its value, and its difference to b; the b's stand first where they are common to all."""
    study, measure = experiment.study, experiment.study.measure
    common = {b for _, b in family.pairs}
    rows = []
    for b in [name for name in common if len(common) == 1]:
        cells = [
            part for split in study.splits for part in (_value(experiment, split.name, b), Cell("\u2013"), Cell("\u2013"), Cell("\u2013"))
        ]
        rows.append(Row(study.system(b).label, cells, is_apart=True))
    for a, b in family.pairs:
        cells = []
        for split in study.splits:
            item = family.of(split.name, a, b, measure)
            counts = outcomes(item)
            cells += [_value(experiment, split.name, a), delta_cell(item.difference if item else None), p_cell(item.holm if item else None)]
            cells.append(Cell("/".join(map(str, counts)) if counts else text.MISSING))
        rows.append(Row(study.system(a).label, cells))
    return Grid(
        name={"methods": "ablations", "settings": "sensitivity"}.get(family.name, family.name),
        title=f"{_TITLES.get(family.name, family.title)}: {family.title[:1].lower()}{family.title[1:]}",
        caption=f"{text.measure(measure)} with 95% bootstrap intervals; \u0394 is the paired difference; Wilcoxon p after Holm over "
        f"this table; queries won/tied/lost. {experiment.statement}",
        corner="System", heads=[text.measure(measure), "\u0394", "Holm p", "W/T/L"] * len(study.splits), rows=rows,
        groups=grouped(experiment.split_labels, 4), **_paired_records(experiment, family),
    )  # fmt: skip


def _value(experiment: Experiment, split: str, system: str) -> Cell:
    result = experiment.study.results.get((split, system))
    return value_cell(result.measures[experiment.study.measure]["micro"]) if result is not None else Cell(text.MISSING)


def outcomes(item: Difference | None) -> tuple[int, int, int] | None:
    """Queries won, tied and lost."""
    if item is None or not item.by_source:
        return None
    rows = item.by_source.values()
    return sum(row.win for row in rows), sum(row.tie for row in rows), sum(row.loss for row in rows)


def paired_grid(experiment: Experiment, family: Family) -> Grid:
    """The whole of the tests of one family: every measure, micro and macro, Wilcoxon with its counts, Holm."""
    rows = []
    for split in experiment.study.splits:
        for a, b in family.pairs:
            for measure in experiment.measures:
                item = family.of(split.name, a, b, measure)
                if item is None:
                    continue
                counts = outcomes(item)
                cells = [Cell(text.measure(measure)), delta_cell(item.difference), delta_cell(item.macro), Cell(f"{item.nonzero}/{item.n}")]
                cells += [p_cell(item.two_sided), p_cell(item.holm), Cell("/".join(map(str, counts)) if counts else text.MISSING)]
                rows.append(Row(f"{split.label}: {pair_label(experiment, a, b)}", cells))
    return Grid(
        name=f"paired-{family.name}", title=f"Paired tests. {family.title}",
        caption="Differences a \u2212 b with paired bootstrap intervals (95%), micro over queries and macro over sources. Wilcoxon's "
        "signed-rank test on independent units (groups of queries), two-sided; Holm over this table, each measure and split by itself. "
        f"{experiment.statement}",
        corner="a \u2212 b", heads=["measure", "\u0394 micro", "\u0394 macro", "not equal / n", "Wilcoxon p", "Holm p", "W/T/L"], rows=rows,
        **_paired_records(experiment, family),
    )  # fmt: skip


def _paired_records(experiment: Experiment, family: Family) -> dict[str, Any]:
    fields = (
        "family",
        "a",
        "b",
        "split",
        "measure",
        *_BOUNDS,
        "macro_mean",
        "macro_low",
        "macro_high",
        "n",
        "nonzero",
        "p_two_sided",
        "p_holm",
    )
    records = []
    for split in experiment.study.splits:
        for item in family.differences[split.name]:
            both = [part for one in (item.difference, item.macro) for part in (one.mean, one.low, one.high)]
            tests = [item.n, item.nonzero, item.two_sided, item.holm, *(outcomes(item) or (None, None, None))]
            records.append([family.name, item.a, item.b, split.name, item.measure, *both, *tests])
    return {"fields": (*fields, "win", "tie", "loss"), "records": records}


def outcome_counts(items: Sequence[Difference]) -> dict[str, int]:
    """How many comparisons say what."""
    out = {"better": 0, "worse": 0, "not told apart": 0}
    for item in items:
        out[said(item)] = out.get(said(item), 0) + 1
    return out
