"""The message-id of an AMQP message: a string, a number, a UUID or octets; anything else is none.

Source: AMQP 1.0 3.2.4. Errors: `DecodeError`: it is no message.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from transformers.codec import decode
from transformers.message.properties import place_of_property
from transformers.message.sections import PROPERTIES, section_offsets

MessageId = str | int | UUID | bytes
_TYPES: Final = frozenset((0x44, 0x53, 0x80, 0x98, 0xA0, 0xB0, 0xA1, 0xB1))


def message_id_of(message: bytes) -> MessageId | None:
    """None: it has none."""
    return message_id_at(message, section_offsets(message)[PROPERTIES])


def message_id_at(message: bytes, properties: int) -> MessageId | None:
    """The same where the place of its properties is known; -1: it has no properties. No other field is decoded."""
    place = place_of_property(message, properties, 0) if properties >= 0 else -1
    if not 0 <= place < len(message) or message[place] not in _TYPES:
        return None
    message_id: MessageId = decode(message, place)[0]
    return message_id


def as_text(message_id: MessageId | None) -> str:
    """Octets in hexadecimal; empty: there is none."""
    if isinstance(message_id, bytes):
        return message_id.hex()
    return "" if message_id is None else str(message_id)
