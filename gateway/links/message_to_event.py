"""How messages of a link become native events, by the transformer that is chosen for its node.

Chosen when the link attaches, and again when tables change; never for a message. What `none` and `basic` make has its
identity in the key, what makes events with headers (`complete`, a user's class) has it in a header. A message that a
user's class cannot convert is a null event (row P-A2), said in the log at the first and then at every tenfold count.
Source: semantics 3.4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from native_backend.log import event_key
from native_backend.log.octets import Octets
from native_backend.log.record_headers import HeadedKey
from transformers import TRANSFORMERS, NativeEvent, event_transformer, transformer
from transformers.codec import DecodeError
from transformers.events.installed import COMPLETE
from transformers.message.annotation_keys import check_annotations
from transformers.message.header import header_fields
from transformers.message.marks import marks
from transformers.message.sections import section_offsets

log = logging.getLogger("realmgate.transformer")


class MessageToEvent:
    """Of one link. `columns`: keys and values of messages that have that seq and the following; None and None for a
    null event. `column`: only the keys, where each message is its value; None where that is not so. Not every
    transformer has it. `as_messages`: the values of events are messages."""

    __slots__ = ("as_messages", "column", "columns")

    def __init__(
        self,
        columns: Callable[[Sequence[bytes], int], tuple[list[bytes | None], list[bytes | None]]],
        column: Callable[[Octets, int], Octets | None] | None = None,
        as_messages: bool = False,
    ) -> None:
        self.as_messages = as_messages
        self.columns = columns
        self.column = column

    def marked(self, origin: int) -> MessageToEvent:
        """The same, of events that say where they come from."""
        columns, mark = self.columns, event_key.origin_mark(origin)

        def marked_columns(messages: Sequence[bytes], first_seq: int) -> tuple[list[bytes | None], list[bytes | None]]:
            keys, values = columns(messages, first_seq)
            return [None if key is None else with_mark(key, mark) for key in keys], values

        return MessageToEvent(marked_columns, as_messages=self.as_messages)


def with_mark(key: bytes, mark: bytes) -> bytes:
    return key.renamed(bytes(key) + mark) if type(key) is HeadedKey else key + mark


def conversion(name: str, run: str, node: str) -> MessageToEvent:
    """For one link of a node. Raises TransformerError."""
    if name not in TRANSFORMERS:
        return MessageToEvent(EventColumns(name, run, node))
    made, prefix = transformer(name), event_key.prefix(name, run, headed=False)
    column = getattr(made, "transform_column", None)
    return MessageToEvent(
        lambda messages, first_seq: made.transform_columns(messages, prefix, first_seq),
        None if column is None else lambda messages, first_seq: column(messages, prefix, first_seq),
        as_messages=True,
    )


class EventColumns:
    """Events with headers, one by one."""

    def __init__(self, name: str, run: str, node: str) -> None:
        self._name, self._node = name, node
        self._transformer = event_transformer(name)
        self._prefix = event_key.prefix(name, run, headed=True)
        self._failures = 0

    def __call__(self, messages: Sequence[bytes], first_seq: int) -> tuple[list[bytes | None], list[bytes | None]]:
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        for seq, message in enumerate(messages, first_seq):
            try:
                offsets = section_offsets(message)
                check_annotations(message, offsets)
                fields = header_fields(message, offsets) + marks(message, offsets)
            except DecodeError:
                event = None
            else:
                event = self._event(message)
            if event is None:
                keys.append(None)
                values.append(None)
            else:
                identity = b"%s%d;%s" % (self._prefix, seq, fields)
                keys.append(HeadedKey.of_event(identity, own_key(event), event.headers))
                values.append(event.value)
        return keys, values

    def _event(self, message: bytes) -> NativeEvent | None:
        if self._name == COMPLETE:
            return self._transformer.event(message)
        try:
            event = self._transformer.event(message)
            return None if event is None else checked(event)
        except Exception as error:  # a class that we did not write: the message is rejected, the turn goes on
            self._failures += 1
            if str(self._failures).rstrip("0") == "1":
                description = f"{type(error).__name__}: {error}"[:300]
                log.error(
                    "transformer %r, node %r: failure %d: %s", self._name, self._node, self._failures, description
                )
            return None


def own_key(event: NativeEvent) -> bytes | None:
    """The key of its record; none that could be taken for an identity."""
    return None if event.key is None or event.key.startswith(event_key.RESERVED) else event.key


def checked(event: Any) -> NativeEvent:
    """What a user's class has made. Raises TypeError or ValueError for what is no event."""
    key, headers, value = event
    if not isinstance(value, bytes) or not isinstance(key, bytes | None):
        raise TypeError("an event's value is bytes, its key bytes or None")
    for name, octets in headers:
        if not isinstance(name, str) or not isinstance(octets, bytes | None):
            raise TypeError("a header is a str with bytes or None")
        if not name or "\0" in name:
            raise ValueError(f"{name!r} is no name of a header")
        name.encode()
    return NativeEvent(key, tuple((name, octets) for name, octets in headers), value)
