"""The log's own access lists: both must allow, a change loses links, a look that fails changes nothing."""

from __future__ import annotations

import pytest

from native_backend.log.access_lists import AccessEntry, AccessLists
from native_backend.log.port import Failure, LogError
from native_backend.nodes.grants import ANONYMOUS, Subject
from native_backend.nodes.properties import Grant
from native_backend.subscriptions.subscription import Subscribe, Subscribed, SubscriptionLost
from tests.kit.realm.grants import on_node
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

ALICE = Subject("alice")


class Lists:
    """What the log says of its lists; a failure while there are none, unless it has no such thing."""

    def __init__(self) -> None:
        self.access_lists: AccessLists | None = AccessLists(frozenset())
        self.looks = 0
        self.exist = True

    def set(self, *entries: tuple[str, str]) -> None:
        """Who may do what on every topic."""
        self.access_lists = AccessLists(
            frozenset(AccessEntry(f"User:{who}", "*", False, what, True) for who, what in entries)
        )

    def __call__(self, deadline_s: float = 10.0) -> AccessLists | None:
        self.looks += 1
        if not self.exist:
            return None
        if self.access_lists is None:
            raise LogError(Failure("unavailable", "no lists today"))
        return self.access_lists


@pytest.fixture
def lists() -> Lists:
    return Lists()


@pytest.fixture
def realm(lists: Lists) -> RealmProcess:
    world = SimulatedWorld("lists", None)
    made = RealmProcess(world, "um")
    made.log.control.access_lists = lists  # type: ignore[method-assign]
    return made.open()


def subscribe(realm: RealmProcess, subject: Subject) -> Subscribed:
    node, owner = realm.realm.node("orders"), object()
    assert node is not None
    realm.realm.subscribe(Subscribe(node, "queue", None, owner, subject), owner)
    return realm.answer(Subscribed, lambda answer: answer.owner is owner)


def test_lists_that_are_not_asked_for_say_nothing(realm: RealmProcess, lists: Lists) -> None:
    node = realm.create("orders")
    assert realm.realm.may_publish(node, ALICE) == "ready"
    assert lists.looks == 0


def test_both_must_allow(realm: RealmProcess, lists: Lists) -> None:
    node = realm.create("orders")
    lists.set(("alice", "WRITE"), ("ANONYMOUS", "READ"))
    realm.realm.authorizer.follow_access_lists()
    assert realm.realm.may_publish(node, ALICE) == "ready"
    assert realm.realm.may_publish(node, Subject("bob")) == "access-denied"
    assert subscribe(realm, ALICE).answer == "access-denied"
    assert subscribe(realm, ANONYMOUS).answer == "ready"
    on_node(realm, "orders", Grant("user:bob", frozenset({"publish"})))
    for subject in (ALICE, Subject("bob")):
        assert realm.realm.may_publish(node, subject) == "access-denied"


def test_a_change_loses_links_and_a_failed_look_does_not(realm: RealmProcess, lists: Lists) -> None:
    realm.create("orders")
    lists.set(("alice", "READ"))
    realm.realm.authorizer.follow_access_lists()
    subscription = subscribe(realm, ALICE).subscription
    assert subscription is not None
    lists.access_lists, looks = None, lists.looks
    realm.until(lambda: lists.looks > looks + 1, "two looks that fail")
    assert not [answer for answer in realm.answers if isinstance(answer, SubscriptionLost)]
    lists.set(("bob", "READ"))
    lost = realm.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (subscription, "access-denied")


def test_the_first_reading_must_succeed(realm: RealmProcess, lists: Lists) -> None:
    lists.access_lists = None
    with pytest.raises(LogError, match="no lists today"):
        realm.realm.authorizer.follow_access_lists()


def test_a_log_that_has_no_lists_is_looked_at_once(realm: RealmProcess, lists: Lists) -> None:
    lists.exist = False
    realm.realm.authorizer.follow_access_lists()
    until_s = realm.clock.monotonic_s() + 5 * realm.limits.rights_interval_s
    realm.until(lambda: realm.clock.monotonic_s() > until_s, "several looks' time")
    assert lists.looks == 1
