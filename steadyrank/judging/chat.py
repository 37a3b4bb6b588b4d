"""A chat endpoint as a judge of one document at a time: a grade from 0 to 3, or whether the answer stands in it.

Grades belong to documents, so every ranking that training samples is paid by them without another call. The instruction stands in the
prompt. A document without text is not sent: it holds nothing, so it is graded with the lowest choice and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from steadyrank.judging.asker import Asker, Outcome, reasons
from steadyrank.judging.asks import KINDS, Ask, Asking
from steadyrank.judging.base import JudgedList, Watch
from steadyrank.judging.endpoint import ChatEndpoint
from steadyrank.judging.ledger import Ledger
from steadyrank.judging.settings import ChatSettings
from steadyrank.records import RankingExample
from steadyrank.remote.addresses import shown
from steadyrank.scoring.text import is_empty


class ChatCore:
    """What the judges behind a chat endpoint share: settings, the asks of one prompt, the account of one run."""

    def __init__(self, settings: ChatSettings):
        kind = f"judge_{settings.task}"
        self.settings = settings
        self.name = settings.name or settings.model
        self.max_missing = settings.max_missing
        self.asking = Asking(settings.prompt or KINDS[kind], kind, document_characters=settings.document_characters)
        self.ledger = Ledger(settings.prices())
        self.endpoint = ChatEndpoint(settings.base_url, settings.model, decoding=settings.decoding(), api_key_env=settings.api_key_env)
        self.asker = Asker(
            self.endpoint,
            self.asking.spec,
            identity={"revision": settings.revision, "prompt": self.asking.digest},
            cache=settings.cache_path(),
            ledger=self.ledger,
            client=settings.client(),
            ask_again=settings.ask_again,
        )
        self.missing: Counter[str] = Counter()
        self.cut = self.defused = self.empty = 0

    def ask(self, asks: Sequence[Ask], what: str, watch: Watch | None) -> list[Outcome]:
        """One outcome an ask, counted."""
        self.cut += sum(ask.cut for ask in asks)
        self.defused += sum(ask.defused for ask in asks)
        if watch is not None:
            watch.begin(len(asks), what)
        outcomes = self.asker.ask_all(asks, on_done=(lambda found: watch.step(found.value is None)) if watch is not None else None)
        self.missing.update(reasons(outcomes))
        return outcomes

    def about(self) -> dict[str, Any]:
        """Settings, counts, what was missing and why."""
        settings = self.settings
        return {
            "kind": settings.task,
            "name": self.name,
            "endpoint": shown(settings.base_url),
            "host": urlsplit(settings.base_url).hostname,
            "model": settings.model,
            "revision": settings.revision,
            "prompt": {"name": self.asking.prompt.name, "version": self.asking.prompt.version, "digest": self.asking.digest},
            "structured": {None: "not known", True: "json_schema", False: "off"}[self.endpoint.uses_schema],
            "temperature": settings.temperature,
            "missing_reasons": dict(sorted(self.missing.items())),
            "ledger": self.ledger.to_json(),
            "calls": self.asker.calling.counts.to_json(),
            "documents_cut": self.cut,
            "texts_with_control_tokens": self.defused,
            "empty": self.empty,
        }


class ChatJudge(ChatCore):
    """Grades documents one by one."""

    def judge(self, examples: Sequence[RankingExample], *, watch: Watch | None = None) -> list[JudgedList]:
        places = [
            (row, place) for row, example in enumerate(examples) for place, text in enumerate(example.documents) if not is_empty(text)
        ]
        asks = [self.asking.document(examples[row], place) for row, place in places]
        self.empty += sum(len(example.candidates) for example in examples) - len(asks)
        outcomes = self.ask(asks, "documents", watch)
        lowest = float(min(int(choice) for choice in self.asking.spec.choices))
        found = dict(zip(places, outcomes, strict=True))
        nothing = Outcome(int(lowest), None, None)
        return [
            self._judged(example, [found.get((row, place), nothing) for place in range(len(example.candidates))])
            for row, example in enumerate(examples)
        ]

    def _judged(self, example: RankingExample, outcomes: Sequence[Outcome]) -> JudgedList:
        extra: dict[str, Any] = {"candidates": example.candidate_ids, "replies": [found.text for found in outcomes]}
        missing = {example.candidate_ids[place]: found.reason for place, found in enumerate(outcomes) if found.reason is not None}
        if missing:
            extra["missing"] = missing
        return JudgedList(example.id, tuple(_grade(found) for found in outcomes), judge=self.name, extra=extra)


def _grade(found: Outcome) -> float | None:
    return None if found.value is None else float(found.value)
