"""The contract of the realm, continued: a failed event rests before it is given again, across restarts too; on nodes
of one store and of several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.limits import RealmLimits
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.subscriptions.partitioned import eids_of, partition_of
from tests.contract.actions import create, entries
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store, stores_of

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD

DELAY_MS = 300


def now_ms(realm: RealmProcess) -> int:
    return realm.clock.epoch_us() // 1000


def failed(realm: RealmProcess, properties: Properties, count: int = 6) -> tuple[Node, list[int], Consumer, int]:
    """A node, its events, all of them given and failed once, and when that was asked for."""
    node = create(realm, "orders", properties)
    eids = realm.publish(node, bodies(count))
    consumer = realm.consumer(node)
    consumer.receive(count)
    asked_ms = now_ms(realm)
    assert consumer.settle("return", eids, failed=True) == "done"
    return node, eids, consumer, asked_ms


def test_a_failed_event_is_not_given_before_its_time(realm: RealmProcess) -> None:
    node, eids, consumer, asked_ms = failed(realm, Properties(redelivery_delay_ms=DELAY_MS))
    late = realm.publish(node, bodies(1))
    assert consumer.receive(1) == late  # what failed blocks no one
    assert by_store(consumer.receive(6)) == by_store(eids)
    assert now_ms(realm) >= asked_ms + DELAY_MS
    assert [consumer.failed[eid] for eid in eids] == [1] * 6
    consumer.acknowledge([*eids, *late])
    assert realm.has_ended(node, [*eids, *late])


def test_what_is_released_comes_back_at_once(realm: RealmProcess) -> None:
    node = create(realm, "orders", Properties(redelivery_delay_ms=3_600_000))
    eids = realm.publish(node, bodies(6))
    consumer = realm.consumer(node)
    consumer.receive(6)
    assert consumer.settle("return", eids) == "done"
    assert by_store(consumer.receive(6)) == by_store(eids)


@pytest.mark.parametrize("snapshots", [False, True])
def test_delays_survive_a_kill(start: Start, snapshots: bool) -> None:
    """From the journal, and from snapshots that have them in several parts."""
    limits = RealmLimits(snapshot_records=1, snapshot_bytes=700) if snapshots else RealmLimits()
    realm = start(limits)
    node, eids, consumer, _ = failed(realm, Properties(redelivery_delay_ms=3_600_000), 40)
    realm.publish(node, bodies(60))
    consumer.receive(60)
    for at in range(0, 40, 3):  # ranges that do not touch
        (eid,) = eids_of([eids[at]])
        realm.states(node)[partition_of(eids[at])].delayed.add(eid, eid, now_ms(realm) + 7_200_000 + at * 1000)
    others = [eid for eid in consumer.seqs if eid not in eids]
    consumer.acknowledge(others[::2])
    realm.until(lambda: not context_of(realm.realm).journal.busy and not realm.workers.pending, "snapshots")
    realm.kill()
    later = start(limits)
    again = later.consumer(node)
    assert by_store(again.drain()) == by_store(others[1::2])
    for at, state in enumerate(later.states(node)):
        assert {first for _, first, _ in state.delayed} >= {eids_of(by_store(eids)[at])[0]}
    again.acknowledge(others[1::2])


def test_what_was_delayed_comes_back_after_a_restart(start: Start) -> None:
    realm = start()
    node, eids, _, asked_ms = failed(realm, Properties(redelivery_delay_ms=DELAY_MS))
    realm.close()
    later = start()
    assert by_store(later.consumer(node).receive(6)) == by_store(eids)
    assert now_ms(later) >= asked_ms + DELAY_MS


def test_delays_grow_with_the_attempts_of_each_event(realm: RealmProcess) -> None:
    """One settlement of events that have failed differently often: one answer a store, and a time for each."""
    growing = Properties(redelivery_delay_ms=20, redelivery_delay_max_ms=3_600_000, redelivery="exponential")
    node, eids, consumer, _ = failed(realm, growing, 12)
    consumer.receive(12)
    assert consumer.settle("return", eids[:6], failed=True) == "done"
    consumer.receive(6)
    assert consumer.settle("return", eids, failed=True) == "done"
    consumer.receive(12)
    assert [consumer.failed[eid] for eid in eids] == [3] * 6 + [2] * 6
    for part in node.parts:
        times = sorted(entry["not_before"] for entry in entries(realm, "return") if entry["store"] == part.store)
        assert times[-1] - times[-2] == 80 - 40
    assert realm.answers == []


def last_attempts(consumer: Consumer, eids: list[int]) -> list[bool]:
    """Asked store by store, as a link does."""
    return [
        last for some in stores_of(eids) for last in consumer.subscription.last_attempts(some) or [False] * len(some)
    ]


def test_attempts_and_delays_are_set_while_consumers_are_there(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.01))
    node = realm.create("orders")
    eids = realm.publish(node, bodies(6))
    consumer = realm.consumer(node)
    consumer.receive(6)
    assert consumer.settle("return", eids, failed=True) == "done"
    assert by_store(consumer.receive(6)) == by_store(eids), "at once"
    assert last_attempts(consumer, eids) == [False] * 6, "for ever"
    growing = {"redelivery_delay_ms": DELAY_MS, "redelivery": "linear", "redelivery_delay_max_ms": 10**6}
    late = replace(node.properties, attempts=2, **growing)  # type: ignore[arg-type]
    set_properties(realm.world.open(), realm.prefix, "orders", lambda _: late, realm.clock)
    realm.until(lambda: realm.realm.node("orders").properties == late, "it is seen")  # type: ignore[union-attr]
    assert last_attempts(consumer, eids) == [True] * 6
    asked_ms = now_ms(realm)
    assert consumer.settle("return", eids, failed=True) == "done"
    assert by_store(consumer.receive(6)) == by_store(eids)
    assert now_ms(realm) >= asked_ms + 2 * DELAY_MS, "the second attempt"
    set_properties(realm.world.open(), realm.prefix, "orders", lambda _: node.properties, realm.clock)
    realm.until(lambda: realm.realm.node("orders").properties == node.properties, "it is seen")  # type: ignore[union-attr]
    assert last_attempts(consumer, eids) == [False] * 6
    assert consumer.settle("return", eids, failed=True) == "done"
    assert by_store(consumer.receive(6)) == by_store(eids)
