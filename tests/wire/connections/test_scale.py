"""What one process carries, over real sockets, in small: `python -m bench.scale` measures the same at full size, and
`bench/README.md` says what came of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.clients import (
    ATTACH,
    DETACH,
    DISPOSITION,
    HEARTBEAT,
    TRANSFER,
    Clients,
    Member,
    descriptors,
    until,
    used_s,
)
from tests.wire.conftest import serve

MIB = 1024 * 1024
WRITE_BUFFER = MIB // 16
LIMITS = {"write_buffer_bytes": WRITE_BUFFER, "window_bytes": MIB}
MESSAGE = frames.message(b"x" * 100)
LARGE = frames.message(b"x" * 60_000)
COUNT, CREDIT = 400, 10_000
ROOM = 24 * MIB  # for what is no peer's: the events in memory, and the allocator's own


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    yield from serve(tmp_path_factory, limits=LIMITS)


@pytest.fixture
def clients(gateway: GatewayProcess) -> Iterator[Clients]:
    with Clients(gateway.port) as clients:
        yield clients


def of_queue(name: str, credit: int) -> list[bytes]:
    """A publisher and a consumer."""
    source, target = frames.source(name, capability="queue"), frames.target(name, capability="queue")
    return [frames.attach_sender(target), frames.attach_receiver(source), frames.flow(1, credit)]


def test_idle_connections_take_little_memory_and_hardly_any_processor(
    gateway: GatewayProcess, clients: Clients
) -> None:
    clients.enter(20, lambda _: of_queue("any.idle", 10), answers=2)
    before = gateway.rss_bytes()
    clients.enter(200, lambda _: of_queue("any.idle", 10), answers=2)
    assert (gateway.rss_bytes() - before) / 200 < 150_000
    time.sleep(1.0)
    used, seconds = used_s(gateway.pid), 3.0
    for member in clients.members:
        member.send(HEARTBEAT)
    time.sleep(seconds)
    assert used_s(gateway.pid) - used < 0.1 * seconds


def test_a_thousand_links_of_one_connection(gateway: GatewayProcess, clients: Clients) -> None:
    clients.enter(1, lambda _: of_queue("any.links", 0), answers=2)
    before = gateway.rss_bytes()
    [member] = clients.enter(1, lambda _: [], answers=0)
    for channel in range(4):
        begin = [frames.begin(channel)] if channel else []
        member.send(*begin, *(one_of_many(channel, handle) for handle in range(250)))
        assert DETACH not in member.await_(ATTACH, count=250)
    assert (gateway.rss_bytes() - before) / 1_000 < 40_000
    member.send(frames.flow(249, 5, channel=3))
    for number in range(5):
        member.send(frames.transfer(number, MESSAGE, 248, channel=3))
        member.await_(TRANSFER, DISPOSITION)
    member.reset()


def one_of_many(channel: int, handle: int) -> bytes:
    name = f"l{channel}-{handle}"
    if handle % 2:
        source = frames.source("any.links", capability="queue")
        return frames.attach_receiver(source, handle, name, channel=channel)
    return frames.attach_sender(frames.target("any.links", capability="queue"), handle, name, channel=channel)


@pytest.mark.parametrize("realm", ["embedded", "kafka"])
def test_a_consumer_with_one_credit_is_served_beside_one_with_ten_thousand(
    new_gateway: StartGateway, realm: str
) -> None:
    """On one queue, while messages come without end: until its next one, the other one gets no more than it has credit
    for, and mostly a few. Seconds would say how busy the machine is."""
    gateway = new_gateway(realm)
    with Clients(gateway.port) as clients:
        source = frames.source("any.shared", capability="queue")
        [small] = clients.enter(1, lambda _: [frames.attach_receiver(source)])
        [large] = clients.enter(1, lambda _: [frames.attach_receiver(source), frames.flow(1, CREDIT)])
        [publisher] = clients.enter(
            1, lambda _: [frames.attach_sender(frames.target("any.shared", capability="queue"))]
        )
        stop = threading.Event()
        reading = Reading(large)
        others = [threading.Thread(target=run, args=(stop,)) for run in (reading, Streaming(publisher))]
        for other in others:
            other.start()
        try:
            waits = [one(small, number, reading) for number in range(100)]
        finally:
            stop.set()
            for other in others:
                other.join()
        assert reading.taken > 100, "the other one was served, too"
        assert sorted(waits)[50] < CREDIT / 10, waits
        assert max(waits) < 2 * CREDIT, waits  # what it has credit for may lie unread at its socket


def one(small: Member, number: int, other: Reading) -> int:
    """How many messages the other one read until this one had its next."""
    before = other.taken
    small.send(frames.flow(1, 1, number))
    small.await_(TRANSFER)
    small.send(frames.disposition(number, number, frames.state("accepted")))
    return other.taken - before


class Reading:
    """Reads what comes, and has credit for ten thousand again and again. `taken`: so many messages."""

    def __init__(self, member: Member) -> None:
        self._member, self.taken = member, 0

    def __call__(self, stop: threading.Event) -> None:
        self._member.socket.settimeout(0.05)
        while not stop.is_set():
            try:
                fresh = self._member.socket.recv(1 << 20).count(TRANSFER)
            except TimeoutError:
                continue
            if fresh:
                first, self.taken = self.taken, self.taken + fresh
                self._member.send(frames.disposition(first, self.taken - 1, frames.state("accepted")))
                self._member.send(frames.flow(1, CREDIT, self.taken))


class Streaming:
    """Publishes fifty at a time, each time when some of the last fifty are stored."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def __call__(self, stop: threading.Event) -> None:
        number = 0
        while not stop.is_set():
            self._member.send(*(frames.transfer(number + at, MESSAGE) for at in range(50)))
            number += 50
            self._member.await_(DISPOSITION)
            time.sleep(0.002)


