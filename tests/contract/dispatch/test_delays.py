"""The contract of the realm, continued: a failed event rests before it is given again, across restarts too."""

from __future__ import annotations

import pytest

from native_backend.limits import RealmLimits
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from tests.contract.actions import create, entries
from tests.kit.realm.fixtures import Start, bodies, realm, start, world
from tests.kit.realm.realm_process import Consumer, RealmProcess

__all__ = ["realm", "start", "world"]  # fixtures

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
    assert consumer.receive(1) == late  # what failed blocks nobody
    assert consumer.receive(6) == eids
    assert now_ms(realm) >= asked_ms + DELAY_MS
    assert [consumer.failed[eid] for eid in eids] == [1] * 6
    consumer.acknowledge([*eids, *late])
    assert realm.state(node).low == late[0] + 1


def test_what_is_released_comes_back_at_once(realm: RealmProcess) -> None:
    node = create(realm, "orders", Properties(redelivery_delay_ms=3_600_000))
    eids = realm.publish(node, bodies(2))
    consumer = realm.consumer(node)
    consumer.receive(2)
    assert consumer.settle("return", eids) == "done"
    assert consumer.receive(2) == eids


@pytest.mark.parametrize("snapshots", [False, True])
def test_delays_survive_a_kill(start: Start, snapshots: bool) -> None:
    """From the journal, and from snapshots that have them in several parts."""
    limits = RealmLimits(snapshot_records=1, snapshot_bytes=700) if snapshots else RealmLimits()
    realm = start(limits)
    node, eids, consumer, _ = failed(realm, Properties(redelivery_delay_ms=3_600_000), 40)
    realm.publish(node, bodies(60))
    consumer.receive(60)
    for at in range(0, 40, 3):  # ranges that do not touch
        realm.state(node).delayed.add(eids[at], eids[at], now_ms(realm) + 7_200_000 + at * 1000)
    others = [eid for eid in consumer.seqs if eid not in eids]
    consumer.acknowledge(others[::2])
    realm.until(lambda: not realm.realm._journal.busy and not realm.workers.pending, "snapshots")
    realm.kill()
    later = start(limits)
    again = later.consumer(node)
    assert again.drain() == others[1::2]
    assert {first for _, first, _ in later.state(node).delayed} >= {eids[0]}
    again.acknowledge(others[1::2])


def test_what_was_delayed_comes_back_after_a_restart(start: Start) -> None:
    realm = start()
    node, eids, _, asked_ms = failed(realm, Properties(redelivery_delay_ms=DELAY_MS))
    realm.close()
    later = start()
    assert later.consumer(node).receive(6) == eids
    assert now_ms(later) >= asked_ms + DELAY_MS


def test_delays_grow_with_the_attempts_of_each_event(realm: RealmProcess) -> None:
    """One settlement of events that have failed differently often: one answer, and a time for each."""
    growing = Properties(redelivery_delay_ms=20, redelivery_delay_max_ms=3_600_000, redelivery="exponential")
    _, eids, consumer, _ = failed(realm, growing, 4)
    consumer.receive(4)
    assert consumer.settle("return", eids[:2], failed=True) == "done"
    consumer.receive(2)
    assert consumer.settle("return", eids, failed=True) == "done"
    consumer.receive(4)
    assert [consumer.failed[eid] for eid in eids] == [3, 3, 2, 2]
    last = sorted((int(str(entry["not_before"])), entry["runs"]) for entry in entries(realm, "return"))[-2:]
    assert last[1][0] - last[0][0] == 80 - 40
    assert realm.answers == []


def test_attempts_and_delays_are_set_while_consumers_are_there(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.01))
    node = realm.create("orders")
    eids = realm.publish(node, bodies(2))
    consumer = realm.consumer(node)
    consumer.receive(2)
    assert consumer.settle("return", eids, failed=True) == "done"
    assert consumer.receive(2) == eids, "at once"
    assert consumer.subscription.last_attempts(eids) is None, "for ever"
    late = Properties(attempts=2, redelivery_delay_ms=DELAY_MS, redelivery="linear", redelivery_delay_max_ms=10**6)
    set_properties(realm.world.open(), realm.prefix, "orders", lambda _: late, realm.clock)
    realm.until(lambda: realm.realm.node("orders").properties == late, "it is seen")  # type: ignore[union-attr]
    assert consumer.subscription.last_attempts(eids) == [True, True]
    asked_ms = now_ms(realm)
    assert consumer.settle("return", eids, failed=True) == "done"
    assert consumer.receive(2) == eids
    assert now_ms(realm) >= asked_ms + 2 * DELAY_MS, "the second attempt"
    set_properties(realm.world.open(), realm.prefix, "orders", lambda _: Properties(), realm.clock)
    realm.until(lambda: realm.realm.node("orders").properties == Properties(), "it is seen")  # type: ignore[union-attr]
    assert consumer.subscription.last_attempts(eids) is None
    assert consumer.settle("return", eids, failed=True) == "done"
    assert consumer.receive(2) == eids
