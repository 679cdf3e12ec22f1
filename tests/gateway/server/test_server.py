"""The server's clock: there is always a next turn, and only one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop

from gateway.quotas.attach_share import AttachShare
from gateway.reload.tables import TableReload
from gateway.server.server import SHARED_TURN_BYTES, Server
from gateway.session.gateway import Gateway
from gateway.session.heartbeats import Heartbeats
from mappings import load_tables
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.kit.wire.scripted_realm import ScriptedRealm

EMPTY = b"\0\0\0\x08\x02\0\0\0"  # a heartbeat


class _Gateway:
    """What the clock sees of a gateway."""

    def __init__(self) -> None:
        self.turns = 0
        self.fails = 0
        self.touched: dict[object, None] = {}
        self.realm = SimpleNamespace(busy=True, poll_interval_s=0.001)
        self.ready: dict[object, None] = {}
        self.attach_share: AttachShare[Any] = AttachShare()
        self.heartbeats: Heartbeats[Any] = Heartbeats()
        self.departures: tuple[object, ...] = ()
        self.clock = StoppedClock()

    def poll(self) -> None:
        self.turns += 1
        if self.fails:
            self.fails -= 1
            raise AssertionError("a turn that fails")


def _run(gateway: _Gateway, work: Any) -> None:
    async def main() -> None:
        server = Server(cast(Gateway, gateway), cast(TableReload, None))
        server.loop = asyncio.get_running_loop()
        await work(server)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("interval_s", [0.0, 0.0001, 0.001, 0.02])
def test_a_turn_may_be_asked_for_at_any_time(interval_s: float) -> None:
    """uvloop gives a handle without a time when a timer is due at once."""
    gateway = _Gateway()

    async def work(server: Server) -> None:
        for _ in range(50):
            server.schedule(interval_s)
            server.soon()
        await asyncio.sleep(0.1)

    _run(gateway, work)
    assert 1 <= gateway.turns <= 110, "one chain of turns, however often it was asked for"


def test_a_turn_that_fails_is_followed_by_another() -> None:
    gateway = _Gateway()
    gateway.fails = 3

    async def work(server: Server) -> None:
        server.loop.set_exception_handler(lambda *_: None)
        server.schedule(0.0)
        while gateway.turns <= 3:  # without another turn, the alarm of the test
            await asyncio.sleep(0.001)

    _run(gateway, work)


def test_a_heartbeat_does_not_keep_the_clock_busy() -> None:
    """Two thousand idle peers beat a hundred times a second; a turn a millisecond is for those that say something."""
    gateway = _Gateway()

    async def work(server: Server) -> None:
        server.sockets[cast(Any, "silent")] = cast(Any, SimpleNamespace(send=lambda: False))
        server.sockets[cast(Any, "told")] = cast(Any, SimpleNamespace(send=lambda: True))
        for heard, peer, stirs in ((False, "silent", False), (True, "silent", True), (False, "told", True)):
            server._poll_interval.mark_active(0.0)
            gateway.touched[peer] = None
            server.received(1, heard)
            server.turn()
            assert (server._poll_interval._active_s > 0.0) is stirs, (heard, peer)

    _run(gateway, work)


def test_what_can_be_read_at_once_has_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn for each of many sockets would be an evidence record, a look at the log and a round of dispatch each. The
    clock's own turn does not come in between, however slow the cores are."""
    monkeypatch.setattr("gateway.server.server.BUSY_INTERVAL_S", 60.0)
    gateway = _Gateway()

    async def work(server: Server) -> None:
        server.schedule(10.0)
        for size_bytes, turns in ((100, 0), (100, 0), (SHARED_TURN_BYTES, 1), (100, 1)):
            server.received(size_bytes, heard=True)
            assert gateway.turns == turns
        await asyncio.sleep(0)
        assert gateway.turns == 2, "behind what was read"
        server.received(100, heard=True)
        server.turn()
        await asyncio.sleep(0)
        assert gateway.turns == 3, "a turn came first: none is due any more"
        server._timer.cancel()  # type: ignore[union-attr]

    _run(gateway, work)


@pytest.mark.parametrize(("look_s", "remains_s"), [(0.0, 4.5), (0.5, 1.5), (2.0, 1.0)])
def test_the_realm_gets_what_peers_left_of_the_time_to_shut_down(look_s: float, remains_s: float) -> None:
    """`look_s`: what passes between two looks at peers that are not done. A log that is slow at the end has more than a
    second where no peer needed it."""
    now, given = [0.0], list[float]()

    def is_done() -> bool:
        now[0] += look_s
        return not look_s

    class Gateway(_Gateway):
        drained = property(lambda _: is_done())
        outcomes = property(lambda _: SimpleNamespace(open=int(not is_done())))
        notices = SimpleNamespace(close=lambda: None)

        def stop(self) -> None: ...

        close_connections = close_evidence = stop

    gateway = Gateway()
    gateway.realm = SimpleNamespace(descriptor=-1, close=given.append, poll_interval_s=0.001)

    async def work(server: Server) -> None:
        server.loop = cast(Any, SimpleNamespace(time=lambda: now[0]))
        await server._shut_down()

    _run(gateway, work)
    assert given == [remains_s]


def test_only_a_heartbeat_has_nothing_to_say() -> None:
    conversation = Conversation(build_gateway(load_tables(), ScriptedRealm()))
    assert not conversation.connection.receive(EMPTY)
    attach = frames.attach_receiver(frames.source("news", 0), 0, "d")
    assert not conversation.connection.receive(attach[:20])
    assert conversation.connection.receive(attach[20:] + EMPTY)


@pytest.mark.parametrize("pressure", [True, False])
def test_a_peer_that_is_not_read_is_not_silent(pressure: bool) -> None:
    """While the realm does not keep up, no socket is read: what the peers say meanwhile is not heard."""
    with ScriptedGateway(load_tables()) as scripted, Peer(scripted.port):
        gateway, server = scripted.gateway, scripted.server

        def later() -> list[bool]:
            ports = list(server.sockets.items())
            if pressure:
                gateway.waiting_bytes.count(ports[0][0].holder, 2 * gateway.limits.in_flight_bytes)
            for later_s in (10_000, 20_000):  # the first time it was heard before
                for _, port in ports:
                    port.tick(gateway.clock.monotonic_s() + later_s)
            return [connection.closing for connection, _ in ports]

        assert scripted.do(later) == [not pressure]
