"""A native record as an AMQP message: what a plain producer wrote, as a message that an AMQP application understands.

UTF-8 text is an amqp-value section with a string, and has no content-type; anything else is a data section of content
type `application/octet-stream`. Headers are application-properties: UTF-8 is a string, anything else binary, null null;
of several with one name the last counts, as for Kafka's clients. Source: semantics A-13, A-14 (seed 001 section 3.2.4).
Never raises.
"""

from __future__ import annotations

from collections.abc import Iterable

from transformers.codec import AmqpMap, Described, Symbol, ULong, encode

_PROPERTIES, _APPLICATION, _DATA, _AMQP_VALUE = ULong(0x73), ULong(0x74), ULong(0x75), ULong(0x77)
_CONTENT_TYPE_FIELD = 6
_OCTETS = encode(Described(_PROPERTIES, [*[None] * _CONTENT_TYPE_FIELD, Symbol("application/octet-stream")]))


def message_of(value: bytes, headers: Iterable[tuple[str, bytes | None]] = ()) -> bytes:
    """The message that says what `value` and `headers` say."""
    last = dict(headers)
    section = b""
    if last:
        pairs = [(name, None if octets is None else _text_or_octets(octets)) for name, octets in last.items()]
        section = encode(Described(_APPLICATION, AmqpMap(pairs)))
    body = _text_or_octets(value)
    if isinstance(body, str):
        return section + encode(Described(_AMQP_VALUE, body))
    return _OCTETS + section + encode(Described(_DATA, body))


def _text_or_octets(octets: bytes) -> str | bytes:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets
