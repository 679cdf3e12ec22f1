"""Peers that mean ill: sizes that lie, bombs, storms, and questions whose answers no one reads. Each is refused or held
back with the gateway's memory where it was, and another connection is served meanwhile.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.frames import AMQP_HEADER
from tests.kit.wire.peer import Peer
from tests.wire.conftest import serve

MIB = 1024 * 1024
ROOM = 24 * MIB  # what memory may grow by; each flood would bring many times more, were it kept
HELLO = AMQP_HEADER + frames.open_("flood") + frames.begin()
MESSAGE = frames.message()
FLOOD_S = HANG_S


@pytest.fixture(scope="module")
def flooded_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GatewayProcess, int]]:
    """One for all floods, and its memory before the first: what a flood leaves behind adds up."""
    limits = {"write_buffer_bytes": MIB // 16, "open_timeout_ms": 5_000, "idle_timeout_ms": 0}
    for gateway in serve(tmp_path_factory, limits=limits, admin={"listen": "http://127.0.0.1:0"}):
        with Peer(gateway.port) as peer:
            peer.stored("any.q", *[MESSAGE] * 50)  # everything that is made once is there
        yield gateway, gateway.rss_bytes()


@pytest.fixture
def flooded(flooded_gateway: tuple[GatewayProcess, int]) -> Iterator[GatewayProcess]:
    gateway, before = flooded_gateway
    yield gateway
    served(gateway.port)
    worked_off(Watch.of(gateway))
    assert gateway.rss_bytes() - before < ROOM


def worked_off(watch: Watch) -> None:
    """What those who hung up had sent before is carried out in turns, behind those of others."""
    until(lambda: b"\nrealmgate_connections 0.0\n" in watch.ask("/metrics")[2], "the end of the flood's connection")


def served(port: int) -> None:
    """Someone else is, once what the flood left in sockets is worked off: on a busy machine that takes a while."""
    end = time.monotonic() + FLOOD_S
    while True:
        try:
            with Peer(port) as peer:
                return peer.stored("any.other", MESSAGE)
        except AssertionError:
            if time.monotonic() > end:
                raise


def pour(port: int, data: bytes, repeat: int = 1, reads: bool = True) -> int:
    """Send it again and again, until it is all gone, or the gateway takes no more for a while; octets taken."""
    taken = 0
    with socket.create_connection(("127.0.0.1", port)) as flood:
        flood.settimeout(0.5)
        flood.sendall(HELLO)
        end = time.monotonic() + FLOOD_S
        with contextlib.suppress(OSError):
            for _ in range(repeat):
                flood.sendall(data)
                taken += len(data)
                if reads:
                    flood.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        while flood.recv(1 << 20):
                            pass
                    flood.settimeout(0.5)
                assert time.monotonic() < end, "the flood does not end"
    return taken


def bomb(code: int, depth: int) -> bytes:
    """Lists in lists, or the like."""
    value = b"\x45"
    for _ in range(depth):
        value = struct.pack(">BII", code, len(value) + 4, 1) + value
    return value


def attach_with(properties: bytes) -> bytes:
    body = frames.attach_sender("any.q", 3, "bomb")[8:]
    size = struct.unpack_from(">B", body, 4)[0]
    assert body[3] == 0xC0
    fields = body[6 : 4 + 1 + size] + b"\x40" * 3 + properties  # the link's properties are the 14th
    listed = b"\x00\x53\x12\xd0" + struct.pack(">II", len(fields) + 4, 14) + fields
    return struct.pack(">IBBH", len(listed) + 8, 2, 0, 0) + listed


SYMBOLS = b"".join(b"\xa3\x04%04x\x40" % number for number in range(8_000))
BOMBS = {
    "4-gib-frame": struct.pack(">IBBH", 0xFFFFFFFF, 2, 0, 0),
    "frame-above-the-limit": struct.pack(">IBBH", 65_537, 2, 0, 0),
    "nested-lists": attach_with(bomb(0xD0, 3_000)),
    "nested-maps": attach_with(bomb(0xD1, 3_000)),
    "array-of-4-billion-nulls": attach_with(b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40"),
    "list-of-4-billion": attach_with(b"\xd0\x00\x00\x00\x05\xff\xff\xff\xff\x45"),
    "string-of-4-gib": attach_with(b"\xb1\xff\xff\xff\xff"),
    "descriptors-of-descriptors": attach_with(b"\x00" * 60_000),
    "odd-map": attach_with(struct.pack(">BII", 0xD1, len(SYMBOLS[:-1]) + 4, 15_999) + SYMBOLS[:-1]),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_closes_its_connection(flooded: GatewayProcess, name: str) -> None:
    for _ in range(5):
        with Peer(flooded.port) as peer:
            peer.send(BOMBS[name])
            assert peer.expect("close").condition in ("amqp:decode-error", "amqp:connection:framing-error")
            assert peer.closed()


def test_a_map_of_symbols_as_large_as_a_frame_is_forgotten_with_its_link(flooded: GatewayProcess) -> None:
    properties = struct.pack(">BII", 0xD1, len(SYMBOLS) + 4, 16_000) + SYMBOLS
    with Peer(flooded.port) as peer:
        for _ in range(40):
            peer.send(attach_with(properties))
            assert peer.expect("attach").field(6) is not None
            peer.send(frames.detach(3))
            peer.expect("detach")


def test_half_a_frame_is_waited_for_and_no_more_than_a_frame_is_kept(flooded: GatewayProcess) -> None:
    """Slow ones take a place, not memory; who sends no OPEN in time is closed."""
    half = struct.pack(">IBBH", 60_000, 2, 0, 0) + b"\x00\x53\x10\xd0"
    slow = [Peer(flooded.port, begin=False) for _ in range(50)]
    for peer in slow:
        peer.send(AMQP_HEADER + half)
    for octet in range(20):
        slow[octet].send(b"\x00")
        time.sleep(0.02)
    assert all(peer.closed(30.0) for peer in slow)


def sessions(_: int) -> bytes:
    return b"".join(frames.begin(channel) + frames.end(channel) for channel in range(1, 60))


def links(_: int) -> bytes:
    return b"".join(
        frames.attach_sender("any.q", handle, f"l{handle}") + frames.detach(handle) for handle in range(100)
    )


STORMS: dict[str, tuple[Callable[[int], bytes], int]] = {
    "begins-and-ends": (sessions, 60),
    "attaches-and-detaches": (links, 20),
    "begins": (lambda _: b"".join(frames.begin(channel) for channel in range(1, 2_000)), 1),
    "attaches": (lambda _: b"".join(frames.attach_sender("any.q", index, f"{index}") for index in range(2_000)), 1),
    "flows": (lambda _: frames.flow(0, 1) * 2_000, 5),
    "flows-with-echo": (lambda _: frames.frame(frames.FLOW, frames_echo()) * 2_000, 5),
    "parts-of-one-octet": (
        lambda _: frames.attach_sender("any.q") + frames.transfer(0, b"\x00", more=True) * 20_000,
        2,
    ),
    "parts-of-nothing": (lambda _: frames.attach_sender("any.q") + frames.transfer(0, b"", more=True) * 20_000, 2),
    "transfers-without-credit": (
        lambda _: (
            frames.attach_sender("any.q", mode=1)
            + b"".join(frames.transfer(number, MESSAGE) for number in range(20_000))
        ),
        1,
    ),
    "dispositions-of-nothing": (lambda _: frames.disposition(0, 2**32 - 1, frames.state("accepted")) * 5_000, 2),
}


def frames_echo() -> list[object]:
    from transformers.codec import UInt

    return [UInt(0), UInt(100), UInt(0), UInt(100), None, None, None, None, None, True]


@pytest.mark.parametrize("reads", [True, False], ids=["reads", "does not read"])
@pytest.mark.parametrize("name", STORMS)
def test_a_storm_is_weathered(flooded: GatewayProcess, name: str, reads: bool) -> None:
    octets, repeat = STORMS[name]
    pour(flooded.port, octets(0), repeat, reads)


def test_who_does_not_read_answers_is_not_read_and_goes_on_when_it_reads(new_gateway: StartGateway) -> None:
    """Sessions begun and ended without end, and not one answer read: the gateway stops reading."""
    gateway = new_gateway("embedded", limits={"write_buffer_bytes": MIB // 16})
    before = gateway.rss_bytes()
    with socket.create_connection(("127.0.0.1", gateway.port)) as peer:
        peer.settimeout(1.0)
        peer.sendall(HELLO)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 40 * MIB:
                sent += peer.send(sessions(0))
        assert sent < 40 * MIB, "it reads on and on"
        assert gateway.rss_bytes() - before < ROOM
        peer.settimeout(60.0)
        answers = 0
        while answers < MIB:  # those that waited come
            answers += len(peer.recv(1 << 20))
    gateway.kill()  # it would work off what is left in the sockets
