"""Keys of a column of messages that are events as they are, found once for messages of one shape.

Messages of one link mostly begin alike: what was found for one holds for the next of the same size whose octets up to
the content of its body are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from transformers.codec import DecodeError
from transformers.events.column import Column
from transformers.message import _sections

_FRONT = 512  # octets; what is before the body of usual messages
Suffix = Callable[[bytes, bytes], bytes]
"""What a key says behind its seq, of a simple message: of its header section (empty: none) and of the places
`;PROPERTIES;APPLICATION;BODY`. May raise DecodeError."""
Read = Callable[[bytes], tuple[bytes, bytes] | None]
"""The same of a whole message, and the octets that every message of its shape begins with (none: no shape to go by).
None where it is no event as it is. May raise DecodeError."""


def numbered(messages: Column, key_prefix: bytes, first_seq: int, suffix_of: Suffix, read: Read) -> Column | None:
    """The keys: prefix, seq, suffix. None when one of the messages is no event as it is."""
    keys, at, count = messages.empty(), 0, len(messages)
    try:
        while at < count:
            size, front = messages.front(at, _FRONT)
            simple = _sections.unmarked(front, size)
            if simple is not None:
                section, places, head = simple
                suffix = suffix_of(section, places)
            else:
                numbering = read(messages[at])
                if numbering is None:
                    return None
                suffix, head = numbering
            end = messages.alike(at + 1, size, head) if head else at + 1
            keys.number(key_prefix, first_seq + at, end - at, suffix)
            at = end
    except DecodeError:
        return None
    return keys
