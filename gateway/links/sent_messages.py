"""Messages of a publisher that are not stored yet, by the ids that it gave them: for the record of those that were
refused (docs/records.md "Outcomes"). They are read when there is such a record, never before.

Source: ADR 0127.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from gateway.links.event_to_message import EventToMessage
from gateway.links.partitioner import Part
from native_backend.events.event_kind import is_message
from transformers.codec import DecodeError
from transformers.message.message_id import as_text, message_id_of

KEPT_BYTES: Final = 16 << 20
"""While more octets than that wait for the realm, what comes is not kept for its ids."""
CHARACTERS_MAX: Final = 256
"""A longer message-id has no place in a record."""


class SentMessages:
    """A run as it came. Its octets are kept as long as it is; `first_seq`: of its first message."""

    def __init__(self, messages: Sequence[bytes], first_seq: int) -> None:
        self._messages = messages
        self._first_seq = first_seq

    def message_ids(self, seqs: Sequence[int], most: int) -> list[tuple[int, str]]:
        """Of the first `most` of these, with their seqs; an empty id: it has none."""
        return _readable((seq, self._messages[seq - self._first_seq]) for seq in seqs[:most])


class PostedMessages:
    """What a transaction held, as events. Those that it let go have no ids any more."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def message_ids(self, seqs: Sequence[int], most: int) -> list[tuple[int, str]]:
        """As of `SentMessages`; the seqs are those of the part."""
        part, back = self._part, EventToMessage()
        events = zip(seqs[:most], part.keys, part.values, strict=False)
        return _readable((seq, value if is_message(key) else back.message(key, value)) for seq, key, value in events)


def _readable(messages: Iterable[tuple[int, bytes]]) -> list[tuple[int, str]]:
    named = ((seq, _message_id(message)) for seq, message in messages)
    return [(seq, name) for seq, name in named if len(name) <= CHARACTERS_MAX]


def _message_id(message: bytes) -> str:
    try:
        return as_text(message_id_of(message))
    except DecodeError:
        return ""
