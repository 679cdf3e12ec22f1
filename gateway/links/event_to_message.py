"""The way back: the AMQP message for an event whose value is not one, what it says of earlier attempts, the form of a
dead letter, and which events a selector means.

An event with headers is given to the transformer that made it, by the name in its identity; what no transformer can
restore is given as a native record would be. All are for the realm: `Frame`, `Annotate` and `Selecting`.
Errors: none.
"""

from __future__ import annotations

import logging

from gateway.links.dead_letter_message import annotated_copy
from gateway.links.message_to_event import checked, own_key
from native_backend.events.batch import DeliveryBatch
from native_backend.events.copy_key import CopyOrigin
from native_backend.events.event_kind import framed, is_message
from native_backend.log import event_key
from native_backend.log.record_headers import HeadedKey
from native_backend.operations.route import Wanted
from transformers import EventTransformer, NativeEvent, TransformerError, event_transformer, redelivered_header
from transformers.events.installed import COMPLETE
from transformers.message.native import message_of
from transformers.message.sections import section_offsets
from transformers.selector.grammar import SelectorError
from transformers.selector.selector import selector

log = logging.getLogger("realmgate.transformer")


class EventToMessage:
    """Of one realm. Failures are logged once for each transformer: each event may be of another one."""

    def __init__(self) -> None:
        self._transformers: dict[str, EventTransformer | None] = {}
        self._logged: set[str] = set()

    def message(self, key: bytes | None, value: bytes) -> bytes:
        """What consumers are given of an event that is no message as it stands."""
        if type(key) is not HeadedKey:
            return message_of(value)
        name = _maker(key)
        transformer = self._transformer(name) if name else None
        if transformer is not None:
            try:
                message = transformer.message(NativeEvent(key.record_key, key.headers[1:], value))
                if name != COMPLETE:
                    section_offsets(message)
                return message
            except Exception as error:  # a user's class, or headers that another program has written
                self._tell(name, error)
        return message_of(value, key.headers)

    def selecting(self, text: str) -> Wanted | None:
        """Asks the messages that consumers get."""
        try:
            select = selector(text).select
        except SelectorError:
            return None
        return lambda keys, values: select(framed(keys, [*values], self.message))

    def annotate(self, key: bytes, value: bytes, origin: CopyOrigin) -> tuple[bytes, bytes]:
        """Key and value of a dead letter, in the form of the event."""
        if is_message(key):
            return key, annotated_copy(value, origin)
        message = annotated_copy(self.message(key, value), origin)
        name = _maker(key)
        transformer = self._transformer(name) if name else None
        if transformer is not None:
            try:
                event = transformer.event(message)
                if event is not None:
                    event = checked(event)
                    return HeadedKey.of_event(bytes(key), own_key(event), event.headers), event.value
            except Exception as error:  # a user's class
                self._tell(name, error)
        return bytes(key), message

    def _transformer(self, name: str) -> EventTransformer | None:
        if name not in self._transformers:
            try:
                self._transformers[name] = event_transformer(name)
            except TransformerError as error:
                log.error("events of transformer %r are given as native ones: %s", name, error)
                self._transformers[name] = None
        return self._transformers[name]

    def _tell(self, name: str, error: Exception) -> None:
        if name not in self._logged:
            self._logged.add(name)
            description = f"{type(error).__name__}: {error}"[:300]
            log.error(
                "transformer %r could not restore an event, which is given as a native one: %s", name, description
            )


def _maker(key: bytes) -> str:
    """The name of the transformer in an identity with headers; empty: there is none."""
    return event_key.transformer_of(event_key.original(key))


def marked(delivered: DeliveryBatch) -> list[bytes]:
    """The messages, with what their headers have to say of earlier attempts."""
    values = delivered.values
    if delivered.failed is None and delivered.again is None:
        return values
    failed = delivered.failed or [0] * len(values)
    again = delivered.again or [False] * len(values)
    return [
        redelivered_header(value, count, seen) if count or seen else value
        for value, count, seen in zip(values, failed, again, strict=True)
    ]
