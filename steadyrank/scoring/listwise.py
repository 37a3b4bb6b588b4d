"""`listwise`: a language model that answers with an order, behind a chat endpoint or a function; long lists go through sliding windows.

The scores are 1 / rank: they say the order and nothing more, and never repeat scores of an earlier stage. Labels are drawn for each prompt
from its content, so that text in a document that imitates an answer names no label (`labels: numbers` is for models that know only those;
what imitates one is then counted in `counts.imitations`). A reply without an order is asked for again `retries` times; then the window
keeps its order, and `counts` and `failed` (the lists in which no window was answered) say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from steadyrank import files, seeds
from steadyrank.errors import ConfigError, RunError, unknown_name
from steadyrank.prompts import catalog
from steadyrank.prompts.permutation import Flags, parse_permutation
from steadyrank.remote import Call, Client, ClientSettings, RemoteError, WrongReplyError, check_url, shown
from steadyrank.scoring.base import PairScore
from steadyrank.scoring.batching import progress_bar
from steadyrank.scoring.callable import find_function
from steadyrank.scoring.outside import Ask, OutsideScorer
from steadyrank.scoring.sliding import Pass, check
from steadyrank.scoring.text import clean

LABELS = ("codes", "numbers")
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: a code is never a word
_FIELD = re.compile(r"\{(\w+)\}")
Messages = list[dict[str, str]]


@dataclass
class Counts:
    """What went out and came back. unanswered: windows that kept their order; imitations: documents that held a label; cut: documents sent
    in part, once a window."""

    windows: int = 0
    repaired: int = 0
    asked_again: int = 0
    unanswered: int = 0
    imitations: int = 0
    cut: int = 0


@dataclass
class _Going:
    """One list on its way through its windows."""

    ask: Ask
    passing: Pass
    answered: int = 0
    error: RunError | None = None


class Listwise(OutsideScorer):
    """An order by a language model.

    source:   the endpoint of a chat model (`http://.../v1`), or a function of messages that gives the reply's text (also `module:name`).
    model:    sent to the endpoint.
    window, step: documents a prompt, and how far the next window lies towards the start.
    labels:   codes | numbers.
    document_characters: the most that is sent of one document.
    failed:   ids of the lists that came back in the order they were shown, because no reply could be read.
    """

    def __init__(
        self,
        source: str | Callable[[Messages], str],
        *,
        model: str | None = None,
        name: str | None = None,
        window: int = 20,
        step: int = 10,
        labels: str = "codes",
        retries: int = 1,
        prompt: str = "listwise",
        document_characters: int | None = 2_000,
        max_tokens: int = 512,
        on_failure: str = "raise",
        client: Client | None = None,
    ):
        check(window, step)
        if labels not in LABELS:
            raise unknown_name("labels", labels, LABELS)
        if retries < 0:
            raise ConfigError(f"retries is {retries}; give 0 or more")
        is_url = isinstance(source, str) and "://" in source
        if is_url:
            check_url(str(source))
        called = model or (shown(str(source)) if is_url else str(getattr(source, "__qualname__", source)))
        super().__init__(name=name or called, scale="grade", on_failure=on_failure)
        self.source, self.model, self.window, self.step, self.labels, self.retries = source, model, window, step, labels, retries
        self.prompt = catalog.load(prompt, kind="listwise")
        self.document_characters, self.max_tokens = document_characters, max_tokens
        self._function = None if is_url else find_function(source) if isinstance(source, str) else source
        self.client = client or (Client() if is_url else None)
        self.counts = Counts()
        self.failed: list[str] = []

    @classmethod
    def load(cls, source: Any, **options: Any) -> Listwise:
        """A scorer of the options of `Listwise` and, where they do not share a name, of `ClientSettings`, together."""
        settings = {key: options.pop(key) for key in ("timeout", "deadline", "concurrency", "api_key_env") if key in options}
        client = Client(ClientSettings(**settings)) if isinstance(source, str) and "://" in source else None
        return cls(source, client=client, **options)

    @property
    def fingerprint(self) -> str:
        """The settings and the prompt; what model answers, only the service knows."""
        source = shown(self.source) if isinstance(self.source, str) and "://" in self.source else self.name
        settings = [self.model, self.window, self.step, self.labels, self.retries, self.document_characters, self.max_tokens]
        return files.fingerprint(["listwise", source, self.prompt.digest, *settings])

    def _answer(self, asks: Sequence[Ask], *, skip: bool, progress: bool) -> list[list[PairScore] | RunError]:
        going = [_Going(ask, Pass(len(ask.places), size=self.window, step=self.step)) for ask in asks]
        with progress_bar(progress) as bar:
            task = bar.add_task(self.name, total=len(going))
            while live := [item for item in going if item.error is None and item.passing.window is not None]:
                self._round(live, skip=skip)
                bar.update(task, completed=sum(item.passing.window is None or item.error is not None for item in going))
        return [item.error or self._scores(item) for item in going]

    def _round(self, live: Sequence[_Going], *, skip: bool) -> None:
        """The next window of every list: asked, asked again where no order could be read, and applied."""
        self.counts.windows += len(live)
        waiting = list(live)
        for attempt in range(self.retries + 1):
            self.counts.asked_again += len(waiting) if attempt else 0
            asked = [self._messages(item, attempt) for item in waiting]
            replies = self._replies(waiting, [messages for messages, _ in asked], skip=skip)
            again = []
            for item, (_, labels), reply in zip(waiting, asked, replies, strict=True):
                if isinstance(reply, RunError):
                    item.error = reply
                    continue
                order, flags = parse_permutation(reply, len(labels), labels=labels)
                if flags.failed:
                    again.append(item)
                else:
                    self._applied(item, order, flags)
            waiting = again
        for item in waiting:
            self.counts.unanswered += 1
            item.passing.take(list(range(len(item.passing.window or ()))))

    def _applied(self, item: _Going, order: list[int], flags: Flags) -> None:
        self.counts.repaired += flags.repaired
        item.answered += 1
        item.passing.take(order)

    def _messages(self, item: _Going, attempt: int) -> tuple[Messages, list[str]]:
        """The prompt of a list's next window, and the labels in it."""
        texts = item.ask.documents
        whole = [texts[place] for place in item.passing.window or ()]
        documents = [text[: self.document_characters] for text in whole]
        self.counts.cut += sum(len(text) < len(full) for text, full in zip(documents, whole, strict=True))
        query, instruction = clean(item.ask.example.query), clean(item.ask.example.instruction or "")
        labels = self._labels([query, instruction, str(attempt), *documents], len(documents))
        fields = self.prompt.fields
        form = fields["document"]
        filled = {
            "query": _fill(fields["query" if instruction else "query_only"], {"query": query, "instruction": instruction}),
            "documents": "\n\n".join(
                _fill(form, {"label": label, "document": text}) for label, text in zip(labels, documents, strict=True)
            ),
            "count": str(len(documents)),
            "example": " > ".join(f"[{label}]" for label in sorted(labels)[:3]),
        }
        self.counts.imitations += sum(any(f"[{label}]" in text for label in labels) for text in documents)
        return [{"role": turn["role"], "content": _fill(turn["content"], filled)} for turn in fields["messages"]], labels

    def _labels(self, texts: Sequence[str], count: int) -> list[str]:
        if self.labels == "numbers":
            return [str(number) for number in range(1, count + 1)]
        draw, whole, found = seeds.stream(0, "listwise labels", *texts), "\n".join(texts), dict[str, None]()
        while len(found) < count:
            code = "".join(_LETTERS[int(place)] for place in draw.integers(len(_LETTERS), size=3))
            if code not in whole:
                found[code] = None
        return list(found)

    def _replies(self, items: Sequence[_Going], asked: Sequence[Messages], *, skip: bool) -> list[Any]:
        if self._function is not None:
            return [str(self._function(messages) or "") for messages in asked]
        assert self.client is not None
        calls = [Call(item.ask.name, f"{str(self.source).rstrip('/')}/chat/completions", self._body(m)) for item, m in zip(items, asked)]
        found = self.client.post_all(calls, read=lambda place, value: _text(value), keep_failures=skip)
        return [
            RunError(f"scorer {self.name!r}: {item.ask.name}: {reply}") if isinstance(reply, RemoteError) else reply
            for item, reply in zip(items, found, strict=True)
        ]

    def _body(self, messages: Messages) -> dict[str, Any]:
        return {"model": self.model or "default", "messages": messages, "temperature": 0, "max_tokens": self.max_tokens}

    def _scores(self, item: _Going) -> list[PairScore]:
        if not item.answered and len(item.ask.places) > 1:
            self.failed.append(item.ask.example.id)
        ranks = {place: rank for rank, place in enumerate(item.passing.order, start=1)}
        return self._home(item.ask, [1.0 / ranks[place] for place in range(len(item.ask.places))])


def _fill(form: str, values: dict[str, str]) -> str:
    """The form with its fields filled at once: what a value holds is never a field."""
    return _FIELD.sub(lambda found: values.get(found[1], found[0]), form)


def _text(value: Any) -> str:
    try:
        text = value["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise WrongReplyError("sent JSON without choices[0].message.content; is it a chat endpoint (.../v1)?") from None
    return text if isinstance(text, str) else ""
