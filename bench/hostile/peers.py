"""Hostile peers of one kind, in a process of their own, until SIGTERM:

    python -m bench.hostile.peers KIND HOST:PORT [--count 10] [--seed N]

It prints `open` when all of them were made; at the end one line of JSON: how many connections were made, lost and
refused, and the octets sent and received. A connection that the gateway closes is made anew at once. They run niced:
on a machine of their own they would take no processor time from others.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Final

from bench.hostile.kinds import KINDS, Kind
from tests.kit.wire import frames

NICE: Final = 10
READ: Final = 1 << 18
REST_S: Final = 0.01  # behind a connection that was refused


class Credit:
    """Of the one link of a connection: how many more deliveries it may send."""

    def __init__(self) -> None:
        self.left = 0
        self._sent = 0
        self._rest = b""

    def spend(self, deliveries: int) -> None:
        self._sent += deliveries
        self.left -= deliveries

    def read(self, data: bytes) -> None:
        """What the gateway sent next: its flows of the link count."""
        seen, self._rest = frames.read(self._rest + data)
        for flow in seen:
            if flow.name == "flow" and flow.field(6) is not None:
                self.left = (flow.field(5) or 0) + flow.field(6) - self._sent


class Connection:
    """One of them. `due`: when it may send next."""

    def __init__(self, kind: Kind, address: tuple[str, int], counts: Counter[str]) -> None:
        self.kind, self.address, self.told = kind, address, counts
        self.socket: socket.socket | None = None
        self.due = 0.0

    def begin(self, selector: selectors.BaseSelector) -> None:
        self.due = time.monotonic() + self.kind.pace_s
        try:
            self.socket = socket.create_connection(self.address, timeout=5)
        except OSError:
            self.told["refused"] += 1
            self.due = time.monotonic() + REST_S
            return
        self.told["connections"] += 1
        self.socket.setblocking(False)
        self._bursts: Iterator[bytes] | None = self.kind.bursts() if self.kind.bursts else None
        self._credit: Credit | None = None
        self._rest = memoryview(self.kind.hello)
        selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def end(self, selector: selectors.BaseSelector, why: str) -> None:
        assert self.socket is not None
        self.told[why] += 1
        selector.unregister(self.socket)
        self.socket.close()
        self.socket = None

    def work(self, events: int, selector: selectors.BaseSelector) -> None:
        """Send and receive what goes at once."""
        assert self.socket is not None
        try:
            if events & selectors.EVENT_READ and not self._read(self.socket):
                return self.end(selector, "closed" if self._bursts else "answered")
            if events & selectors.EVENT_READ and self._credit and self._credit.left >= self.kind.deliveries:
                selector.modify(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)
            if events & selectors.EVENT_WRITE:
                self._write(self.socket, selector)
        except BlockingIOError:
            return None
        except OSError:
            self.end(selector, "closed")

    def _read(self, sock: socket.socket) -> bool:
        data = sock.recv(READ)
        self.told["received"] += len(data)
        if self._credit:
            self._credit.read(data)
        return bool(data) and self._bursts is not None  # without bursts one answer is enough

    def _write(self, to: socket.socket, selector: selectors.BaseSelector) -> None:
        if not self._rest:
            has_to_wait = self._credit and self._credit.left < self.kind.deliveries
            if self._bursts is None or self.kind.pace_s or has_to_wait:
                selector.modify(to, selectors.EVENT_READ, self)
            if self._bursts is None or has_to_wait:
                return
            self._rest = memoryview(next(self._bursts))
            if self._credit:
                self._credit.spend(self.kind.deliveries)
            elif self.kind.deliveries:
                self._credit = Credit()
        sent = to.send(self._rest)
        self._rest = self._rest[sent:]
        self.told["sent"] += sent
        self.due = time.monotonic() + self.kind.pace_s

    def wake(self, selector: selectors.BaseSelector) -> None:
        """It is due: make it, or let it send."""
        if self.socket is None:
            self.begin(selector)
        elif self.kind.pace_s:
            selector.modify(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)


def storm(kind: Kind, address: tuple[str, int], count: int) -> Counter[str]:
    counts = Counter({"connections": 0, "closed": 0, "answered": 0, "refused": 0, "sent": 0, "received": 0})
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    selector = selectors.DefaultSelector()
    connections = [Connection(kind, address, counts) for _ in range(count)]
    is_new = True
    while not ended:
        now = time.monotonic()
        for connection in connections:
            if connection.due <= now and (connection.socket is None or kind.pace_s):
                connection.wake(selector)
        if is_new and counts["connections"] >= count:
            is_new = False
            sys.stdout.write("open\n")
            sys.stdout.flush()
        for key, events in selector.select(0.001 if kind.pace_s or len(selector.get_map()) < count else 0.1):
            key.data.work(events, selector)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("address")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.nice(NICE)
    host, _, port = arguments.address.rpartition(":")
    with suppress(KeyboardInterrupt):
        counts = storm(KINDS[arguments.kind](Random(arguments.seed)), (host, int(port)), arguments.count)
        sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
