"""A real HTTP server on the loopback, whose answers are a list of steps: for tests of the client and of the `api` scorer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    """answer(body, number) -> (status, headers, bytes or JSON), `number` counting requests from 0. What came in stands in `seen`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer: Callable[[Any, int], tuple[int, dict[str, str], Any]]):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.lock = answer, threading.Lock()
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.under_way = self.most_under_way = 0
        self.times: list[float] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/rerank"

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # a client that left, on purpose


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            number = len(server.seen)
            server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            server.times.append(time.monotonic())
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
        try:
            status, headers, content = server.answer(body, number)
        finally:
            with server.lock:
                server.under_way -= 1
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(raw))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: Any) -> None:
        return


@contextmanager
def serving(answer: Callable[[Any, int], tuple[int, dict[str, str], Any]]):
    server = Server(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def free_url() -> str:
    """A loopback URL at which nothing listens."""
    server = Server(lambda body, number: (200, {}, []))
    url = server.url
    server.server_close()
    return url
