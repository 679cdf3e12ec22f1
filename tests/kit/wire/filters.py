"""Filters of a source, messages that they tell apart."""

from __future__ import annotations

from tests.kit.wire import frames
from transformers.codec import AmqpMap, Described, Int, Symbol, ULong, encode

SYMBOLIC, NUMERIC = Symbol("apache.org:selector-filter:string"), ULong(0x0000468C00000004)


def selector(text: str, descriptor: Symbol | ULong = SYMBOLIC, key: str = "jms-selector") -> AmqpMap:
    return AmqpMap([(Symbol(key), Described(descriptor, text))])


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Messages with an application property `number`."""
    numbers = range(first, first + count)
    return [encode(Described(0x74, AmqpMap([("number", Int(n))]))) + frames.message() for n in numbers]
