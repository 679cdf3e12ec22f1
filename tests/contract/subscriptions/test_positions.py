"""The contract of the realm, continued: where in a channel a subscription begins."""

from __future__ import annotations

import pytest

from native_backend.answers import Subscribed
from native_backend.nodes import Node
from native_backend.realm import Subscribe
from native_backend.starting import EARLIEST, LATEST
from native_backend.starting import Start as Place
from native_backend.subscription import Mode
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures
MODES: list[Mode] = ["plain", "durable"]


def begun(gateway: Gateway, node: Node, mode: Mode, place: Place, name: str = "d") -> Consumer:
    owner = object()
    durable = name if mode == "durable" else None
    gateway.realm.subscribe(Subscribe(node, mode, durable, owner, start=place), owner)
    subscribed = gateway.answer(Subscribed, lambda answer: answer.owner is owner)
    assert subscribed.subscription is not None, subscribed
    return Consumer(gateway, subscribed.subscription)


@pytest.mark.parametrize("mode", MODES)
def test_it_begins_where_it_was_asked_to(gateway: Gateway, mode: Mode) -> None:
    node = gateway.create("news", "channel")
    eids = gateway.publish(node, bodies(10))
    gateway.until(lambda: gateway.clock.epoch_us() // 1000 > stored_ms(gateway, node, eids[-1]) + 5, "a later time")
    middle_ms = gateway.clock.epoch_us() // 1000
    eids += gateway.publish(node, bodies(10))
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
        consumer = begun(gateway, node, mode, place, name)
        assert consumer.receive(len(expected)) == expected if expected else True, name
        assert consumer.drain() == [], name


def stored_ms(gateway: Gateway, node: Node, eid: int) -> int:
    return gateway.log.read_range(node.topic, 0, eid, 1).timestamps_ms[0]


def test_a_durable_that_is_known_goes_on_where_it_is(start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    eids = gateway.publish(node, bodies(10))
    consumer = begun(gateway, node, "durable", EARLIEST)
    assert consumer.receive(10) == eids
    consumer.acknowledge(eids[:4])
    gateway.close()
    later = start()
    assert begun(later, node, "durable", EARLIEST).receive(6) == eids[4:]
