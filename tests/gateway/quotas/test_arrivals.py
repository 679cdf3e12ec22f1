"""How fast an address may open connections: those that come faster wait for their turn, and others do not."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.limits import Limits
from gateway.evidence.notices import Notices
from gateway.quotas.arrivals import (
    ADDRESSES_MAX,
    BURST_S,
    DEBT_S,
    FAULT_TOKENS,
    HELD_BYTES,
    WAIT_MAX_S,
    Arrivals,
)
from tests.kit.realm.virtual_clock import VirtualClock
from tests.kit.realm.virtual_timers import VirtualTimers

HOSTILE, INNOCENT = "10.0.0.1", "10.0.0.2"
RATE = 10
BURST, PLACES = BURST_S * RATE, WAIT_MAX_S * RATE


@dataclass(eq=False)
class Socket:
    number: int
    became: list[str] = field(default_factory=list)
    order: list[int] = field(default_factory=list)  # of all that have begun

    def begin(self) -> None:
        self.became.append("begun")
        self.order.append(self.number)

    def refuse(self, reason: str) -> None:
        self.became.append(reason)


class World:
    """Arrivals on a clock that a test moves."""

    def __init__(self, rate: int = RATE) -> None:
        self.clock = VirtualClock()
        self.arrivals = Arrivals(Limits(connections_per_s=rate), self.clock, Notices(self.clock))
        self.timers = VirtualTimers(self.clock)
        self.arrivals.later = self.timers.later
        self.order: list[int] = []
        self._numbers = 0

    def come(self, address: str = HOSTILE) -> Socket:
        self._numbers += 1
        socket = Socket(self._numbers, order=self.order)
        assert self.arrivals.enter(socket, address) == (socket.became == ["begun"])
        return socket

    def pass_s(self, seconds: float) -> None:
        self.timers.advance(round(seconds * 1000))


def test_a_fleet_is_in_at_once_and_what_comes_faster_is_in_soon() -> None:
    world = World()
    fleet = [world.come() for _ in range(BURST + 20)]
    assert [peer.became for peer in fleet] == [["begun"]] * BURST + [[]] * 20
    assert world.come(INNOCENT).became == ["begun"], "other addresses do not wait"
    world.pass_s(1.05)
    assert sum(map(len, (peer.became for peer in fleet))) == BURST + RATE
    world.pass_s(1.0)
    assert all(peer.became == ["begun"] for peer in fleet) and len(world.timers) == 0 and world.arrivals.waiting == 0
    order = [number for number in world.order if number <= len(fleet)]
    assert order == sorted(order), "the oldest that waits is the next one"
    assert world.arrivals.delayed == 20
    world.pass_s(600.0)
    assert [world.come().became for _ in range(BURST + 1)] == [["begun"]] * BURST + [[]], (
        "no connection saves up for more"
    )


def test_who_fails_pays_for_it_and_no_address_is_shut_for_long() -> None:
    world = World()
    fails = BURST // (1 + FAULT_TOKENS) + 1
    for _ in range(fails):
        assert world.come().became == ["begun"]
        world.arrivals.charge(HOSTILE)
    waits = world.come()
    assert waits.became == [] and world.come(INNOCENT).became == ["begun"]
    world.pass_s((fails * (1 + FAULT_TOKENS) - BURST + 1.1) / RATE)
    assert waits.became == ["begun"]
    for _ in range(1000):
        world.arrivals.charge(HOSTILE)
    late = world.come()
    world.pass_s(DEBT_S)
    assert late.became == []
    world.pass_s(1.1 / RATE)
    assert late.became == ["begun"]


def test_one_that_fails_in_a_loop_gets_a_few_a_second() -> None:
    world, begun = World(rate=100), 0
    for _ in range(1000):
        socket = world.come()
        world.pass_s(0.01)
        if socket.became:
            begun += 1
            world.arrivals.charge(HOSTILE)
        world.arrivals.leave(socket)
    assert begun <= (BURST_S + 10) * 100 / (1 + FAULT_TOKENS) + 2


def test_the_queue_has_an_end_and_so_has_patience() -> None:
    world = World()
    fleet = [world.come() for _ in range(BURST + PLACES)]
    world.arrivals.charge(HOSTILE)
    assert world.come().became == [f"{PLACES} connections of its address wait already"]
    assert f"{PLACES} of them from {HOSTILE}" in world.arrivals.standing()
    world.pass_s(WAIT_MAX_S + 0.01)
    late = [peer for peer in fleet if peer.became != ["begun"]]
    assert late == fleet[-len(late) :] and FAULT_TOKENS <= len(late) <= FAULT_TOKENS + 2
    assert all(peer.became == [f"it has waited {WAIT_MAX_S} s for its turn"] for peer in late)
    assert world.arrivals.waiting == 0 and world.arrivals.standing() == "" and len(world.timers) == 0


def test_an_address_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for _ in range(BURST + 9):
        world.come()
    world.pass_s(5.0)
    for _ in range(BURST):
        world.come()
    lines = [line for line in caplog.messages if line.startswith("connections wait: new connections of 10.0.0.1")]
    assert len(lines) == 1 and "limits.connections_per_s" in lines[0]


def test_an_address_of_ipv6_is_its_network() -> None:
    world = World()
    became = [world.come(f"2001:db8::{number:x}").became for number in range(1, BURST + 2)]
    assert became == [["begun"]] * BURST + [[]]
    assert world.come("2001:db8:0:1::1").became == ["begun"]


def test_no_more_is_kept_than_the_bounds_allow() -> None:
    """Addresses that came and went, and what those that wait have sent."""
    world = World()
    for number in range(ADDRESSES_MAX + 100):
        world.come(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(world.arrivals._buckets) == ADDRESSES_MAX
    assert world.arrivals.hold(HELD_BYTES) and not world.arrivals.hold(1)
    assert world.arrivals.hold(-1)


steps = st.lists(st.tuples(st.sampled_from(["come", "leave", "charge", "pass"]), st.integers(0, 30)), max_size=80)


@given(st.integers(1, 5), steps)
@settings(max_examples=150, deadline=None)
def test_whatever_comes_and_goes(rate: int, steps: list[tuple[str, int]]) -> None:
    """No address has more than its burst and its rate; each begins in its order, or is refused, or has left, once; and
    nothing is left behind."""
    world, sockets, left, begun_s = World(rate), [], set(), 0.0
    for step, number in steps:
        address = f"10.0.0.{number % 2}"
        if step == "come":
            sockets.append((address, world.come(address)))
        elif step == "leave" and sockets:
            socket = sockets[number % len(sockets)][1]
            left |= {socket} if not socket.became else set()
            world.arrivals.leave(socket)
            world.arrivals.leave(socket)
        elif step == "charge":
            world.arrivals.charge(address)
        elif step == "pass":
            world.pass_s(number / 10)
            begun_s += number / 10
        for where in ("10.0.0.0", "10.0.0.1"):
            mine = [peer for its, peer in sockets if its == where]
            order = [peer.number for peer in mine if peer.became == ["begun"]]
            assert len(order) <= rate * (BURST_S + begun_s) + 1e-6
            assert [number for number in world.order if number in order] == order
        waiting = [peer for _, peer in sockets if not peer.became and peer not in left]
        assert world.arrivals.waiting == len(waiting)
    world.pass_s(WAIT_MAX_S + 0.1)
    assert all(len(peer.became) == (peer not in left) for _, peer in sockets)
    assert not world.arrivals._queues and not world.arrivals._places and len(world.timers) == 0
