"""The message-id of an AMQP message. Source: AMQP 1.0 3.2.4: a string, a number, a UUID or octets.

Errors: `DecodeError`: it is no message.
"""

from __future__ import annotations

from transformers.codec import Described, decode
from transformers.message.sections import PROPERTIES, section_offsets


def message_id_of(message: bytes) -> object:
    """As the codec reads it; None: it has none."""
    return message_id_at(message, section_offsets(message)[PROPERTIES])


def message_id_at(message: bytes, properties: int) -> object:
    """The same where the place of its properties is known; -1: it has none."""
    content = decode(message, properties)[0] if properties >= 0 else None
    fields = content.value if isinstance(content, Described) else None
    return fields[0] if isinstance(fields, list) and fields else None


def as_text(message_id: object) -> str:
    """Octets in hexadecimal; empty: there is none."""
    if isinstance(message_id, bytes | bytearray | memoryview):
        return bytes(message_id).hex()
    return "" if message_id is None else str(message_id)
