"""The contract of the realm: an event that stays open holds back nothing but itself."""

from __future__ import annotations

from random import Random

from native_backend.acknowledgement import Standing
from native_backend.limits import RealmLimits
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures
EVENTS = 3_000


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
    (standing,) = first.realm.standings()
    assert standing == Standing("orders", "queue", eids[0], eids[-1] + 1, 1, 1, 0, 1)
    first.kill()
    second = start(limits)
    again = second.consumer(node)
    assert again.receive(1) == eids[:1]
    assert again.again[eids[0]]
    assert again.drain() == []
    again.acknowledge(eids[:1])
    (standing,) = second.realm.standings()
    assert (standing.low, standing.unsettled, standing.ranges) == (eids[-1] + 1, 0, 0)
