"""A TCP proxy on loopback that can cut, delay and swallow: the network between a peer and a gateway, or a gateway and
Kafka (which has to tell its clients the proxy's port). One thread.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.processes.broker import Broker, start_broker

STEP_S = 0.003
CHUNK = 1 << 17
WAITING_MAX = 4 << 20  # octets held for one side; then the other is not read


@dataclass(eq=False, slots=True)
class Side:
    """One socket of a pair, and what is on its way to it."""

    socket: socket.socket
    other: Side | None = None
    waiting: deque[tuple[float, bytes]] = field(default_factory=deque)  # when due, octets
    size: int = 0
    is_ended: bool = False  # nothing more will come for it


class Proxy:
    """`port` is where to connect; `target` the port behind it."""

    def __init__(self, target: int, port: int = 0) -> None:
        self.target = target
        self.delay_s = 0.0
        self.is_swallowing = False  # connections stand, and nothing passes
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._sides: set[Side] = set()
        self._must_cut = self._is_over = False
        self._thread = threading.Thread(target=self._run, name="torture-proxy", daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Every connection ends, and what was on its way with it."""
        self._must_cut = True

    def close(self) -> None:
        self._is_over = True
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over:
            with selectors.DefaultSelector() as selector:
                selector.register(self._listener, selectors.EVENT_READ)
                for side in self._sides:
                    if side.other is not None and side.other.size < WAITING_MAX and not side.other.is_ended:
                        selector.register(side.socket, selectors.EVENT_READ, side)
                ready = selector.select(STEP_S)
            if self._must_cut:
                self._must_cut = False
                self._close(list(self._sides))
                continue
            for key, _ in ready:
                if key.data is None:
                    self._accept()
                elif key.data in self._sides:
                    self._read(key.data)
            now = time.monotonic()
            for side in list(self._sides):
                if side in self._sides and not self.is_swallowing:
                    self._write(side, now)
            if ready:
                time.sleep(0.0005)
        self._close(list(self._sides))
        self._listener.close()

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        far = socket.socket()
        try:
            far.connect(("127.0.0.1", self.target))
        except OSError:
            near.close()
            far.close()
            return
        pair = Side(near), Side(far)
        for side, other in zip(pair, reversed(pair), strict=True):
            side.socket.setblocking(False)
            side.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            side.other = other
            self._sides.add(side)

    def _read(self, side: Side) -> None:
        other = side.other
        assert other is not None
        try:
            data = side.socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            other.waiting.append((time.monotonic() + self.delay_s, data))
            other.size += len(data)
        else:
            other.is_ended = True

    def _write(self, side: Side, now: float) -> None:
        while side.waiting and side.waiting[0][0] <= now:
            due, data = side.waiting.popleft()
            try:
                sent = side.socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._close([side])
                return
            side.size -= sent
            if sent < len(data):
                side.waiting.appendleft((due, data[sent:]))
                return
        if side.is_ended and not side.waiting:
            self._close([side])

    def _close(self, sides: list[Side]) -> None:
        for side in sides:
            for end in (side, side.other):
                if end is not None:
                    end.socket.close()
                    self._sides.discard(end)


def broker_behind_proxy(directory: Path) -> tuple[Broker, Proxy]:
    """A new Kafka node that knows itself by the proxy's port; the caller closes both."""
    proxy = Proxy(0)
    broker = start_broker(directory, seen_at=proxy.port)
    proxy.target = int(broker.bootstrap.rpartition(":")[2])
    return broker, proxy
