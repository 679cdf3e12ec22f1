"""Octets that AMQP's types can be made of, and such that they cannot: what a bred case puts where a value was.

Everything is drawn from one `Random`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from transformers.codec import Described, Symbol, UInt, ULong, encode

NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 31, 63, 64, 127, 128, 255, 256, 511, 512, 65_535, 65_536, 2**31 - 1, 2**31,
           2**32 - 2, 2**32 - 1)  # fmt: skip
WORDS = ("q", "c", "any.q", "any.c", "missing", "peer", "witness", "topic://c", "queue://q", "", "\0", "a b, c/d",
         "\u00e9\U0001f600", "x" * 200, "x" * 3_000, "amqp:accepted:list", "shared", "global", "queue", "topic",
         "temporary-queue", "copy", "move", "never", "link-detach", "session-end", "connection-close",
         "amqp:not-found", "a = 1", "a LIKE '%%%%%b'", "((((((a", "amqp.annotation.x-opt-offset > '5'",
         "first", "JMSXGroupID", "delete-on-close")  # fmt: skip
DESCRIPTORS = (*range(0x10, 0x19), 0x1D, *range(0x23, 0x2F), *range(0x30, 0x36), *range(0x70, 0x79), 0x468C00000004)
CODES = (0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x60, 0x61, 0x70, 0x71, 0x72,
         0x73, 0x74, 0x80, 0x81, 0x82, 0x83, 0x84, 0x94, 0x98, 0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3, 0xC0, 0xC1, 0xD0,
         0xD1, 0xE0, 0xF0)  # fmt: skip
DEPTH = 3


def number(random: Random) -> int:
    return random.choice(NUMBERS) if random.random() < 0.8 else random.getrandbits(32)


def word(random: Random) -> str:
    return random.choice(WORDS)


def value(random: Random, depth: int = 0) -> bytes:
    """Some value, encoded; one in ten is none."""
    kinds: list[Callable[[Random, int], bytes]] = [_constant, _number, _text, _binary, _fixed]
    if depth < DEPTH:
        kinds += [_compound, _described, _array, _odd]
    return random.choice(kinds)(random, depth)


def _constant(random: Random, _: int) -> bytes:
    return bytes((random.choice((0x40, 0x41, 0x42, 0x43, 0x44, 0x45)),))


def _number(random: Random, _: int) -> bytes:
    many = number(random)
    kinds = [encode(UInt(many)), encode(ULong(many)), struct.pack(">BI", 0x70, many), struct.pack(">BQ", 0x80, many)]
    return random.choice(
        [*kinds, bytes((0x50, many & 255)), bytes((0x52, many & 255)), struct.pack(">Bq", 0x83, -many)]
    )


def _text(random: Random, _: int) -> bytes:
    octets, code = word(random).encode(), random.choice((0xA1, 0xA3))
    if random.random() < 0.1:
        octets = random.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\x80abc"))
    return (
        bytes((code, len(octets))) + octets
        if len(octets) < 256
        else struct.pack(">BI", code + 16, len(octets)) + octets
    )


def _binary(random: Random, _: int) -> bytes:
    size = random.choice((0, 1, 31, 32, 33, 255))
    return bytes((0xA0, size)) + random.randbytes(size)


def _fixed(random: Random, _: int) -> bytes:
    code = random.choice(
        (0x50, 0x51, 0x54, 0x55, 0x56, 0x60, 0x61, 0x71, 0x72, 0x73, 0x74, 0x81, 0x82, 0x84, 0x94, 0x98)
    )
    width = {5: 1, 6: 2, 7: 4, 8: 8, 9: 16}[code >> 4]
    return bytes((code,)) + (random.randbytes(width) if random.random() < 0.5 else bytes(width))


def compound(code: int, items: list[bytes]) -> bytes:
    """A list or map of these values, whatever they are; `code` is the short one's."""
    octets = b"".join(items)
    if len(octets) < 255 and len(items) < 256:
        return bytes((code, len(octets) + 1, len(items))) + octets
    return struct.pack(">BII", code + 16, len(octets) + 4, len(items)) + octets


def _compound(random: Random, depth: int) -> bytes:
    items = [value(random, depth + 1) for _ in range(random.choice((0, 1, 2, 2, 4, 6, 12)))]
    return compound(random.choice((0xC0, 0xC1)), items)


