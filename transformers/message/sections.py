"""Where the sections of an AMQP message begin, found without decoding the body.

`section_offsets(message)` gives seven offsets: header, delivery-annotations, message-annotations, properties,
application-properties, body, footer; -1 where there is none. A section ends where the next present one begins; together
they end exactly at the end of the message. A message without a body (JMS sends such) has an empty one: its place is
where it would stand.

Accepted: every encoding of a section (numeric and symbolic descriptors, every width), each at most once and in this
order, a body of data sections, or of sequence sections, or of one value. Anything else raises `DecodeError`: truncated,
unknown, out of order, no section at all. What a list, map or value holds inside its announced size is not looked at.

Source: seed 001 section 3.2.
"""

from __future__ import annotations

from transformers.codec import DecodeError, Symbol, ULong, decode, skip
from transformers.message import _sections

Offsets = tuple[int, int, int, int, int, int, int]

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, BODY, FOOTER = range(7)

_LIST, _MAP, _BINARY = (0x45, 0xC0, 0xD0), (0xC1, 0xD1), (0xA0, 0xB0)
_DATA, _SEQUENCE = 0x75, 0x76
_BY_SYMBOL = {
    "amqp:header:list": 0x70,
    "amqp:delivery-annotations:map": 0x71,
    "amqp:message-annotations:map": 0x72,
    "amqp:properties:list": 0x73,
    "amqp:application-properties:map": 0x74,
    "amqp:data:binary": 0x75,
    "amqp:amqp-sequence:list": 0x76,
    "amqp:amqp-value:*": 0x77,
    "amqp:footer:map": 0x78,
}
_FORMATS: dict[int, tuple[int, ...]] = {
    0x70: _LIST,
    0x71: _MAP,
    0x72: _MAP,
    0x73: _LIST,
    0x74: _MAP,
    0x75: _BINARY,
    0x76: _LIST,
    0x77: (),  # any
    0x78: _MAP,
}
_SLOT = {0x70: 0, 0x71: 1, 0x72: 2, 0x73: 3, 0x74: 4, 0x75: 5, 0x76: 5, 0x77: 5, 0x78: 6}


def section_offsets(message: bytes) -> Offsets:
    """Sections in the encodings that nearly every client writes, straight down; anything else goes the general way."""
    return _sections.offsets(message) or _walk(message)


def _walk(message: bytes) -> Offsets:
    """Section by section."""
    offsets = [-1] * 7
    offset, last, end = 0, 0, len(message)
    while offset < end:
        code, value = _descriptor(message, offset)
        if code <= last and not (code == last and code in (_DATA, _SEQUENCE)):
            raise DecodeError(offset, f"section 0x{code:x} after 0x{last:x}")
        slot = _SLOT[code]
        if offsets[slot] >= 0 and code != last:
            raise DecodeError(offset, f"a body of 0x{last:x} goes on with 0x{code:x}")
        if offsets[slot] < 0:
            offsets[slot] = offset
        offset, last = _content_end(message, code, value), code
    if not end:
        raise DecodeError(end, "a message without a section")
    if offsets[BODY] < 0:
        offsets[BODY] = offsets[FOOTER] if offsets[FOOTER] >= 0 else end
    header, delivery, annotations, properties, application, body, footer = offsets
    return header, delivery, annotations, properties, application, body, footer


def _descriptor(message: bytes, offset: int) -> tuple[int, int]:
    """The numeric code of the section at `offset`, and where its value begins."""
    if message[offset]:
        raise DecodeError(offset, "no section: a section is a described value")
    if message[offset + 1 : offset + 2] == b"\x53" and offset + 2 < len(message):
        code, value = message[offset + 2], offset + 3
    else:
        descriptor, value = decode(message, offset + 1)
        if isinstance(descriptor, Symbol):
            code = _BY_SYMBOL.get(descriptor, -1)
        else:
            code = descriptor if isinstance(descriptor, ULong) else -1
    if code not in _SLOT:
        raise DecodeError(offset, "no message section has this descriptor")
    return code, value


def _content_end(message: bytes, code: int, value: int) -> int:
    """Where the section ends whose value begins at `value`."""
    end = skip(message, value)
    formats = _FORMATS[code]
    if formats and message[value] not in formats:
        raise DecodeError(value, f"section 0x{code:x} cannot hold format 0x{message[value]:02x}")
    return end


def without_delivery_annotations(message: bytes, offsets: Offsets) -> tuple[bytes, Offsets]:
    """The message as the next hop may see it (001 3.2.2: they are for the receiving peer), and its offsets.
    The same object when there is nothing to cut."""
    header, delivery, annotations, properties, application, body, footer = offsets
    if delivery < 0:
        return message, offsets
    end = min(offset for offset in (annotations, properties, application, body) if offset >= 0)
    cut = end - delivery
    annotations, properties, application, footer = (
        offset - cut if offset >= 0 else -1 for offset in (annotations, properties, application, footer)
    )
    return message[:delivery] + message[end:], (header, -1, annotations, properties, application, body - cut, footer)


def sole_body_content(message: bytes, body: int) -> int:
    """Where the content of the body begins when the body is one data section, binary or string, and ends the
    message; 0 otherwise. Every message of equal length and equal octets up to there has the same sections."""
    return _sections.content(message, body)
