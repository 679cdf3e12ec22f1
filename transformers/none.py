"""The transformer `none`: a message is one opaque value.

Source: semantics 3.4 (0, no transformation); docs/records.md, *Event key*. Errors: none, a malformed message is a null
event. May import: `transformers`.
"""

from __future__ import annotations

from collections.abc import Sequence

from transformers.amqp_types import DecodeError
from transformers.annotation_keys import check_annotations
from transformers.marks import marks
from transformers.sections import section_offsets, without_delivery_annotations


class Opaque:
    """Keys end after the seq, or marks."""

    name = "none"

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
