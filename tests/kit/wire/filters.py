"""Filters of a source, messages that they tell apart, and drains."""

from __future__ import annotations

from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, Int, Symbol, ULong, encode

SYMBOLIC, NUMERIC = Symbol("apache.org:selector-filter:string"), ULong(0x0000468C00000004)


def selector(text: str, descriptor: Symbol | ULong = SYMBOLIC, key: str = "jms-selector") -> AmqpMap:
    return AmqpMap([(Symbol(key), Described(descriptor, text))])


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Messages with an application property `number`."""
    numbers = range(first, first + count)
    return [encode(Described(0x74, AmqpMap([("number", Int(n))]))) + frames.message() for n in numbers]


def drained(peer: Peer, handle: int = 1) -> bool:
    """Whether a drain is answered with nothing but the end of the credit."""
    flow = peer.expect("flow")
    while flow.field(4) != peer._theirs[handle] or flow.field(6) != 0:
        flow = peer.expect("flow")
    return flow.field(8) is True
