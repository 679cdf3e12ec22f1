"""What raw events take in memory, over all stores and all that lag behind: bounded, wherever each one reads."""

from __future__ import annotations

from typing import Any

from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, Log, Reader
from native_backend.subscriptions.durable_subscription import DurableSubscription
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import Consumer, RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

BODY = b"x" * 100
LIMITS = RealmLimits(
    feed_bytes=20_000, window_bytes=15_000, chunk_bytes=2_000, read_count=20, readers=3, reader_turn_s=0.0
)


def counted(realm: RealmProcess) -> int:
    """Once more, from what is there."""
    feeds = context_of(realm.realm).windows
    windows = sum(chunk.size for feed in feeds._windows.values() for chunk in feed._chunks)
    lagging = sum(cursor.tail.chunk.size for cursor in feeds._lagging if cursor.tail and cursor.tail.chunk)
    return windows + lagging + sum(chunk.size for chunk in feeds._again.values())


def bounded(realm: RealmProcess) -> None:
    assert context_of(realm.realm).windows.held_bytes == counted(realm) <= LIMITS.feed_bytes


def test_many_stores_and_laggards_stay_within_one_bound() -> None:
    world = SimulatedWorld("feeds")
    realm = RealmProcess(world, "f", LIMITS).open()
    nodes = [realm.create(f"n{at}", "channel") for at in range(6)]
    consumers = [realm.consumer(node, "durable", f"d{at}") for at in range(4) for node in nodes]
    published = {node.store: realm.publish(node, [BODY] * 300) for node in nodes}
    got: dict[Consumer, list[int]] = {consumer: [] for consumer in consumers}
    widest = turns = 0
    while any(len(eids) < 300 for eids in got.values()):
        for at, consumer in enumerate(consumers):
            if turns % (1 + at // 6) == 0:  # some are slower than others
                got[consumer] += consumer.take(7 + at)
            bounded(realm)
            widest = max(widest, context_of(realm.realm).windows.held_bytes)
        realm.turn()
        turns += 1
        assert turns < 5_000, "someone starves"
    assert all(eids == published[consumer.subscription.node.store] for consumer, eids in got.items())
    assert widest > LIMITS.feed_bytes * 3 // 4, "the bound was never near"
    for consumer in consumers:
        assert consumer.settle("return", got[consumer][:300:7]) == "done"
    again: dict[Consumer, list[int]] = {consumer: [] for consumer in consumers}
    while any(len(eids) < 43 for eids in again.values()):
        for consumer in consumers:
            again[consumer] += consumer.take(50)
            bounded(realm)
        realm.turn()
        turns += 1
        assert turns < 20_000, "someone starves"
    assert all(eids == got[consumer][:300:7] for consumer, eids in again.items())
    for consumer in consumers:
        assert isinstance(consumer.subscription, DurableSubscription)
        consumer.subscription.close()
    assert context_of(realm.realm).windows.held_bytes == counted(realm) == 0
    world.close()


class LateReader:
    """It brings nothing at first, as a consumer of Kafka does."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._left = reader, 3

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read(self, count_max: int) -> tuple[list[int], list[bytes], list[bytes | None]] | Failure | None:
        self._left -= 1
        return None if self._left >= 0 else self._reader.read(count_max)


class LateWorld(SimulatedWorld):
    def open(self) -> Log:
        log = super().open()
        opened = log.open_reader
        log.open_reader = lambda *position: LateReader(opened(*position))  # type: ignore[method-assign]
        return log


def test_a_reader_that_takes_a_while_to_begin_is_not_taken_away_before() -> None:
    """More lag behind than there are readers: taken away at once, none of them would ever bring anything."""
    world = LateWorld("late")
    realm = RealmProcess(world, "l", LIMITS).open()
    node = realm.create("news", "channel")
    consumers = [realm.consumer(node, "durable", f"d{at}") for at in range(5)]
    eids = realm.publish(node, [BODY] * 300)
    got: dict[Consumer, list[int]] = {consumer: [] for consumer in consumers}
    assert consumers[0].receive(300) == eids, "the window has gone on, the others lag behind"
    for turns in range(5_000):  # noqa: B007  # a bound, and no count
        for consumer in consumers[1:]:
            got[consumer] += consumer.take(30)
        if all(got[consumer] == eids for consumer in consumers[1:]):
            break
        realm.turn()
    assert [len(got[consumer]) for consumer in consumers[1:]] == [300] * 4
    world.close()
