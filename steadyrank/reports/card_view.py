"""What a decision card shows, as plain values: read from `audit.json` alone, computed nothing anew but places on a drawing.

A `Side` is one audit; a card holds one, or two side by side. What a file does not hold is None, and the card says why where the file does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.errors import InputError
from steadyrank.files import read_json
from steadyrank.reports import text

SCHEMA = "steadyrank.audit/1"
TONES = {
    "exactly steady": "good", "steady": "good", "mostly steady": "middling", "unsteady": "bad", "useless": "bad",
    "no better than chance": "bad", "worse than chance": "bad",
}  # fmt: skip
SHARES = {"slot": "the slot in the prompt", "window": "the prompt it falls into", "remainder": "companions, at most"}
POINTS = {"given": "given", "f1": "tuned for F1", "retention": "matched share kept"}  # the first that is there is the main one
COLOURS = ("student", "teacher")
_NUMBER = re.compile(r"(\d[\d.]*%?\u00a0\[[^\]]*\])")


@dataclass(frozen=True, slots=True)
class Value:
    """A number with its interval: `low` and `high` are None where the file has none. `share` prints as a percentage."""

    mean: float | None
    low: float | None = None
    high: float | None = None
    is_share: bool = False

    @property
    def text(self) -> str:
        if self.mean is None:
            return text.MISSING
        if not self.is_share and 0 < abs(self.mean) < 0.0095:
            return f"{self.mean:.2g}".replace("-", text.MINUS)
        return percent(self.mean) if self.is_share else text.number(self.mean)

    @property
    def span(self) -> str:
        if self.low is None or self.high is None or self.low == self.high:
            return ""
        if not self.is_share:
            return f"[{text.number(self.low)}, {text.number(self.high)}]"
        return f"[{percent(self.low).rstrip('%')}, {percent(self.high).rstrip('%')}]"


@dataclass(frozen=True, slots=True)
class Side:
    """One audit as the card shows it. `raw` is the file's object."""

    raw: Mapping[str, Any]
    name: str
    colour: str

    @property
    def grade(self) -> str:
        return str(self.raw["verdict"].get("grade", text.MISSING))

    @property
    def tone(self) -> str:
        return TONES.get(self.grade, "bad")

    @property
    def headline(self) -> list[tuple[str, bool]]:
        """(part, is it a number with its interval), so that numbers stand out."""
        return [(part, bool(_NUMBER.fullmatch(part))) for part in _NUMBER.split(unbroken(self.raw["verdict"].get("headline", ""))) if part]

    @property
    def sentences(self) -> list[str]:
        return [unbroken(line) for line in self.raw["verdict"].get("sentences") or []]

    @property
    def measure(self) -> str | None:
        return next(iter((self.raw.get("quality") or {}).get("measures") or {}), None)

    def quality(self, which: str = "mean") -> Value | None:
        """The first measure: its mean, worst, best or first_stage_order."""
        return None if self.measure is None else value(self.raw["quality"]["measures"][self.measure].get(which))

    def reference(self, which: str) -> float | None:
        return None if self.measure is None else self.raw["quality"]["references"][self.measure][which]["mean"]

    @property
    def agreement(self) -> Value:
        """Mean Kendall tau of two presentations: 1 the same ranking, 0 chance. It is 1 - 2 tau-PSI, interval and all."""
        psi = self.raw["steadiness"]["tau_psi"]
        if psi["mean"] is None:
            return Value(None)
        return Value(1 - 2 * psi["mean"], 1 - 2 * psi["high"], 1 - 2 * psi["low"])

    @property
    def shares(self) -> list[tuple[str, str, float]]:
        """(key, words, share of the movement) of slot, window and remainder; a negative one (noise taken out) counts as 0."""
        shares = (self.raw.get("causes") or {}).get("shares") or {}
        found = [(key, words, max(0.0, shares[key])) for key, words in SHARES.items() if shares.get(key) is not None]
        total = sum(share for _, _, share in found)
        return [(key, words, share / total) for key, words, share in found if share >= 0.005 * total] if total else []

    @property
    def spread(self) -> float | None:
        """SD of a score over presentations, mean over candidates and lists; in the scorer's units."""
        return (self.raw["steadiness"].get("score_sd") or {}).get("mean")

    @property
    def slot_effects(self) -> list[float]:
        return [effect or 0.0 for effect in (self.raw.get("causes") or {}).get("slot_effects") or []]

    def absent(self, part: str) -> str:
        """Why a part is not there."""
        return str((self.raw.get("left_out") or {}).get(part, "not in the file"))


