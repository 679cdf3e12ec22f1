"""AMQP values as headers of a record show them: the name of a type, and octets that a plain consumer can read.

Numbers, booleans, times (milliseconds since 1970) and uuids are text; strings, symbols and chars are UTF-8; a binary is
its octets; null is null. Decimals and what is composed stay in their AMQP encoding.
Source: AMQP 1.0 part 1, section 1.6. Errors: none.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from transformers.codec import (
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
    encode,
)


def _number(value: Any) -> bytes:
    return b"%d" % value


def _real(value: float) -> bytes:
    return repr(float(value)).encode()


def _text(value: str) -> bytes:
    return value.encode()


_FORMS: dict[type, tuple[str, Callable[[Any], bytes]]] = {
    bool: ("boolean", lambda value: b"true" if value else b"false"),
    UByte: ("ubyte", _number),
    UShort: ("ushort", _number),
    UInt: ("uint", _number),
    ULong: ("ulong", _number),
    Byte: ("byte", _number),
    Short: ("short", _number),
    Int: ("int", _number),
    int: ("long", _number),
    Float: ("float", _real),
    float: ("double", _real),
    Char: ("char", _text),
    Timestamp: ("timestamp", _number),
    Decimal: ("decimal", encode),
    uuid.UUID: ("uuid", lambda value: str(value).encode()),
    bytes: ("binary", bytes),
    str: ("string", _text),
    Symbol: ("symbol", _text),
    list: ("list", encode),
    AmqpMap: ("map", encode),
    Array: ("array", encode),
    Described: ("described", encode),
}


def shown(value: Any) -> tuple[str, bytes | None]:
    """The name of the type, and the octets."""
    if value is None:
        return "null", None
    name, form = _FORMS[type(value)]
    return name, form(value)
