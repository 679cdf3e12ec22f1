"""A log that shows each record some time after it has answered that it is stored, as Kafka does behind an open
transaction. What this process knows to be stored is there: for a subscription that begins, a browser, a drain, a
capacity, a command.

The other logs show at once what they answer, or at random late (`uneven`); this one always late.
"""

from __future__ import annotations

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.simulated.faults import Faults
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.properties import Properties
from native_backend.nodes.start_position import LATEST, StartPosition
from native_backend.subscriptions.subscription import Mode, Subscribe, Subscribed
from tests.contract.actions import offer
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store
from tests.kit.realm.worlds import SimulatedWorld, World

__all__ = ["realm", "start"]  # fixtures
LATE = Faults(lag=1.0, lag_ms_max=200)
MODES: list[Mode] = ["plain", "durable"]


@pytest.fixture
def world() -> World:
    return SimulatedWorld("late", LATE)


def begun(realm: RealmProcess, mode: Mode, place: StartPosition) -> Consumer:
    owner, node = object(), realm.realm.node("news")
    assert node is not None
    realm.realm.subscribe(Subscribe(node, mode, "d" if mode == "durable" else None, owner, start=place), owner)
    subscribed = realm.answer(Subscribed, lambda answer: answer.owner is owner)
    assert subscribed.subscription is not None, subscribed
    return Consumer(realm, subscribed.subscription)


@SPREAD
@pytest.mark.parametrize("mode", MODES)
def test_what_is_stored_lies_before_a_subscription_that_begins_at_the_end(realm: RealmProcess, mode: Mode) -> None:
    node = realm.create("news", "channel")
    realm.publish(node, bodies(10))
    consumer = begun(realm, mode, LATEST)
    eids = realm.publish(node, bodies(5))
    assert by_store(consumer.receive(5)) == by_store(eids)
    assert consumer.drain() == []
    assert not realm.realm.metrics.alarms, "no store has become shorter"


@SPREAD
@pytest.mark.parametrize("mode", MODES)
def test_a_time_is_found_among_all_that_is_stored(realm: RealmProcess, mode: Mode) -> None:
    node = realm.create("news", "channel")
    realm.publish(node, bodies(10))
    realm.turn()
    now_ms = realm.clock.epoch_us() // 1000
    eids = realm.publish(node, bodies(10))
    consumer = begun(realm, mode, StartPosition("time", now_ms))
    assert by_store(consumer.receive(10)) == by_store(eids)
    assert consumer.drain() == []


@SPREAD
def test_a_browser_and_a_drain_see_all_that_is_stored(realm: RealmProcess) -> None:
    node = realm.create("orders")
    consumer = realm.consumer(node)
    eids = realm.publish(node, bodies(10))
    browser = realm.consumer(node, "browse")
    assert by_store(browser.drain()) == by_store(eids)
    more = realm.publish(node, bodies(10))
    assert by_store(consumer.drain()) == by_store(eids + more)


@SPREAD
def test_a_purge_is_of_all_that_is_stored(realm: RealmProcess) -> None:
    node = realm.create("orders")
    realm.publish(node, bodies(10))
    for part in node.parts:
        assert realm.command("purge", part).answer == "done"
    eids = realm.publish(node, bodies(3))
    assert by_store(realm.consumer(node).drain()) == by_store(eids)


@pytest.mark.parametrize("partitions", [1])
def test_a_capacity_counts_all_that_is_stored(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.001))
    node = realm.create("orders")
    realm.publish(node, bodies(8))
    log, full = realm.world.open(), Properties(capacity_events=10, honour_capacity=True)
    for properties, stored_then in ((full, 2), (Properties(), 5), (full, 0)):
        set_properties(log, realm.prefix, "orders", lambda _, to=properties: to, realm.clock)  # type: ignore[misc]
        realm.until(lambda to=properties: properties_of(realm) == to, "it is seen")  # type: ignore[misc]
        assert len(offer(realm, node, 5)[0]) == stored_then


def properties_of(realm: RealmProcess) -> Properties | None:
    node = realm.realm.node("orders")
    return node.properties if node is not None else None
