"""Heartbeats over a socket: a peer that only reads hears something in time, from its OPEN on, also while others keep
the gateway busy (2.4.5). Here the order of magnitude. That silence is never longer than half of the time-out, in turns
of any length, is shown by `tests/gateway/session/test_heartbeats.py`, on a clock of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from tests.kit.patience import until
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import UInt

BEAT = b"\x00\x00\x00\x08\x02\x00\x00\x00"
SLOW_MS = 4_000  # the time-out of the peer that is the clock of the other one


def opening(idle_ms: int | None) -> bytes:
    return frames.frame(frames.OPEN, ["reader", "host", None, None, None if idle_ms is None else UInt(idle_ms)])


def opened(gateway: GatewayProcess, idle_ms: int) -> Peer:
    peer = Peer(gateway.port, begin=False)
    peer.send(frames.AMQP_HEADER, opening(idle_ms))
    peer.expect("open")
    return peer


def heartbeats_within(peer: Peer, seconds: float) -> int:
    """How many come in that time to a peer that does nothing but read."""
    before = peer.raw.count(BEAT)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        peer.read(end - time.monotonic())
        assert not peer.eof
    return peer.raw.count(BEAT) - before


def heartbeats(peer: Peer) -> int:
    return peer.raw.count(BEAT)


def hears(peer: Peer, count: int, *others: Peer) -> None:
    """Waits until so many have come; the others read, too."""

    def read() -> None:
        for listener in (peer, *others):
            listener.read(0.01)
            assert not listener.eof

    until(lambda: heartbeats(peer) >= count, f"{count} heartbeats", pause=read)


@contextmanager
def clients_that_publish(gateway: GatewayProcess, node: str, peers: int = 10) -> Iterator[None]:
    """Others keep the loop busy as long as this lasts."""
    over = threading.Event()
    failed: list[BaseException] = []

    def publish() -> None:
        try:
            with Peer(gateway.port) as peer:
                credit = peer.publisher(node)
                while not over.is_set():
                    count = min(credit, 200)
                    numbers = peer.publish(*[frames.message(b"x" * 2_000)] * count)
                    peer.outcomes(len(numbers), 60.0)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=publish) for _ in range(peers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(120)
    assert not failed, failed


@pytest.mark.parametrize("load", [False, True])
def test_D8_a_peer_that_waits_for_100_ms_and_only_reads_hears_more_than_one_that_waits_for_4_s(
    gateway: GatewayProcess, node: str, load: bool
) -> None:
    """40 times as many where cores are free; a good part of that where they are short."""
    with opened(gateway, 100) as peer, opened(gateway, SLOW_MS) as slow:
        with clients_that_publish(gateway, node) if load else nullcontext():
            hears(slow, 4, peer)
        assert heartbeats(peer) >= 10 * heartbeats(slow)


def test_D8_the_first_comes_though_nothing_followed_the_OPEN(gateway: GatewayProcess) -> None:
    for idle_ms in (100, 400, 1000, 2000):
        with opened(gateway, idle_ms) as peer:
            hears(peer, 1)


@pytest.mark.parametrize("idle_ms", [1, 50, 99])
def test_D8_what_cannot_be_kept_is_refused_with_a_reason(gateway: GatewayProcess, idle_ms: int) -> None:
    with opened(gateway, idle_ms) as peer:
        closed = peer.expect("close")
        assert closed.condition == "amqp:resource-limit-exceeded"
        assert closed.field(0).value[1] == f"idle-time-out of {idle_ms} ms: 100 ms is the shortest that is kept"
        assert peer.closed()


def test_D8_0_and_nothing_are_no_time_out(gateway: GatewayProcess) -> None:
    with opened(gateway, 0) as peer:
        assert heartbeats_within(peer, 0.3) == 0
        peer.send(frames.begin())
        peer.expect("begin")


def test_behind_our_CLOSE_there_is_no_heartbeat(gateway: GatewayProcess) -> None:
    """Though the peer leaves its socket open."""
    with opened(gateway, 100) as peer:
        peer.send(frames.attach_sender("nowhere"))  # on a channel that was not begun: we close
        peer.expect("close")
        closed = len(peer.raw)
        peer.closed(1.0)
        assert BEAT not in peer.raw[closed:]
