"""A message-id as a person writes it, and how messages and records may have it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from transformers.message.message_id import MessageId

_JMS_PREFIXES = ("ID:AMQP_NO_PREFIX:", "ID:AMQP_STRING:", "ID:AMQP_ULONG:", "ID:AMQP_UUID:", "ID:AMQP_BINARY:", "ID:")
_TEXT_MIN: Final = 8
"""Records have octets in hexadecimal. A shorter text would be taken for a number: 37 are the octets of "7"."""


def written(wanted: str) -> set[str]:
    """As it was written, and without what JMS clients put before it."""
    rests = {wanted.removeprefix(prefix) for prefix in _JMS_PREFIXES}
    return {wanted, *rests, *(rest.lower() for rest in rests)}


def spelled(message_id: MessageId | None) -> set[str]:
    """How a message's id may be written on a command line."""
    if isinstance(message_id, bytes):
        return {message_id.hex(), message_id.decode("utf-8", "backslashreplace")}
    return set() if message_id is None else {str(message_id)}


def recorded(wanted: str) -> set[str]:
    """How an outcome record may have it."""
    names = written(wanted)
    return names | {name.encode().hex() for name in names if len(name) >= _TEXT_MIN}


def encodings(name: str) -> Iterator[bytes]:
    """What a message with that id has somewhere."""
    yield name.encode()
    if name.isdigit() and int(name) < 1 << 64:
        number = int(name)
        yield b"\x80" + number.to_bytes(8, "big")
        yield b"\x44" if number == 0 else b"\x53" + bytes([number]) if number < 256 else name.encode()
    with suppress(ValueError):
        yield uuid.UUID(name).bytes
    with suppress(ValueError):
        yield bytes.fromhex(name)
