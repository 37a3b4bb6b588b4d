"""The page: one self-contained HTML file from a study's records, with its figures drawn into it and its tables beside it.

Nothing is loaded from elsewhere: styles and figures are in the file. Every text of the user is escaped by the template; long ones are
shortened with the rest one click away. What a file does not hold is printed as n/a.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from steadyrank.files import atomic_write
from steadyrank.reports import plots, tables, text, verdict
from steadyrank.reports.read import Interval, Run, Split, Study

FLIPS_SHOWN, FLIPS_FOLDED = 6, 24
_SHOWN = ("id", "source", "instruction", "query", "agree")
SHORT = 180  # characters of a text before the rest is folded
_TERM = re.compile(r"([+\u2212]?\d+\.\d+ \[[^\]]*\])")


@dataclass(frozen=True, slots=True)
class Tile:
    """One cell of the summary strip."""

    name: str
    value: str
    notes: tuple[str, ...]
    way: str = ""


def write_page(study: Study) -> Path:
    """Figures, tables and `report.html` into the study's folder."""
    from markupsafe import Markup

    figures = {name: Markup(svg) if svg else None for name, svg in _draw(study).items()}  # drawn by us; texts escaped by matplotlib
    table, macro = tables.headline_table(study), tables.headline_table(study, average="macro")
    for name, content in (("headline.md", tables.to_markdown(table)), ("headline.csv", tables.to_csv(table))):
        _write(study.folder / "tables" / name, content)
    said = verdict.sentences(study)
    page = template("report.html.j2").render(
        study=study,
        css=Markup(resource("report.css")),
        headline=[(part, bool(_TERM.fullmatch(part))) for part in _TERM.split(_capital(said[0]))],
        further=said[1:],
        lead=verdict.lead_student(study),
        tiles=_tiles(study),
        table=Markup(tables.to_html(table)),
        macro=Markup(tables.to_html(macro)),
        has_macro=any(cell.value.mean is not None for row in macro.rows for cell in row.cells.values()),
        measure=text.measure(study.measure),
        figures=figures,
        flips=[flips_view(split, study.flips[split.name]) for split in study.splits],
        counts=[_counts(study, split) for split in study.splits],
        pairs=_pairs(study),
        differences=[(split, study.differences[split.name]) for split in study.splits if study.differences[split.name]],
        missing=_missing(study),
        commands=_commands(study),
        fingerprints=_fingerprints(study),
        runs=[_run_facts(study, run) for run in study.runs],
    )
    path = study.folder / "report.html"
    _write(path, page)
    return path


def _write(path: Path, content: str) -> None:
    with atomic_write(path) as file:
        file.write(content)


def resource(name: str) -> str:
    """A file of the templates' folder."""
    return resources.files("steadyrank.reports").joinpath("templates", name).read_text(encoding="utf-8")


