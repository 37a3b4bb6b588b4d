"""The prompt of `expected_grade` as token ids: a frame, a query, marked documents, and an answer skeleton that is read, never generated.

    prefix  QUERY  middle  [1] DOCUMENT ... [n] DOCUMENT  suffix  Grades:  [1] Grade: 0 ... [n] Grade:

Built from ids, piece by piece, so the place at which a slot's grade is read is known and never searched for. Prefix, query and middle
are the same for every order of the documents. The frame comes from the tokenizer's chat template with its thinking mode off; a template
that knows no system turn gets one user turn, a tokenizer without a template plain text. Which of these it was is in `form`.

Documents and query are put on one line each (white space is collapsed) and cut by `prompts.fit.fit_list`; nothing else is ever cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steadyrank.errors import ConfigError
from steadyrank.prompts import catalog
from steadyrank.prompts.fit import ListFit, fit_list
from steadyrank.scoring.batched import EncodedPrompt, Prompt
from steadyrank.scoring.text import UserText
from steadyrank.scoring.yes_logit_frame import cut_to_tokens, fill, frame_ids, split_frame

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PREFIX_MODES = ("cumulative", "independent")
_KEPT = 20_000
_MARKS = {"query": "\ue0a1\ue0a2", "documents": "\ue0a3\ue0a4"}  # what split_frame looks for
_FIELDS = {"about", "system", "user", "query", "query_only", "lead", "skeletons", "dummy", "grades", "default_instruction"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the skeleton: the ids up to the place its grade is read at, and those of the dummy grade and the line's end."""

    before: tuple[int, ...]
    after: tuple[int, ...]


