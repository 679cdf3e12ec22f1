"""A peer that takes frames of 512 octets, the smallest there may be: every answer fits."""

from __future__ import annotations

import struct

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, Symbol

LONG = "n" * 400
MESSAGE = frames.message()
SELECTOR = Described(Symbol("apache.org:selector-filter:string"), "a = = '" + "x" * 2_000)


def small(gateway: GatewayProcess, size: int = 512) -> Peer:
    peer = Peer(gateway.port, begin=False)
    peer.send(frames.AMQP_HEADER, frames.open_(peer.container, frame_size=size), frames.begin())
    peer.expect("open")
    peer.expect("begin")
    return peer


def sizes(raw: bytes) -> list[int]:
    lengths, position = [], 8
    while position + 4 <= len(raw):
        (size,) = struct.unpack_from(">I", raw, position)
        lengths.append(size)
        position += size
    return lengths


FAULTS = {
    "not-found": frames.attach_sender(LONG),
    "selector": frames.attach_receiver(frames.source("any.small", filters=AmqpMap([(Symbol("a"), SELECTOR)]))),
    "outcome": frames.attach_receiver(frames.source("any.small", outcomes=["o" * 200])),
    "link-name-in-use": frames.attach_sender("any.small", 6, "l" * 300)
    + frames.attach_sender("any.small", 7, "l" * 300),
    "handle": frames.transfer(0, MESSAGE, handle=9),
    "malformed": frames.attach_sender("any.small") + frames.flow(0, 1),
    "unknown": frames.frame(0x1234567, ["x" * 3_000]),
    "annotation": frames.attach_sender(frames.target("any.small", capability="queue")),
}


@pytest.mark.requirement("P-1", "P-2")
@pytest.mark.parametrize("fault", FAULTS)
def test_the_answer_to_a_fault_fits(gateway: GatewayProcess, fault: str) -> None:
    with small(gateway) as peer:
        with Peer(gateway.port) as other:
            other.stored("any.small", MESSAGE)
        peer.send(FAULTS[fault])
        if fault == "annotation":
            peer.expect("attach")
            peer.send(frames.transfer(0, frames.annotated({"f" * 200: 1})))
        if fault == "malformed":
            peer.expect("attach")
            peer.send(frames.transfer(0, b"\x00\x53\x79\x45"))
        names: list[str] = []
        while not {"detach", "end", "close"} & set(names):
            assert peer.read(10.0), f"no answer, {names}"
            names = [seen.name for seen in peer.seen]
        assert max(sizes(peer.raw)) <= 512
        (refusal,) = [seen for seen in peer.seen if seen.name in ("detach", "end", "close")]
        assert refusal.condition


@pytest.mark.requirement("O-3")
def test_large_events_come_in_frames_that_fit(gateway: GatewayProcess, node: str) -> None:
    payload = frames.message(b"x" * 5_000)
    with Peer(gateway.port) as other:
        other.stored(node, payload)
    with small(gateway) as peer:
        peer.consumer(frames.source(node, default=frames.state("released")), credit=1)
        assert peer.receive(1)[0].payload == payload
        assert max(sizes(peer.raw)) <= 512


FILTER = Described(SELECTOR.descriptor, "a = '" + "x" * 450 + "'")
WIDE = frames.source("any.small", filters=AmqpMap([(Symbol("a"), FILTER)]))


@pytest.mark.requirement("O-1", "P-1")
@pytest.mark.parametrize(
    "attach",
    [frames.attach_receiver(WIDE), frames.attach_sender("any." + LONG, name="l" * 100)],
    ids=["filter", "name"],
)
def test_an_attach_whose_answer_does_not_fit_is_refused_in_frames_that_do(
    gateway: GatewayProcess, attach: bytes
) -> None:
    """And the session goes on."""
    with small(gateway) as peer, Peer(gateway.port) as other:
        other.publisher("any.small")
        other.publisher("any." + LONG, handle=1)
        peer.send(attach)
        assert peer.refused() == "amqp:frame-size-too-small"
        peer.send(frames.attach_sender("any.small", 5, "fits"))
        attached = peer.expect("attach")
        assert (attached.field(0), attached.field(6) is not None) == ("fits", True)
        assert max(sizes(peer.raw)) <= 512


@pytest.mark.requirement("P-4")
@pytest.mark.parametrize("address", ["any.small", "missing"])
def test_a_link_name_that_no_answer_has_room_for_ends_its_session(gateway: GatewayProcess, address: str) -> None:
    with small(gateway) as peer:
        peer.send(frames.begin(channel=1))
        peer.expect("begin")
        peer.send(frames.attach_sender(address, name="l" * 600))
        assert peer.expect("end").condition == "amqp:frame-size-too-small"
        peer.send(frames.attach_sender("any.small", 5, "fits", channel=1))
        assert peer.expect("attach").field(0) == "fits"
        assert max(sizes(peer.raw)) <= 512


def remarks(gateway: GatewayProcess) -> list[str]:
    """What stands on stderr beside the comings, goings and faults of peers."""
    return [line for line in gateway.log_path.read_text().splitlines() if " realmgate.peers " not in line]


@pytest.mark.requirement("O-3")
@pytest.mark.parametrize("size", [0, 1, 100, 511])
def test_a_max_frame_size_below_the_least_there_is_counts_as_the_least(
    gateway: GatewayProcess, node: str, size: int
) -> None:
    """Every peer takes frames of 512 octets (2.7.1). Nothing is remarked on stderr."""
    payload = frames.message(b"x" * 5_000)
    before = remarks(gateway)
    with Peer(gateway.port) as other:
        other.stored(node, payload)
    with small(gateway, size) as peer:
        peer.consumer(node, credit=1)
        assert peer.receive(1)[0].payload == payload
        assert 500 < max(sizes(peer.raw)) <= 512
    assert remarks(gateway) == before
