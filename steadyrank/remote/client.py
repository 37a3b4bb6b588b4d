"""The one HTTP client: JSON out, JSON in, many calls at once, results in the order of the calls.

One layer of retries (`retrying`), a time limit for each attempt, each call and all calls, a limit of calls under way, and counts of all
that happened. A key comes from an environment variable only, is sent as `Authorization: Bearer`, and stands in no message, count or repr.
Redirects are not followed: a key goes where it was meant to go, or nowhere.

Does not know what the JSON means: `read` turns a reply into a value, or raises `WrongReplyError`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from steadyrank import files, names
from steadyrank.errors import ConfigError
from steadyrank.remote.addresses import KEY_VARIABLE, check_url, is_loopback, key_of, short, shown
from steadyrank.remote.failures import (
    BadRequestError,
    RateLimitedError,
    RefusedError,
    RemoteError,
    ServerError,
    TimedOutError,
    UnreachableError,
    UnreadableReplyError,
)
from steadyrank.remote.retrying import back_off, is_retried, retry_after

LARGEST_REPLY = 64 * 2**20  # bytes; a reply of scores is thousands of times smaller


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `name` tells it apart in errors and names the stream of its back-off."""

    name: str
    url: str
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How patiently to call.

    timeout:      seconds for one attempt, until its whole reply is here.
    deadline:     seconds for one call with all its attempts and waits.
    total:        seconds for all calls of one `post_all`; None sets no limit.
    concurrency:  calls under way at once.
    retries:      attempts after the first.
    backoff:      seconds of the first wait; each next one is twice as long.
    longest_wait: seconds; a service that asks for a longer wait is given up.
    give_up_after: calls failing one after the other, none succeeding between, that end the job: the service is down.
    api_key_env:  the environment variable that holds the key; None sends none.
    seed:         of the jitter.
    """

    timeout: float = 60.0
    deadline: float = 300.0
    total: float | None = None
    concurrency: int = 8
    retries: int = 4
    backoff: float = 0.5
    longest_wait: float = 60.0
    give_up_after: int = 10
    api_key_env: str | None = KEY_VARIABLE
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("timeout", "deadline", "total"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is {value!r}; give seconds above 0")
        for name, least in (("concurrency", 1), ("give_up_after", 1), ("retries", 0), ("backoff", 0), ("longest_wait", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; give at least {least}")


@dataclass(slots=True)
class Counts:
    """What a client has done so far. `failures` counts calls without a usable reply, `failure_kinds` says of which kind."""

    calls: int = 0
    attempts: int = 0
    retries: int = 0
    failures: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    failure_kinds: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class Client:
    """Sends calls. One client for one job; it may be used again, and its counts go on."""

    def __init__(self, settings: ClientSettings | None = None):
        self.settings = settings or ClientSettings()
        self.counts = Counts()
        self._http = names.require("httpx2", "calling a remote service")
        self._key = key_of(self.settings.api_key_env)
        self._not_before = 0.0  # a wait that the service asked of one call is kept by all
        self._failed_in_a_row = 0

    def post(self, call: Call) -> Any:
        """The JSON that one call gives."""
        return self.post_all([call])[0]

    def post_all(
        self,
        calls: Sequence[Call],
        *,
        read: Callable[[int, Any], Any] | None = None,
        keep_failures: bool = False,
        on_done: Callable[[], None] | None = None,
    ) -> list[Any]:
        """One result a call, in the order of the calls.

        read:          makes a result of a call's place and JSON; a `RemoteError` that it raises is a failure of that call.
        keep_failures: put the error in the place of the result; without it the first failure ends the job. Two things end it always:
                       a refused key, and `give_up_after` failures in a row.
        on_done:       called after each call, for a progress bar.
        """
        for call in calls:
            check_url(call.url)
        return _run(self._all(calls, read or (lambda place, value: value), keep_failures, on_done)) if calls else []

    async def _all(
        self, calls: Sequence[Call], read: Callable[[int, Any], Any], keep_failures: bool, on_done: Callable[[], None] | None
    ) -> list[Any]:
        settings, results = self.settings, [None] * len(calls)
        end = time.monotonic() + settings.total if settings.total is not None else float("inf")
        waiting = iter(enumerate(calls))
        self._not_before, self._failed_in_a_row = 0.0, 0
        # No time limits of its own: `wait_for` holds the whole attempt. A proxy of the environment cannot reach this machine's loopback.
        near = all(is_loopback(call.url) for call in calls)

        async def work(http: Any) -> None:
            for place, call in waiting:
                results[place] = await self._outcome(http, call, end, partial(read, place), keep_failures)
                if on_done is not None:
                    on_done()

        async with self._http.AsyncClient(timeout=None, headers=self._headers(), trust_env=not near) as http:
            workers = [asyncio.ensure_future(work(http)) for _ in range(min(settings.concurrency, len(calls)))]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return results

    async def _outcome(self, http: Any, call: Call, end: float, read: Callable[[Any], Any], keep_failures: bool) -> Any:
        self.counts.calls += 1
        try:
            value = await self._call(http, call, end, read)
        except RemoteError as error:
            self.counts.failures += 1
            self.counts.failure_kinds[error.kind] = self.counts.failure_kinds.get(error.kind, 0) + 1
            self._failed_in_a_row += error.retryable  # what the service answers plainly is no sign that it is down
            if not keep_failures or isinstance(error, RefusedError):
                raise
            if self._failed_in_a_row >= self.settings.give_up_after:
                why = f"{self._failed_in_a_row} calls in a row failed, so no more are sent"
                raise error.of(error.call, attempts=error.attempts, why=why) from error
            return error
        self._failed_in_a_row = 0
        return value

    async def _call(self, http: Any, call: Call, end: float, read: Callable[[Any], Any]) -> Any:
        settings = self.settings
        body = files.to_json_text(call.body).encode("utf-8")
        limit = min(time.monotonic() + settings.deadline, end)
        for attempt in range(settings.retries + 1):
            await asyncio.sleep(min(max(self._not_before - time.monotonic(), 0), max(limit - time.monotonic(), 0)))
            try:
                return read(await self._attempt(http, call, body, limit))
            except RemoteError as error:
                wait = back_off(
                    call.name,
                    attempt,
                    first=settings.backoff,
                    longest=settings.longest_wait,
                    seed=settings.seed,
                    asked=error.retry_after,
                )
                why = self._why_not_again(error, attempt, wait, limit)
                if why is not None:
                    raise error.of(call.name, attempts=attempt + 1, why=why) from error
                if error.retry_after is not None:
                    self._not_before = max(self._not_before, time.monotonic() + error.retry_after)
            self.counts.retries += 1
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _why_not_again(self, error: RemoteError, attempt: int, wait: float, limit: float) -> str | None:
        """None where another attempt is due; else why there is none, empty where the error says enough."""
        if not error.retryable or attempt == self.settings.retries:
            return ""
        if error.retry_after is not None and error.retry_after > self.settings.longest_wait:
            return f"it asks to wait {error.retry_after:g} s, longer than longest_wait of {self.settings.longest_wait:g} s"
        if time.monotonic() + wait >= limit:
            return "no time is left for another attempt; raise deadline, or total"
        return None

    async def _attempt(self, http: Any, call: Call, body: bytes, limit: float) -> Any:
        time_left = min(self.settings.timeout, limit - time.monotonic())
        if time_left <= 0:
            raise TimedOutError(f"{shown(call.url)} was not asked in time; raise deadline, or total")
        self.counts.attempts += 1
        self.counts.sent_bytes += len(body)
        try:
            status, headers, content = await asyncio.wait_for(self._send(http, call.url, body), time_left)
        except asyncio.TimeoutError:
            raise TimedOutError(
                f"{shown(call.url)} gave no whole reply within {time_left:.3g} s; raise timeout, or send less at once"
            ) from None
        except (self._http.RemoteProtocolError, self._http.DecodingError) as error:
            raise UnreadableReplyError(f"the reply of {shown(call.url)} broke off ({short(str(error))})") from None
        except self._http.TransportError as error:
            why = short(str(error)) or type(error).__name__
            raise UnreachableError(f"nothing answers at {shown(call.url)} ({why}); is the service running?") from None
        if not 200 <= status < 300:
            raise self._refusal(call.url, status, headers, content)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UnreadableReplyError(f"the reply of {shown(call.url)} is not JSON ({short(str(error))})") from None

    async def _send(self, http: Any, url: str, body: bytes) -> tuple[int, Any, bytes]:
        content = bytearray()
        async with http.stream("POST", url, content=body) as reply:
            async for block in reply.aiter_bytes():
                content += block
                self.counts.received_bytes += len(block)
                if len(content) > LARGEST_REPLY:
                    raise UnreadableReplyError(f"the reply of {shown(url)} is larger than {LARGEST_REPLY} bytes")
            return reply.status_code, reply.headers, bytes(content)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "steadyrank"}
        return headers | ({"Authorization": f"Bearer {self._key}"} if self._key else {})

    def _refusal(self, url: str, status: int, headers: Any, content: bytes) -> RemoteError:
        where, asked = shown(url), retry_after(headers.get("retry-after"))
        if status in (401, 403):  # what the service says of a key may repeat it
            variable = self.settings.api_key_env
            told = f"the key in {variable}" if self._key else f"a call without a key; put one into the environment variable {variable}"
            return RefusedError(f"{where} refused {told} (HTTP {status})", status=status)
        said = short(content.decode("utf-8", "replace").replace(self._key or "\0", "***"))
        told = f"{where} answered HTTP {status}" + (f": {said}" if said else "")
        if 300 <= status < 400:
            return BadRequestError(f"{where} redirects to {shown(headers.get('location', 'nowhere'))}; give that URL", status=status)
        if status == 429:
            return RateLimitedError(told, status=status, retry_after=asked)
        if is_retried(status) or status >= 500:
            kind = TimedOutError if status == 408 else ServerError
            error = kind(told, status=status, retry_after=asked)
            error.retryable = is_retried(status)
            return error
        return BadRequestError(told, status=status)


def _run(job: Coroutine[Any, Any, list[Any]]) -> list[Any]:
    """Run to the end, also where this thread has a running loop already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(job)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, job).result()
