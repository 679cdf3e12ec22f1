"""How many durables a user may make: all that are there count, and an attach to one of them makes none."""

from __future__ import annotations

from dataclasses import replace

from gateway.quotas.durable_share import DurableShare
from gateway.quotas.shares import SharedLimit
from native_backend.nodes.durable import QUEUE, Durable, DurableName
from native_backend.nodes.durable_terms import EXCLUSIVE
from tests.kit.realm.stopped_clock import StoppedClock

DURABLE = Durable("news", "x", 1, "news.x", 0)


class Realm:
    """What it has, and how often it was counted."""

    def __init__(self) -> None:
        self.durables: list[Durable] = [replace(DURABLE, name=QUEUE, node=f"q{at}") for at in range(50)]
        self.counted = 0

    def all(self) -> list[Durable]:
        self.counted += 1
        return [*self.durables]

    def make(self, name: str, owner: str = "") -> None:
        self.durables.append(replace(DURABLE, name=name, owner=owner))


def share(realm: Realm, maximum: int, clock: StoppedClock) -> DurableShare:
    return DurableShare(SharedLimit("durables", "durables", maximum, lambda: 75), realm.all, clock)


def refusal(durables: DurableShare, node: str, names: DurableName, owner: str | None, moves: bool = False) -> str:
    return durables.refusal(node, names, owner, moves=moves)


def test_a_user_may_have_three_quarters_and_another_one_finds_some() -> None:
    realm, clock = Realm(), StoppedClock()
    durables = share(realm, 8, clock)
    for at in range(6):
        assert refusal(durables, "news", DurableName(f"a{at}"), "ann") == ""
    words = refusal(durables, "news", DurableName("a6"), "ann")
    assert words.startswith("user ann has 6 of 8 durables, the last 2 are for others")
    assert refusal(durables, "news", DurableName("b0"), "ben") == ""
    assert refusal(durables, "news", DurableName("c0"), "") == "", "peers without a login"


def test_one_that_is_there_is_none_more() -> None:
    realm, clock = Realm(), StoppedClock()
    realm.make("old", "ann")
    durables = share(realm, 1, clock)
    assert refusal(durables, "news", DurableName("new", earlier="old"), "ann") == ""
    assert refusal(durables, "news", DurableName("old"), "ben") == ""
    assert "all 1 durables are taken" in refusal(durables, "letters", DurableName("old"), "ben"), "on another node"


def test_what_others_made_and_deleted_counts_a_moment_later() -> None:
    realm, clock = Realm(), StoppedClock()
    durables = share(realm, 2, clock)
    assert refusal(durables, "news", DurableName("a"), "ann") == ""
    realm.make("a", "ann")
    realm.make("b", "ben")
    clock.now_s += 1.0
    assert "all 2 durables are taken" in refusal(durables, "news", DurableName("c"), "cid")
    realm.durables.pop()
    clock.now_s += 0.1
    assert refusal(durables, "news", DurableName("c"), "cid") == ""


def test_who_asks_in_a_loop_makes_no_more_counting() -> None:
    realm, clock = Realm(), StoppedClock()
    durables = share(realm, 0, clock)
    for _ in range(1_000):
        assert refusal(durables, "news", DurableName("a"), "ann")
        clock.now_s += 0.001
    assert realm.counted <= 12


def test_another_subscribers_earlier_name_is_not_its_own() -> None:
    """`orders` stays as it is, and is what earlier releases called `orders|1`, too."""
    realm, clock = Realm(), StoppedClock()
    realm.durables.append(replace(DURABLE, name="app:orders", terms=replace(EXCLUSIVE, subscriber=("app", "orders"))))
    durables = share(realm, 2, clock)

    def names(link: str) -> DurableName:
        return DurableName(f"app:{link}|escaped", earlier="app:orders", subscriber=("app", link))

    assert refusal(durables, "news", names("orders"), "") == "", "its own"
    assert refusal(durables, "news", names("orders|1"), "") == ""
    assert "all 2 durables are taken" in refusal(durables, "news", names("orders|2"), "")


def test_one_that_moves_is_none_more() -> None:
    realm, clock = Realm(), StoppedClock()
    realm.make("sub", "ann")
    durables = share(realm, 1, clock)
    assert refusal(durables, "letters", DurableName("sub"), "ann", moves=True) == ""
    assert refusal(durables, "letters", DurableName("sub"), "ann"), "it does not move"
    assert refusal(durables, "letters", DurableName("sub"), "ben", moves=True), "it is another user's"


def test_where_they_belong_to_the_realm_there_is_the_limit_and_no_share() -> None:
    realm, clock = Realm(), StoppedClock()
    durables = share(realm, 4, clock)
    for at in range(4):
        assert refusal(durables, "news", DurableName(f"a{at}"), None) == ""
    assert "all 4 durables are taken" in refusal(durables, "news", DurableName("a4"), None)


def test_counting_takes_a_twentieth_of_the_time_at_most() -> None:
    realm, clock = Realm(), StoppedClock()

    def slow() -> list[Durable]:
        clock.now_s += 0.5
        return realm.all()

    durables = DurableShare(SharedLimit("durables", "durables", 0, lambda: 75), slow, clock)
    began_s = clock.now_s
    for _ in range(10_000):
        assert refusal(durables, "news", DurableName("a"), "ann")
        clock.now_s += 0.01
    assert realm.counted * 0.5 <= (clock.now_s - began_s) / 20 + 0.5
