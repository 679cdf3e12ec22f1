"""A peer that takes frames of 512 octets, the smallest there may be: every answer fits."""

from __future__ import annotations

import struct

import pytest

from tests.gateway_process import GatewayProcess
from tests.wire import frames
from tests.wire.peer import Peer
from transformers.amqp_types import AmqpMap, Described, Symbol, UInt

LONG = "n" * 400
MESSAGE = frames.message()
SELECTOR = Described(Symbol("apache.org:selector-filter:string"), "a = = '" + "x" * 2_000)


def small(house: GatewayProcess) -> Peer:
    peer = Peer(house.port, begin=False)
    peer.send(frames.AMQP_HEADER, frames.frame(frames.OPEN, ["small", "host", UInt(512)]), frames.begin())
    peer.expect("open")
    peer.expect("begin")
    return peer


def sizes(raw: bytes) -> list[int]:
    found, position = [], 8
    while position + 4 <= len(raw):
        (size,) = struct.unpack_from(">I", raw, position)
        found.append(size)
        position += size
    return found


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
def test_the_answer_to_a_fault_fits(house: GatewayProcess, fault: str) -> None:
    with small(house) as peer:
        with Peer(house.port) as other:
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
            assert peer._read(10.0), f"no answer, {names}"
            names = [seen.name for seen in peer.seen]
        assert max(sizes(peer.raw)) <= 512
        (told,) = [seen for seen in peer.seen if seen.name in ("detach", "end", "close")]
        assert told.condition


@pytest.mark.requirement("O-3")
def test_large_events_come_in_frames_that_fit(house: GatewayProcess, node: str) -> None:
    payload = frames.message(b"x" * 5_000)
    with Peer(house.port) as other:
        other.stored(node, payload)
    with small(house) as peer:
        peer.consumer(frames.source(node, default=frames.state("released")), credit=1)
        assert peer.receive(1)[0].payload == payload
        assert max(sizes(peer.raw)) <= 512
