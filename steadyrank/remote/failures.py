"""What can go wrong with a call to a remote service, one class a kind; all of them are `RemoteError`.

4xx answers are the caller's to mend (exit code 2): a key that is refused, a request that the service does not take.
All else is a run that failed (exit code 1). No message ever holds a key.
"""

from __future__ import annotations

from steadyrank.errors import RunError, UserError


class RemoteError(RunError):
    """A call that gave no usable reply.

    reason:      what is wrong, without the call's name.
    status:      HTTP status, where there was one.
    retry_after: seconds that the service asked to wait, where it did.
    attempts:    how often the call was sent before it was given up.
    """

    kind = "remote"
    retryable = False

    def __init__(self, reason: str, *, call: str = "", status: int | None = None, retry_after: float | None = None, attempts: int = 1):
        self.reason, self.call, self.status, self.retry_after, self.attempts = reason, call, status, retry_after, attempts
        tried = f" (given up after {attempts} attempts)" if attempts > 1 else ""
        super().__init__(f"{call}: {reason}{tried}" if call else f"{reason}{tried}")

    def of(self, call: str, *, attempts: int, why: str = "") -> RemoteError:
        """The same error with the name of its call, the number of attempts and why no other was made."""
        reason = f"{self.reason}; {why}" if why else self.reason
        return type(self)(reason, call=call, status=self.status, retry_after=self.retry_after, attempts=attempts)


class RefusedError(RemoteError, UserError):
    """401 or 403: the service wants a key, or another one. Never tried again, and it ends the whole job."""

    kind, exit_code = "refused", 2


class BadRequestError(RemoteError, UserError):
    """Another 4xx, or a redirect: the service will not take this request however often it is sent."""

    kind, exit_code = "bad request", 2


class RateLimitedError(RemoteError):
    """429: too many requests."""

    kind, retryable = "rate limited", True


class ServerError(RemoteError):
    """5xx: the service failed."""

    kind, retryable = "server error", True


class TimedOutError(RemoteError):
    """No whole reply within the time given."""

    kind, retryable = "timed out", True


class UnreachableError(RemoteError):
    """No connection, or one that broke before a reply began."""

    kind, retryable = "unreachable", True


class UnreadableReplyError(RemoteError):
    """A reply that is cut short, too large, or not JSON."""

    kind, retryable = "unreadable reply", True


class WrongReplyError(RemoteError):
    """A reply of good JSON that does not hold what was asked for. Not tried again: asked the same, a service answers the same."""

    kind = "wrong reply"
