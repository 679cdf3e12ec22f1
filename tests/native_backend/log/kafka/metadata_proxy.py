"""A proxy between clients and a lone Kafka node that can leave out all brokers of a Metadata response: so answers a
node that is fenced, for a moment, when it comes back.

Source: Kafka's protocol, Metadata from version 9 on: throttle time, then a compact array of brokers (id, host, port,
rack, tags).
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.kit.processes.broker import Broker, start_broker

_METADATA = 3
_BROKERS_AT = 9  # behind the correlation id, the header's tags and the throttle time
Requests = dict[int, tuple[int, int]]  # correlation id -> API and its version


class MetadataProxy:
    """`port` is where to connect, `target` the port behind it. The next `hides` Metadata responses name no broker."""

    def __init__(self) -> None:
        self.target = self.hides = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, far = self._listener.accept()[0], socket.create_connection(("127.0.0.1", self.target))
                requests: Requests = {}
                for way in ((near, far, requests, False), (far, near, requests, True)):
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, requests: Requests, answers: bool) -> None:
        with suppress(OSError):
            for frame in _frames(source):
                if answers:
                    frame = self._answer(frame, *requests.pop(struct.unpack_from(">i", frame)[0]))
                else:
                    api, version, correlation = struct.unpack_from(">hhi", frame)
                    requests[correlation] = api, version
                sink.sendall(struct.pack(">i", len(frame)) + frame)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def _answer(self, frame: bytes, api: int, version: int) -> bytes:
        if api != _METADATA or not self.hides:
            return frame
        assert version >= 9, version
        self.hides -= 1
        return frame[:_BROKERS_AT] + b"\x01" + frame[_end_of_brokers(frame) :]


def _end_of_brokers(frame: bytes) -> int:
    """Short strings, and no tags."""
    at = _BROKERS_AT + 1
    for _ in range(frame[_BROKERS_AT] - 1):
        at += 4 + frame[at + 4]  # id, host with its length
        at += 4 + max(1, frame[at + 4]) + 1  # port, rack with its length, tags
    return at


def _frames(source: socket.socket) -> Iterator[bytes]:
    with source.makefile("rb") as octets:
        while len(size := octets.read(4)) == 4:
            yield octets.read(struct.unpack(">i", size)[0])


def broker_behind(proxy: MetadataProxy, directory: Path) -> Broker:
    broker = start_broker(directory, seen_at=proxy.port)
    proxy.target = int(broker.bootstrap.rpartition(":")[2])
    return broker
