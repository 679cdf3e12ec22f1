"""The engine by itself: heartbeats, and what is left when a connection has gone."""

from __future__ import annotations

import pytest

from gateway.connection import Connection
from mappings import load_tables
from tests.wire import frames
from tests.wire.conversation import Conversation, StoppedClock, build_house
from tests.wire.scripted_realm import ScriptedRealm
from transformers.amqp_types import UInt

TABLES = load_tables()
BEAT = b"\x00\x00\x00\x08\x02\x00\x00\x00"
MESSAGE = frames.message()


def opened(idle_ms: int | None, **limits: int) -> tuple[Connection, StoppedClock]:
    """A connection whose peer has said how long it waits for us."""
    house = build_house(TABLES, ScriptedRealm(), **limits)
    connection = house.connect()
    idle = None if idle_ms is None else UInt(idle_ms)
    connection.receive(frames.AMQP_HEADER + frames.frame(frames.OPEN, ["peer", "host", None, None, idle]))
    connection.data_to_send()
    assert isinstance(house.clock, StoppedClock)
    return connection, house.clock


def beats(connection: Connection, clock: StoppedClock, seconds: int, alive: bool = True) -> int:
    """Heartbeats in so many seconds of ticks, one a second."""
    count = 0
    for _ in range(seconds):
        clock.now_s += 1
        connection.tick(clock.now_s)
        count += b"".join(connection.data_to_send()).count(BEAT)
        if alive:
            connection.receive(BEAT)
    return count


def test_a_peer_that_wants_heartbeats_gets_them_in_time() -> None:
    connection, clock = opened(4_000)
    assert beats(connection, clock, 20) >= 9


def test_a_peer_that_wants_none_gets_none() -> None:
    connection, clock = opened(None)
    assert beats(connection, clock, 100) == 0
    assert not connection.closing


@pytest.mark.parametrize(("limit", "closes"), [(10_000, True), (0, False)])
def test_silence_closes_after_the_limit_and_never_without_one(limit: int, closes: bool) -> None:
    connection, clock = opened(None, idle_timeout_ms=limit)
    beats(connection, clock, 10, alive=False)
    assert not connection.closing
    beats(connection, clock, 3, alive=False)
    assert connection.closing is closes


def test_what_was_freed_neither_hears_nor_speaks() -> None:
    house = build_house(TABLES, ScriptedRealm())
    peer = Conversation(house)
    peer.say(frames.attach_sender("q"), frames.attach_receiver("q"))
    links = peer.connection.engine.links()
    assert len(links) == 2
    peer.lose()
    house.disconnect(peer.connection)  # a second time does nothing
    for link in links:
        assert not link.alive
        link.close("amqp:internal-error", "late")
        link.detach()
        link.settle([1, 2], "accepted")
        assert link.credit == 0  # type: ignore[attr-defined]
    peer.connection.receive(frames.begin(channel=1))
    assert house.links == 0
    assert house.credit.granted == 0
    assert not house.connections
    assert not house.link_names


def test_sessions_and_links_that_come_and_go_leave_nothing() -> None:
    house = build_house(TABLES, ScriptedRealm())
    peer = Conversation(house)
    for number in range(300):
        peer.say(frames.begin(channel=1), frames.attach_sender("q", channel=1, name=f"a{number}"))
        peer.say(frames.transfer(0, MESSAGE, channel=1))
        peer.say(frames.attach_receiver("missing", channel=1, name=f"b{number}"))
        peer.say(frames.detach(0, channel=1), frames.detach(1, channel=1), frames.end(channel=1))
    assert peer.connection.engine.links() == []
    assert house.links == 0
    assert house.credit.granted == 0
    assert not house.link_names
    assert house.outcomes.open == 0
