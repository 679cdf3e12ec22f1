"""The contract of the realm, continued: nothing is given once its time is over."""

from __future__ import annotations

from dataclasses import replace

from native_backend.limits import RealmLimits
from native_backend.metadata_writer import set_properties
from native_backend.nodes import Node
from native_backend.properties import Properties
from tests.contract.test_realm_dead_letters import create, entries, stored
from tests.native_backend.gateway import Gateway
from tests.native_backend.realm_world import SMALL, Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

TTL_MS = 60_000  # passes when a test says so
LONG_MS = 3_600_000


def publish(gateway: Gateway, node: Node, ttls_ms: list[int]) -> list[int]:
    """Events with times to live of their own; 0: none."""
    keys = [b"1;basic;run;%d;1;4;%s;0;;0" % (at, b"T%d" % ttl if ttl else b"") for at, ttl in enumerate(ttls_ms, 1)]
    return gateway.publish(node, bodies(len(keys)), keys)


def wait(gateway: Gateway, ms: int) -> None:
    gateway.clock.move(ms + 1)


def expired(gateway: Gateway, node: Node, count: int) -> list[int]:
    """EIDs of a node that the journal calls expired."""
    found: list[int] = []

    def there() -> bool:
        of_node = [entry for entry in entries(gateway, "expired") if entry["node"] == node.name]
        runs = [run for entry in of_node for run in entry["runs"]]  # type: ignore[attr-defined]
        found[:] = [eid for first, last, _, _ in runs for eid in range(first, last + 1)]
        return len(found) >= count

    gateway.until(there, f"{count} expired events in the journal")
    return sorted(found)


def test_a_node_lets_events_live_so_long(gateway: Gateway) -> None:
    node = create(gateway, "orders", Properties(ttl_ms=TTL_MS))
    old = gateway.publish(node, bodies(20))
    wait(gateway, TTL_MS)
    fresh = publish(gateway, node, [LONG_MS] * 3)  # an event's own time stands for its node's
    consumer = gateway.consumer(node)
    assert consumer.receive(3) == fresh
    consumer.acknowledge(fresh)
    assert expired(gateway, node, 20) == old
    assert gateway.state(node).low == fresh[-1] + 1


def test_an_event_lives_as_long_as_it_says(start: Start) -> None:
    gateway = start(SMALL)
    node = gateway.create("orders")
    eids = publish(gateway, node, [0] * 40 + [TTL_MS, 0, LONG_MS, TTL_MS] * 25)
    wait(gateway, TTL_MS)
    consumer = gateway.consumer(node)
    dead = [*eids[40::4], *eids[43::4]]
    living = [eid for eid in eids if eid not in dead]
    assert consumer.receive(len(living)) == living
    assert consumer.drain() == []
    assert expired(gateway, node, 50) == sorted(dead)
    assert all(consumer.bodies[eid] == b"%08d" % eids.index(eid) for eid in living)


def test_a_returned_event_expires_too(start: Start) -> None:
    """From the window, and read again when that has gone."""
    for limits in (RealmLimits(), SMALL):
        gateway = start(limits)
        node = create(gateway, f"orders{limits.window_bytes}", Properties(ttl_ms=3 * TTL_MS))
        eids = gateway.publish(node, bodies(100))
        consumer = gateway.consumer(node)
        got = consumer.receive(100)
        assert consumer.settle("return", got[10:30:2], failed=True) == "done"
        wait(gateway, 3 * TTL_MS)
        assert consumer.drain() == []
        assert expired(gateway, node, 10) == eids[10:30:2]
        gateway.close()


def test_what_expired_is_a_dead_letter_and_does_not_come_back(start: Start) -> None:
    gateway = start()
    dead = gateway.create("dead")
    node = create(gateway, "orders", Properties(dead_letter="dead"))
    eids = publish(gateway, node, [TTL_MS, 0, TTL_MS])
    wait(gateway, TTL_MS)
    consumer = gateway.consumer(node)
    assert consumer.drain() == [eids[1]]
    letters = stored(gateway, dead, 2)
    assert [value for _, value in letters] == [bodies(3)[0], bodies(3)[2]]
    assert letters[0][0].startswith(b"2;%d;%d;expired;1;basic;" % (node.store, eids[0]))
    assert gateway.consumer(dead).receive(2)  # it has no time to live any more
    expired(gateway, node, 2)
    gateway.kill()
    later = start()
    assert later.consumer(node).receive(1) == [eids[1]]


def test_a_plain_subscription_gets_nothing_stale(gateway: Gateway) -> None:
    node = create(gateway, "news", Properties(ttl_ms=TTL_MS), "channel")
    plain = gateway.consumer(node, "plain")
    gateway.publish(node, bodies(5))
    wait(gateway, TTL_MS)
    fresh = publish(gateway, node, [LONG_MS] * 2)
    assert plain.receive(2) == fresh


def test_a_time_to_live_is_set_while_consumers_are_there(start: Start) -> None:
    gateway = start(RealmLimits(metadata_interval_s=0.01))
    node = gateway.create("orders")
    consumer = gateway.consumer(node)
    (first,) = gateway.publish(node, bodies(1))
    assert consumer.receive(1) == [first]
    log = gateway.world.open()
    set_properties(log, gateway.prefix, "orders", lambda old: replace(old, ttl_ms=TTL_MS), gateway.clock)
    gateway.until(lambda: gateway.realm.node("orders").properties.ttl_ms == TTL_MS, "it is seen")  # type: ignore[union-attr]
    old = gateway.publish(node, bodies(4))
    wait(gateway, TTL_MS)
    assert consumer.drain() == []
    assert expired(gateway, node, 4) == old
