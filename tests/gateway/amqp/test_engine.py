"""The engine by itself: a peer that falls silent, and what is left when a connection has gone."""

from __future__ import annotations

import pytest

from gateway.amqp.link_ends import Outgoing
from gateway.session.connection import Connection
from mappings import load_tables
from native_backend.state.mistakes import ALARM, Mistakes
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm

TABLES = load_tables()
MESSAGE = frames.message()


def opened(**limits: int) -> tuple[Connection, StoppedClock]:
    gateway = build_gateway(TABLES, ScriptedRealm(), **limits)
    connection = gateway.connect()
    connection.receive(frames.AMQP_HEADER + frames.open_())
    connection.data_to_send()
    assert isinstance(gateway.clock, StoppedClock)
    return connection, gateway.clock


def ticks(connection: Connection, clock: StoppedClock, seconds: int) -> None:
    """One a second, in silence."""
    for _ in range(seconds):
        clock.now_s += 1
        connection.tick(clock.now_s)
        connection.data_to_send()


@pytest.mark.parametrize(("limit", "closes"), [(10_000, True), (0, False)])
def test_silence_closes_after_the_limit_and_never_without_one(limit: int, closes: bool) -> None:
    connection, clock = opened(idle_timeout_ms=limit)
    ticks(connection, clock, 10)
    assert not connection.closing
    ticks(connection, clock, 3)
    assert connection.closing is closes


def test_a_mistake_of_ours_is_logged_with_its_traceback_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """A peer that finds a way to it cannot fill the disk; each place in the source has its own, and all are counted."""
    realm, clock = ScriptedRealm(), StoppedClock()
    realm.mistakes = Mistakes(clock)
    gateway = build_gateway(TABLES, realm)

    def fail_here() -> None:
        raise ValueError

    def fail_there() -> None:
        raise KeyError

    for _ in range(100):
        for fail in (fail_here, fail_there):
            try:
                fail()
            except (ValueError, KeyError):
                gateway.report("a turn failed")
        clock.now_s += 0.7
    logged = [record for record in caplog.records if "a turn failed" in record.getMessage()]
    assert all(record.exc_info is not None for record in logged)
    assert [record.getMessage() for record in logged[:2]] == ["a turn failed"] * 2
    assert len(logged) == 4 and all("85 more times" in record.getMessage() for record in logged[2:])
    assert gateway.faults["assertion"] == realm.mistakes.alarms[ALARM] == 200


@pytest.mark.parametrize(
    "data",
    [frames.disposition(1, 0, frames.state("accepted")), frames.flow(0, 1, channel=3), frames.transfer(5, MESSAGE)],
    ids=["amqp:not allowed", "amqp:not-allowed", "amqp:session:invalid-field"],
)
def test_a_close_that_proton_writes_does_not_reach_the_peer(data: bytes) -> None:
    """Should anything come to proton that it closes the connection for: the table `fault` says with which condition."""
    peer = Conversation(build_gateway(TABLES, ScriptedRealm()))
    peer.say(frames.attach_sender("q"))
    peer.say(frames.transfer(0, MESSAGE))
    before = len(peer.seen)
    engine = peer.connection.engine
    engine._push(data, 0, len(data))
    peer.connection._carry_out(engine.take_facts())
    peer.listen()
    [close] = peer.seen[before:]
    assert (close.name, close.condition) == ("close", "amqp:decode-error")
    assert peer.connection.closing and engine.finished


def test_what_was_freed_neither_hears_nor_speaks() -> None:
    gateway = build_gateway(TABLES, ScriptedRealm())
    peer = Conversation(gateway)
    peer.say(frames.attach_sender("q"), frames.attach_receiver("q"))
    links = peer.connection.engine.links()
    assert len(links) == 2
    peer.lose()
    gateway.disconnect(peer.connection)  # a second time does nothing
    for link in links:
        assert not link.alive
        link.close("amqp:internal-error", "late")
        link.detach()
        link.settle([1, 2], "accepted")
        if isinstance(link, Outgoing):
            link.tell_back([1, 2], "rejected", "rejected", None)
        assert link.credit == 0  # type: ignore[attr-defined]
    peer.connection.receive(frames.begin(channel=1))
    assert gateway.links == 0
    assert gateway.credit.granted == 0
    assert not gateway.connections
    assert not gateway.link_names


def test_sessions_and_links_that_come_and_go_leave_nothing() -> None:
    gateway = build_gateway(TABLES, ScriptedRealm())
    peer = Conversation(gateway)
    for number in range(300):
        peer.say(frames.begin(channel=1), frames.attach_sender("q", channel=1, name=f"a{number}"))
        peer.say(frames.transfer(0, MESSAGE, channel=1))
        peer.say(frames.attach_receiver("missing", channel=1, name=f"b{number}"))
        peer.say(frames.detach(0, channel=1), frames.detach(1, channel=1), frames.end(channel=1))
    assert peer.connection.engine.links() == []
    assert gateway.links == 0
    assert gateway.credit.granted == 0
    assert not gateway.link_names
    assert gateway.outcomes.open == 0
