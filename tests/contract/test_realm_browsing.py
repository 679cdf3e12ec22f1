"""The contract of the realm, continued: who looks at a queue without taking."""

from __future__ import annotations

import pytest

from native_backend.limits import RealmLimits
from native_backend.selection import Selection
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import SMALL, Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures


def seen(browser: Consumer) -> list[int]:
    """Until it has seen what was there when it came."""
    eids: list[int] = []

    def done() -> bool:
        eids.extend(more := browser.take(7))
        return not more and not browser.subscription.looking

    browser.gateway.until(done, "the end")
    return eids


@pytest.mark.parametrize("limits", [RealmLimits(), SMALL], ids=["default", "small"])
def test_V_1_it_sees_what_has_not_ended_and_takes_nothing(start: Start, limits: RealmLimits) -> None:
    """Neither what was acknowledged, one by one or from the beginning; but what another has just now."""
    gateway = start(limits)
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(200))
    consumer = gateway.consumer(node)
    consumer.receive(100)
    consumer.acknowledge(eids[:10])
    consumer.acknowledge(eids[20:90:7])
    there = [eid for eid in eids if eid not in eids[:10] and eid not in eids[20:90:7]]
    one, other = gateway.consumer(node, "browse"), gateway.consumer(node, "browse")
    assert seen(one) == there
    assert seen(other) == there
    assert one.drain() == []
    assert consumer.receive(100) == eids[100:]
    state = gateway.state(node)
    assert (state.low, len(state.returned)) == (eids[10], 0)


def test_it_goes_on_with_what_comes(gateway: Gateway) -> None:
    node = gateway.create("orders")
    browser = gateway.consumer(node, "browse")
    assert seen(browser) == []
    eids = gateway.publish(node, bodies(5))
    assert browser.receive(5) == eids
    browser.subscription.close()
    browser.subscription.close()
    assert gateway.consumer(node).receive(5) == eids


def test_it_may_look_for_some_only(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(300))
    tens = Selection("tens", lambda values: [int(value) % 10 == 0 for value in values])
    assert seen(gateway.consumer(node, "browse", selection=tens)) == eids[::10]


def test_it_ends_with_its_node_and_with_the_owner(start: Start) -> None:
    gateway = start()
    node, gone = gateway.create("orders"), gateway.create("gone")
    gateway.publish(node, bodies(3))
    browser = gateway.consumer(node, "browse")
    assert len(seen(browser)) == 3
    assert gateway.subscribed(gateway.create("news", "channel"), "browse").answer == "unexpected"
    assert gone.kind == "queue"
