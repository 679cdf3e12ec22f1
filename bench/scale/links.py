"""Very many links of one connection: of sessions as large as they may be, and of a single one.

Half of them publish, half consume; a message of the last publisher reaches the last consumer. Then the connection is
lost with all of them.
"""

from __future__ import annotations

import time
from typing import Any

import psutil

from bench.scale.connections import QUEUE, QUEUES
from bench.scale.served import BODY, SETTLE_S, cpu_part, resident_mb, served
from bench.scale.worlds import percentile
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.realm.worlds import World
from tests.kit.wire import frames
from tests.kit.wire.clients import ATTACH, DETACH, TRANSFER, Clients, Member, until

A_SESSION = 250
AT_ONCE = 50
ROUNDS = 200
WATCHED_S = 15.0


def links(world: World, count: int) -> dict[str, Any]:
    return {
        "links": count,
        "in_sessions_of_250": on_one_connection(world, count, A_SESSION),
        "in_one_session": on_one_connection(world, count, count),
    }


def on_one_connection(world: World, count: int, a_session: int) -> dict[str, Any]:
    with (
        served(world, links_per_session=max(256, count), links=count + 100) as gateway,
        Clients(gateway.port) as clients,
    ):
        clients.enter(1, lambda _: [attach(number, 0, number) for number in range(2 * QUEUES)], answers=2 * QUEUES)
        time.sleep(SETTLE_S)
        peers, before_mb = connected(gateway), resident_mb(gateway)
        [member] = clients.enter(1, lambda _: [], answers=0)
        began = time.monotonic()
        attach_all(member, count, a_session)
        attaching_s = time.monotonic() - began
        together_mb = resident_mb(gateway)
        idle = cpu_part(gateway, WATCHED_S, clients.beat)
        trips = last_to_last(member, count, a_session)
        began = time.monotonic()
        member.reset()
        until(lambda: connected(gateway) == peers, "the connection's socket")
        return {
            "attaching_s": round(attaching_s, 2),
            "kb_a_link": round(1e3 * (together_mb - before_mb) / count, 1),
            "idle_cpu": idle,
            "round_trip_ms": {"p50": round(percentile(trips, 0.5), 2), "p99": round(percentile(trips, 0.99), 2)},
            "losing_s": round(time.monotonic() - began, 2),
        }


def connected(gateway: GatewayProcess) -> int:
    """Sockets of peers. Not all descriptors: a log's client opens and closes some of its own."""
    sockets = psutil.Process(gateway.pid).net_connections("tcp")
    return sum(socket.laddr.port == gateway.port and socket.status == psutil.CONN_ESTABLISHED for socket in sockets)


def attach(number: int, channel: int, handle: int) -> bytes:
    """Every other link consumes. The last two have a queue of their own."""
    name = f"q{number // 2 % QUEUES}"
    if number % 2:
        source = frames.source(name, capability=QUEUE)
        return frames.attach_receiver(source, handle, f"l{number}", channel=channel)
    return frames.attach_sender(frames.target(name, capability=QUEUE), handle, f"l{number}", channel=channel)


def attach_all(member: Member, count: int, a_session: int) -> None:
    for number in range(0, count, AT_ONCE):
        channel, handle = divmod(number, a_session)
        begins = [frames.begin(channel)] if channel and not handle else []
        batch = range(AT_ONCE)
        member.send(*begins, *(attach(number + at, channel, handle + at) for at in batch))
        assert DETACH not in member.await_(ATTACH, count=AT_ONCE), "a link was refused"


def last_to_last(member: Member, count: int, a_session: int) -> list[float]:
    """Milliseconds of messages from the last publisher to the last consumer, each accepted. Others of their queue have
    no credit."""
    channel, handle = divmod(count - 2, a_session)
    member.send(frames.flow(handle + 1, ROUNDS, channel=channel))
    latencies = []
    for number in range(ROUNDS):
        began = time.perf_counter()
        member.send(frames.transfer(number, frames.message(BODY), handle, settled=True, channel=channel))
        member.await_(TRANSFER)
        latencies.append(1e3 * (time.perf_counter() - began))
        member.send(frames.disposition(number, number, frames.state("accepted"), channel=channel))
    return latencies
