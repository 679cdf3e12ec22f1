"""The contract of the realm: an event that stays open holds back nothing but itself; on nodes of one store and of
several."""

from __future__ import annotations

from random import Random

from native_backend.limits import RealmLimits
from native_backend.metrics import DurableMetrics
from native_backend.subscriptions.partitioned import eids_of
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD
EVENTS = 3_000


def durables(realm: RealmProcess) -> list[DurableMetrics]:
    """Of each store, in the order of the partitions."""
    metrics = [durable for durable in realm.realm.metrics.durables() if durable is not None]
    return sorted(metrics, key=lambda durable: durable.partition)


def test_a_hole_at_the_first_event_is_held_and_seen_and_survives_a_kill(start: Start) -> None:
    limits = RealmLimits(snapshot_records=3)
    first = start(limits)
    node = first.create("orders")
    eids = by_store(first.publish(node, bodies(EVENTS)))
    heads = [some[0] for some in eids.values()]
    consumer = first.consumer(node)
    consumer.receive(EVENTS)
    rest = [eid for some in eids.values() for eid in some[1:]]
    Random(3).shuffle(rest)
    for at in range(0, EVENTS, 300):
        consumer.acknowledge(rest[at : at + 300])
    above = [(eids_of(some)[0] + 1, 1, 1) for _, some in sorted(eids.items())]  # some logs leave EIDs out at the bottom
    assert [(durable.low + durable.hole, durable.ranges, durable.links) for durable in durables(first)] == above
    assert all(durable.hole >= 1 for durable in durables(first))
    first.kill()
    second = start(limits)
    again = second.consumer(node)
    assert sorted(again.receive(len(heads))) == sorted(heads)
    assert all(again.again[eid] for eid in heads)
    assert again.drain() == []
    again.acknowledge(heads)
    ends = [(eids_of(some)[-1] + 1, 0, 0) for _, some in sorted(eids.items())]
    assert [(durable.low, durable.hole, durable.ranges) for durable in durables(second)] == ends
