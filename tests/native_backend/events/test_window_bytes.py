"""What raw events take in memory, over all stores and all that lag behind: bounded, whoever reads where."""

from __future__ import annotations

from native_backend.limits import RealmLimits
from native_backend.subscription import DurableSubscription
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.logs.worlds import SimulatedWorld

BODY = b"x" * 100
LIMITS = RealmLimits(
    feed_bytes=20_000, window_bytes=15_000, chunk_bytes=2_000, read_count=20, readers=3, reader_turn_s=0.0
)


def counted(gateway: Gateway) -> int:
    """Once more, from what is there."""
    feeds = gateway.realm._feeds
    windows = sum(chunk.size for feed in feeds._feeds.values() for chunk in feed._chunks)
    lagging = sum(cursor.lag.chunk.size for cursor in feeds._lagging if cursor.lag and cursor.lag.chunk)
    return windows + lagging + sum(chunk.size for chunk in feeds._again.values())


def bounded(gateway: Gateway) -> None:
    assert gateway.realm._feeds.held_bytes == counted(gateway) <= LIMITS.feed_bytes


def test_many_stores_and_laggards_stay_within_one_bound() -> None:
    world = SimulatedWorld("feeds")
    gateway = Gateway(world, "f", LIMITS).open()
    nodes = [gateway.create(f"n{at}", "channel") for at in range(6)]
    consumers = [gateway.consumer(node, "durable", f"d{at}") for at in range(4) for node in nodes]
    published = {node.store: gateway.publish(node, [BODY] * 300) for node in nodes}
    got: dict[Consumer, list[int]] = {consumer: [] for consumer in consumers}
    widest = turns = 0
    while any(len(eids) < 300 for eids in got.values()):
        for at, consumer in enumerate(consumers):
            if turns % (1 + at // 6) == 0:  # some are slower than others
                got[consumer] += consumer.take(7 + at)
            bounded(gateway)
            widest = max(widest, gateway.realm._feeds.held_bytes)
        gateway.turn()
        turns += 1
        assert turns < 5_000, "somebody starves"
    assert all(eids == published[consumer.subscription.node.store] for consumer, eids in got.items())
    assert widest > LIMITS.feed_bytes * 3 // 4, "the bound was never near"
    for consumer in consumers:
        assert consumer.settle("return", got[consumer][:300:7]) == "done"
    again: dict[Consumer, list[int]] = {consumer: [] for consumer in consumers}
    while any(len(eids) < 43 for eids in again.values()):
        for consumer in consumers:
            again[consumer] += consumer.take(50)
            bounded(gateway)
        gateway.turn()
        turns += 1
        assert turns < 20_000, "somebody starves"
    assert all(eids == got[consumer][:300:7] for consumer, eids in again.items())
    for consumer in consumers:
        assert isinstance(consumer.subscription, DurableSubscription)
        consumer.subscription.close()
    assert gateway.realm._feeds.held_bytes == counted(gateway) == 0
    world.close()
