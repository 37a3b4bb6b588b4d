"""The frame of a yes-logit prompt as token ids, and the two texts put into it.

A frame is a row of fixed ids with one place for the query (with its instruction) and one for the document. It comes from the
tokenizer's own chat template, or from a given prefix, middle and suffix. Frame text may hold control tokens, user text may not.
The document is cut first, then the query, then the instruction; the frame never, so the position the answer is read at is always there.
Sources: the published prompt forms of ZeRank-2 and Qwen3-Reranker. What the answer is worth is `scoring.yes_logit`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from steadyrank.errors import ConfigError
from steadyrank.prompts.catalog import Prompt
from steadyrank.prompts.fit import MINIMUM_DOCUMENT, QUERY_SHARE, Budget
from steadyrank.scoring.text import UserText, clean

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Private-use characters that stand for the two texts while a chat template is rendered.
_MARKS = {"query": "\ue0a1\ue0a2", "document": "\ue0a3\ue0a4"}
_KNOWN = {
    "about",
    "frame",
    "messages",
    "prefix",
    "middle",
    "suffix",
    "query",
    "query_only",
    "document",
    "default_instruction",
    "labels",
    "scale",
}


@dataclass(frozen=True, slots=True)
class Framed:
    """One prompt: its ids, and what was cut."""

    ids: tuple[int, ...]
    truncated_query: bool
    truncated_document: bool


class Frame:
    """The fixed ids of a prompt for one tokenizer, with budgets; `encode` puts the texts in."""

    def __init__(self, prompt: Prompt, *, tokenizer: PreTrainedTokenizerBase, max_length: int, query_share: float = QUERY_SHARE) -> None:
        check_fields(prompt)
        self.prompt, self.tokenizer, self.max_length = prompt, tokenizer, max_length
        self.user = UserText(tokenizer)
        self.parts = split_frame(render_frame(prompt, tokenizer))
        self.fixed = {place: tuple(frame_ids(tokenizer, text)) for place, text in self.parts.items() if place not in _MARKS}
        minimum = min(MINIMUM_DOCUMENT, max(1, max_length // 4))
        self.budget = Budget(max_length, sum(map(len, self.fixed.values())), query_share, minimum)
        words = max(len(self._query_ids("", instruction)) for instruction in (None, "x"))
        if self.budget.query_room <= words:
            raise ConfigError(
                f"max_length {max_length} leaves {self.budget.room} tokens beside the frame of prompt {prompt.name!r}, too few for its "
                "query form and a document; raise max_length"
            )

    @property
    def suffix(self) -> tuple[int, ...]:
        """The fixed ids after the last text; the answer is read at the last of them."""
        return self.fixed["suffix"]

    def encode(self, triples: Sequence[tuple[str, str | None, str]]) -> list[Framed]:
        """The ids of each (query, instruction, document) within `max_length`."""
        rows = [(clean(query).strip(), self._instruction(instruction), clean(document).strip()) for query, instruction, document in triples]
        queries = self.user.encode([self._query_text(query, instruction) for query, instruction, _ in rows])
        documents = self.user.encode([self._document_text(document) for _, _, document in rows])
        shortened: dict[tuple[str, str | None, int], list[int]] = {}
        out = []
        for (query, instruction, _), query_ids, document_ids in zip(rows, queries, documents):
            fit = self.budget.fit(len(query_ids), len(document_ids))
            kept_query = query_ids
            if fit.truncated_query:
                key = (query, instruction, fit.query)
                if key not in shortened:
                    shortened[key] = self._shortened(*key)
                kept_query = shortened[key]
            kept = {"query": kept_query, "document": document_ids[: fit.document]}
            ids = [token for place in self.parts for token in (self.fixed[place] if place in self.fixed else kept[place])]
            out.append(Framed(tuple(ids), fit.truncated_query, fit.truncated_document))
        return out

    def render(self, query: str, document: str, *, instruction: str | None = None) -> str:
        """The prompt as text, uncut: for reading, and for comparing with another implementation."""
        query_text = self._query_text(clean(query).strip(), self._instruction(instruction))
        texts = {"query": query_text, "document": self._document_text(clean(document).strip())}
        return "".join(texts.get(place, text) for place, text in self.parts.items())

    def _instruction(self, instruction: str | None) -> str | None:
        return clean(instruction or "").strip() or self.prompt.fields.get("default_instruction")

    def _query_text(self, query: str, instruction: str | None) -> str:
        fields = self.prompt.fields
        if not instruction and "query_only" in fields:
            return fill(fields["query_only"], {"query": query})
        return fill(fields["query"], {"instruction": instruction or "", "query": query})

    def _query_ids(self, query: str, instruction: str | None) -> list[int]:
        return self.user.encode([self._query_text(query, instruction)])[0]

    def _document_text(self, document: str) -> str:
        return fill(self.prompt.fields.get("document", "{document}"), {"document": document})

    def _shortened(self, query: str, instruction: str | None, budget: int) -> list[int]:
        """Query ids within a budget: the query's tail goes first, down to half of the room, then the instruction's."""
        room = budget - len(self._query_ids("", instruction and "x"))
        keep_instruction = len(self.user.encode([instruction or ""])[0])
        keep_query = max(room - keep_instruction, room // 2, 1)
        keep_instruction = min(keep_instruction, max(room - keep_query, 0))
        ids: list[int] = []
        while keep_query + keep_instruction > 0:
            short = cut_to_tokens(self.tokenizer, query, keep_query)
            ids = self._query_ids(short, cut_to_tokens(self.tokenizer, instruction, keep_instruction) if instruction else None)
            if len(ids) <= budget:
                return ids
            from_query = min(keep_query - 1, len(ids) - budget) if keep_query > 1 else 0
            keep_query, keep_instruction = keep_query - from_query, keep_instruction - (0 if from_query else 1)
            if keep_instruction < 0:
                break
        return ids[:budget]


def check_fields(prompt: Prompt) -> None:
    """A yes-logit prompt file has the fields of its frame, and each text exactly once."""
    fields, name = prompt.fields, prompt.name
    unknown = set(fields) - _KNOWN
    if unknown:
        raise ConfigError(f"prompt {name!r} has unknown fields {', '.join(sorted(unknown))}; known: {', '.join(sorted(_KNOWN))}")
    needed = {"chat": ("messages",), "text": ("prefix", "suffix")}.get(fields.get("frame", ""))
    if needed is None:
        raise ConfigError(f"prompt {name!r}: frame is {fields.get('frame')!r}; it must be 'chat' or 'text'")
    for field in (*needed, "query", "labels"):
        if field not in fields:
            raise ConfigError(f"prompt {name!r} lacks the field {field!r}")
    for field, slot in (("query", "{query}"), ("query_only", "{query}"), ("document", "{document}")):
        if field in fields and fields[field].count(slot) != 1:
            raise ConfigError(f"prompt {name!r}: field {field!r} must hold {slot} exactly once, or that text never reaches the model")
    if not isinstance(fields["labels"], dict) or not isinstance(fields["labels"].get("positive"), str):
        raise ConfigError(f"prompt {name!r}: labels must name the 'positive' answer, and may name the 'negative' one")


def render_frame(prompt: Prompt, tokenizer: PreTrainedTokenizerBase) -> str:
    """The frame as text, with a mark where each of the two texts goes."""
    fields = prompt.fields
    if fields["frame"] == "text":
        return f"{fields['prefix']}{_MARKS['query']}{fields.get('middle', '')}{_MARKS['document']}{fields['suffix']}"
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError(f"prompt {prompt.name!r} needs a chat template and the tokenizer has none; use a prompt with frame 'text'")
    messages: list[dict[str, Any]] = [{"role": row["role"], "content": fill(row["content"], _MARKS)} for row in fields["messages"]]
    from jinja2 import TemplateError

    try:
        return cast(str, tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    except TemplateError as error:
        raise ConfigError(f"the tokenizer's chat template refuses prompt {prompt.name!r} ({error}); use another prompt") from error


def split_frame(text: str) -> dict[str, str]:
    """Frame text and places in order: `prefix`, one text, `middle`, the other text, `suffix`."""
    for slot, mark in _MARKS.items():
        if text.count(mark) != 1:
            raise ConfigError(f"the rendered prompt holds the {slot} {text.count(mark)} times; it must hold it exactly once")
    first, second = sorted(_MARKS, key=lambda slot: text.index(_MARKS[slot]))
    prefix, rest = text.split(_MARKS[first])
    middle, suffix = rest.split(_MARKS[second])
    if not suffix:
        raise ConfigError("the rendered prompt ends with user text; a yes-logit prompt needs a fixed suffix that the answer is read after")
    return {"prefix": prefix, first: "", "middle": middle, second: "", "suffix": suffix}


def label_ids(frame: Frame, labels: Sequence[str]) -> tuple[int, ...]:
    """The id of each answer, validated to be one token where the answer stands, known to the vocabulary, and distinct."""
    tokenizer, suffix = frame.tokenizer, frame.parts["suffix"]
    found = []
    for label in labels:
        joint = frame_ids(tokenizer, suffix + label)
        if tuple(joint[:-1]) != frame.suffix:
            alone = frame_ids(tokenizer, label)
            raise ConfigError(
                f"answer {label!r} is not one token after the prompt's suffix {suffix[-20:]!r} (it makes {len(alone)} tokens on its own); "
                "choose an answer that the tokenizer keeps whole, or another suffix"
            )
        if joint[-1] == tokenizer.unk_token_id or joint[-1] in frame.user.forbidden:
            raise ConfigError(
                f"answer {label!r} is {tokenizer.convert_ids_to_tokens(joint[-1])!r} for this tokenizer; choose a word that it knows"
            )
        found.append(joint[-1])
    if len(set(found)) != len(found):
        raise ConfigError(f"answers {list(labels)} are the same token {found[0]}; the score would be constant")
    return tuple(found)


def cut_to_tokens(tokenizer: PreTrainedTokenizerBase, text: str, keep: int) -> str:
    """The beginning of the text that its own first `keep` tokens cover; a true prefix, never a decoded one."""
    if keep <= 0:
        return ""
    if not tokenizer.is_fast:
        raise ConfigError(
            f"tokenizer {type(tokenizer).__name__} has no fast form, whose offsets are needed to cut a query that is too long"
        )
    encoded = tokenizer(
        text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, truncation=False, verbose=False
    )
    offsets = encoded["offset_mapping"]
    return text if len(offsets) <= keep else text[: max(end for _, end in offsets[:keep])]


def fill(template: str, texts: dict[str, str]) -> str:
    """Replace `{name}` once each, never inside a text put in before."""
    positions = sorted((template.index(f"{{{name}}}"), name) for name in texts if f"{{{name}}}" in template)
    out, at = [], 0
    for start, name in positions:
        out += [template[at:start], texts[name]]
        at = start + len(name) + 2
    return "".join([*out, template[at:]])


def frame_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Ids of frame text: control tokens are what they say, and nothing is added."""
    return (
        list(tokenizer(text, add_special_tokens=False, split_special_tokens=False, truncation=False, verbose=False)["input_ids"])
        if text
        else []
    )
