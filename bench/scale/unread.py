"""Peers that do not read: what they make the gateway hold.

`consumers`: have credit for ten thousand messages each, and never read their sockets. `windowless`: the same, and do
read, but their sessions have room for nothing (so that it is the gateway that keeps what it was about to send).
`publishers`: send as much as is taken from them, and never read what became of it. What one of them may make the
gateway hold is `limits.write_buffer_bytes` and a message, of publishers twice that, and what it keeps of each delivery
that a consumer has not settled, which `unsettled` measures first; `grown_mb` is the most that the process has grown by,
the events in memory (`limits.window_bytes`) included.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

from bench.scale.served import SETTLE_S, forget_peak, peak_mb, resident_mb, served
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.realm.worlds import World
from tests.kit.wire import frames
from tests.kit.wire.clients import DISPOSITION, TRANSFER, Clients, Member

MIB = 1024 * 1024
CREDIT = 10_000
BODY_BYTES = 10_000
WRITE_BUFFER_BYTES = MIB
WINDOW_BYTES = 16 * MIB
READERS = 16  # of those who lag, each with a chunk
SMALL = frames.message(b"x" * 100)
UNSETTLED, UNSETTLED_PEERS = 6_000, 20
STALLED_S = 2.0
POURED_S = 20.0


def unread(world: World, peers: int) -> dict[str, Any]:
    with served(world) as gateway, Clients(gateway.port) as clients:
        octets = unsettled(gateway, clients)  # in a process of its own: what is given back there is used again
    with served(world, write_buffer_bytes=WRITE_BUFFER_BYTES, window_bytes=WINDOW_BYTES) as gateway:
        report: dict[str, Any] = {"peers": peers, "write_buffer_mb": round(WRITE_BUFFER_BYTES / 1e6, 1)}
        report["octets_of_an_unsettled_delivery"] = octets
        cases = {"consumers": frames.flow(1, CREDIT), "windowless": frames.flow(1, CREDIT, window=0)}
        for name, asks in cases.items():
            with Clients(gateway.port) as clients:
                report[name] = not_reading(gateway, clients, peers, name, asks, octets)
        with Clients(gateway.port) as clients:
            report["publishers"] = publishers(gateway, clients, peers)
        return report


def unsettled(gateway: GatewayProcess, clients: Clients) -> int:
    """What the gateway keeps of a delivery whose message has been read: octets."""
    source, target = frames.source("kept", capability="topic"), frames.target("kept", capability="topic")
    [publisher] = clients.enter(1, lambda _: [frames.attach_sender(target)])
    members = clients.enter(UNSETTLED_PEERS, lambda _: [frames.attach_receiver(source), frames.flow(1, CREDIT)])
    time.sleep(SETTLE_S)
    before_mb = resident_mb(gateway)
    for number in range(UNSETTLED):
        publisher.send(frames.transfer(number, SMALL))
        if number % 100 == 99:
            publisher.await_(DISPOSITION)
    for member in members:
        member.await_(TRANSFER, count=UNSETTLED)
    return round((resident_mb(gateway) - before_mb) * 1e6 / UNSETTLED_PEERS / UNSETTLED)


def not_reading(
    gateway: GatewayProcess, clients: Clients, peers: int, node: str, asks: bytes, octets: int
) -> dict[str, Any]:
    """Each would get all messages of the channel, several times what may wait for it: they are there when half of the
    peers ask for them, and come one after the other to the others."""
    count = 4 * WRITE_BUFFER_BYTES // BODY_BYTES + 1_000  # and what the sockets' own buffers take
    source, target = frames.source(node, capability="topic"), frames.target(node, capability="topic")
    [publisher] = clients.enter(1, lambda _: [frames.attach_sender(target)])
    members = clients.enter(peers, lambda number: [frames.attach_receiver(source), *([asks] if number % 2 else [])])
    time.sleep(SETTLE_S)
    forget_peak(gateway)
    before_mb = resident_mb(gateway)
    for number in range(count):
        publisher.send(frames.transfer(number, frames.message(b"x" * BODY_BYTES)))
        publisher.await_(DISPOSITION)
    for at, member in enumerate(members, 1):
        member.send(*([] if at % 2 else [asks]))
    time.sleep(2 * SETTLE_S)
    kept_bytes = WRITE_BUFFER_BYTES + BODY_BYTES + min(count, CREDIT) * octets
    bound_mb = (peers * kept_bytes + WINDOW_BYTES + READERS * MIB) / 1e6
    return grown(gateway, before_mb, bound_mb, peers * count * BODY_BYTES)


def publishers(gateway: GatewayProcess, clients: Clients, peers: int) -> dict[str, Any]:
    target = frames.target("unread", capability="queue")
    members = clients.enter(peers, lambda _: [frames.attach_sender(target)])
    time.sleep(SETTLE_S)
    forget_peak(gateway)
    before_mb, sent = resident_mb(gateway), 0
    for member in members:
        member.socket.setblocking(False)
    numbers, moved_s, began = [0] * peers, time.monotonic(), time.monotonic()
    rest = [b""] * peers
    while time.monotonic() < min(moved_s + STALLED_S, began + POURED_S):
        for at, member in enumerate(members):
            if not rest[at]:
                rest[at] = b"".join(frames.transfer(numbers[at] + more, SMALL) for more in range(100))
                numbers[at] += 100
            taken = pour(member, rest[at])
            if taken:
                moved_s = time.monotonic()
            rest[at], sent = rest[at][taken:], sent + taken
    bound_mb = (2 * peers * WRITE_BUFFER_BYTES + WINDOW_BYTES) / 1e6
    return grown(gateway, before_mb, bound_mb, sent)


def pour(member: Member, octets: bytes) -> int:
    with suppress(BlockingIOError, ConnectionError):
        return member.socket.send(octets, socket.MSG_NOSIGNAL)
    return 0


def grown(gateway: GatewayProcess, before_mb: float, bound_mb: float, offered_bytes: int) -> dict[str, Any]:
    return {
        "offered_mb": round(offered_bytes / 1e6),
        "bound_mb": round(bound_mb, 1),
        "grown_mb": round(peak_mb(gateway) - before_mb, 1),
    }
