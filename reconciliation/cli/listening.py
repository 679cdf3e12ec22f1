"""`reconcile --every --listen HOST:PORT`: the latest verdict over HTTP, for Prometheus and probes.

    GET /metrics   as `verdict.prom`, with the age of the verdict
    GET /verdict   `verdict.json`; 503 while no reconciliation has ended

It answers at most `AT_ONCE` peers at a time, and each for at most `TURN_S`. Errors: `SetupError`.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from reconciliation.model.errors import SetupError
from reconciliation.report.latest import Latest

AT_ONCE, TURN_S = 16, 10.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    latest: Callable[[], Latest]
    now_us: Callable[[], int]

    def __init__(self, *arguments: Any) -> None:
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._turns.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        turn = threading.Timer(TURN_S, _close, [request])  # a peer may send an octet a second
        turn.daemon = True
        turn.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            turn.cancel()
            self._turns.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A peer went away: it is no concern of the operator's."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _close(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        latest = self.server.latest()
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, "text/plain; version=0.0.4; charset=utf-8", latest.metrics(self.server.now_us()))
        elif path == "/verdict":
            self._answer(503 if latest.record is None else 200, "application/json", latest.as_json().decode())
        else:
            self._answer(404, "text/plain; charset=utf-8", "There are /metrics and /verdict.\n")

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # its name there
        """A scrape is no event."""


@contextmanager
def listening(place: tuple[str, int] | None, latest: Callable[[], Latest], now_us: Callable[[], int]) -> Iterator[int]:
    """The port, for as long as it listens. `place`: None: it does not, and the port is 0. `now_us`: the
    time, in microseconds since 1970."""
    if place is None:
        yield 0
        return
    try:
        server = (_Server6 if ":" in place[0] else _Server)(place, _Handler)
    except (OSError, OverflowError) as error:
        raise SetupError(f"--listen {place[0]}:{place[1]}: {getattr(error, 'strerror', None) or error}") from error
    server.latest, server.now_us = latest, now_us
    thread = threading.Thread(target=server.serve_forever, name="listen", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
