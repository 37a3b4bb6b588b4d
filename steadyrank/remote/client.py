"""The one HTTP client: JSON out, JSON in, many calls at once, results in the order of the calls.

One layer of retries (`calling`), a time limit for each attempt, each call and all calls, a limit of calls under way, and counts of all
that happened. A key comes from an environment variable only, is sent as `Authorization: Bearer`, and stands in no message, count or repr.
Redirects are not followed: a key goes where it was meant to go, or nowhere.

Does not know what the JSON means: `read` turns a reply into a value, or raises `WrongReplyError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from steadyrank import files, names
from steadyrank.remote.addresses import check_url, is_loopback, key_of, short, shown
from steadyrank.remote.calling import Calling, ClientSettings, Counts, Job, run_to_end
from steadyrank.remote.failures import UnreadableReplyError
from steadyrank.remote.statuses import refusal, unreachable

LARGEST_REPLY = 64 * 2**20  # bytes; a reply of scores is thousands of times smaller


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `name` tells it apart in errors and names the stream of its back-off."""

    name: str
    url: str
    body: Any


class Client:
    """Sends calls. One client for one job; it may be used again, and its counts go on."""

    def __init__(self, settings: ClientSettings | None = None):
        self.settings = settings or ClientSettings()
        self._calling = Calling(self.settings)
        self._http = names.require("httpx2", "calling a remote service")
        self._key = key_of(self.settings.api_key_env)

    @property
    def counts(self) -> Counts:
        """What was sent so far, and what came of it."""
        return self._calling.counts

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
        return run_to_end(self._all(calls, read or (lambda place, value: value), keep_failures, on_done)) if calls else []

    async def _all(
        self, calls: Sequence[Call], read: Callable[[int, Any], Any], keep_failures: bool, on_done: Callable[[], None] | None
    ) -> list[Any]:
        results: list[Any] = [None] * len(calls)
        waiting = iter(enumerate(calls))
        # No time limits of its own: `Calling` holds the whole attempt. A proxy of the environment cannot reach this machine's loopback.
        near = all(is_loopback(call.url) for call in calls)

        async def take() -> Job[tuple[int, Call, bytes]] | None:
            place, call = next(waiting, (0, None))
            return None if call is None else Job(call.name, shown(call.url), (place, call, files.to_json_text(call.body).encode("utf-8")))

        async def attempt(item: tuple[int, Call, bytes]) -> Any:
            place, call, body = item
            return read(place, await self._attempt(http, call.url, body))

        def done(item: tuple[int, Call, bytes], outcome: Any) -> None:
            results[item[0]] = outcome
            if on_done is not None:
                on_done()

        async with self._http.AsyncClient(timeout=None, headers=self._headers(), trust_env=not near) as http:
            await self._calling.run(take, attempt, done, keep_failures=keep_failures, at_most=len(calls))
        return results

    async def _attempt(self, http: Any, url: str, body: bytes) -> Any:
        self.counts.sent_bytes += len(body)
        try:
            status, headers, content = await self._send(http, url, body)
        except (self._http.RemoteProtocolError, self._http.DecodingError) as error:
            raise UnreadableReplyError(f"the reply of {shown(url)} broke off ({short(str(error))})") from None
        except self._http.TransportError as error:
            raise unreachable(url, error) from None
        if not 200 <= status < 300:
            raise refusal(url, status, headers, content, key=self._key, variable=self.settings.api_key_env)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UnreadableReplyError(f"the reply of {shown(url)} is not JSON ({short(str(error))})") from None

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
