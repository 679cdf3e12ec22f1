"""The contract of the realm, continued: grants on nodes and on the realm, asked at attach and at every change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.access import ANONYMOUS, Subject, deciding
from native_backend.answers import Published, Subscribed, SubscriptionLost
from native_backend.limits import RealmLimits
from native_backend.metadata_writer import set_properties, set_realm_acl
from native_backend.nodes import Node
from native_backend.properties import OPERATIONS, Grant
from native_backend.subscription import Mode, Subscribe
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import Start, bodies, start, world

__all__ = ["start", "world"]  # fixtures

ALICE, BOB = Subject("alice", frozenset({"traders"})), Subject("bob", frozenset({"ops"}))
EVERYTHING = frozenset(OPERATIONS)


@pytest.fixture
def gateway(start: Start) -> Gateway:
    return start(RealmLimits(metadata_interval_s=0.02))


def grant(who: str, *operations: str) -> Grant:
    return Grant(who, frozenset(operations))


def on_node(gateway: Gateway, name: str, *grants: Grant) -> Node:
    """The node has these grants, and the gateway knows."""
    changed = set_properties(gateway.log, gateway.prefix, name, lambda p: replace(p, acl=grants), gateway.clock)
    assert changed is not None
    gateway.until(lambda: gateway.realm.node(name) == changed, "the node's grants")
    return changed


def on_realm(gateway: Gateway, *grants: Grant) -> None:
    set_realm_acl(gateway.log, gateway.prefix, grants)
    gateway.until(lambda: gateway.realm._metadata.acl == grants, "the realm's grants")


def subscribe(
    gateway: Gateway, node: Node, subject: Subject, mode: Mode = "queue", durable: str | None = None
) -> Subscribed:
    owner = object()
    gateway.realm.subscribe(Subscribe(node, mode, durable, owner, subject), owner)
    return gateway.answer(Subscribed, lambda answer: answer.owner is owner)


def test_without_grants_everybody_may_do_everything(gateway: Gateway) -> None:
    node = gateway.create("orders")
    assert gateway.realm.may_publish(node, ANONYMOUS) == "ready"
    assert gateway.realm.access.may_create(ANONYMOUS)
    assert subscribe(gateway, node, ANONYMOUS).answer == "ready"


def test_each_mode_needs_its_operations(gateway: Gateway) -> None:
    queue, channel = gateway.create("queue"), gateway.create("channel", "channel")
    for name in ("queue", "channel"):
        on_node(gateway, name, grant("user:alice", "subscribe"), grant("group:ops", "publish", "durable", "peek"))
    assert subscribe(gateway, queue, ALICE).answer == "ready"
    assert subscribe(gateway, channel, ALICE, "plain").answer == "ready"
    denied = subscribe(gateway, channel, ALICE, "durable", "mine")
    assert (denied.answer, denied.native, denied.subscription) == ("access-denied", "not-granted", None)
    assert subscribe(gateway, queue, BOB).answer == "access-denied"
    assert subscribe(gateway, channel, BOB, "plain").answer == "access-denied"
    assert subscribe(gateway, channel, BOB, "durable", "his").answer == "access-denied"
    assert gateway.realm.may_publish(queue, ALICE) == "access-denied"
    assert gateway.realm.may_publish(queue, BOB) == "ready"
    on_node(gateway, "channel", grant("user:alice", "subscribe", "durable"))
    assert subscribe(gateway, channel, ALICE, "durable", "mine").answer == "ready"


def test_grants_of_node_and_realm_add_up(gateway: Gateway) -> None:
    orders, other = gateway.create("orders"), gateway.create("other")
    on_node(gateway, "orders", grant("user:alice", "publish"))
    assert gateway.realm.may_publish(other, BOB) == "ready", "a node without grants in a realm without grants is open"
    on_realm(gateway, grant("group:ops", *EVERYTHING))
    assert gateway.realm.may_publish(orders, BOB) == "ready"
    assert gateway.realm.may_publish(orders, ALICE) == "ready"
    assert gateway.realm.may_publish(other, ALICE) == "access-denied", "the realm's grants close every node"
    assert gateway.realm.may_publish(orders, ANONYMOUS) == "access-denied"
    assert gateway.realm.access.may_create(BOB) and not gateway.realm.access.may_create(ALICE)
    on_realm(gateway)
    assert gateway.realm.may_publish(other, ALICE) == "ready"


def test_who_is_meant() -> None:
    meant = [who for who in ("*", "user:alice", "user:traders", "group:traders", "group:a") if ALICE.is_meant(who)]
    assert meant == ["*", "user:alice", "group:traders"]
    acl = (grant("user:bob", "publish"), grant("group:traders", "peek"), grant("*", "peek", "publish"))
    assert deciding(acl, ALICE, "peek") == acl[1]
    assert deciding(acl, ALICE, "publish") == acl[2]
    assert deciding(acl, ALICE, "purge") is None


@pytest.mark.parametrize(("kind", "mode", "name"), [("queue", "queue", None), ("channel", "durable", "d")])
def test_revoking_loses_the_subscription_and_gives_its_events_back(
    gateway: Gateway, kind: str, mode: Mode, name: str | None
) -> None:
    node = gateway.create("orders", kind)  # type: ignore[arg-type]
    on_node(gateway, "orders", grant("*", "publish"), grant("user:alice", "subscribe", "durable"))
    subscribed = subscribe(gateway, node, ALICE, mode, name)
    assert subscribed.subscription is not None
    alice = Consumer(gateway, subscribed.subscription)
    eids = gateway.publish(node, bodies(5))
    assert alice.receive(5) == eids
    alice.acknowledge(eids[:2])
    on_node(gateway, "orders", grant("*", "publish"), grant("user:bob", "subscribe", "durable"))
    lost = gateway.answer(SubscriptionLost, lambda answer: answer.subscription is alice.subscription)
    assert (lost.answer, lost.native) == ("access-denied", "not-granted")
    assert alice.take() == []
    assert alice.settle("acknowledge", eids[2:3]) == "access-denied"  # S-R2a
    alice.subscription.close()
    subscribed = subscribe(gateway, node, BOB, mode, name)
    assert subscribed.subscription is not None
    bob = Consumer(gateway, subscribed.subscription)
    assert bob.receive(3) == eids[2:]
    assert list(bob.again.values()) == [True] * 3 and not any(bob.failed.values())
    bob.acknowledge(eids[2:])


def test_revoking_spares_who_is_still_granted(gateway: Gateway) -> None:
    node = gateway.create("orders")
    kept = (grant("*", "publish"), grant("group:traders", "subscribe"))
    on_node(gateway, "orders", *kept, grant("user:bob", "subscribe"))
    alice, bob = (subscribe(gateway, node, subject).subscription for subject in (ALICE, BOB))
    assert alice is not None and bob is not None
    on_node(gateway, "orders", *kept)
    lost = gateway.answer(SubscriptionLost)
    assert lost.subscription is bob
    eids = gateway.publish(node, bodies(3))
    assert Consumer(gateway, alice).receive(3) == eids
    assert not [answer for answer in gateway.answers if isinstance(answer, SubscriptionLost)]


def test_a_plain_subscription_is_lost_by_the_realms_grants_and_gets_nothing_more(gateway: Gateway) -> None:
    node = gateway.create("prices", "channel")
    plain = subscribe(gateway, node, ALICE, "plain").subscription
    assert plain is not None
    on_realm(gateway, grant("user:bob", *EVERYTHING))
    assert gateway.answer(SubscriptionLost).answer == "access-denied"
    gateway.publish(node, bodies(3))
    assert Consumer(gateway, plain).linger(50) == []
    plain.close()
    plain.close()


def test_who_may_not_publish_is_answered_and_nothing_is_stored(gateway: Gateway) -> None:
    node = gateway.create("orders")
    changes: list[str] = []
    gateway.realm.access.on_changed.append(lambda: changes.append(gateway.realm.may_publish(node, ALICE)))
    on_node(gateway, "orders", grant("user:bob", "publish", "subscribe"))
    on_node(gateway, "orders", grant("user:alice", "publish", "subscribe"))
    assert changes == ["access-denied", "ready"]
    owner = object()
    gateway.realm.refuse(node, [b"key"] * 3, bodies(3), owner)
    answer = gateway.answer(Published)
    assert (answer.owner, answer.first, answer.eids, answer.answer) == (owner, 0, [-1] * 3, "access-denied")
    eids = gateway.publish(node, bodies(1))
    assert len(eids) == 1 and gateway.log.bounds(node.topic, 0)[0] <= eids[0]


def test_many_changes_read_together_are_one(start: Start) -> None:
    """However many nodes are changed at once, links are looked at once."""
    gateway = start(RealmLimits(metadata_interval_s=3600.0))
    gateway.turn()
    nodes = [gateway.create(f"node-{number}") for number in range(20)]
    told: list[None] = []
    gateway.realm.access.on_changed.append(lambda: told.append(None))
    for node in nodes:
        set_properties(
            gateway.log, gateway.prefix, node.name, lambda p: replace(p, acl=(grant("*", "peek"),)), gateway.clock
        )
    assert gateway.find("node-0") is not None
    assert [gateway.realm.may_publish(node, ALICE) for node in nodes] == ["access-denied"] * 20
    gateway.turn()
    assert len(told) == 1


def test_grants_survive_a_restart_and_a_deleted_nodes_grants_do_not(start: Start) -> None:
    first = start()
    first.create("orders")
    on_node(first, "orders", grant("user:alice", "publish"))
    on_realm(first, grant("user:alice", "manage"))
    first.close()
    second = start(RealmLimits(metadata_interval_s=0.02))
    node = second.find("orders")
    assert node is not None
    assert second.realm.may_publish(node, BOB) == "access-denied"
    on_realm(second)
    assert second.realm.may_publish(node, BOB) == "access-denied"
    on_node(second, "orders")
    assert second.realm.may_publish(node, BOB) == "ready"
