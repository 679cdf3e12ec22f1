"""A message as it leaves one broker and arrives at another: octets in, octets out.

Message annotations, the bare message and the footer keep every octet, but for the names of RabbitMQ's own annotations,
which no other container may take. Delivery annotations are for one hop, and stay behind. The header keeps durable,
priority and time to live; delivery-count and first-acquirer count what happened to the message at the old broker, and
begin anew. Source: AMQP 1.0 part 3.2. Errors: `DecodeError`.
"""

from __future__ import annotations

import functools
import hashlib
from typing import NamedTuple

from transformers.codec import AmqpMap, Described, Symbol, UByte, UInt, decode, encode
from transformers.message.header import PRIORITY_DEFAULT, Header, read_header
from transformers.message.message_id import as_text, message_id_at
from transformers.message.sections import FOOTER, MESSAGE_ANNOTATIONS, PROPERTIES, section_offsets

_HEADER = 0x70
_OF_RABBITMQ = {"x-exchange": "x-opt-exchange", "x-routing-key": "x-opt-routing-key"}
"""A container that does not understand an annotation ends the link, unless x-opt- begins it (AMQP 1.0, 3.2.10)."""


class MovedMessage(NamedTuple):
    """`octets`: what is sent. `digest`: of the bare message, which no broker on the way may change. `message_id`: as
    text; empty: it has none."""

    octets: bytes
    digest: str
    message_id: str


def moved_message(stored: bytes) -> MovedMessage:
    """Of what the old broker delivered."""
    offsets = section_offsets(stored)
    kept = min(offset for offset in offsets[MESSAGE_ANNOTATIONS:] if offset >= 0)
    bare = min(offset for offset in offsets[PROPERTIES:] if offset >= 0)
    bare_end = offsets[FOOTER] if offsets[FOOTER] >= 0 else len(stored)
    header = b""
    if offsets[0] == 0:
        header = _header(stored[: min(offset for offset in offsets[1:] if offset >= 0)])
    digest = hashlib.blake2b(stored[bare:bare_end], digest_size=16).hexdigest()
    octets = header + _annotations(stored[kept:bare]) + stored[bare:]
    return MovedMessage(octets, digest, as_text(message_id_at(stored, offsets[PROPERTIES])))


def _annotations(section: bytes) -> bytes:
    """Empty: there are none."""
    if not any(key.encode() in section for key in _OF_RABBITMQ):
        return section
    annotations = decode(section)[0]
    if not isinstance(annotations, Described) or not isinstance(annotations.value, AmqpMap):
        return section
    pairs = [(_renamed(key), value) for key, value in annotations.value.pairs]
    return encode(Described(annotations.descriptor, AmqpMap(pairs)))


def _renamed(key: object) -> object:
    return Symbol(_OF_RABBITMQ.get(key, key)) if isinstance(key, Symbol) else key


@functools.lru_cache(maxsize=1024)  # the messages of a queue share few headers
def _header(section: bytes) -> bytes:
    header = read_header(section)
    if header == header._replace(first_acquirer=False, delivery_count=0):
        return section
    return _written(header)


def _written(header: Header) -> bytes:
    """As short as it can be said."""
    priority = UByte(header.priority) if header.priority != PRIORITY_DEFAULT else None
    fields = [header.durable or None, priority, None if header.ttl_ms is None else UInt(header.ttl_ms)]
    while fields and fields[-1] is None:
        fields.pop()
    return encode(Described(_HEADER, fields))
