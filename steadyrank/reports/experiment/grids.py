"""A table as one object with its four forms: Markdown and LaTeX as they are read, HTML for the page, CSV with every number unrounded."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby

from steadyrank.reports import text
from steadyrank.reports.read import Interval

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$",
    text.MINUS: "$-$", "\u0394": r"$\Delta$", "\u00b1": r"$\pm$", "\u00b7": r"$\cdot$", "\u03bb": r"$\lambda$", "\u2265": r"$\geq$",
    "\u2013": "--", "\u2026": r"\ldots{}", "\u202f": r"\,",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """What a reader sees: a text and, smaller, what stands beside it. `way` colours it: up, down or nothing."""

    text: str
    small: str = ""
    is_bold: bool = False
    way: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `is_apart` sets it off (references, means)."""

    label: str
    cells: Sequence[Cell]
    is_apart: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `groups` stands above the heads, one for each column ("" for none); `records` are the rows of the CSV under `fields`."""

    name: str
    title: str
    caption: str
    corner: str
    heads: Sequence[str]
    rows: Sequence[Row]
    fields: Sequence[str]
    records: Sequence[Sequence[object]]
    groups: Sequence[str] = field(default=())
    is_text: bool = False  # cells are texts to read, set to the left


def grouped(labels: Sequence[str], wide: int) -> list[str]:
    """Each label over so many columns."""
    return [label for label in labels for _ in range(wide)]


def value_cell(interval: Interval, *, is_bold: bool = False, digits: int = 3) -> Cell:
    """A mean with its interval."""
    return Cell(text.number(interval.mean, digits=digits), text.span(interval, digits=digits), is_bold)


def delta_cell(interval: Interval | None) -> Cell:
    """A difference with its interval; its way is that of the interval."""
    if interval is None:
        return Cell(text.MISSING)
    way = text.direction(interval)
    return Cell(text.signed(interval.mean), text.span(interval, is_signed=True), way="" if way == "flat" else way)


def p_cell(value: float | None) -> Cell:
    """A p value without its letter."""
    return Cell(text.p_value(value).removeprefix("p ").removeprefix("= "), is_bold=value is not None and value < 0.05)


def to_markdown(grid: Grid) -> str:
    """Title, table, caption."""
    groups = grid.groups or [""] * len(grid.heads)
    heads = [f"{group}: {head}" if group else head for group, head in zip(groups, grid.heads, strict=True)]
    side = ":--" if grid.is_text else "--:"
    lines = [f"### {grid.title}", "", _piped([grid.corner, *heads]), "| :-- |" + f" {side} |" * len(heads)]
    for row in grid.rows:
        cells = [f"{f'**{cell.text}**' if cell.is_bold else cell.text} {cell.small}".strip() for cell in row.cells]
        lines.append(_piped([f"*{row.label}*" if row.is_apart else row.label, *cells]))
    return "\n".join([*lines, "", grid.caption]) + "\n"


def _piped(fields: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(item.replace("|", "\\|").split()) for item in fields) + " |"


def to_csv(grid: Grid) -> str:
    """The records, numbers unrounded; what is absent is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(grid.fields)
    writer.writerows([["" if item is None else repr(item) if isinstance(item, float) else item for item in row] for row in grid.records])
    return out.getvalue()


def to_latex(grid: Grid) -> str:
    """A `table*` for the packages booktabs and graphicx; wide ones are scaled to the width of the text."""
    columns = "l" + ("p{.2\\textwidth}" if grid.is_text else "r") * len(grid.heads)
    lines = [
        "% needs \\usepackage{booktabs,graphicx}",
        "\\begin{table*}",
        "\\centering",
        f"\\caption{{{latex(grid.title)}. {latex(grid.caption)}}}",
        f"\\label{{tab:{re.sub('[^a-z0-9]+', '-', grid.name.lower())}}}",
    ]
    body = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", *_latex_groups(grid)]
    body += [" & ".join(latex(item) for item in [grid.corner, *grid.heads]) + r" \\", "\\midrule"]
    before = False
    for row in grid.rows:
        if row.is_apart and not before and row is not grid.rows[0]:
            body.append("\\midrule")
        before = row.is_apart
        body.append(" & ".join([latex(row.label), *(_latex_cell(cell) for cell in row.cells)]) + r" \\")
    body += ["\\bottomrule", "\\end{tabular}"]
    if len(grid.heads) > 5:
        body = ["\\resizebox{\\textwidth}{!}{%", *body[:-1], body[-1] + "%", "}"]
    return "\n".join([*lines, *body, "\\end{table*}"]) + "\n"


def latex(value: str) -> str:
    """A text for LaTeX; line breaks become blanks."""
    return "".join(_LATEX.get(char, char) for char in " ".join(value.split()))


def _latex_groups(grid: Grid) -> list[str]:
    if not any(grid.groups):
        return []
    parts, rules, place = [""], "", 2
    for name, members in groupby(grid.groups):
        wide = len(list(members))
        parts.append(f"\\multicolumn{{{wide}}}{{c}}{{{latex(name)}}}")
        rules += f"\\cmidrule(lr){{{place}-{place + wide - 1}}}" if name else ""
        place += wide
    return [" & ".join(parts) + r" \\", rules]


def _latex_cell(cell: Cell) -> str:
    main = f"\\textbf{{{latex(cell.text)}}}" if cell.is_bold else latex(cell.text)
    return f"{main} {{\\scriptsize {latex(cell.small)}}}" if cell.small else main


def to_html(grid: Grid) -> str:
    """A table element; every text escaped."""
    side = "" if grid.is_text else ' class="num"'
    top = ""
    if any(grid.groups):
        cells = [(name, len(list(members))) for name, members in groupby(grid.groups)]
        top = "".join(f'<th scope="colgroup" colspan="{wide}" class="split">{escape(name)}</th>' for name, wide in cells)
        top = f"<tr><th></th>{top}</tr>"
    heads = "".join(f'<th scope="col"{side}>{escape(head)}</th>' for head in grid.heads)
    body = "".join(_html_row(grid, row) for row in grid.rows)
    head = f'<thead>{top}<tr><th scope="col">{escape(grid.corner)}</th>{heads}</tr></thead>'
    return f'<table class="plain grid">{head}<tbody>{body}</tbody></table>'


def _html_row(grid: Grid, row: Row) -> str:
    cells = ""
    for cell in row.cells:
        kind = " ".join(part for part in ("" if grid.is_text else "num", f"delta {cell.way}" if cell.way else "") if part)
        main = f"<b class=strong>{escape(cell.text)}</b>" if cell.is_bold else f"<b>{escape(cell.text)}</b>"
        cells += f'<td class="{kind}">{main}{f"<small>{escape(cell.small)}</small>" if cell.small else ""}</td>'
    return f'<tr{" class=apart" if row.is_apart else ""}><th scope="row">{escape(row.label)}</th>{cells}</tr>'
