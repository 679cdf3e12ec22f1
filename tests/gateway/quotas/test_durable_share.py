"""How many durables a user may make: all that are there count, and an attach to one of them makes none."""

from __future__ import annotations

from dataclasses import replace

from gateway.quotas.durable_share import DurableShare
from gateway.quotas.shares import SharedLimit
from native_backend.nodes.durable import QUEUE, Durable, DurableName
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


def test_a_user_may_have_three_quarters_and_another_one_finds_some() -> None:
    realm, clock = Realm(), StoppedClock()
    durables = share(realm, 8, clock)
    for at in range(6):
        assert durables.refusal("news", DurableName(f"a{at}"), "ann") == ""
    words = durables.refusal("news", DurableName("a6"), "ann")
    assert words.startswith("user ann has 6 of 8 durables, the last 2 are for others")
    assert durables.refusal("news", DurableName("b0"), "ben") == ""
    assert durables.refusal("news", DurableName("c0"), "") == "", "peers without a login"


def test_one_that_is_there_is_none_more() -> None:
    realm, clock = Realm(), StoppedClock()
    realm.make("old", "ann")
    durables = share(realm, 1, clock)
    assert durables.refusal("news", DurableName("new", earlier="old"), "ann") == ""
    assert durables.refusal("news", DurableName("old"), "ben") == ""
    assert "all 1 durables are taken" in durables.refusal("letters", DurableName("old"), "ben"), "on another node"


def test_what_others_made_and_deleted_counts_a_moment_later() -> None:
    realm, clock = Realm(), StoppedClock()
    durables = share(realm, 2, clock)
    assert durables.refusal("news", DurableName("a"), "ann") == ""
    realm.make("a", "ann")
    realm.make("b", "ben")
    clock.now_s += 1.0
    assert "all 2 durables are taken" in durables.refusal("news", DurableName("c"), "cid")
    realm.durables.pop()
    clock.now_s += 0.1
    assert durables.refusal("news", DurableName("c"), "cid") == ""


def test_who_asks_in_a_loop_makes_no_more_counting() -> None:
    realm, clock = Realm(), StoppedClock()
    durables = share(realm, 0, clock)
    for _ in range(1_000):
        assert durables.refusal("news", DurableName("a"), "ann")
        clock.now_s += 0.001
    assert realm.counted <= 12
