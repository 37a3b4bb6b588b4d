"""What a judge is asked: a prompt of the catalog filled with one document, two, or a whole ranking.

Texts of users stand between marks that carry the ask's id, which is hashed from the texts, so that no document can close its own frame;
control tokens of chat templates inside them are broken apart. Documents are cut to a number of characters, the frame never. Both are
counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyrank.errors import ConfigError
from steadyrank.files import fingerprint
from steadyrank.judging.replies import ReplySpec
from steadyrank.prompts import catalog
from steadyrank.records import RankingExample
from steadyrank.scoring.text import clean

KINDS = {"judge_grade": "judge-relevance", "judge_answer": "judge-answer", "judge_pair": "judge-pairwise", "judge_ranking": "judge-ranking"}
_SLOT = re.compile(r"\{(\w+)\}")
_CONTROL = re.compile(r"<(?=\||/?s>|(?:start|end)_of_turn>|(?:bos|eos|pad|unk)>)|\[(?=/?INST\])")


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. id: what the reply may name; name: how errors call it; messages: what is sent."""

    id: str
    name: str
    messages: tuple[Mapping[str, str], ...]
    cut: int = 0
    defused: int = 0


class Asking:
    """Fills one prompt. `document_characters`: the most that is sent of one document."""

    def __init__(self, prompt: str | Path, kind: str, *, document_characters: int | None = 8_000):
        if document_characters is not None and document_characters < 1:
            raise ConfigError(f"document_characters is {document_characters}; give a whole number from 1")
        self.prompt = catalog.load(prompt, kind=kind)
        self.document_characters = document_characters
        self.spec = _spec(self.prompt)
        self.digest = self.prompt.digest

    def document(self, example: RankingExample, place: int) -> Ask:
        """About one candidate."""
        return self._ask(example, f"document {example.candidate_ids[place]}", {"document": example.documents[place]})

    def pair(self, example: RankingExample, first: int, second: int) -> Ask:
        """About two candidates, `first` shown before `second`."""
        ids, texts = example.candidate_ids, example.documents
        return self._ask(example, f"documents {ids[first]} and {ids[second]}", {"first": texts[first], "second": texts[second]})

    def ranking(self, example: RankingExample, order: Sequence[int]) -> Ask:
        """About all candidates in this order, best first."""
        return self._ask(example, f"ranking {list(order)}", {}, [example.documents[place] for place in order])

    def _ask(self, example: RankingExample, what: str, texts: Mapping[str, str], ranked: Sequence[str] = ()) -> Ask:
        fields, shown = self.prompt.fields, _Shown(self.document_characters)
        marks = {name: shown.document(text) for name, text in texts.items()}
        rows = [shown.document(text) for text in ranked]
        template = fields["query"] if example.instruction else fields["query_only"]
        query = _fill(template, {"query": shown.text(example.query), "instruction": shown.text(example.instruction or "")})
        if "answers" in fields and example.answers:
            query += _fill(fields["answers"], {"answers": "; ".join(shown.text(answer) for answer in example.answers)})
        ask_id = "d" + fingerprint([query, list(marks.values()), rows])[:4]
        if ranked:
            lines = [_fill(fields["document"], {"place": str(at), "id": ask_id, "document": row}) for at, row in enumerate(rows, start=1)]
            marks["documents"] = "\n".join(lines)
        values = {**marks, "query": query, "id": ask_id}
        messages = tuple({"role": message["role"], "content": _fill(message["content"], values)} for message in fields["messages"])
        return Ask(ask_id, f"example {example.id!r}, {what}", messages, cut=shown.cut, defused=shown.defused)


class _Shown:
    """Texts as they are sent, and how many were changed for it."""

    def __init__(self, limit: int | None):
        self.limit, self.cut, self.defused = limit, 0, 0

    def text(self, text: str) -> str:
        text, changed = _CONTROL.subn(lambda match: match.group() + " ", clean(text))
        self.defused += changed > 0
        return text

    def document(self, text: str) -> str:
        if self.limit is not None and len(text) > self.limit:
            text, self.cut = text[: self.limit], self.cut + 1
        return self.text(text)


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Every {name} replaced once; braces inside a value stay what they are."""
    return _SLOT.sub(lambda match: values.get(match[1], match[0]), template)


def _spec(prompt: catalog.Prompt) -> ReplySpec:
    """The reply that a prompt file asks for; what is wrong with the file is one sentence."""
    fields: Any = prompt.fields
    reply, messages = fields.get("reply"), fields.get("messages")
    usable = isinstance(messages, list) and all(isinstance(row, dict) and {"role", "content"} <= set(row) for row in messages)
    for name, is_right in (("messages", usable), ("query", "query" in fields), ("query_only", "query_only" in fields)):
        if not is_right:
            raise ConfigError(f"prompt {prompt.name!r}: field {name!r} is missing or not of the right form; see a file judge-*.yaml")
    field, choices = (reply.get("field"), reply.get("choices")) if isinstance(reply, dict) else (None, None)
    kinds = {type(choice) for choice in choices} if isinstance(choices, list) else set()
    if not isinstance(field, str) or kinds not in ({int}, {str}):
        raise ConfigError(f"prompt {prompt.name!r}: reply must be like {{field: grade, choices: [0, 1, 2, 3]}}, all numbers or all words")
    return ReplySpec(field, tuple(choices))  # type: ignore[arg-type]  # a list, or `kinds` would be empty
