"""The contract of the realm, continued: a full node refuses, or gives up its oldest events; counts are right after
whatever happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.answers import Commanded, Published
from native_backend.commands import Command
from native_backend.limits import RealmLimits
from native_backend.log import Append, Appended
from native_backend.metadata_writer import set_properties
from native_backend.nodes import Node
from native_backend.properties import Properties
from tests.contract.test_realm_dead_letters import create, entries, stored
from tests.native_backend.gateway import Gateway
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

FULL = Properties(capacity_events=10, honour_capacity=True)


def offer(gateway: Gateway, node: Node, count: int, size: int = 0) -> tuple[list[int], int]:
    """The EIDs of what was stored, and how many were refused: always the last ones."""
    owner = object()
    gateway.realm.publish(node, [b"key"] * count, bodies(count, size), owner)
    eids: list[int] = []
    refused = 0
    while len(eids) + refused < count:
        said = gateway.answer(Published, lambda answer: answer.owner is owner)
        if said.answer == "stored":
            assert said.first == len(eids)
            eids += said.eids
        else:
            assert (said.answer, said.native) == ("capacity-reached", f"{node.name} is full")
            refused += len(said.eids)
            assert said.first == count - refused
    return eids, refused


def test_a_full_queue_refuses_until_somebody_makes_room(gateway: Gateway) -> None:
    node = create(gateway, "orders", FULL)
    eids, refused = offer(gateway, node, 14)
    assert (len(eids), refused) == (10, 4)
    assert offer(gateway, node, 1) == ([], 1)
    consumer = gateway.consumer(node)
    assert consumer.receive(10) == eids
    assert offer(gateway, node, 1) == ([], 1)  # given is not done with
    consumer.acknowledge([eids[3], eids[7]])
    assert consumer.settle("return", [eids[0]]) == "done"
    more, refused = offer(gateway, node, 5)
    assert (len(more), refused) == (2, 3)


def test_what_is_under_way_counts_too(gateway: Gateway) -> None:
    node = create(gateway, "orders", FULL)
    offer(gateway, node, 1)
    owners = [object() for _ in range(6)]
    for owner in owners:
        gateway.realm.publish(node, [b"key"] * 3, bodies(3), owner)
    told = [gateway.answer(Published, lambda answer, owner=owner: answer.owner is owner) for owner in owners]  # type: ignore[misc]
    assert [each.answer for each in told] == ["stored"] * 3 + ["capacity-reached"] * 3


@pytest.mark.parametrize("orderly", [False, True])
def test_the_count_is_right_after_a_restart(start: Start, orderly: bool) -> None:
    gateway = start()
    node = create(gateway, "orders", replace(FULL, capacity_events=300))
    eids, _ = offer(gateway, node, 290)
    consumer = gateway.consumer(node)
    consumer.receive(290)
    consumer.acknowledge(eids[5:250:2])
    if orderly:
        gateway.close()
    else:
        gateway.kill()
    later = start()
    left = 290 - len(eids[5:250:2])
    more, refused = offer(later, later.find("orders") or node, 300)
    assert (len(more), refused) == (300 - left, left)
    again = later.consumer(node)
    got = again.receive(300)
    again.acknowledge(got[:100])
    assert len(offer(later, node, 120)[0]) == 100


def test_events_of_other_writers_count(gateway: Gateway) -> None:
    node = create(gateway, "orders", FULL)
    offer(gateway, node, 3)
    log = gateway.world.open()
    log.append(Append(node.topic, 0, [b"native"] * 4, bodies(4)))
    told: list[Appended] = []

    def there() -> bool:
        told.extend(each for each in log.poll() if isinstance(each, Appended))
        return bool(told)

    gateway.until(there, "they are stored")
    stored(gateway, node, 7)
    offer(gateway, node, 1)  # shows the hole
    gateway.until(lambda: not gateway.control.pending, "it is counted")
    eids, refused = offer(gateway, node, 9)
    assert (len(eids), refused) == (2, 7)


def test_octets_bound_a_node_too(gateway: Gateway) -> None:
    node = create(gateway, "orders", Properties(capacity_bytes=1000, honour_capacity=True))
    eids, refused = offer(gateway, node, 12, 100)
    assert (len(eids), refused) == (10, 2)
    consumer = gateway.consumer(node)
    consumer.receive(10)
    consumer.acknowledge(eids)
    assert offer(gateway, node, 12, 100)[1] == 2


def test_an_event_that_is_given_up_makes_room(gateway: Gateway) -> None:
    gateway.create("dead")
    node = create(gateway, "orders", replace(FULL, dead_letter="dead"))
    eids, _ = offer(gateway, node, 10)
    consumer = gateway.consumer(node)
    consumer.receive(10)
    assert consumer.settle("dead-letter", eids[:4], reason="rejected") == "done"
    assert len(offer(gateway, node, 10)[0]) == 4


def test_a_queue_that_does_not_honour_it_gives_up_its_oldest(start: Start) -> None:
    gateway = start()
    node = create(gateway, "orders", Properties(capacity_events=10))
    consumer = gateway.consumer(node)
    eids, refused = offer(gateway, node, 8)
    assert refused == 0
    consumer.receive(2)
    consumer.acknowledge(eids[1:2])
    eids += offer(gateway, node, 30)[0]
    gateway.until(lambda: bool(entries(gateway, "evicted")) and not gateway.realm._journal.busy, "they are given up")
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[0] >= eids[-10], "the log lets go of them")
    assert gateway.log.bounds(node.topic, 0)[0] == eids[-10]
    assert consumer.settle("return", eids[:1]) == "done"  # it was in a consumer's hands: told, and gone all the same
    assert consumer.receive(10) == eids[-10:]
    assert consumer.drain() == []
    gateway.kill()
    later = start()
    assert later.consumer(node).receive(10) == eids[-10:]


def test_a_channel_keeps_its_newest_whoever_has_seen_them(gateway: Gateway) -> None:
    node = create(gateway, "news", Properties(capacity_events=10), "channel")
    durable = gateway.consumer(node, "durable", "a:b")
    eids, _ = offer(gateway, node, 6)
    durable.receive(6)
    durable.acknowledge(eids)
    eids += offer(gateway, node, 9)[0]
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[0] >= eids[-10], "the oldest go")
    assert gateway.log.bounds(node.topic, 0)[0] == eids[-10]
    assert durable.drain() == eids[6:]


def test_a_capacity_is_set_and_lifted_while_publishers_are_there(start: Start) -> None:
    gateway = start(RealmLimits(metadata_interval_s=0.01))
    node = gateway.create("orders")
    gateway.publish(node, bodies(8))
    log = gateway.world.open()
    for properties, stored_then in ((FULL, 2), (Properties(), 5), (FULL, 0)):
        set_properties(log, gateway.prefix, "orders", lambda _, to=properties: to, gateway.clock)  # type: ignore[misc]
        gateway.until(lambda to=properties: gateway.realm.node("orders").properties == to, "it is seen")  # type: ignore[misc,union-attr]
        assert len(offer(gateway, node, 5)[0]) == stored_then


def test_a_purge_makes_room(gateway: Gateway) -> None:
    node = create(gateway, "orders", FULL)
    offer(gateway, node, 10)
    dispatch_of = gateway.consumer(node)
    dispatch_of.subscription.close()
    owner = object()
    gateway.realm.execute(Command("1", "purge", "orders", node.store, "queue", gateway.clock.epoch_us() + 10**8), owner)
    assert gateway.answer(Commanded, lambda answer: answer.owner is owner).answer == "done"
    assert len(offer(gateway, node, 12)[0]) == 10
