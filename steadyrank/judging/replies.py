"""What a judge's reply says: one value of the choices that were offered, or a named reason why there is none. Nothing is guessed.

Read: the value alone (`2`, `Grade: 2`), or a JSON object that holds it; code fences, a reasoning block before it, lists around it and prose
beside it are passed over. Not read: a reply that was cut short, an object for another id, a value outside the choices, two different
values, anything else. No digit is ever picked out of a sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

REASONS = ("empty", "truncated", "refused", "not JSON", "no answer", "several answers", "out of range", "wrong type", "wrong id")
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_OPEN_THINKING = re.compile(r"<(think|thinking|reasoning)>")
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(.*?)\n?\s*```", re.DOTALL)
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_DEEPEST = 4  # lists around an object


class Unreadable(Exception):
    """A reply without a value; `reason` is one of REASONS."""

    def __init__(self, reason: str):
        self.reason = reason
        super().__init__(reason)


class _Twice(dict[str, Any]):
    """A JSON object that gives one key two values."""


@dataclass(frozen=True, slots=True)
class ReplySpec:
    """What was asked for: the field of the JSON object, and the values it may have (whole numbers, or words)."""

    field: str
    choices: tuple[int | str, ...]

    @property
    def is_number(self) -> bool:
        """Whether the choices are numbers."""
        return isinstance(self.choices[0], int)

    def schema(self, ask_id: str) -> dict[str, Any]:
        """The JSON schema of a right reply, for servers that hold to one."""
        value = {"type": "integer" if self.is_number else "string", "enum": list(self.choices)}
        properties = {"id": {"type": "string", "enum": [ask_id]}, self.field: value}
        return {"type": "object", "properties": properties, "required": ["id", self.field], "additionalProperties": False}


def read_reply(text: str | None, spec: ReplySpec, ask_id: str, *, finish: str | None = None) -> int | str:
    """The value that a reply gives; `Unreadable` where it gives none. finish: why the model stopped, as the server says."""
    if finish == "length":
        raise Unreadable("truncated")
    if finish in ("content_filter", "refusal"):
        raise Unreadable("refused")
    body = _THINKING.sub("", text or "").strip()
    if _OPEN_THINKING.search(body):
        raise Unreadable("truncated")
    fenced = _FENCE.fullmatch(body)
    body = fenced[1].strip() if fenced else body
    if not body:
        raise Unreadable("empty")
    bare = _bare(body, spec)
    if bare is not None:
        return _choice(bare, spec)
    found = [_of_object(item, spec, ask_id) for item in _objects(body) if spec.field in item]
    if not found:
        raise Unreadable("no answer")
    if any(value != found[0] for value in found):
        raise Unreadable("several answers")
    return found[0]


def _bare(body: str, spec: ReplySpec) -> Any:
    """The value of a reply that is nothing else, after the field's name or without it; None where the reply is more."""
    alone = re.sub(rf"^{re.escape(spec.field)}\s*[:=]\s*", "", body, flags=re.IGNORECASE).removesuffix(".").strip("\"' ")
    if spec.is_number:
        return int(alone) if _INTEGER.fullmatch(alone) else None
    return alone if alone.lower() in [str(choice).lower() for choice in spec.choices] else None


def _objects(body: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a reply: it is one, or they stand in prose. An object that cannot be read makes the reply unreadable."""
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)
    try:
        yield from _unwrapped(decoder.decode(body), 0)
        return
    except (ValueError, RecursionError):
        if "{" not in body:
            raise Unreadable("no answer") from None
    place = 0
    while (place := body.find("{", place)) >= 0:
        try:
            item, place = decoder.raw_decode(body, place)
        except (ValueError, RecursionError):
            raise Unreadable("not JSON") from None
        yield from _unwrapped(item, 0)


def _unwrapped(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            yield from _unwrapped(item, depth + 1)


def _of_object(item: dict[str, Any], spec: ReplySpec, ask_id: str) -> int | str:
    if isinstance(item, _Twice):
        raise Unreadable("several answers")
    if "id" in item and str(item["id"]) != ask_id:
        raise Unreadable("wrong id")
    return _choice(item[spec.field], spec)


def _choice(value: Any, spec: ReplySpec) -> int | str:
    if value is None:
        raise Unreadable("no answer")
    if not spec.is_number:
        if not isinstance(value, str):
            raise Unreadable("wrong type")
        known = {str(choice).lower(): choice for choice in spec.choices}
        if value.strip().lower() not in known:
            raise Unreadable("out of range")
        return known[value.strip().lower()]
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unreadable("wrong type")
    if value not in spec.choices:
        raise Unreadable("out of range")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out and out[name] != value:
            return _Twice(pairs)
        out[name] = value
    return out


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
