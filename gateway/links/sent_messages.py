"""Messages of a publisher by the ids that it gave them, for the record of those that were not stored (docs/records.md
"Outcomes"). They are read when there is such a record, never before.

Source: ADR 0127.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    other messages."""

    def __init__(self, messages: Sequence[bytes], first_seq: int, column: bool) -> None:
        self._messages = messages
        self._first_seq = first_seq
        self._column = column

    def kept(self, seqs: Sequence[int], values: Sequence[bytes]) -> SentMessages | SentParts:
        """Some of them, which became events of these values, until they are answered. What is not all of a column is
        kept with its own octets: those beside it may have been answered long before, and count no more."""
        if self._column and values is self._messages:
            return self
        return SentParts({seq: self._messages[seq - self._first_seq] for seq in seqs})

    def message_ids(self, seqs: Sequence[int], most: int) -> Named:
        """Of the first `most` of these."""
        return _named((seq, self._messages[seq - self._first_seq]) for seq in seqs[:most])


class SentParts:
    """Some messages of a run, by their seqs."""

    def __init__(self, messages: Mapping[int, bytes]) -> None:
        self._messages = messages

    def message_ids(self, seqs: Sequence[int], most: int) -> Named:
        """Of the first `most` of these."""
        return _named((seq, self._messages[seq]) for seq in seqs[:most])


class SentEvents:
    """Events that a transaction holds. It lets go of them when it can only be rolled back: then none can be named."""

    def __init__(
        self, seqs: Sequence[int], keys: Sequence[bytes], values: Sequence[bytes], back: EventToMessage
    ) -> None:
        self._seqs, self._keys, self._values, self._back = seqs, keys, values, back

    def message_ids(self, seqs: Sequence[int], most: int) -> Named:
        """Of the first `most` of these, which are some of its own."""
        places = {seq: at for at, seq in enumerate(self._seqs[: len(self._keys)])}
        return _named((seq, self._message(places[seq])) for seq in seqs[:most] if seq in places)

    def _message(self, at: int) -> bytes:
        key, value = self._keys[at], self._values[at]
        return value if is_message(key) else self._back.message(key, value)


def _named(messages: Iterable[tuple[int, bytes]]) -> Named:
    return [(seq, _message_id(message)) for seq, message in messages]


def _message_id(message: bytes) -> str | None:
    try:
        name = as_text(message_id_of(message))
    except DecodeError:
        return None
    return name if len(name) <= CHARACTERS_MAX else None
