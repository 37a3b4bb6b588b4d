"""The headline table: systems by splits and measures, as one object with a Markdown, a CSV and an HTML form.

The five reference rows (random, constant, first_stage, oracle, bm25) stand in every table, set apart; a study without one shows n/a.
Best of the others is bold (all of them where several are equal). Differences to the start are those of the comparison files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from steadyrank.reports import text
from steadyrank.reports.read import Difference, Interval, Split, Study, SystemInfo

REFERENCES = {
    "random": "Random order",
    "constant": "Constant score",
    "first_stage": "First-stage order",
    "bm25": "BM25",
    "oracle": "Oracle",
}
CSV_FIELDS = (
    "system", "label", "role", "is_reference", "split", "measure", "average", "mean", "low", "high", "is_best",
    "start", "delta_mean", "delta_low", "delta_high", "delta_p_two_sided", "delta_p_holm",
)  # fmt: skip
ORDER = ("student", "teacher", "start", "baseline", "reference")


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one system on one split."""

    value: Interval
    is_best: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One system. `deltas` holds its comparison with its start, by split."""

    system: SystemInfo
    is_reference: bool
    cells: Mapping[tuple[str, str], Cell]  # (split, measure)
    deltas: Mapping[str, Difference | None]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in reading order: students, teachers, starts, then the references."""

    measures: Sequence[str]
    splits: Sequence[Split]
    rows: Sequence[Row]
    average: str
    headline: str


def headline_table(study: Study, *, average: str = "micro") -> Table:
    """All systems with all measures; `average` is micro (over queries) or macro (over tasks)."""
    measures = list(dict.fromkeys([study.measure, *(name for result in study.results.values() for name in result.measures)]))
    known = {system.name for system in study.systems}
    systems = [*study.systems, *(SystemInfo(name, label, "reference") for name, label in REFERENCES.items() if name not in known)]
    systems = reading_order(systems)
    values = {
        (system.name, split.name, measure): _value(study, split.name, system.name, measure, average)
        for system in systems
        for split in study.splits
        for measure in measures
    }
    best = {
        (split.name, measure): _best([values[s.name, split.name, measure].mean for s in systems if not is_reference(s)])
        for split in study.splits
        for measure in measures
    }
    rows = []
    for system in systems:
        apart = is_reference(system)
        cells = {
            (split, measure): Cell(
                values[system.name, split, measure], not apart and _equals(values[system.name, split, measure].mean, top)
            )
            for (split, measure), top in best.items()
        }
        rows.append(Row(system, apart, cells, {split.name: study.against_start(split.name, system.name) for split in study.splits}))
    return Table(measures, study.splits, rows, average, study.measure)


def reading_order(systems: Sequence[SystemInfo]) -> list[SystemInfo]:
    """Students, teachers, starts, others; then the references. Within a role as the study lists them."""
    return sorted(systems, key=lambda system: (is_reference(system), _rank(system)))


def is_reference(system: SystemInfo) -> bool:
    """Whether a row is set apart: a reference or a baseline."""
    return system.name in REFERENCES or system.role in ("reference", "baseline")


def _rank(system: SystemInfo) -> int:
    return list(REFERENCES).index(system.name) if system.name in REFERENCES else ORDER.index(system.role) - len(ORDER)


def _value(study: Study, split: str, system: str, measure: str, average: str) -> Interval:
    result = study.results.get((split, system))
    return result.measures.get(measure, {}).get(average, Interval(None)) if result else Interval(None)


