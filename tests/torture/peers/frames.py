"""The frames that the torture's peers send, and how they read the gateway's."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from tests.torture.history import Event
from tests.torture.peers.codec import FALSE, NULL, TRUE, binary, described, items, read, string, symbol, ubyte, uint

HEADER = b"AMQP\x00\x01\x00\x00"
HEARTBEAT = b"\x00\x00\x00\x08\x02\x00\x00\x00"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
STATES = {0x23: "received", 0x24: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified",
          0x33: "declared", 0x34: "transactional"}  # fmt: skip
CODES = {name: code for code, name in STATES.items()}
SOURCE, TARGET = 0x28, 0x29
WINDOW = 2_000_000
COORDINATOR = described(0x30, items(NULL))


def frame(code: int, *fields: bytes, payload: bytes = b"") -> bytes:
    body = described(code, items(*fields)) + payload
    return struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body


def flag(value: bool) -> bytes:
    return TRUE if value else FALSE


def opening(container: str, idle_ms: int) -> bytes:
    """Protocol header, open and begin."""
    opened = frame(OPEN, string(container), string("torture"), NULL, NULL, uint(idle_ms))
    return HEADER + opened + frame(BEGIN, NULL, uint(0), uint(WINDOW), uint(WINDOW))


def terminus(code: int, node: str, capability: str, durable: int = 0) -> bytes:
    """A source (0x28) or target (0x29)."""
    nulls = [NULL] * (7 if code == SOURCE else 3)  # from timeout to just before the capabilities
    never = symbol("never") if durable else NULL
    return described(code, items(string(node), uint(durable), never, *nulls, symbol(capability)))


def attach_sender(name: str, handle: int, target: bytes, outcomes: bytes = NULL) -> bytes:
    source = described(SOURCE, items(*[NULL] * 9, outcomes) if outcomes != NULL else items(NULL))
    return frame(ATTACH, string(name), uint(handle), FALSE, ubyte(0), ubyte(0), source, target, NULL, NULL, uint(0))


def attach_receiver(name: str, handle: int, source: bytes, second: bool) -> bytes:
    target = described(TARGET, items(NULL))
    return frame(ATTACH, string(name), uint(handle), TRUE, ubyte(0), ubyte(int(second)), source, target)


def flow(incoming: int, outgoing: int, handle: int, count: int, credit: int) -> bytes:
    """`incoming` transfers have come, `outgoing` have gone; `count` deliveries were received on the link."""
    window = uint(WINDOW)
    return frame(FLOW, uint(incoming), window, uint(outgoing), window, uint(handle), uint(count), uint(credit))


def transfer(handle: int, delivery: int, message: bytes, state: bytes = NULL) -> bytes:
    tag = binary(struct.pack(">I", delivery))
    fields = (uint(handle), uint(delivery), tag, uint(0), FALSE, FALSE)
    return frame(TRANSFER, *fields, *((NULL, state) if state != NULL else ()), payload=message)


def disposition(first: int, last: int, state: bytes, settled: bool) -> bytes:
    return frame(DISPOSITION, TRUE, uint(first), uint(last), flag(settled), state)


def outcome(name: str) -> bytes:
    """`modified` is modified with delivery-failed."""
    return described(CODES[name], items(TRUE) if name == "modified" else items())


def in_transaction(txn: bytes, state: bytes | None = None) -> bytes:
    return described(CODES["transactional"], items(binary(txn), state if state is not None else NULL))


def tagged(tag: bytes) -> Event:
    """The store and the EID that a delivery's tag names."""
    store, _, eid = bytes(tag).partition(b":")
    return int(store), int(eid)


def declare() -> bytes:
    return described(0x77, described(0x31, items(NULL)))


def discharge(txn: bytes, fail: bool) -> bytes:
    return described(0x77, described(0x32, items(binary(txn), flag(fail))))


def detach(handle: int) -> bytes:
    return frame(DETACH, uint(handle), TRUE)


def close() -> bytes:
    return frame(CLOSE)


def received(data: bytes) -> Iterator[tuple[int, list[Any], bytes, int]]:
    """Every whole frame of `data`: its code, its fields, its payload, and where the next one begins."""
    at = 0
    while len(data) - at >= 8:
        if data.startswith(b"AMQP", at):
            at += 8
            continue
        size = int.from_bytes(data[at : at + 4], "big")
        if len(data) - at < size:
            return
        begin, at = at + data[at + 4] * 4, at + size
        if begin < at:
            performative, after = read(data, begin)
            fields = performative.value + [None] * (11 - len(performative.value))
            yield performative.code, fields, data[after:at], at
