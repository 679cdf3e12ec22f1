"""The header section: what it says, and what it says after failed attempts.

Errors: `read_header` raises `DecodeError`; `redelivered_header` never raises. Times in milliseconds.
Source: seed 001 section 3.2.1; first-acquirer and delivery-count: semantics F-1, F-2.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from transformers.codec import DecodeError, Described, UByte, UInt, decode, encode, skip
from transformers.message.sections import Offsets, section_offsets

PRIORITY_DEFAULT = 4
SECTION_SIZE_MAX = 64  # octets; the longest legal encoding of a header takes 47
_DELIVERY_COUNT_MAX = 2**32 - 1
_FIELDS: tuple[tuple[str, type], ...] = (
    ("durable", bool),
    ("priority", UByte),
    ("ttl", UInt),
    ("first-acquirer", bool),
    ("delivery-count", UInt),
)
_NULL, _FALSE = b"\x40", b"\x42"


class Header(NamedTuple):
    """A header; its defaults are those of an absent one (A-4)."""

    durable: bool = False
    priority: int = PRIORITY_DEFAULT
    ttl_ms: int | None = None
    first_acquirer: bool = False
    delivery_count: int = 0


def read_header(section: bytes) -> Header:
    """What a header section says. It is checked: a header of a wrong type is no header (A-9)."""
    if len(section) > SECTION_SIZE_MAX:
        raise DecodeError(SECTION_SIZE_MAX, "longer than a header can be")
    value, end = decode(section)
    fields: list[Any] = value.value if isinstance(value, Described) else value
    if end != len(section) or not isinstance(fields, list):
        raise DecodeError(0, "a header is a list")
    if len(fields) > len(_FIELDS):
        raise DecodeError(0, f"a header of {len(fields)} fields, there are {len(_FIELDS)}")
    for (name, kind), field in zip(_FIELDS, fields, strict=False):
        if field is not None and type(field) is not kind:
            raise DecodeError(0, f"{name} is a {type(field).__name__}")
    padded = fields + [None] * (len(_FIELDS) - len(fields))
    return Header._make(default if field is None else field for field, default in zip(padded, Header(), strict=True))


def header_fields(message: bytes, offsets: Offsets) -> bytes:
    """`DURABLE;PRIORITY;TTL` of a message, as the identity of its event says them (docs/records.md, *Event key*)."""
    if offsets[0] != 0:
        return section_fields(b"")
    return section_fields(message[: min(offset for offset in offsets[1:] if offset >= 0)])


@functools.lru_cache(maxsize=4096)
def section_fields(section: bytes) -> bytes:
    """The same of a header section; empty: there is none."""
    header = read_header(section) if section else Header()
    ttl = f"T{header.ttl_ms}" if header.ttl_ms else ""  # none and 0 both mean: for ever
    return f"{int(header.durable)};{int(header.priority)};{ttl}".encode()


def redelivered_header(value: bytes, failed: int, again: bool) -> bytes:
    """`value`, a message as it is stored, for one more delivery: delivery-count counts `failed` more attempts than the
    publisher said, and first-acquirer is not true when it was given to a link before (`again`).

    The other fields keep their octets, so does everything behind the header; no header is inserted that would say
    nothing. What is no message comes back as it is: it was never published through the gateway.
    """
    if not failed and not again:
        return value
    try:
        if value[:4] == b"\x00\x53\x70\xc0":
            end = 5 + value[4]
        else:
            offsets = section_offsets(value)
            end = min(offset for offset in offsets[1:] if offset >= 0) if offsets[0] == 0 else 0
        if end == 0:
            return _inserted(failed) + value
        if end > SECTION_SIZE_MAX:
            return value
        return _rewritten(value[:end], failed, again) + value[end:]
    except (DecodeError, IndexError):
        return value


@functools.lru_cache(maxsize=1024)
def _inserted(failed: int) -> bytes:
    fields = [None, None, None, None, UInt(min(failed, _DELIVERY_COUNT_MAX))]
    return encode(Described(0x70, fields)) if failed else b""


@functools.lru_cache(maxsize=1024)  # the messages of a link share few headers
def _rewritten(section: bytes, failed: int, again: bool) -> bytes:
    header = read_header(section)
    if not failed and not header.first_acquirer:
        return section
    count = min(header.delivery_count + failed, _DELIVERY_COUNT_MAX)
    start = skip(section, 1)  # past the descriptor, which stays as it is written
    fields = raw_fields(section, start)
    fields += [_NULL] * (len(_FIELDS) - len(fields))
    if again and header.first_acquirer:
        fields[3] = _FALSE
    if failed:
        fields[4] = encode(UInt(count))
    octets = b"".join(fields)
    return section[:start] + bytes((0xC0, len(octets) + 1, len(fields))) + octets


def raw_fields(section: bytes, start: int) -> list[bytes]:
    """The octets of each element of the list whose constructor stands at `start`."""
    offset = start + {0x45: 1, 0xC0: 3, 0xD0: 9}[section[start]]
    fields = []
    while offset < len(section):
        end = skip(section, offset)
        fields.append(section[offset:end])
        offset = end
    return fields
