"""The contract of the realm, continued: where in a channel a subscription begins."""

from __future__ import annotations

import pytest

from native_backend.nodes.node import Node
from native_backend.nodes.start_position import EARLIEST, LATEST
from native_backend.nodes.start_position import StartPosition as Place
from native_backend.realm import Subscribe
from native_backend.subscriptions.partitioned import eids_of, partition_of
from native_backend.subscriptions.subscription import Mode, Subscribed
from tests.contract.actions import await_shown
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD
MODES: list[Mode] = ["plain", "durable"]


def begun(realm: RealmProcess, node: Node, mode: Mode, place: Place, name: str = "d") -> Consumer:
    owner = object()
    durable = name if mode == "durable" else None
    realm.realm.subscribe(Subscribe(node, mode, durable, owner, start=place), owner)
    subscribed = realm.answer(Subscribed, lambda answer: answer.owner is owner)
    assert subscribed.subscription is not None, subscribed
    return Consumer(realm, subscribed.subscription)


@pytest.mark.parametrize("mode", MODES)
def test_it_begins_where_it_was_asked_to(realm: RealmProcess, mode: Mode) -> None:
    node = realm.create("news", "channel")
    eids = realm.publish(node, bodies(10))
    await_shown(realm, node, eids)
    first_ms = max(stored_ms(realm, node, eid) for eid in eids)
    realm.until(lambda: realm.clock.epoch_us() // 1000 > first_ms + 5, "a later time")
    middle_ms = realm.clock.epoch_us() // 1000
    eids += realm.publish(node, bodies(10))
    bound = eids_of(by_store(eids)[0])[3]  # in every store, a place of that number
    last = max(eids_of([eid])[0] for eid in eids)
    places = {
        "all": (EARLIEST, eids),
        "none": (LATEST, []),
        "from one": (Place("eid", bound), [eid for eid in eids if eids_of([eid])[0] >= bound]),
        "from before": (Place("eid", 0), eids),
        "beyond": (Place("eid", last + 1000), []),
        "of a time": (Place("time", middle_ms), eids[10:]),
        "of long ago": (Place("time", 0), eids),
        "of the future": (Place("time", middle_ms + 10**9), []),
    }
    for name, (place, expected) in places.items():
        consumer = begun(realm, node, mode, place, name)
        assert by_store(consumer.receive(len(expected))) == by_store(expected), name
        assert consumer.drain() == [], name


def stored_ms(realm: RealmProcess, node: Node, place: int) -> int:
    return realm.log.control.read_range(node.topic, partition_of(place), eids_of([place])[0], 1).timestamps_ms[0]


def test_a_durable_that_is_known_goes_on_where_it_is(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    eids = realm.publish(node, bodies(10))
    consumer = begun(realm, node, "durable", EARLIEST)
    assert by_store(consumer.receive(10)) == by_store(eids)
    consumer.acknowledge(eids[:4])
    realm.close()
    later = start()
    assert by_store(begun(later, node, "durable", EARLIEST).receive(6)) == by_store(eids[4:])
