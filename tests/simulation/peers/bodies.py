"""Messages that say who they are: every body carries a marker, and the other sections vary.

`bare` cuts a message after its annotations by the tests' own decoder: what must reach the consumer bit for bit.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from transformers.codec import AmqpMap, Described, Symbol, UByte, UInt, ULong, decode, encode

_MARKER = re.compile(rb"<m\d+>")
_HEADER, _DELIVERY_ANNOTATIONS, _MESSAGE_ANNOTATIONS = 0x70, 0x71, 0x72
_PROPERTIES, _APPLICATION, _DATA, _SEQUENCE, _VALUE, _FOOTER = 0x73, 0x74, 0x75, 0x76, 0x77, 0x78


def marker_of(payload: bytes) -> str:
    """The marker in a message; empty when it has none."""
    marker = _MARKER.search(payload)
    return marker[0].decode() if marker else ""


def message(number: int, random: Random) -> bytes:
    """A message with this marker, of any shape and up to a few frames long."""
    marker = f"<m{number}>"
    filler = "." * random.choice((0, 0, 10, 700, 1500))
    sections = []
    if random.random() < 0.4:
        count = random.choice((None, UInt(0), UInt(2)))
        fields = [random.random() < 0.5, UByte(random.randint(0, 9)), None, random.choice((None, True)), count]
        sections.append(_section(_HEADER, fields))
    if random.random() < 0.2:
        sections.append(_section(_DELIVERY_ANNOTATIONS, AmqpMap([(Symbol("x-opt-hop"), UInt(number))])))
    if random.random() < 0.2:
        sections.append(_section(_MESSAGE_ANNOTATIONS, AmqpMap([(Symbol("x-opt-a"), "b")])))
    if random.random() < 0.5:
        sections.append(_section(_PROPERTIES, [f"id-{number}", None, "to"]))
    if random.random() < 0.3:
        sections.append(_section(_APPLICATION, AmqpMap([("k", UInt(number))])))
    sections += _body(marker + filler, random)
    if random.random() < 0.1:
        sections.append(_section(_FOOTER, AmqpMap([(Symbol("x-opt-sum"), UInt(1))])))
    return b"".join(sections)


def rubbish(number: int) -> bytes:
    """No AMQP message, with a marker all the same."""
    return b"\x00\x53\x75\xff" + f"<m{number}>".encode()


def _body(text: str, random: Random) -> list[bytes]:
    kind = random.randrange(4)
    if kind == 0:
        return [_section(_DATA, text[:8].encode()), _section(_DATA, text.encode())]
    if kind == 1:
        return [_section(_SEQUENCE, [text, UInt(1)])]
    return [_section(_VALUE, text) if kind == 2 else _section(_DATA, text.encode())]


def _section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


def sections(payload: bytes) -> tuple[list[Any], bytes, bytes]:
    """The header's fields, the message-annotations as encoded, and the bare message."""
    header: list[Any] = []
    annotations = b""
    position = 0
    while position < len(payload):
        section, end = decode(payload, position)
        if section.descriptor == _HEADER:
            header = section.value
        elif section.descriptor == _MESSAGE_ANNOTATIONS:
            annotations = payload[position:end]
        elif section.descriptor != _DELIVERY_ANNOTATIONS:
            break
        position = end
    return header, annotations, payload[position:]


def header_field(header: list[Any], index: int, default: Any) -> Any:
    value = header[index] if index < len(header) else None
    return default if value is None else value
