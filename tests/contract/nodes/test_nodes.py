"""The contract of the realm, continued: nodes, their names, their lives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.limits import RealmLimits
from native_backend.nodes import admin
from native_backend.nodes.answers import NodeFound, Published
from native_backend.nodes.grants import ANONYMOUS
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node, NodeError
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import remembered
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

__all__ = ["realm", "start", "world"]  # fixtures

# -- nodes


def test_a_node_created_by_another_process_is_found(world: World, realm: RealmProcess) -> None:
    assert realm.realm.node("orders") is None
    assert realm.find("orders") is None
    other = world.open()
    created = admin.create_node(other, realm.prefix, "orders", "queue", realm.clock)
    assert realm.find("orders") == created
    assert realm.realm.node("orders") == created
    assert admin.list_nodes(other, realm.prefix) == [created]
    shown = admin.show_node(other, realm.prefix, "orders")
    assert shown is not None
    assert (shown.node, shown.first, shown.events) == (created, 0, 0)
    assert [durable.name for durable in shown.durables] == ["queue"]
    assert admin.show_node(other, realm.prefix, "nothing") is None


def test_creating_is_idempotent_and_a_change_of_kind_is_refused(realm: RealmProcess) -> None:
    node = realm.create("orders")
    assert realm.create("orders") == node
    with pytest.raises(NodeError, match="exists as a queue, not a channel"):
        admin.create_node(realm.log, realm.prefix, "orders", "channel", realm.clock)


@SPREAD
def test_what_was_lost_before_its_node_was_deleted_is_lost_once(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.05))
    channel = realm.create("news", "channel")
    lost = [realm.consumer(channel, "plain"), realm.consumer(channel, "durable", "d"), realm.consumer(channel, "plain")]
    for link in lost[:2]:
        link.subscription.revoke("revoked")
    assert admin.delete_node(realm.world.open(), realm.prefix, "news")
    answers = {realm.answer(SubscriptionLost).subscription: None for _ in lost}
    assert list(answers) == [link.subscription for link in lost]
    orders = realm.create("orders")
    eids = realm.publish(orders, bodies(3))
    assert sorted(realm.consumer(orders).receive(3)) == sorted(eids)
    assert not [answer for answer in realm.answers if isinstance(answer, SubscriptionLost)]


def test_a_deleted_node_is_lost_and_a_recreated_one_is_another(world: World, start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.05))
    node, channel = realm.create("orders"), realm.create("news", "channel")
    eids = realm.publish(node, bodies(10))
    links = [realm.consumer(node), realm.consumer(channel, "plain"), realm.consumer(channel, "durable", "d")]
    links[0].receive(10)
    other = world.open()
    assert admin.delete_node(other, realm.prefix, "orders")
    assert admin.delete_node(other, realm.prefix, "news")
    assert not admin.delete_node(other, realm.prefix, "orders")
    lost = [realm.answer(SubscriptionLost) for _ in links]
    assert {loss.subscription for loss in lost} == {link.subscription for link in links}
    assert {loss.answer for loss in lost} == {"not-found"}
    assert realm.realm.node("orders") is None
    assert links[0].settle("acknowledge", eids) == "not-found"
    realm.realm.publish(node, [b"k"], [b"v"], "late")
    assert realm.answer(Published).answer == "not-found"
    assert realm.subscribed(node, "queue").answer == "not-found"

    renewed = admin.create_node(other, realm.prefix, "orders", "queue", realm.clock)
    assert renewed.store != node.store
    assert realm.find("orders") == renewed
    realm.realm.publish(node, [b"k"], [b"v"], "late")  # a handle of the node that was
    assert realm.answer(Published).answer == "not-found"
    fresh = realm.publish(renewed, bodies(3))
    assert realm.consumer(renewed).receive(3) == fresh


def test_a_node_made_anew_between_two_looks_is_another(world: World, start: Start) -> None:
    """A log that compacts at once shows the second one and no tombstone."""
    realm = start(RealmLimits(metadata_interval_s=0.5))
    node = realm.create("orders")
    link = realm.consumer(node)
    other = world.open()
    for _ in range(2):
        assert admin.delete_node(other, realm.prefix, "orders")
        renewed = admin.create_node(other, realm.prefix, "orders", "queue", realm.clock)
        set_properties(other, realm.prefix, "orders", lambda it: replace(it, attempts=7), realm.clock)
    lost = realm.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (link.subscription, "not-found")
    queue = realm.find("orders")
    assert queue is not None
    assert queue.store == renewed.store
    assert queue.properties.attempts == 7
    fresh = realm.publish(queue, bodies(3))
    assert realm.consumer(queue).receive(3) == fresh


def test_a_channel_durable_does_not_outlive_its_node(world: World, start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "d")
    realm.publish(node, bodies(10))
    realm.close()
    other = world.open()
    admin.delete_node(other, realm.prefix, "news")
    renewed = admin.create_node(other, realm.prefix, "news", "channel", realm.clock)
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


def test_any_name_is_a_node(realm: RealmProcess) -> None:
    for name in NAMES:
        node = realm.create(name)
        assert node.name == name
        eids = realm.publish(node, [b"event"])
        consumer = realm.consumer(node)
        assert consumer.receive(1) == eids
        consumer.acknowledge(eids)
        consumer.subscription.close()
    assert [entry.name for entry in admin.list_nodes(realm.log, realm.prefix)] == sorted(NAMES)


def test_names_with_the_same_slug_or_alike_in_kafkas_eyes_are_different_nodes(realm: RealmProcess) -> None:
    names = ["a b", "a/b", "a-b", "a.b", "a_b", "x" * 200 + "1", "x" * 200 + "2"]
    nodes = [realm.create(name) for name in names]
    assert len({node.topic for node in nodes}) == len({node.store for node in nodes}) == len(names)
    for at, node in enumerate(nodes):
        realm.publish(node, [b"%d" % at])
    for at, node in enumerate(nodes):
        consumer = realm.consumer(node)
        [eid] = consumer.receive(1)
        assert consumer.bodies[eid] == b"%d" % at


def test_nothing_is_kept_of_temporary_nodes_that_have_gone(start: Start) -> None:
    """Their names never come again: ten reply queues a second would fill the memory."""
    often = RealmLimits(projection_interval_s=0.01, count_interval_s=0.01, temporary_drop_s=0.0)
    realm = start(often)
    before = remembered(realm.realm)
    for at in range(3):
        made, gone = object(), object()
        realm.realm.temporary.create(f"reply{at}", "queue", ANONYMOUS, made)
        node = found(realm, made)
        assert node is not None
        consumer, eids = realm.consumer(node), realm.publish(node, bodies(2))
        consumer.acknowledge(consumer.receive(2)[:1])
        realm.until(lambda: remembered(realm.realm)[3] > before[3], "its group is shown")
        consumer.settle("return", eids[1:])
        consumer.subscription.close()
        realm.realm.temporary.delete(node, gone)
        assert found(realm, gone) is None
        realm.until(lambda: not realm.workers.pending, "what was under way")
    assert remembered(realm.realm) == before


def found(realm: RealmProcess, owner: object) -> Node | None:
    return realm.answer(NodeFound, lambda answer: answer.owner is owner).node
