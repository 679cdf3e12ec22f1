"""Floods of WebSocket frames: what came is worked off a few frames in a turn, and a flood ends its connection."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, Request

from gateway.server.websocket import EMPTY_FRAMES_PER_S, TURN_FRAMES, UNKNOWN_FRAMES, WebSocketLayer
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

ASKS = Request(host="here", target="/", subprotocols=["amqp"])


class Client:
    """The frames of a client."""

    def __init__(self) -> None:
        self.socket = WSConnection(ConnectionType.CLIENT)
        self.hello = self.socket.send(ASKS)

    def accepted(self, answer: bytes) -> None:
        self.socket.receive_data(answer)
        assert any(isinstance(event, AcceptConnection) for event in self.socket.events()), answer

    def frames(self, *events: Event) -> bytes:
        return b"".join(self.socket.send(event) for event in events)


class Below(asyncio.Transport):
    """The socket: what is written, whether it is read, whether it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.reads, self.closed = b"", True, False

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Above(asyncio.Protocol):
    """What came, and in what pieces."""

    def __init__(self) -> None:
        self.octets, self.lost = b"", False
        self.sizes: list[int] = []

    def data_received(self, data: bytes) -> None:
        assert not self.lost
        self.octets += data
        self.sizes.append(len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


class Timers:
    """The turns of the loop that runs, and a clock that a test moves: a slow machine lets no second pass."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.call_soon = asyncio.get_running_loop().call_soon

    def time(self) -> float:
        return self.now_s


class Stack:
    """A layer between both, whose peer may be known."""

    def __init__(self, known: bool) -> None:
        self.below, self.above, self.client, self.timers = Below(), Above(), Client(), Timers()
        self.failed: list[str] = []
        self.layer = WebSocketLayer(self.above, (), self.failed.append, lambda: known, cast(Any, self.timers))
        self.layer.connection_made(self.below)
        self.layer.data_received(self.client.hello)
        self.client.accepted(self.below.written)

    async def turns(self) -> int:
        """Turns of the loop until all that came is worked off; in each of them others could do something."""
        for count in itertools.count(1):
            await asyncio.sleep(0)
            if (self.below.reads and not self.below.closed) or self.above.lost or self.layer._over:
                return count
        raise AssertionError


def on_a_loop(known: bool) -> Callable[[Callable[[Stack], Awaitable[None]]], None]:
    def run(test: Callable[[Stack], Awaitable[None]]) -> None:
        async def begin() -> None:
            await test(Stack(known))

        asyncio.run(begin())

    return run


def test_frames_are_taken_a_few_in_a_turn_and_nothing_is_read_meanwhile() -> None:
    async def test(stack: Stack) -> None:
        octets = bytes(range(256)) * 20
        stack.layer.data_received(stack.client.frames(*(BytesMessage(octets[at : at + 8]) for at in range(0, 5120, 8))))
        assert not stack.below.reads and stack.above.octets == octets[: 8 * TURN_FRAMES]
        assert await stack.turns() >= 640 // TURN_FRAMES - 1
        assert stack.above.octets == octets and not stack.failed

    on_a_loop(known=True)(test)


def test_a_large_message_takes_few_turns_and_none_takes_it_all() -> None:
    async def test(stack: Stack) -> None:
        octets = bytes(range(256)) * 1024
        stack.layer.data_received(stack.client.frames(BytesMessage(octets)))
        await stack.turns()
        assert stack.above.octets == octets and len(stack.above.sizes) <= 5
        assert max(stack.above.sizes) < 65_536 + 4_096, "a turn ends behind the slice that fills it"

    on_a_loop(known=True)(test)


def test_what_came_before_the_end_is_heard_before_it() -> None:
    async def test(stack: Stack) -> None:
        stack.layer.data_received(stack.client.frames(*[BytesMessage(b"x")] * 200))
        stack.below.closed = True
        stack.layer.connection_lost(None)
        assert not stack.above.lost
        await stack.turns()
        assert stack.above.lost and stack.above.octets == b"x" * 200

    on_a_loop(known=True)(test)


def test_a_reader_that_pauses_gets_nothing_until_it_goes_on() -> None:
    async def test(stack: Stack) -> None:
        stack.layer.data_received(stack.client.frames(*[BytesMessage(b"x")] * 200))
        stack.layer.pause_reading()
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(stack.above.octets) <= 2 * TURN_FRAMES
        stack.layer.resume_reading()
        await stack.turns()
        assert stack.above.octets == b"x" * 200

    on_a_loop(known=True)(test)


@pytest.mark.parametrize(
    ("event", "known", "limit"),
    [
        (Ping(b""), True, EMPTY_FRAMES_PER_S),
        (BytesMessage(b""), True, EMPTY_FRAMES_PER_S),
        (BytesMessage(b"x"), False, UNKNOWN_FRAMES),
    ],
)
def test_a_flood_is_closed(event: Event, known: bool, limit: int) -> None:
    async def test(stack: Stack) -> None:
        stack.layer.data_received(stack.client.frames(*[event] * (limit - 2)))
        await stack.turns()
        assert not stack.failed
        stack.layer.data_received(stack.client.frames(*[event] * (2 * limit)))
        await stack.turns()
        assert stack.failed == ["a flood of frames"] and stack.below.closed
        assert CloseConnection(1008).code.to_bytes(2, "big") in stack.below.written

    on_a_loop(known)(test)


def test_pings_that_come_slowly_are_no_flood() -> None:
    async def test(stack: Stack) -> None:
        for _ in range(5):
            stack.layer.data_received(stack.client.frames(*[Ping(b"")] * EMPTY_FRAMES_PER_S))
            await stack.turns()
            stack.timers.now_s += 1.0
        assert not stack.failed and not stack.below.closed

    on_a_loop(known=True)(test)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory: Path = tmp_path_factory.mktemp("websocket-floods")
    gateway = make_gateway(directory, embedded_realm(directory))
    gateway.more = ["ws"]
    gateway.start()
    yield gateway
    gateway.end_well()


@pytest.mark.parametrize("event", [Ping(b""), BytesMessage(b"")], ids=["pings", "empty-frames"])
def test_who_floods_is_cut_off_and_others_are_served(gateway: GatewayProcess, event: Event) -> None:
    """A megabyte at once, of a peer that has not logged in: it would take the loop for seconds."""
    client = Client()
    with socket.create_connection(("127.0.0.1", gateway.ports["ws"]), HANG_S) as flood, Peer(gateway.port) as peer:
        flood.sendall(client.hello)
        client.accepted(flood.recv(4096))
        with contextlib.suppress(ConnectionError):
            flood.sendall(client.frames(*[event] * 1_000) * 170)
        peer.stored("orders", frames.message())
        with contextlib.suppress(ConnectionError):
            while flood.recv(65_536):
                pass
    gateway.await_log("a flood of frames")
