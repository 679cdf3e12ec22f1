"""What a turn of the gateway costs while many consuming links have credit and nothing comes, and one event for all.

The gateway is driven as the wire tests drive it, peers without sockets, on a real realm: each link is a durable of one
channel. `turn_us` is processor time of one turn.
"""

from __future__ import annotations

import time
from typing import Any

from bench.scale.worlds import opened
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from mappings import load_tables
from tests.kit.realm.worlds import World
from tests.kit.wire import frames
from tests.kit.wire.conversation import settings_of

LINKS_A_CONNECTION = 50
TURNS = 1_000
ATTACH, TRANSFER = b"\x00\x53\x12", b"\x00\x53\x14"


def idle(world: World, links: int) -> dict[str, Any]:
    realm = opened(world)
    node = realm.create("news", "channel")
    tables = load_tables()
    gateway = Gateway(
        settings_of(tables, (), {"links": 2 * links + 100, "share_percent": 100}), realm.realm, tables, realm.clock
    )
    none = cost_us(gateway)
    connections = [attached(gateway, at) for at in range(links // LINKS_A_CONNECTION)]
    until_quiet(gateway, connections, links)
    waiting = cost_us(gateway)
    realm.realm.publish(node, [b"1;none;r;1"], [frames.message()], None)
    cost_s, sent = 0.0, 0
    while sent < links:
        began = time.process_time()
        gateway.poll()
        if gateway.touched:  # it is here
            sent += sum(count_of(connection, TRANSFER) for connection in gateway.touched)
            gateway.touched.clear()
            cost_s += time.process_time() - began
    realm.kill()
    return {"links": links, "turn_us_without": none, "turn_us": waiting, "event_to_all_us": round(1e6 * cost_s)}


def attached(gateway: Gateway, number: int) -> Connection:
    connection = gateway.connect()
    connection.receive(frames.AMQP_HEADER + frames.open_(f"peer-{number}") + frames.begin())
    for handle in range(LINKS_A_CONNECTION):
        source = frames.source("news", 2)
        connection.receive(frames.attach_receiver(source, handle, f"d{handle}") + frames.flow(handle, 100))
    return connection


def until_quiet(gateway: Gateway, connections: list[Connection], links: int) -> None:
    """All attached, and nothing more to do for a while."""
    attaches = 0
    until = time.monotonic() + 120
    while attaches < links:
        assert time.monotonic() < until, f"{attaches} of {links} attached"
        gateway.poll()
        attaches += sum(count_of(connection, ATTACH) for connection in connections)
        time.sleep(0.0005)
    for _ in range(200):
        gateway.poll()
        time.sleep(0.001)


def cost_us(gateway: Gateway) -> float:
    began = time.process_time()
    for _ in range(TURNS):
        gateway.poll()
    return round(1e6 * (time.process_time() - began) / TURNS, 1)


def count_of(connection: Connection, descriptor: bytes) -> int:
    """How many frames of that kind it has to send now."""
    return b"".join(connection.data_to_send()).count(descriptor)
