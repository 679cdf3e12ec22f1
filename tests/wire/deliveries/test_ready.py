"""Which consuming links a turn visits: those that may get something, fairly, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.session.gateway import DISPATCHED_MAX, Gateway
from mappings import load_tables
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm, ScriptedSubscription

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

    def __init__(self, gateway: Gateway, credit: int, number: int = 0) -> None:
        self.peer = Conversation(gateway, f"peer-{number}")
        self.peer.say(frames.attach_receiver("q", handle=0))
        self.flow(credit)

    def flow(self, credit: int) -> None:
        self.peer.say(frames.flow(0, credit, self.got))

    @property
    def got(self) -> int:
        self.peer.read()
        return sum(seen.name == "transfer" for seen in self.peer.seen)


def put(realm: ScriptedRealm, count: int) -> None:
    realm.keep(realm.node("q"), [frames.message(b"%d" % at) for at in range(count)])


def test_links_that_wait_are_not_visited(realm: ScriptedRealm, visits: Visits) -> None:
    gateway = build_gateway(TABLES, realm)
    consumers = [Consumer(gateway, 10, number) for number in range(50)]
    gateway.poll()
    before = visits.count
    for _ in range(10):
        gateway.poll()
    assert visits.count == before
    put(realm, 50)
    gateway.poll()
    assert visits.count == before, "they sleep until they are woken"
    visits.wake_all()
    gateway.poll()
    assert sum(consumer.got for consumer in consumers) == 50
    assert visits.count <= before + 55


def test_a_consumer_with_one_credit_goes_on_beside_one_with_ten_thousand(realm: ScriptedRealm) -> None:
    """Both are ready in every turn; neither waits for the other."""
    gateway = build_gateway(TABLES, realm)
    large, small = Consumer(gateway, 10_000, 1), Consumer(gateway, 1, 2)
    for turn in range(1, 11):
        put(realm, 20)
        gateway.poll()
        gateway.poll()
        if small.got == turn // 2 + 1:
            small.flow(1)
    assert small.got >= 4
    assert large.got == 200 - small.got


def test_a_turn_gives_out_so_many_and_the_next_one_goes_on_with_the_next(realm: ScriptedRealm) -> None:
    """Six consumers want more than there is: who got nothing in one turn is the first in the next."""
    gateway, share = build_gateway(TABLES, realm), DISPATCHED_MAX // 4
    consumers = [Consumer(gateway, 2 * share, number) for number in range(6)]
    put(realm, 12 * share)
    for turns in range(1, 4):
        gateway.poll()
        assert gateway.outcomes.numbered == turns * DISPATCHED_MAX
    assert [consumer.got for consumer in consumers] == [2 * share] * 6


def test_a_link_that_takes_nothing_blocks_no_other(realm: ScriptedRealm, visits: Visits) -> None:
    gateway = build_gateway(TABLES, realm, unsettled_per_link=5)
    full, congested, free = Consumer(gateway, 100, 1), Consumer(gateway, 100, 2), Consumer(gateway, 3, 3)
    congested.peer.connection.write_pressure.set_congested(True)
    put(realm, 8)
    visits.wake_all()
    gateway.poll()
    assert (full.got, congested.got, free.got) == (5, 0, 3)
    put(realm, 3)
    gateway.poll()
    assert (full.got, congested.got, free.got) == (5, 0, 3)
    congested.peer.connection.write_pressure.set_congested(False)
    gateway.poll()
    assert congested.got == 3
    put(realm, 1)
    full.peer.say(frames.disposition(0, 4, frames.state("accepted")))
    assert full.got == 6


def test_credit_wakes_and_so_does_what_a_drain_found_empty(realm: ScriptedRealm, visits: Visits) -> None:
    gateway = build_gateway(TABLES, realm)
    consumer = Consumer(gateway, 1)
    put(realm, 3)
    visits.wake_all()
    gateway.poll()
    assert consumer.got == 1
    before = visits.count
    gateway.poll()
    assert visits.count == before, "without credit nothing is asked for it"
    consumer.flow(1)
    assert consumer.got == 2
    consumer.peer.say(frames.flow(0, 5, 2, drain=True))
    assert consumer.got == 3
    consumer.peer.say(frames.flow(0, 1, 7))  # the drain has used up all five
    put(realm, 1)
    visits.wake_all()
    gateway.poll()
    assert consumer.got == 4


def test_a_link_that_ends_while_it_is_ready_harms_no_other(realm: ScriptedRealm, visits: Visits) -> None:
    gateway = build_gateway(TABLES, realm)
    gone, stays = Consumer(gateway, 1, 1), Consumer(gateway, 1, 2)
    put(realm, 1)
    visits.wake_all()
    gone.peer.lose()
    gateway.poll()
    assert stays.got == 1
    assert not gateway.ready
    assert gateway.faults["assertion"] == 0
