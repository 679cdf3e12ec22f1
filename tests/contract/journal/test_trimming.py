"""The contract of the realm, continued: what has ended leaves the log, in its time and not before."""

from __future__ import annotations

from native_backend.limits import RealmLimits
from tests.contract.actions import entries
from tests.kit.realm.fixtures import Start, bodies, realm, start, world

__all__ = ["realm", "start", "world"]  # fixtures

SOON = RealmLimits(retain_s=0.2, trim_interval_s=0.02)


def test_ended_events_are_trimmed_and_no_others(start: Start) -> None:
    realm = start(SOON)
    node = realm.create("orders")
    eids = realm.publish(node, bodies(30))
    consumer = realm.consumer(node)
    consumer.receive(30)
    consumer.acknowledge(eids[:12] + eids[20:25])
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[0] >= eids[12], "they are trimmed")
    assert realm.log.control.bounds(node.topic, 0)[0] == eids[12]
    (*_, last) = entries(realm, "trimmed")
    assert (last["node"], last["durable"], last["runs"][-1][1]) == ("orders", "", eids[12] - 1)
    assert consumer.settle("return", eids[12:20]) == "done"
    assert consumer.receive(8) == eids[12:20]
    consumer.acknowledge(eids[12:20] + eids[25:])
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[0] >= eids[-1], "the rest is trimmed")
    realm.kill()
    later = start(SOON)
    more = later.publish(node, bodies(2))
    assert later.consumer(node).receive(2) == more


def test_what_is_young_stays(start: Start) -> None:
    realm = start(RealmLimits(retain_s=3600, trim_interval_s=0.01))
    node = realm.create("orders")
    eids = realm.publish(node, bodies(5))
    consumer = realm.consumer(node)
    consumer.receive(5)
    consumer.acknowledge(eids)
    consumer.drain()
    assert realm.log.control.bounds(node.topic, 0)[0] <= eids[0]
    assert entries(realm, "trimmed") == []


def test_a_channel_keeps_what_its_durables_have_seen(start: Start) -> None:
    realm = start(SOON)
    node = realm.create("news", "channel")
    durable = realm.consumer(node, "durable", "a:b")
    eids = realm.publish(node, bodies(5))
    durable.receive(5)
    durable.acknowledge(eids)
    durable.drain()
    assert realm.log.control.bounds(node.topic, 0)[0] <= eids[0]


def test_closing_waits_for_nothing_that_is_begun_again_and_again(start: Start) -> None:
    realm = start(RealmLimits(trim_interval_s=0.0, evidence_s=0.0, command_interval_s=0.0, metadata_interval_s=0.0))
    for name in ("orders", "bills", "letters"):
        node = realm.create(name)
        eids = realm.publish(node, bodies(3))
        consumer = realm.consumer(node)
        consumer.receive(3)
        consumer.acknowledge(eids)
    realm.dead = True
    began_s = realm.clock.monotonic_s()
    realm.realm.close(60.0)
    assert realm.clock.monotonic_s() - began_s < 30.0
