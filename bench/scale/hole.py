"""A queue of which the first event stays open while all others are settled, and one settled in random order: what the
state costs in memory, and what a killed process leaves of it. May import: `bench`, `native_backend`, `tests`.
"""

from __future__ import annotations

import random
import time
from typing import Any

from bench.scale.ground import opened, resident_mb
from native_backend.intervals import Intervals
from native_backend.settlement import Settling
from tests.native_backend.gateway import Gateway
from tests.native_backend.logs.worlds import World

AT_ONCE = 10_000


def ranges(events: int) -> dict[str, Any]:
    """The map alone: every event settled once, in random order."""
    order = [*range(events)]
    random.Random(7).shuffle(order)
    acked, low, widest = Intervals(), 0, 0
    before_mb, cpu_s = resident_mb(), time.process_time()
    for at, eid in enumerate(order):
        acked.add(eid, eid)
        if not at % 10_000:
            low, widest = acked.absorb(low), max(widest, len(acked))
    low = acked.absorb(low)
    cpu_s = time.process_time() - cpu_s
    assert (low, len(acked)) == (events, 0), "the map is not empty"
    grown_mb = round(resident_mb() - before_mb, 1)
    return {
        "events": events,
        "cpu_s": round(cpu_s, 2),
        "ranges_at_most": widest,
        "grown_mb": grown_mb,
        "left": len(acked),
    }


def hole(world: World, events: int) -> dict[str, Any]:
    gateway = opened(world)
    node = gateway.create("orders")
    first = gateway.publish(node, [b"x" * 10])[0]
    for _ in range(0, events, AT_ONCE):
        gateway.publish(node, [b"x" * 10] * AT_ONCE)
    consumer = gateway.consumer(node)
    assert consumer.receive(1) == [first]
    before_mb, began = resident_mb(), time.monotonic()
    settled = settle_all(gateway, consumer.subscription, events)
    seconds = time.monotonic() - began
    (standing,) = gateway.realm.standings()
    assert (standing.low, standing.position > events) == (first, True)
    gateway.kill()
    began = time.monotonic()
    later = opened(world)
    open_s = time.monotonic() - began
    again = later.consumer(node)
    assert again.receive(1) == [first]
    assert again.again[first]
    assert again.drain() == []
    again.acknowledge([first])
    (left,) = later.realm.standings()
    assert (left.low, left.unsettled, left.ranges) == (left.position, 0, 0), "the map is not empty"
    result = {
        "settled": settled,
        "seconds": round(seconds, 1),
        "ranges": standing.ranges,
        "unsettled": standing.unsettled,
    }
    later.kill()
    return {**result, "grown_mb": round(resident_mb() - before_mb), "open_s": round(open_s, 2)}


def settle_all(gateway: Gateway, subscription: Any, events: int) -> int:
    """Everything that comes, in random order, some thousands at a time."""
    rng, settled, seq = random.Random(7), 0, 1
    while settled < events:
        delivered = subscription.take(AT_ONCE, 1 << 30)
        if delivered is not None:
            eids = delivered.eids
            rng.shuffle(eids)
            owner = object()
            subscription.settle(Settling("acknowledge"), eids, [*range(seq, seq + len(eids))], owner)
            seq += len(eids)
            settled += len(eids)
            assert gateway.settled(owner) == "done"
        gateway.turn()
    return settled
