"""Calls to services: one HTTP client with one layer of retries, and one family of errors.

    client = Client(ClientSettings(timeout=20, concurrency=4))
    replies = client.post_all([Call("first", "http://localhost:8080/rerank", {"query": "q", "documents": ["d"]})])

Importing this room imports no HTTP library; the first `Client` does (`steadyrank[remote]`).
"""

from steadyrank.remote.addresses import check_url, shown
from steadyrank.remote.calling import ClientSettings, Counts
from steadyrank.remote.client import Call, Client
from steadyrank.remote.failures import (
    BadRequestError,
    RateLimitedError,
    RefusedError,
    RemoteError,
    ServerError,
    TimedOutError,
    UnreachableError,
    UnreadableReplyError,
    WrongReplyError,
)

__all__ = [
    "BadRequestError",
    "Call",
    "Client",
    "ClientSettings",
    "Counts",
    "RateLimitedError",
    "RefusedError",
    "RemoteError",
    "ServerError",
    "TimedOutError",
    "UnreachableError",
    "UnreadableReplyError",
    "WrongReplyError",
    "check_url",
    "shown",
]