def template(name: str) -> Any:
    """A template with what all pages share: escaping, filters for numbers, and the macros of parts.html.j2."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, loader=jinja2.FunctionLoader(resource)
    )
    environment.filters.update(
        plain=text.plain,
        words=text.words,
        number=text.number,
        grade=_grade,
        shorten=shorten,
        value=text.value,
        signed=text.signed,
        p=_bare_p,
    )
    environment.globals.update(span=text.span, direction=text.direction)
    return environment.get_template(name)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _draw(study: Study) -> dict[str, str | None]:
    folder, lead = study.folder / "figures", verdict.lead_student(study)
    return {
        "scatter": plots.scatter(study, folder),
        "forest": plots.forest(study, folder),
        "sources": plots.sources(study, folder, system=lead) if lead else None,
        "training": plots.training(study, folder),
    }


def shorten(value: object) -> tuple[str, str]:
    """The text to show, and the whole of it where it was cut (else empty)."""
    whole = str(value)
    if len(whole) <= SHORT:
        return whole, ""
    return whole[:SHORT].rsplit(" ", 1)[0] + " …", whole


def _grade(value: Any) -> str:
    return f"{value:g}".replace("-", text.MINUS) if isinstance(value, (int, float)) else text.MISSING


def _bare_p(value: float | None) -> str:
    return text.p_value(value).removeprefix("p ").removeprefix("= ")


def _tiles(study: Study) -> list[Tile]:
    tiles = []
    lead = verdict.lead_student(study)
    for split in study.splits:
        if lead is None:
            break
        value = study.results[split.name, lead.name].measures[study.measure].get("micro", Interval(None))
        tiles.append(
            Tile(f"{split.label}: {lead.name}", text.number(value.mean), (text.span(value) or "no interval", text.measure(study.measure)))
        )
        delta = study.against_start(split.name, lead.name)
        if delta is not None:
            notes = (text.span(delta.difference, is_signed=True), f"Holm {text.p_value(delta.holm)}")
            tiles.append(Tile(f"{split.label}: Δ to start", text.signed(delta.difference.mean), notes, text.direction(delta.difference)))
    lists = " + ".join(text.plain(_largest(study, split, "queries")) for split in study.splits)
    missing = len({name for result in study.results.values() for name in result.missing})
    note = f"{missing} missing from some run" if missing else "none missing"
    tiles.append(Tile("Lists evaluated", lists, (note,), "warn" if missing else ""))
    return tiles


def _largest(study: Study, split: Split, name: str) -> Any:
    values = [study.results[split.name, system.name].counts.get(name) for system in study.systems]
    return max((value for value in values if isinstance(value, int)), default=None)


def flips_view(split: Split, record: Mapping[str, Any]) -> dict[str, Any]:
    """The cases of one file of flips, as the page lays them out."""
    examples = record.get("examples") or []
    ways = {"better": 0, "worse": 0, "equal": 0, "ungraded": 0}
    cards = []
    for example in examples:
        new, old = (example.get(side) or {} for side in ("a_top", "b_top"))
        way = _flip_way(new.get("relevance"), old.get("relevance"))
        ways[way] += 1
        cards.append({"way": way, "new": new, "old": old, **{k: example.get(k) for k in _SHOWN}})
    cards = _alternate(cards)
    gaps = [_gap(example) for example in examples]
    return {
        "split": split,
        "a": record.get("a", text.MISSING),
        "b": record.get("b", text.MISSING),
        "ways": {way: count for way, count in ways.items() if count},
        "counts": _flat(record.get("counts") or {}),
        "is_by_gap": len(gaps) > 1 and gaps == sorted(gaps, reverse=True),
        "shown": cards[:FLIPS_SHOWN],
        "folded": cards[FLIPS_SHOWN : FLIPS_SHOWN + FLIPS_FOLDED],
        "left_out": max(0, len(cards) - FLIPS_SHOWN - FLIPS_FOLDED),
        "seeds": record.get("seeds"),
        "is_there": bool(record),
    }


def _gap(example: Mapping[str, Any]) -> float:
    new, old = ((example.get(side) or {}).get("relevance") for side in ("a_top", "b_top"))
    return abs(max(new, 0) - max(old, 0)) if isinstance(new, (int, float)) and isinstance(old, (int, float)) else 0.0


def _flip_way(new: Any, old: Any) -> str:
    if not isinstance(new, (int, float)) or not isinstance(old, (int, float)) or new < 0 or old < 0:
        return "ungraded"
    return "better" if new > old else "worse" if new < old else "equal"


def _alternate(cards: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Better and worse in turns, each in the file's order, then the others: nobody sees only the good ones."""
    groups = {way: [card for card in cards if card["way"] == way] for way in ("better", "worse", "equal", "ungraded")}
    turns = []
    for place in range(max(len(groups["better"]), len(groups["worse"]))):
        turns += groups["better"][place : place + 1] + groups["worse"][place : place + 1]
    return turns + groups["equal"] + groups["ungraded"]


