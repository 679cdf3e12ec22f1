"""Heartbeats, on a clock that moves when it is told to: never more than half of the time-out in silence, for every
time-out and every pattern of what else is said; and no more of them than that takes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gateway.config.limits import HEARTBEATS_PER_S, IDLE_TIMEOUT_MIN_MS
from gateway.frames.frames import OPEN, Frame
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from gateway.session.heartbeats import INTERVAL_MAX_S, Heartbeats, Liveness
from mappings import load_tables
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.wire import frames
from tests.kit.wire.conversation import build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm
from transformers.codec import UInt

TABLES = load_tables()
BEAT = b"\x00\x00\x00\x08\x02\x00\x00\x00"


class World:
    """A gateway, and what its peers hear in turns of any length."""

    def __init__(self) -> None:
        self.gateway: Gateway = build_gateway(TABLES, ScriptedRealm())
        assert isinstance(self.gateway.clock, StoppedClock)
        self.clock = self.gateway.clock
        self.heard_s: dict[Connection, float] = {}
        self.longest_s: dict[Connection, float] = {}
        self.beats: dict[Connection, int] = {}

    def open(self, idle_ms: int | None) -> Connection:
        connection = self.gateway.connect()
        idle = None if idle_ms is None else UInt(idle_ms)
        connection.receive(frames.AMQP_HEADER + frames.frame(frames.OPEN, ["peer", "host", None, None, idle]))
        self.heard_s[connection] = self.clock.now_s
        self.longest_s[connection] = 0.0
        self.beats[connection] = 0
        self._hear(connection)
        return connection

    def turn(self, seconds: float) -> None:
        """As the server: heartbeats first, at the end of a turn that took so long or when the earliest is due."""
        now_s, due_s = self.clock.now_s, self.gateway.heartbeats.due_s
        self.clock.now_s = max(now_s, min(now_s + seconds, due_s))
        for connection in self.gateway.heartbeats.beat(self.clock.now_s):
            self._hear(connection)

    def busy_turn(self, seconds: float) -> None:
        """One that takes that long, whatever is due."""
        self.clock.now_s += seconds
        for connection in self.gateway.heartbeats.beat(self.clock.now_s):
            self._hear(connection)

    def say(self, connection: Connection) -> None:
        """Its peer asks for something, and is answered."""
        connection.receive(frames.begin(0) + frames.end(0))
        self._hear(connection)

    def _hear(self, connection: Connection) -> None:
        octets = b"".join(connection.data_to_send())
        if octets:
            self.longest_s[connection] = max(self.longest_s[connection], self.silence(connection))
            self.heard_s[connection] = self.clock.now_s
            self.beats[connection] += octets.count(BEAT)

    def silence(self, connection: Connection) -> float:
        return self.clock.now_s - self.heard_s[connection]


@pytest.mark.parametrize("idle_ms", [100, 101, 250, 1_000, 7_777, 30_000, 60_000, 3_600_000])
@pytest.mark.parametrize("busy", [0.0, 0.24])
@pytest.mark.parametrize("seed", range(3))
def test_silence_is_never_longer_than_half_of_the_time_out(idle_ms: int, busy: float, seed: int) -> None:
    """`busy`: how long a turn takes at most, as a part of the time-out: a quarter is what is allowed for. However often
    and whenever the peer is told something else."""
    world, dice = World(), random.Random(seed)
    connection = world.open(idle_ms)
    end_s = world.clock.now_s + 50 * idle_ms / 1000
    while world.clock.now_s < end_s:
        if busy:
            world.busy_turn(dice.uniform(0, busy) * idle_ms / 1000)
        else:
            world.turn(idle_ms / 50_000)
        if dice.random() < 0.3:
            world.say(connection)
    longest = max(world.longest_s[connection], world.silence(connection))
    assert longest <= idle_ms / 2000 + 1e-9
    assert world.beats[connection] > 0


@pytest.mark.parametrize("idle_ms", [100, 1_000, 30_000])
def test_there_are_no_more_heartbeats_than_four_a_time_out(idle_ms: int) -> None:
    world = World()
    silent, speaker, without = world.open(idle_ms), world.open(idle_ms), world.open(None)
    end_s = world.clock.now_s + 20 * idle_ms / 1000
    said_s = 0.0
    while world.clock.now_s < end_s:
        world.turn(idle_ms / 20_000)
        if world.clock.now_s - said_s >= idle_ms / 10_000:
            said_s = world.clock.now_s
            world.say(speaker)
    assert 60 <= world.beats[silent] <= 81
    assert world.beats[speaker] == world.beats[without] == 0


def test_who_has_not_read_what_waits_for_it_is_not_sent_more() -> None:
    world = World()
    connection = world.open(100)
    connection.write_pressure.in_socket = lambda: 8
    for _ in range(100):
        world.turn(0.02)
    assert world.beats[connection] == 0
    connection.write_pressure.in_socket = lambda: 0
    for _ in range(10):
        world.turn(0.02)
    assert world.beats[connection] > 0


@pytest.mark.parametrize("how", ["closes", "is closed", "breaks off"])
def test_who_has_gone_is_forgotten(how: str) -> None:
    world = World()
    connection = world.open(1_000)
    if how == "closes":
        connection.receive(frames.close())
    elif how == "is closed":
        connection.close("amqp:connection:forced")
    else:
        world.gateway.disconnect(connection)
    if how != "breaks off":
        connection.data_to_send()
    for _ in range(100):
        world.turn(1.0)
    assert world.beats[connection] == 0
    assert world.gateway.heartbeats.due_s == float("inf")
    assert not world.gateway.heartbeats._heap and not world.gateway.heartbeats._intervals_s


class _Peer:
    """What is counted of a connection."""

    def __init__(self) -> None:
        self.liveness = Liveness(StoppedClock())


def test_no_more_are_promised_than_can_be_sent() -> None:
    """And who leaves makes room."""
    heartbeats: Heartbeats[Any] = Heartbeats()
    each_per_s = 4_000 / IDLE_TIMEOUT_MIN_MS
    most = int(HEARTBEATS_PER_S / each_per_s)
    peers: list[Any] = [_Peer() for _ in range(most + 1)]
    opened = Frame(0, OPEN, ("peer", None, None, None, UInt(IDLE_TIMEOUT_MIN_MS)))
    assert [heartbeats.keep(peer, opened) for peer in peers[:most]] == [""] * most
    assert "too many heartbeats" in heartbeats.keep(peers[most], opened)
    heartbeats.leave(peers[0])
    assert heartbeats.keep(peers[most], opened) == ""


def test_very_long_time_outs_are_looked_at_often_enough_to_forget_who_has_gone() -> None:
    world = World()
    connection = world.open(2**31 - 1)
    assert world.gateway.heartbeats.due_s - world.clock.now_s <= INTERVAL_MAX_S
    world.gateway.disconnect(connection)
    world.busy_turn(INTERVAL_MAX_S)
    assert not world.gateway.heartbeats._heap
