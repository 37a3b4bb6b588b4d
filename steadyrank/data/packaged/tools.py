"""User requests against tool descriptions: which function should be called?

query      the user's words; the right tool 3, every other 0. Source `tools/<set>` (live_* sets were contributed by users).
negatives  the request's own other tools, then the right tools of other requests (similar and random in turns), minus near-copies of the
           right tool (name or description overlap), which would be false negatives
abstain    requests that no offered tool fits: all 0, the request's own tools only; without an ideal ranking they are a split of their own
Splits are by tool list: requests over the same tools never part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank import seeds
from steadyrank.data.packaged.common import Base, cut, example, normal, plain, short_hash, shuffled, split_of
from steadyrank.data.packaged.negatives import NEIGHBOURS, neighbours, tokens
from steadyrank.data.packages import read_member
from steadyrank.records import RankingExample

FOLDER = "bfcl_eval/data/"
SETS = ("simple_python", "simple_java", "simple_javascript", "multiple", "live_simple", "live_multiple")
ABSTAIN = ("live_irrelevance",)
NAME_OVERLAP, TEXT_OVERLAP = 0.5, 0.4


@dataclass(frozen=True)
class Request:
    """One user request with its tools (documents by id)."""

    key: str
    source: str
    query: str
    right: str | None
    own: tuple[str, ...]
    tool_list: str


def tool_text(spec: Mapping[str, Any]) -> str:
    """A tool as a document: name, description, parameters."""
    parameters = (spec.get("parameters") or {}).get("properties") or {}
    told = "; ".join(
        f"{name}: {plain(str((about or {}).get('description', '')))}" for name, about in parameters.items() if isinstance(about, dict)
    )
    return cut(f"{spec['name']}: {plain(spec.get('description'))}" + (f" Parameters: {told}" if told else ""))


def words_of(name: str) -> frozenset[str]:
    """The words in a tool's name: `get_currentWeather` -> get, current, weather."""
    return frozenset(re.findall(r"[a-z]+|[0-9]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Overlap of two word sets."""
    return len(a & b) / len(a | b) if a | b else 0.0


def near_copy(a: str, b: str) -> bool:
    """Whether two tool texts (`name: description ...`) describe nearly the same tool."""
    (name_a, _, text_a), (name_b, _, text_b) = a.partition(": "), b.partition(": ")
    first = [text.partition(" Parameters: ")[0] for text in (text_a, text_b)]
    return (
        jaccard(words_of(name_a), words_of(name_b)) >= NAME_OVERLAP
        or jaccard(frozenset(tokens(first[0])), frozenset(tokens(first[1]))) >= TEXT_OVERLAP
    )


def parse(
    rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Sequence[Mapping[str, Any]]], source: str, texts: dict[str, str]
) -> list[Request]:
    """The requests of one set; `texts` collects the documents. Rows without exactly one right tool among their own are left out."""
    out = []
    for row in rows:
        query = plain(" ".join(turn["content"] for talk in row["question"] for turn in talk if turn["role"] == "user"))
        if not 8 <= len(query) <= 700:
            continue
        own: dict[str, str] = {}
        right = None
        calls = list(dict.fromkeys(name for call in answers.get(row["id"], ()) for name in call))
        for spec in row["function"]:
            text = tool_text(spec)
            name = f"tool-{short_hash(text)}"
            own[name] = texts[name] = text
            if calls == [spec["name"]]:
                right = name
        if not own or (right is None and source != "tools/abstain"):
            continue
        tool_list = short_hash(*sorted(own))
        out.append(Request(short_hash("tools", normal(query)), source, query, right, tuple(own), tool_list))
    return out


def lists(package: Path, *, seed: int, size: int) -> list[RankingExample]:
    """The examples of this domain."""

    def lines(name: str) -> list[Any]:
        return [json.loads(line) for line in read_member(package, f"{FOLDER}{name}.json").decode().splitlines() if line.strip()]

    texts: dict[str, str] = {}
    requests: list[Request] = []
    for name in (*SETS, *ABSTAIN):
        answers = {row["id"]: row["ground_truth"] for row in lines(f"possible_answer/BFCL_v4_{name}")} if name in SETS else {}
        requests += parse(lines(f"BFCL_v4_{name}"), answers, f"tools/{name}" if name in SETS else "tools/abstain", texts)
    return build(requests, texts, seed=seed, size=size)


def build(requests: Sequence[Request], texts: Mapping[str, str], *, seed: int, size: int) -> list[RankingExample]:
    """Examples of all sets; a query that occurs twice is kept once, the first time."""
    seen: dict[str, Request] = {}
    for request in requests:
        seen.setdefault(request.key, request)
    kept = list(seen.values())
    out = []
    by_split: dict[str, list[Request]] = {}
    for request in kept:
        if request.right is None:
            out.append(_example(request, "abstain", request.own[:size], texts, seed))
        else:
            by_split.setdefault(split_of(request.tool_list, domain="tools", seed=seed), []).append(request)
    for split, members in sorted(by_split.items()):
        near = neighbours([member.query for member in members], [member.query for member in members], NEIGHBOURS)
        for place, request in enumerate(members):
            draws = seeds.stream(seed, "tools", request.key).integers(0, len(members), size=4 * NEIGHBOURS)
            lenders = _turns((members[other] for other in near[place]), (members[int(other)] for other in draws))
            out.append(_example(request, split, _pool(request, lenders, texts, size, seed), texts, seed))
    return out


def _turns(first: Iterator[Request], second: Iterator[Request]) -> Iterator[Request]:
    """One of each in turns until both are spent."""
    for a in first:
        yield a
        b = next(second, None)
        if b is not None:
            yield b
    yield from second


def _pool(request: Request, lenders: Iterator[Request], texts: Mapping[str, str], size: int, seed: int) -> tuple[str, ...]:
    right = request.right or ""
    others = [name for name in request.own if name != right and not near_copy(texts[name], texts[right])]
    pool = [right, *others[: size - 1]]
    for lender in lenders:
        if len(pool) >= size:
            break
        name = lender.right
        if name and name not in pool and name not in request.own and not near_copy(texts[name], texts[right]):
            pool.append(name)
    return tuple(pool)


def _example(request: Request, split: str, pool: Sequence[str], texts: Mapping[str, str], seed: int) -> RankingExample:
    base = Base(request.key, request.query, split, tuple(pool), frozenset())
    grades = {request.right: 3.0} if request.right else {}
    order = shuffled(pool, seed, request.source, request.key)
    return example(request.source, base, order, grades=grades, texts=texts, seed=seed, extra={"tool_list": request.tool_list})
