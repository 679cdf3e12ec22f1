"""Messages of a publisher by the ids that it gave them, for the record of those that were not stored (docs/records.md
"Outcomes"). They are read when there is such a record, never before.

Source: ADR 0127.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from gateway.links.event_to_message import EventToMessage
from native_backend.events.event_kind import is_message
from transformers.codec import DecodeError
from transformers.message.message_id import as_text, message_id_of

KEPT_BYTES: Final = 16 << 20
"""While more octets than that wait for the realm, what is handed to it is not kept for its ids."""
CHARACTERS_MAX: Final = 256
"""A longer message-id has no place in a record."""
Named = list[tuple[int, str | None]]
"""Seqs and ids. Empty: it has none; None: it cannot be named."""


class SentMessages:
    """A run as it came, with all of its octets; `first_seq`: of its first message; `column`: where it has those of no
    other messages; `as_messages`: its events have messages as their values."""

    def __init__(self, messages: Sequence[bytes], first_seq: int, column: bool, as_messages: bool) -> None:
        self._messages = messages
        self._first_seq = first_seq
        self._column, self._as_messages = column, as_messages

    def kept(self, seqs: Sequence[int], values: Sequence[bytes]) -> SentMessages | SentParts:
        """Some of them, which became events of these values, until they are answered. What is not all of a column is
        kept with its own octets: those beside it may have been answered long before, and count no more."""
        if values is self._messages:
            return self if self._column else SentParts(seqs, [*values])
        return SentParts(seqs, values if self._as_messages else [*map(self._message, seqs)])

    def message_ids(self, seqs: Sequence[int], most: int) -> Named:
        """Of the first `most` of these."""
        return _named((seq, self._message(seq)) for seq in seqs[:most])

    def _message(self, seq: int) -> bytes:
        return self._messages[seq - self._first_seq]


class SentParts:
    """Some messages of a run, with these seqs."""

    def __init__(self, seqs: Sequence[int], messages: Sequence[bytes]) -> None:
        self._seqs, self._messages = seqs, messages

    def message_ids(self, seqs: Sequence[int], most: int) -> Named:
        """Of the first `most` of these, as far as they are still there."""
        places = {seq: at for at, seq in enumerate(self._seqs[: len(self._messages)])}
        return _named((seq, self._message(places[seq])) for seq in seqs[:most] if seq in places)

    def _message(self, at: int) -> bytes:
        return self._messages[at]


class SentEvents(SentParts):
    """The same as the events that a transaction holds. It lets go of them when it can only be rolled back."""

    def __init__(
        self, seqs: Sequence[int], keys: Sequence[bytes], values: Sequence[bytes], back: EventToMessage
    ) -> None:
        super().__init__(seqs, values)
        self._keys, self._back = keys, back

    def _message(self, at: int) -> bytes:
        key, value = self._keys[at], self._messages[at]
        return value if is_message(key) else self._back.message(key, value)


def _named(messages: Iterable[tuple[int, bytes]]) -> Named:
    return [(seq, _message_id(message)) for seq, message in messages]


def _message_id(message: bytes) -> str | None:
    try:
        name = as_text(message_id_of(message))
    except DecodeError:
        return None
    return name if len(name) <= CHARACTERS_MAX else None
