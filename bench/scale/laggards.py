"""Subscriptions far behind, each at another place of a long backlog: what they make the process hold in memory.

`held_mb` is what the realm counts (bounded by `RealmLimits.feed_bytes`), `grown_mb` what the process has grown by,
clients' fetch buffers included.
"""

from __future__ import annotations

import time
from typing import Any

from bench.scale.settling import subscribed
from bench.scale.worlds import opened, resident_mb
from native_backend.journal.settlement import SettlementRequest
from native_backend.nodes import admin
from native_backend.nodes.durable import channel_durable, durable_key, encode_durable
from native_backend.nodes.metadata import realm_topic
from native_backend.nodes.node import Node
from native_backend.nodes.words import NodeKind
from native_backend.subscriptions.subscription import Subscription
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

BODY = b"x" * 100
AT_ONCE = 10_000
TAKEN = 5_000  # events that each takes at its place, settling as it goes
CHANNEL: NodeKind = "channel"


def laggards(world: World, backlog: int, count: int) -> dict[str, Any]:
    first = opened(world)
    node = admin.create_node(first.log, first.prefix, "news", CHANNEL, first.clock)
    assert first.find("news") is not None
    for _ in range(0, backlog, AT_ONCE):
        first.publish(node, [BODY] * AT_ONCE)
    end = first.log.control.bounds(node.topic, 0)[1]
    place(first, node, [end * at // count for at in range(count)])
    first.close()
    before_mb = resident_mb()
    realm = opened(world)
    subscriptions = subscribed(realm, node, count)
    began = time.monotonic()
    held_mb, grown_mb = follow(realm, subscriptions, min(TAKEN, backlog // count), before_mb)
    seconds = time.monotonic() - began
    realm.kill()
    return {
        "backlog": backlog,
        "laggards": count,
        "held_mb": round(held_mb, 1),
        "grown_mb": round(grown_mb),
        "bound_mb": round(context_of(realm.realm).limits.feed_bytes / 1e6),
        "events_per_s": round(count * min(TAKEN, backlog // count) / seconds),
    }


def place(realm: RealmProcess, node: Node, starts: list[int]) -> None:
    """Durables that begin at these places."""
    for at, start in enumerate(starts):
        durable = channel_durable(realm.prefix, node, f"d{at}", [start])
        value = encode_durable(durable, realm.clock.epoch_us())
        realm.log.control.put(realm_topic(realm.prefix), durable_key(node.name, durable.name), value)


def follow(realm: RealmProcess, subscriptions: list[Subscription], share: int, before_mb: float) -> tuple[float, float]:
    """Everybody takes so many events, in turn; the most that was held, and grown by."""
    left = [share] * len(subscriptions)
    held = grown = 0.0
    seq = 1
    while any(left):
        for at, subscription in enumerate(subscriptions):
            delivered = subscription.take(min(left[at], 500), 1 << 20) if left[at] else None
            if delivered is not None:
                count = len(delivered.eids)
                subscription.settle(SettlementRequest("acknowledge"), delivered.eids, [*range(seq, seq + count)], None)
                left[at] -= count
                seq += count
        realm.realm.poll()
        held = max(held, context_of(realm.realm).windows.held_bytes / 1e6)
        grown = max(grown, resident_mb() - before_mb)
        realm.world.pass_time()
    return held, grown
