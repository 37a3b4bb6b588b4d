"""Many asks at once: what the cache holds is read from it, the rest is claimed, called, kept and booked. One outcome an ask, in order.

Equal asks are made once. An ask that another process is at is waited for, and made here if that process dies. A call that failed for good
is a missing outcome and is not kept, so the same job started again makes that call again and no other.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from steadyrank.errors import RunError
from steadyrank.judging.asks import Ask
from steadyrank.judging.cache import RawReply, ReplyCache, key_of
from steadyrank.judging.endpoint import ChatEndpoint
from steadyrank.judging.ledger import BYTES_A_TOKEN, Ledger
from steadyrank.judging.replies import ReplySpec, Unreadable, read_reply
from steadyrank.remote.addresses import shown
from steadyrank.remote.calling import Calling, ClientSettings, Job, run_to_end
from steadyrank.remote.failures import RemoteError

_LOOK_AGAIN = 0.1  # seconds between two looks at what another process is asking


class BudgetSpentError(RunError):
    """The budget has no room for another call. What was asked before is kept."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one ask: a value, or why there is none; and the text of the reply where there was one."""

    value: int | str | None
    reason: str | None
    text: str | None


@dataclass(slots=True)
class _Wanted:
    key: bytes
    ask: Ask
    places: list[int]
    prompt: int  # tokens, at most


class Asker:
    """Asks one endpoint with one prompt's reply in mind. ask_again: whether replies on disk that cannot be read are asked for anew."""

    def __init__(
        self,
        endpoint: ChatEndpoint,
        spec: ReplySpec,
        *,
        identity: Mapping[str, Any],
        cache: str,
        ledger: Ledger,
        client: ClientSettings,
        ask_again: bool = False,
    ):
        self.endpoint, self.spec, self.ledger, self.client, self.ask_again = endpoint, spec, ledger, client, ask_again
        self.identity = {"endpoint": endpoint.base_url, "model": endpoint.model, **identity, "decoding": asdict(endpoint.decoding)}
        self.cache_path = cache
        self.calling = Calling(client)

    def ask_all(self, asks: Sequence[Ask], *, on_done: Callable[[Outcome], None] | None = None) -> list[Outcome]:
        """One outcome an ask. on_done: called with each as it is known.

        Raises `BudgetSpentError` once no call fits the budget, a refused key, or that the service is down: what came before is kept.
        """
        cache = ReplyCache(self.cache_path, claim_seconds=self.client.deadline + 30)
        try:
            return _Run(self, cache, asks, on_done or (lambda outcome: None)).go()
        finally:
            cache.close()

    def key(self, ask: Ask) -> bytes:
        """The cache's key of an ask."""
        return key_of({**self.identity, "messages": [dict(message) for message in ask.messages]})

    def outcome(self, reply: RawReply, ask: Ask) -> Outcome:
        """What a reply says."""
        try:
            return Outcome(read_reply(reply.text, self.spec, ask.id, finish=reply.finish), None, reply.text)
        except Unreadable as error:
            return Outcome(None, error.reason, reply.text)