def _best(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _equals(value: float | None, top: float | None) -> bool:
    return value is not None and value == top


def to_markdown(table: Table) -> str:
    """Pipes; references below the others, in italics."""
    heads = ["System"]
    for split in table.splits:
        heads += [f"{split.label}: {text.measure(name)}" for name in table.measures] + [f"{split.label}: Δ start"]
    lines = ["| " + " | ".join(heads) + " |", "| :-- |" + " --: |" * (len(heads) - 1)]
    for row in table.rows:
        label = row.system.label.replace("|", "\\|")
        fields = [f"*{label}*" if row.is_reference else label]
        for split in table.splits:
            for name in table.measures:
                cell = row.cells[split.name, name]
                mean = text.number(cell.value.mean)
                fields.append(f"{f'**{mean}**' if cell.is_best else mean} {text.span(cell.value)}".strip())
            delta = row.deltas[split.name]
            fields.append(f"{text.signed(delta.difference.mean)} {text.span(delta.difference, is_signed=True)}".strip() if delta else "")
        lines.append("| " + " | ".join(fields) + " |")
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """Long form, one row a system, split and measure, numbers unrounded; an absent one is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for row in table.rows:
        for split in table.splits:
            for name in table.measures:
                cell, delta = row.cells[split.name, name], row.deltas[split.name]
                tail: list[object] = [""] * 6
                if delta is not None and delta.measure == name:
                    tail = [delta.b, *_bounds(delta.difference), _field(delta.two_sided), _field(delta.holm)]
                system = row.system
                head = [system.name, system.label, system.role, int(row.is_reference), split.name, name, table.average]
                writer.writerow([*head, *_bounds(cell.value), int(cell.is_best), *tail])
    return out.getvalue()


def _field(value: float | None) -> str:
    return "" if value is None else repr(value)


def _bounds(interval: Interval) -> list[str]:
    return [_field(interval.mean), _field(interval.low), _field(interval.high)]


def to_html(table: Table) -> str:
    """A table element; every text escaped. The headline measure carries a drawing of its interval on the scale 0 to 1."""
    width = len(table.measures) + 1
    top = "".join(f'<th scope="colgroup" colspan="{width}" class="split">{escape(split.label)}</th>' for split in table.splits)
    names = [f'<th scope="col" class="num{_first(place)}">{escape(text.measure(name))}</th>' for place, name in enumerate(table.measures)]
    second = "".join([names[0], '<th scope="col" class="num">Δ start</th>', *names[1:]]) * len(table.splits)
    body, apart = "", False
    for row in table.rows:
        if row.is_reference and not apart:
            apart = True
            body += f'<tr class="divider"><th scope="rowgroup" colspan="{1 + width * len(table.splits)}">Reference rows</th></tr>'
        body += _html_row(table, row)
    return (
        '<table class="results"><thead>'
        f'<tr><th rowspan="2" scope="col">System</th>{top}</tr><tr>{second}</tr></thead><tbody>{body}</tbody></table>'
    )


def _first(place: int) -> str:
    return "" if place else " first"


def _html_row(table: Table, row: Row) -> str:
    kind = "reference" if row.is_reference else "system"
    cells = (
        f'<th scope="row"><span class="dot role-{escape(row.system.role)}"></span><span class="label">{escape(row.system.label)}</span>'
        f"<code>{escape(row.system.name)}</code></th>"
    )
    for split in table.splits:
        for place, name in enumerate(table.measures):
            cell = row.cells[split.name, name]
            best = " best" if cell.is_best else ""
            cells += f'<td class="num{_first(place)}{best}"><b>{text.number(cell.value.mean)}</b>'
            cells += f"<small>{text.span(cell.value)}</small>{_track(cell.value) if name == table.headline else ''}</td>"
            if place == 0:
                cells += _html_delta(row.deltas[split.name])
    return f'<tr class="{kind}">{cells}</tr>'


def _html_delta(delta: Difference | None) -> str:
    if delta is None:
        return '<td class="num delta none">–</td>'
    way = text.direction(delta.difference)
    title = f"against {delta.b}; Holm {text.p_value(delta.holm)}"
    return (
        f'<td class="num delta {way}" title="{escape(title)}"><b>{text.signed(delta.difference.mean)}</b>'
        f"<small>{text.span(delta.difference, is_signed=True)}</small></td>"
    )


def _track(interval: Interval) -> str:
    if interval.mean is None:
        return ""
    low = interval.mean if interval.low is None else interval.low
    high = interval.mean if interval.high is None else interval.high
    left, wide = max(0.0, min(low, 1.0)) * 100, max(0.0, high - low) * 100
    place = max(0.0, min(interval.mean, 1.0)) * 100
    return f'<span class="track"><i style="left:{left:.1f}%;width:{wide:.1f}%"></i><u style="left:{place:.1f}%"></u></span>'
