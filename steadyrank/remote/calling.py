"""How calls are sent, whatever they are: so many at once, each tried until it is answered or given up, all of it counted.

One layer of retries: what makes an attempt must not try again by itself. Waits come from `retrying`; a wait that the service asks of one
call is kept by all. What a call is and how one attempt of it is made, the caller of `Calling.run` knows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from steadyrank.errors import ConfigError
from steadyrank.remote.addresses import KEY_VARIABLE
from steadyrank.remote.failures import RefusedError, RemoteError, TimedOutError
from steadyrank.remote.retrying import back_off

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class Job(Generic[T]):
    """One call. `name` tells it apart in errors and names the stream of its back-off; `where` is what is called, as messages show it."""

    name: str
    where: str
    item: T


class Calling:
    """Runs calls under one set of settings. `counts` goes on from run to run."""

    def __init__(self, settings: ClientSettings):
        self.settings = settings
        self.counts = Counts()
        self._not_before = 0.0  # a wait that the service asked of one call is kept by all
        self._failed_in_a_row = 0

    async def run(
        self,
        take: Callable[[], Awaitable[Job[T] | None]],
        attempt: Callable[[T], Awaitable[Any]],
        done: Callable[[T, Any], None],
        *,
        keep_failures: bool = False,
        at_most: int | None = None,
    ) -> None:
        """Make calls until `take` gives None.

        attempt:       one try; a `RemoteError` that it raises may be tried again. It is ended when its time is up.
        done:          gets each call's value, or with `keep_failures` its error. Two errors always end the run: a refused key, and
                       `give_up_after` failures in a row.
        at_most:       how many calls there are, where that is known: no more workers than that.
        """
        settings = self.settings
        end = time.monotonic() + settings.total if settings.total is not None else float("inf")
        self._not_before, self._failed_in_a_row = 0.0, 0

        async def work() -> None:
            while (job := await take()) is not None:
                done(job.item, await self._outcome(job, attempt, end, keep_failures))

        workers = [asyncio.ensure_future(work()) for _ in range(min(settings.concurrency, at_most or settings.concurrency))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _outcome(self, job: Job[T], attempt: Callable[[T], Awaitable[Any]], end: float, keep_failures: bool) -> Any:
        self.counts.calls += 1
        try:
            value = await self._call(job, attempt, end)
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

    async def _call(self, job: Job[T], attempt: Callable[[T], Awaitable[Any]], end: float) -> Any:
        settings = self.settings
        limit = min(time.monotonic() + settings.deadline, end)
        for number in range(settings.retries + 1):
            await asyncio.sleep(min(max(self._not_before - time.monotonic(), 0), max(limit - time.monotonic(), 0)))
            try:
                return await self._attempt(job, attempt, limit)
            except RemoteError as error:
                wait = back_off(
                    job.name,
                    number,
                    first=settings.backoff,
                    longest=settings.longest_wait,
                    seed=settings.seed,
                    asked=error.retry_after,
                )
                why = self._why_not_again(error, number, wait, limit)
                if why is not None:
                    raise error.of(job.name, attempts=number + 1, why=why) from error
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

    async def _attempt(self, job: Job[T], attempt: Callable[[T], Awaitable[Any]], limit: float) -> Any:
        time_left = min(self.settings.timeout, limit - time.monotonic())
        if time_left <= 0:
            raise TimedOutError(f"{job.where} was not asked in time; raise deadline, or total")
        self.counts.attempts += 1
        try:
            return await asyncio.wait_for(attempt(job.item), time_left)
        except asyncio.TimeoutError:
            raise TimedOutError(f"{job.where} gave no whole reply within {time_left:.3g} s; raise timeout, or send less at once") from None


def run_to_end(job: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where this thread has a running loop already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(job)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, job).result()
