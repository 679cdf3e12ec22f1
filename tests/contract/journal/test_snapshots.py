"""The contract of the realm: snapshots of any size, and what a kill leaves of them; on nodes of one store and of
several. See docs/records.md."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest

from native_backend.journal.snapshot import StateCopy, encode_snapshot, snapshot_key, state_topic
from native_backend.limits import RealmLimits
from native_backend.log.port import Control, Failure, LogError
from native_backend.nodes import admin
from native_backend.nodes.node import Node
from native_backend.state.ack_state import AckState
from native_backend.subscriptions.partitioned import eids_of
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of, shard_of
from tests.kit.realm.other_control import OtherControl, answer_control
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
PARTS = RealmLimits(snapshot_bytes=1_000, snapshot_records=1_000_000)  # a part has about fifteen ranges


def state_records(realm: RealmProcess) -> dict[bytes, bytes]:
    """What compaction leaves of the state topic."""
    topic = state_topic(realm.prefix)
    records: dict[bytes, bytes] = {}
    start, end = realm.log.control.bounds(topic, 0)
    while start < end:
        batch = realm.log.control.read_range(topic, 0, start, 1000)
        for key, value in zip(batch.keys, batch.values, strict=True):
            if key is not None and value is not None:
                records[key] = value
            elif key is not None:
                records.pop(key, None)
        start = batch.next
    return records


def each(eids: dict[int, list[int]], stretch: slice) -> list[int]:
    """That stretch of every store."""
    return [eid for some in eids.values() for eid in some[stretch]]


def scattered(realm: RealmProcess) -> tuple[Node, dict[int, list[int]], Consumer]:
    """A queue of 120 events a store, of which every second one is settled and three have failed attempts."""
    node = realm.create("orders")
    eids = by_store(realm.publish(node, bodies(120 * node.partitions)))
    consumer = realm.consumer(node)
    consumer.receive(120 * node.partitions)
    consumer.acknowledge(each(eids, slice(1, 120, 2)))
    assert consumer.settle("return", each(eids, slice(0, 5, 2)), failed=True) == "done"
    return node, eids, consumer


def left(eids: dict[int, list[int]], begin: int = 0) -> dict[int, list[int]]:
    """What is not settled, without the first ones of each store."""
    return {at: some[begin::2] for at, some in eids.items()}


def received(consumer: Consumer, count: int) -> dict[int, list[int]]:
    return by_store(consumer.receive(count * consumer.subscription.node.partitions))


@SPREAD
def test_a_state_that_one_record_cannot_hold_is_kept_in_parts(start: Start) -> None:
    first = start(PARTS)
    node, eids, _ = scattered(first)
    first.close()
    later = start(PARTS)
    records = state_records(later)
    assert max(map(len, records.values())) <= 1_000
    all_parts = [orjson.loads(value) for value in records.values()]
    for store in (part.store for part in node.parts):
        parts = [part for part in all_parts if part["store"] == store]
        assert len(parts) >= 4
        assert {part["parts"] for part in parts} == {len(parts)}
        assert sorted(part["part"] for part in parts) == [*range(len(parts))]
        assert len({part["set"] for part in parts}) == 1
    later.log.control.trim(f"{later.prefix}.journal", 0, min(part["journal"] for part in all_parts))
    later.kill()
    again = start(PARTS).consumer(node)
    assert received(again, 60) == left(eids)
    assert [again.failed[eid] for eid in each(eids, slice(0, 8, 2))] == [1, 1, 1, 0] * node.partitions
    assert again.drain() == []


@SPREAD
def test_a_smaller_snapshot_leaves_nothing_of_the_larger_one(start: Start) -> None:
    first = start(PARTS)
    _, eids, _ = scattered(first)
    first.close()
    second = start(PARTS)
    assert len(state_records(second)) >= 4
    node = second.realm.node("orders")
    assert node is not None
    consumer = second.consumer(node)
    received(consumer, 60)
    consumer.acknowledge(each(eids, slice(0, 120, 2)))
    second.close()
    third = start(PARTS)
    lows = {
        (record["store"], record["parts"]): record["low"] for record in map(orjson.loads, state_records(third).values())
    }
    assert {*lows} == {(part.store, 1) for part in node.parts}
    for part in node.parts:
        last = eids_of(eids[part.partition])[-1]
        assert lows[part.store, 1] > last
    assert third.consumer(node).drain() == []


class Torn(OtherControl):
    """Stores only the first few of several records put at once."""

    def __init__(self, control: Control, stored: int) -> None:
        super().__init__(control)
        self._stored = stored

    def put_all(
        self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline_s: float = 10.0
    ) -> list[int]:
        if len(keys) == 1:
            return self._control.put_all(topic, keys, values, deadline_s)
        self._control.put_all(topic, keys[: self._stored], values[: self._stored], deadline_s)
        raise LogError(Failure("unavailable", "torn"))


@SPREAD
@pytest.mark.parametrize("stored", [0, 1, 3])
def test_a_torn_set_of_parts_is_never_used(start: Start, stored: int) -> None:
    first = start(PARTS)
    node, eids, _ = scattered(first)
    first.close()
    second = start(PARTS)
    consumer = second.consumer(node)
    whole = state_records(second)
    received(consumer, 60)
    consumer.acknowledge(each(eids, slice(0, 20, 2)))
    answer_control(second, Torn(second.log.control, stored))
    second.close()
    third = start(PARTS)
    torn = state_records(third)
    assert whole.items() <= torn.items()
    assert len(torn) == len(whole) + stored
    again = third.consumer(node)
    assert received(again, 50) == left(eids, 20)
    third.close()
    last = start(PARTS)
    assert {orjson.loads(value)["set"].split(":")[0] for value in state_records(last).values()} == {third.run}
    assert received(last.consumer(node), 50) == left(eids, 20)


@SPREAD
def test_each_durable_has_one_snapshot_after_many_rounds(start: Start) -> None:
    realm = start(RealmLimits(snapshot_records=2, snapshot_batch=2, snapshot_bytes=1_000))
    news = realm.create("news", "channel")
    consumers = [realm.consumer(news, "durable", f"d{at}") for at in range(5)]
    eids = realm.publish(news, bodies(60))
    for consumer in consumers:
        consumer.receive(60)
    for at in range(1, 60, 2):
        for consumer in consumers:
            consumer.start("acknowledge", [eids[at]])
        realm.turn()  # a slow log would make one record of many turns, and few rounds of them
        realm.until(lambda: not context_of(realm.realm).journal.busy, "the journal")
        realm.until(lambda: not context_of(realm.realm).worker.pending, "the snapshots")
    sets: dict[tuple[str, int], set[str]] = {}
    for value in state_records(realm).values():
        part = orjson.loads(value)
        sets.setdefault((part["durable"], part["store"]), set()).add(part["set"])
    durables = [(f"d{at}", part.store) for at in range(5) for part in news.parts]
    assert {durable: len(names) for durable, names in sets.items()} == dict.fromkeys(durables, 1)
    needed = shard_of(realm.realm).snapshots.needed
    assert needed is not None
    assert needed > 1
    realm.kill()
    later = start()
    for at in range(5):
        assert by_store(later.consumer(news, "durable", f"d{at}").receive(30)) == by_store(eids[0::2])


@SPREAD
def test_a_deleted_node_leaves_no_snapshot(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.05))
    node, _, _ = scattered(realm)
    assert {orjson.loads(value)["store"] for value in state_records(realm).values()} == {
        part.store for part in node.parts
    }
    admin.delete_node(realm.world.open(), realm.prefix, "orders")
    realm.until(lambda: realm.realm.node("orders") is None, "the node to go")
    realm.until(lambda: state_records(realm) == {}, "its snapshots to go")


@SPREAD
def test_what_a_process_writes_that_owns_the_realm_no_more_replaces_nothing(start: Start) -> None:
    """It was stopped between the copy of a state and its put, for so long that another one took over."""
    first = start(PARTS)
    node = first.create("orders")
    eids = first.publish(node, bodies(30))
    lows = {at: eids_of(some)[0] for at, some in by_store(eids).items()}
    zombie = [
        StateCopy(node.name, "queue", part.store, 1, False, AckState(lows[part.partition])) for part in node.parts
    ]
    first.kill()
    second = start(PARTS)
    consumer = second.consumer(node)
    consumer.receive(30)
    consumer.acknowledge(eids[:20])
    second.close()
    late = start(PARTS)
    needed = shard_of(late.realm).snapshots.needed
    late.close()
    log = second.world.open()
    for at, copy in enumerate(zombie):
        for key, value in encode_snapshot(copy, f"{first.run}:{at}", 900_000):
            log.control.put(state_topic(second.prefix), key, value)
    third = start(PARTS)
    assert needed is not None and needed > max(copy.journal for copy in zombie)
    seen = shard_of(third.realm).snapshots.needed
    assert seen is not None and seen >= needed
    assert by_store(third.consumer(node).receive(10)) == by_store(eids[20:])


@SPREAD
def test_a_durable_that_is_deleted_while_its_snapshot_is_on_its_way_has_none(start: Start) -> None:
    """It would come back, and the journal from there on be kept for it."""
    realm = start()
    node = realm.create("orders")
    realm.consumer(node)
    realm.publish(node, bodies(6))
    snapshots, keys = shard_of(realm.realm).snapshots, [(part.store, "queue") for part in node.parts]
    snapshots.hurry(keys)
    for part in node.parts:
        snapshots.forget(part.store)
    realm.until(lambda: not context_of(realm.realm).worker.pending, "the snapshots")
    assert not any(snapshots.covers([key]) for key in keys)
    assert state_records(realm) == {}


def test_a_snapshot_of_the_version_before_is_read_and_one_of_a_later_version_refused(start: Start) -> None:
    realm = start()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(6))
    old = {"v": 1, "node": "orders", "durable": "queue", "store": node.store, "journal": 1, "low": eids[1]}
    old |= {"acked": [[eids[3], eids[4]]], "failed": [[eids[2], 7]], "position": eids[5], "closed": 1}
    topic, key = state_topic(realm.prefix), snapshot_key(node.store, "queue")
    realm.log.control.put(topic, key, orjson.dumps(old))
    realm.kill()
    second = start()
    again = second.consumer(node)
    assert again.receive(3) == [eids[1], eids[2], eids[5]]
    assert [again.failed[eid] for eid in (eids[1], eids[2])] == [0, 7]
    second.log.control.put(topic, key, orjson.dumps(old | {"v": 3}))
    second.kill()
    with pytest.raises(LogError, match="has version 3; this release knows 1 and 2"):
        start()


def test_the_parts_of_a_large_state_are_all_below_the_bound() -> None:
    state = AckState(10**12, 10**12 + 400_000)
    for eid in range(10**12 + 1, 10**12 + 200_000, 2):
        state.acked.add(eid, eid)
    state.failed = {10**12 + eid: 10**6 + eid for eid in range(0, 1000, 2)}
    parts = encode_snapshot(StateCopy("orders", "queue", 10**12 - 1, 10**12, False, state), "run:1", 50_000)
    assert all(len(value) <= 50_000 for _, value in parts)
    assert len(parts) < 3 * sum(len(value) for _, value in parts) / 50_000
