"""The table of a steadiness study: every arm with intervals, and OC-SFT against every other arm, list by list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steadyrank.audit import averaged, differences, summary
from steadyrank.files import atomic_write

COLUMNS = {
    "nDCG@6": "nDCG@6, mean over orders",
    "nDCG@6 first stage": "nDCG@6, first-stage order",
    "tau_psi": "τ-PSI",
    "jaccard f1": "Jaccard, F1-tuned",
    "jaccard retention": "Jaccard, matched retention",
    "top_flip": "top choice flips",
}


@dataclass(frozen=True)
class Row:
    """One arm on one split: `values` and `against` (the base minus this arm) hold {mean, low, high, n} of every column."""

    split: str
    arm: str
    label: str
    runs: int
    values: Mapping[str, Any]
    against: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def write_tables(
    output: Path,
    tables: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]],
    *,
    arms: Sequence[tuple[str, str]],
    base: str,
    splits: Mapping[str, str],
) -> list[Row]:
    """Rows of every split and arm; `table.md` written. Runs of one arm (seeds) are averaged list by list first."""
    rows: list[Row] = []
    for split in splits:
        of = {name: averaged(tables[split, name]) for name, _ in arms if (split, name) in tables}
        for name, label in arms:
            if name not in of:
                continue
            against = differences(of[base], of[name]) if base in of and name != base else {}
            rows.append(Row(split, name, label, len(tables[split, name]), summary(of[name]), against))
    with atomic_write(output / "table.md") as sink:
        sink.write(
            "\n\n".join(_markdown(rows, split, title, base) for split, title in splits.items() if any(r.split == split for r in rows))
        )
        sink.write("\n")
    return rows


def _markdown(rows: Sequence[Row], split: str, title: str, base: str) -> str:
    own = [row for row in rows if row.split == split]
    shown = [name for name in COLUMNS if any(name in row.values and row.values[name]["n"] for row in own)]
    head = f"| {title} | " + " | ".join(COLUMNS[name] for name in shown) + " |"
    lines = [head, "|---" * (len(shown) + 1) + "|"]
    lines += [f"| {row.label} | " + " | ".join(_cell(row.values.get(name)) for name in shown) + " |" for row in own]
    compared = [row for row in own if row.against]
    if compared:
        label = next(row.label for row in own if row.arm == base)
        lines += ["", f"| {label} minus ... | " + " | ".join(COLUMNS[name] for name in shown) + " |", "|---" * (len(shown) + 1) + "|"]
        lines += [f"| {row.label} | " + " | ".join(_cell(row.against.get(name), signed=True) for name in shown) + " |" for row in compared]
    return "\n".join(lines)


def _cell(value: Mapping[str, Any] | None, *, signed: bool = False) -> str:
    if value is None or not value["n"]:
        return "n/a"
    form = "+.3f" if signed else ".3f"
    return f"{value['mean']:{form}} [{value['low']:{form}}, {value['high']:{form}}]"
