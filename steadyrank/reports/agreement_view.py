"""What the page of a judge agreement shows, as plain values: read from `agreement.json` alone, computed nothing anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.errors import InputError
from steadyrank.files import read_json
from steadyrank.reports import text
from steadyrank.reports.card_view import percent, unbroken

SCHEMA = "steadyrank.agreement/1"
GRADES = ("good", "usable with care", "weak", "not known", "no better than guessing", "worse than guessing", "says nothing")
TONES = {"good": "good", "usable with care": "middling", "weak": "middling", "not known": "middling"}  # every other grade is bad
SHARES = {
    "missing_a", "missing_b", "accuracy", "accuracy_binary", "identical", "false_positives", "false_negatives", "false_positive_rate",
    "false_negative_rate", "precision", "recall", "pairs", "pairs_binary", "unanswered", "consistent", "flipped", "tied_once", "first_won",
}  # fmt: skip
MAIN = {  # statistic -> (head, note) of the table of judges
    "accuracy": ("accuracy", "same grade"),
    "accuracy_binary": ("accuracy", "on relevance"),
    "kappa": ("κ", "plain"),
    "kappa_linear": ("κ", "linear"),
    "kappa_quadratic": ("κ", "quadratic"),
    "kappa_binary": ("κ", "on relevance"),
    "spearman": ("Spearman", "all documents"),
    "spearman_query": ("Spearman", "mean of lists"),
    "tau_query": ("τ-b", "mean of lists"),
    "pairs": ("pairs", "ordered alike"),
    "pairs_binary": ("pairs", "on relevance"),
}
ERRORS = {
    "false_positives": ("false positives", "of documents"),
    "false_negatives": ("false negatives", "of documents"),
    "false_positive_rate": ("false positives", "of not relevant"),
    "false_negative_rate": ("false negatives", "of relevant"),
    "precision": ("precision", ""),
    "recall": ("recall", ""),
    "difference": ("mean difference", "in grades"),
}
PEERS = {name: MAIN[name] for name in ("accuracy", "accuracy_binary", "kappa_quadratic", "spearman_query", "pairs", "pairs_binary")}
AGAIN = {"identical": ("identical", "unrounded"), **PEERS}
SWAPS = {
    "unanswered": ("no answer", ""),
    "consistent": ("same preference", "both orders"),
    "flipped": ("turned round", ""),
    "tied_once": ("tie in one order", ""),
    "first_won": ("first shown wins", "no bias: 50%"),
}
_NUMBER = re.compile(r"(−?\d[\d.]*%?\u00a0\[[^\]]*\])")


@dataclass(frozen=True, slots=True)
class Written:
    """A value and its interval as the page writes them: two decimals, shares as percentages; no span where there is no width to tell."""

    text: str
    span: str
    has_interval: bool


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge with its verdict and the comparison it stands on."""

    name: str
    comparison: Mapping[str, Any]
    verdict: Mapping[str, Any]

    @property
    def grade(self) -> str:
        return str(self.verdict["grade"])

    @property
    def tone(self) -> str:
        return TONES.get(self.grade, "bad")

    @property
    def headline(self) -> list[tuple[str, bool]]:
        """(part, is it a number with its interval), so that numbers stand out."""
        return [(part, bool(_NUMBER.fullmatch(part))) for part in _NUMBER.split(readable(self.verdict["headline"])) if part]

    @property
    def sentences(self) -> list[str]:
        return [readable(line) for line in self.verdict["sentences"]]

    @property
    def tiles(self) -> list[tuple[str, Written | None, str]]:
        """(name, value, note) of the four numbers to remember."""
        cells = self.comparison["overall"]
        kappa = "κ" if len(self.comparison["levels"]) == 2 else "weighted κ"
        return [
            ("document pairs ordered alike", value("pairs", cells["pairs"]), "guessing 50%"),
            (kappa, value("kappa_quadratic", cells["kappa_quadratic"]), "guessing 0" if self.comparison["graded"] else "ranks only"),
            ("Spearman, mean of lists", value("spearman_query", cells["spearman_query"]), "guessing 0"),
            ("no grade", value("missing_b", cells["missing_b"]), "of documents"),
        ]


