"""A message without its time: for a dead letter, which lives as long as its own node says.

Clients of JMS look at absolute-expiry-time, and where there is none at ttl, by themselves: what has expired the
application never sees. Errors: none; what is no message comes back as it is. Source: seed 001 sections 3.2.1
and 3.2.4.
"""

from __future__ import annotations

import struct

from transformers.codec import DecodeError, Timestamp, decode, skip
from transformers.message.header import raw_fields
from transformers.message.sections import HEADER, PROPERTIES, Offsets, section_offsets

_TTL, _ABSOLUTE_EXPIRY_TIME = 2, 8
_NULL = b"\x40"


def without_expiry(message: bytes) -> tuple[bytes, Timestamp | None]:
    """`message` without ttl and absolute-expiry-time, and what the latter said; every other field and section keeps
    its octets."""
    try:
        offsets = section_offsets(message)
        cut, expiry = _without(message, offsets, PROPERTIES, _ABSOLUTE_EXPIRY_TIME)
        cut, _ = _without(cut, offsets, HEADER, _TTL)  # it comes first: its offsets still hold
        absolute = decode(expiry)[0]
    except (DecodeError, IndexError):
        return message, None
    return cut, absolute if type(absolute) is Timestamp else None


def _without(message: bytes, offsets: Offsets, section: int, field: int) -> tuple[bytes, bytes]:
    """With null for that field of that section, and the octets that were there."""
    begin = offsets[section]
    if begin < 0:
        return message, _NULL
    end = min(offset for offset in offsets[section + 1 :] if offset >= 0)
    fields_at = skip(message, begin + 1)  # past the descriptor, which stays as it is written
    fields = raw_fields(message[:end], fields_at)
    if field >= len(fields) or fields[field] == _NULL:
        return message, _NULL
    was, fields[field] = fields[field], _NULL
    return message[:fields_at] + _list(fields) + message[end:], was


def _list(fields: list[bytes]) -> bytes:
    octets = b"".join(fields)
    if len(octets) < 255:
        return bytes((0xC0, len(octets) + 1, len(fields))) + octets
    return struct.pack(">BII", 0xD0, len(octets) + 4, len(fields)) + octets
