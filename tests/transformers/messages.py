"""Generated messages in every legal encoding, and a slow reader of them that shares no code with ours."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field

from hypothesis import strategies as st

from transformers.codec import Symbol, encode

NAMES = {
    0x70: b"amqp:header:list",
    0x71: b"amqp:delivery-annotations:map",
    0x72: b"amqp:message-annotations:map",
    0x73: b"amqp:properties:list",
    0x74: b"amqp:application-properties:map",
    0x75: b"amqp:data:binary",
    0x76: b"amqp:amqp-sequence:list",
    0x77: b"amqp:amqp-value:*",
    0x78: b"amqp:footer:map",
}


@dataclass(frozen=True)
class Built:
    """A message, and what it was built from: (code, octets) of each section."""

    sections: tuple[tuple[int, bytes], ...]
    header: tuple[object, ...] = field(default=())

    @property
    def octets(self) -> bytes:
        return b"".join(octets for _, octets in self.sections)

    def without(self, *codes: int) -> bytes:
        return b"".join(octets for code, octets in self.sections if code not in codes)

    def offset(self, *codes: int) -> int:
        """Where the first section of one of `codes` begins, -1 without one."""
        place = 0
        for code, octets in self.sections:
            if code in codes:
                return place
            place += len(octets)
        return -1


def descriptors(code: int) -> st.SearchStrategy[bytes]:
    name = NAMES[code]
    return st.sampled_from(
        (
            bytes((0, 0x53, code)),
            b"\x00\x80" + code.to_bytes(8, "big"),
            b"\x00\xa3" + bytes((len(name),)) + name,
            b"\x00\xb3" + len(name).to_bytes(4, "big") + name,
        )
    )


def compound(octets: bytes, count: int, code8: int, wide: bool) -> bytes:
    if wide or len(octets) > 254 or count > 255:
        return bytes((code8 + 0x10,)) + struct.pack(">II", len(octets) + 4, count) + octets
    return bytes((code8, len(octets) + 1, count)) + octets


def binary(octets: bytes, wide: bool) -> bytes:
    if wide or len(octets) > 255:
        return b"\xb0" + struct.pack(">I", len(octets)) + octets
    return bytes((0xA0, len(octets))) + octets


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
_symbols = st.text("abc-", min_size=1, max_size=4).map(lambda name: Symbol(f"x-opt-{name}"))


@st.composite
def lists(draw: st.DrawFn) -> bytes:
    items = draw(st.lists(values, max_size=4))
    if not items and draw(st.booleans()):
        return b"\x45"
    return compound(b"".join(map(encode, items)), len(items), 0xC0, draw(st.booleans()))


@st.composite
def maps(draw: st.DrawFn) -> bytes:
    pairs = draw(st.lists(st.tuples(_symbols, values), max_size=3))
    octets = b"".join(encode(key) + encode(value) for key, value in pairs)
    return compound(octets, 2 * len(pairs), 0xC1, draw(st.booleans()))


binaries = st.builds(binary, st.binary(max_size=40), st.booleans())
_booleans = st.sampled_from(
    ((None, b"\x40"), (True, b"\x41"), (True, b"\x56\x01"), (False, b"\x42"), (False, b"\x56\x00"))
)
_priorities = st.none() | st.integers(0, 255)
_uints = st.none() | st.integers(0, 2**32 - 1)


def uint(value: int | None, wide: bool) -> bytes:
    if value is None:
        return b"\x40"
    if value > 255 or wide:
        return b"\x70" + struct.pack(">I", value)
    return bytes((0x52, value)) if value else b"\x43"


@st.composite
def headers(draw: st.DrawFn) -> tuple[tuple[object, ...], bytes]:
    """Its fields with defaults filled in, and its list."""
    durable, first = draw(_booleans), draw(_booleans)
    priority, ttl, count = draw(_priorities), draw(_uints), draw(_uints)
    raws = [
        durable[1],
        b"\x40" if priority is None else bytes((0x50, priority)),
        uint(ttl, draw(st.booleans())),
        first[1],
        uint(count, draw(st.booleans())),
    ]
    fields: list[object] = [durable[0], priority, ttl, first[0], count]
    kept = draw(st.integers(0, 5))
    fields[kept:] = [None] * (5 - kept)
    defaults = (False, 4, None, False, 0)
    given_or_default = tuple(d if f is None else f for f, d in zip(fields, defaults, strict=True))
    if kept == 0 and draw(st.booleans()):
        return given_or_default, b"\x45"
    return given_or_default, compound(b"".join(raws[:kept]), kept, 0xC0, draw(st.booleans()))


@st.composite
def bodies(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    code = draw(st.sampled_from((0x75, 0x75, 0x76, 0x77)))
    if code == 0x77:
        return [(code, draw(values.map(encode)))]
    count = draw(st.integers(1, 3))
    return [(code, draw(binaries if code == 0x75 else lists())) for _ in range(count)]


@st.composite
def messages(draw: st.DrawFn) -> Built:
    sections: list[tuple[int, bytes]] = []
    header: tuple[object, ...] = (False, 4, None, False, 0)
    if draw(st.booleans()):
        header, octets = draw(headers())
        sections.append((0x70, octets))
    for code, strategy in ((0x71, maps()), (0x72, maps()), (0x73, lists()), (0x74, maps())):
        if draw(st.booleans()):
            sections.append((code, draw(strategy)))
    sections += draw(bodies())
    if draw(st.booleans()):
        sections.append((0x78, draw(maps())))
    return Built(tuple((code, draw(descriptors(code)) + octets) for code, octets in sections), header)


class Malformed(Exception):
    pass


class Slow:
    """Reads a message octet by octet from the text of the specification; no tables, no shapes."""

    def __init__(self, octets: bytes) -> None:
        self.rest = octets
        self.total = len(octets)

    def take(self, count: int) -> bytes:
        if count > len(self.rest):
            raise Malformed
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def value(self) -> tuple[int, bytes]:
        """Format code and octets of one value; a described one has code 0."""
        code = self.take(1)[0]
        if code == 0:
            self.value()
            self.value()
            return 0, b""
        high, low = code >> 4, code & 15
        known = {4: 5, 5: 6, 6: 1, 7: 4, 8: 4, 9: 8}
        if high in known:
            if low > known[high] or (high == 9 and low not in (4, 8)):
                raise Malformed
            return code, self.take((0, 1, 2, 4, 8, 16)[high - 4])
        if (high in (0xA, 0xB) and low in (0, 1, 3)) or (high in (0xC, 0xD) and low in (0, 1)):
            pass
        elif high not in (0xE, 0xF) or low:
            raise Malformed
        return code, self.take(int.from_bytes(self.take(4 if high & 1 else 1), "big"))

    def section(self) -> int:
        if self.take(1) != b"\x00":
            raise Malformed
        kind, octets = self.value()
        if kind in (0x53, 0x80, 0x44):
            code = int.from_bytes(octets, "big")
        elif kind in (0xA3, 0xB3):
            code = {name: code for code, name in NAMES.items()}.get(octets, 0)
        else:
            raise Malformed
        if code not in NAMES:
            raise Malformed
        held, _ = self.value()
        form = NAMES[code].rsplit(b":", 1)[1]
        if (
            form != b"*"
            and held
            not in {
                b"list": (0x45, 0xC0, 0xD0),
                b"map": (0xC1, 0xD1),
                b"binary": (0xA0, 0xB0),
            }[form]
        ):
            raise Malformed
        return code


def slow_offsets(octets: bytes) -> tuple[int, ...] | None:
    """What `section_offsets` must say; None for malformed."""
    reader = Slow(octets)
    seen: list[tuple[int, int]] = []
    try:
        while reader.rest:
            place = reader.total - len(reader.rest)
            seen.append((reader.section(), place))
    except Malformed:
        return None
    codes = [code for code, _ in seen]
    for before, after in itertools.pairwise(codes):
        if after < before or (after == before and after not in (0x75, 0x76)):
            return None
    bodies_seen = {code for code in codes if code in (0x75, 0x76, 0x77)}
    if len(bodies_seen) > 1 or not codes:
        return None
    places: dict[int, int] = {}
    for code, place in seen:
        places.setdefault(0x75 if code in bodies_seen else code, place)
    places.setdefault(0x75, places.get(0x78, len(octets)))  # an empty one
    return tuple(places.get(code, -1) for code in (0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x78))