class GradeFrame:
    """The fixed ids of one prompt file for one tokenizer; `encode` puts the texts in."""

    def __init__(
        self,
        prompt: catalog.Prompt,
        *,
        tokenizer: PreTrainedTokenizerBase,
        text: UserText,
        max_length: int,
        query_share: float,
        prefix_mode: str,
    ):
        check_fields(prompt)
        if prefix_mode not in PREFIX_MODES:
            raise ConfigError(f"prefix_mode {prefix_mode!r} unknown; known: {', '.join(PREFIX_MODES)}")
        self.fields, self.tokenizer, self.text, self.max_length = prompt.fields, tokenizer, text, max_length
        self.query_share, self.prefix_mode = query_share, prefix_mode
        rendered, self.form = render(prompt, tokenizer)
        parts = split_frame(rendered + self.fields["lead"])
        if list(parts).index("query") > list(parts).index("document"):
            raise ConfigError(f"prompt {prompt.name!r} puts the documents before the query; the query comes first")
        start = [tokenizer.bos_token_id] if self.form == "text" and adds_bos(tokenizer) else []
        self.prefix, self.middle, self.suffix = [frame_ids(tokenizer, parts[name]) for name in ("prefix", "middle", "suffix")]
        self.prefix = [*start, *self.prefix]
        self._lines: dict[tuple[str, str, str], Line] = {}
        self._markers: dict[str, list[int]] = {}
        self.newline = frame_ids(tokenizer, "\n")
        self.grade_ids: tuple[int, ...] = ()
        self.line("[1]", "plain", str(self.fields["dummy"]))

    def encode(self, prompts: Sequence[Prompt], *, skeleton: str, dummy: str | None, document_tokens: int | None) -> list[EncodedPrompt]:
        """The ids of each prompt. `skeleton` and `dummy` hold where a prompt names none."""
        asked = [self.query_text(prompt.query, prompt.instruction) for prompt in prompts]
        queries = self.text.encode(asked)
        flat = iter(self.text.encode([" " + one_line(document) for prompt in prompts for document in prompt.documents]))
        grade = str(self.fields["dummy"]) if dummy is None else dummy
        out = []
        for prompt, query in zip(prompts, queries, strict=True):
            wording, shown = prompt.skeleton or skeleton, prompt.dummy if prompt.dummy is not None else grade
            lines = [self.line(marker, wording, shown) for marker in prompt.markers]
            out.append(self._joined(prompt, query, [next(flat) for _ in prompt.documents], lines, document_tokens))
        return out

    def _joined(
        self, prompt: Prompt, query: list[int], documents: list[list[int]], lines: Sequence[Line], document_tokens: int | None
    ) -> EncodedPrompt:
        markers = [self.marker(marker) for marker in prompt.markers]
        fit = self._fit(len(query), documents, markers, lines, document_tokens)
        if fit.truncated_query:
            query = self._shortened(prompt.query, prompt.instruction, fit.query)
        ids = [*self.prefix, *query, *self.middle]
        shared = len(ids)
        for marker, document, keep in zip(markers, documents, fit.documents, strict=True):
            ids += [*marker, *document[:keep], *self.newline]
        ids += self.suffix
        slots, starts = [], []
        for number, line in enumerate(lines):
            starts.append(len(ids))
            ids += line.before
            slots.append(len(ids) - 1)
            if self.prefix_mode == "cumulative" and number + 1 < len(lines):  # nobody reads what stands behind the last slot
                ids += line.after
        cut = tuple(slot for slot, document in enumerate(documents) if fit.documents[slot] < len(document))
        own_lines = tuple(starts) if self.prefix_mode == "independent" else ()
        return EncodedPrompt(tuple(ids), tuple(slots), cut, fit.truncated_query, shared, lines=own_lines)

    def _fit(
        self, query: int, documents: Sequence[Sequence[int]], markers: Sequence[list[int]], lines: Sequence[Line], cap: int | None
    ) -> ListFit:
        frame = len(self.prefix) + len(self.middle) + len(self.suffix)
        frame += sum(len(marker) + len(self.newline) for marker in markers) + sum(len(line.before) + len(line.after) for line in lines)
        lengths = [len(document) if cap is None else min(len(document), cap) for document in documents]
        return fit_list(self.max_length - frame, query, lengths, query_share=self.query_share)

    def line(self, marker: str, skeleton: str, dummy: str) -> Line:
        """The skeleton line of a marker. Every grade must be one known token there, and the four the same for all lines."""
        key = (marker, skeleton, dummy)
        if key not in self._lines:
            if len(self._lines) >= _KEPT:  # random markers would fill it for ever
                self._lines.clear()
                self._markers.clear()
            before, after = self.wording(skeleton).replace("{marker}", marker).split("{dummy}")
            ids, grades = graded(self.tokenizer, before, self.fields["grades"], forbidden=self.text.forbidden)
            if self.grade_ids and grades != self.grade_ids:
                raise ConfigError(
                    f"the grades are other tokens after {before!r} than after the first line; use another skeleton or marker scheme"
                )
            self.grade_ids = grades
            whole = frame_ids(self.tokenizer, before + dummy)
            shown = whole[len(ids) :] if whole[: len(ids)] == ids else frame_ids(self.tokenizer, dummy)
            self._lines[key] = Line(tuple(ids), (*shown, *frame_ids(self.tokenizer, after)))
        return self._lines[key]

    def wording(self, skeleton: str) -> str:
        """The skeleton of a name, or one's own wording that holds {marker} and {dummy}."""
        named = self.fields["skeletons"]
        if skeleton in named:
            return str(named[skeleton])
        if skeleton.count("{marker}") == 1 and skeleton.count("{dummy}") == 1 and skeleton.index("{marker}") < skeleton.index("{dummy}"):
            return skeleton
        raise ConfigError(f"skeleton {skeleton!r} is none of {', '.join(named)} and no wording that holds {{marker}} and then {{dummy}}")

    def marker(self, marker: str) -> list[int]:
        """The ids of a marker before its document."""
        if marker not in self._markers:
            self._markers[marker] = frame_ids(self.tokenizer, marker)
        return self._markers[marker]

    def query_text(self, query: str, instruction: str | None) -> str:
        """What stands in the query's place."""
        query, instruction = one_line(query), one_line(instruction or self.fields.get("default_instruction") or "")
        if not instruction:
            return fill(self.fields["query_only"], {"query": query})
        return fill(self.fields["query"], {"instruction": instruction, "query": query})

    def _shortened(self, query: str, instruction: str | None, room: int) -> list[int]:
        """Query ids within `room`: a long instruction gives way before the query does; both lose their ends."""
        instruction = one_line(instruction or self.fields.get("default_instruction") or "")
        words, *sizes = [len(ids) for ids in self.text.encode([self.query_text("", instruction and "x"), instruction, one_line(query)])]
        left = max(room - words, 2)
        fit = fit_list(left, sizes[0], [sizes[1]], minimum_document=max(1, left // 2))
        short = [cut_to_tokens(self.tokenizer, one_line(query), fit.documents[0]), cut_to_tokens(self.tokenizer, instruction, fit.query)]
        return self.text.encode([self.query_text(short[0], short[1])])[0][:room]

    def render(self, prompt: Prompt, encoded: EncodedPrompt) -> str:
        """The prompt as text, for reading."""
        return str(self.tokenizer.decode(list(encoded.ids)))


def graded(
    tokenizer: PreTrainedTokenizerBase, before: str, grades: Sequence[str], *, forbidden: frozenset[int]
) -> tuple[list[int], tuple[int, ...]]:
    """(ids before the grade, the grade tokens): each grade one distinct known token right behind. Where the tokenizer joins the blank
    before a grade to it, the blank goes with the grade."""
    for text in dict.fromkeys((before, before.rstrip(" "))):
        ids = frame_ids(tokenizer, text)
        found = [frame_ids(tokenizer, before + grade) for grade in grades]
        whole = [joint for joint in found if joint[:-1] == ids and joint[-1] != tokenizer.unk_token_id and joint[-1] not in forbidden]
        if len(whole) == len(grades) and len({joint[-1] for joint in whole}) == len(grades):
            return ids, tuple(joint[-1] for joint in whole)
    made = {grade: len(frame_ids(tokenizer, before + grade)) - len(frame_ids(tokenizer, before)) for grade in grades}
    raise ConfigError(
        f"the grades are not single distinct tokens behind {before!r} (tokens added: {made}); choose another skeleton, markers or model"
    )


def render(prompt: catalog.Prompt, tokenizer: PreTrainedTokenizerBase) -> tuple[str, str]:
    """(the frame as text with a mark for the query and one for the documents, its form: chat, chat-user or text)."""
    system, user = str(prompt.fields["system"]), fill(str(prompt.fields["user"]), _MARKS)
    both = f"{system}\n\n{user}"
    if not getattr(tokenizer, "chat_template", None):
        return both + "\n\n", "text"
    from jinja2 import TemplateError

    turns: list[tuple[str, list[dict[str, str]]]] = [
        ("chat", [{"role": "system", "content": system}, {"role": "user", "content": user}]),
        ("chat-user", [{"role": "user", "content": both}]),
    ]
    for form, messages in turns:
        try:
            text: Any = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        except TemplateError as error:
            refused = error
            continue
        if system in text:
            return str(text), form
    raise ConfigError(
        f"the tokenizer's chat template does not render prompt {prompt.name!r}: {locals().get('refused', 'it drops the text')}"
    )


def check_fields(prompt: catalog.Prompt) -> None:
    """A grading prompt has its fields, and each text exactly once."""
    fields, name = prompt.fields, prompt.name
    unknown, missing = set(fields) - _FIELDS, _FIELDS - {"about", "default_instruction"} - set(fields)
    if unknown or missing:
        raise ConfigError(
            f"prompt {name!r}: unknown fields {sorted(unknown)}, missing fields {sorted(missing)}; a grading prompt has {sorted(_FIELDS)}"
        )
    for field, texts in (("user", ("query", "documents")), ("query", ("instruction", "query")), ("query_only", ("query",))):
        for text in texts:
            if str(fields[field]).count(f"{{{text}}}") != 1:
                raise ConfigError(f"prompt {name!r}: field {field!r} must hold {{{text}}} exactly once")
    if not isinstance(fields["skeletons"], dict) or "plain" not in fields["skeletons"] or len(fields["grades"]) != 4:
        raise ConfigError(f"prompt {name!r} must hold four grades and skeletons with one named 'plain'")


def adds_bos(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the tokenizer starts a text with its beginning token."""
    ids = list(tokenizer("a", truncation=False)["input_ids"])
    return tokenizer.bos_token_id is not None and ids[:1] == [tokenizer.bos_token_id] and len(ids) > 1


def one_line(text: str) -> str:
    """The text with all white space collapsed to single blanks."""
    return " ".join(text.split())