def read_audit(path: str | Path) -> Mapping[str, Any]:
    """The object of an audit.json, checked for what every card needs."""
    return _checked(read_json(Path(path)), path)


def sides_of(audits: Sequence[Mapping[str, Any]]) -> list[Side]:
    """Sides of one or two audits; two of one name are told apart by number."""
    if not 1 <= len(audits) <= 2:
        raise InputError(f"holds {len(audits)} audits; a card shows one, or two side by side", field="audits")
    names = [str(audit["system"].get("name", text.MISSING)) for audit in audits]
    if len(names) == 2 and names[0] == names[1]:
        names = [f"{name} ({place})" for place, name in enumerate(names, start=1)]
    return [Side(audit, name, colour) for audit, name, colour in zip(audits, names, COLOURS)]


def _checked(audit: Any, path: str | Path) -> Mapping[str, Any]:
    if not isinstance(audit, dict) or audit.get("schema") != SCHEMA:
        told = audit.get("schema") if isinstance(audit, dict) else type(audit).__name__
        raise InputError(f"is {told!r}; give an audit.json ({SCHEMA}), as `steadyrank audit` writes it", path=path, field="schema")
    for name in ("system", "data", "counts", "steadiness", "verdict"):
        if not isinstance(audit.get(name), dict):
            raise InputError("is missing; write the audit anew with `steadyrank audit`", path=path, field=name)
    return audit


def value(interval: Mapping[str, Any] | None, *, is_share: bool = False) -> Value | None:
    """A value of a file's interval."""
    if not interval or interval.get("mean") is None:
        return None
    return Value(interval["mean"], interval.get("low"), interval.get("high"), is_share)


def example_sentence(example: Mapping[str, Any]) -> str:
    """The flip of an example in one sentence: its first candidate under the two orders."""
    row = example["candidates"][0]
    sides = []
    for at in "ab":
        is_kept = row[f"kept_{at}"] if example["about"] == "threshold" else row[f"rank_{at}"] == 1
        what = ("kept" if is_kept else "dropped") if example["about"] == "threshold" else f"ranked {row[f'rank_{at}']}"
        shown = "" if row[f"place_{at}"] is None else f" when shown as number {row[f'place_{at}']}"
        sides.append(f"{what}{shown} (score {row[f'score_{at}']:.3g})")
    return (
        f"A typical one of the {example['flipping_lists']} of {example['lists']} lists that flip: "
        f"for \u201c{_brief(example['query'], 90)}\u201d the document \u201c{_brief(row['text'], 70)}\u201d is {sides[0]} and {sides[1]}."
    )


def _brief(words: str, most: int) -> str:
    words = " ".join(words.split())
    return words if len(words) <= most else words[:most].rsplit(" ", 1)[0] + " \u2026"


def unbroken(sentence: str) -> str:
    """A number and its interval stay on one line."""
    return re.sub(r" \[([^\]]*)\]", lambda found: "\u00a0[" + found[1].replace(" ", "\u00a0") + "]", sentence)


def percent(share: float) -> str:
    """One decimal below 10%, so that small rates do not read as none."""
    digits = 1 if 0 < abs(share) < 0.0995 else 0
    return f"{100 * share:.{digits}f}%".replace("-", text.MINUS)


def point(side: Side, name: str) -> Mapping[str, Any]:
    """An operating point of the threshold; empty where there is none."""
    return next((one for one in (side.raw.get("threshold") or {}).get("points") or [] if one["name"] == name), {})


def main_point(side: Side) -> Mapping[str, Any]:
    """The operating point that the verdict speaks of; empty where there is none."""
    return next((found for name in POINTS if (found := point(side, name))), {})


def absences(sides: Sequence[Side]) -> list[str]:
    """One line for each part that a file does not hold, with its reason."""
    out = []
    for side in sides:
        told = [f"{text.words(part)} ({why})" for part, why in (side.raw.get("left_out") or {}).items()]
        if told:
            out.append((f"{side.name}: " if len(sides) > 1 else "") + "; ".join(told))
    return out
