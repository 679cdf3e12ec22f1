"""The contract of the realm, continued: grants on nodes and on the realm, asked at attach and at every change; what
ends subscriptions on nodes of one store and of several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.limits import RealmLimits
from native_backend.nodes.answers import Published
from native_backend.nodes.grants import ANONYMOUS, Subject, deciding_grant
from native_backend.nodes.metadata_writer import set_properties, set_realm_acl
from native_backend.nodes.node import Node
from native_backend.nodes.properties import OPERATIONS, Grant
from native_backend.subscriptions.subscription import Mode, Subscribe, Subscribed, SubscriptionLost
from tests.kit.realm.fixtures import SPREAD, Start, bodies, start, world
from tests.kit.realm.grants import on_node
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store

__all__ = ["start", "world"]  # fixtures

ALICE, BOB = Subject("alice", frozenset({"traders"})), Subject("bob", frozenset({"ops"}))
EVERYTHING = frozenset(OPERATIONS)


@pytest.fixture
def realm(start: Start) -> RealmProcess:
    return start(RealmLimits(metadata_interval_s=0.02))


def grant(who: str, *operations: str) -> Grant:
    return Grant(who, frozenset(operations))


def on_realm(realm: RealmProcess, *grants: Grant) -> None:
    set_realm_acl(realm.log, realm.prefix, grants)
    realm.until(lambda: context_of(realm.realm).metadata.acl == grants, "the realm's grants")


def subscribe(
    realm: RealmProcess, node: Node, subject: Subject, mode: Mode = "queue", durable: str | None = None
) -> Subscribed:
    owner = object()
    realm.realm.subscribe(Subscribe(node, mode, durable, owner, subject), owner)
    return realm.answer(Subscribed, lambda answer: answer.owner is owner)


def test_without_grants_all_users_may_do_everything(realm: RealmProcess) -> None:
    node = realm.create("orders")
    assert realm.realm.may_publish(node, ANONYMOUS) == "ready"
    assert realm.realm.authorizer.may_create(ANONYMOUS)
    assert subscribe(realm, node, ANONYMOUS).answer == "ready"


@SPREAD
def test_each_mode_needs_its_operations(realm: RealmProcess) -> None:
    queue, channel = realm.create("queue"), realm.create("channel", "channel")
    for name in ("queue", "channel"):
        on_node(realm, name, grant("user:alice", "subscribe"), grant("group:ops", "publish", "durable", "peek"))
    assert subscribe(realm, queue, ALICE).answer == "ready"
    assert subscribe(realm, channel, ALICE, "plain").answer == "ready"
    denied = subscribe(realm, channel, ALICE, "durable", "mine")
    assert (denied.answer, denied.native, denied.subscription) == ("access-denied", "not-granted", None)
    assert subscribe(realm, queue, BOB).answer == "access-denied"
    assert subscribe(realm, channel, BOB, "plain").answer == "access-denied"
    assert subscribe(realm, channel, BOB, "durable", "his").answer == "access-denied"
    assert realm.realm.may_publish(queue, ALICE) == "access-denied"
    assert realm.realm.may_publish(queue, BOB) == "ready"
    on_node(realm, "channel", grant("user:alice", "subscribe", "durable"))
    assert subscribe(realm, channel, ALICE, "durable", "mine").answer == "ready"


def test_grants_of_node_and_realm_add_up(realm: RealmProcess) -> None:
    orders, other = realm.create("orders"), realm.create("other")
    on_node(realm, "orders", grant("user:alice", "publish"))
    assert realm.realm.may_publish(other, BOB) == "ready", "a node without grants in a realm without grants is open"
    on_realm(realm, grant("group:ops", *EVERYTHING))
    assert realm.realm.may_publish(orders, BOB) == "ready"
    assert realm.realm.may_publish(orders, ALICE) == "ready"
    assert realm.realm.may_publish(other, ALICE) == "access-denied", "the realm's grants close every node"
    assert realm.realm.may_publish(orders, ANONYMOUS) == "access-denied"
    assert realm.realm.authorizer.may_create(BOB) and not realm.realm.authorizer.may_create(ALICE)
    on_realm(realm)
    assert realm.realm.may_publish(other, ALICE) == "ready"


def test_who_is_meant() -> None:
    meant = [who for who in ("*", "user:alice", "user:traders", "group:traders", "group:a") if ALICE.is_named_by(who)]
    assert meant == ["*", "user:alice", "group:traders"]
    acl = (grant("user:bob", "publish"), grant("group:traders", "peek"), grant("*", "peek", "publish"))
    assert deciding_grant(acl, ALICE, "peek") == acl[1]
    assert deciding_grant(acl, ALICE, "publish") == acl[2]
    assert deciding_grant(acl, ALICE, "purge") is None


@SPREAD
@pytest.mark.parametrize(("kind", "mode", "name"), [("queue", "queue", None), ("channel", "durable", "d")])
def test_revoking_loses_the_subscription_and_gives_its_events_back(
    realm: RealmProcess, kind: str, mode: Mode, name: str | None
) -> None:
    node = realm.create("orders", kind)  # type: ignore[arg-type]
    on_node(realm, "orders", grant("*", "publish"), grant("user:alice", "subscribe", "durable"))
    subscribed = subscribe(realm, node, ALICE, mode, name)
    assert subscribed.subscription is not None
    alice = Consumer(realm, subscribed.subscription)
    eids = realm.publish(node, bodies(9))
    assert by_store(alice.receive(9)) == by_store(eids)
    alice.acknowledge(eids[:2])
    on_node(realm, "orders", grant("*", "publish"), grant("user:bob", "subscribe", "durable"))
    lost = realm.answer(SubscriptionLost, lambda answer: answer.subscription is alice.subscription)
    assert (lost.answer, lost.native) == ("access-denied", "not-granted")
    assert alice.take() == []
    assert alice.settle("acknowledge", eids[2:3]) == "access-denied"  # S-R2a
    alice.subscription.close()
    subscribed = subscribe(realm, node, BOB, mode, name)
    assert subscribed.subscription is not None
    bob = Consumer(realm, subscribed.subscription)
    assert by_store(bob.receive(7)) == by_store(eids[2:])
    assert list(bob.again.values()) == [True] * 7 and not any(bob.failed.values())
    bob.acknowledge(eids[2:])


@SPREAD
def test_revoking_spares_who_is_still_granted(realm: RealmProcess) -> None:
    node = realm.create("orders")
    kept = (grant("*", "publish"), grant("group:traders", "subscribe"))
    on_node(realm, "orders", *kept, grant("user:bob", "subscribe"))
    alice, bob = (subscribe(realm, node, subject).subscription for subject in (ALICE, BOB))
    assert alice is not None and bob is not None
    on_node(realm, "orders", *kept)
    lost = realm.answer(SubscriptionLost)
    assert lost.subscription is bob
    eids = realm.publish(node, bodies(3))
    assert by_store(Consumer(realm, alice).receive(3)) == by_store(eids)
    assert not [answer for answer in realm.answers if isinstance(answer, SubscriptionLost)]


@SPREAD
def test_a_plain_subscription_is_lost_by_the_realms_grants_and_gets_nothing_more(realm: RealmProcess) -> None:
    node = realm.create("prices", "channel")
    plain = subscribe(realm, node, ALICE, "plain").subscription
    assert plain is not None
    on_realm(realm, grant("user:bob", *EVERYTHING))
    assert realm.answer(SubscriptionLost).answer == "access-denied"
    realm.publish(node, bodies(3))
    assert Consumer(realm, plain).linger(50) == []
    plain.close()
    plain.close()


def test_who_may_not_publish_is_answered_and_nothing_is_stored(realm: RealmProcess) -> None:
    node = realm.create("orders")
    changes: list[str] = []
    realm.realm.authorizer.on_changed.append(lambda: changes.append(realm.realm.may_publish(node, ALICE)))
    on_node(realm, "orders", grant("user:bob", "publish", "subscribe"))
    on_node(realm, "orders", grant("user:alice", "publish", "subscribe"))
    assert changes == ["access-denied", "ready"]
    owner = object()
    realm.realm.refuse(node, [b"key"] * 3, bodies(3), owner)
    answer = realm.answer(Published)
    assert (answer.owner, answer.first, answer.eids, answer.answer) == (owner, 0, [-1] * 3, "access-denied")
    eids = realm.publish(node, bodies(1))
    assert len(eids) == 1 and realm.log.control.bounds(node.topic, 0)[0] <= eids[0]


def test_many_changes_read_together_are_one(start: Start) -> None:
    """However many nodes are changed at once, links are looked at once."""
    realm = start(RealmLimits(metadata_interval_s=3600.0))
    realm.turn()
    nodes = [realm.create(f"node-{number}") for number in range(20)]
    changes: list[None] = []
    realm.realm.authorizer.on_changed.append(lambda: changes.append(None))
    for node in nodes:
        set_properties(realm.log, realm.prefix, node.name, lambda p: replace(p, acl=(grant("*", "peek"),)), realm.clock)
    assert realm.find("node-0") is not None
    assert [realm.realm.may_publish(node, ALICE) for node in nodes] == ["access-denied"] * 20
    realm.turn()
    assert len(changes) == 1


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
