"""The contract of the realm: an event that stays open holds back nothing but itself."""

from __future__ import annotations

from random import Random

from native_backend.limits import RealmLimits
from native_backend.metrics import DurableFigures
from tests.kit.realm.fixtures import Start, bodies, realm, start, world
from tests.kit.realm.realm_process import RealmProcess

__all__ = ["realm", "start", "world"]  # fixtures
EVENTS = 3_000


def durables(realm: RealmProcess) -> list[DurableFigures]:
    return [each for each in realm.realm.figures.durables() if each is not None]


def test_a_hole_at_the_first_event_is_held_and_seen_and_survives_a_kill(start: Start) -> None:
    limits = RealmLimits(snapshot_records=3)
    first = start(limits)
    node = first.create("orders")
    eids = first.publish(node, bodies(EVENTS))
    consumer = first.consumer(node)
    consumer.receive(EVENTS)
    rest = eids[1:]
    Random(3).shuffle(rest)
    for at in range(0, EVENTS, 300):
        consumer.acknowledge(rest[at : at + 300])
    (durable,) = durables(first)
    assert (durable.low, durable.hole, durable.ranges, durable.links) == (eids[0], 1, 1, 1)
    first.kill()
    second = start(limits)
    again = second.consumer(node)
    assert again.receive(1) == eids[:1]
    assert again.again[eids[0]]
    assert again.drain() == []
    again.acknowledge(eids[:1])
    (durable,) = durables(second)
    assert (durable.low, durable.hole, durable.ranges) == (eids[-1] + 1, 0, 0)