def _scalars(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if isinstance(value, (int, float, str, bool)) and value != ""}


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Scalars by name; those of a mapping inside as `name: inner`; lists as how many they hold."""
    out: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            out.update({f"{name}: {inner}": item for inner, item in value.items() if not isinstance(item, (Mapping, list))})
        elif value is not None:
            out[name] = len(value) if isinstance(value, list) else value
    return out


def _counts(study: Study, split: Split) -> dict[str, Any]:
    """The counts of all systems on one split: a column where systems differ, one line for what is the same for all."""
    records = [(system, _flat(study.results[split.name, system.name].counts)) for system in tables.reading_order(study.systems)]
    names = list(dict.fromkeys(name for _, record in records for name in record))
    values = {name: {text.value(record.get(name)) for _, record in records} for name in names}
    differing = [name for name in names if len(values[name]) > 1]
    alike = [(text.words(name), next(iter(values[name]))) for name in names if len(values[name]) == 1]
    data = study.data.get(split.name) or {}
    return {
        "split": split,
        "names": [text.words(name) for name in differing],
        "rows": [(s, [(text.value(r.get(name)), _is_odd(name, r.get(name))) for name in differing]) for s, r in records],
        "alike": [(name, value) for name, value in alike if value != "0"],
        "zero": [name for name, value in alike if value == "0"],
        "data": _scalars(data),
        "by_source": data.get("by_source") or {},
    }


def _is_odd(name: str, value: Any) -> bool:
    """A count that a reader should stop at: anything cut, lost or skipped."""
    watched = ("missing", "unscored", "truncated", "failed", "skipped", "sampled", "unretrieved")
    return isinstance(value, (int, float)) and value > 0 and any(word in name for word in watched)


def _missing(study: Study) -> list[tuple[str, str, Sequence[str]]]:
    return [(split.label, s.label, m) for split in study.splits for s in study.systems if (m := study.results[split.name, s.name].missing)]


def _pairs(study: Study) -> list[dict[str, Any]]:
    """Paired-instruction results as the files hold them, a table for every split; what is the same for all stands once, below."""
    out = []
    for split in study.splits:
        systems = study.instructions[split.name].get("systems") or {}
        rows = [(system, _pair_cells(systems[system.name])) for system in tables.reading_order(study.systems) if system.name in systems]
        names = list(dict.fromkeys(name for _, cells in rows for name in cells))
        values = {name: {cells.get(name, (text.MISSING, "")) for _, cells in rows} for name in names}
        alike = [(text.words(name), next(iter(found))[0]) for name, found in values.items() if _is_alike(found) and found != {("0", "")}]
        if rows:
            out.append({"split": split, "names": [name for name in names if not _is_alike(values[name])], "rows": rows, "alike": alike})
    return out


def _is_alike(found: set[tuple[str, str]]) -> bool:
    """One value for all systems, and no interval: it need not stand in every row."""
    return len(found) == 1 and not next(iter(found))[1]


def _pair_cells(record: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Value and interval by name."""
    cells: dict[str, tuple[str, str]] = {}
    for name, value in record.items():
        if name in ("schema", "system", "split", "by_source", "intervals"):
            continue
        if isinstance(value, Mapping):
            cells.update({f"{name}: {inner}": (text.value(item), "") for inner, item in value.items()})
        else:
            cells[name] = (text.value(value), _pair_span(record, name))
    return cells


def _pair_span(record: Mapping[str, Any], name: str) -> str:
    """The interval of a value; none where it has no width, as chance has none."""
    found = (record.get("intervals") or {}).get(name)
    if not found or found["low"] == found["high"]:
        return ""
    return text.span(Interval(found["mean"], found["low"], found["high"]))


def _run_facts(study: Study, run: Run) -> dict[str, Any]:
    """What result.json says in short: scalars, the headline measure on dev, counts that are not zero, and warnings."""
    scalars = {name: value for name, value in _scalars(run.result).items() if name not in ("schema", "output")}
    facts = [(text.words(name), text.plain(value)) for name, value in scalars.items()]
    for moment in ("dev_start", "dev_best", "dev_final"):
        value = (run.result.get(moment) or {}).get(study.measure)
        if value is not None:
            facts.append((f"{text.words(moment)}, {text.measure(study.measure)}", text.value(value)))
    facts += [(text.words(name), text.plain(value)) for name, value in _flat(run.result.get("counts") or {}).items() if value]
    return {"run": run, "facts": facts, "warnings": [*(run.result.get("warnings") or []), *(run.result.get("notes") or [])]}


def _fingerprints(study: Study) -> list[tuple[str, str]]:
    out = [(text.words(name), text.plain(value)) for name, value in study.fingerprints.items()]
    for (split, system), result in study.results.items():
        out += [(f"{system} / {split} / {text.words(name)}", text.plain(value)) for name, value in result.fingerprints.items()]
    return out


def _commands(study: Study) -> list[str]:
    """Commands that the study recorded, else those that its own files allow."""
    if study.commands:
        return list(study.commands)
    lines = [f"steadyrank train {run.folder}/config.yaml" for run in study.runs if run.has_config]
    return [*lines, "steadyrank report ."]
