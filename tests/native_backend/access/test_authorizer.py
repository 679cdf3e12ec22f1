"""The log's own access lists: both must allow, a change loses links, a look that fails changes nothing."""

from __future__ import annotations

import pytest

from native_backend.access import ANONYMOUS, Subject
from native_backend.answers import Subscribed, SubscriptionLost
from native_backend.log import Failure, LogError
from native_backend.properties import Grant
from native_backend.rights import Entry, Rights
from native_backend.subscription import Subscribe
from tests.contract.test_realm_access import on_node
from tests.native_backend.gateway import Gateway
from tests.native_backend.logs.worlds import SimulatedWorld

ALICE = Subject("alice")


class Lists:
    """What the log says of its lists; a failure while there are none."""

    def __init__(self) -> None:
        self.rights: Rights | None = Rights(frozenset())
        self.looks = 0

    def set(self, *entries: tuple[str, str]) -> None:
        """Who may do what on every topic."""
        self.rights = Rights(frozenset(Entry(f"User:{who}", "*", False, what, True) for who, what in entries))

    def __call__(self, deadline_s: float = 10.0) -> Rights:
        self.looks += 1
        if self.rights is None:
            raise LogError(Failure("unavailable", "no lists today"))
        return self.rights


@pytest.fixture
def lists() -> Lists:
    return Lists()


@pytest.fixture
def gateway(lists: Lists) -> Gateway:
    world = SimulatedWorld("lists", None)
    made = Gateway(world, "um")
    made.log.rights = lists  # type: ignore[method-assign]
    return made.open()


def subscribe(gateway: Gateway, subject: Subject) -> Subscribed:
    node, owner = gateway.realm.node("orders"), object()
    assert node is not None
    gateway.realm.subscribe(Subscribe(node, "queue", None, owner, subject), owner)
    return gateway.answer(Subscribed, lambda answer: answer.owner is owner)


def test_lists_that_are_not_asked_for_say_nothing(gateway: Gateway, lists: Lists) -> None:
    node = gateway.create("orders")
    assert gateway.realm.may_publish(node, ALICE) == "ready"
    assert lists.looks == 0


def test_both_must_allow(gateway: Gateway, lists: Lists) -> None:
    node = gateway.create("orders")
    lists.set(("alice", "WRITE"), ("ANONYMOUS", "READ"))
    gateway.realm.access.follow_rights()
    assert gateway.realm.may_publish(node, ALICE) == "ready"
    assert gateway.realm.may_publish(node, Subject("bob")) == "access-denied"
    assert subscribe(gateway, ALICE).answer == "access-denied"
    assert subscribe(gateway, ANONYMOUS).answer == "ready"
    on_node(gateway, "orders", Grant("user:bob", frozenset({"publish"})))
    for subject in (ALICE, Subject("bob")):
        assert gateway.realm.may_publish(node, subject) == "access-denied"


def test_a_change_loses_links_and_a_failed_look_does_not(gateway: Gateway, lists: Lists) -> None:
    gateway.create("orders")
    lists.set(("alice", "READ"))
    gateway.realm.access.follow_rights()
    subscription = subscribe(gateway, ALICE).subscription
    assert subscription is not None
    lists.rights, looks = None, lists.looks
    gateway.until(lambda: lists.looks > looks + 1, "two looks that fail")
    assert not [answer for answer in gateway.answers if isinstance(answer, SubscriptionLost)]
    lists.set(("bob", "READ"))
    lost = gateway.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (subscription, "access-denied")


def test_the_first_reading_must_succeed(gateway: Gateway, lists: Lists) -> None:
    lists.rights = None
    with pytest.raises(LogError, match="no lists today"):
        gateway.realm.access.follow_rights()
