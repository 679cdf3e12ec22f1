"""Dynamic nodes, made and destroyed again and again, as a JMS application does that makes a temporary queue for every
request: how many a second one client gets, and several at once, and how long each of the two takes.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.scale.served import SETTLE_S, served
from bench.scale.worlds import percentile
from tests.kit.realm.worlds import World
from tests.kit.wire import frames
from tests.kit.wire.clients import ATTACH, DETACH, Clients, Member

SEVERAL = 16


def temporary(world: World, seconds: float) -> dict[str, Any]:
    with served(world) as gateway, Clients(gateway.port) as clients:
        members = clients.enter(SEVERAL, lambda _: [], answers=0)
        for member in members:
            one(member)
        time.sleep(SETTLE_S)
        return {"by_1_client": by(members[:1], seconds), f"by_{SEVERAL}_clients": by(members, seconds)}


def by(members: list[Member], seconds: float) -> dict[str, Any]:
    began = time.monotonic()
    with ThreadPoolExecutor(len(members)) as threads:
        times = [pair for pairs in threads.map(lambda member: many(member, began + seconds), members) for pair in pairs]
    taken_s = time.monotonic() - began
    makes, ends = ([pair[at] for pair in times] for at in (0, 1))
    return {"nodes_per_s": round(len(times) / taken_s, 1), "make_ms": parts(makes), "end_ms": parts(ends)}


def parts(values: list[float]) -> dict[str, float]:
    return {name: round(percentile(values, part), 1) for name, part in {"p50": 0.5, "p99": 0.99, "max": 1.0}.items()}


def many(member: Member, end: float) -> list[tuple[float, float]]:
    times = []
    while time.monotonic() < end:
        times.append(one(member))
    return times


def one(member: Member) -> tuple[float, float]:
    """Milliseconds until a temporary queue was there, and until it was gone."""
    source = frames.source(None, dynamic=True, capability="temporary-queue")
    began = time.perf_counter()
    member.send(frames.attach_receiver(source, 1, "reply"))
    assert DETACH not in member.await_(ATTACH), "no node was made"
    made = time.perf_counter()
    member.send(frames.detach(1))
    member.await_(DETACH)
    return 1e3 * (made - began), 1e3 * (time.perf_counter() - made)
