"""A queue of which every event has failed and rests before it is given again: what that costs in memory, and whether it
comes back in its time, also after a kill.
"""

from __future__ import annotations

import time
from typing import Any

from bench.scale.worlds import opened, resident_mb
from native_backend.journal.settlement import SettlementRequest
from native_backend.nodes import admin
from native_backend.nodes.properties import Properties
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

AT_ONCE = 10_000
REST_S = 240.0  # longer than failing a million takes


def delayed(world: World, events: int) -> dict[str, Any]:
    realm = opened(world)
    rest = Properties(redelivery_delay_ms=int(REST_S * 1000))
    admin.create_node(realm.log, realm.prefix, "orders", "queue", realm.clock, rest)
    node = realm.find("orders")
    assert node is not None
    for _ in range(0, events, AT_ONCE):
        realm.publish(node, [b"x" * 10] * AT_ONCE)
    subscription = realm.consumer(node).subscription
    before_mb, began = resident_mb(), time.monotonic()
    assert taken(realm, subscription, events, "return", failed=True) == events
    failing_s = time.monotonic() - began
    assert subscription.take(10, 1000) is None, "all of it rests"
    grown_mb = resident_mb() - before_mb
    state = realm.state(node)
    stretches = sum(1 for _ in state.delayed)
    realm.kill()
    later = opened(world)
    again = later.consumer(node).subscription
    assert taken(later, again, events, "acknowledge") == events
    back_s = time.monotonic() - began
    assert back_s >= REST_S, "it came before its time"
    left = later.state(node)
    assert (left.unsettled, len(left.acked), bool(left.delayed), left.failed) == (0, 0, False, {})
    later.kill()
    return {
        "delayed": events,
        "failing_s": round(failing_s, 1),
        "stretches": stretches,
        "grown_mb": round(grown_mb),
        "rest_s": REST_S,
        "all_back_and_settled_s": round(back_s, 1),
        "grown_with_recovery_mb": round(resident_mb() - before_mb),
    }


def taken(realm: RealmProcess, subscription: Any, events: int, operation: Any, **how: Any) -> int:
    """So many, settled as they come, every second one first, so that no long stretches are made."""
    settled, seq = 0, 1
    while settled < events:
        delivered = subscription.take(AT_ONCE, 1 << 30)
        if delivered is not None:
            for eids in (delivered.eids[::2], delivered.eids[1::2]):
                if not eids:
                    continue
                owner = object()
                subscription.settle(SettlementRequest(operation, **how), eids, [*range(seq, seq + len(eids))], owner)
                seq += len(eids)
                settled += len(eids)
                assert realm.settled(owner) == "done"
        realm.turn()
    return settled
