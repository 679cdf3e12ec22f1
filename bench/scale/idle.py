"""What a turn of the gateway costs while many consuming links have credit and nothing comes, and one event for all.

The gateway is driven as the wire tests drive it, peers without sockets, on a real realm: each link is a durable of one
channel. `turn_us` is processor time of one turn. May import: `bench`, `gateway`, `native_backend`, `tests`.
"""

from __future__ import annotations

import time
from typing import Any

from bench.scale.ground import opened
from gateway.connection import Connection
from gateway.gateway import Gateway as House
from mappings import load_tables
from tests.native_backend.logs.worlds import World
from tests.wire import frames
from tests.wire.conversation import settings_of

LINKS_A_CONNECTION = 50
TURNS = 1_000
ATTACH, TRANSFER = b"\x00\x53\x12", b"\x00\x53\x14"


def idle(world: World, links: int) -> dict[str, Any]:
    gateway = opened(world)
    node = gateway.create("news", "channel")
    tables = load_tables()
    house = House(settings_of(tables, (), {"links": 2 * links + 100}), gateway.realm, tables, gateway.clock)
    none = cost_us(house)
    connections = [attached(house, at) for at in range(links // LINKS_A_CONNECTION)]
    until_quiet(house, connections, links)
    waiting = cost_us(house)
    gateway.realm.publish(node, [b"1;none;r;1"], [frames.message()], None)
    told, sent = 0.0, 0
    while sent < links:
        began = time.process_time()
        house.poll()
        if house.touched:  # it is here
            sent += sum(said(connection, TRANSFER) for connection in house.touched)
            house.touched.clear()
            told += time.process_time() - began
    gateway.kill()
    return {"links": links, "turn_us_without": none, "turn_us": waiting, "event_to_all_us": round(1e6 * told)}


def attached(house: House, number: int) -> Connection:
    connection = house.connect()
    connection.receive(frames.AMQP_HEADER + frames.open_(f"peer-{number}") + frames.begin())
    for handle in range(LINKS_A_CONNECTION):
        source = frames.source("news", 2)
        connection.receive(frames.attach_receiver(source, handle, f"d{handle}") + frames.flow(handle, 100))
    return connection


def until_quiet(house: House, connections: list[Connection], links: int) -> None:
    """All attached, and nothing more to do for a while."""
    attaches = 0
    until = time.monotonic() + 120
    while attaches < links:
        assert time.monotonic() < until, f"{attaches} of {links} attached"
        house.poll()
        attaches += sum(said(connection, ATTACH) for connection in connections)
        time.sleep(0.0005)
    for _ in range(200):
        house.poll()
        time.sleep(0.001)


def cost_us(house: House) -> float:
    began = time.process_time()
    for _ in range(TURNS):
        house.poll()
    return round(1e6 * (time.process_time() - began) / TURNS, 1)


def said(connection: Connection, descriptor: bytes) -> int:
    """How many frames of that kind it has to send now."""
    return b"".join(connection.data_to_send()).count(descriptor)
