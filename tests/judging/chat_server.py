"""A chat endpoint on the loopback whose replies are functions of what was asked: for drills of everything that can go wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from local_server import Server

from steadyrank import RankingExample
from steadyrank.judging import load_judge

QUICK = {"backoff": 0.01, "retries": 2, "timeout": 10.0, "deadline": 30.0, "concurrency": 4}
USAGE = {"prompt_tokens": 10, "completion_tokens": 2}


def completion(content: Any, *, finish: str = "stop", usage: Any = USAGE, **message: Any) -> dict[str, Any]:
    """The body of a right reply with this content."""
    row = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "served", "choices": [row]}
    return body | ({"usage": usage} if usage else {})


def text_of(body: Any) -> str:
    return body["messages"][-1]["content"]


def id_of(body: Any) -> str:
    return re.search(r'"id": "(\w+)"', text_of(body))[1]


def grade_of(body: Any) -> int:
    """The documents of these tests say their grade: `document with grade 2`."""
    return int(re.search(r"with grade (\d)", text_of(body))[1])


def right(body: Any, number: int = 0) -> tuple[int, dict[str, str], Any]:
    """The reply of a judge that reads."""
    return 200, {}, completion(json.dumps({"id": id_of(body), "grade": grade_of(body)}))


def base(server: Server) -> str:
    return server.url.removesuffix("/rerank") + "/v1"


def examples(lists: int = 3, size: int = 4) -> list[RankingExample]:
    """Lists whose documents carry their grade in their text."""
    return [
        RankingExample(f"query {row}", [f"list {row} document {at} with grade {(row + at) % 4}" for at in range(size)], id=f"e{row}")
        for row in range(lists)
    ]


def truth(lists: list[RankingExample]) -> list[tuple[float, ...]]:
    return [tuple(float(text[-1]) for text in example.documents) for example in lists]


def judge_at(server: Server, tmp_path: Any, **fields: Any) -> Any:
    return load_judge(base(server), model="m", cache=str(tmp_path / "replies.sqlite"), **(QUICK | fields))


class Sometimes:
    """Answers `fault(body, attempt)` while that gives something, else rightly; `attempt` counts calls with the same text from 0."""

    def __init__(self, fault: Callable[[Any, int], Any]):
        self.fault, self.seen = fault, {}

    def __call__(self, body: Any, number: int) -> tuple[int, dict[str, str], Any]:
        text = text_of(body)
        attempt = self.seen[text] = self.seen.get(text, -1) + 1
        return self.fault(body, attempt) or right(body)
