"""AMQP 1.0 types in octets: just what the torture's peers say, and whatever they may be told.

Written anew, so that the one who checks shares no mistake with the one who is checked. Source: AMQP 1.0, part 1
section 1.6. Errors: ValueError for a constructor that is none.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

NULL, TRUE, FALSE, EMPTY = b"\x40", b"\x41", b"\x42", b"\x45"


class Described(NamedTuple):
    """A described value; the descriptor is a number or a symbol."""

    code: Any
    value: Any


def ubyte(number: int) -> bytes:
    return bytes((0x50, number))


def uint(number: int) -> bytes:
    if number < 256:
        return bytes((0x52, number)) if number else b"\x43"
    return struct.pack(">BI", 0x70, number)


def binary(octets: bytes) -> bytes:
    return _sized(0xA0, octets)


def string(text: str) -> bytes:
    return _sized(0xA1, text.encode())


def symbol(text: str) -> bytes:
    return _sized(0xA3, text.encode())


def symbols(*texts: str) -> bytes:
    """An array of short symbols."""
    body = b"".join(bytes((len(text),)) + text.encode() for text in texts)
    return bytes((0xE0, len(body) + 2, len(texts), 0xA3)) + body


def _sized(code: int, octets: bytes) -> bytes:
    if len(octets) < 256:
        return bytes((code, len(octets))) + octets
    return struct.pack(">BI", code + 0x10, len(octets)) + octets


def items(*encoded: bytes) -> bytes:
    """A list of values that are encoded already."""
    body = b"".join(encoded)
    if not body:
        return EMPTY
    if len(body) < 255 and len(encoded) < 256:
        return bytes((0xC0, len(body) + 1, len(encoded))) + body
    return struct.pack(">BII", 0xD0, len(body) + 4, len(encoded)) + body


def described(code: int, value: bytes) -> bytes:
    return bytes((0x00, 0x53, code)) + value


# -- reading

_CONSTANTS: dict[int, Any] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0, 0x45: []}
_NUMBERS = {
    0x50: "B", 0x51: "b", 0x52: "B", 0x53: "B", 0x54: "b", 0x55: "b", 0x56: "?", 0x60: "H", 0x61: "h", 0x70: "I",
    0x71: "i", 0x72: "f", 0x73: "4s", 0x74: "4s", 0x80: "Q", 0x81: "q", 0x82: "d", 0x83: "q", 0x84: "8s", 0x94: "16s",
    0x98: "16s",
}  # fmt: skip
_FIXED = {code: struct.Struct(">" + form) for code, form in _NUMBERS.items()}


def read(data: bytes, at: int = 0) -> tuple[Any, int]:
    """The value that begins at `at`, and where the next one does. Symbols are str, lists and arrays are lists."""
    code = data[at]
    if code == 0:
        descriptor, at = read(data, at + 1)
        value, at = read(data, at)
        return Described(descriptor, value), at
    return _read(code, data, at + 1)


def _read(code: int, data: bytes, at: int) -> tuple[Any, int]:
    if code in _CONSTANTS:
        return (_CONSTANTS[code] if code != 0x45 else []), at
    fixed = _FIXED.get(code)
    if fixed is not None:
        return fixed.unpack_from(data, at)[0], at + fixed.size
    wide = code & 0x10
    size = int.from_bytes(data[at : at + 4], "big") if wide else data[at]
    at += 4 if wide else 1
    kind, end = code | 0x10, at + size
    if kind in (0xB0, 0xB1, 0xB3):
        octets = data[at:end]
        return (octets if kind == 0xB0 else octets.decode()), end
    if kind not in (0xD0, 0xD1, 0xF0):
        raise ValueError(f"no constructor: {code:#x}")
    count = int.from_bytes(data[at : at + 4], "big") if wide else data[at]
    at += 4 if wide else 1
    return (_array(data, at, count) if kind == 0xF0 else _compound(data, at, count, kind == 0xD1)), end


def _compound(data: bytes, at: int, count: int, is_map: bool) -> Any:
    values = []
    for _ in range(count):
        value, at = read(data, at)
        values.append(value)
    return dict(zip(values[::2], values[1::2], strict=True)) if is_map else values


def _array(data: bytes, at: int, count: int) -> list[Any]:
    code = data[at]
    if code == 0:  # the descriptor that all share
        _, at = read(data, at + 1)
        code = data[at]
    at += 1
    values = []
    for _ in range(count):
        value, at = _read(code, data, at)
        values.append(value)
    return values
