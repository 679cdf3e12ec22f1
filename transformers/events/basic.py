"""The transformer `basic`: the header is readable natively, the places of the sections too, the bytes stay the bytes.

Key `1;basic;RUN;SEQ;DURABLE;PRIORITY;TTL;PROPERTIES;APPLICATION;BODY` and marks; value the message without
delivery-annotations.
Source: semantics 3.4 (1, basic); docs/records.md, *Event key*. Errors: none, a malformed message is a null event.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from transformers.codec import DecodeError
from transformers.events.column import Column
from transformers.events.shapes import numbered
from transformers.message.annotation_keys import check_annotations
from transformers.message.header import section_fields
from transformers.message.marks import marks
from transformers.message.sections import (
    BODY,
    DELIVERY_ANNOTATIONS,
    section_offsets,
    sole_body_content,
    without_delivery_annotations,
)


class Basic:
    """Messages of one link mostly begin alike: what was found for one holds for the next of the same shape."""

    name = "basic"

    def transform_column(self, messages: Column, key_prefix: bytes, first_seq: int) -> Column | None:
        """The keys of messages that are events as they are; see `transformers.Transformer`."""
        return numbered(messages, key_prefix, first_seq, _suffix, _read)

    def transform_columns(
        self, messages: Sequence[bytes], key_prefix: bytes, first_seq: int
    ) -> tuple[list[bytes | None], list[bytes | None]]:
        """Keys and values of a column of messages; see `transformers.Transformer`."""
        prefix = key_prefix.replace(b"%", b"%%") + b"%d;"
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        size, head, template = -1, b"", b""  # the shape of the last message that had a simple one
        for seq, message in enumerate(messages, first_seq):
            if len(message) == size and message.startswith(head):
                keys.append(template % seq)
                values.append(message)
                continue
            try:
                value, fields, content = _event(message)
            except DecodeError:
                keys.append(None)
                values.append(None)
                continue
            keys.append((prefix + fields) % seq)
            values.append(value)
            if content:
                size, head, template = len(message), message[:content], prefix + fields
        return keys, values


def _suffix(section: bytes, places: bytes) -> bytes:
    """See `shapes.Suffix`."""
    return b";" + section_fields(section) + places


def _read(message: bytes) -> tuple[bytes, bytes] | None:
    """See `shapes.Read`."""
    value, fields, content = _event(message)
    return (b";" + fields, message[:content]) if value is message else None


def _event(message: bytes) -> tuple[bytes, bytes, int]:
    """The value, the fields of the key behind the seq, and up to where another message of equal length must be equal to
    have the same fields (0: no shape to go by)."""
    offsets = section_offsets(message)
    if offsets[1] >= 0 or offsets[2] >= 0 or offsets[6] >= 0:
        check_annotations(message, offsets)
    if offsets[DELIVERY_ANNOTATIONS] >= 0:
        value, offsets = without_delivery_annotations(message, offsets)
        content = 0
    else:
        value, content = message, sole_body_content(message, offsets[BODY])
    header, _, annotations, properties, application, body, _ = offsets
    section = b""
    if header == 0:
        end = properties if properties >= 0 else application if application >= 0 else body
        section = value[: annotations if annotations >= 0 else end]
    fields = _fields(section, properties, application, body)
    if annotations >= 0 or properties >= 0:
        fields += marks(value, offsets)
    return value, fields, content


@functools.lru_cache(maxsize=4096)
def _fields(section: bytes, properties: int, application: int, body: int) -> bytes:
    """`DURABLE;PRIORITY;TTL;PROPERTIES;APPLICATION;BODY`."""
    places = ";".join("" if place < 0 else str(place) for place in (properties, application, body))
    return section_fields(section) + f";{places}".encode()
