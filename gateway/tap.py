"""The tap: cuts a stream of AMQP bytes into frames before the engine sees them.

Runs of plain transfers, dispositions, flows and empty frames are handed on together; every other frame is alone and
decoded, because proton's reading of it loses fields (default-outcome, link capabilities, flow properties, `more` of a transfer
that arrives with its continuation: `semantics.md` 4.1, 4.4). A plain transfer has neither `more` nor a state nor `aborted`.
A frame that no engine should see is a `Fault`.

Pure bytes: no proton, no clock. May import: `transformers.amqp_types`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from transformers.amqp_types import DecodeError, Described, decode

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)

HEADER_SIZE: Final = 8
_HEAD = struct.Struct(">IIQ").unpack_from  # size; doff, type, channel; 00 53 code list size count x x
_SIZE = struct.Struct(">I").unpack_from

# The first 32 bits of a performative with a one-octet descriptor and a list8: 00 53 code c0.
_TRANSFER8: Final = 0x005314C0
_DISPOSITION8: Final = 0x005315C0
_FLOW8: Final = 0x005313C0

_TRUE: Final = 0x41
_MORE: Final = 5  # its position in a transfer
_TRANSFER_PLAIN_FIELDS: Final = _MORE
_FLOW_PLAIN_FIELDS: Final = 9  # echo and properties come behind
_WIDTHS: Final = {0x40: 0, 0x41: 0, 0x42: 0, 0x43: 0, 0x44: 0, 0x45: 0, 0x50: 1, 0x52: 1, 0x53: 1, 0x56: 1, 0x70: 4}


@dataclass(frozen=True, slots=True)
class Frame:
    """A decoded performative; `fields` is padded with None to `width`."""

    channel: int
    code: int
    fields: tuple[Any, ...]

    def field(self, index: int) -> Any:
        return self.fields[index] if index < len(self.fields) else None


@dataclass(frozen=True, slots=True)
class Fault:
    """What the peer broke, in the words of the mapping table `fault`, and where."""

    fault: str
    detail: str


Piece = tuple[int, int, Frame | Fault | None]


class Tap:
    """Feeds on chunks of one connection's stream, from behind the protocol header on."""

    def __init__(self, frame_size_max: int) -> None:
        self._frame_size_max = frame_size_max
        self._rest = b""

    def walk(self, data: bytes) -> tuple[bytes, Iterator[Piece]]:
        """The bytes to push, and the pieces of them: (start, end, None) for a plain run, (start, end, Frame) for a frame to be pushed
        alone, (start, start, Fault) for the end of it all. What is left of an unfinished frame waits for the next chunk."""
        if self._rest:
            data = self._rest + data
            self._rest = b""
        return data, self._pieces(data)

    def _pieces(self, data: bytes) -> Iterator[Piece]:
        end = len(data)
        start = position = 0  # start: of the plain run that is growing
        while end - position >= HEADER_SIZE:
            if end - position >= 16:
                size, rest, word = _HEAD(data, position)
            else:
                size, rest, word = _SIZE(data, position)[0], _SIZE(data, position + 4)[0], 0
            if not HEADER_SIZE <= size <= self._frame_size_max or rest >> 16 & 0xFF or not 2 <= rest >> 24 <= size >> 2:
                fault = Fault("framing", f"frame of size {size}, data offset {rest >> 24}, type {rest >> 16 & 0xFF}")
                if position > start:
                    yield start, position, None
                yield position, position, fault
                return
            if position + size > end:
                break
            if not _is_plain(data, position, size, rest, word):
                if position > start:
                    yield start, position, None
                decoded = _decode(data, position, size, rest)
                yield position, position if isinstance(decoded, Fault) else position + size, decoded
                if isinstance(decoded, Fault):
                    return
                start = position + size
            position += size
        if position > start:
            yield start, position, None
        self._rest = data[position:]


def _is_plain(data: bytes, position: int, size: int, rest: int, word: int) -> bool:
    head = word >> 32
    fields = word >> 16 & 0xFF
    if rest >> 24 == 2:
        if head == _TRANSFER8:
            return fields <= _TRANSFER_PLAIN_FIELDS or _is_plain_transfer(data, position + 14, fields)
        if head == _DISPOSITION8:
            return data[position + 14] == _TRUE  # a receiver's; a sender's may look like a transfer to the engine
        if head == _FLOW8:
            return fields <= _FLOW_PLAIN_FIELDS
    return size == (rest >> 24) * 4  # an empty frame: a heartbeat


def _is_plain_transfer(data: bytes, position: int, fields: int) -> bool:
    """False where anything but null or false stands in `more` or behind it, or where a field is too odd to tell."""
    end = len(data) - 2
    for index in range(fields):
        if position > end:
            return False
        code = data[position]
        if index >= _MORE and code not in (0x40, 0x42):
            return False
        if code == 0xA0:
            position += 2 + data[position + 1]
        elif code in _WIDTHS:
            position += 1 + _WIDTHS[code]
        else:
            return False
    return True


def _decode(data: bytes, position: int, size: int, rest: int) -> Frame | Fault:
    start = position + (rest >> 24) * 4
    try:
        value, _ = decode(data[start : position + size])
    except DecodeError as error:
        return Fault("malformed-performative", str(error))
    if not isinstance(value, Described) or not isinstance(value.descriptor, int):
        return Fault("unknown-performative", f"a frame body that is no performative: {str(value)[:60]}")
    if not OPEN <= value.descriptor <= CLOSE:
        return Fault("unknown-performative", f"descriptor 0x{value.descriptor:x}")
    if not isinstance(value.value, list):
        return Fault("malformed-performative", f"performative 0x{value.descriptor:x} is no list")
    return Frame(rest & 0xFFFF, value.descriptor, tuple(value.value))
