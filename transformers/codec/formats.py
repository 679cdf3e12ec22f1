"""The format codes of AMQP 1.0: how wide each is, and what Python value its octets become.

Errors: what wraps octets raises ValueError. Source: AMQP 1.0 part 1, sections 1.2 and 1.6.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any

from transformers.codec.values import (
    Byte,
    Char,
    Decimal,
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


def _char(code_point: int) -> Char:
    if 0xD800 <= code_point <= 0xDFFF or code_point > 0x10FFFF:
        raise ValueError(f"U+{code_point:X} is no character")
    return Char(chr(code_point))


def _boolean(octet: int) -> bool:
    if octet > 1:
        raise ValueError(f"a boolean is 0 or 1, not {octet}")
    return octet == 1


CONSTANTS: dict[int, Any] = {0x40: None, 0x41: True, 0x42: False, 0x43: UInt(0), 0x44: ULong(0)}
LIST0 = 0x45
FIXED: dict[int, tuple[struct.Struct, Callable[[Any], Any]]] = {
    code: (struct.Struct(layout), wrap)
    for code, layout, wrap in (
        (0x50, ">B", UByte),
        (0x51, ">b", Byte),
        (0x52, ">B", UInt),
        (0x53, ">B", ULong),
        (0x54, ">b", Int),
        (0x55, ">b", int),
        (0x56, ">B", _boolean),
        (0x60, ">H", UShort),
        (0x61, ">h", Short),
        (0x70, ">I", UInt),
        (0x71, ">i", Int),
        (0x72, ">f", Float),
        (0x73, ">I", _char),
        (0x74, ">4s", Decimal),
        (0x80, ">Q", ULong),
        (0x81, ">q", int),
        (0x82, ">d", float),
        (0x83, ">q", Timestamp),
        (0x84, ">8s", Decimal),
        (0x94, ">16s", Decimal),
        (0x98, ">16s", lambda octets: uuid.UUID(bytes=octets)),
    )
}
VARIABLE: dict[int, Callable[[bytes], Any]] = {
    0xA0: bytes,
    0xA1: lambda octets: octets.decode("utf-8"),
    0xA3: lambda octets: Symbol(octets, "ascii"),
}
VARIABLE |= {code + 0x10: wrap for code, wrap in VARIABLE.items()}
LISTS, MAPS, ARRAYS = (0xC0, 0xD0), (0xC1, 0xD1), (0xE0, 0xF0)
U32 = struct.Struct(">I")


def _widths() -> tuple[int, ...]:
    """By format code: octets of constructor and value; -1, -4: a size of so many octets follows; 0: unknown."""
    widths = [0] * 256
    for code in (*CONSTANTS, LIST0):
        widths[code] = 1
    for code, (layout, _) in FIXED.items():
        widths[code] = 1 + layout.size
    for code in (*VARIABLE, *LISTS, *MAPS, *ARRAYS):
        widths[code] = -4 if code & 0x10 else -1
    return tuple(widths)


WIDTHS = _widths()
