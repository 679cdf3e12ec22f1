"""The values of the AMQP 1.0 type system, as Python holds them.

| AMQP | Python | | AMQP | Python |
|---|---|---|---|---|
| null, boolean | None, bool | | decimal32/64/128 | Decimal (the octets, not interpreted) |
| ubyte, ushort, uint, ulong | UByte, UShort, UInt, ULong | | char | Char |
| byte, short, int | Byte, Short, Int | | timestamp | Timestamp, milliseconds since 1970 |
| long | int | | uuid | uuid.UUID |
| float, double | Float, float | | binary, string, symbol | bytes, str, Symbol |
| list | list | | map | AmqpMap: pairs in wire order |
| array | Array | | described | Described |

Every wrapper is a subclass of its natural type, so a decoded UInt compares and counts as an int, and encodes as a uint
again. A map stays pairs because AMQP keys may be unhashable in Python; duplicate keys are kept, `get` finds the first.

No errors, no limits here. Source: AMQP 1.0 part 1 (types) section 1.6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class UByte(int):
    __slots__ = ()


class UShort(int):
    __slots__ = ()


class UInt(int):
    __slots__ = ()


class ULong(int):
    __slots__ = ()


class Byte(int):
    __slots__ = ()


class Short(int):
    __slots__ = ()


class Int(int):
    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970, UTC."""

    __slots__ = ()


class Float(float):
    """32 bits on the wire."""

    __slots__ = ()


class Char(str):
    """One Unicode scalar value."""

    __slots__ = ()


class Symbol(str):
    """ASCII."""

    __slots__ = ()


class Decimal(bytes):
    """An IEEE 754 decimal of 4, 8 or 16 octets as it stood on the wire: carried, never calculated with."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A value with its descriptor. Other descriptor types than these are reserved (part 1, 1.3) and refused."""

    descriptor: int | Symbol
    value: Any


@dataclass(frozen=True, slots=True)
class AmqpMap:
    """A map as pairs in wire order."""

    pairs: list[tuple[Any, Any]]

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of the first pair whose key equals `key`."""
        for candidate, value in self.pairs:
            if candidate == key:
                return value
        return default


@dataclass(frozen=True, slots=True)
class Array:
    """Items of one encoding: `code` is the format code of each, `descriptors` what describes each (outermost first)."""

    code: int
    items: list[Any]
    descriptors: list[int | Symbol] = field(default_factory=list)
