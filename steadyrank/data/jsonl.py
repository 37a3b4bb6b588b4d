"""Examples and scored lists as JSON lines, `schema` first. Every error names file, line and field.

Reading is tolerant where nothing is lost (no schema, candidates as plain texts, whole numbers as ids, unknown keys kept) and strict
where a guess would change results (schema of another version, repeated ids, NaN, missing fields). Formats: docs/formats.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from steadyrank import seeds
from steadyrank.errors import InputError, NonFiniteScoreError
from steadyrank.files import read_jsonl, write_jsonl
from steadyrank.records import Candidate, Presentation, RankingExample, ScoredList

EXAMPLE_SCHEMA = "steadyrank.example/1"
SCORES_SCHEMA = "steadyrank.scores/1"
_PRESENTED = ("windows", "markers", "skeleton", "dummy", "seed")  # fields of a presentation, besides its order
EXAMPLE_KEYS = ("schema", "id", "query", "instruction", "candidates", "relevance", "source", "split", "group", "answers")
CANDIDATE_KEYS = ("id", "text", "title")


def load_examples(path: str | Path) -> list[RankingExample]:
    """The examples of a file or folder in any format that is read (see `steadyrank.data.reading`)."""
    return list(stream_examples(path))


def stream_examples(path: str | Path) -> Iterator[RankingExample]:
    """The same, one after the other: a large file costs one record of memory, and its ids."""
    from steadyrank.data.reading import read_examples

    return read_examples(path)


def save_examples(path: str | Path, examples: Iterable[RankingExample]) -> int:
    """Write examples as JSON lines; returns how many."""
    return write_jsonl(path, (example_to_json(example) for example in examples))


def shuffle_stream(examples: Iterable[RankingExample], buffer: int, *, seed: int = 0) -> Iterator[RankingExample]:
    """The examples in an order shuffled through a bounded buffer: repeatable, and flat in memory."""
    if buffer < 1:
        raise InputError(f"is {buffer}; must be at least 1", field="buffer")
    draw = seeds.stream(seed, "shuffle_stream")
    held: list[RankingExample] = []
    for example in examples:
        if len(held) < buffer:
            held.append(example)
            continue
        place = int(draw.integers(buffer))
        held[place], out = example, held[place]
        yield out
    yield from (held[place] for place in draw.permutation(len(held)))


def load_scores(path: str | Path) -> list[ScoredList]:
    """The scored lists of a JSON lines file.

    A presentation may stand twice only among the lists of one example that follow each other with an order: drawn orders of a short list
    repeat. Anywhere else it is the same list given twice.
    """
    out, seen, last = [], Unique("example_id"), None
    try:
        for line, row in read_jsonl(path):
            try:
                scored = scored_from_json(row)
                at = scored.presentation
                key = (scored.example_id, scored.scorer, at)
                if at.order is None or at.seed is None or last != key[:2] or key not in seen.lines:
                    seen.add(key, repr(scored.example_id), line)
                last = key[:2]
            except InputError as error:
                raise error.at(path=path, line=line) from None
            out.append(scored)
    except InputError as error:
        if (error.field or "").startswith("scores[") and error.reason.startswith(("is NaN", "is inf", "is -inf")):
            raise NonFiniteScoreError(error.reason, path=error.path, line=error.line, field=error.field) from None
        raise
    return out


def save_scores(path: str | Path, scored: Iterable[ScoredList]) -> int:
    """Write scored lists as JSON lines; returns how many."""
    return write_jsonl(path, (scored_to_json(one) for one in scored))


class Unique:
    """Refuses a key seen before, naming the line of the first."""

    def __init__(self, field: str):
        self.field, self.lines = field, dict[Any, int]()

    def add(self, key: Any, shown: str, line: int) -> None:
        first = self.lines.setdefault(key, line)
        if first != line:
            raise InputError(f"{shown} stands on line {first} already; ids must differ (1 and '1' are one id)", field=self.field)


def example_from_json(row: Mapping[str, Any]) -> RankingExample:
    """One example of its JSON object; also the row form whose candidates carry a `label` each."""
    _check_schema(row, EXAMPLE_SCHEMA, required=False)
    for name in ("query", "candidates"):
        if row.get(name) is None:
            raise InputError(f"is missing; an example needs query and candidates (it has: {', '.join(row) or 'nothing'})", field=name)
    if not isinstance(row["candidates"], list):
        raise InputError(f"must be a list, not {_kind(row['candidates'])}", field="candidates")
    extra = {name: value for name, value in row.items() if name not in EXAMPLE_KEYS}
    candidates = row["candidates"]
    relevance = row.get("relevance")
    if relevance is None and any(isinstance(value, dict) and "label" in value for value in candidates):
        relevance, candidates = _labels_apart(candidates)
    source = row.get("source")
    if source is None and isinstance(extra.get("dataset"), str):
        source = extra.pop("dataset")
    if relevance is not None and not isinstance(relevance, list):
        raise InputError(f"must be a list of grades, not {_kind(relevance)}", field="relevance")
    return RankingExample(
        query=row["query"],
        candidates=tuple(_candidate(value, place) for place, value in enumerate(candidates)),
        relevance=relevance,  # type: ignore[arg-type]  # checked and made a tuple by the record
        instruction=row.get("instruction"),
        id=name_of(row.get("id"), "id"),  # type: ignore[arg-type]  # none: hashed from the texts
        source=source,
        split=row.get("split"),
        group=name_of(row.get("group"), "group"),
        answers=_answers(row.get("answers")),
        extra=extra,
    )


def example_to_json(example: RankingExample) -> dict[str, Any]:
    """The JSON object of an example; unknown keys that were read are written back."""
    row: dict[str, Any] = {"schema": EXAMPLE_SCHEMA, "id": example.id, "query": example.query, "instruction": example.instruction}
    row["candidates"] = [candidate_to_json(candidate) for candidate in example.candidates]
    row["relevance"] = None if example.relevance is None else [_whole(grade) for grade in example.relevance]
    row |= {"source": example.source, "split": example.split, "group": example.group}
    row["answers"] = None if example.answers is None else list(example.answers)
    kept = {name: value for name, value in example.extra.items() if name not in EXAMPLE_KEYS}
    return {name: value for name, value in row.items() if value is not None} | kept


def candidate_to_json(candidate: Candidate) -> dict[str, Any]:
    """The JSON object of a candidate."""
    row = {"id": candidate.id, "text": candidate.text, "title": candidate.title}
    kept = {name: value for name, value in candidate.extra.items() if name not in CANDIDATE_KEYS}
    return {name: value for name, value in row.items() if value is not None} | kept


def scored_from_json(row: Mapping[str, Any]) -> ScoredList:
    """One scored list of its JSON object."""
    _check_schema(row, SCORES_SCHEMA, required=True)
    for name in ("example_id", "scorer", "scores"):
        if row.get(name) is None:
            raise InputError("is missing; a scored list needs example_id, scorer and scores", field=name)
    scores = _numbers(row["scores"], "scores")
    shown = row.get("presentation") or {}
    if not isinstance(shown, dict):
        raise InputError(f"must be an object, not {_kind(shown)}", field="presentation")
    order = shown.get("order")
    if order is not None and sorted(_places(order, "presentation.order", len(scores))) != list(range(len(scores))):
        raise InputError(f"must be a permutation of 0 to {len(scores) - 1}", field="presentation.order")
    return ScoredList(
        example_id=name_of(row["example_id"], "example_id") or "",
        scorer=str(row["scorer"]),
        scores=scores,
        scale=row.get("scale", "logit"),
        presentation=Presentation(
            order=None if order is None else tuple(order),
            **{name: shown.get(name) for name in _PRESENTED},
        ),
        truncated=_places(row.get("truncated") or [], "truncated", len(scores)),
        empty=_places(row.get("empty") or [], "empty", len(scores)),
    )


def scored_to_json(scored: ScoredList) -> dict[str, Any]:
    """The JSON object of a scored list."""
    at = scored.presentation
    shown = {"order": None if at.order is None else list(at.order), **{name: getattr(at, name) for name in _PRESENTED}}
    row: dict[str, Any] = {
        "schema": SCORES_SCHEMA,
        "example_id": scored.example_id,
        "scorer": scored.scorer,
        "presentation": {name: value for name, value in shown.items() if value is not None},
        "scores": list(scored.scores),
        "scale": scored.scale,
    }
    if scored.truncated:
        row["truncated"] = list(scored.truncated)
    if scored.empty:
        row["empty"] = list(scored.empty)
    return row


def name_of(value: object, field: str) -> str | None:
    """An id as text: whole numbers become their digits, so that 1 and "1" are one id."""
    if isinstance(value, bool) or not (value is None or isinstance(value, (str, int))):
        raise InputError(f"must be text or a whole number, not {json.dumps(value)}", field=field)
    return None if value is None else str(value)


def _check_schema(row: Mapping[str, Any], wanted: str, *, required: bool) -> None:
    schema = row.get("schema")
    if schema == wanted or (schema is None and not required):
        return
    told = "is missing" if schema is None else f"is {schema!r}"
    raise InputError(f"{told}; this reader knows {wanted!r}", field="schema")


def _candidate(value: object, place: int) -> Candidate:
    at = f"candidates[{place}]"
    if isinstance(value, str):
        return Candidate(value)
    if not isinstance(value, dict):
        raise InputError(f"must be text or an object with text, not {_kind(value)}", field=at)
    if value.get("text") is None:
        raise InputError("is missing; every candidate needs text", field=f"{at}.text")
    extra = {name: inner for name, inner in value.items() if name not in CANDIDATE_KEYS}
    try:
        return Candidate(value["text"], id=name_of(value.get("id"), "id"), title=value.get("title"), extra=extra)
    except InputError as error:
        raise InputError(error.reason, field=f"{at}.{error.field}") from None


def _labels_apart(candidates: list[Any]) -> tuple[list[Any], list[Any]]:
    """(grades, candidates without their label)."""
    grades, rest = [], []
    for place, value in enumerate(candidates):
        if not isinstance(value, dict) or value.get("label") is None:
            raise InputError("is missing; either every candidate has a label or none", field=f"candidates[{place}].label")
        grades.append(value["label"])
        rest.append({name: inner for name, inner in value.items() if name != "label"})
    return grades, rest


def _answers(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(answer, str) for answer in value):
        raise InputError("must be a list of texts", field="answers")
    return tuple(value)


def _numbers(value: object, field: str) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise InputError(f"must be a list of numbers, not {_kind(value)}", field=field)
    for place, number in enumerate(value):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise InputError(f"must be a number, not {json.dumps(number)}", field=f"{field}[{place}]")
    return tuple(float(number) for number in value)


def _places(value: object, field: str, size: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(place, int) and 0 <= place < size for place in value):
        raise InputError(f"must be a list of places between 0 and {size - 1}", field=field)
    return tuple(value)


def _whole(grade: float) -> float:
    return int(grade) if grade == int(grade) else grade


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "one text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else type(value).__name__)
