"""A queue of which the first event stays open while all others are settled, and one settled in random order: what the
state costs in memory, and what a killed process leaves of it.
"""

from __future__ import annotations

import random
import time
from typing import Any

from bench.scale.worlds import opened, resident_mb
from native_backend.journal.settlement import SettlementRequest
from native_backend.metrics import DurableMetrics
from native_backend.state.intervals import Intervals
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

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


def durables(realm: RealmProcess) -> list[DurableMetrics]:
    return [durable for durable in realm.realm.metrics.durables() if durable is not None]


def hole(world: World, events: int) -> dict[str, Any]:
    realm = opened(world)
    node = realm.create("orders")
    first = realm.publish(node, [b"x" * 10])[0]
    for _ in range(0, events, AT_ONCE):
        realm.publish(node, [b"x" * 10] * AT_ONCE)
    consumer = realm.consumer(node)
    assert consumer.receive(1) == [first]
    before_mb, began = resident_mb(), time.monotonic()
    settled = settle_all(realm, consumer.subscription, events)
    seconds = time.monotonic() - began
    (before,) = durables(realm)
    assert (before.low, before.hole, before.ranges) == (first, 1, 1)
    realm.kill()
    began = time.monotonic()
    later = opened(world)
    open_s = time.monotonic() - began
    again = later.consumer(node)
    assert again.receive(1) == [first]
    assert again.again[first]
    assert again.drain() == []
    again.acknowledge([first])
    (left,) = durables(later)
    assert (left.low > first, left.hole, left.ranges) == (True, 0, 0), "the map is not empty"
    result = {
        "settled": settled,
        "seconds": round(seconds, 1),
        "ranges": before.ranges,
        "unsettled": before.hole,
    }
    later.kill()
    return {**result, "grown_mb": round(resident_mb() - before_mb), "open_s": round(open_s, 2)}


def settle_all(realm: RealmProcess, subscription: Any, events: int) -> int:
    """Everything that comes, in random order, some thousands at a time."""
    rng, settled, seq = random.Random(7), 0, 1
    while settled < events:
        delivered = subscription.take(AT_ONCE, 1 << 30)
        if delivered is not None:
            eids = delivered.eids
            rng.shuffle(eids)
            owner = object()
            subscription.settle(SettlementRequest("acknowledge"), eids, [*range(seq, seq + len(eids))], owner)
            seq += len(eids)
            settled += len(eids)
            assert realm.settled(owner) == "done"
        realm.turn()
    return settled