class _Run:
    def __init__(self, asker: Asker, cache: ReplyCache, asks: Sequence[Ask], on_done: Callable[[Outcome], None]):
        self.asker, self.cache, self.on_done, self.ledger = asker, cache, on_done, asker.ledger
        self.results: list[Outcome | None] = [None] * len(asks)
        wanted: dict[bytes, _Wanted] = {}
        for place, ask in enumerate(asks):
            key = asker.key(ask)
            size = sum(len(message["content"].encode("utf-8", "replace")) for message in ask.messages)
            wanted.setdefault(key, _Wanted(key, ask, [], size // BYTES_A_TOKEN + 1)).places.append(place)
        self.pending = deque(wanted.values())
        self.elsewhere: deque[_Wanted] = deque()
        self.again: set[bytes] = set()
        self.is_stopped = False
        self.ledger.asked += len(asks)

    def go(self) -> list[Outcome]:
        known = self.cache.read([item.key for item in self.pending])
        for item in [item for item in self.pending if item.key in known]:
            self._cached(item, known[item.key])
        if self.again:
            self.pending = deque(item for item in self.pending if item.key in self.again or item.key not in known)
        else:
            self.pending = deque(item for item in self.pending if item.key not in known)
        if self.pending:
            refused = self.asker.endpoint.schema_refused
            try:
                run_to_end(self._call_all())
            finally:
                self.ledger.schema_refused += self.asker.endpoint.schema_refused - refused
        if self.is_stopped:
            left = sum(result is None for result in self.results)
            raise BudgetSpentError(
                f"the budget has no room for another call: {self.ledger.spent()} spent in this run, {left} of {len(self.results)} asks are "
                "left; all replies so far are kept in the cache, so raise the budget and run the same command to go on"
            )
        return [result for result in self.results if result is not None]

    async def _call_all(self) -> None:
        calling = self.asker.calling
        attempts, calls = calling.counts.attempts, self.ledger.called
        try:
            async with self.asker.endpoint.open():
                if self.asker.endpoint.uses_schema is None:
                    await calling.run(self._take_to_find_out, self._attempt, self._done, keep_failures=True, at_most=1)
                await calling.run(
                    self._take, self._attempt, self._done, keep_failures=True, at_most=max(len(self.pending) + len(self.elsewhere), 1)
                )
        finally:
            self.ledger.failed_attempts += (calling.counts.attempts - attempts) - (self.ledger.called - calls)

    async def _take_to_find_out(self) -> Job[_Wanted] | None:
        """One ask at a time, until it is known whether the endpoint holds replies to a schema."""
        return await self._take() if self.asker.endpoint.uses_schema is None else None

    async def _take(self) -> Job[_Wanted] | None:
        """The next ask that is this process's to make; None when nothing is left, or the budget is spent."""
        while not self.is_stopped and (self.pending or self.elsewhere):
            if not self.pending:
                await asyncio.sleep(_LOOK_AGAIN)
                self.pending, self.elsewhere = self.elsewhere, self.pending
                continue
            item = self.pending.popleft()
            claim = self.cache.claim(item.key, again=item.key in self.again)
            if claim.reply is not None:
                self._cached(item, claim.reply)
            elif not claim.mine:
                self.elsewhere.append(item)
            elif self.ledger.reserve(item.prompt, self.asker.endpoint.decoding.max_tokens):
                return Job(item.ask.name, shown(self.asker.endpoint.base_url), item)
            else:
                self.cache.release(item.key)
                self.pending.appendleft(item)
                self.is_stopped = not self.ledger.under_way  # a call that ends gives back what it did not use
                await asyncio.sleep(_LOOK_AGAIN)
        return None

    async def _attempt(self, item: _Wanted) -> RawReply:
        reply = await self.asker.endpoint.ask(item.ask, self.asker.spec)
        self.cache.store(item.key, reply)  # here, and not when the call is done: what is paid for is kept whatever happens next
        self.ledger.book(reply, prompt=item.prompt, completion=self.asker.endpoint.decoding.max_tokens)
        return reply

    def _done(self, item: _Wanted, found: Any) -> None:
        self.ledger.free(item.prompt, self.asker.endpoint.decoding.max_tokens)
        if isinstance(found, RemoteError):
            self.cache.release(item.key)
            self._settle(item, Outcome(None, f"call: {found.kind}", None))
        else:
            self._settle(item, self.asker.outcome(found, item.ask))
            self.ledger.cached += len(item.places) - 1

    def _cached(self, item: _Wanted, reply: RawReply) -> None:
        outcome = self.asker.outcome(reply, item.ask)
        if outcome.reason is not None and self.asker.ask_again and item.key not in self.again:
            self.again.add(item.key)
            return
        self.ledger.cached += len(item.places)
        self._settle(item, outcome)

    def _settle(self, item: _Wanted, outcome: Outcome) -> None:
        for place in item.places:
            self.results[place] = replace(outcome)
            self.on_done(outcome)


def reasons(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many asks have no value, by reason."""
    return dict(sorted(Counter(outcome.reason for outcome in outcomes if outcome.reason is not None).items()))
