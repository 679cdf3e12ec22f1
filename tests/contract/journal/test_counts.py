"""The contract of the realm, continued: how many messages there are is exact, for every queue, durable and channel,
from the start, and a group's lag is that number; on nodes of one store and of several."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import reduce
from operator import add
from zlib import crc32

import pytest

from native_backend.events.message_counts import MessageCounts
from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, LogError
from native_backend.nodes.admin import show_node
from native_backend.nodes.durable import QUEUE, Durable
from native_backend.nodes.group_offset import low_of
from native_backend.nodes.metadata_writer import realm_metadata
from native_backend.nodes.node import Node
from native_backend.shard import state_reader as observing
from tests.contract.actions import await_shown
from tests.contract.recovery.counted_run import CountedRun
from tests.kit.patience import HANG_S
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import shard_of
from tests.kit.realm.realm_process import RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures

PATIENCE_S = HANG_S  # a broker on busy cores takes its time
SOON = RealmLimits(count_interval_s=0.05, count_round_s=0.1, count_records=7, projection_interval_s=0.05)


def counts(realm: RealmProcess, node: Node, durable: str = QUEUE) -> MessageCounts | None:
    """As metrics show it, all stores together. None: they are being counted."""
    numbers = [
        row.counts
        for row in realm.realm.metrics.durables()
        if row is not None and (row.node, row.durable) == (node.name, durable)
    ]
    assert len(numbers) == node.partitions
    known = [number for number in numbers if number is not None]
    return reduce(add, known) if len(known) == len(numbers) else None


def stored(realm: RealmProcess, node: Node) -> int | None:
    numbers = [row.stored for row in realm.realm.metrics.nodes() if row is not None and row.node == node.name]
    return sum(number for number in numbers if number is not None) if None not in numbers else None


def lag(realm: RealmProcess, node: Node, group: str) -> int:
    """As Kafka's tools compute it: of every partition the end less the group's offset. -1: there is no group."""
    offsets = realm.log.control.projected(f"{realm.prefix}.{group}")
    places = [(part.topic, part.partition) for part in node.parts]
    if any(where not in offsets for where in places):
        return -1
    return sum(realm.log.control.bounds(*where)[1] - offsets[where][0] for where in places)


def agrees(run: CountedRun) -> None:
    """Waits until it does; the assertion shows what it is in the end."""
    realm, queue, channel = run.realm, run.queue, run.channel
    wanted, of_durable = run.truth(queue), run.truth(channel)

    def differ() -> list[tuple[str, object, object]]:
        dead, letters = counts(realm, run.dead), run.letters()
        pairs = [
            ("queue", counts(realm, queue), wanted),
            ("durable", counts(realm, channel, "d"), of_durable),
            ("letters", dead and dead.available, letters),
            ("stored in the queue", stored(realm, queue), wanted.stored),
            ("stored in the channel", stored(realm, channel), run.kept),
            ("lag of the queue", lag(realm, queue, "queue.orders"), wanted.stored),
            ("lag of the durable", lag(realm, channel, "durable.news.d"), of_durable.stored),
            ("lag of the letters", lag(realm, run.dead, "queue.dead"), letters),
        ]
        return [pair for pair in pairs if pair[1] != pair[2]]

    deadline = time.monotonic() + PATIENCE_S
    while (different := differ()) and time.monotonic() < deadline:
        realm.turn()
    assert different == []


@pytest.mark.parametrize("stores", [1, 2, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_are_those_of_the_messages(start: Start, stores: int, seed: int) -> None:
    realm = start(SOON)
    run = CountedRun(realm, stores, seed)
    for at in range(60):
        run.step()
        if at % 20 == 19:
            agrees(run)
    realm.kill()
    later = start(SOON)
    run.die(later)
    agrees(run)
    for _ in range(20):
        run.step()
    agrees(run)


@SPREAD
def test_a_queue_without_a_consumer_has_its_numbers_and_its_group(realm: RealmProcess, start: Start) -> None:
    node = realm.create("orders")
    realm.publish(node, bodies(5))
    realm.publish(node, bodies(3))
    realm.close()
    later = start(SOON)
    there = later.find("orders")
    assert there is not None
    later.until(lambda: counts(later, there) == MessageCounts(8, 8, 0, 0), "the number")
    later.until(lambda: lag(later, there, "queue.orders") == 8, "the group")
    links = [durable.links for durable in later.realm.metrics.durables() if durable is not None]
    assert links == [0] * node.partitions, "no consumer opened it"


HOUR_S = 3600


def ages_h(realm: RealmProcess) -> dict[str, float | None]:
    """Of the oldest message of each node and durable, in whole hours; None: it is not known of a store."""
    oldest: dict[str, list[float | None]] = {}
    for node in realm.realm.metrics.nodes():
        if node is not None:
            oldest.setdefault(node.node, []).append(node.oldest_s)
    for durable in realm.realm.metrics.durables():
        if durable is not None:
            oldest.setdefault(f"{durable.node} {durable.durable}", []).append(durable.oldest_s)
    known = {name: [age for age in ages if age is not None] for name, ages in oldest.items()}
    return {name: max(ages) // HOUR_S if len(ages) == len(oldest[name]) else None for name, ages in known.items()}


@SPREAD
def test_the_oldest_message_has_its_age(start: Start) -> None:
    realm = start(SOON)
    queue, channel = realm.create("orders"), realm.create("news", "channel")
    realm.consumer(channel, "durable", "d").subscription.close()
    realm.until(lambda: None not in ages_h(realm).values(), "the stores to be known: the log's own clock is not moved")
    places = [realm.publish(node, bodies(6)) for node in (queue, channel)]
    realm.clock.move(3 * HOUR_S * 1000)
    for node in (queue, channel):
        realm.publish(node, bodies(6))
    realm.clock.move(HOUR_S * 1000)
    wanted = {"orders": 4, "orders queue": 4, "news": 4, "news d": 4}
    realm.until(lambda: ages_h(realm) == wanted, "the ages")
    consumers = realm.consumer(queue), realm.consumer(channel, "durable", "d")
    for consumer, old in zip(consumers, places, strict=True):
        consumer.receive(12)
        consumer.acknowledge(old[1:])
    assert ages_h(realm) == wanted, "the oldest one is still there"
    for consumer, old in zip(consumers, places, strict=True):
        consumer.acknowledge(old[:1])
    assert ages_h(realm) == {**wanted, "orders": 1, "orders queue": 1, "news d": 1}, "a channel keeps what it had"
    for consumer, old in zip(consumers, places, strict=True):
        consumer.acknowledge([eid for eid in consumer.seqs if eid not in old])
    assert ages_h(realm) == {"orders": 0, "orders queue": 0, "news": 4, "news d": 0}
    realm.close()
    later = start(SOON)
    later.clock.move(7 * HOUR_S * 1000)
    later.until(lambda: None not in ages_h(later).values(), "the ages after a restart")
    assert ages_h(later) == {"orders": 0, "orders queue": 0, "news": 7, "news d": 0}, "as the log has it"


@SPREAD
def test_no_number_is_shown_before_it_is_known(start: Start) -> None:
    first = start()
    node = first.create("orders")
    first.publish(node, bodies(30))
    first.close()
    realm = start(replace(SOON, count_interval_s=10_000.0))
    shard_of(realm.realm).counting.timer.stop()
    for _ in range(50):
        realm.turn()
    assert counts(realm, node) is None
    assert stored(realm, node) is None
    assert ages_h(realm) == {"orders": None, "orders queue": None}
    assert realm.realm.metrics.depths.counting == node.partitions
    shard_of(realm.realm).counting.timer.soon()
    realm.until(lambda: counts(realm, node) == MessageCounts(30, 30, 0, 0), "the number")
    assert realm.realm.metrics.depths.counting == 0


@SPREAD
def test_the_group_of_a_deleted_durable_stays_away(start: Start) -> None:
    realm = start(replace(SOON, projection_interval_s=0.0))
    node = realm.create("news", "channel")
    for number in range(5):
        consumer = realm.consumer(node, "durable", "d")
        eids = realm.publish(node, bodies(6))
        assert by_store(consumer.receive(6)) == by_store(eids)
        consumer.acknowledge(eids[:4])
        group = f"{realm.prefix}.durable.news.d"
        realm.until(lambda group=group: bool(realm.log.control.projected(group)), f"the group, {number}")  # type: ignore[misc]
        realm.publish(node, bodies(2))
        assert realm.command("delete", node, "d").answer == "done"
        for _ in range(20):
            realm.turn()
        assert realm.log.control.projected(group) == {}


@SPREAD
def test_the_group_of_a_durable_that_could_not_be_erased_whole_stays_away(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    realm = start(replace(SOON, projection_interval_s=0.0))
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "d")
    realm.publish(node, bodies(6))
    group = f"{realm.prefix}.durable.news.d"
    realm.until(lambda: bool(realm.log.control.projected(group)), "the group")

    def erased_in_part(durable: Durable) -> None:
        realm.log.control.forget(durable.group)
        raise LogError(Failure("unavailable", "for now"))

    with monkeypatch.context() as broken:
        broken.setattr(shard_of(realm.realm), "erase", erased_in_part)
        assert realm.command("delete", node, "d").answer == "unavailable"
        realm.publish(node, bodies(2))
        for _ in range(50):
            realm.turn()
        assert realm.log.control.projected(group) == {}
    anew = realm.consumer(node, "durable", "d")
    eids = realm.publish(node, bodies(3))
    assert by_store(anew.receive(3)) == by_store(eids)
    realm.until(lambda: lag(realm, node, "durable.news.d") == 3, "the group of the durable that follows")


@SPREAD
def test_a_group_offset_of_an_earlier_release_is_read_and_written_anew(start: Start) -> None:
    first = start()
    node = first.create("orders")
    first.publish(node, bodies(9))
    consumer = first.consumer(node)
    consumer.acknowledge(consumer.receive(6))
    first.close()
    log, group = first.world.open(), f"{first.prefix}.queue.orders"
    places = [(node.topic, part.partition) for part in node.parts]
    lows = {place: low_of(log.control.projected(group)[place]) for place in places}
    old = {place: (low, f"realmgate1;1;{crc32(f'{low};1'.encode()):08x}") for place, low in lows.items()}
    log.control.project(group, old)
    shown = show_node(log, first.prefix, "orders")
    assert shown is not None
    assert {(node.topic, durable.partition): durable.low for durable in shown.durables} == lows
    later = start(SOON)
    there = later.find("orders")
    assert there is not None

    def written_anew() -> bool:
        offsets = log.control.projected(group)
        return all(offsets[place][1].startswith("realmgate2;") for place in places)

    later.until(written_anew, "the group")
    later.until(lambda: lag(later, there, "queue.orders") == 3, "its lag")
    assert {place: low_of(log.control.projected(group)[place]) for place in places} == lows


@SPREAD
def test_what_is_too_much_to_read_has_no_numbers_without_a_gateway(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    realm = start()
    node = realm.create("orders")
    await_shown(realm, node, realm.publish(node, bodies(9)))
    realm.close()
    log = realm.world.open()
    metadata = realm_metadata(log, realm.prefix)
    known = observing.count_stored(log, realm.prefix, metadata, [node])
    assert sum(count.stored for count in known.values() if count is not None) == 9
    monkeypatch.setattr(observing, "COUNTED_MAX", 2)
    assert observing.count_stored(log, realm.prefix, metadata, [node]) == {}
