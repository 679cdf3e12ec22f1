"""Subscriptions far behind, each at another place of a long backlog: what they make the process hold in memory.

`held_mb` is what the realm counts (bounded by `RealmLimits.feed_bytes`), `grown_mb` what the process has grown by,
clients' fetch buffers included. May import: `bench`, `native_backend`, `tests`.
"""

from __future__ import annotations

import time
from typing import Any

from bench.scale.ground import opened, resident_mb
from bench.scale.settling import subscribed
from native_backend import admin
from native_backend.answers import NodeKind
from native_backend.durables import channel_durable, durable_key, encode_durable
from native_backend.metadata import realm_topic
from native_backend.nodes import Node
from native_backend.settlement import Settling
from native_backend.subscription import Subscription
from tests.native_backend.gateway import Gateway
from tests.native_backend.logs.worlds import World

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
    end = first.log.bounds(node.topic, 0)[1]
    place(first, node, [end * at // count for at in range(count)])
    first.close()
    before_mb = resident_mb()
    gateway = opened(world)
    subscriptions = subscribed(gateway, node, count)
    began = time.monotonic()
    held_mb, grown_mb = follow(gateway, subscriptions, min(TAKEN, backlog // count), before_mb)
    seconds = time.monotonic() - began
    gateway.kill()
    return {
        "backlog": backlog,
        "laggards": count,
        "held_mb": round(held_mb, 1),
        "grown_mb": round(grown_mb),
        "bound_mb": round(gateway.realm._services.limits.feed_bytes / 1e6),
        "events_per_s": round(count * min(TAKEN, backlog // count) / seconds),
    }


def place(gateway: Gateway, node: Node, starts: list[int]) -> None:
    """Durables that begin at these places."""
    for at, start in enumerate(starts):
        durable = channel_durable(gateway.prefix, node, f"d{at}", [start])
        value = encode_durable(durable, gateway.clock.epoch_us())
        gateway.log.put(realm_topic(gateway.prefix), durable_key(node.name, durable.name), value)


def follow(gateway: Gateway, subscriptions: list[Subscription], each: int, before_mb: float) -> tuple[float, float]:
    """Everybody takes so many events, in turn; the most that was held, and grown by."""
    left = [each] * len(subscriptions)
    held = grown = 0.0
    seq = 1
    while any(left):
        for at, subscription in enumerate(subscriptions):
            delivered = subscription.take(min(left[at], 500), 1 << 20) if left[at] else None
            if delivered is not None:
                count = len(delivered.eids)
                subscription.settle(Settling("acknowledge"), delivered.eids, [*range(seq, seq + count)], None)
                left[at] -= count
                seq += count
        gateway.realm.poll()
        held = max(held, gateway.realm._feeds.held_bytes / 1e6)
        grown = max(grown, resident_mb() - before_mb)
        gateway.world.pass_time()
    return held, grown
