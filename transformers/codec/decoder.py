"""AMQP bytes to values, and past values.

Errors: `decode` and `skip` raise `DecodeError` and nothing else, whatever the bytes. Limits: DEPTH_MAX, VALUES_MAX.
Source: AMQP 1.0 part 1 (types).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from transformers.codec.formats import ARRAYS, CONSTANTS, FIXED, LIST0, LISTS, MAPS, U32, VARIABLE, WIDTHS
from transformers.codec.values import AmqpMap, Array, Described, Symbol, ULong

DEPTH_MAX = 32  # descriptors, lists, maps and arrays inside each other
VALUES_MAX = 100_000  # values in one decode: an array of a billion nulls takes ten bytes


class DecodeError(Exception):
    """The bytes are not AMQP: `reason`, found at `offset`."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"at octet {offset}: {reason}")
        self.offset = offset
        self.reason = reason


class _Reader:
    """One decode: the bytes, and how many more values it may hold. Offsets that run past the end raise IndexError or
    struct.error, which `decode` turns into "truncated"."""

    __slots__ = ("data", "values_left")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.values_left = VALUES_MAX

    def value(self, offset: int, depth: int) -> tuple[Any, int]:
        """The value whose constructor stands at `offset`."""
        code = self.data[offset]
        if code:
            return self.content(code, offset + 1, depth)
        if depth >= DEPTH_MAX:
            raise DecodeError(offset, f"nested deeper than {DEPTH_MAX}")
        descriptor, offset = self.descriptor(offset + 1, depth + 1)
        value, offset = self.value(offset, depth + 1)
        return Described(descriptor, value), offset

    def descriptor(self, offset: int, depth: int) -> tuple[int | Symbol, int]:
        descriptor, end = self.value(offset, depth)
        if not isinstance(descriptor, ULong | Symbol):
            raise DecodeError(offset, "a descriptor is a ulong or a symbol")
        return descriptor, end

    def content(self, code: int, offset: int, depth: int) -> tuple[Any, int]:
        """The value of format `code` whose octets begin at `offset`."""
        self.values_left -= 1
        if self.values_left < 0:
            raise DecodeError(offset, f"more than {VALUES_MAX} values")
        fixed = FIXED.get(code)
        if fixed is not None:
            layout, wrap = fixed
            return _wrapped(wrap, layout.unpack_from(self.data, offset)[0], offset), offset + layout.size
        if code in CONSTANTS:
            return CONSTANTS[code], offset
        if code == LIST0:
            return [], offset
        if code in VARIABLE:
            start, end = self.extent(code, offset)
            return _wrapped(VARIABLE[code], self.data[start:end], offset), end
        return self.compound(code, offset, depth)

    def extent(self, code: int, offset: int) -> tuple[int, int]:
        """Where the octets that a size announces begin and end."""
        if code & 0x10:
            start = offset + 4
            end = start + int(U32.unpack_from(self.data, offset)[0])
        else:
            start = offset + 1
            end = start + self.data[offset]
        if end > len(self.data):
            raise DecodeError(offset, f"a size of {end - start} where {len(self.data) - start} octets are left")
        return start, end

    def compound(self, code: int, offset: int, depth: int) -> tuple[Any, int]:
        if code not in LISTS and code not in MAPS and code not in ARRAYS:
            raise DecodeError(offset - 1, f"unknown format code 0x{code:02x}")
        if depth >= DEPTH_MAX:
            raise DecodeError(offset - 1, f"nested deeper than {DEPTH_MAX}")
        start, end = self.extent(code, offset)
        count = int(U32.unpack_from(self.data, start)[0]) if code & 0x10 else self.data[start]
        start += 4 if code & 0x10 else 1
        if count > self.values_left:
            raise DecodeError(offset, f"more than {VALUES_MAX} values")
        value: Any
        if code in ARRAYS:
            value, last = self.array(count, start, depth + 1)
        else:
            value, last = self.items(count, start, depth + 1)
            if code in MAPS:
                if count % 2:
                    raise DecodeError(offset, "a map of an odd number of values")
                value = AmqpMap(list(zip(value[::2], value[1::2], strict=True)))
        if last != end:
            raise DecodeError(offset, f"the size says octet {end}, the values end at {last}")
        return value, end

    def items(self, count: int, offset: int, depth: int) -> tuple[list[Any], int]:
        items = []
        for _ in range(count):
            item, offset = self.value(offset, depth)
            items.append(item)
        return items, offset

    def array(self, count: int, offset: int, depth: int) -> tuple[Array, int]:
        descriptors: list[int | Symbol] = []
        while (code := self.data[offset]) == 0:
            if depth + len(descriptors) >= DEPTH_MAX:
                raise DecodeError(offset, f"nested deeper than {DEPTH_MAX}")
            descriptor, offset = self.descriptor(offset + 1, depth + 1)
            descriptors.append(descriptor)
        if not WIDTHS[code]:
            raise DecodeError(offset, f"unknown format code 0x{code:02x}")
        offset += 1
        items = []
        for _ in range(count):
            item, offset = self.content(code, offset, depth)
            items.append(item)
        return Array(code, items, descriptors), offset


def _wrapped(wrap: Callable[[Any], Any], raw: Any, offset: int) -> Any:
    try:
        return wrap(raw)
    except ValueError as error:  # so is UnicodeDecodeError
        raise DecodeError(offset, str(error)) from None


def decode(data: bytes, offset: int = 0) -> tuple[Any, int]:
    """The value at `offset`, and the offset behind it."""
    try:
        return _Reader(data).value(offset, 0)
    except (IndexError, struct.error):
        raise DecodeError(len(data), "truncated") from None


def skip(data: bytes, offset: int) -> int:
    """The offset behind the value at `offset`, by announced sizes: what a list, map or array holds is not looked at."""
    pending = 1  # a described value is two: its descriptor and itself
    try:
        while pending:
            code = data[offset]
            width = WIDTHS[code]
            if width > 0:
                offset += width
            elif width == -1:
                offset += 2 + data[offset + 1]
            elif width == -4:
                offset += 5 + int(U32.unpack_from(data, offset + 1)[0])
            elif code == 0:
                offset += 1
                pending += 1
                continue
            else:
                raise DecodeError(offset, f"unknown format code 0x{code:02x}")
            pending -= 1
    except (IndexError, struct.error):
        raise DecodeError(len(data), "truncated") from None
    if offset > len(data):
        raise DecodeError(len(data), "truncated")
    return offset
