"""An admin address that answers what a test wants: well, wrongly, too much, or not at all."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.console.fixed import CONNECTIONS, ERRORS, LINKS, METRICS, health, page


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
    return head.encode() + body


def well(path: str) -> bytes:
    """As a gateway does."""
    answers = {
        "/health": json.dumps(health()).encode(),
        "/metrics": METRICS.encode(),
        "/api/errors": page("errors", ERRORS),
        "/api/links": page("links", LINKS),
        "/api/connections": page("connections", CONNECTIONS),
        "/api/history": page("history", [], known_us=None),
    }
    return http(answers[path.partition("?")[0]])


@dataclass(slots=True)
class ScriptedAdmin:
    """`answer`: octets for a path; None: the connection stays open and silent. `asked`: the paths so far."""

    port: int
    answer: Callable[[str], bytes | None] = well
    asked: list[str] = field(default_factory=list)
    held: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def converse(self, peer: socket.socket) -> None:
        head = bytearray()
        while b"\r\n\r\n" not in head and (data := peer.recv(4096)):
            head += data
        if not head:
            peer.close()
            return
        path = head.decode().split(" ")[1]
        self.asked.append(path)
        answer = self.answer(path)
        if answer is None:
            self.held.append(peer)
            return
        with suppress(OSError):  # who asks has gone: the answer was too long for it
            peer.sendall(answer)
        peer.close()


@contextmanager
def scripted_admin(answer: Callable[[str], bytes | None] = well) -> Iterator[ScriptedAdmin]:
    listening = socket.create_server(("127.0.0.1", 0))
    admin = ScriptedAdmin(listening.getsockname()[1], answer)

    def serve() -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            admin.converse(peer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield admin
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
        for peer in admin.held:
            peer.close()
