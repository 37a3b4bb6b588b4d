"""What unsteady scores do to those who act on them, as the tables of the decision card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steadyrank.reports import card_view, text
from steadyrank.reports.card_view import Side, Value


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `what it does`: a name, a note, and the value of each column."""

    name: str
    note: str
    values: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One consumer: a heading, (label, colour of its side) of each column, and its rows."""

    heading: str
    columns: tuple[tuple[str, str], ...]
    rows: list[Row]


def blocks(sides: Sequence[Side]) -> list[Block]:
    """What unsteadiness does, one block a consumer; rows and blocks without any value are left out, and `absences` says why."""
    own = tuple(("" if len(sides) == 1 else side.name, side.colour) for side in sides)
    found = [
        _threshold(sides),
        Block("Preference pair", own, _preference(sides)),
        Block("Reader of the top k", own, _reader(sides)),
        Block("Quality" if sides[0].measure is None else text.measure(sides[0].measure), own, _quality(sides)),
        Block("Steadiness", own, _steadiness(sides)),
        Block("Probes", own, _probes(sides)),
    ]
    kept = [replace(one, rows=[row for row in one.rows if any(value is not None for value in row.values)]) for one in found]
    return [one for one in kept if one.rows]


def _quality(sides: Sequence[Side]) -> list[Row]:
    def reference(which: str) -> tuple[Value | None, ...]:
        return tuple(None if side.reference(which) is None else Value(side.reference(which)) for side in sides)

    def own(which: str) -> tuple[Value | None, ...]:
        return tuple(side.quality(which) for side in sides)

    return [
        Row("under the same orders", "mean over them", own("mean")),
        Row("worst order of each list", "", own("worst")),
        Row("best order of each list", "", own("best")),
        Row("in the order of the file", "", own("first_stage_order")),
        Row("reference: a random order", "", reference("random")),
        Row("reference: one score for everything", "ties by the order shown", reference("constant")),
        Row("reference: the order of the file", "", reference("first_stage")),
        Row("reference: the grades themselves", "", reference("oracle")),
    ]


def _threshold(sides: Sequence[Side]) -> Block:
    columns, points = [], []
    for name, words in card_view.POINTS.items():
        for side in sides:
            if found := card_view.point(side, name):
                columns.append((f"{words}: {found['threshold']:.3g}", side.colour))
                points.append(found)

    def row(words: str, note: str, key: str) -> Row:
        return Row(words, note, tuple(card_view.value(one.get(key), is_share=True) for one in points))

    return Block(
        "Threshold",
        tuple(columns),
        [
            row("kept set agrees", "Jaccard of two orders", "jaccard"),
            row("kept by some orders only", "of documents ever kept", "document_flip"),
            row("share kept", "", "retention"),
            row("nothing kept", "of presentations", "empty"),
            row("precision", "", "precision"),
            row("recall", "", "recall"),
            row("F1", "", "f1"),
        ],
    )


def _of(sides: Sequence[Side], part: str, key: str) -> tuple[Value | None, ...]:
    return tuple(card_view.value((side.raw.get(part) or {}).get(key), is_share=True) for side in sides)


def _preference(sides: Sequence[Side]) -> list[Row]:
    return [
        Row("another top choice", "of two orders", _of(sides, "preference", "top_flip")),
        Row("another pair (top, bottom)", "of two orders", _of(sides, "preference", "pair_flip")),
        Row("quality of the choice", "of the best there is", _of(sides, "preference", "quality")),
    ]


def _reader(sides: Sequence[Side]) -> list[Row]:
    return [
        Row("another answer", "of two orders", _of(sides, "reader", "answer_flip")),
        Row("exact match", "", _of(sides, "reader", "em")),
        Row("answer F1", "", _of(sides, "reader", "f1")),
    ]


def _steadiness(sides: Sequence[Side]) -> list[Row]:
    def plain(key: str) -> tuple[Value | None, ...]:
        return tuple(card_view.value(side.raw["steadiness"].get(key)) for side in sides)

    top = next((side.raw["steadiness"].get("top_k") for side in sides), "k")
    return [
        Row("document pairs turned round", "τ-PSI", _of(sides, "steadiness", "tau_psi")),
        Row(f"another top {top}", "of two orders", _of(sides, "steadiness", "top_k_turnover")),
        Row("a score moves by", "SD over orders", plain("score_sd")),
        Row("the same, by what tells candidates apart", "their SD", plain("relative_sd")),
        Row("rank variance", "squared ranks", plain("rank_variance")),
        Row("tied document pairs", "", _of(sides, "steadiness", "tie_rate")),
    ]


def _share(part: Mapping[str, Any] | None) -> Value | None:
    return None if not part or part["share"] is None else Value(part["share"], is_share=True)


def _probes(sides: Sequence[Side]) -> list[Row]:
    largest = tuple(None if not side.raw.get("batching") else Value(float(side.raw["batching"]["largest"])) for side in sides)
    lifted = tuple(card_view.value((side.raw.get("injection") or {}).get("places_difference")) for side in sides)
    companions = tuple(_share(side.raw.get("companions")) for side in sides)
    top = next((side.raw["pool"]["top_k"] for side in sides if side.raw.get("pool")), "k")
    return [
        Row("one candidate less: pairs turned round", "Pool-PSI", _of(sides, "pool", "pool_psi")),
        Row(f"one candidate less: another top {top}", "of lists", _of(sides, "pool", "top_k_turnover")),
        Row("another candidate in one place: pairs turned round", "Pool-PSI", _of(sides, "replace", "pool_psi")),
        Row("same slot, companions moved: variance of a score", "of that over orders", companions),
        Row("an irrelevant document asks for a high grade", "places gained over neutral text", lifted),
        Row("other batches: largest move of a score", "same prompts", largest),
    ]


COMPARED = {  # columns of `per_list` that are shown as differences: their words, and whether more is better
    "tau_psi": ("document pairs turned round (τ-PSI)", False),
    "jaccard f1": ("kept set agrees (Jaccard), threshold by F1", True),
    "jaccard retention": ("kept set agrees (Jaccard), matched retention", True),
    "jaccard given": ("kept set agrees (Jaccard)", True),
    "top_flip": ("another top choice", False),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second on the same lists. `favours` is the side whose interval lies on its better side of 0, None where it holds 0."""

    name: str
    value: str
    span: str
    favours: Side | None


def differences(sides: Sequence[Side], found: Mapping[str, Mapping[str, Any]]) -> list[Difference]:
    """The lines of the paired comparison; empty where the two audits are of other lists."""
    measures = {key: (text.measure(key), True) for key in found if key == sides[0].measure}
    out = []
    for key, (words, more_is_better) in {**measures, **COMPARED}.items():
        row = found.get(key)
        if not row or not row["n"]:
            continue
        is_told = row["low"] > 0 or row["high"] < 0
        better = sides[0] if (row["mean"] > 0) == more_is_better else sides[1]
        value, low, high = (f"{row[end]:+.3f}".replace("-", text.MINUS) for end in ("mean", "low", "high"))
        out.append(Difference(words, value, f"{low} to {high}", better if is_told else None))
    return out
