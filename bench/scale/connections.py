"""Connections over sockets: many that are idle, and very many that come and go.

`idle`: each publishes to a queue and consumes from it, and both sides send heartbeats. `churn`: each brings a link and
a message, and leaves by CLOSE or by RST.
"""

from __future__ import annotations

import time
from typing import Any

from bench.scale.served import BODY, SETTLE_S, cpu_part, resident_mb, round_trips, served
from bench.scale.worlds import percentile
from tests.kit.realm.worlds import World
from tests.kit.wire import frames
from tests.kit.wire.clients import DISPOSITION, HEARTBEAT, TRANSFER, Clients, Member, descriptors, until

QUEUES = 20
WATCHED_S = 30.0
HEARTBEAT_S = 10.0
IDLE_MS = 60_000
CREDIT = 100
QUEUE = "queue"
ROUNDS = 200
CLOSE = b"\x00\x53\x18"
WARM = 1_000  # connections until everything that is made once is there
AT_ONCE = 20


def links_of(number: int) -> list[bytes]:
    name = f"q{number % QUEUES}"
    source, target = frames.source(name, capability=QUEUE), frames.target(name, capability=QUEUE)
    return [frames.attach_sender(target, 0), frames.attach_receiver(source, 1), frames.flow(1, CREDIT)]


def connections(world: World, count: int) -> dict[str, Any]:
    with served(world, connections=count + 100, links=2 * count + 100) as gateway, Clients(gateway.port) as clients:
        clients.enter(QUEUES, links_of, answers=2)
        time.sleep(SETTLE_S)
        files, before_mb = descriptors(gateway.pid), resident_mb(gateway)
        alone = cpu_part(gateway, WATCHED_S / 4)
        began = time.monotonic()
        clients.enter(count - QUEUES, links_of, answers=2, idle_ms=IDLE_MS)
        opening_s = time.monotonic() - began
        beating = Beating(clients)
        for _ in range(round(HEARTBEAT_S)):  # the first have been silent for a while
            beating()
        time.sleep(SETTLE_S)
        together_mb = resident_mb(gateway)
        idle = cpu_part(gateway, WATCHED_S, beating)
        lone = clients.enter(1, lambda _: alone_on("lone"), answers=2, idle_ms=IDLE_MS)
        trips = round_trips(lone[0], lone, ROUNDS)
        clients.leave()
        until(lambda: descriptors(gateway.pid) <= files - QUEUES, "the descriptors of those who left")
        time.sleep(SETTLE_S)
        return {
            "connections": count,
            "links": 2 * count,
            "resident_mb": round(together_mb),
            "bound_mb": 1_611,
            "kb_a_connection": round(1e3 * (together_mb - before_mb) / (count - QUEUES), 1),
            "opening_s": round(opening_s, 2),
            "idle_cpu": idle,
            "idle_cpu_with_20": alone,
            "round_trip_ms": {"p50": round(percentile(trips, 0.5), 2), "p99": round(percentile(trips, 0.99), 2)},
            "resident_mb_when_all_have_left": round(resident_mb(gateway)),
        }


def alone_on(name: str) -> list[bytes]:
    """Publishes to and consumes from a channel of its own."""
    source, target = frames.source(name, capability="topic"), frames.target(name, capability="topic")
    return [frames.attach_sender(target, 0), frames.attach_receiver(source, 1, mode=1), frames.flow(1, 10_000)]


class Beating:
    """Every member sends a heartbeat now and then; called once a second, a part of them each time."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._at = 0

    def __call__(self) -> None:
        members = self._clients.members
        for _ in range(round(len(members) / HEARTBEAT_S)):
            members[self._at % len(members)].send(HEARTBEAT)
            self._at += 1


def churn(world: World, count: int) -> dict[str, Any]:
    with served(world) as gateway, Clients(gateway.port) as clients:
        come_and_go(clients, WARM)
        time.sleep(SETTLE_S)
        files, before_mb, began = descriptors(gateway.pid), resident_mb(gateway), time.monotonic()
        grown = []
        for _ in range(4):
            come_and_go(clients, count // 4)
            grown.append(round(resident_mb(gateway) - before_mb, 1))
        seconds = time.monotonic() - began
        time.sleep(SETTLE_S)
        return {
            "connections": count,
            "per_s": round(count / seconds),
            "descriptors_left": descriptors(gateway.pid) - files,
            "grown_mb_by_quarters": grown,
            "grown_mb": round(resident_mb(gateway) - before_mb, 1),
        }


def come_and_go(clients: Clients, count: int) -> None:
    """Some at a time; every other one says goodbye."""
    message = frames.message(BODY)
    for _ in range(0, count, AT_ONCE):
        members = clients.enter(AT_ONCE, links_of, answers=2)
        for member in members:
            member.send(frames.transfer(0, message))
        for member in members:
            member.await_(DISPOSITION, TRANSFER)
            member.send(frames.disposition(0, 0, frames.state("accepted")))
        for member in members[::2]:
            goodbye(member)
        clients.leave()


def goodbye(member: Member) -> None:
    member.send(frames.close())
    member.await_(CLOSE)