def reads_nothing() -> bytes:
    return frames.flow(1, 10_000)


def has_no_room() -> bytes:
    """In its session: so the gateway would have to keep what it sends."""
    return frames.flow(1, 10_000, window=0)


@pytest.mark.parametrize("asks", [reads_nothing, has_no_room])
@pytest.mark.parametrize("when", ["before", "afterwards"])
def test_consumers_that_do_not_read_are_held_in_bounds(
    gateway: GatewayProcess, clients: Clients, asks: Callable[[], bytes], when: str
) -> None:
    """Ten, who have credit for all of what each of them would get: 240 MB. It comes to them as it is published, or all
    is there when they ask for it. And when they read, they get it."""
    node = f"any.{asks.__name__}.{when}"
    source, target = frames.source(node, capability="topic"), frames.target(node, capability="topic")
    [publisher] = clients.enter(1, lambda _: [frames.attach_sender(target)])
    requests = [asks()] if when == "before" else []
    members = clients.enter(10, lambda _: [frames.attach_receiver(source), *requests])
    before = gateway.rss_bytes()
    for number in range(COUNT):
        publisher.send(frames.transfer(number, LARGE))
        publisher.await_(DISPOSITION)
    for member in members:
        member.send(*([] if requests else [asks()]))
    with Clients(gateway.port) as others:  # another peer is served, so earlier requests were read
        [other] = others.enter(1, lambda _: of_queue(f"{node}.other", 5), answers=2)
        for number in range(5):
            other.send(frames.transfer(number, MESSAGE))
            other.await_(TRANSFER, DISPOSITION)
    assert gateway.rss_bytes() - before < ROOM
    for member in members[:2]:
        member.send(frames.session_window(0, 100_000))
        member.await_(TRANSFER, count=COUNT)


@pytest.mark.parametrize("goes", ["by CLOSE", "without a word"])
def test_connections_that_come_and_go_leave_nothing(gateway: GatewayProcess, clients: Clients, goes: str) -> None:
    """What is kept of the last few thousand finds its level; what each connection leaves behind grows in each round.
    The allocator's arenas do not: one round that grows by nothing is enough."""
    come_and_go(clients, 100, goes)
    files = descriptors(gateway.pid)

    def grew_by_nothing() -> bool:
        before = gateway.rss_bytes()
        come_and_go(clients, 200, goes)
        until(lambda: descriptors(gateway.pid) <= files, "every descriptor")
        return gateway.rss_bytes() - before < MIB // 8

    assert any(grew_by_nothing() for _ in range(40))


def come_and_go(clients: Clients, count: int, goes: str) -> None:
    for _ in range(0, count, 10):
        members = clients.enter(10, lambda number: of_queue(f"any.{number % 10}", 1), answers=2)
        for member in members:
            member.send(frames.transfer(0, MESSAGE))
        for member in members:
            member.await_(TRANSFER, DISPOSITION)
            member.send(frames.disposition(0, 0, frames.state("accepted")))
            if goes == "by CLOSE":
                member.send(frames.close())
                member.await_(b"\x00\x53\x18")
        clients.leave()