def read_agreement(given: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """The object of an agreement.json, checked for what the page needs."""
    found = read_json(Path(given)) if isinstance(given, (str, Path)) else given
    path = given if isinstance(given, (str, Path)) else None
    if not isinstance(found, Mapping) or found.get("schema") != SCHEMA:
        told = found.get("schema") if isinstance(found, Mapping) else type(found).__name__
        raise InputError(
            f"is {told!r}; give an agreement.json ({SCHEMA}), as `steadyrank judge agreement` writes it", path=path, field="schema"
        )
    for name in ("judges", "scales", "data", "counts", "comparisons", "order_swap", "verdicts", "notes", "settings", "fingerprints"):
        if name not in found:
            raise InputError("is missing; write the file anew with `steadyrank judge agreement`", path=path, field=name)
    return found


def judges_of(found: Mapping[str, Any]) -> list[Judge]:
    """The judges that were held against a reference; none where there is no reference."""
    return [Judge(item["b"], item, found["verdicts"][item["b"]]) for item in of_kind(found, "reference")]


def of_kind(found: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """Comparisons of one kind, in the order of the file."""
    return [item for item in found["comparisons"] if item["kind"] == kind]


def relevance(found: Mapping[str, Any]) -> str:
    """From which grade a document counts as relevant, once where all raters share it."""
    raters: dict[str, list[str]] = {}
    for name in [*([found["reference"]] if found["reference"] else []), *found["judges"]]:
        scale = found["scales"][name]
        if scale:
            raters.setdefault(f"grade {text.plain(scale['relevant'])} of 0-{scale['top']}", []).append(name)
    if len(raters) == 1:
        return f"A document is relevant from {next(iter(raters))}."
    told = [f"{grade} for {' and '.join(names)}" for grade, names in raters.items()]
    return f"A document is relevant from {', '.join(told)}."


def summary(found: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """(grade, judges) from the best grade to the worst; empty where one judge speaks for itself."""
    if len(found["verdicts"]) < 2:
        return []
    order = [grade for grade in GRADES if grade in {one["grade"] for one in found["verdicts"].values()}]
    return [(grade, [name for name, one in found["verdicts"].items() if one["grade"] == grade]) for grade in order]


def value(name: str, cell: Mapping[str, Any] | None) -> Written | None:
    """The value of a cell with its interval; None where it is undefined."""
    if cell is None or cell["value"] is None:
        return None
    write, has_interval = writer(name), cell["low"] is not None
    ends = [write(cell[end]).rstrip("%") for end in ("low", "high")] if has_interval and cell["low"] != cell["high"] else []
    return Written(write(cell["value"]), f"[{', '.join(ends)}]" if ends else "", has_interval)


def writer(name: str) -> Callable[[float], str]:
    """How a statistic is written."""
    return percent if name in SHARES else two


def two(number: float) -> str:
    """Two decimals; what rounds to zero has no sign."""
    return text.number(round(number, 2) + 0.0, digits=2)


def readable(sentence: str) -> str:
    """True minus signs, and a number on one line with its interval."""
    return unbroken(re.sub(r"(?<![\w.])-(?=\d)", text.MINUS, sentence))


def reference_rows(found: Mapping[str, Any]) -> list[tuple[str, dict[str, str]]]:
    """(name, what it would get, by statistic) of judges without eyes; a range where judges graded different documents or grades."""
    items = of_kind(found, "reference")
    out = []
    for kind in ("random", "constant"):
        levels = sorted({item["references"]["constant"]["level"] for item in items} - {None})
        name = (
            "its own grades, dealt by lot"
            if kind == "random"
            else f"always grade {' or '.join(map(str, levels))}"
            if levels
            else "always the same grade"
        )
        out.append((name, {stat: _range(stat, [item["references"][kind].get(stat) for item in items]) for stat in MAIN}))
    return out if items else []


def _range(name: str, values: Sequence[float | None]) -> str:
    known = sorted(one for one in values if one is not None)
    if not known:
        return text.MISSING
    low, high = (f"{one:.0f}" if name not in SHARES and one == int(one) else writer(name)(one) for one in (known[0], known[-1]))
    return low if low == high else f"{low.rstrip('%')}–{high}"


def undefined(found: Mapping[str, Any]) -> list[str]:
    """One line for each statistic without a value in some dataset or overall, with its reason, and for resamples that were left out."""
    told: dict[str, list[str]] = {}
    resamples: dict[str, int] = {}
    for item in found["comparisons"]:
        for place, cells in (("all lists", item["overall"]), *item["by_source"].items()):
            for name, cell in cells.items():
                if cell["value"] is None and name in MAIN:
                    told.setdefault(f"{item['a']} and {item['b']}, {place}: {cell['why']}", []).append(label(name))
                elif cell.get("undefined_resamples") and name in MAIN:
                    key = f"{item['a']} and {item['b']}, {place}"
                    resamples[key] = max(resamples.get(key, 0), cell["undefined_resamples"])
    out = [f"{why} ({', '.join(dict.fromkeys(names))})" for why, names in told.items()]
    return out + [
        f"{key}: at most {most} of {found['settings']['resamples']} resamples undefined, left out" for key, most in resamples.items()
    ]


def label(name: str) -> str:
    """`kappa_quadratic` as `κ quadratic`."""
    head, note = MAIN[name]
    return f"{head} {note}"
