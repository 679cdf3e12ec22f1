"""Values to AMQP bytes, in the shortest encoding.

Errors: ValueError or TypeError: a value that cannot be encoded is our own mistake.
Source: AMQP 1.0 part 1 (types).
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any

from transformers.codec.formats import CONSTANTS, FIXED, LIST0, U32, VARIABLE
from transformers.codec.values import (
    AmqpMap,
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)


def _integer(small: int, full: int, zero: int | None = None) -> Callable[[Any], bytes]:
    """The shortest of up to three encodings. Out of range is a struct.error, reported by `encode`."""
    small_layout, full_layout = FIXED[small][0], FIXED[full][0]
    low, high = (-128, 127) if small_layout.format == ">b" else (0, 255)

    def encoded(value: int) -> bytes:
        if value == 0 and zero is not None:
            return bytes((zero,))
        if low <= value <= high:
            return bytes((small,)) + small_layout.pack(value)
        return bytes((full,)) + full_layout.pack(value)

    return encoded


def _sized(code8: int, octets: bytes) -> bytes:
    if len(octets) <= 255:
        return bytes((code8, len(octets))) + octets
    return bytes((code8 + 0x10,)) + U32.pack(len(octets)) + octets


def _compound(code8: int, count: int, octets: bytes) -> bytes:
    if count <= 255 and len(octets) <= 254:
        return bytes((code8, len(octets) + 1, count)) + octets
    return bytes((code8 + 0x10,)) + U32.pack(len(octets) + 4) + U32.pack(count) + octets


def _list(items: list[Any]) -> bytes:
    return _compound(0xC0, len(items), b"".join(map(encode, items))) if items else bytes((LIST0,))


def _pairs(pairs: list[tuple[Any, Any]]) -> bytes:
    return _compound(0xC1, 2 * len(pairs), b"".join(encode(key) + encode(value) for key, value in pairs))


def _descriptor(descriptor: int | Symbol) -> bytes:
    return b"\x00" + encode(descriptor if isinstance(descriptor, Symbol) else ULong(descriptor))


def _decimal(value: Decimal) -> bytes:
    return bytes(({4: 0x74, 8: 0x84, 16: 0x94}[len(value)],)) + value


def _array(array: Array) -> bytes:
    constructor = b"".join(map(_descriptor, array.descriptors)) + bytes((array.code,))
    return _compound(0xE0, len(array.items), constructor + b"".join(_item(array.code, item) for item in array.items))


def _item(code: int, item: Any) -> bytes:
    """`item` in exactly the format `code`, without its constructor."""
    if code in CONSTANTS or code == LIST0:
        if item != (CONSTANTS.get(code) if code in CONSTANTS else []):
            raise ValueError(f"{item!r} has no encoding 0x{code:02x}")
        return b""
    if code in FIXED:
        raw = ord(item) if code == 0x73 else item.bytes if code == 0x98 else item
        return FIXED[code][0].pack(raw)
    if code in VARIABLE:
        octets = item if isinstance(item, bytes) else item.encode("ascii" if code & 0x0F == 3 else "utf-8")
        return (U32.pack(len(octets)) if code & 0x10 else bytes((len(octets),))) + octets
    return _compound_item(code, encode(item))


def _compound_item(code: int, octets: bytes) -> bytes:
    """Re-announce an encoded list, map or array in the width that `code` asks for."""
    if octets[0] == LIST0:
        octets = b"\xc0\x01\x00"
    if octets[0] | 0x10 != code | 0x10:
        raise ValueError(f"0x{octets[0]:02x} is not of the kind 0x{code:02x}")
    wide = octets[0] & 0x10
    size, count, rest = (octets[1:5], octets[5:9], octets[9:]) if wide else (octets[1:2], octets[2:3], octets[3:])
    if bool(wide) == bool(code & 0x10):
        return size + count + rest
    if not code & 0x10:
        raise ValueError(f"too large for 0x{code:02x}")
    return U32.pack(len(rest) + 4) + U32.pack(count[0]) + rest


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    UByte: lambda value: b"\x50" + struct.pack(">B", value),
    UShort: lambda value: b"\x60" + struct.pack(">H", value),
    UInt: _integer(0x52, 0x70, 0x43),
    ULong: _integer(0x53, 0x80, 0x44),
    Byte: lambda value: b"\x51" + struct.pack(">b", value),
    Short: lambda value: b"\x61" + struct.pack(">h", value),
    Int: _integer(0x54, 0x71),
    int: _integer(0x55, 0x81),
    Float: lambda value: b"\x72" + struct.pack(">f", value),
    float: lambda value: b"\x82" + struct.pack(">d", value),
    Char: lambda value: b"\x73" + U32.pack(ord(value)),
    Timestamp: lambda value: b"\x83" + struct.pack(">q", value),
    Decimal: _decimal,
    uuid.UUID: lambda value: b"\x98" + bytes(value.bytes),
    bytes: lambda value: _sized(0xA0, value),
    str: lambda value: _sized(0xA1, value.encode()),
    Symbol: lambda value: _sized(0xA3, value.encode("ascii")),
    list: _list,
    AmqpMap: lambda value: _pairs(value.pairs),
    dict: lambda value: _pairs(list(value.items())),
    Array: _array,
    Described: lambda value: _descriptor(value.descriptor) + encode(value.value),
}


def encode(value: Any) -> bytes:
    """The shortest encoding of `value`; a plain int is a long, a dict a map."""
    encoder = _ENCODERS.get(type(value))
    if encoder is None:
        raise TypeError(f"no AMQP type for {type(value).__name__}")
    try:
        return encoder(value)
    except struct.error as error:
        raise ValueError(f"{value!r}: {error}") from None
