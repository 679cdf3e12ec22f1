"""AMQP message bytes to native events and back.

`transformer(name)` gives a transformer of columns, `event_transformer(name)` one that makes events with headers;
`redelivered_header` is what changes on the way back.
Units: milliseconds, octets. Source: semantics 3.4.
"""

from collections.abc import Sequence
from typing import Protocol

from transformers.events.basic import Basic
from transformers.events.installed import TransformerError, event_transformer, user_names
from transformers.events.native_event import EventTransformer, NativeEvent
from transformers.events.none import Opaque
from transformers.message.annotations import annotated, annotations_of
from transformers.message.expiry import without_expiry
from transformers.message.header import redelivered_header


class Transformer(Protocol):
    """What makes events of messages, their identity in the key."""

    name: str

    def transform_columns(
        self, messages: Sequence[bytes], key_prefix: bytes, first_seq: int
    ) -> tuple[list[bytes | None], list[bytes | None]]:
        """Keys and values for `messages`, which have the seqs first_seq, first_seq + 1, ...

        `key_prefix` is `1;NAME;RUN;` (docs/records.md, *Event key*). A value is the message itself, the same object,
        unless it carried delivery-annotations. None and None for a null event: the message is malformed, empty or has
        no body (row P-A2).

        A transformer may have `transform_column`, too (`Basic.transform_column`): the keys of a `Column` of messages
        that are all events as they are, or None where they are not."""
        ...


def transformer(name: str) -> Transformer:
    """The transformer called `name`: one of TRANSFORMERS. KeyError for another."""
    return TRANSFORMERS[name]()


TRANSFORMERS: dict[str, type[Transformer]] = {"none": Opaque, "basic": Basic}

__all__ = [
    "TRANSFORMERS",
    "Basic",
    "EventTransformer",
    "NativeEvent",
    "Opaque",
    "Transformer",
    "TransformerError",
    "annotated",
    "annotations_of",
    "event_transformer",
    "redelivered_header",
    "transformer",
    "user_names",
    "without_expiry",
]