def _described(random: Random, depth: int) -> bytes:
    descriptor = encode(ULong(random.choice(DESCRIPTORS)))
    if random.random() < 0.2:
        descriptor = value(random, depth + 1)
    elif random.random() < 0.2:
        descriptor = encode(Symbol(word(random).encode("ascii", "replace").decode()))
    inside = compound(0xC0, [value(random, depth + 1) for _ in range(random.randrange(5))])
    return b"\0" + descriptor + (inside if random.random() < 0.8 else value(random, depth + 1))


def _array(random: Random, depth: int) -> bytes:
    constructor = bytes((random.choice(CODES),))
    if random.random() < 0.2:
        constructor = b"\0" + encode(ULong(random.choice(DESCRIPTORS))) + constructor
    octets = constructor + random.randbytes(random.choice((0, 1, 8, 40)))
    count = random.choice((0, 1, 2, 5, 255))
    return bytes((0xE0, len(octets) + 1, count)) + octets


def _odd(random: Random, depth: int) -> bytes:
    """What announces more than there is, nests too deep, or is no type."""
    kind = random.randrange(6)
    if kind == 0:
        return struct.pack(
            ">BII", random.choice((0xD0, 0xD1, 0xF0)), random.choice((4, number(random))), number(random)
        )
    if kind == 1:
        return struct.pack(">BI", random.choice((0xB0, 0xB1, 0xB3)), number(random))
    if kind == 2:
        return nested(random, random.choice((5, 31, 32, 33, 100, 500)))
    if kind == 3:
        return b"\0" * random.choice((1, 2, 40, 400))
    if kind == 4:
        return struct.pack(">BIIB", 0xF0, 5, number(random), random.choice((0x40, 0x41, 0x43, 0x45)))  # of nothing
    return random.randbytes(random.choice((1, 3, 9)))


def nested(random: Random, depth: int) -> bytes:
    """One kind of thing in itself, so deep: lists, maps by value or by key, arrays, what is described or describes."""
    wrap = random.choice(_WRAPS)
    octets = b"\x45"
    for _ in range(depth):
        octets = wrap(octets)
    return octets


def _array_of_one(octets: bytes) -> bytes:
    """A value's constructor and its octets are those of an array of one, too."""
    if len(octets) < 254:
        return bytes((0xE0, len(octets) + 1, 1)) + octets
    return struct.pack(">BII", 0xF0, len(octets) + 4, 1) + octets


_WRAPS: tuple[Callable[[bytes], bytes], ...] = (
    lambda inside: compound(0xC0, [inside]),
    lambda inside: compound(0xC1, [b"\xa3\x01a", inside]),
    lambda inside: compound(0xC1, [inside, b"\x40"]),
    _array_of_one,
    lambda inside: b"\0\x53\x77" + inside,
    lambda inside: b"\0" + inside + b"\x40",
)


def great_map(random: Random) -> bytes:
    """A map that is hard to carry: deep, of very many symbols, or all of one key; its keys mostly lawful."""
    kind = random.randrange(4)
    if kind == 0:
        return compound(0xC1, [symbol("a"), nested(random, random.choice((33, 200, 2_000)))])
    if kind == 1:
        return nested(random, random.choice((31, 32, 2_000)))
    count = random.choice((3, 300, 3_000, 60_000))
    content = b"\xa3\x03abc" if random.random() < 0.5 else b"\x40"
    items = [piece for at in range(count) for piece in (symbol(f"x-opt-{at if kind == 2 else 0}"), content)]
    return compound(0xC1, items)


def symbol(name: str) -> bytes:
    return bytes((0xA3, len(name))) + name.encode()


def described(code: int, items: list[bytes]) -> bytes:
    return b"\0" + encode(ULong(code)) + compound(0xC0, items)


def anything(value: object) -> bytes:
    """A decoded value, encoded again; null where that cannot be."""
    try:
        return encode(value)
    except (ValueError, TypeError, struct.error):
        return b"\x40"


__all__ = [
    "Described", "anything", "compound", "described", "great_map", "nested", "number", "symbol", "value", "word",
]  # fmt: skip
