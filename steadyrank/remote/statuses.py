"""What an HTTP status, or no answer at all, means: the error of `failures` that says so.

No message holds a key, also where a service repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadyrank.remote.addresses import KEY_VARIABLE, short, shown
from steadyrank.remote.failures import (
    BadRequestError,
    RateLimitedError,
    RefusedError,
    RemoteError,
    ServerError,
    TimedOutError,
    UnreachableError,
)
from steadyrank.remote.retrying import is_retried, retry_after


def refusal(
    url: str, status: int, headers: Mapping[str, str], content: bytes, *, key: str | None, variable: str | None = KEY_VARIABLE
) -> RemoteError:
    """The error of a reply whose status is not 2xx. key: what was sent, to be hidden; variable: where it came from."""
    where, asked = shown(url), retry_after(headers.get("retry-after"))
    if status in (401, 403):  # what the service says of a key may repeat it
        told = f"the key in {variable}" if key else f"a call without a key; put one into the environment variable {variable}"
        return RefusedError(f"{where} refused {told} (HTTP {status})", status=status)
    said = short(content.decode("utf-8", "replace").replace(key or "\0", "***"))
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


def unreachable(url: str, error: BaseException) -> UnreachableError:
    """The error of a connection that was not made, or that broke."""
    why = short(str(error)) or type(error).__name__
    return UnreachableError(f"nothing answers at {shown(url)} ({why}); is the service running?")
