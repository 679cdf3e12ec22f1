"""WebSocket about a case: its octets as a browser sends them, and the layer that undoes it, in this process.

`framed` cuts and masks what connections send, behind a handshake, and breaks some of it. `Web` is to a `Wire` what the
gateway's own stack is to its port, with nothing below.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from random import Random
from typing import Any, cast

from gateway.server.websocket import WebSocketLayer
from tests.fuzz.steps import Step

_LINES = (
    b"GET /amqp HTTP/1.1", b"Host: realm.example", b"Upgrade: websocket", b"Connection: Upgrade",
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Protocol: amqp",
)  # fmt: skip
_ODD_LINES = (
    b"Origin: https://other.example", b"Origin: http://realm.example", b"Sec-WebSocket-Protocol: mqtt, \xc3\xa9",
    b"Sec-WebSocket-Extensions: permessage-deflate", b"Content-Length: 99", b"Transfer-Encoding: chunked", b"X: ",
    b"no header", b"\x00\xff: \xff", b"X-Long: " + b"x" * 100_000, b"Sec-WebSocket-Version: 12",
    b"Expect: 100-continue",
)  # fmt: skip
_CONTINUED, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10


def framed(random: Random, steps: list[Step]) -> list[Step]:
    output: list[Step] = []
    greeted: set[int] = set()
    broken = random.random() < 0.5
    for step in steps:
        if step.verb != "send":
            output.append(step)
            continue
        octets = b"" if step.connection in greeted else _handshake(random, broken)
        greeted.add(step.connection)
        octets += _messages(random, step.data, broken)
        if broken and random.random() < 0.05:
            octets = octets[: random.randrange(len(octets) + 1)] + random.randbytes(3)
        output.append(Step(step.connection, "send", octets))
    return output


def _handshake(random: Random, broken: bool) -> bytes:
    lines = list(_LINES)
    if broken and random.random() < 0.25:
        lines.insert(random.randrange(len(lines) + 1), random.choice(_ODD_LINES))
    if broken and random.random() < 0.1:
        del lines[random.randrange(len(lines))]
    return b"\r\n".join([*lines, b"", b""])


def _messages(random: Random, data: bytes, broken: bool) -> bytes:
    """One message in one piece or several; what else may come between pieces, and what may not."""
    places = sorted(random.randrange(len(data) + 1) for _ in range(random.choice((0, 0, 1, 3))))
    pieces = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
    whole = random.random() < 0.5  # every piece is a message of its own
    octets = b""
    for at, piece in enumerate(pieces):
        opcode = _BINARY if at == 0 or whole else _CONTINUED
        if broken and random.random() < 0.03:
            opcode = random.choice((_TEXT, _CONTINUED, 3, 11, _CLOSE))
        octets += _frame(random, opcode, piece, whole or at == len(pieces) - 1, broken)
        if random.random() < 0.15:
            content = random.choice((b"", b"hello", struct.pack(">H", 1000), b"\x03", b"x" * (126 if broken else 125)))
            octets += _frame(random, random.choice((_PING, _PONG, _PING, _CLOSE)), content, True, broken)
    return octets


def _frame(random: Random, opcode: int, content: bytes, last: bool, broken: bool) -> bytes:
    head = opcode | (0x80 if last else 0)
    size, masked = len(content), 0x80
    if broken and random.random() < 0.05:
        head |= random.choice((0x40, 0x20, 0x10))
    if broken and random.random() < 0.03:
        masked = 0
    if broken and random.random() < 0.03:
        size = random.choice((size + 1, 2**31, 2**63, 2**64 - 1, 0))
    if size < 126:
        length = bytes((masked | size,))
    elif size < 65_536:
        length = struct.pack(">BH", masked | 126, size)
    else:
        length = struct.pack(">BQ", masked | 127, size)
    return bytes((head,)) + length + (b"\0\0\0\0" if masked else b"") + content  # a mask of nothing changes nothing


class _Nothing(asyncio.Transport):
    """What is below: it takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = False

    def write(self, data: Any) -> None:
        assert not self.closing, "said something behind its own end"

    def close(self) -> None:
        self.closing = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closing


class _Turns:
    """The loop: what is to be called."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.now_s = 0.0

    def call_soon(self, call: Callable[[], None]) -> None:
        self.due.append(call)

    def time(self) -> float:
        self.now_s += 1.0  # so no frames are a flood
        return self.now_s


class _Above(asyncio.Protocol):
    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def data_received(self, data: bytes) -> None:
        self._take(data)


class Web:
    """One connection's layer; `take` gets what is AMQP."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._below = _Nothing()
        self._turns = _Turns()
        self._layer = WebSocketLayer(_Above(take), (), lambda _: None, lambda: True, cast(Any, self._turns))
        self._layer.connection_made(self._below)

    def receive(self, data: bytes) -> bool:
        """Whether the connection goes on."""
        self._layer.data_received(data)
        while self._turns.due:
            self._turns.due.pop()()
        return not self._below.closing

    def write(self, data: bytes) -> None:
        self._layer.write(data)

    def close(self) -> None:
        self._layer.close()
