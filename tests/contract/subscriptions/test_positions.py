"""The contract of the realm, continued: where in a channel a subscription begins."""

from __future__ import annotations

import pytest

from native_backend.nodes.node import Node
from native_backend.nodes.start_position import EARLIEST, LATEST
from native_backend.nodes.start_position import StartPosition as Place
from native_backend.realm import Subscribe
from native_backend.subscriptions.subscription import Mode, Subscribed
from tests.kit.realm.fixtures import Start, bodies, realm, start, world
from tests.kit.realm.realm_process import Consumer, RealmProcess

__all__ = ["realm", "start", "world"]  # fixtures
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
    realm.until(lambda: realm.clock.epoch_us() // 1000 > stored_ms(realm, node, eids[-1]) + 5, "a later time")
    middle_ms = realm.clock.epoch_us() // 1000
    eids += realm.publish(node, bodies(10))
    places = {
        "all": (EARLIEST, eids),
        "none": (LATEST, []),
        "from one": (Place("eid", eids[7]), eids[7:]),
        "from before": (Place("eid", 0), eids),
        "beyond": (Place("eid", eids[-1] + 1000), []),
        "of a time": (Place("time", middle_ms), eids[10:]),
        "of long ago": (Place("time", 0), eids),
        "of the future": (Place("time", middle_ms + 10**9), []),
    }
    for name, (place, expected) in places.items():
        consumer = begun(realm, node, mode, place, name)
        assert consumer.receive(len(expected)) == expected if expected else True, name
        assert consumer.drain() == [], name


def stored_ms(realm: RealmProcess, node: Node, eid: int) -> int:
    return realm.log.control.read_range(node.topic, 0, eid, 1).timestamps_ms[0]


def test_a_durable_that_is_known_goes_on_where_it_is(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    eids = realm.publish(node, bodies(10))
    consumer = begun(realm, node, "durable", EARLIEST)
    assert consumer.receive(10) == eids
    consumer.acknowledge(eids[:4])
    realm.close()
    later = start()
    assert begun(later, node, "durable", EARLIEST).receive(6) == eids[4:]
