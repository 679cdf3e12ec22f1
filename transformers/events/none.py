"""The transformer `none`: a message is one opaque value.

Source: semantics 3.4 (0, no transformation); docs/records.md, *Event key*. Errors: none, a malformed message is a null
event.
"""

from __future__ import annotations

from collections.abc import Sequence

from transformers.codec import DecodeError
from transformers.events.column import Column
from transformers.events.shapes import numbered
from transformers.message.annotation_keys import check_annotations
from transformers.message.marks import marks
from transformers.message.sections import DELIVERY_ANNOTATIONS, section_offsets, without_delivery_annotations


class Opaque:
    """Keys end after the seq, or marks."""

    name = "none"

    def transform_column(self, messages: Column, key_prefix: bytes, first_seq: int) -> Column | None:
        """The keys of messages that are events as they are; see `transformers.Transformer`."""
        return numbered(messages, key_prefix, first_seq, _suffix, _read)

    def transform_columns(
        self, messages: Sequence[bytes], key_prefix: bytes, first_seq: int
    ) -> tuple[list[bytes | None], list[bytes | None]]:
        """Keys and values of a column of messages; see `transformers.Transformer`."""
        template = key_prefix.replace(b"%", b"%%") + b"%d"
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        for seq, message in enumerate(messages, first_seq):
            try:
                offsets = section_offsets(message)
                check_annotations(message, offsets)
                value, offsets = without_delivery_annotations(message, offsets)
            except DecodeError:
                keys.append(None)
                values.append(None)
            else:
                keys.append(template % seq + marks(value, offsets))
                values.append(value)
        return keys, values


def _suffix(_section: bytes, _places: bytes) -> bytes:
    """See `shapes.Suffix`."""
    return b""


def _read(message: bytes) -> tuple[bytes, bytes] | None:
    """See `shapes.Read`."""
    offsets = section_offsets(message)
    check_annotations(message, offsets)
    return (marks(message, offsets), b"") if offsets[DELIVERY_ANNOTATIONS] < 0 else None
