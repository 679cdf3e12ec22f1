"""The contract of the realm, continued: nothing is given once its time is over; on nodes of one store and of
several."""

from __future__ import annotations

from dataclasses import replace

from native_backend.limits import RealmLimits
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from tests.contract.actions import LONG_MS, create, entries, places_in, publish, stored, wait
from tests.kit.realm.fixtures import SMALL, SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD

TTL_MS = 60_000  # passes when a test says so


def expired(realm: RealmProcess, node: Node, count: int) -> list[int]:
    """The places of what the journal calls expired."""
    places: list[int] = []

    def there() -> bool:
        places[:] = places_in(node, entries(realm, "expired"))
        return len(places) >= count

    realm.until(there, f"{count} expired events in the journal")
    return sorted(places)


def test_a_node_lets_events_live_so_long(realm: RealmProcess) -> None:
    node = create(realm, "orders", Properties(ttl_ms=TTL_MS))
    old = realm.publish(node, bodies(20))
    wait(realm, TTL_MS)
    fresh = publish(realm, node, [LONG_MS] * 3)  # an event's own time stands for its node's
    consumer = realm.consumer(node)
    assert by_store(consumer.receive(3)) == by_store(fresh)
    consumer.acknowledge(fresh)
    assert expired(realm, node, 20) == sorted(old)
    assert realm.has_ended(node, [*old, *fresh])


def test_an_event_lives_as_long_as_it_says(start: Start) -> None:
    realm = start(SMALL)
    node = realm.create("orders")
    eids = publish(realm, node, [0] * 40 + [TTL_MS, 0, LONG_MS, 0, TTL_MS] * 25)
    wait(realm, TTL_MS)
    consumer = realm.consumer(node)
    dead = [*eids[40::5], *eids[44::5]]
    assert len(by_store(dead)) == node.partitions
    living = [eid for eid in eids if eid not in dead]
    assert by_store(consumer.receive(len(living))) == by_store(living)
    assert consumer.drain() == []
    assert expired(realm, node, 50) == sorted(dead)
    assert all(consumer.bodies[eid] == b"%08d" % eids.index(eid) for eid in living)


def test_a_returned_event_expires_too(start: Start) -> None:
    """From the window, and read again when that has gone."""
    for limits in (RealmLimits(), SMALL):
        realm = start(limits)
        node = create(realm, f"orders{limits.window_bytes}", Properties(ttl_ms=3 * TTL_MS))
        realm.publish(node, bodies(100))
        consumer = realm.consumer(node)
        got = consumer.receive(100)
        assert consumer.settle("return", got[10:30:2], failed=True) == "done"
        wait(realm, 3 * TTL_MS)
        assert consumer.drain() == []
        assert expired(realm, node, 10) == sorted(got[10:30:2])
        realm.close()


def test_what_expired_is_a_dead_letter_and_does_not_come_back(start: Start) -> None:
    realm = start()
    dead = realm.create("dead")
    node = create(realm, "orders", Properties(dead_letter="dead"))
    eids = publish(realm, node, [TTL_MS, 0, TTL_MS])
    wait(realm, TTL_MS)
    consumer = realm.consumer(node)
    assert consumer.drain() == [eids[1]]
    letters = stored(realm, dead, 2)
    assert [value for _, value in letters] == [bodies(3)[0], bodies(3)[2]]
    assert letters[0][0].startswith(b"2;%d;%d;expired;1;basic;" % (node.store, eids[0]))
    assert realm.consumer(dead).receive(2)  # it has no time to live any more
    expired(realm, node, 2)
    realm.kill()
    later = start()
    assert later.consumer(node).receive(1) == [eids[1]]


def test_a_plain_subscription_gets_nothing_stale(realm: RealmProcess) -> None:
    node = create(realm, "news", Properties(ttl_ms=TTL_MS), "channel")
    plain = realm.consumer(node, "plain")
    realm.publish(node, bodies(5))
    wait(realm, TTL_MS)
    fresh = publish(realm, node, [LONG_MS] * 2)
    assert by_store(plain.receive(2)) == by_store(fresh)


def test_a_time_to_live_is_set_while_consumers_are_there(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.01))
    node = realm.create("orders")
    consumer = realm.consumer(node)
    (first,) = realm.publish(node, bodies(1))
    assert consumer.receive(1) == [first]
    log = realm.world.open()
    set_properties(log, realm.prefix, "orders", lambda old: replace(old, ttl_ms=TTL_MS), realm.clock)
    realm.until(lambda: realm.realm.node("orders").properties.ttl_ms == TTL_MS, "it is seen")  # type: ignore[union-attr]
    old = realm.publish(node, bodies(4))
    wait(realm, TTL_MS)
    assert consumer.drain() == []
    assert expired(realm, node, 4) == sorted(old)
