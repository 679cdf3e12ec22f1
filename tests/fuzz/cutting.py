"""A stream as frames, a frame as its fields, and back: what is bred is changed there."""

from __future__ import annotations

import struct

from tests.fuzz import shapes
from transformers.codec import DecodeError, Described, decode

Frames = list[bytes]


def cut(data: bytes) -> Frames:
    """Its frames; a protocol header is one, and so is what makes no sense at the end."""
    frames, position = [], 0
    while position < len(data):
        size = 8 if data[position : position + 4] == b"AMQP" else int.from_bytes(data[position : position + 4])
        size = size if 8 <= size <= len(data) - position else len(data) - position
        frames.append(data[position : position + size])
        position += size
    return frames


def read(frame: bytes) -> tuple[int, int, list[bytes], bytes] | None:
    """Channel, code, encoded fields and payload."""
    try:
        value, end = decode(frame[4 * frame[4] :])
    except DecodeError:
        return None
    if not isinstance(value, Described) or not isinstance(value.descriptor, int) or not isinstance(value.value, list):
        return None
    fields = [shapes.anything(field) for field in value.value]
    return int.from_bytes(frame[6:8]), value.descriptor, fields, frame[4 * frame[4] + end :]


def build(channel: int, code: int, fields: list[bytes], payload: bytes = b"") -> bytes:
    body = shapes.described(code, fields) + payload
    return struct.pack(">IBBH", len(body) + 8, 2, 0, channel & 0xFFFF) + body


def code_of(frame: bytes) -> int:
    """Of its performative; 0 where it has none that can be told."""
    return frame[10] if frame[4:6] == b"\x02\x00" and frame[8:10] == b"\x00\x53" and len(frame) > 10 else 0
