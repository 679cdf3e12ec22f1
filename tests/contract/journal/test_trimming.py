"""The contract of the realm, continued: what has ended leaves the log, in its time and not before."""

from __future__ import annotations

from native_backend.limits import RealmLimits
from tests.contract.test_realm_dead_letters import entries
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

SOON = RealmLimits(retain_s=0.2, trim_interval_s=0.02)


def test_ended_events_are_trimmed_and_no_others(start: Start) -> None:
    gateway = start(SOON)
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(30))
    consumer = gateway.consumer(node)
    consumer.receive(30)
    consumer.acknowledge(eids[:12] + eids[20:25])
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[0] >= eids[12], "they are trimmed")
    assert gateway.log.bounds(node.topic, 0)[0] == eids[12]
    (*_, last) = entries(gateway, "trimmed")
    assert (last["node"], last["durable"], last["runs"][-1][1]) == ("orders", "", eids[12] - 1)  # type: ignore[index]
    assert consumer.settle("return", eids[12:20]) == "done"
    assert consumer.receive(8) == eids[12:20]
    consumer.acknowledge(eids[12:20] + eids[25:])
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[0] >= eids[-1], "the rest is trimmed")
    gateway.kill()
    later = start(SOON)
    more = later.publish(node, bodies(2))
    assert later.consumer(node).receive(2) == more


def test_what_is_young_stays(start: Start) -> None:
    gateway = start(RealmLimits(retain_s=3600, trim_interval_s=0.01))
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(5))
    consumer = gateway.consumer(node)
    consumer.receive(5)
    consumer.acknowledge(eids)
    consumer.drain()
    assert gateway.log.bounds(node.topic, 0)[0] <= eids[0]
    assert entries(gateway, "trimmed") == []


def test_a_channel_keeps_what_its_durables_have_seen(start: Start) -> None:
    gateway = start(SOON)
    node = gateway.create("news", "channel")
    durable = gateway.consumer(node, "durable", "a:b")
    eids = gateway.publish(node, bodies(5))
    durable.receive(5)
    durable.acknowledge(eids)
    durable.drain()
    assert gateway.log.bounds(node.topic, 0)[0] <= eids[0]


def test_closing_waits_for_nothing_that_is_begun_again_and_again(start: Start) -> None:
    gateway = start(RealmLimits(trim_interval_s=0.0, evidence_s=0.0, command_interval_s=0.0, metadata_interval_s=0.0))
    for name in ("orders", "bills", "letters"):
        node = gateway.create(name)
        eids = gateway.publish(node, bodies(3))
        consumer = gateway.consumer(node)
        consumer.receive(3)
        consumer.acknowledge(eids)
    gateway.dead = True
    began_s = gateway.clock.monotonic_s()
    gateway.realm.close(60.0)
    assert gateway.clock.monotonic_s() - began_s < 30.0
