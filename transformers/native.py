"""A native value as an AMQP message: what a plain producer wrote, as a message that an AMQP application understands.

UTF-8 text is an amqp-value section with a string, and has no content-type; anything else is a data section of content
type `application/octet-stream`. Source: semantics A-13, A-14 (seed 001 section 3.2.4). Never raises.
May import: `transformers.amqp_types`.
"""

from __future__ import annotations

from transformers.amqp_types import Described, Symbol, ULong, encode

_PROPERTIES, _DATA, _AMQP_VALUE = ULong(0x73), ULong(0x75), ULong(0x77)
_CONTENT_TYPE_FIELD = 6
_OCTETS = encode(Described(_PROPERTIES, [*[None] * _CONTENT_TYPE_FIELD, Symbol("application/octet-stream")]))


def message_of(value: bytes) -> bytes:
    """The message that says what `value` says."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return _OCTETS + encode(Described(_DATA, value))
    return encode(Described(_AMQP_VALUE, text))
