"""The contract of the realm, continued: nodes, their names, their lives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend import admin
from native_backend.answers import Published, SubscriptionLost
from native_backend.limits import RealmLimits
from native_backend.metadata_writer import set_properties
from native_backend.nodes import NodeError
from tests.native_backend.gateway import Gateway
from tests.native_backend.logs.worlds import World
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

# -- nodes


def test_a_node_created_by_another_process_is_found(world: World, gateway: Gateway) -> None:
    assert gateway.realm.node("orders") is None
    assert gateway.find("orders") is None
    other = world.open()
    created = admin.create_node(other, gateway.prefix, "orders", "queue", gateway.clock)
    assert gateway.find("orders") == created
    assert gateway.realm.node("orders") == created
    assert admin.list_nodes(other, gateway.prefix) == [created]
    shown = admin.show_node(other, gateway.prefix, "orders")
    assert shown is not None
    assert (shown.node, shown.first, shown.events) == (created, 0, 0)
    assert [durable.name for durable in shown.durables] == ["queue"]
    assert admin.show_node(other, gateway.prefix, "nothing") is None


def test_creating_is_idempotent_and_a_change_of_kind_is_refused(gateway: Gateway) -> None:
    node = gateway.create("orders")
    assert gateway.create("orders") == node
    with pytest.raises(NodeError, match="exists as a queue, not a channel"):
        admin.create_node(gateway.log, gateway.prefix, "orders", "channel", gateway.clock)


def test_a_deleted_node_is_lost_and_a_recreated_one_is_another(world: World, start: Start) -> None:
    gateway = start(RealmLimits(metadata_interval_s=0.05))
    node, channel = gateway.create("orders"), gateway.create("news", "channel")
    eids = gateway.publish(node, bodies(10))
    links = [gateway.consumer(node), gateway.consumer(channel, "plain"), gateway.consumer(channel, "durable", "d")]
    links[0].receive(10)
    other = world.open()
    assert admin.delete_node(other, gateway.prefix, "orders")
    assert admin.delete_node(other, gateway.prefix, "news")
    assert not admin.delete_node(other, gateway.prefix, "orders")
    lost = [gateway.answer(SubscriptionLost) for _ in links]
    assert {each.subscription for each in lost} == {link.subscription for link in links}
    assert {each.answer for each in lost} == {"not-found"}
    assert gateway.realm.node("orders") is None
    assert links[0].settle("acknowledge", eids) == "not-found"
    gateway.realm.publish(node, [b"k"], [b"v"], "late")
    assert gateway.answer(Published).answer == "not-found"
    assert gateway.subscribed(node, "queue").answer == "not-found"

    renewed = admin.create_node(other, gateway.prefix, "orders", "queue", gateway.clock)
    assert renewed.store != node.store
    assert gateway.find("orders") == renewed
    gateway.realm.publish(node, [b"k"], [b"v"], "late")  # a handle of the node that was
    assert gateway.answer(Published).answer == "not-found"
    fresh = gateway.publish(renewed, bodies(3))
    assert gateway.consumer(renewed).receive(3) == fresh


def test_a_node_made_anew_between_two_looks_is_another(world: World, start: Start) -> None:
    """A log that compacts at once shows the second one and no tombstone."""
    gateway = start(RealmLimits(metadata_interval_s=0.5))
    node = gateway.create("orders")
    link = gateway.consumer(node)
    other = world.open()
    for _ in range(2):
        assert admin.delete_node(other, gateway.prefix, "orders")
        renewed = admin.create_node(other, gateway.prefix, "orders", "queue", gateway.clock)
        set_properties(other, gateway.prefix, "orders", lambda it: replace(it, attempts=7), gateway.clock)
    lost = gateway.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (link.subscription, "not-found")
    found = gateway.find("orders")
    assert found is not None
    assert found.store == renewed.store
    assert found.properties.attempts == 7
    fresh = gateway.publish(found, bodies(3))
    assert gateway.consumer(found).receive(3) == fresh


def test_a_channel_durable_does_not_outlive_its_node(world: World, start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    gateway.consumer(node, "durable", "d")
    gateway.publish(node, bodies(10))
    gateway.close()
    other = world.open()
    admin.delete_node(other, gateway.prefix, "news")
    renewed = admin.create_node(other, gateway.prefix, "news", "channel", gateway.clock)
    later = start()
    durable = later.consumer(renewed, "durable", "d")
    eids = later.publish(renewed, bodies(3))
    assert durable.receive(3) == eids


NAMES = [
    "plain.name_x-1",
    "two words",
    "a/b/c",
    "../..",
    "..",
    ".",
    "Grüße",
    "🐇🐇",
    "x" * 300,
    "a;b",
    '["node"]',
    "queue",
    "line\nfeed",
]


def test_any_name_is_a_node(gateway: Gateway) -> None:
    for name in NAMES:
        node = gateway.create(name)
        assert node.name == name
        eids = gateway.publish(node, [b"event"])
        consumer = gateway.consumer(node)
        assert consumer.receive(1) == eids
        consumer.acknowledge(eids)
        consumer.subscription.close()
    assert [each.name for each in admin.list_nodes(gateway.log, gateway.prefix)] == sorted(NAMES)


def test_names_with_the_same_slug_or_alike_in_kafkas_eyes_are_different_nodes(gateway: Gateway) -> None:
    names = ["a b", "a/b", "a-b", "a.b", "a_b", "x" * 200 + "1", "x" * 200 + "2"]
    nodes = [gateway.create(name) for name in names]
    assert len({node.topic for node in nodes}) == len({node.store for node in nodes}) == len(names)
    for at, node in enumerate(nodes):
        gateway.publish(node, [b"%d" % at])
    for at, node in enumerate(nodes):
        consumer = gateway.consumer(node)
        [eid] = consumer.receive(1)
        assert consumer.bodies[eid] == b"%d" % at
