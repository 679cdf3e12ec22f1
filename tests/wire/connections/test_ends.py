"""How links, connections and gateways end: by the client, by the network, by an operator, by force."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from tests.kit.patience import until
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.frames import count_and_first, without_header
from tests.kit.wire.peer import Peer
from transformers.codec import Described

MESSAGE = frames.message()
ACCEPTED = frames.state("accepted")
FRESH = frames.header(first=True)
NODES: dict[str, Any] = {"create_on_attach": ["any.*"]}


def test_a_client_that_closes_in_order_is_answered_in_order(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.consumer(node, credit=1)
        peer.receive(1)
        peer.send(frames.detach(1), frames.end(), frames.close())
        assert peer.expect("detach").field(1) is True
        assert peer.expect("end").condition is None
        assert peer.expect("close").condition is None
        assert peer.closed()


@pytest.mark.requirement("O-4")
def test_O_4_a_link_may_be_detached_and_attached_again(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        for _ in range(3):
            peer.consumer(node, credit=1)
            peer.receive(1)
            peer.send(frames.detach(1, closed=False))
            assert peer.expect("detach").field(1) in (None, False)


@pytest.mark.requirement("G-3", "S-1")
@pytest.mark.parametrize("how", ["reset", "close"])
def test_G_3_S_1_what_a_lost_connection_had_not_stated_comes_again(
    gateway: GatewayProcess, node: str, how: str
) -> None:
    """Each a failed attempt."""
    peer = Peer(gateway.port)
    peer.stored(node, *[frames.message(b"%d" % number, FRESH) for number in range(50)])
    peer.consumer(node, credit=50)
    got = peer.receive(50)
    peer.settle([seen.field(1) for seen in got[:10]], ACCEPTED, settled=False)
    assert set(peer.outcomes(10).values()) == {"accepted"}
    getattr(peer, how)()
    with Peer(gateway.port) as other:
        other.consumer(node, credit=60)
        again = other.receive(40)
        assert [without_header(seen.payload) for seen in again] == [without_header(seen.payload) for seen in got[10:]]
        assert {count_and_first(seen) for seen in again} == {(1, False)}
        other.nothing()


@pytest.mark.requirement("F-2", "H-7")
@pytest.mark.parametrize("default", [None, frames.state("modified", True, False)], ids=["no default", "as JMS"])
@pytest.mark.parametrize("end", [frames.detach(1), frames.detach(1, closed=False), frames.end(), frames.close()])
def test_what_a_consumer_has_that_leaves_in_order_is_not_counted(
    gateway: GatewayProcess, node: str, end: bytes, default: Described | None
) -> None:
    """Even when its socket goes with that, and when its source says that it would be."""
    with Peer(gateway.port) as peer:
        peer.stored(node, *[frames.message(b"%d" % number, FRESH) for number in range(5)])
        peer.consumer(frames.source(node, default=default), credit=5)
        peer.receive(5)
        peer.send(end)
    with Peer(gateway.port) as other:
        other.consumer(node, credit=5)
        assert {count_and_first(seen) for seen in other.receive(5)} == {(0, False)}


@pytest.mark.requirement("G-3", "S-1")
def test_S_1_as_documented_a_lost_connection_releases(documented: GatewayProcess, node: str) -> None:
    with Peer(documented.port) as peer:
        peer.stored(node, frames.message(b"event", FRESH))
        peer.consumer(node, credit=1)
        peer.receive(1)
    with Peer(documented.port) as other:
        other.consumer(node, credit=1)
        assert count_and_first(*other.receive(1)) == (0, False)


@pytest.mark.requirement("F-2")
def test_who_was_given_nothing_has_failed_at_nothing(gateway: GatewayProcess, node: str) -> None:
    """One connection breaks off with an event, another without; and a browser has only seen it."""
    with Peer(gateway.port) as idle, Peer(gateway.port) as browser, Peer(gateway.port) as peer:
        peer.stored(node, frames.message(b"event", FRESH))
        browser.consumer(frames.source(node, mode="copy"), credit=5)
        browser.receive(1)
        peer.consumer(node, credit=1)
        peer.receive(1)
        idle.consumer(node, credit=0)
    with Peer(gateway.port) as other:
        other.consumer(node, credit=1)
        assert count_and_first(*other.receive(1)) == (1, False)


def test_a_publisher_that_is_cut_off_has_published_what_was_read(gateway: GatewayProcess, node: str) -> None:
    peer = Peer(gateway.port)
    peer.publisher(node)
    peer.publish(MESSAGE)
    peer.outcomes(1)
    peer.send(frames.transfer(1, MESSAGE)[:20])  # half a frame
    peer.reset()
    with Peer(gateway.port) as other:
        other.consumer(node, credit=2)
        other.receive(1)
        other.nothing()


@pytest.mark.requirement("D-2", "L-1")
def test_a_durable_subscription_outlives_links_and_gateways(new_gateway: StartGateway) -> None:
    """L-1, NF-4: every event acknowledged by itself, in any order, through the journal."""
    gateway = new_gateway("embedded", nodes=NODES)
    where = frames.source("any.channel", 1)
    with Peer(gateway.port, "container") as peer:
        peer.publisher("any.channel", "channel")
        peer.stored("any.channel", frames.message(b"before"), kind="channel")
        peer.consumer(where, credit=10)
        peer.nothing()
        peer.stored("any.channel", *[frames.message(b"%d" % number) for number in range(10)], kind="channel")
        peer.receive(10)
        peer.settle([7, 1, 4], ACCEPTED, settled=False)
        assert peer.outcomes(3) == dict.fromkeys((1, 4, 7), "accepted")
        peer.send(frames.detach(1, closed=False))
    gateway.stop()
    gateway.start()
    with Peer(gateway.port, "container") as peer:
        peer.stored("any.channel", frames.message(b"10"), kind="channel")
        peer.consumer(where, credit=20)
        got = [seen.payload for seen in peer.receive(8)]
        assert got == [frames.message(b"%d" % number) for number in (0, 2, 3, 5, 6, 8, 9, 10)]
        peer.settle([2, 0], ACCEPTED, settled=False)
        peer.outcomes(2)
        peer.close()
    gateway.kill()
    gateway.start()
    with Peer(gateway.port, "container") as peer:
        peer.consumer(where, credit=20)
        got = [seen.payload for seen in peer.receive(6)]
        assert got == [frames.message(b"%d" % number) for number in (2, 5, 6, 8, 9, 10)]
        with Peer(gateway.port, "another") as other:  # a durable of its own, from now on
            other.consumer(where, credit=20)
            other.nothing()
            other.stored("any.channel", MESSAGE, kind="channel")
            other.receive(1)


@pytest.mark.requirement("H-8")
def test_the_operator_stops_it_and_every_peer_hears_why(new_gateway: StartGateway) -> None:
    """amqp:connection:forced; exit code 0 without the silent peer; the unsettled comes again, the accepted stays."""
    gateway = new_gateway("embedded", nodes=NODES)
    peers = [Peer(gateway.port) for _ in range(3)]
    silent = Peer(gateway.port, begin=False)
    peers[0].stored("any.queue", *[MESSAGE] * 5)
    peers[0].consumer("any.queue", credit=5)
    peers[0].receive(5)
    peers[0].settle([0], ACCEPTED, settled=False)
    peers[0].outcomes(1)
    peers[1].publisher("any.queue")
    numbers = peers[1].publish(*[frames.message(b"late")] * 200)
    begin = time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - begin < 60
    states: dict[int, str | None] = {}
    for peer in peers:
        assert peer.closed()
        closes = [seen for seen in peer.seen if seen.name == "close"]
        assert [seen.condition for seen in closes] == ["amqp:connection:forced"]
    for seen in peers[1].seen:
        if seen.name == "disposition":
            last = seen.field(1) if seen.field(2) is None else seen.field(2)
            states.update(dict.fromkeys(range(seen.field(1), last + 1), seen.state))
    silent.close()
    gateway.start()
    with Peer(gateway.port) as peer:
        peer.consumer("any.queue", credit=500)
        again = [seen.payload for seen in peer.receive(4)]
        assert again == [MESSAGE] * 4
        stored = sum(state == "accepted" for state in states.values())
        assert len(peer.receive(stored)) == stored <= len(numbers)


def test_P2_an_idle_peer_is_closed_and_one_that_beats_is_not(new_gateway: StartGateway) -> None:
    """And one that never opens is not waited for."""
    limits = {"idle_timeout_ms": 900, "open_timeout_ms": 900}
    gateway = new_gateway("embedded", nodes=NODES, limits=limits)

    def one_lived() -> bool:
        """False: this test was stalled so long that its own beats came too late to say anything."""
        with Peer(gateway.port) as idle, Peer(gateway.port) as alive:
            longest_s, last_s = 0.0, time.monotonic()
            while not idle.closed(0.1):
                alive.send(b"\x00\x00\x00\x08\x02\x00\x00\x00")
                longest_s, last_s = max(longest_s, time.monotonic() - last_s), time.monotonic()
            assert idle.expect("close").condition == "amqp:resource-limit-exceeded"
            if longest_s < 0.4:
                alive.publisher("any.queue")
            return longest_s < 0.4

    with Peer(gateway.port, begin=False) as mute:
        mute.send(b"AMQP")
        assert mute.closed()
    until(one_lived, "beats in time")


@pytest.mark.requirement("D-1", "D-2", "D-3", "D-5")
@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_D_1_kill_minus_9_with_500_in_flight_each_way(new_gateway: StartGateway, kind: str) -> None:
    """Nothing that was accepted is lost; what was not settled comes again, not as the first acquirer."""
    gateway = new_gateway(kind, nodes=NODES)
    first = frames.header(first=True)
    outward = [frames.message(b"out %d" % number, first) for number in range(600)]
    inward = [frames.message(b"in %d " % number + b"x" * 100) for number in range(3_000)]
    consumer, publisher = Peer(gateway.port), Peer(gateway.port)
    consumer.stored("any.out", *outward)
    consumer.consumer("any.out", credit=600)
    consumer.receive(600)
    consumer.settle(range(0, 100, 2), ACCEPTED, settled=False)
    confirmed = set(consumer.outcomes(50))
    assert publisher.publisher("any.in") >= len(inward)
    publisher.publish(*inward[:2_000])
    states = publisher.outcomes(1)
    os.kill(gateway.pid, signal.SIGSTOP)  # in the midst of it
    publisher.publish(*inward[2_000:])
    gateway.kill()
    publisher.closed()
    while publisher.seen:
        seen = publisher.seen.pop(0)
        if seen.name == "disposition":
            last = seen.field(1) if seen.field(2) is None else seen.field(2)
            states.update(dict.fromkeys(range(seen.field(1), last + 1), seen.state))
    assert set(states.values()) == {"accepted"}
    assert len(inward) - len(states) >= 500, "too few were in flight for this to prove anything"
    gateway.start()
    with Peer(gateway.port) as peer:
        peer.consumer("any.out", credit=1_000)
        again = [seen.payload for seen in peer.receive(550)]
        peer.nothing()
        second = frames.header(first=False)
        expected = {frames.message(b"out %d" % number, second) for number in range(600) if number not in confirmed}
        assert set(again) == expected
        peer.consumer("any.in", credit=5_000, handle=2, name="in")
        at_least = {inward[number] for number in states}
        stored: set[bytes] = set()
        while not at_least <= stored:
            stored.update(seen.payload for seen in peer.receive(1, 2))
        assert stored <= set(inward)
