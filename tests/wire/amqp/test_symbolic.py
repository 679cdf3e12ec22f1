"""Descriptors may be symbols wherever they may be numbers: performatives, termini, states, all of a conversation."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from gateway.frames.descriptors import NUMBERS
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import Described, Symbol, decode, encode

MESSAGE = frames.message(b"event", frames.header(first=True))
NAMES = {number: name for name, number in NUMBERS.items()}


def named(octets: bytes) -> bytes:
    """The same frames, every descriptor by its name."""
    stream, position = b"", 0
    while position < len(octets):
        size, _, _, channel = struct.unpack_from(">IBBH", octets, position)
        performative, end = decode(octets[position + 8 : position + size])
        body = encode(_named(performative)) + octets[position + 8 + end : position + size]
        stream += struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body
        position += size
    return stream


def _named(value: Any) -> Any:
    if isinstance(value, Described):
        assert value.descriptor in NAMES, value
        return Described(Symbol(NAMES[value.descriptor]), _named(value.value))
    return [_named(item) for item in value] if isinstance(value, list) else value


@pytest.mark.requirement("I-2", "W-21")
@pytest.mark.parametrize(
    ("state", "settled"),
    [(state, settled) for state in ("accepted", "released", "modified", "rejected") for settled in (True, False)]
    + [(None, True)],
)
def test_a_conversation_in_names(gateway: GatewayProcess, node: str, state: str | None, settled: bool) -> None:
    """What is released by name is released, and no accepted silence."""
    flags = [True, False] if state == "modified" else []
    outcome = None if state is None else frames.state(state, *flags)
    source = frames.source(node, default=frames.state("released"))
    with Peer(gateway.port, begin=False) as peer:
        peer.send(frames.AMQP_HEADER, named(frames.open_("by-name") + frames.begin()))
        peer.expect("open")
        peer.expect("begin")
        peer.send(named(frames.attach_sender(frames.target(node, capability="queue"))))
        assert peer.expect("attach").field(6) is not None
        peer.send(*(named(frames.transfer(at, MESSAGE)) for at in range(3)))
        assert peer.outcomes(3) == dict.fromkeys(range(3), "accepted")
        peer.send(named(frames.attach_receiver(source) + frames.flow(1, 3)))
        assert peer.expect("attach").field(5) is not None
        peer.delivered[1] = 0
        first = peer.receive(3)
        peer.send(named(frames.disposition(0, 0, outcome, settled)), named(frames.disposition(1, 2, outcome, settled)))
        if state is not None and not settled:
            assert peer.outcomes(3) == dict.fromkeys(range(3), state)
        peer.send(named(frames.detach(1)))
        peer.expect("detach")
        assert [seen.payload for seen in first] == [MESSAGE] * 3
    with Peer(gateway.port) as other:
        other.consumer(node, credit=5)
        other.receive(0 if state in ("accepted", "rejected") else 3)
        other.nothing()
