"""Which consuming links a turn visits: those that may get something, fairly, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.gateway import Gateway
from mappings import load_tables
from tests.wire import frames
from tests.wire.conversation import Conversation, build_house
from tests.wire.scripted_realm import ScriptedRealm, ScriptedSubscription

TABLES = load_tables()


class Visits:
    """How often a subscription was asked, and those that parked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.parked: dict[int, Callable[[], None]] = {}
        take = ScriptedSubscription.take

        def counted(subscription: ScriptedSubscription, count_max: int, bytes_max: int) -> Any:
            self.count += 1
            return take(subscription, count_max, bytes_max)

        def park(subscription: ScriptedSubscription, wake: Callable[[], None]) -> bool:
            self.parked[id(subscription)] = wake
            return True

        monkeypatch.setattr(ScriptedSubscription, "take", counted)
        monkeypatch.setattr(ScriptedSubscription, "park", park)

    def wake_all(self) -> None:
        for wake in self.parked.values():
            wake()


@pytest.fixture
def realm() -> ScriptedRealm:
    return ScriptedRealm()


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    return Visits(monkeypatch)


class Consumer:
    """A link with credit, on a connection of its own."""

    def __init__(self, house: Gateway, credit: int, number: int = 0) -> None:
        self.peer = Conversation(house, f"peer-{number}")
        self.peer.say(frames.attach_receiver("q", handle=0))
        self.flow(credit)

    def flow(self, credit: int) -> None:
        self.peer.say(frames.flow(0, credit, self.got))

    @property
    def got(self) -> int:
        self.peer._read()
        return sum(seen.name == "transfer" for seen in self.peer.seen)


def put(realm: ScriptedRealm, count: int) -> None:
    realm._keep(realm.node("q"), [frames.message(b"%d" % at) for at in range(count)])


def test_links_that_wait_are_not_visited(realm: ScriptedRealm, visits: Visits) -> None:
    house = build_house(TABLES, realm)
    consumers = [Consumer(house, 10, number) for number in range(50)]
    house.poll()
    before = visits.count
    for _ in range(10):
        house.poll()
    assert visits.count == before
    put(realm, 50)
    house.poll()
    assert visits.count == before, "they sleep until they are woken"
    visits.wake_all()
    house.poll()
    assert sum(consumer.got for consumer in consumers) == 50
    assert visits.count <= before + 55


def test_a_consumer_with_one_credit_goes_on_beside_one_with_ten_thousand(realm: ScriptedRealm) -> None:
    """Both are ready in every turn; neither waits for the other."""
    house = build_house(TABLES, realm)
    large, small = Consumer(house, 10_000, 1), Consumer(house, 1, 2)
    for turn in range(1, 11):
        put(realm, 20)
        house.poll()
        house.poll()
        if small.got == turn // 2 + 1:
            small.flow(1)
    assert small.got >= 4
    assert large.got == 200 - small.got


def test_one_that_takes_nothing_blocks_nobody(realm: ScriptedRealm, visits: Visits) -> None:
    house = build_house(TABLES, realm, unsettled_per_link=5)
    full, congested, free = Consumer(house, 100, 1), Consumer(house, 100, 2), Consumer(house, 3, 3)
    congested.peer.connection.unread.congest(True)
    put(realm, 8)
    visits.wake_all()
    house.poll()
    assert (full.got, congested.got, free.got) == (5, 0, 3)
    put(realm, 3)
    house.poll()
    assert (full.got, congested.got, free.got) == (5, 0, 3)
    congested.peer.connection.unread.congest(False)
    house.poll()
    assert congested.got == 3
    put(realm, 1)
    full.peer.say(frames.disposition(0, 4, frames.state("accepted")))
    assert full.got == 6


def test_credit_wakes_and_so_does_what_a_drain_found_empty(realm: ScriptedRealm, visits: Visits) -> None:
    house = build_house(TABLES, realm)
    consumer = Consumer(house, 1)
    put(realm, 3)
    visits.wake_all()
    house.poll()
    assert consumer.got == 1
    before = visits.count
    house.poll()
    assert visits.count == before, "without credit nothing is asked for it"
    consumer.flow(1)
    assert consumer.got == 2
    consumer.peer.say(frames.flow(0, 5, 2, drain=True))
    assert consumer.got == 3
    consumer.peer.say(frames.flow(0, 1, 7))  # the drain has used up all five
    put(realm, 1)
    visits.wake_all()
    house.poll()
    assert consumer.got == 4


def test_a_link_that_ends_while_it_is_ready_harms_nobody(realm: ScriptedRealm, visits: Visits) -> None:
    house = build_house(TABLES, realm)
    gone, stays = Consumer(house, 1, 1), Consumer(house, 1, 2)
    put(realm, 1)
    visits.wake_all()
    gone.peer.lose()
    house.poll()
    assert stays.got == 1
    assert not house.ready
    assert house.faults["assertion"] == 0
